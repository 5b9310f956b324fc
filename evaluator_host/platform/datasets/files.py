"""Stores files in a data directory, by id: the rows of data sets, and uploaded files that stay unchanged.

A folder of rows contains `rows.jsonl`, with one JSON line for each row, and `rows.index`, with the byte position of
every 64th row as 8 little-endian bytes. No file is read into memory as a whole, and a file appears in the folder only
when it is complete.
"""

import errno
import hashlib
import os
import struct
import time
from array import array
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from evaluator_host.engine.sandbox.linux.instance import has_abandoned, is_dead, this_instance
from evaluator_host.engine.system.disk import lacks_disk
from evaluator_host.engine.system.tree import remove
from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.readers import Record, read_records
from evaluator_host.platform.datasets.suggestion import MOST_COLUMNS
from evaluator_host.types.errors import InvalidRequest, MachineExhausted, RowsElsewhere, TooLarge
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import decode_json, encode_json, memory_bytes, takes_more_memory, type_name
from evaluator_host.types.stored import BadLine, DatasetFacts

_SETTLED_S: Final = 3600.0
_READ_BYTES: Final = 256 << 10  # number of bytes to read at once, large enough that long lines need few reads
STRIDE: Final = 64  # number of rows for each entry of the index: to find a row, the host reads at most 64 lines
_BAD_LINES_KEPT: Final = 100
_CHECKED_BYTES: Final = 4 << 20  # number of bytes of rows after which the free disk space is checked again
_NAMES_CHARS: Final = 200_000  # maximum number of characters in the names of all columns together
MORE_COLUMNS: Final = "it has too many columns to list them all; its rows are complete"
_PAGE_BYTES: Final = 16 << 20
_PIECE_BYTES: Final = 64 << 10
DECODED_PER_BYTE: Final = 6  # bytes of memory that decoded rows may take for each byte of JSON that may be read
PLACE: Final = struct.Struct("<Q")
FILES: Final = "filesets"  # folder in a data directory for files that were uploaded through vendors' routes
PARTIAL: Final = "partial-"
ROW_MEMORY: Final = 128 << 20  # maximum memory of a row, once decoded, as of a request body
ROWS: Final = "rows.jsonl"
INDEX: Final = "rows.index"


class RowsFolder:
    """The folder with all data sets of a host. Its methods block: for more than a few rows, call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self.path = folder

    def write(self, dataset_id: str, records: Iterable[Record], *, format_: str, max_bytes: int) -> DatasetFacts:
        """Store the valid records of a file, and return facts about them. If this fails, nothing is left behind.

        Raises:
          InvalidRequest: there is no valid record, or the file cannot be read.
          TooLarge: the rows have more than `max_bytes` bytes.
          MachineExhausted: the disk is full.
        """
        with MachineExhausted.refused("store the rows"):
            stage = self.stage(dataset_id)
            try:
                limits = RowLimits(max_bytes, max_bytes, reserve_bytes=0)
                facts = write_rows(stage, records, format_=format_, limits=limits)
                self.keep(stage, dataset_id)
            finally:
                remove(stage)
        return facts

    def stage(self, dataset_id: str) -> Path:
        """Create and return a folder for `write_rows` to fill and for `keep` to store. The caller removes it later."""
        stage = self.path / f"{dataset_id}.{this_instance()}"
        stage.mkdir(parents=True, mode=0o700)
        return stage

    def keep(self, stage: Path, dataset_id: str) -> None:
        """Move a folder that `write_rows` has filled to the place where the rows of the data set are stored."""
        _sync(stage)
        stage.rename(self.path / dataset_id)
        _sync(self.path)

    def rows(self, dataset_id: str, *, first: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield rows with their numbers, starting at row `first`. Rows are numbered from 0."""
        for number, line in self.lines(dataset_id, first=first):
            yield number, decode_json(line)

    def lines(self, dataset_id: str, *, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield rows as JSON lines, with their numbers, starting at row `first`. Rows are numbered from 0.

        Raises:
          RowsElsewhere: the rows are on another host that uses the same database.
        """
        folder = self._folder(dataset_id)
        with (folder / ROWS).open("rb") as rows:
            start = first // STRIDE
            rows.seek(_place(folder / INDEX, start))
            for number, line in enumerate(rows, start=start * STRIDE):
                if number >= first:
                    yield number, line

    def json_pieces(self, dataset_id: str, first: int, *, limit: int) -> Iterator[bytes]:
        """Yield at most `limit` rows, starting at row `first`, as a JSON array in pieces of at most 64 KB.

        A client that reads slowly keeps only a piece in memory, not a row.

        Raises:
          RowsElsewhere: the rows are on another host that uses the same database.
        """
        folder, mark = self._folder(dataset_id), b"["
        with (folder / ROWS).open("rb") as rows:
            rows.seek(_place(folder / INDEX, first // STRIDE))
            for _ in range(first % STRIDE):
                for _ in _pieces_of_line(rows):
                    pass
            for _ in range(limit):
                for piece in _pieces_of_line(rows):
                    yield mark + piece.removesuffix(b"\n")
                    mark = b""
                if mark:  # the file has ended
                    break
                mark = b","
        yield b"[]" if mark == b"[" else b"]"

    def has_rows(self, dataset_id: str) -> bool:
        """Return whether this folder has the rows of a data set."""
        return (self.path / dataset_id / ROWS).exists()

    def missing(self, dataset_ids: Iterable[str]) -> list[str]:
        """Return the ids of the data sets that have no rows in this folder."""
        return [one for one in dataset_ids if not self.has_rows(one)]

    def _folder(self, dataset_id: str) -> Path:
        if not self.has_rows(dataset_id):
            raise RowsElsewhere(
                f"this host's data directory does not contain the rows of data set {dataset_id}: use the host that "
                "received the upload, or let all hosts with this database share one data directory"
            )
        return self.path / dataset_id

    def page(self, dataset_id: str, first: int, *, limit: int) -> list[bytes]:
        """Return at most `limit` rows as JSON lines, starting at row `first`; fewer if they have more than 16 MB."""
        return [line for _, line in next(line_chunks(self.lines(dataset_id, first=first), limit, _PAGE_BYTES), [])]

    def some(
        self, dataset_id: str, numbers: Iterable[int], *, most_bytes: int | None = None
    ) -> dict[int, dict[str, Any]]:
        """Return `{number: row}` for the given row numbers, which begin at 0; see `lines_of` for `most_bytes`."""
        return {number: decode_json(line) for number, line in self.lines_of(dataset_id, numbers, most_bytes=most_bytes)}

    def weigh(self, dataset_id: str, numbers: Iterable[int], *, most_bytes: int | None = None) -> dict[int, int]:
        """Return a dict from each row number to the bytes of memory that the decoded row takes."""
        return {
            number: memory_bytes(line) for number, line in self.lines_of(dataset_id, numbers, most_bytes=most_bytes)
        }

    def lines_of(
        self, dataset_id: str, numbers: Iterable[int], *, most_bytes: int | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the rows with these numbers, which begin at 0, as JSON lines. Neighbouring rows are read together.

        Once the rows have more than `most_bytes` bytes, or would take over six times `most_bytes` of memory when
        decoded, the remaining rows are left out. None means no limit.
        """
        held = weight = 0
        reading: Iterator[tuple[int, bytes]] = iter(())
        at: int | None = None  # number of the row that `reading` will yield next
        for wanted in sorted(set(numbers)):
            if at is None or not at <= wanted <= at + STRIDE:
                reading, at = self.lines(dataset_id, first=wanted), wanted
            for number, line in reading:
                at = number + 1
                if number == wanted:
                    is_first = not held
                    held += len(line)
                    weight += memory_bytes(line)
                    if not is_first and most_bytes is not None and max(held, weight // DECODED_PER_BYTE) > most_bytes:
                        return
                    yield number, line
                    break

    def file(self, dataset_id: str) -> Path:
        """Return the path of a data set's rows as JSON lines.

        Raises:
          RowsElsewhere: the rows are not on this host.
        """
        return self._folder(dataset_id) / ROWS

    def remove(self, dataset_id: str) -> None:
        """Remove the rows of a data set, if they exist."""
        remove(self.path / dataset_id)

    def ids(self) -> list[str]:
        """Return the ids of all data sets that have rows in this folder."""
        return [path.name for path in self.path.iterdir() if "." not in path.name] if self.path.is_dir() else []

    def size_bytes(self, dataset_id: str) -> int:
        """Return the size of a data set's folder."""
        return sum(path.stat().st_size for path in (self.path / dataset_id).iterdir())

    def orphans(self, known: Collection[str]) -> list[str]:
        """Return folders to remove: unfinished ones of hosts that have ended, and old ones with ids not in `known`."""
        if not self.path.is_dir():
            return []
        found = []
        for path in self.path.iterdir():
            dataset_id, _, writer = path.name.partition(".")
            if writer:
                gone = has_abandoned(writer, path)
            else:  # only old folders are orphans: a new one may not be in the database yet
                gone = dataset_id not in known and time.time() - path.stat().st_mtime > _SETTLED_S
            if gone:
                found.append(path.name)
        return found


@dataclass(frozen=True, slots=True)
class RowLimits:
    """Limits on the rows that a function writes in a limited process."""

    max_bytes: int  # size limit of all rows
    max_row_bytes: int  # size limit of a row
    reserve_bytes: int  # bytes of the disk that must stay free


def write_upload(stage: Path, upload: Path, format_: Format, limits: RowLimits) -> DatasetFacts:
    """Write an uploaded file's records into a folder. Return facts about them, and notes on how the file was read."""
    notes: list[str] = []
    with upload.open("rb", buffering=_READ_BYTES) as file:
        records = read_records(file, format_, max_row_bytes=limits.max_row_bytes, note=notes.append)
        facts = write_rows(stage, records, format_=format_, limits=limits)
    return replace(facts, notes=(*notes, *facts.notes))


def line_chunks(lines: Iterator[tuple[int, bytes]], rows: int, max_bytes: int) -> Iterator[list[tuple[int, bytes]]]:
    """Yield lists of at most `rows` numbered lines; a list also ends when it has reached `max_bytes`."""
    chunk: list[tuple[int, bytes]] = []
    size = 0
    for number, line in lines:
        chunk.append((number, line))
        size += len(line)
        if len(chunk) >= rows or size >= max_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def write_rows(stage: Path, records: Iterable[Record], *, format_: str, limits: RowLimits) -> DatasetFacts:
    """Write the valid records of a file into a folder, and return facts about them.

    Raises:
      InvalidRequest: there is no valid record, or the file cannot be read.
      TooLarge: the rows have more bytes than `limits` allow.
      MachineExhausted: the disk has too little room.
    """
    with MachineExhausted.refused("store the rows"):
        with (stage / ROWS).open("wb") as rows:
            writer = _Writer(rows, stage, limits)
            for line, record in records:
                writer.add(line, record)
            facts = writer.facts(format_)
            rows.flush()
            os.fsync(rows.fileno())
        with (stage / INDEX).open("wb") as index:
            index.write(writer.places)
            index.flush()
            os.fsync(index.fileno())
    return facts


def _sync(folder: Path) -> None:
    """Write a folder's entries to the disk. Without them, a power failure would lose files that the database names.

    Some file systems, such as those of network shares, cannot do this for a folder.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


class _Writer:
    def __init__(self, file: BinaryIO, stage: Path, limits: RowLimits) -> None:
        self._file = file
        self._stage = stage
        self._limits = limits
        self._checked = 0
        self._digest = hashlib.sha256()
        self._places = array("Q")
        self._columns: dict[str, None] = {}
        self._notes: tuple[str, ...] = ()
        self._names_left = _NAMES_CHARS
        self._bad: list[BadLine] = []
        self._size = self._rows = self._bad_rows = 0

    @property
    def places(self) -> bytes:
        return b"".join(map(PLACE.pack, self._places))

    def add(self, line: int, record: Any) -> None:
        text = self._text(record)
        if isinstance(text, BadRow):
            self._bad_rows += 1
            if len(self._bad) < _BAD_LINES_KEPT:
                self._bad.append(BadLine(line, str(text)))
            return
        if self._rows % STRIDE == 0:
            self._places.append(self._size)
        self._size += len(text)
        if self._size > self._limits.max_bytes:
            most = self._limits.max_bytes >> 20
            raise TooLarge(f"the rows have more than {most} MB; send them as several data sets")
        # check while rows are written: if rows share values, they may be much larger than the uploaded file
        if self._size - self._checked > _CHECKED_BYTES:
            self._checked = self._size
            if (error := lacks_disk(self._stage, self._limits.reserve_bytes)) is not None:
                raise error
        self._file.write(text)
        self._digest.update(text)
        self._rows += 1
        if not record.keys() <= self._columns.keys():
            self._note_columns(record)

    def _note_columns(self, record: dict[str, Any]) -> None:
        for name in islice(record, MOST_COLUMNS):
            if name not in self._columns and len(self._columns) < MOST_COLUMNS and len(name) <= self._names_left:
                self._names_left -= len(name)
                self._columns[name] = None
        if not record.keys() <= self._columns.keys():
            self._notes = (MORE_COLUMNS,)

    def _text(self, record: Any) -> bytes | BadRow:
        if isinstance(record, BadRow):
            return record
        if not isinstance(record, dict):
            return BadRow(f"a row must be an object, not {type_name(record)}")
        text = encode_json(record) + b"\n"
        most = self._limits.max_row_bytes
        if takes_more_memory(text, ROW_MEMORY):
            return BadRow(f"it has so many values that they would take over {ROW_MEMORY >> 20} MB of memory")
        return text if len(text) <= most else BadRow(f"longer than {most >> 20} MB")

    def facts(self, format_: str) -> DatasetFacts:
        if not self._rows:
            why = "it is empty, or has a header and nothing else"
            if self._bad:
                why = f"{self._bad_rows} of its lines are bad; line {self._bad[0].line}: {self._bad[0].message}"
            raise InvalidRequest(f"there is no row in the data: {why}")
        return DatasetFacts(
            format=format_,
            rows=self._rows,
            bad_rows=self._bad_rows,
            bad_lines=tuple(self._bad),
            columns=tuple(self._columns),
            size_bytes=self._size,
            digest="sha256:" + self._digest.hexdigest(),
            notes=self._notes,
        )


def _pieces_of_line(file: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of a file's current line in pieces of at most 64 KB; nothing at the end of the file."""
    while piece := file.readline(_PIECE_BYTES):
        yield piece
        if piece.endswith(b"\n"):
            return


def _place(index: Path, number: int) -> int:
    with index.open("rb") as file:
        if number * PLACE.size >= os.fstat(file.fileno()).st_size:
            return (index.parent / ROWS).stat().st_size  # no further entry in the index: the range ends with the file
        file.seek(number * PLACE.size)
        return int(PLACE.unpack(file.read(PLACE.size))[0])


def partial_prefix() -> str:
    """Return the prefix of this process's unfinished files.

    `FileFolder.sweep` removes unfinished files of dead hosts.
    """
    return f"{PARTIAL}{this_instance()}_"


class FileFolder:
    """A folder of files that callers uploaded through routes that imitate another vendor's API.

    Each file has its id as its name; the names of unfinished files begin with `partial-`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, blob_id: str) -> Path:
        """Return the path of a file."""
        return self.path / blob_id

    def ids(self) -> list[str]:
        """Return the ids of all stored files."""
        found = self.path.iterdir() if self.path.is_dir() else ()
        return [path.name for path in found if not path.name.startswith(PARTIAL)]

    def sweep(self, known: Collection[str]) -> int:
        """Remove uploads of killed hosts, and files over an hour old with ids not in `known`. Return how many."""
        gone = 0
        for path in self.path.iterdir() if self.path.is_dir() else ():
            with suppress(FileNotFoundError):  # the upload has ended since the folder was listed
                old = time.time() - path.stat().st_mtime > _SETTLED_S
                if is_dead(path.name.removeprefix(PARTIAL).partition("_")[0]) or (old and path.name not in known):
                    path.unlink()
                    gone += 1
        return gone


async def at_most(max_bytes: int, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of an upload until they have more than `max_bytes` bytes in total.

    Raises:
      TooLarge: the chunks have more than `max_bytes` bytes in total.
    """
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > max_bytes:
            raise TooLarge(
                f"the file is over this host's limit of {max_bytes >> 20} MB; send it in parts, or ask the operator to "
                "raise EVALUATOR_HOST_DATASETS_MB"
            )
        yield chunk

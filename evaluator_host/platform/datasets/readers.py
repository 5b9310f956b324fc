"""Reads the records of a row file in each format.

At most one record is in memory (16 for Parquet), however large the file is. A record that cannot be read is replaced
with a `BadRow`.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, Final, TypeAlias, cast

import orjson

from evaluator_host.engine.contracts.binding import ROW_DEPTH
from evaluator_host.platform.datasets.json_array import ItemTooLong, NotAnArray, array_items, object_texts
from evaluator_host.platform.datasets.mapping import BadRow, has_nan, with_json, without_nan
from evaluator_host.platform.datasets.notes import Note, Notes
from evaluator_host.platform.datasets.parquet_records import parquet_records
from evaluator_host.platform.datasets.workbook import sheet_rows
from evaluator_host.platform.plugins import row_document
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import InvalidJson, decode_given, encode_json, nests_within, repeated_key

_BOM: Final = b"\xef\xbb\xbf"
_JSON_COLUMNS: Final = ("trace", "variables", "criteria")  # columns of a table that contain JSON objects
_SHOWN: Final = 8
_PEEKED: Final = 1 << 12

_CHUNK_BYTES: Final = 1 << 16
_ARRAY: Final = re.compile(rb"\s*\[\s*(\{|\Z)")
_OBJECT: Final = re.compile(rb"\s*\{[ \t]*(\r?\n|\Z)")  # the beginning of an object that continues on the next line
_ZIP: Final = b"PK\x03\x04"
_OLD_OFFICE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SEPARATOR_LINE: Final = re.compile(rb'(\xef\xbb\xbf)?"?sep=([^\r\n"])"?[ \t;,]*\r?\n', re.IGNORECASE)
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs"}

Record: TypeAlias = tuple[int, Any]
"""The line at which a record begins (for JSON and Parquet, the record's number), and the record or a `BadRow`."""


def modules_of(formats: Collection[Format]) -> tuple[str, ...]:
    """Return the names of the large modules that must be imported to read files of these formats."""
    return ("pyarrow.parquet",) if Format.PARQUET in formats else ()


def read_records(
    file: BinaryIO, format_: Format, *, max_row_bytes: int, note: Note = lambda _: None
) -> Iterator[Record]:
    """Yield `(line, record)` for each record of a file. `note` is called with a sentence about each fault of the file.

    JSON in a string is decoded if its column is a row field, such as `trace` (`mapping.with_json`).

    Raises:
      InvalidRequest: the file does not have this format, or is so damaged that reading cannot go on.
    """
    source = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
    head = source.peek(len(_OLD_OFFICE))
    if head.startswith(_OLD_OFFICE):
        advice = "save it as .xlsx without a password, or as CSV UTF-8, in the program that made it"
        raise InvalidRequest(f"the file is an old Excel workbook (.xls), or one with a password; {advice}")
    notes = Notes(note)
    if format_ not in (Format.PARQUET, Format.XLSX):
        if head.startswith(_ZIP):
            notes("the file is an Excel workbook, though its name has another ending; it was read as a workbook")
            format_ = Format.XLSX
        else:
            source = _in_utf8(source, notes)
    for line, record in _READERS[format_](source, max_row_bytes, notes):
        yield line, _fields(line, record, notes) if isinstance(record, dict) else record


def _fields(line: int, record: dict[str, Any], notes: Notes) -> dict[str, Any] | BadRow:
    given = record
    try:
        record = with_json(given)
    except BadRow as error:
        return error
    if record is not given:
        read = (name for name, text in given.items() if isinstance(text, str) and not isinstance(record[name], str))
        if (name := next((one for one in read if has_nan(given[one])), None)) is not None:
            notes.once(
                "nan",
                f"`{name}` in line {line} may have NaN or Infinity, which JSON does not have; it was read as null",
            )
    if isinstance(record.get("trace"), str):
        notes.once(
            "trace",
            f"`trace` in line {line} is text, not JSON, so it was read as an ordinary column, not as the row's trace",
        )
    return record


def _in_utf8(file: io.BufferedReader, note: Notes) -> io.BufferedReader:
    """Return a UTF-8 file unchanged. For UTF-16 or Windows-1252, return a file object that converts to UTF-8."""
    encoding = _other_encoding(file)
    if encoding is None:
        return file
    name = "Windows-1252" if encoding == "cp1252" else "UTF-16"
    note(f"the file is not in UTF-8, so it was read as {name}. To avoid this in Excel, use Save as: CSV UTF-8")
    return io.BufferedReader(_Recoded(file, encoding))


def _other_encoding(file: io.BufferedReader) -> str | None:
    """Return the encoding of a text file that is not UTF-8; None for UTF-8 and for damaged files."""
    start, head = file.tell(), file.peek(_PEEKED)[:_PEEKED]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # the file has no byte order mark, and every other byte is 0
    if len(head) > 3 and 2 * head[1::2].count(0) > len(head[1::2]):
        return "utf-16-le"
    try:
        chunk = _first_that_is_not_utf_8(file)
        if chunk is None:
            return None
        while chunk:
            chunk.decode("cp1252")
            chunk = file.read(_CHUNK_BYTES)
    except UnicodeDecodeError:
        return None
    finally:
        file.seek(start)
    return "cp1252"


def _first_that_is_not_utf_8(file: io.BufferedReader) -> bytes | None:
    """Return the first bytes that are not UTF-8.

    Return None if all bytes are UTF-8, or if there are valid UTF-8 characters other than ASCII before those bytes.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    while chunk := file.read(_CHUNK_BYTES):
        try:
            if not decoder.decode(chunk).isascii():
                return None
        except UnicodeDecodeError as error:
            return error.object if error.object[: error.start].isascii() else None
    return None


class _Recoded(io.RawIOBase):
    """Reads a text file in an encoding other than UTF-8, and returns its text in UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding=encoding, newline="")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._rest = self._rest or self._text.read(_CHUNK_BYTES).encode("utf-8", "replace")
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"the file is not valid {error.encoding}: {error.reason}; save it as UTF-8") from error
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _jsonl(file: io.BufferedReader, max_row_bytes: int, note: Notes) -> Iterator[Record]:
    head = file.peek(_PEEKED).removeprefix(_BOM)
    if _ARRAY.match(head):
        note("the file is one JSON array, not one row per line; it was read as an array")
        yield from _json(file, max_row_bytes, note)
        return
    if _OBJECT.match(head):
        yield from _json(file, max_row_bytes, note)
        return
    number = 0
    while line := file.readline(max_row_bytes + 1):
        number += 1
        if len(line) > max_row_bytes:
            while line and not line.endswith(b"\n"):  # skip the rest of a line that is too long
                line = file.readline(1 << 20)
            yield number, BadRow(f"longer than {max_row_bytes >> 20} MB")
            continue
        text = line.removeprefix(_BOM).strip()
        if text.endswith(b",") and text[:-1].rstrip().endswith(b"}"):
            note.once("comma", f"line {number} ends in a comma, which JSON Lines does not allow; the comma was ignored")
            text = text[:-1]
        if text:
            yield number, _decoded(text, f"line {number}", note)


def _json(file: io.BufferedReader, max_row_bytes: int, note: Notes) -> Iterator[Record]:
    if file.peek(_PEEKED).startswith(_BOM):
        file.read(len(_BOM))
    number = 0
    try:
        if file.peek(_PEEKED).lstrip().startswith(b"{"):
            texts = object_texts(file, max_item_bytes=max_row_bytes)
            first, second = next(texts), next(texts, None)
            if second is None:
                yield from enumerate(_wrapped(first, note), start=1)
                return
            note("the file has one object after another, and no array around them; each was read as a row")
            items: Iterator[bytes] = chain((first, second), texts)
        else:
            items = array_items(file, max_item_bytes=max_row_bytes)
        for number, text in enumerate(items, start=1):
            yield number, _decoded(text, f"item {number}", note)
    except NotAnArray as error:
        raise InvalidRequest(
            f"a .json data file must be an array of rows, but {error}; if the file has one row per line, name it .jsonl"
        ) from error
    except ItemTooLong as error:
        raise InvalidRequest(f"item {number + 1} is longer than {max_row_bytes >> 20} MB") from error


def _wrapped(text: bytes, note: Notes) -> list[Any]:
    """Return the rows of a JSON document: `{"rows": […]}`, or another platform's format, such as an eval set."""
    body = _decoded(text, "the file", note)
    if isinstance(body, BadRow):
        raise InvalidRequest(f"the data file is {body}")
    if not isinstance(body.get("rows"), list):
        document = row_document(body)
        if document is not None:
            return document.rows(body)
        raise InvalidRequest(
            'a .json data file must be an array of rows, or {"rows": […]}; if '
            "the file has one row per line, name it .jsonl"
        )
    rows: list[Any] = body["rows"]
    return rows


def _csv(file: io.BufferedReader, max_row_bytes: int, note: Notes, *, delimiter: str = ",") -> Iterator[Record]:
    csv.field_size_limit(max_row_bytes)
    named = _SEPARATOR_LINE.match(file.peek(_PEEKED))
    lines_before = 0
    if named:  # the first line is `sep=;` or the like, which names the delimiter for Excel
        file.read(named.end())
        delimiter, lines_before = named[2].decode("latin-1"), 1
    elif (found := _delimiter(file.peek(_PEEKED), delimiter)) != delimiter:
        note(
            f"the columns are separated by {_SEPARATORS[found]}, not by {_SEPARATORS[delimiter]}; the file was read "
            "accordingly"
        )
        delimiter = found
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            header = _header(next(filter(None, reader), []), note)
            empty: Counter[str] = Counter()
            for line, record in _csv_records(reader, header, note):
                if isinstance(record, dict) and "" in record.values():
                    empty.update(name for name, value in record.items() if value == "")
                yield line + lines_before, record
            if empty:
                note(_empty_cells(empty))
        except csv.Error as error:
            line = reader.line_num + lines_before
            message = f"the header in line {line} is not CSV: {error}; write each quote inside a name twice"
            raise InvalidRequest(message) from error
        except UnicodeDecodeError as error:
            line = reader.line_num + lines_before + 1
            message = f"the data file is not UTF-8 near line {line}; in Excel, Save as: CSV UTF-8"
            raise InvalidRequest(message) from error


def _empty_cells(empty: Counter[str]) -> str:
    columns = ", ".join(f"{count} in {name!r}" for name, count in empty.most_common(_SHOWN))
    more = f", and more in {len(empty) - _SHOWN} other columns" if len(empty) > _SHOWN else ""
    return f"some cells are empty, and were read as empty strings: {columns}{more}"


def _delimiter(head: bytes, given: str) -> str:
    """Return the delimiter of a header: `given` if it occurs there, else the delimiter that makes the most columns."""
    text = head.removeprefix(_BOM).decode("utf-8", "replace")

    def columns(delimiter: str) -> int:
        try:
            return len(next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []))
        except csv.Error:
            return 0

    return given if columns(given) != 1 else max((given, *_SEPARATORS), key=columns)


def _header(cells: Sequence[Any], note: Notes) -> list[str]:
    names = [f"column {place}" if name in (None, "") else str(name) for place, name in enumerate(cells, start=1)]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)[:_SHOWN]
    if twice:
        raise InvalidRequest(f"several columns of the header have the same name: {', '.join(twice)}; rename them")
    unnamed = [name for name, cell in zip(names, cells, strict=True) if cell in (None, "")]
    if unnamed:
        more = f" and {len(unnamed) - _SHOWN} more" if len(unnamed) > _SHOWN else ""
        note(f"cells of the header are empty; their columns are called {', '.join(map(repr, unnamed[:_SHOWN]))}{more}")
    return names


def _csv_records(reader: Any, header: list[str], note: Notes) -> Iterator[Record]:
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, BadRow(f"not CSV: {error}")
            continue
        if cells:
            yield line, _table_record(header, cells, line, note)


def _table_record(header: list[str], cells: list[Any], line: int, note: Notes) -> dict[str, Any] | BadRow:
    if len(cells) != len(header):
        return BadRow(f"it has {len(cells)} cells, but the header has {len(header)}")
    record = dict(zip(header, cells, strict=True))
    for name in _JSON_COLUMNS:
        if isinstance(record.get(name), str):
            record[name] = _cell(record[name], f"{name} in line {line}", note)
    return record


def _cell(text: str, where: str, note: Notes) -> Any:
    """Return a cell's value: None if the cell is empty, decoded if it contains JSON such as a number, else its text."""
    value = _decoded(text.encode("utf-8", "replace"), where, note) if text.strip() else None
    return text if isinstance(value, BadRow) else value


def _parquet(file: BinaryIO, _: int, __: Notes) -> Iterator[Record]:
    yield from enumerate(parquet_records(file), start=1)


def _xlsx(file: BinaryIO, _: int, note: Notes) -> Iterator[Record]:
    """Yield the rows of a sheet. The first row that is not empty contains the column names."""
    header: list[str] = []
    for line, cells in sheet_rows(file, note):
        if isinstance(cells, BadRow):
            if not header:
                raise InvalidRequest(f"the header in row {line} cannot be read: {cells}")
            yield line, cells
        elif not header:
            header = _header(cells, note)
        else:  # the row lacks its last cells, which count as empty
            yield line, _table_record(header, [*cells, *[None] * (len(header) - len(cells))], line, note)


def _decoded(text: bytes, where: str, note: Notes) -> Any:
    """Decode JSON. NaN becomes null; if an object has a key twice, its last value is kept. Notes report both."""
    try:
        value = decode_given(text)
    except InvalidJson as error:
        return _without_nan(text, where, note) if b"NaN" in text or b"Infinity" in text else BadRow(str(error))
    try:
        again = orjson.dumps(value)
    except TypeError:  # raised for an integer beyond 64 bits, or for values that are nested too deeply
        if not nests_within(value, ROW_DEPTH):
            return BadRow(f"it is nested more than {ROW_DEPTH} levels deep")
        again = encode_json(value)
    if (path := repeated_key(text, again)) is not None:
        note.once("repeated", f"{where} has the key {path} twice; only the last value was kept")
    return value


def _without_nan(text: bytes, where: str, note: Notes) -> Any:
    try:
        value = without_nan(text)
    except InvalidJson as error:
        return BadRow(str(error))
    note.once("nan", f"{where} has NaN or Infinity, which JSON does not have; it was read as null")
    return value


_READERS: Final[dict[Format, Callable[[io.BufferedReader, int, Notes], Iterator[Record]]]] = {
    Format.JSONL: _jsonl,
    Format.CSV: _csv,
    Format.TSV: partial(_csv, delimiter="\t"),
    Format.JSON: _json,
    Format.PARQUET: _parquet,
    Format.XLSX: _xlsx,
}

"""Reads the records of a row file in each format.

Memory holds one record (16 of Parquet), whatever the size of the file. A `BadRow` stands for a record that cannot be
read.
"""

import base64
import codecs
import csv
import datetime as dt
import io
import math
import re
import uuid
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, BinaryIO, Final, TypeAlias, cast
from xml.etree import ElementTree as ET

from evaluator_host.datasets.format import Format
from evaluator_host.datasets.json_array import ItemTooLong, NotAnArray, array_items
from evaluator_host.datasets.mapping import BadRow
from evaluator_host.dialects.table import row_document
from evaluator_host.model.errors import InvalidRequest
from evaluator_host.model.json_values import InvalidJson, decode_json
from evaluator_host.system.extras import extra

_ROWS_AT_ONCE: Final = 16
_BATCH_BYTES: Final = 64 << 20

_BOM: Final = b"\xef\xbb\xbf"
_JSON_COLUMNS: Final = ("trace", "variables", "criteria")  # of a CSV file; its other cells stay text
_SHOWN: Final = 8
_PEEKED: Final = 1 << 12

_CHUNK_BYTES: Final = 1 << 16
_ARRAY: Final = re.compile(rb"\s*\[\s*(\{|\Z)")
_ZIP: Final = b"PK\x03\x04"
_UNPACKED_BYTES: Final = 256 << 20
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs"}

Record: TypeAlias = tuple[int, Any]
"""The first line of a record (its number, in JSON and Parquet), and the record or the `BadRow` in its place."""

Note: TypeAlias = Callable[[str], object]
"""Called with a sentence about how a file was read, such as its encoding, where that is not what its format says."""


def read_records(
    file: BinaryIO, format_: Format, *, max_row_bytes: int, note: Note = lambda _: None
) -> Iterator[Record]:
    """Yield `(line, record)` of a file. `note` gets a sentence when the file has another encoding or separator.

    Raises:
      InvalidRequest: the file is not of this format, or is damaged so that reading cannot go on.
    """
    source = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
    if format_ not in (Format.PARQUET, Format.XLSX):
        if source.peek(len(_ZIP)).startswith(_ZIP):
            note("the file is an Excel workbook, whatever its name says; it was read as one")
            format_ = Format.XLSX
        else:
            source = _in_utf8(source, note)
    return _READERS[format_](source, max_row_bytes, note)


def _in_utf8(file: io.BufferedReader, note: Note) -> io.BufferedReader:
    """Return the file, or one that reads it in UTF-8 where it is UTF-16 or Windows-1252."""
    encoding = _other_encoding(file)
    if encoding is None:
        return file
    name = "Windows-1252" if encoding == "cp1252" else "UTF-16"
    note(f"the file is in {name}, not UTF-8; it was read so. In Excel, Save as: CSV UTF-8")
    return io.BufferedReader(_Recoded(file, encoding))


def _other_encoding(file: io.BufferedReader) -> str | None:
    """Return the encoding of a text file that is not UTF-8, None for one that is, or is damaged."""
    start, head = file.tell(), file.peek(_PEEKED)[:_PEEKED]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if len(head) > 3 and 2 * head[1::2].count(0) > len(head[1::2]):  # without a mark, every other byte is 0
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
    """Read on to bytes that are not UTF-8 and return them; None when anything but ASCII precedes them."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    while chunk := file.read(_CHUNK_BYTES):
        try:
            if not decoder.decode(chunk).isascii():
                return None
        except UnicodeDecodeError as error:
            return error.object if error.object[: error.start].isascii() else None
    return None


class _Recoded(io.RawIOBase):
    """A file of text in UTF-8, whatever its encoding."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding=encoding, newline="")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._rest = self._rest or self._text.read(_CHUNK_BYTES).encode("utf-8", "replace")
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"the file is damaged {error.encoding}: {error.reason}; save it as UTF-8") from error
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _jsonl(file: io.BufferedReader, max_row_bytes: int, note: Note) -> Iterator[Record]:
    if _ARRAY.match(file.peek(_PEEKED).removeprefix(_BOM)):
        note("the file is one JSON array, not a row a line; it was read so")
        yield from _json(file, max_row_bytes, note)
        return
    number = 0
    while line := file.readline(max_row_bytes + 1):
        number += 1
        if len(line) > max_row_bytes:
            while line and not line.endswith(b"\n"):  # skip the rest of it
                line = file.readline(1 << 20)
            yield number, BadRow(f"longer than {max_row_bytes >> 20} MB")
            continue
        text = line.removeprefix(_BOM).strip()
        if text:
            yield number, _decoded(text)


def _json(file: io.BufferedReader, max_row_bytes: int, _: Note) -> Iterator[Record]:
    if file.peek(_PEEKED).startswith(_BOM):
        file.read(len(_BOM))
    if file.peek(_PEEKED).lstrip().startswith(b"{"):
        yield from enumerate(_wrapped(file, max_row_bytes), start=1)
        return
    number = 0
    try:
        for number, text in enumerate(array_items(file, max_item_bytes=max_row_bytes), start=1):
            yield number, _decoded(text)
    except NotAnArray as error:
        raise InvalidRequest(f"a .json data file is an array of rows, but {error}; one row a line is .jsonl") from error
    except ItemTooLong as error:
        raise InvalidRequest(f"item {number + 1} is longer than {max_row_bytes >> 20} MB") from error


def _wrapped(file: BinaryIO, max_row_bytes: int) -> list[Any]:
    """Return the rows of `{"rows": […]}` or of a dialect's document. Its size may be that of a request's body."""
    text = file.read(max_row_bytes + 1)
    if len(text) > max_row_bytes:
        raise InvalidRequest(
            f"an object around the rows may have at most {max_row_bytes >> 20} MB; send the array itself, or JSONL"
        )
    body = _decoded(text)
    if isinstance(body, BadRow):
        raise InvalidRequest(f"the data file is {body}")
    if not isinstance(body.get("rows"), list):
        document = row_document(body)
        if document is not None:
            return document.rows(body)
        raise InvalidRequest('a .json data file is an array of rows, or {"rows": […]}; one row a line is .jsonl')
    rows: list[Any] = body["rows"]
    return rows


def _csv(file: io.BufferedReader, max_row_bytes: int, note: Note, *, delimiter: str = ",") -> Iterator[Record]:
    csv.field_size_limit(max_row_bytes)
    found = _delimiter(file.peek(_PEEKED), delimiter)
    if found != delimiter:
        note(f"the columns are separated by {_SEPARATORS[found]}, not by {_SEPARATORS[delimiter]}; they were read so")
        delimiter = found
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            header = _header(next(filter(None, reader), []))
            yield from _csv_records(reader, header)
        except csv.Error as error:
            message = f"the header in line {reader.line_num} is not CSV: {error}; a name with quotes has them doubled"
            raise InvalidRequest(message) from error
        except UnicodeDecodeError as error:
            message = f"the data file is not UTF-8 near line {reader.line_num + 1}; in Excel, Save as: CSV UTF-8"
            raise InvalidRequest(message) from error


def _delimiter(head: bytes, given: str) -> str:
    """Return the delimiter of a header: the given one, unless that leaves one column where another makes several."""
    text = head.removeprefix(_BOM).decode("utf-8", "replace")

    def columns(delimiter: str) -> int:
        try:
            return len(next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []))
        except csv.Error:
            return 0

    return given if columns(given) != 1 else max((given, *_SEPARATORS), key=columns)


def _header(cells: Sequence[Any]) -> list[str]:
    names = [f"column {place}" if name in (None, "") else str(name) for place, name in enumerate(cells, start=1)]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)[:_SHOWN]
    if twice:
        raise InvalidRequest(f"the header names a column twice: {', '.join(twice)}")
    return names


def _csv_records(reader: Any, header: list[str]) -> Iterator[Record]:
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
            yield line, _table_record(header, cells)


def _table_record(header: list[str], cells: list[Any]) -> dict[str, Any] | BadRow:
    if len(cells) != len(header):
        return BadRow(f"it has {len(cells)} cells, and the header has {len(header)}")
    return _with_json(dict(zip(header, cells, strict=True)))


def _with_json(record: dict[str, Any]) -> dict[str, Any] | BadRow:
    """Return a record of a table with the cells that hold JSON decoded."""
    for name in _JSON_COLUMNS:
        if isinstance(record.get(name), str):
            value = _decoded(record[name].encode()) if record[name].strip() else None
            if isinstance(value, BadRow):
                return BadRow(f"{name} is {value}")
            record[name] = value
    if isinstance(record.get("messages"), str) and record["messages"].lstrip().startswith("["):
        messages = _decoded(record["messages"].encode())
        record["messages"] = record["messages"] if isinstance(messages, BadRow) else messages
    return record


def _parquet(file: BinaryIO, _: int, __: Note) -> Iterator[Record]:
    yield from enumerate(parquet_records(file), start=1)


def _xlsx(file: BinaryIO, _: int, note: Note) -> Iterator[Record]:
    """Yield the rows of the first sheet of an Excel workbook, one at a time.

    The first row of the sheet that is not empty names the columns.

    Raises:
      InvalidRequest: it is no workbook, it would take too much memory, or a column has no name of its own.
    """
    import openpyxl  # noqa: PLC0415 - slow to import

    try:
        with zipfile.ZipFile(file) as parts:
            if sum(part.file_size for part in parts.infolist()) > _UNPACKED_BYTES:
                raise InvalidRequest(
                    f"the workbook has over {_UNPACKED_BYTES >> 20} MB once it is unpacked; save the sheet as CSV UTF-8"
                )
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sheet, *others = book.worksheets
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, ET.ParseError) as error:
        advice = "save it as .xlsx again, or as CSV UTF-8, in the program that made it"
        raise InvalidRequest(f"the file is no Excel workbook (.xlsx) that can be read ({error}); {advice}") from error
    if others:
        note(f"the first sheet, {sheet.title!r}, was read; the workbook has {len(others)} more")
    sheet.reset_dimensions()  # some programs write wrong ones
    yield from _sheet_records(sheet.iter_rows(values_only=True))


def _sheet_records(rows: Iterator[tuple[Any, ...]]) -> Iterator[Record]:
    header: list[str] = []
    for line, cells in enumerate(rows, start=1):
        given = [_jsonable(cell) for cell in cells]
        while given and given[-1] is None:
            given.pop()
        if not header:
            header = _header(given)
        elif given:  # a row ends with its last cell that has a value
            yield line, _table_record(header, [*given, *[None] * (len(header) - len(given))])


def _decoded(text: bytes) -> Any:
    try:
        return decode_json(text)
    except InvalidJson as error:
        return BadRow(str(error))


_READERS: Final[dict[Format, Callable[[io.BufferedReader, int, Note], Iterator[Record]]]] = {
    Format.JSONL: _jsonl,
    Format.CSV: _csv,
    Format.TSV: partial(_csv, delimiter="\t"),
    Format.JSON: _json,
    Format.PARQUET: _parquet,
    Format.XLSX: _xlsx,
}


def parquet_records(file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as JSON values.

    Times become ISO 8601, decimals numbers, bytes text (base64 unless they are UTF-8), NaN and infinities null.

    Raises:
      InvalidRequest: the file is no Parquet file, or pyarrow is not installed.
    """
    with extra("parquet", "reading Parquet", InvalidRequest):
        import pyarrow as pa  # noqa: PLC0415 - large, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    try:
        with parquet.ParquetFile(file) as table:
            schema = table.schema_arrow
        repeated = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
        with parquet.ParquetFile(file, read_dictionary=repeated) as table:  # a value that rows share is decoded once
            for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE, use_threads=False):
                if batch.nbytes > _BATCH_BYTES:
                    raise InvalidRequest(
                        f"{_ROWS_AT_ONCE} rows of the Parquet file have {batch.nbytes >> 20} MB, of at most "
                        f"{_BATCH_BYTES >> 20} MB; send them as JSONL"
                    )
                large = batch.nbytes * _ROWS_AT_ONCE > _BATCH_BYTES  # each row may repeat a shared value
                for at in range(0, batch.num_rows, 1 if large else _ROWS_AT_ONCE):
                    for row in batch.slice(at, 1 if large else _ROWS_AT_ONCE).to_pylist():
                        yield {name: _jsonable(value) for name, value in row.items()}
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise InvalidRequest(f"the data file is not Parquet, or is damaged: {error}") from error


def _jsonable(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _jsonable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_jsonable(inner) for inner in value]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case _:
            return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return _text(value)
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case uuid.UUID():
            return str(value)
        case _:
            raise InvalidRequest(f"a Parquet column holds {type(value).__name__}, which has no JSON form")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()

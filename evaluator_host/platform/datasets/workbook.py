"""Reads the first visible sheet of an Excel workbook (.xlsx), a row at a time.

Only the cells are read, and from their styles only whether the number format shows a date. Therefore damage to other
parts of the file (fills, properties, extensions) cannot make it unreadable. Rules: ECMA-376, part 1.
"""

import datetime as dt
import math
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final, TypeAlias
from xml.parsers import expat

from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.notes import Notes
from evaluator_host.platform.datasets.number_formats import NotADate, Shows, built_in, moment, shows
from evaluator_host.types.errors import InvalidRequest

UNPACKED_BYTES: Final = 256 << 20  # maximum number of unpacked bytes in the parts that are read
_CHUNK_BYTES: Final = 1 << 16
_COLUMNS: Final = 16_384
_ROWS: Final = 1 << 20
_SHOWN_CHARS: Final = 40
_CELL: Final = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{0,7})", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][-+]?\d{1,9})?", re.ASCII)
_INTEGER: Final = re.compile(r"[-+]?\d+", re.ASCII)
_NOT_FINITE: Final = ("nan", "inf", "infinity")
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
_TRUE: Final = ("1", "true")
_ADVICE: Final = "save it as .xlsx again, or as CSV UTF-8, in the program that made it"
_OTHERS: Final = {
    "xl/workbook.bin": "it is a binary workbook (.xlsb)",
    "content.xml": "it is an OpenDocument file (.ods)",
    "index/document.iwa": "it is a Numbers document",
}
_COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGES: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    expat.ExpatError,
    NotImplementedError,  # raised for a kind of ZIP file that zipfile does not know
    RuntimeError,  # raised for an encrypted part
    LookupError,  # raised for an encoding that Python does not know
    ValueError,
)

Cells: TypeAlias = tuple[int, list[Any] | BadRow]
"""The number of a row in its sheet, from 1, and its cells up to the last one with a value."""


def sheet_rows(file: BinaryIO, note: Notes) -> Iterator[Cells]:
    """Yield the sheet's rows that have cells. Empty cells are None; numbers formatted as dates are ISO 8601.

    Raises:
      InvalidRequest: the file is not a workbook, is damaged, or would take too much memory.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            yield from _Book(archive, note).rows()
    except OSError as error:
        if error.errno is not None:  # this machine, not the file, is at fault
            raise
        raise _not_readable(str(error)) from error
    except _DAMAGES as error:
        raise _not_readable(str(error)) from error


def _not_readable(why: str) -> InvalidRequest:
    return InvalidRequest(f"the file is not an Excel workbook (.xlsx) that can be read ({why}); {_ADVICE}")


@dataclass(frozen=True, slots=True)
class _Sheet:
    name: str
    target: str  # path of the sheet in the archive
    is_hidden: bool


class _Book:
    """The parts of a workbook that are needed to read its cells."""

    def __init__(self, archive: zipfile.ZipFile, note: Notes) -> None:
        self._archive = archive
        self._note = note
        self._parts = {_name(part.filename): part for part in archive.infolist()}
        self._left = UNPACKED_BYTES
        for name, what in _OTHERS.items():
            if name in self._parts:
                raise _not_readable(what)
        root = next((target for _, kind, target in self._relations("") if kind == "officeDocument"), "xl/workbook.xml")
        self._root = root
        self.since_1904 = False
        # whether the file has formulas without values, which only an office program can compute
        self.is_uncalculated = False
        # each sheet's name, whether it is hidden, and the id of its relation
        self._sheets: list[tuple[str, bool, str]] = []
        for _, name, given in _elements(self._open(root)):
            if name == "sheet":
                hidden = given.get("state", "visible") != "visible"
                self._sheets.append((given.get("name", ""), hidden, given.get("id", "")))
            elif name == "workbookPr":
                self.since_1904 = given.get("date1904") in _TRUE
            elif name == "calcPr":
                self.is_uncalculated = given.get("fullCalcOnLoad") in _TRUE

    def rows(self) -> Iterator[Cells]:
        relations = {one: (kind, target) for one, kind, target in self._relations(self._root)}
        found = [(name, hidden, relations.get(one, ("", ""))) for name, hidden, one in self._sheets]
        sheets = [_Sheet(name, target, hidden) for name, hidden, (kind, target) in found if kind == "worksheet"]
        if not sheets:
            raise _not_readable("it has no sheet of cells")
        sheet = next((one for one in sheets if not one.is_hidden), sheets[0])
        if len(sheets) > 1:
            first = "the first sheet" if sheet is sheets[0] else "the first sheet that is not hidden"
            self._note(f"{first}, {sheet.name!r}, was read; the workbook has {len(sheets) - 1} more")
        kinds = dict(relations.values())
        strings = _strings(self._open(kinds["sharedStrings"])) if self._has(kinds.get("sharedStrings")) else []
        reading = _SheetReading(self, strings, self._formats(kinds.get("styles")), self._note)
        yield from reading.rows(self._open(sheet.target))

    def _formats(self, styles: str | None) -> list[Shows]:
        """Return what the number format of each cell style shows, in the order of the styles' numbers."""
        if styles is None or not self._has(styles):
            return []
        custom: dict[str, Shows] = {}
        numbers: list[str] = []
        try:
            for parent, name, given in _elements(self._open(styles)):
                if parent == "numFmts":
                    custom[given.get("numFmtId", "")] = shows(given.get("formatCode", ""))
                elif (parent, name) == ("cellXfs", "xf"):
                    numbers.append(given.get("numFmtId", "0"))
        except (expat.ExpatError, zipfile.BadZipFile, zlib.error):
            self._note("the styles of the workbook are damaged: dates may be read as numbers; save it again in Excel")
        return [custom[one] if one in custom else built_in(int(one) if one.isdecimal() else 0) for one in numbers]

    def _relations(self, part: str) -> list[tuple[str, str, str]]:
        """Return `(id, kind, part)` for each part of the workbook to which this part refers.

        An empty `part` means the workbook itself.
        """
        folder, name = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{name}.rels")
        if not self._has(path):
            return []
        return [
            (one.get("Id", ""), one.get("Type", "").rpartition("/")[2], posixpath.join("/", folder, one["Target"]))
            for _, _, one in _elements(self._open(path))
            if one.get("Target")
        ]

    def _has(self, part: str | None) -> bool:
        return part is not None and _name(part) in self._parts

    def _open(self, part: str) -> IO[bytes]:
        found = self._parts.get(_name(part))
        if found is None:
            raise _not_readable(f"it lacks {part}")
        if found.compress_type not in _COMPRESSIONS:
            raise _not_readable(f"{part} is compressed in a way that Excel does not use")
        self._left -= found.file_size
        if self._left < 0:
            raise InvalidRequest(
                f"the workbook has over {UNPACKED_BYTES >> 20} MB once it is unpacked; save the sheet as CSV UTF-8"
            )
        return self._archive.open(found)


def _name(part: str) -> str:
    """Return a part's name with slashes and in lower case, because some programs write backslashes or capitals."""
    return posixpath.normpath(part.replace("\\", "/")).lstrip("/").lower()


def _local(name: str) -> str:
    return name[name.rfind(" ") + 1 :]


def _parser() -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.buffer_size = _CHUNK_BYTES
    # a doctype's entities could fill the memory, and office programs write no doctype
    parser.StartDoctypeDeclHandler = _refuse_doctype
    return parser


def _refuse_doctype(*_: object) -> None:
    raise _not_readable("its XML declares a document type")


def _fed(parser: expat.XMLParserType, source: IO[bytes]) -> Iterator[None]:
    """Parse a part of the workbook, and yield after each chunk."""
    with source:
        while chunk := source.read(_CHUNK_BYTES):
            parser.Parse(chunk)
            yield
    parser.Parse(b"", True)  # noqa: FBT003 - of expat
    yield


def _elements(source: IO[bytes]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield each element's parent name, name and attributes. Names have no namespaces."""
    around = [""]
    found: list[tuple[str, str, dict[str, str]]] = []

    def start(name: str, given: dict[str, str]) -> None:
        found.append((around[-1], _local(name), {_local(key): value for key, value in given.items()}))
        around.append(_local(name))

    parser = _parser()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: around.pop()
    for _ in _fed(parser, source):
        yield from found
        found.clear()


class _Text:
    """Collects the text of `<t>` and `<v>`, without the phonetic text (`<rPh>`)."""

    def __init__(self, parser: expat.XMLParserType) -> None:
        self._parser = parser
        self._parts: list[str] = []
        self._is_phonetic = False

    def start(self, name: str) -> None:
        if name == "rPh":
            self._is_phonetic = True
        elif name in ("t", "v") and not self._is_phonetic:
            self._parser.CharacterDataHandler = self._parts.append

    def end(self, name: str) -> None:
        if name == "rPh":
            self._is_phonetic = False
        elif name in ("t", "v"):
            self._parser.CharacterDataHandler = None

    def take(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return text


def _strings(source: IO[bytes]) -> list[str]:
    """Return the workbook's shared strings, to which cells refer by position."""
    found: list[str] = []
    parser = _parser()
    text = _Text(parser)

    def end(name: str) -> None:
        text.end(_local(name))
        if _local(name) == "si":
            found.append(_unescaped(text.take()))

    parser.StartElementHandler = lambda name, _: text.start(_local(name))
    parser.EndElementHandler = end
    for _ in _fed(parser, source):
        pass
    return found


def _unescaped(text: str) -> str:
    """Return a string with each `_xHHHH_` replaced by its UTF-16 unit, and with line feeds as line breaks."""
    if "_x" not in text:
        return text
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).replace("\r\n", "\n")
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _SheetReading:
    def __init__(self, book: _Book, strings: list[str], formats: list[Shows], note: Notes) -> None:
        self._book = book
        self._strings = strings
        self._formats = formats
        self._note = note
        self._parser = _parser()
        self._text = _Text(self._parser)
        self._given: dict[str, str] = {}  # attributes of the cell that is being read
        self._has_value = self._has_formula = self._is_over = False
        self._cells: list[Any] = []
        self._fault: BadRow | None = None
        self._line = self._column = 0
        self._found: list[Cells] = []
        self._columns: dict[str, int] = {}
        self._readers: dict[str, Callable[[str], Any]] = {
            "s": self._shared,
            "str": _unescaped,
            "inlineStr": _unescaped,
            "e": lambda text: text,
            "b": lambda text: text.strip().lower() in _TRUE,
            "d": self._iso_date,
        }

    def rows(self, source: IO[bytes]) -> Iterator[Cells]:
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        for _ in _fed(self._parser, source):
            yield from self._found
            self._found.clear()
            if self._is_over:  # the parts of the sheet after the cells are not needed
                return

    def _start(self, name: str, given: dict[str, str]) -> None:
        local = name[name.rfind(" ") + 1 :]
        if local == "c":
            self._given = given
            self._has_value = self._has_formula = False
        elif local == "row":
            number = given.get("r", "")
            known = int(number) if number.isdecimal() and len(number) <= len(str(_ROWS)) else 0
            self._line = known if known > self._line else self._line + 1
        elif local == "f":
            self._has_formula = True
        else:
            self._has_value = self._has_value or local in ("v", "is")
            self._text.start(local)

    def _end(self, name: str) -> None:
        local = name[name.rfind(" ") + 1 :]
        if local == "c":
            try:
                self._add(self._text.take())
            except BadRow as fault:
                self._fault = self._fault or fault
        elif local == "row":
            self._end_row()
        elif local == "sheetData":
            self._is_over = True
            self._parser.StartElementHandler = self._parser.EndElementHandler = None
        else:
            self._text.end(local)

    def _end_row(self) -> None:
        while self._cells and self._cells[-1] is None:
            self._cells.pop()
        if self._fault or self._cells:
            self._found.append((self._line, self._fault or self._cells))
        self._cells, self._fault = [], None

    def _add(self, text: str) -> None:
        self._column = self._column_of(self._given.get("r", ""))
        value = self._value(text)
        if self._has_formula:
            self._note_formula(value)
        if value is not None:
            self._cells.extend([None] * (self._column - len(self._cells)))
            self._cells[self._column - 1] = value

    @property
    def _cell(self) -> str:
        return f"{_letters(self._column)}{self._line}"

    def _column_of(self, place: str) -> int:
        """Return the number of a cell's column, from 1; without a reference such as `B7`, it is the next column."""
        if not place:
            return len(self._cells) + 1
        found = _CELL.fullmatch(place)
        letters = found[1].upper() if found else ""
        column = self._columns.get(letters)
        if column is None:
            column = 0
            for letter in letters:
                column = 26 * column + ord(letter) - ord("A") + 1
            if not 0 < column <= _COLUMNS:
                raise BadRow(f"{place[:_SHOWN_CHARS]!r} is not the name of a cell")
            self._columns[letters] = column
        return column

    def _value(self, text: str) -> Any:
        kind = self._given.get("t", "n")
        if not self._has_value or (not text and kind not in ("str", "inlineStr")):
            return None
        return self._readers.get(kind, self._number)(text)

    def _note_formula(self, value: Any) -> None:
        if value is None:
            self._note.once(
                f"formula {self._column}",
                f"cell {self._cell} has a formula whose value is not in the file, so it was read as empty; open the "
                "workbook in Excel and save it, so that the values are stored",
            )
        elif value == 0 and self._book.is_uncalculated:
            self._note.once(
                f"uncalculated {self._column}",
                f"cell {self._cell} has a formula that may not have been calculated: its value in the file is 0; open "
                f"the workbook in Excel and save it, so that the values are stored",
            )

    def _shared(self, text: str) -> str:
        number = int(text) if text.isdecimal() and len(text) < len(str(UNPACKED_BYTES)) else len(self._strings)
        if number >= len(self._strings):
            raise BadRow(f"cell {self._cell} refers to a string that is not in the workbook")
        return self._strings[number]

    def _number(self, text: str) -> Any:
        text = text.strip()
        if not _NUMBER.fullmatch(text) and text.lstrip("+-").lower() not in _NOT_FINITE:
            raise BadRow(f"cell {self._cell} should contain a number, but contains {text[:_SHOWN_CHARS]!r}")
        value = int(text) if _INTEGER.fullmatch(text) else float(text)
        if isinstance(value, float) and not math.isfinite(value):
            self._note.once(
                "finite", f"cell {self._cell} contains {text[:_SHOWN_CHARS]}, which is not finite; it was read as null"
            )
            return None
        shown = self._shown()
        return value if shown is Shows.NUMBER else self._moment(value, shown)

    def _shown(self) -> Shows:
        style = self._given.get("s", "")
        number = int(style) if style.isdecimal() and len(style) < len(str(UNPACKED_BYTES)) else len(self._formats)
        return self._formats[number] if number < len(self._formats) else Shows.NUMBER

    def _moment(self, value: float, shown: Shows) -> Any:
        try:
            return moment(value, shown, since_1904=self._book.since_1904)
        except NotADate:
            sentence = (
                f"cell {self._cell} has the format of a date, but {value!s:.40} is not a date; it was read as a number"
            )
            self._note.once("date", sentence)
            return value

    def _iso_date(self, text: str) -> str:
        with suppress(ValueError):
            if "-" not in text:
                return dt.time.fromisoformat(text.strip()).isoformat()
            found = dt.datetime.fromisoformat(text.strip())
            is_day = found.time() == dt.time() and Shows.TIME not in self._shown()
            return found.date().isoformat() if is_day else found.isoformat()
        raise BadRow(f"cell {self._cell} should contain a date, but contains {text[:_SHOWN_CHARS]!r}")


def _letters(column: int) -> str:
    """Return the letters that name a column: `A` for 1, `AA` for 27."""
    name = ""
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(ord("A") + rest) + name
    return name

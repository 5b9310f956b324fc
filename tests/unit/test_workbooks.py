"""The host reads workbooks as various programs write them, even damaged ones.

It reads the values of cells by their formats, and adds notes about the files.
"""

import io
import zipfile
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.styles import numbers
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.number_formats import Shows, shows
from evaluator_host.platform.datasets.readers import read_records
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.formats import Format

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/spreadsheetml/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
HEADER = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1" t="inlineStr"><is><t>b</t></is></c></row>'


def relations(*given: tuple[str, str, str]) -> str:
    inner = "".join(f'<Relationship Id="{one}" Type="{RELATIONS}/{kind}" Target="{to}"/>' for one, kind, to in given)
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inner}</Relationships>'
    )


def parts(
    cells: str = "", *, strings: str = "", styles: str = "", settings: str = "", namespace: str = MAIN
) -> dict[str, str]:
    """Return the parts of a workbook: row 1 has the column names a and b, and row 2 has the given cells."""
    return {
        "_rels/.rels": relations(("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{namespace}" xmlns:r="{RELATIONS}">{settings}'
        '<sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            ("rId1", "worksheet", "worksheets/sheet1.xml"),
            ("rId2", "sharedStrings", "/xl/sharedStrings.xml"),
            ("rId3", "styles", "styles.xml"),
        ),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{namespace}"><sheetData>{HEADER}<row r="2">{cells}</row></sheetData></worksheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{namespace}">{strings}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{namespace}">{styles}</styleSheet>',
    }


def packed(content: dict[str, str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return file.getvalue()


def read(content: bytes) -> tuple[list[Any], list[str]]:
    """Return a workbook's records (for a bad record its text), and the notes about the workbook."""
    notes: list[str] = []
    found = read_records(io.BytesIO(content), Format.XLSX, max_row_bytes=1 << 20, note=notes.append)
    return [str(one) if isinstance(one, BadRow) else one for _, one in found], notes


def value(cell: str, **given: str) -> Any:
    """Return the value in the first column of row 2."""
    [record], _ = read(packed(parts(cell, **given)))
    return record["a"] if isinstance(record, dict) else record


def text(inner: str) -> str:
    return f'<c r="A2" t="inlineStr"><is><t xml:space="preserve">{inner}</t></is></c>'


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (text("line 1_x000D_\nline 2"), "line 1\nline 2"),
        (text("a_x0009_b_x000A_c"), "a\tb\nc"),
        (text("_x005F_x000D_"), "_x000D_"),
        (text("_xD83D__xDE00_"), "😀"),
        (text("_xZZZZ_ _x00_"), "_xZZZZ_ _x00_"),
        (text(" kept "), " kept "),
        ('<c r="A2" t="s"><v>0</v></c>', "rich text"),
        ('<c r="A2" t="str"><f>A1</f><v>calculated</v></c>', "calculated"),
        ('<c r="A2" t="str"><f>IF(1,"")</f><v></v></c>', ""),
        ('<c r="A2" t="b"><v>1</v></c>', True),
        ('<c r="A2" t="e"><v>#DIV/0!</v></c>', "#DIV/0!"),
        ('<c r="A2"><v>12</v></c>', 12),
        ('<c r="A2"><v> 1.5E-3 </v></c>', 0.0015),
        ('<c r="A2"><v>9007199254740993</v></c>', 9007199254740993),
        ("<c><v>7</v></c>", 7),
        ('<c r="A2" s="x"><v>7</v></c>', 7),
        ('<c r="A2" s="99999"><v>7</v></c>', 7),
        ('<c r="A2" t="d"><v>2024-01-01T00:00:00</v></c>', "2024-01-01"),
        ('<c r="A2" t="d"><v>2024-01-01T12:30:00</v></c>', "2024-01-01T12:30:00"),
        ('<c r="A2" t="d"><v>9999999-99</v></c>', "cell A2 should contain a date, but contains '9999999-99'"),
        ('<c r="A2" t="s"><v>99</v></c>', "cell A2 refers to a string that is not in the workbook"),
        ('<c r="A2" t="s"><v>-1</v></c>', "cell A2 refers to a string that is not in the workbook"),
        ('<c r="A2"><v>abc</v></c>', "cell A2 should contain a number, but contains 'abc'"),
        ('<c r="A2"><v>1_000</v></c>', "cell A2 should contain a number, but contains '1_000'"),
        (f'<c r="A2"><v>{"9" * 200_000}</v></c>', f"cell A2 should contain a number, but contains '{'9' * 40}'"),
        ('<c r="ZZZZZZ2"><v>1</v></c>', "'ZZZZZZ2' is not the name of a cell"),
        ('<c r="XFE2"><v>1</v></c>', "'XFE2' is not the name of a cell"),
        ('<c r="1A"><v>1</v></c>', "'1A' is not the name of a cell"),
        ('<c r="D2"><v>1</v></c>', "it has 4 cells, but the header has 2"),
    ],
)  # fmt: skip
def test_a_cell_has_its_value_or_its_row_is_bad(cell: str, expected: Any) -> None:
    strings = "<si><r><t>rich</t></r><r><t> text</t></r><rPh sb='0' eb='1'><t>phonetic</t></rPh></si>"
    for namespace in (MAIN, STRICT):
        assert value(cell, strings=strings, namespace=namespace) == expected, namespace


@pytest.mark.parametrize(
    ("code", "serial", "expected"),
    [
        ("yyyy-mm-dd", 45292, "2024-01-01"),
        ("[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", 45292, "2024-01-01"),
        ('d" Uhr "m', 45292, "2024-01-01"),
        ("mmm-yy;@", 45292, "2024-01-01"),
        ("yyyy-mm-dd", 45292.5, "2024-01-01T12:00:00"),
        ("yyyy-mm-dd hh:mm", 45292, "2024-01-01T00:00:00"),
        ("m/d/yy h:mm AM/PM", 45292.25, "2024-01-01T06:00:00"),
        ("hh:mm", 0.25, "06:00:00"),
        ("mm:ss.0", 0.000_011_574_074_074, "00:00:01"),
        ("[h]:mm", 1.5, 129_600),
        ("yyyy-mm-dd", 1, "1900-01-01"),
        ("yyyy-mm-dd", 59, "1900-02-28"),
        ("yyyy-mm-dd", 61, "1900-03-01"),
        ("yyyy-mm-dd", 2_958_465, "9999-12-31"),
        ("yyyy-mm-dd", 45291.999_999_999_9, "2024-01-01"),
        ('0.00" days"', 45292, 45292),
        ("[Red]0;[Blue]yyyy", 45292, 45292),
        ("0.00E+00", 45292, 45292),
        ("General", 45292, 45292),
        ("#,##0 [$USD]", 45292, 45292),
        ("_-* #,##0_d", 45292, 45292),
    ],
)
def test_the_number_format_says_what_is_a_date(code: str, serial: float, expected: Any) -> None:
    escaped = code.replace('"', "&quot;")
    styles = (
        f'<numFmts count="1"><numFmt numFmtId="164" formatCode="{escaped}"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="14"/><xf numFmtId="14"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs>'
        '<dxfs><dxf><numFmt numFmtId="164" formatCode="General"/></dxf></dxfs>'
    )
    assert value(f'<c r="A2" s="1"><v>{serial!r}</v></c>', styles=styles) == expected


@pytest.mark.parametrize("serial", ["-5", "0", "60", "2958466"])
def test_a_number_that_is_not_a_day_stays_a_number(serial: str) -> None:
    styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    found, notes = read(packed(parts(f'<c r="A2" s="0"><v>{serial}</v></c>', styles=styles)))
    assert found == [{"a": int(serial), "b": None}]
    assert notes == [f"cell A2 has the format of a date, but {serial} is not a date; it was read as a number"]


@pytest.mark.parametrize("number", [14, 17, 27, 57])
@pytest.mark.parametrize("is_1904", ["1", "true"])
def test_dates_are_those_of_the_calendar_of_the_workbook(number: int, is_1904: str) -> None:
    given = {
        "styles": f'<cellXfs><xf numFmtId="{number}"/></cellXfs>',
        "settings": f'<workbookPr date1904="{is_1904}"/>',
    }
    assert value('<c r="A2" s="0"><v>43830</v></c>', **given) == "2024-01-01"
    assert value('<c r="A2" s="0"><v>0</v></c>', **given) == "1904-01-01"


def test_a_workbook_of_openpyxl_reads_as_it_was_written() -> None:
    book = openpyxl.Workbook()
    book.epoch = CALENDAR_MAC_1904
    sheet = book.active
    for row in (["a", "b"], [43830, 0.5]):
        sheet.append(row)
    sheet["A2"].number_format, sheet["B2"].number_format = numbers.FORMAT_DATE_DDMMYY, numbers.FORMAT_DATE_TIME3
    file = io.BytesIO()
    book.save(file)
    assert read(file.getvalue()) == ([{"a": "2024-01-01", "b": "12:00:00"}], [])


@pytest.mark.parametrize("code", ["", ";;;", '"', "[", "[h", "\\", "y" * 100_000, '"' * 99_999, "[x" * 50_000])
def test_any_format_code_is_understood_in_a_moment(code: str) -> None:
    assert shows(code) in (Shows.NUMBER, Shows.DATE, Shows.TIME)


@pytest.mark.parametrize(
    ("cells", "settings", "note"),
    [
        ('<c r="A2"><f>1+1</f></c>', "", "cell A2 has a formula whose value is not in the file"),
        ('<c r="A2"><f>1+1</f><v/></c>', "", "cell A2 has a formula whose value is not in the file"),
        ('<c r="A2"><v>1</v></c><c r="B2" t="s"><f>A1</f></c>', "", "cell B2 has a formula"),
        (
            '<c r="A2"><f>1+1</f><v>0</v></c>',
            '<calcPr fullCalcOnLoad="1"/>',
            "cell A2 has a formula that may not have been calculated",
        ),
        ('<c r="A2"><v>NaN</v></c>', "", "cell A2 contains NaN, which is not finite"),
        ('<c r="A2"><v>1e999</v></c>', "", "cell A2 contains 1e999, which is not finite"),
    ],
)
def test_a_value_that_the_file_does_not_hold_is_noted_with_its_cell(cells: str, settings: str, note: str) -> None:
    _, notes = read(packed(parts(cells + '<c r="B2"><v>1</v></c>', settings=settings)))
    assert [one.startswith(note) for one in notes] == [True]


def test_a_formula_with_its_value_is_a_value() -> None:
    found, notes = read(packed(parts('<c r="A2"><f>1+1</f><v>2</v></c><c r="B2"><f>0</f><v>0</v></c>')))
    assert (found, notes) == ([{"a": 2, "b": 0}], [])


@pytest.mark.parametrize(
    "damaged",
    [
        {"docProps/core.xml": "<x"},
        {"docProps/core.xml": "<created>yesterday</created>"},
        {"xl/theme/theme1.xml": "no theme"},
        {"[Content_Types].xml": "<Types/>"},
        {"xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><fills><fill/><fill><patternFill><extLst/></patternFill></fill></fills></styleSheet>'},
        {"xl/worksheets/sheet1.xml": f'<x:worksheet xmlns:x="{MAIN}" xmlns:m="urn:m"><x:dimension ref="A1:ZZ9"/><x:sheetData>{HEADER.replace("<", "<x:").replace("<x:/", "</x:")}'
         '<x:row r="2" m:y="1"><x:c r="A2"><x:v>1</x:v></x:c></x:row></x:sheetData><x:extLst><broken'},
    ],
)  # fmt: skip
def test_elements_that_are_not_cells_do_not_matter(damaged: dict[str, str]) -> None:
    content = parts('<c r="A2"><v>1</v></c>') | damaged
    assert read(packed(content)) == ([{"a": 1, "b": None}], [])
    assert read(packed({name.replace("/", "\\").upper(): text for name, text in content.items()}))[0][0]["a"] == 1


def test_damaged_styles_are_noted_because_dates_need_them() -> None:
    found, notes = read(packed(parts('<c r="A2" s="0"><v>45292</v></c>') | {"xl/styles.xml": "<styleSheet><cellXfs"}))
    assert found == [{"a": 45292, "b": None}]
    assert [note[:36] for note in notes] == ["the styles of the workbook are damag"]


def test_rows_keep_their_numbers_and_a_wrong_one_counts_on() -> None:
    row = '<row r="{}"><c><v>1</v></c></row>'
    rows = "".join(map(row.format, ["5", "x", "3", "2000000000", "1048576"]))
    content = parts() | {
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{HEADER}{rows}</sheetData></worksheet>'
    }
    found = read_records(io.BytesIO(packed(content)), Format.XLSX, max_row_bytes=1 << 20)
    assert [line for line, _ in found] == [5, 6, 7, 8, 1_048_576]


def test_the_first_sheet_that_can_be_seen_is_read() -> None:
    sheets = '<sheet name="chart" r:id="rId4"/><sheet name="meta" state="veryHidden" r:id="rId5"/><sheet name="data" r:id="rId1"/>'
    content = parts('<c r="A2"><v>1</v></c>')
    content["xl/workbook.xml"] = f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{sheets}</sheets></workbook>'
    content["xl/_rels/workbook.xml.rels"] = relations(
        ("rId1", "worksheet", "worksheets/sheet1.xml"), ("rId4", "chartsheet", "c.xml"), ("rId5", "worksheet", "m.xml")
    )
    found, notes = read(packed(content))
    assert found == [{"a": 1, "b": None}]
    assert notes == ["the first sheet that is not hidden, 'data', was read; the workbook has 1 more"]


ENTITIES = f'<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]><worksheet xmlns="{MAIN}"><sheetData/></worksheet>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (parts() | {"xl/worksheets/sheet1.xml": ENTITIES}, "declares a document type"),
        (parts() | {"xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{HEADER}<row><c'}, "no element|unclosed"),
        (parts() | {"xl/worksheets/sheet1.xml": '<?xml version="1.0" encoding="klingon"?><worksheet/>'}, "encoding"),
        (parts() | {"xl/_rels/workbook.xml.rels": relations()}, "no sheet of cells"),
        (parts() | {"xl/_rels/workbook.xml.rels": relations(("rId1", "worksheet", "gone.xml"))}, "lacks /xl/gone.xml"),
        ({"xl/workbook.bin": ""}, r"binary workbook \(\.xlsb\)"),
        ({"content.xml": "", "mimetype": ""}, r"OpenDocument file \(\.ods\)"),
        ({"a.txt": ""}, "lacks xl/workbook.xml"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_workbook_says_what_to_do(content: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"({message}).*save it as \.xlsx again, or as CSV UTF-8"):
        read(packed(content))


@pytest.mark.parametrize("format_", [Format.XLSX, Format.CSV, Format.JSONL])
def test_an_old_workbook_or_one_with_a_password_is_named(format_: Format) -> None:
    with pytest.raises(InvalidRequest, match=r"old Excel workbook \(\.xls\), or one with a password"):
        list(read_records(io.BytesIO(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99)), format_, max_row_bytes=1 << 20))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"])
@pytest.mark.slow
def test_a_workbook_that_unfolds_is_refused_before_it_is_read(part: str) -> None:
    with pytest.raises(InvalidRequest, match="over 256 MB once it is unpacked"):
        read(packed(parts() | {part: "x" * (257 << 20)}))


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_excel_does_not_use_is_refused(compression: int) -> None:
    with pytest.raises(InvalidRequest, match=r"_rels/.*compressed in a way that Excel does not use.*save it as \.xlsx"):
        read(packed(parts(), compression))


@given(
    place=st.integers(0, 10_000),
    length=st.integers(0, 40),
    put=st.binary(max_size=40),
    is_inside=st.booleans(),
    compression=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
)
def test_no_damage_is_a_fault_of_the_host(
    place: int, length: int, put: bytes, *, is_inside: bool, compression: int
) -> None:
    content = parts(f'<c r="A2" s="1"><v>1</v></c>{text("b").replace("A2", "B2")}', strings="<si><t>c</t></si>")
    if is_inside:
        name = list(content)[place % len(content)]
        whole = content[name].encode()
        place %= len(whole)
        content[name] = (whole[:place] + put + whole[place + length :]).decode("latin-1")
        file = packed(content, compression)
    else:
        file = packed(content, compression)
        place %= len(file)
        file = file[:place] + put + file[place + length :]
    try:
        read(file)
    except InvalidRequest as error:
        assert error.detail  # noqa: PT017 - any of these errors is an answer for the caller

"""Files, folders, archives and data files are added to an evaluator in the editor."""

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.looking import grave_findings, picture
from tests.browser.writing import CODE, loads, open_workbench, run, score, write

pytestmark = pytest.mark.long("test_editor.py writes and runs code in the same editor")


async def test_a_file_that_is_imported_is_added_and_written_in_a_tab(page: Page, tmp_path: Path) -> None:
    await open_workbench(page)
    await write(page, CODE, "from .helpers import two\n\ndef evaluate(inputs, outputs, trace):\n    return two()\n")
    await page.get_by_role("button", name="Add a file…").click()
    await page.get_by_label("Path of the file").fill("helpers.py")
    await page.keyboard.press("Enter")
    await write(page, "Text of helpers.py", "def two():\n    return 2\n")
    await page.get_by_role("button", name="evaluator.py").click()
    await write(page, CODE, "from helpers import two\n\ndef evaluate(inputs, outputs, trace):\n    return two()\n")
    await loads(page)
    await expect(score(await run(page))).to_have_text("2")
    assert await grave_findings(page) == []
    await picture(page, "editor-files")
    await page.reload()
    await page.get_by_role("button", name="helpers.py").click()
    await page.get_by_role("button", name="Remove helpers.py").click()
    mark = page.locator(".main-editor .cm-lintRange-warning, .main-editor .cm-lintRange-error")
    await mark.first.hover()
    told = page.locator(".cm-tooltip-lint")
    await expect(told).to_contain_text("helpers is a file of yours: ")
    await expect(told).not_to_contain_text("package")
    await page.get_by_role("button", name="Add helpers.py").click()
    await expect(page.get_by_role("textbox", name="Text of helpers.py")).to_be_visible()
    await page.get_by_role("button", name="Remove helpers.py").click()
    (tmp_path / "helpers.py").write_text("def two():\n    return 3\n")
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Add your project's folder…").click()
    await (await chooser.value).set_files(tmp_path)
    await expect(score(await run(page))).to_have_text("3")


async def chosen(page: Page, button: str, what: list[Any] | Path) -> None:
    await page.get_by_role("button", name="Add a file…").click()
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name=button).click()
    await (await chooser.value).set_files(what)


def packed(entries: list[tuple[str | zipfile.ZipInfo, bytes]]) -> dict[str, Any]:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the test writes a name twice on purpose
        for name, content in entries:
            archive.writestr(name, content)
    return {"name": "shop.zip", "mimeType": "application/zip", "buffer": written.getvalue()}


OF_A_SHOP = {
    "shop/score.py": "from lib.text import two\n\ndef evaluate(inputs, outputs, trace):\n    return two() + len(open('data/a.txt').read())\n",
    "shop/lib/text.py": "def two():\n    return 2\n",
    "shop/lib/Text.py": "# another file\n",
    "shop/data/a.txt": "é",
    "shop/.env": "KEY=1",
    "shop/node_modules/x/index.js": "no",
    "shop/venv/pyvenv.cfg": "",
    "shop/venv/lib.py": "no",
}


def written_shop(folder: Path) -> dict[str, Any]:
    """Write the example project "shop" into a folder, and return the project as an archive."""
    for path, text in OF_A_SHOP.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "shop" / "logo.png").write_bytes(b"\x89PNG\xff")
    files = [path for path in folder.rglob("*") if path.is_file()]
    return packed([(path.relative_to(folder).as_posix(), path.read_bytes()) for path in files])


@pytest.mark.parametrize("button", ["A folder…", "Files or a zip…"])
async def test_a_folder_or_an_archive_is_added_and_one_file_made_the_evaluator(
    page: Page, tmp_path: Path, button: str
) -> None:
    archive = written_shop(tmp_path)
    await open_workbench(page)
    await write(page, CODE, "def evaluate(inputs, outputs, trace):\n    return 1\n")
    await chosen(page, button, tmp_path / "shop" if button == "A folder…" else [archive])
    files = page.get_by_role("group", name="Files")
    for path in ("data/a.txt", "lib/Text.py", "lib/text.py", "score.py"):
        await expect(files.get_by_role("button", name=path, exact=True)).to_be_visible()
    await expect(files.get_by_role("button")).to_have_count(5)
    await expect(page.get_by_text("Added 4 files; left out: logo.png is not text")).to_be_visible()
    await files.get_by_role("button", name="score.py", exact=True).click()
    await page.get_by_role("button", name="Make it the evaluator").click()
    await expect(files.get_by_role("button").first).to_have_text("score.py")
    await loads(page)
    await expect(score(await run(page))).to_have_text("3")
    assert await grave_findings(page) == []


def _link(path: str) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(path)
    found.create_system, found.external_attr = 3, 0o120777 << 16
    return found


async def test_a_hostile_archive_adds_nothing_that_it_should_not(page: Page) -> None:
    await open_workbench(page)
    await write(page, CODE, "def evaluate(inputs, outputs, trace):\n    return 1\n")
    paths: list[tuple[str | zipfile.ZipInfo, bytes]] = [
        ("a/../../x.py", b"x"),
        ("/etc/x.py", b"x"),
        ("a\\x.py", b"x"),
        ("a/./x.py", b"x"),
        ("a\r/x.py", b"x"),
    ]
    files = page.get_by_role("group", name="Files").get_by_role("button")
    cases: list[tuple[list[tuple[str | zipfile.ZipInfo, bytes]], str]] = [
        *(([one, ("y.py", b"y")], "is not a path within the folder") for one in paths),
        ([(_link("s/x.py"), b"/etc/passwd"), ("s/y.py", b"y")], "x.py is over 1 MB, or a link"),
        ([("bomb.txt", bytes(1 << 28)), ("y.py", b"y")], "bomb.txt is over 1 MB"),
        ([("x.py", b"1"), ("x.py", b"2")], "There are two files at x.py"),
        ([(f"{n}.txt", b"x") for n in range(501)], "more than 500 files"),
        ([(f"{n}.txt", b"A" * 1_000_000) for n in range(10)], "8 MB"),
    ]
    for entries, said in cases:
        await chosen(page, "Files or a zip…", [packed(entries)])
        await expect(page.get_by_text(said).last).to_be_visible()
        if ("y.py", b"y") in entries or ("s/y.py", b"y") in entries:
            await expect(files).to_have_text(["evaluator.py", "y.py"])
            await files.last.click()
            await page.get_by_role("button", name="Remove y.py").click()
        await expect(files).to_have_count(0)
        await expect(page.get_by_text(said)).to_have_count(0)
    broken = {"name": "shop.zip", "mimeType": "application/zip", "buffer": b"PK no archive"}
    await chosen(page, "Files or a zip…", [broken])
    await expect(page.get_by_text("shop.zip cannot be read as a zip archive")).to_be_visible()


async def test_files_that_are_dropped_on_the_editor_are_added(page: Page) -> None:
    await open_workbench(page)
    await page.evaluate(
        """() => {
          const carried = new DataTransfer();
          carried.items.add(new File(["def two():\\n    return 2\\n"], "helpers.py"));
          const editor = document.querySelector(".main-editor .cm-content");
          for (const kind of ["dragenter", "dragover", "drop"]) {
            editor.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: carried }));
          }
        }"""
    )
    await expect(page.get_by_text("Added helpers.py")).to_be_visible()
    await page.get_by_role("button", name="helpers.py", exact=True).click()
    await expect(page.get_by_role("textbox", name="Text of helpers.py")).to_contain_text("return 2")


async def test_a_data_file_is_sent_from_this_computer(page: Page, tmp_path: Path) -> None:
    (tmp_path / "list.bin").write_bytes(bytes(range(256)))
    await open_workbench(page)
    code = "def evaluate(inputs, outputs, trace):\n    return len(open('words/list.bin', 'rb').read()) / 256\n"
    await write(page, CODE, code)
    await page.get_by_role("button", name="Add a file…").click()
    await page.get_by_label("Path of the file").fill("words/list.bin")
    async with page.expect_file_chooser() as chosen:
        await page.get_by_role("button", name="Send data…").click()
    await (await chosen.value).set_files(tmp_path / "list.bin")
    await expect(page.get_by_role("button", name="Remove words/list.bin")).to_be_visible()
    await loads(page)
    await expect(score(await run(page))).to_have_text("1")
    assert await grave_findings(page) == []
    await page.get_by_role("button", name="Remove words/list.bin").click()
    await expect(await run(page)).to_contain_text("No such file")

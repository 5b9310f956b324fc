"""A newcomer uses only the pages: from a first look to a weekly job with an alert, over the newcomer's own Excel file."""

import re
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.looking import grave_findings, looking, picture, widest_overflow
from tests.browser.writing import CODE, loads, run, score, write
from tests.server import Server, new_home

pytestmark = pytest.mark.long("this visits many pages; the other files in this folder test each page alone")
ROWS = [
    ("question", "gold", "Antwort"),
    *((f"question {n}", f"g{n}", f"g{n}" if n % 3 else "wrong") for n in range(30)),
]
MATCH = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n"


async def test_a_newcomer_gets_to_a_weekly_job_with_an_alert(browser: Browser, tmp_path: Path) -> None:
    """A newcomer can follow docs/first-job.md on a host with no setting except its data directory."""
    settings = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path / 'host.db'}"}
    write_xlsx(tmp_path / "meine Prüfung.xlsx")
    with Server(log=tmp_path / "log", data_dir=new_home(tmp_path), environment=settings) as host:
        async with looking(browser, host.url) as look:
            page = await look.page(width=1440, height=900)
            await upload(page, tmp_path / "meine Prüfung.xlsx")
            await write_and_save(page)
            await run_on_the_data(page)
            await schedule(page)
            await see_the_alert(page)


def write_xlsx(file: Path) -> None:
    """Write a workbook with one sheet that has `ROWS`."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    cells = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in row) + "</row>" for row in ROWS
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{sheet}" xmlns:r="{office}"><sheets>'
        '<sheet name="Answers" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{sheet}"><sheetData>{cells}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)


async def upload(page: Page, file: Path) -> None:
    await page.goto("/datasets")
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Upload a file").click()
    await (await chooser.value).set_files(file)
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Format")).to_have_value("xlsx")
    await expect(dialog.get_by_label("Name")).to_have_value("meine-Prufung")
    await dialog.get_by_role("button", name="Upload").click()
    await expect(dialog.get_by_text("30 rows with 3 columns")).to_be_visible()
    await dialog.get_by_role("link", name="Write an evaluator for it").click()


async def write_and_save(page: Page) -> None:
    # the page took the value from the column Antwort
    await expect(page.get_by_role("textbox", name="outputs")).to_contain_text("wrong")
    await expect(page.locator(".main-editor .cm-line").nth(1)).to_have_text(
        re.compile(r'    return outputs == inputs\["[^"]+"\]')
    )
    await expect(score(await run(page))).to_have_text("0")
    await write(page, CODE, MATCH)
    await expect(score(await run(page))).to_have_text("0")
    await page.get_by_role("button", name="Use a stored row…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Use row 1", exact=True).click()
    await expect(score(await run(page))).to_have_text("1")
    await page.get_by_role("button", name="Add stored rows…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Add these 20").click()
    await expect(page.locator(".row-sums")).to_contain_text("Mean 0.65 over 20 of 20 rows")
    await loads(page)
    await picture(page, "path-workbench")
    await page.get_by_role("button", name="Save…").click()
    await page.get_by_role("dialog").get_by_label("Name").fill("my-match")
    await page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("link", name="my-match@1")).to_be_visible()


async def run_on_the_data(page: Page) -> None:
    await page.get_by_role("button", name="Run on a data set…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Run on 30 rows").click()
    await expect(page.locator(".record-title .chip")).to_have_text("completed")
    await expect(page.locator(".tile", has_text="Mean score")).to_contain_text("0.6667")
    await picture(page, "path-job")
    await page.get_by_role("link", name="Schedule…").click()


async def schedule(page: Page) -> None:
    dialog = page.get_by_role("dialog", name="Run at fixed times")
    await expect(dialog.get_by_label("Name")).to_have_value(re.compile(r"-weekly$"))
    await dialog.get_by_label("How often").select_option("daily")
    await expect(dialog.get_by_label("Name")).to_have_value(re.compile(r"-daily$"))
    await dialog.get_by_label("How often").select_option("weekly")
    await dialog.get_by_label("Time zone").fill("Berlin")
    await expect(dialog).to_contain_text("There is no time zone Berlin. Did you mean Europe/Berlin?")
    await expect(dialog.get_by_role("button", name="Schedule")).to_be_disabled()
    await dialog.get_by_label("Time zone").fill("Europe/Berlin")
    await expect(dialog).to_contain_text("Runs every Monday at 07:00, Europe/Berlin.")
    await dialog.get_by_label("Name").fill("weekly-answers")
    await dialog.get_by_label("Take the newest versions").check()
    await dialog.get_by_label("Alert me").check()
    await dialog.get_by_label("Bound", exact=True).fill("")
    await expect(dialog.get_by_role("button", name="Schedule")).to_be_disabled()
    await dialog.get_by_label("Bound", exact=True).fill("0.9")
    await dialog.get_by_label("Webhook (optional)").fill("hooks")
    await dialog.get_by_role("button", name="Schedule").click()
    # the message is below all fields, in a dialog that scrolls
    await expect(dialog.get_by_role("alert")).to_be_in_viewport()
    await expect(dialog.get_by_role("alert")).to_contain_text("such as https://hooks.example.com")
    # the message names the field as its label does
    await expect(dialog.get_by_role("alert").get_by_role("strong")).to_have_text("Webhook")
    await dialog.get_by_label("Webhook (optional)").fill("")
    assert await grave_findings(page) == []
    await picture(page, "path-schedule")
    await dialog.get_by_role("button", name="Schedule").click()
    row = page.get_by_role("row", name="weekly-answers")
    await expect(row).to_contain_text("every Monday at 07:00")
    await expect(row).to_contain_text("alert: mean below 0.9")
    await expect(row.locator(".cell-text")).not_to_contain_text("@")
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        for width in (390, 1440):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await grave_findings(page, colours=theme == "dark") == [], (theme, width)
            assert await widest_overflow(page) == 0
            await picture(page, f"path-schedules-{width}-{theme}")
    await page.get_by_role("button", name="Run now").click()
    await expect(page.locator(".record-title .chip")).to_have_text("completed", timeout=60_000)


async def see_the_alert(page: Page) -> None:
    badge = page.get_by_role("banner").locator("a.icon-button")
    for _ in range(60):
        await page.goto("/evaluators")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        if "1 alert is firing" in (await badge.text_content() or ""):
            break
        await page.wait_for_timeout(500)
    await badge.click()
    row = page.get_by_role("row", name="weekly-answers-alert")
    await expect(row).to_contain_text("mean below 0.9")
    await expect(row.get_by_text("firing", exact=True)).to_be_visible()
    message = page.get_by_role("listitem").filter(has_text="the mean of my-match@1 is 0.6667, under 0.9")
    await expect(message).to_contain_text("30 of 30 rows scored")
    await picture(page, "path-alerts")
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        await page.set_viewport_size({"width": 390, "height": 900})
        assert await grave_findings(page) == [], theme
        assert await widest_overflow(page) == 0
    await message.get_by_role("link", name="Open the job").click()
    await expect(page.locator(".tile", has_text="Mean score")).to_contain_text("0.6667")

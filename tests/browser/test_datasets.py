"""On the pages of data sets, users upload files by dropping or choosing them, replace a data set, read its rows page by
page, download it, and delete it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from tests.browser.looking import from_more, grave_findings, looking, picture
from tests.browser.seeds import MARKUP, Seeds, as_lines
from tests.keyed import make_key
from tests.server import Server

DROP = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  const place = document.querySelector(".drop-zone");
  for (const kind of ["dragenter", "dragover", "drop"])
    place.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


async def choose(page: Page, name: str, content: bytes) -> None:
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Upload a file").click()
    await (await chooser.value).set_files({"name": name, "mimeType": "", "buffer": content})


async def test_a_file_that_is_dropped_becomes_a_data_set(page: Page, seeds: Seeds) -> None:
    await page.goto("/datasets")
    await expect(page.get_by_role("link", name="many")).to_be_visible()
    text = f'question,"{MARKUP.replace(chr(34), chr(34) * 2)}"\nCapital of France?,Paris\nno\n{MARKUP},\n'
    await page.evaluate(DROP, ["My rows (1).csv", text])
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Name")).to_have_value("My-rows-1")
    await expect(dialog.get_by_label("Name")).to_be_focused()
    await expect(dialog.get_by_label("Format")).to_have_value("csv")
    await dialog.get_by_role("button", name="Upload").click()
    await expect(dialog.get_by_role("heading", name="My-rows-1 is uploaded")).to_be_visible()
    await expect(dialog.get_by_text("2 rows with 2 columns")).to_be_visible()
    await expect(dialog.get_by_text("1 line was left out")).to_be_visible()
    await expect(dialog.get_by_text("some cells are empty, and were read as empty strings: 1 in ")).to_be_visible()
    await picture(page, "dataset-uploaded")
    await dialog.get_by_role("link", name="View its rows").click()
    await expect(page.get_by_role("columnheader", name=MARKUP[:39])).to_be_visible()
    await expect(page.get_by_text("line 3")).to_be_visible()
    assert await page.title() == "My-rows-1 · Data sets · Evaluator Host"


@pytest.mark.long
async def test_a_score_that_fell_leads_to_the_comparison(page: Page, host: Server, seeds: Seeds) -> None:
    with Client(host.url) as client:
        client.datasets.upload("trend", [{"expected": "a", "good": "a", "bad": "b", "n": n} for n in range(2)])
        code = "def evaluate(inputs, outputs, trace):\n    return float(outputs == inputs['expected'])\n"
        for name in ("trend-falls", "trend-stays"):
            client.evaluators.create(name, Evaluator(code))
        half = "def evaluate(inputs, outputs, trace):\n    return 0.5 / (outputs == 'a' or 1 - inputs['n'])\n"
        client.evaluators.create("trend-lost", Evaluator(half))
        runs = (("good", ["trend-falls", "trend-stays", "trend-lost"]), ("bad", ["trend-falls", "trend-lost"]))
        made = [client.jobs.create(names, "trend", mapping={"outputs": column}) for column, names in runs[:1]]
        client.jobs.wait(made[0].id)
        made += [client.jobs.create(names, "trend", mapping={"outputs": column}) for column, names in runs[1:]]
        client.jobs.wait(made[1].id)
    await page.goto(f"/jobs/{made[1].id}")
    await from_more(page, "Scores over time")
    table = page.get_by_role("region", name="Scores over time")
    await expect(table.get_by_role("row")).to_have_count(4)
    await expect(page.get_by_text("1 evaluator not compared by the mean")).to_be_visible()
    await expect(table.get_by_role("row", name="trend-lost").get_by_role("link", name="compare")).to_be_visible()
    await expect(table.get_by_role("img", name="2 means, 0 to 1, the last one 0")).to_be_visible()
    await picture(page, "dataset-scores")
    await page.get_by_role("button", name="Fell in the last job 1").click()
    await expect(table.get_by_role("row")).to_have_count(2)
    assert await grave_findings(page) == []
    await page.reload()  # the choice is part of the address, so it is kept after a reload
    await table.get_by_role("link", name="▼").click()
    await expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    await expect(page).to_have_url(f"{host.url}/compare/{made[0].id}/{made[1].id}?evaluator=trend-falls%401")


@pytest.mark.long
async def test_lines_of_means_join_only_jobs_over_the_same_rows(page: Page, host: Server, seeds: Seeds) -> None:
    rows = [{"expected": "a", "good": "a", "bad": "b", "n": n} for n in range(3)]
    code = "def evaluate(inputs, outputs, trace):\n    return float(outputs == inputs['expected'])\n"
    with Client(host.url) as client:
        client.evaluators.create("by-version", Evaluator(code))
        for version, columns in ((2, ("good", "bad", "none", "good")), (3, ("bad", "good"))):
            client.datasets.upload("versions", rows[:version], replace=version > 2)
            for column in columns:
                client.jobs.wait(client.jobs.create(["by-version"], "versions", mapping={"outputs": column}).id)
    await page.goto("/datasets/versions?tab=scores")
    line = page.get_by_role("img", name="5 means, 0 to 1, the last one 1").locator("polyline")
    await expect(line).to_have_count(2)
    points = [set(str(await line.nth(at).get_attribute("points")).split()) for at in range(2)]
    assert list(map(len, points)) == [3, 2], (
        "the doubtful third job is left out, and the fourth is compared with the second"
    )
    await page.goto("/evaluators/by-version")
    await page.get_by_text("Jobs and scores").click()
    told = "Mean scores of by-version in 5 jobs over versions, the oldest first: 2 lines"
    await expect(page.get_by_role("img", name=told)).to_be_visible()


@pytest.mark.long
async def test_a_taken_name_is_replaced_knowingly_and_a_bad_file_is_refused(page: Page, seeds: Seeds) -> None:
    await page.goto("/datasets")
    await choose(page, "again.jsonl", as_lines([{"n": n} for n in range(3)]))
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Upload").click()
    await expect(dialog.get_by_text("3 rows")).to_be_visible()
    await dialog.get_by_role("button", name="Close").last.click()
    await choose(page, "again.jsonl", as_lines([{"n": 1}]))
    await dialog.get_by_role("button", name="Replace").click()
    await expect(dialog.get_by_text("1 row with 1 column")).to_be_visible()
    await dialog.get_by_role("button", name="Close").last.click()
    await page.goto("/datasets/again")
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Upload a new version…").click()
    content = as_lines([{"n": n} for n in range(5)])
    await (await chooser.value).set_files({"name": "other.jsonl", "mimeType": "", "buffer": content})
    await expect(dialog.get_by_role("heading", name="Upload a new version of again")).to_be_visible()
    await dialog.get_by_role("button", name="Upload", exact=True).click()
    await expect(dialog.get_by_text("5 rows with 1 column")).to_be_visible()
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(page.locator(".record-title .chip")).to_have_text("5 rows")
    await page.goto("/datasets")
    await choose(page, "again.parquet", b"not parquet at all")
    await dialog.get_by_label("Name").fill("no name")
    await dialog.get_by_role("button", name="Upload").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("The file was rejected")
    await picture(page, "dataset-refused")


@pytest.mark.long
async def test_rows_are_read_a_page_at_a_time(page: Page, seeds: Seeds) -> None:
    await page.goto("/datasets/many")
    await expect(page.get_by_text("rows 0 to 49 of 2,000")).to_be_visible()
    await page.get_by_role("button", name="Next").click()
    await expect(page.get_by_text("rows 50 to 99 of 2,000")).to_be_visible()
    await page.goto("/datasets/many?first=1990")
    await expect(page.get_by_text("rows 1,990 to 1,999 of 2,000")).to_be_visible()
    await expect(page.get_by_role("button", name="Next")).to_be_disabled()
    await page.get_by_role("button", name="Row 1995", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("group", name="question")).to_have_text("question 1995")
    await expect(dialog.get_by_role("group", name="mark")).to_have_text(MARKUP)
    await page.reload()
    use = dialog.get_by_role("link", name="Use in the workbench")
    assert await use.get_attribute("href") == "/?dataset=many&row=1995"
    await page.goto("/datasets/many?row=1234")  # this row is not on the page of rows that is shown
    await expect(dialog.get_by_role("group", name="question")).to_have_text("question 1234")


@pytest.mark.long
async def test_a_data_set_is_taken_home_and_deleted(page: Page, seeds: Seeds) -> None:
    await page.goto("/datasets")
    await choose(page, "gone.json", b'[{"n": 1, "text": "caf\xc3\xa9"}]')
    await page.get_by_role("dialog").get_by_role("button", name="Upload").click()
    await page.get_by_role("link", name="View its rows").click()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download").click()
    assert (await (await download.value).path()).read_text().strip() == '{"n":1,"text":"café"}'
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("gone was deleted")).to_be_visible()
    await expect(page.get_by_role("link", name="gone")).to_have_count(0)


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A host that needs a key, and a key that works."""
    database = f"sqlite:///{tmp_path / 'host.db'}"
    key = make_key("people", "default", url=database)
    with Server(log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": database}) as running:
        yield running, key


@pytest.mark.long
async def test_an_upload_asks_for_the_key_that_the_host_wants(browser: Browser, keyed: tuple[Server, str]) -> None:
    host, key = keyed
    async with looking(browser, host.url) as look:
        page = await look.page()
        await page.goto("/datasets")
        asked = page.get_by_role("dialog", name="This host needs a key")
        await expect(asked).to_be_visible()
        await page.wait_for_load_state("networkidle")  # this waits until all requests are answered
        await page.keyboard.press("Escape")
        await expect(asked).to_be_hidden()
        await choose(page, "kept.jsonl", as_lines([{"n": 1}]))
        await page.get_by_role("dialog").get_by_role("button", name="Upload").click()
        await asked.get_by_label("API key").fill(key)
        await asked.get_by_role("button", name="Use this key").click()
        await expect(page.get_by_role("heading", name="kept is uploaded")).to_be_visible()

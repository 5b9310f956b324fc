"""The rows below the editor: stored rows are scored again while the user writes, each row has an expected result, and a
button scores the whole data set.
"""

import asyncio
import json
from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation
from tests.browser.looking import Look, grave_findings, picture, widest_overflow
from tests.browser.writing import CODE, loads, open_workbench, write
from tests.server import Server

pytestmark = pytest.mark.long("test_run.py tests the main features of the workbench")

EXACT = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n"
MIDDLE_OF_TRACE = """() => {
    const walker = document.createTreeWalker(document.querySelector(".main-editor .cm-line"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const at = walker.currentNode.data.indexOf("trace");
        if (at < 0) continue;
        const range = document.createRange();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + 5);
        const box = range.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    }
}"""
MANY = {f"more {n}": "x" for n in range(6)}  # more columns than the pages show unless the code reads them
LOOSE = EXACT.replace("outputs == inputs['gold']", "inputs['gold'] in outputs")


@pytest.fixture(scope="module")
def client(host: Server) -> Iterator[Client]:
    with Client(host.url) as opened:
        rows = [
            {"question": f"question {n}", **MANY, "gold": f"g{n}", "answer": f"g{n}" if n % 2 else f"it is g{n}"}
            for n in range(40)
        ]
        opened.datasets.upload("graded", rows)
        yield opened


async def test_rows_of_a_data_set_are_scored_again_while_one_writes(page: Page, client: Client) -> None:
    await open_workbench(page)
    await write(page, CODE, EXACT)
    await page.get_by_role("button", name="Add stored rows…").click()
    dialog = page.get_by_role("dialog", name="Add stored rows")
    await dialog.get_by_label("Data set").last.select_option("graded")
    # the page suggests this column because of its name
    await expect(dialog.get_by_label("Column of the outputs")).to_have_value("answer")
    await expect(dialog.get_by_role("cell", name="question 19")).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "rows-add")
    await dialog.get_by_role("button", name="Add these 20").click()
    sums = page.locator(".row-sums")
    await expect(sums).to_contain_text("Mean 0.5 over 20 of 20 rows")
    grid = page.get_by_role("region", name="Rows to score")
    for heading in ("Row (from 0)", "gold", "Expected score"):
        await expect(grid.get_by_role("columnheader", name=heading, exact=True)).to_be_visible()
    await page.get_by_role("textbox", name="Expected score of row 0", exact=True).fill("1 ± 0.05")
    await page.get_by_role("textbox", name="Expected score of row 1", exact=True).fill(">= 0.5")
    await expect(sums).to_contain_text("1 of 2 as expected")
    await page.get_by_role("button", name="Details of row 0", exact=True).click()
    await expect(page.get_by_text("From graded, row 0")).to_be_visible()
    await write(page, CODE, LOOSE)
    await expect(sums).to_contain_text("Mean 1 over 20 of 20 rows")
    await expect(sums).to_contain_text("2 of 2 as expected")
    await expect(page.get_by_role("row", name="question 0")).to_contain_text("0 →")
    await write(page, CODE, "def evaluate(")
    # the old scores stay, and are marked as old
    await expect(page.locator(".row-sums[data-stale=true]")).to_be_visible()
    await expect(sums).to_contain_text("Mean 1 over 20")
    await write(page, CODE, LOOSE)
    await loads(page)
    assert await grave_findings(page) == []
    await picture(page, "rows-grid")
    await page.reload()
    await expect(sums).to_contain_text("2 of 2 as expected")
    await page.get_by_role("button", name="Save…").click()
    await page.get_by_label("Name", exact=True).fill("with-cases")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved as with-cases, version 1")).to_be_visible()
    kept = client.evaluators.get("with-cases").cases
    assert [(case["expect"], case["case"]) for case in kept] == [
        ("1 ± 0.05", "graded, row 0"),
        (">= 0.5", "graded, row 1"),
    ]
    wanted = ({"score": 1, "max": 2}, {"min": 0.8})
    cases = [{**case, "expect": expect} for case, expect in zip(kept, wanted, strict=True)]
    client.evaluators.update(
        "with-cases", Evaluator(EXACT.replace("outputs == inputs['gold']", "0.7 + 0.1")), cases=cases
    )
    await page.goto("/?evaluator=with-cases")
    await expect(page.get_by_role("textbox", name="Expected score of row 0", exact=True)).to_have_value("1; <= 2")
    await expect(page.locator(".row-sums")).to_contain_text("1 of 2 as expected")
    await write(page, CODE, "def evaluate(inputs, outputs, trace):\n    return 1 / 3\n")
    await expect(sums).to_contain_text("Mean 0.3333 over 2 of 2 rows")
    await page.get_by_role("button", name="Expect these scores").click()
    await expect(sums).to_contain_text("2 of 2 as expected")


async def test_a_row_that_failed_in_a_job_is_found_and_tried(look: Look, client: Client) -> None:
    failing = Evaluator("def evaluate(inputs, outputs, trace):\n    return 1 / (len(outputs) - 2)\n")
    job = await asyncio.to_thread(
        client.jobs.create, [failing], "graded", mapping={"outputs": "answer"}, limit_samples=10
    )
    await asyncio.to_thread(client.jobs.wait, job.id)
    page = await look.page(width=390, height=844)
    await open_workbench(page)
    await page.get_by_role("button", name="Use a stored row…").click()
    dialog = page.get_by_role("dialog", name="Use a stored row")
    await dialog.get_by_role("button", name="Job", exact=True).click()
    await dialog.get_by_label("Job", exact=True).last.select_option(job.id)
    await expect(dialog.get_by_role("row", name="question 1")).to_have_count(1)
    await dialog.get_by_role("button", name="Use row 1").click()
    await expect(page.get_by_role("textbox", name="Outputs")).to_have_text('"g1"')
    await page.get_by_role("button", name="Add the test row").click()
    await expect(page.get_by_role("row", name="question 1")).to_be_visible()
    assert await widest_overflow(page) == 0
    await picture(page, "rows-390")
    # the button stays visible at the bottom
    await expect(page.get_by_role("button", name="Run", exact=True)).to_be_in_viewport()


async def test_long_numbers_of_stored_rows_keep_their_digits(page: Page, client: Client) -> None:
    number = 2**53 + 1
    rows = [{"id": number, "answer": "a", "inner": {"ids": [number]}}]
    await asyncio.to_thread(client.datasets.upload, "long-numbers", rows, replace=True)
    failing = Evaluator("def evaluate(inputs, outputs, trace):\n    return {'score': 1 / 0, 'id': inputs['id']}\n")
    made = await asyncio.to_thread(client.jobs.create, [failing], "long-numbers", mapping={"outputs": "answer"})
    job = await asyncio.to_thread(client.jobs.wait, made.id)
    await page.goto(f"/jobs/{job.id}")
    await expect(page.get_by_role("region", name="Rows and results")).to_contain_text(str(number))
    await page.goto(f"/jobs/{job.id}/rows/0")
    await expect(page.get_by_role("main")).to_contain_text(str(number))
    client.labels.create("long-numbers", job=job.id)
    await page.goto("/labels/long-numbers")
    await expect(page.get_by_role("main")).to_contain_text(str(number))
    client.labels.delete("long-numbers")
    await open_workbench(page)
    await write(
        page,
        CODE,
        f"def evaluate(inputs, outputs, trace):\n    return {{'score': float(inputs['id'] == {number}), 'metrics': {{'id': inputs['id']}}}}\n",
    )
    await page.get_by_role("button", name="Use a stored row…").click()
    dialog = page.get_by_role("dialog", name="Use a stored row")
    await dialog.get_by_role("button", name="Job", exact=True).click()
    await dialog.get_by_label("Job", exact=True).last.select_option(job.id)
    await expect(dialog.get_by_role("row", name=str(number))).to_have_count(1)
    await dialog.get_by_role("button", name="Use row 0").click()
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.locator(".result-score")).to_have_text("1")


async def test_numbers_just_below_100_percent_do_not_look_like_100(page: Page, client: Client) -> None:
    rows = [{"n": n, "outputs": "a"} for n in range(2000)]
    await asyncio.to_thread(client.datasets.upload, "nearly-all", rows, replace=True)
    nearly = Evaluator(
        "def evaluate(inputs, outputs, trace):\n    return {'score': 0.99996, 'passed': inputs['n'] > 0}\n"
    )
    made = await asyncio.to_thread(client.jobs.create, [nearly], "nearly-all", isolation=Isolation.BATCH)
    job = await asyncio.to_thread(client.jobs.wait, made.id)
    await page.goto(f"/jobs?find={job.id}")
    await expect(page.locator(".job-scores")).to_contain_text("0.99996")
    await expect(page.locator(".job-scores")).to_contain_text("99.95 % passed")


async def test_the_code_in_the_editor_scores_a_whole_data_set(page: Page, client: Client) -> None:
    await open_workbench(page)
    await write(page, CODE, LOOSE)
    await loads(page)
    await page.get_by_role("button", name="Run on a data set…").click()
    dialog = page.get_by_role("dialog", name="Run on a data set")
    await dialog.get_by_label("Data set").last.select_option("graded")
    await expect(dialog.get_by_label("Source of field 1")).to_have_value("answer")
    await picture(page, "rows-dataset")
    await dialog.get_by_role("button", name="Run on 40 rows").click()
    await expect(page.locator(".record-title .chip")).to_have_text("completed")
    await expect(page.locator(".tile", has_text="Mean score")).to_contain_text("1")


async def test_parameters_and_row_keys_are_completed_first(page: Page) -> None:
    await open_workbench(page)
    await write(page, "Inputs", json.dumps({"gold": "x", "deep": {"inner": 1}}))
    await write(page, CODE, "def evaluate(inputs, outputs, trace):\n    return ")
    await page.keyboard.type("inp")
    chosen = page.locator(".cm-tooltip-autocomplete li[aria-selected]")
    await expect(chosen).to_contain_text("inputs")
    await page.wait_for_timeout(200)  # keys that are pressed sooner would become part of the text
    await page.keyboard.press("Enter")
    await page.keyboard.type('["')
    await expect(page.locator(".cm-tooltip-autocomplete li")).to_have_count(2)
    await page.keyboard.type("d")
    await expect(chosen).to_contain_text("deep")
    await picture(page, "editor-keys")
    await page.wait_for_timeout(200)
    await page.keyboard.press("Enter")
    await expect(page.locator(".main-editor .cm-line").nth(1)).to_have_text('    return inputs["deep"]')
    await page.keyboard.type('["')
    await expect(chosen).to_contain_text("inner")
    await page.keyboard.press("Escape")
    x, y = await page.evaluate(MIDDLE_OF_TRACE)
    await page.mouse.move(x - 2, y)
    await page.mouse.move(x, y)
    await expect(page.locator(".cm-known")).to_contain_text("the spans of your application")

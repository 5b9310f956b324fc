"""In the test panel, users enter rows as JSON, read a result, return to earlier runs, and copy a run. Code cannot
change the page.
"""

import asyncio
import json
import subprocess
import sys
import time

import httpx
import pytest
from playwright.async_api import Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from tests.browser.looking import Look, grave_findings, picture
from tests.browser.writing import CODE, loads, open_workbench, run, score, write
from tests.server import Server

HOSTILE = """
MARKUP = "<script>document.title='hacked'</script><img src=x onerror=\\"document.title='hacked'\\"><b>bold</b>"

def evaluate(inputs, outputs, trace):
    print("\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\x00 \\u202etxt " + MARKUP)
    return {"score": 0.5, "reason": MARKUP, "label": MARKUP, "<i>m</i>": 1, "deep": {"<u>x</u>": MARKUP}}
"""
LARGE = """
def evaluate(inputs, outputs, trace):
    print("p" * 60_000)
    return {"score": 1, "text": "x" * 500_000, "many": [{"n": n} for n in range(40_000)]}
"""
RAISES = """
def inner(value):
    return value["missing"]

def evaluate(inputs, outputs, trace):
    return inner(inputs)
"""
SPAN = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "5b8efff798038103d269b633813fc60c",
                            "spanId": "eee19b7ec3c1b174",
                            "name": "answer",
                            "startTimeUnixNano": "1000000000",
                            "endTimeUnixNano": "2000000000",
                        }
                    ]
                }
            ]
        }
    ]
}


async def test_a_result_says_everything(page: Page) -> None:
    await open_workbench(page)
    await write(
        page,
        CODE,
        "def evaluate(inputs, outputs, trace):\n    print('seen', outputs)\n"
        "    return {'score': 1.5, 'passed': True, 'reason': 'because', 'label': 'good', 'words': 3}\n",
    )
    card = await run(page)
    await expect(score(card)).to_have_text("1.5")
    for text in ("✓ passed", "because", "good", "seen Paris", "running", "bubblewrap", "words"):
        await expect(card.get_by_text(text, exact=False).first).to_be_visible()
    await expect(card.get_by_role("list", name="Warnings")).to_contain_text("0..1")
    await card.get_by_text("Returned value").click()
    await expect(card.get_by_role("group", name="Returned value")).to_contain_text('"label": "good"')
    assert await grave_findings(page) == []
    await picture(page, "result-full")


@pytest.mark.long
async def test_a_traceback_leads_to_its_lines(page: Page) -> None:
    await open_workbench(page)
    await write(page, CODE, RAISES)
    card = await run(page)
    await expect(score(card)).to_have_text("Failed")
    await expect(card).to_contain_text("user_exception")
    await card.get_by_role("button", name="Go to line 3").click()
    await expect(page.locator(".main-editor .cm-activeLine").first).to_contain_text('value["missing"]')
    await card.get_by_role("region", name="Traceback").get_by_role("button", name="line 6").click()
    await expect(page.locator(".main-editor .cm-activeLine").first).to_contain_text("return inner(inputs)")
    assert await grave_findings(page) == []
    await picture(page, "result-traceback")


async def test_nothing_that_code_prints_or_returns_becomes_markup(page: Page) -> None:
    await open_workbench(page)
    await write(page, CODE, HOSTILE)
    card = await run(page)
    await expect(score(card)).to_have_text("0.5")
    await card.get_by_text("Returned value").click()
    await expect(card.get_by_text("<script>document.title='hacked'</script>").first).to_be_visible()
    assert await page.locator("article img, article script, article b, article i, article u").count() == 0
    printed = await card.get_by_role("group", name="Printed").inner_text()
    assert printed.startswith("red")
    assert not {"\x1b", "\x00", "\u202e"} & set(printed)
    assert await page.title() == "Evaluator Host"
    await picture(page, "result-hostile")


@pytest.mark.long
async def test_a_megabyte_does_not_freeze_the_page(page: Page) -> None:
    await open_workbench(page)
    await write(page, CODE, LARGE)
    card = await run(page)
    await expect(score(card)).to_have_text("1")
    await card.get_by_text("Returned value").click()
    shown = card.get_by_role("group", name="Returned value")
    assert len(await shown.inner_text()) < 20_000
    assert await page.evaluate("document.querySelectorAll('*').length") < 3000
    await expect(card.get_by_text("The first 12 KB of")).to_have_count(2)
    async with page.expect_download() as waiting:
        await shown.locator("..").get_by_role("button", name="Save all").click()
    file = await (await waiting.value).path()
    value = json.loads(await asyncio.to_thread(file.read_text))
    assert (len(value["text"]), len(value["many"])) == (500_000, 40_000)
    await run(page)  # a second version, so that the first becomes an older one
    await expect(page.locator(".run")).to_have_count(2)


@pytest.mark.long
async def test_invalid_json_is_reported_where_it_is_written(page: Page) -> None:
    await open_workbench(page)
    await write(page, "Outputs", "Paris")
    await expect(page.get_by_text("This is not valid JSON")).to_be_visible()
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_test_id("score")).to_have_count(0)
    await page.get_by_role("button", name="Use it as text").click()
    await expect(page.get_by_role("textbox", name="Outputs")).to_have_text('"Paris"')
    await write(page, "Inputs", "[1]")
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_text("This must be an object")).to_be_visible()
    await write(page, "Inputs", '{"correct_answer": "Paris"}')
    await expect(score(await run(page))).to_have_text("1")


@pytest.mark.long
async def test_earlier_runs_are_shown_and_brought_back(page: Page) -> None:
    await open_workbench(page)
    for value in ("0.1", "0.2"):
        await write(page, CODE, f"def evaluate(inputs, outputs, trace):\n    return {value}\n")
        await expect(score(await run(page))).to_have_text(value)
    await page.locator(".run", has_text="0.1").click()
    await expect(page.get_by_test_id("score")).to_have_text("0.1")
    await expect(page.get_by_role("textbox", name=CODE)).to_contain_text("0.2")
    await page.get_by_role("button", name="Restore the code and row of run 1").click()
    await expect(page.get_by_role("textbox", name=CODE)).to_contain_text("0.1")
    assert await grave_findings(page) == []
    await picture(page, "runs")


@pytest.mark.long
async def test_a_run_is_stopped(page: Page) -> None:
    await open_workbench(page)
    await write(page, CODE, "import time\n\ndef evaluate(inputs, outputs, trace):\n    time.sleep(9)\n    return 1\n")
    await loads(page)
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()
    await expect(page.get_by_test_id("score")).to_have_count(0)


@pytest.mark.long
@pytest.mark.parametrize("label", ["Copy as curl", "Copy as Python"])
async def test_a_copied_run_runs_elsewhere(look: Look, label: str) -> None:
    page = await look.page(permissions=["clipboard-read", "clipboard-write"])
    await open_workbench(page)
    await write(
        page,
        CODE,
        "def evaluate(inputs, outputs, trace):\n    return len(outputs) / 8 if inputs['it\\'s'] else None  # “é”\n",
    )
    await write(
        page,
        "Inputs",
        json.dumps({"it's": True, "none": None, "deep": {"list": [1.5, "a\nb", {"c": False}]}, "long": "y" * 90}),
    )
    await write(page, "Outputs", '"it\'s"')
    await page.locator("details.settings > summary").click()
    await page.get_by_label("Pass threshold").fill("0.5")
    await page.get_by_label("Timeout (s)").fill("3")
    card = await run(page)
    await expect(score(card)).to_have_text("0.5")
    await card.get_by_role("button", name=label).click()
    await expect(page.locator(".toast")).to_contain_text("Copied")
    copied = await page.evaluate("navigator.clipboard.readText()")
    command = ["bash", "-c", copied] if label == "Copy as curl" else [sys.executable, "-c", copied]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (copied, done.stderr)
    if label == "Copy as curl":
        assert (json.loads(done.stdout)["score"], json.loads(done.stdout)["passed"]) == (0.5, True)
    else:
        assert done.stdout.startswith("0.5 True"), copied


@pytest.mark.long
async def test_rows_come_from_data_sets_and_live_traces(page: Page, host: Server) -> None:
    rows = "".join(
        json.dumps({"question": f"q{n}", "correct_answer": f"a{n}", "output": f"a{n}"}) + "\n" for n in range(3)
    )
    made = await asyncio.to_thread(
        host.client.post,
        "/v1/datasets?name=browser-rows",
        content=rows,
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert made.status_code == 201, made.text
    await open_workbench(page)
    await page.get_by_role("button", name="Use a stored row…").click()
    dialog = page.get_by_role("dialog", name="Use a stored row")
    await dialog.get_by_label("Data set").last.select_option("browser-rows")
    await expect(dialog.get_by_role("cell", name="q2")).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "take-row")
    await dialog.get_by_role("button", name="Live traces").click()
    await expect(dialog.get_by_text("traces yet")).to_be_visible()
    await dialog.get_by_role("button", name="Data set", exact=True).click()
    await dialog.get_by_label("Data set").last.select_option("browser-rows")
    await dialog.get_by_label("Find in the rows").fill("Q2")
    await expect(dialog.get_by_text("1 match")).to_be_visible()
    await dialog.get_by_role("button", name="Use row 2").click()
    await expect(page.get_by_role("textbox", name="Outputs")).to_have_text('"a2"')
    await expect(score(await run(page))).to_have_text("1")
    await page.goto("/?dataset=browser-rows&row=1")
    await expect(page.get_by_role("textbox", name="Outputs")).to_have_text('"a1"')
    await page.goto("/?dataset=browser-rows&row=99")
    await expect(page.get_by_role("alert")).to_contain_text("has no row 99")


@pytest.mark.long
async def test_addresses_bring_rows_of_jobs_and_live_traces(page: Page, host: Server) -> None:
    job = await asyncio.to_thread(seed, host.client)
    await page.goto(f"/?job={job}&row=1")
    brought = page.get_by_role("article", name="Result")
    await expect(score(brought)).to_have_text("0")  # the same score as in the job
    await expect(page.get_by_text("Result of an earlier version")).to_have_count(0)
    await expect(page.get_by_role("textbox", name="Outputs")).to_have_text('"Milan"')
    await expect(page.locator(".status-line")).to_contain_text("browser-address@1")
    await expect(score(await run(page))).to_have_text("0")
    trace = (await asyncio.to_thread(host.client.get, "/v1/evaluators/browser-address/traces")).json()[0]["number"]
    await page.goto(f"/?evaluator=browser-address&trace={trace}")
    await expect(page.get_by_role("textbox", name="Trace")).to_contain_text("resourceSpans")
    code = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n"
    with Client(
        host.url
        # the test row lacks the fields that the code reads, so the page loads a row of the evaluator's newest job
    ) as client:
        await asyncio.to_thread(client.evaluators.create, "browser-gold", Evaluator(code))
        rows = [{"gold": "Oslo", "outputs": "Oslo"}]
        ended = await asyncio.to_thread(client.jobs.create, ["browser-gold"], rows, name="Gold run")
        await asyncio.to_thread(client.jobs.wait, ended.id)
    await page.goto("/?evaluator=browser-gold")
    await expect(page.get_by_role("textbox", name="Inputs")).to_contain_text("Oslo")
    await expect(score(await run(page))).to_have_text("1")
    await page.goto("/?evaluator=nobody-has-this")
    await expect(page.get_by_role("alert")).to_contain_text("nobody-has-this")


def seed(client: httpx.Client) -> str:
    """Return a job that has ended; its only evaluator has also scored a trace."""
    code = "def evaluate(inputs, outputs, trace):\n    return float(outputs == inputs.get('correct_answer'))\n"
    rows = '{"correct_answer": "Paris", "output": "Paris"}\n{"correct_answer": "Rome", "output": "Milan"}\n'
    client.post("/v1/evaluators", json={"name": "browser-address", "code": code}).raise_for_status()
    client.post("/v1/datasets?name=browser-cities", content=rows, headers={"Content-Type": "application/x-ndjson"})
    body = {"evaluators": ["browser-address"], "dataset": "browser-cities"}
    job = client.post("/v1/jobs", json=body).raise_for_status().json()
    client.post("/v1/evaluators/browser-address/traces", json=SPAN).raise_for_status()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ended = client.get(f"/v1/jobs/{job['id']}").json()["status"] not in ("queued", "running")
        if ended and client.get("/v1/evaluators/browser-address/traces").json():
            return str(job["id"])
        time.sleep(0.1)
    raise AssertionError("the job or the trace was not scored")


@pytest.mark.long
async def test_the_editor_has_most_of_its_panel_after_the_first_run(page: Page) -> None:
    await page.goto("/")
    signature = page.locator(".signature > dl")
    await expect(signature).to_be_visible()
    await run(page)
    await expect(signature).to_be_hidden()
    editor, panel = [await page.locator(one).bounding_box() for one in (".main-editor", ".editor-panel")]
    assert editor is not None
    assert panel is not None
    assert editor["height"] >= 0.6 * panel["height"]
    await page.reload()
    await expect(page.locator(".signature")).to_be_visible()
    await expect(signature).to_be_hidden()
    await page.locator(".signature > summary").click()
    # wait, because the browser tells the page only a moment later that the card is open
    await page.wait_for_function("localStorage.getItem('signature') === 'open'")
    await page.reload()
    await expect(signature).to_be_visible()  # the card is open, as it was before

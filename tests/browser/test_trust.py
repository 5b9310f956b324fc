"""The pages show the truth: old verdicts and results look old, the number of failed rows is beside the mean, and no
draft or run is lost.
"""

import asyncio

import pytest
from playwright.async_api import Page, Route, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import Failures
from tests.browser.looking import Look, grave_findings, picture
from tests.browser.seeds import Seeds
from tests.browser.writing import CODE, loads, open_workbench, run, score, write
from tests.server import Server

pytestmark = pytest.mark.long("test_run.py and test_jobs.py test the main features of the same pages")

HALF = "def evaluate(inputs, outputs, trace):\n    return 0.5\n"


async def test_verdicts_and_results_grey_at_the_first_key(page: Page) -> None:
    await open_workbench(page)
    await write(page, CODE, HALF)
    await loads(page)
    await expect(score(await run(page))).to_have_text("0.5")
    old = page.get_by_text("Result of an earlier version")
    await expect(old).to_have_count(0)
    checks = asyncio.Event()

    async def wait(route: Route) -> None:
        await checks.wait()
        await route.continue_()

    await page.route("**/v1/check", wait)
    await page.get_by_role("textbox", name=CODE).click()
    await page.keyboard.press("ControlOrMeta+End")
    await page.keyboard.insert_text("    return (\n")
    await expect(old).to_be_visible()
    status = page.locator(".status-line")
    await expect(status.get_by_text("✓ loads")).to_have_count(0)
    # the message comes from the editor's own parser, without the host
    await expect(status).to_contain_text("Syntax error")
    await expect(page.locator(".main-editor .cm-lint-marker-error")).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "trust-stale")
    checks.set()
    await expect(status.get_by_text("was never closed")).to_be_visible()  # this is the host's message
    await write(page, CODE, HALF)
    await loads(page)
    await expect(old).to_have_count(0)


async def test_each_tab_has_its_draft_and_the_other_ones_are_restored(look: Look) -> None:
    first = await look.page()
    await open_workbench(first)
    await write(first, CODE, HALF)
    await loads(first)
    second = await first.context.new_page()
    await second.goto("/")
    # a new tab shows the last draft first
    await expect(second.get_by_role("textbox", name=CODE)).to_contain_text("return 0.5")
    await write(second, CODE, HALF.replace("0.5", "0.75"))
    await loads(second)
    await second.close()
    await first.reload()
    await expect(first.get_by_role("textbox", name=CODE)).to_contain_text("return 0.5")
    await first.get_by_role("button", name="Open…").click()
    dialog = first.get_by_role("dialog", name="Open an evaluator")
    await dialog.get_by_role("button", name="Earlier drafts").click()
    await picture(first, "trust-drafts")
    await dialog.get_by_role("listitem").filter(has_text="0.75").get_by_role("button").click()
    await expect(first.get_by_role("textbox", name=CODE)).to_contain_text("return 0.75")


async def test_runs_survive_a_reload_with_their_code(page: Page) -> None:
    await open_workbench(page)
    for value in ("0.25", "0.5"):
        await write(page, CODE, HALF.replace("0.5", value))
        await run(page)
    await expect(page.get_by_role("article", name="Result")).to_contain_text("Run 1: 0.25 → 0.5 (+0.25)")
    await page.reload()
    await expect(page.locator(".run")).to_have_count(2)
    await page.get_by_role("button", name="Restore the code and row of run 1").click()
    await expect(page.get_by_role("textbox", name=CODE)).to_contain_text("return 0.25")


async def test_failed_rows_are_never_out_of_sight_of_the_mean(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}")
    await expect(page.locator(".record-title .chip-warn")).to_have_text("completed, 10.1 % failed")
    mean = page.get_by_role("list", name="Statistics of length@1").get_by_role("listitem").first
    await expect(mean).to_contain_text("over 1,799 of 2,000 rows")
    await expect(mean.locator(".warn")).to_have_count(1)


async def test_pages_say_that_failed_rows_count_as_0(page: Page, host: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return 1 / inputs['n']\n"
    ids = []
    with Client(host.url) as client:
        client.datasets.upload("trust-zero", [{"n": 0}, {"n": 1}])
        client.evaluators.create("trust-halves", Evaluator(code, threshold=0.5))
        for failures in (Failures.EXCLUDE, Failures.ZERO):
            made = client.jobs.create(["trust-halves"], "trust-zero", name=f"trust {failures}", failures=failures)
            ids.append(made.id)
            await asyncio.to_thread(client.jobs.wait, made.id)
    await page.goto("/jobs?find=trust")
    rows = page.locator(".job-scores")
    await expect(rows.nth(0)).to_contain_text("1 of 2 rows failed, counted as 0")
    await expect(rows.nth(1)).to_contain_text("over 1 of 2 rows")
    await page.get_by_role("link", name="trust zero").click()
    tiles = page.get_by_role("list", name="Statistics of trust-halves@1").get_by_role("listitem")
    await expect(tiles.nth(0)).to_have_text("Mean score0.51 failed, counted as 0")
    await expect(tiles.nth(1)).to_have_text("Passed50.0 %1 failed, counted as not passed")
    for address in ("/compare/" + "/".join(ids), "/compare?jobs=" + ",".join(ids)):
        await page.goto(address)
        await expect(
            page.get_by_text("job counts failed rows as 0. Therefore 1 row that failed is left out")
        ).to_be_visible()


async def test_a_pass_rate_says_how_many_rows_have_a_verdict(page: Page, host: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return {'score': 1, **({'passed': True} if inputs['n'] < 2 else {})}\n"
    with Client(host.url) as client:
        job = client.jobs.create([Evaluator(code)], [{"n": n} for n in range(9)], name="few verdicts").id
        await asyncio.to_thread(client.jobs.wait, job)
    await page.goto(f"/jobs/{job}")
    tiles = page.get_by_role("list", name="Statistics of").get_by_role("listitem")
    await expect(tiles.nth(1)).to_have_text("Passed100 %over 2 of 9 rows")
    await page.goto("/jobs?find=few verdicts")
    await expect(page.locator(".job-scores")).to_contain_text("100 % of 2 rows passed")


async def test_a_running_job_shows_counts_of_one_moment(page: Page, host: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return 1 / inputs['n']\n"
    with Client(host.url) as client:
        job = client.jobs.create([Evaluator(code)], [{"n": n} for n in range(50)]).id
        await asyncio.to_thread(client.jobs.wait, job)
        report = client._transport.http.get(f"/v1/jobs/{job}").json()
        statistics = client._transport.http.get(f"/v1/jobs/{job}/results").json()
    report |= {"status": "running", "finished_at": None}
    report["progress"]["rows"] = report["scores"][0]["rows"] = 399
    statistics["evaluators"][0] |= {
        "rows": 35,
        "scored": 35,
        "failed": 0,
    }  # as if these statistics had been computed earlier, after fewer rows
    await page.route(f"**/v1/jobs/{job}", lambda route: route.fulfill(json=report))
    await page.route(f"**/v1/jobs/{job}/events", lambda route: route.abort())
    await page.route(f"**/v1/jobs/{job}/results", lambda route: route.fulfill(json=statistics))
    await page.goto(f"/jobs/{job}")
    await expect(page.get_by_text("50 of 399 rows · 1 failed")).to_be_visible()
    await expect(page.locator(".record-title .chip-warn")).to_have_text("running, 2.0 % failed")
    tiles = page.get_by_role("list", name="Statistics of").get_by_role("listitem")
    await expect(tiles.nth(2)).to_have_text("Scored49")
    await expect(tiles.nth(3)).to_have_text("Failed12.0 %")
    await expect(page.get_by_role("button", name="All 50")).to_be_visible()

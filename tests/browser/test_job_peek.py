"""Rows of a job: the user chooses columns, sees all evaluators side by side, opens one row beside the table, goes to
the next row with the keys j and k, and compares several jobs.
"""

import csv

import pytest
from playwright.async_api import Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation
from tests.browser.looking import Look, from_more, grave_findings, picture, widest_overflow
from tests.browser.seeds import Seeds
from tests.server import Server


@pytest.mark.long
async def test_rows_are_columns_and_are_looked_into_by_keys(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}?outcome=scored")
    rows = page.get_by_role("region", name="Rows and results")
    await expect(rows.get_by_role("columnheader", name="question")).to_be_visible()
    await page.get_by_text("Columns").first.click()
    await page.get_by_role("checkbox", name="words metric").check()
    await page.get_by_role("checkbox", name="mark").uncheck()
    await expect(rows.get_by_role("columnheader", name="words")).to_be_visible()
    await expect(rows.get_by_role("columnheader", name="mark")).to_have_count(0)
    await page.keyboard.press("Escape")
    await page.locator(".record-title").click()
    await page.keyboard.press("j")
    peek = page.get_by_role("complementary", name="Row 2")
    await expect(peek).to_contain_text("letters of")
    await page.keyboard.press("j")
    await expect(page.get_by_role("complementary", name="Row 3")).to_be_visible()
    await page.keyboard.press("k")
    await expect(peek).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "job-peek")
    await page.keyboard.press("Escape")
    await expect(page.locator(".peek")).to_have_count(0)


@pytest.mark.long
async def test_all_evaluators_of_a_row_stand_side_by_side(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.small}")
    scores = page.get_by_role("region", name="Scores of all evaluators")
    await expect(scores.get_by_role("row", name="latency@1")).to_contain_text("0.5")
    await scores.get_by_role("button", name="latency@1").click()
    await expect(page.get_by_role("list", name="Statistics of latency@1")).to_be_visible()
    await from_more(page, "Download rows…")
    dialog = page.get_by_role("dialog", name="Download rows")
    await dialog.get_by_label("Rows").select_option("All rows, with the results of latency@1")
    async with page.expect_download() as download:
        await dialog.get_by_role("button", name="Download", exact=True).click()
    saved = list(csv.DictReader((await (await download.value).path()).read_text().splitlines()))
    assert (len(saved), {one["evaluator"] for one in saved}) == (12, {"latency@1"})
    await page.get_by_role("button", name="All evaluators side by side").click()
    table = page.get_by_role("region", name="Rows and results")
    for name in ("length@2", "latency@1", "full@1"):
        await expect(table.get_by_role("columnheader", name=name)).to_be_visible()
    await expect(table.locator("tbody tr")).to_have_count(12)
    assert await grave_findings(page) == []


@pytest.mark.long
async def test_no_row_is_split_between_two_pages(page: Page, host: Server) -> None:
    evaluators = [Evaluator(f"def evaluate(inputs, outputs, trace):\n    return {n} / 10\n") for n in range(11)]
    with Client(host.url) as client:
        made = client.jobs.create(evaluators, [{"inputs": {"n": n}} for n in range(60)], isolation=Isolation.BATCH)
        client.jobs.wait(made.id)
    await page.goto(f"/jobs/{made.id}?side=all")
    table = page.get_by_role("region", name="Rows and results")
    await expect(table.locator("tbody tr")).to_have_count(45)
    await page.get_by_role("button", name="Next").click()
    await expect(table.locator("tbody tr")).to_have_count(15)


@pytest.mark.long
async def test_a_comparison_that_fails_says_so(look: Look, seeds: Seeds) -> None:
    page = await look.page()
    problem = {
        "status": 503,
        "json": {"detail": "the database does not answer", "code": "store_unavailable", "errors": []},
    }
    await page.route("**/compare/**", lambda route: route.fulfill(**problem))
    await page.goto(f"/compare?jobs={seeds.before},{seeds.after}")
    await expect(page.get_by_role("heading", name="2 jobs compared")).to_be_visible()
    await expect(page.get_by_text("the database does not answer")).to_be_visible()
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("region", name="Scores of the jobs")).to_contain_text("95 %")
    await page.goto(f"/compare?jobs={seeds.before}")
    await expect(page.get_by_role("heading", name="1 job compared")).to_be_visible()
    look.faults.clear()  # the 503 was caused on purpose


async def test_several_jobs_are_compared(page: Page, seeds: Seeds) -> None:
    await page.goto("/jobs")
    for job in (seeds.before, seeds.after, seeds.small):
        await page.get_by_role("checkbox", name=job[4:12]).check()
    await page.get_by_role("button", name="Compare", exact=True).click()
    await expect(page.get_by_role("heading", name="3 jobs compared")).to_be_visible()
    await expect(page.get_by_text("did not score the same rows")).to_be_visible()
    await expect(page.get_by_role("columnheader", name="length")).to_be_visible()
    assert await grave_findings(page) == []
    await page.goto(f"/compare?jobs={seeds.before},{seeds.after}")
    await expect(page.get_by_role("region", name="Scores of the jobs")).to_contain_text("95 %")
    differ = page.get_by_role("region", name="Rows that differ", exact=True)
    await expect(differ.locator("tbody tr")).to_have_count(8)
    await expect(differ).to_contain_text("letters of word")
    await page.get_by_role("button", name="Show more of").click()
    await expect(differ.locator("tbody tr")).to_have_count(16)
    await differ.get_by_role("button", name="Compare the texts of row").first.click()
    texts = page.get_by_role("dialog", name="in both jobs")
    await expect(texts.get_by_role("heading", name="Outputs, the same in both")).to_be_visible()
    await expect(texts.locator(".fact")).to_have_count(2)
    await texts.get_by_role("button", name="Close").click()
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        assert await grave_findings(page) == [], theme
        await picture(page, f"compare-many-{theme}")
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await widest_overflow(page) == 0
    await picture(page, "compare-many-390")


@pytest.mark.long
async def test_several_jobs_are_compared_over_the_same_rows_and_versions(page: Page, host: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return 0.9 / (inputs['n'] != {}) - inputs['n'] / 10\n"
    with Client(host.url) as client:
        client.datasets.upload("compare-pairs", [{"n": n} for n in range(4)])
        client.evaluators.create("pairs", Evaluator(code.format(0)))
        client.evaluators.update("pairs", Evaluator(code.format(3)))
        client.evaluators.create("halves", Evaluator("def evaluate(inputs, outputs, trace):\n    return 0.5\n"))
        client.evaluators.update("halves", Evaluator("def evaluate(inputs, outputs, trace):\n    return 0.8\n"))
        first, second = (
            client.jobs.wait(client.jobs.create(evaluators, "compare-pairs").id).id
            for evaluators in (["pairs@1", "halves@1"], ["pairs@2", "halves@2", "halves@1"])
        )
    await page.goto(f"/compare?jobs={first},{second}")
    scores = page.get_by_role("region", name="Scores of the jobs").get_by_role("row").nth(2)
    # each version fails a different row, so the means differ, although the scores of all rows that both versions scored
    # are equal
    await expect(scores).to_contain_text("no difference; over 2 rows with a score in both")
    await expect(scores.locator(".pass, .fail")).to_have_count(0)
    for label in ("pairs@2", "halves@1", "halves@2"):
        await expect(scores.get_by_role("paragraph").filter(has_text=label)).to_have_count(1)


@pytest.mark.long
async def test_failures_come_first_and_means_are_drawn_over_time(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}")
    rows = page.get_by_role("region", name="Rows and results").locator("tbody tr")
    await page.get_by_label("Order").select_option("status")
    await expect(rows.nth(1)).to_contain_text("user_exception")
    await page.goto("/evaluators/length?tab=scores")
    await expect(page.locator("canvas[data-drawn=true]")).to_have_count(1)
    await expect(page.get_by_role("img", name="Mean scores of length in 2 jobs over many")).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "trend")


@pytest.mark.long
async def test_a_comparison_says_what_differs_and_when_rows_are_too_few(look: Look, host: Server) -> None:
    with Client(host.url) as client:
        client.datasets.upload(
            "few-rows", [{"n": 1, "outputs": "a"}, {"n": 2, "outputs": "b"}, {"n": 3, "outputs": "b"}]
        )
        client.datasets.upload("other-rows", [{"n": 1, "outputs": "c"}])
        for name, letter in (("has-a", "a"), ("has-b", "b")):
            code = f"def evaluate(inputs, outputs, trace):\n    return float(outputs == '{letter}')\n"
            client.evaluators.create(name, Evaluator(code))
        first, second, else_, apart = (
            client.jobs.wait(client.jobs.create([evaluator], dataset, **more).id).id
            for evaluator, dataset, more in (
                ("has-a", "few-rows", {}),
                ("has-a", "few-rows", {"mapping": {"inputs.n": "outputs"}}),
                ("has-b", "few-rows", {}),
                ("has-a", "other-rows", {}),
            )
        )
    page = await look.page()
    await page.goto(f"/compare?jobs={first},{second}")
    scores = page.get_by_role("region", name="Scores of the jobs")
    await expect(scores.get_by_role("row").nth(2)).to_contain_text("mapping: none → inputs.n=outputs")
    await page.goto(f"/compare/{first}/{else_}")
    await page.get_by_role("button", name="Compare evaluators of different names").click()
    tile = page.get_by_role("listitem").filter(has_text="Mean score")
    await expect(tile.locator(".tile-note").last).to_contain_text("too few rows for an interval")
    await page.goto(f"/compare/{first}/{apart}")
    await expect(page.get_by_role("alert")).to_contain_text("cannot be compared")
    await expect(page.get_by_role("button", name="Compare evaluators of different names")).to_have_count(0)
    look.faults.clear()  # the refusals were caused on purpose

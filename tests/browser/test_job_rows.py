"""The many rows of a job: they are filtered, sorted, searched and paged, and each view has its own address. One row
is shown with its trace.
"""

import asyncio
import json

import pytest
from playwright.async_api import Locator, Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation
from tests.browser.looking import Look, grave_findings, picture, widest_overflow
from tests.browser.seeds import MARKUP, Seeds, many_rows
from tests.browser.test_every_page import THEMES
from tests.server import Server


def rows(page: Page) -> Locator:
    return page.locator(".rows-table tbody tr")


def rows_link(page: Page, row: str) -> Locator:
    return rows(page).get_by_role("link", name=row, exact=True)


def count(page: Page) -> Locator:
    return page.locator(".rows-panel > .panel-head")


@pytest.mark.long
async def test_rows_are_filtered_and_sorted_by_the_host(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}")
    await expect(count(page)).to_contain_text("2,000 rows")
    await page.get_by_label("Outcome").select_option("failed")
    await expect(count(page)).to_contain_text("201 rows")
    await page.get_by_label("Outcome").select_option("")
    await page.get_by_role("button", name="Score", exact=True).click()
    await expect(rows(page).first.locator(".score")).to_have_text("1")
    await page.get_by_role("button", name="Score", exact=True).click()
    await expect(rows(page).first.locator(".score")).to_have_text("0")
    await expect(page.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "ascending")
    await page.reload()
    await expect(rows(page).first.locator(".score")).to_have_text("0")
    await page.get_by_role("button", name="Failed 201").click()
    await page.get_by_role("region", name="Failures").get_by_role("button", name="user_exception").first.click()
    await expect(count(page)).to_contain_text("201 rows")
    await page.get_by_role("button", name="Remove the filter user_exception").click()
    await page.get_by_role("button", name="All 2,000").click()
    await expect(count(page)).to_contain_text("2,000 rows")


TOPICS = [
    *({"topic": "cities", "gold": gold, "answer": "Rome"} for gold in ("Rome", "Milan", "Rome")),
    *({"topic": topic, "gold": "4", "answer": "4"} for topic in ("sums", "city trips", None)),
]
EXACT = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n"
ONE = "def evaluate(inputs, outputs, trace):\n    return 1\n"


@pytest.fixture(scope="module")
def by_topic(host: Server) -> str:
    """A job over six rows: five rows have one of three topics, and one row has no topic."""
    with Client(host.url) as client:
        client.datasets.upload("topics", TOPICS)
        job = client.jobs.create([Evaluator(EXACT)], "topics", mapping={"outputs": "answer"})
        return client.jobs.wait(job.id).id


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
async def test_the_mean_of_each_value_of_a_column_leads_to_its_rows(look: Look, by_topic: str, width: int) -> None:
    page = await look.page(width=width)
    await page.goto(f"/jobs/{by_topic}")
    await page.get_by_label("Mean by column").select_option("Mean by topic")
    means = page.get_by_role("region", name="Mean score by topic")
    await expect(means.locator("tbody tr")).to_have_text(
        [
            "cities30.66670.333366.7 %20.8 % to 93.9 %",
            *(f"{name}11\u2013100 %20.7 % to 100 %" for name in ("city trips", "sums", "no value")),
        ]
    )
    assert await widest_overflow(page) == 0
    await means.get_by_role("button", name="no value").click()
    await expect(rows(page)).to_have_count(1)
    await expect(count(page)).to_contain_text("1 of 6 rows")
    await means.get_by_role("button", name="cities").click()
    await expect(rows(page)).to_have_count(3)
    await page.get_by_label("Outcome").select_option("not-passed")
    await expect(rows(page)).to_have_count(1)
    await expect(rows_link(page, "1")).to_be_visible()
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme)
        await picture(page, f"job-by-topic-{width}-{theme}")
        assert await grave_findings(page, colours=theme == "dark") == []
    await page.reload()
    await expect(means.get_by_role("button", name="cities")).to_have_attribute("aria-pressed", "true")
    await page.get_by_role("button", name="Remove the filter topic=cities").click()
    await page.get_by_label("Outcome").select_option("")
    await expect(rows(page)).to_have_count(6)
    await page.get_by_role("button", name="Close", exact=True).click()
    await expect(means).to_have_count(0)


@pytest.fixture(scope="module")
def with_gaps(host: Server) -> str:
    """A job over five rows: one of the three rows about cities fails, and the topic of two rows is an empty text."""
    topics = ("cities", "cities", "cities", "", "")
    data = [{"topic": topic, "n": n} for n, topic in enumerate(topics)]
    with Client(host.url) as client:
        client.datasets.upload("gaps", data)
        code = "def evaluate(inputs, outputs, trace):\n    return min(1, 1 / inputs['n'])\n"
        return client.jobs.wait(client.jobs.create([Evaluator(code)], "gaps").id).id


@pytest.mark.long
async def test_a_mean_by_column_says_its_rows_and_empty_texts_lead_to_theirs(page: Page, with_gaps: str) -> None:
    await page.goto(f"/jobs/{with_gaps}")
    await page.get_by_label("Mean by column").select_option("Mean by topic")
    means = page.get_by_role("region", name="Mean score by topic")
    await expect(means.locator("thead th")).to_have_text(
        ["topic", "Rows", "Mean score", "Standard error", "Rows in the mean", "Passed", "Failed"]
    )
    cells = means.get_by_role("row", name="cities").locator("td")
    for at, text in ((0, "3"), (1, "0.75"), (2, "0.25"), (3, "2"), (5, "1")):
        await expect(cells.nth(at)).to_have_text(text)
    await means.get_by_role("button", name="empty text").click()
    await expect(rows(page)).to_have_count(2)
    await page.get_by_role("button", name="Remove the filter topic is empty").click()
    await expect(rows(page)).to_have_count(5)


@pytest.mark.long
async def test_the_choice_of_a_column_takes_no_line_of_its_own(page: Page, by_topic: str) -> None:
    await page.goto(f"/jobs/{by_topic}")
    await expect(page.get_by_label("Mean by column")).to_be_visible()
    tops = [await page.get_by_label(label).bounding_box() for label in ("Outcome", "Order", "Mean by column")]
    assert len({one["y"] for one in tops if one is not None}) == 1
    await expect(page.get_by_role("button", name="Row (from 0)")).to_be_visible()


@pytest.mark.long
async def test_a_bar_of_the_histogram_shows_its_rows(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}")
    await page.get_by_text("Distribution, slowest rows").click()
    canvas = page.locator("canvas[data-drawn=true]")
    box = await canvas.bounding_box()
    assert box is not None
    await page.wait_for_timeout(400)  # wait until the bars have stopped growing
    await canvas.click(position={"x": box["width"] - 30, "y": box["height"] - 90})
    await expect(page.get_by_role("button", name="Remove the filter score 0.9 to 1")).to_be_visible()
    await expect(count(page)).to_contain_text("340 rows")


@pytest.mark.long
async def test_a_bar_shows_no_row_of_the_next_bar(page: Page, host: Server) -> None:
    rows = [{"inputs": {}, "outputs": tenths / 10} for tenths in (0, 1, 1, 2, 3, 3, 3, 4, 6, 7, 10)]
    code = "def evaluate(inputs, outputs, trace):\n    return outputs\n"
    with Client(host.url) as client:
        job = client.jobs.wait(client.jobs.create([Evaluator(code)], rows).id)
    await page.goto(f"/jobs/{job.id}")
    await page.get_by_text("Distribution, slowest rows").click()
    await page.get_by_text("Data as a table").click()
    for line, found in enumerate(("1 row", "2 rows", "1 row", "3 rows", "1 row")):
        await page.get_by_role("button", name=f"Show line {line + 1}", exact=True).click()
        await expect(page.get_by_role("button", name=f"Remove the filter score {line / 10:g} to")).to_be_visible()
        await expect(count(page).get_by_role("status")).to_have_text(found)


@pytest.mark.long
async def test_pages_of_rows_go_forth_and_back_and_have_addresses(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}?outcome=failed")
    pager = page.get_by_role("navigation", name="Pages of rows")
    await expect(pager).to_contain_text("1 to 50")
    await pager.get_by_role("button", name="Next").click()
    await expect(pager).to_contain_text("51 to 100")
    await pager.get_by_role("button", name="Next").click()
    await expect(pager).to_contain_text("101 to 150")
    third = await rows(page).first.get_by_role("link").inner_text()
    await page.reload()
    await expect(rows(page).first.get_by_role("link")).to_have_text(third)
    await pager.get_by_role("button", name="Previous").click()
    await expect(pager).to_contain_text("51 to 100")
    await page.reload()
    await pager.get_by_role("button", name="Previous").click()
    await expect(pager).to_contain_text("1 to 50")
    # without a cursor in the address, the first rows are shown
    await page.goto(f"/jobs/{seeds.before}?outcome=failed&at=50")
    await expect(pager).to_contain_text("1 to 50")
    await expect(pager.get_by_role("button", name="Previous")).to_be_disabled()


@pytest.mark.long
async def test_an_address_of_a_later_page_has_a_way_back_to_the_first_page(look: Look, seeds: Seeds) -> None:
    page = await look.page()
    await page.goto(f"/jobs/{seeds.before}")
    pager = page.get_by_role("navigation", name="Pages of rows")
    for reached in ("rows 50 to 99", "rows 100 to 149"):
        await pager.get_by_role("button", name="Next").click()
        await expect(pager).to_contain_text(reached)
    other = await look.page()
    await other.goto(page.url)
    pager = other.get_by_role("navigation", name="Pages of rows")
    await expect(pager).to_contain_text("rows 100 to 149")
    await pager.get_by_role("button", name="First").click()
    await expect(pager).to_contain_text("rows 0 to 49")


@pytest.mark.long
async def test_a_text_is_searched_as_far_as_one_likes(page: Page, host: Server) -> None:
    with Client(host.url) as client:
        client.datasets.upload("searched", many_rows(5200))  # the host searches 5,000 rows at a time
        made = client.jobs.create([Evaluator(ONE)], "searched", isolation=Isolation.BATCH)
        job = await asyncio.to_thread(client.jobs.wait, made.id)
    await page.goto(f"/jobs/{job.id}")
    await page.get_by_label("Find text in rows").fill("QUESTION 5177")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No match on this page. Continue the search.")).to_be_visible()
    await page.get_by_role("button", name="Continue search").click()
    await expect(rows(page)).to_have_count(1)
    await expect(rows(page).first).to_contain_text("5,177")
    await expect(count(page)).to_contain_text("1 on this page, of 5,200 rows")
    await page.get_by_label("Find text in rows").fill("nowhere at all")
    await page.get_by_role("button", name="Find", exact=True).click()
    await page.get_by_role("button", name="Continue search").click()
    await expect(page.get_by_text("No matching rows")).to_be_visible()
    await page.get_by_role("button", name="Show all rows").click()
    await expect(count(page)).to_contain_text("5,200 rows")
    await expect(page.get_by_label("Find text in rows")).to_have_value("")


async def test_one_row_has_inputs_outputs_results_and_its_trace_as_a_tree(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.small}/rows/3")
    await expect(page.get_by_role("group", name="Outputs")).to_have_text(f"{MARKUP} 3")
    spans = page.get_by_role("list", name="Spans").get_by_role("listitem")
    await expect(spans).to_have_count(4)
    await expect(spans.nth(1)).to_contain_text(f"retrieve {MARKUP} (failed)")
    await expect(spans.nth(3)).to_contain_text("503 tokens, $0.0021")
    await expect(spans.nth(3)).to_contain_text("1.3 s")
    await spans.nth(2).get_by_role("button", name="What is in generate").press("Enter")
    await expect(spans).to_have_count(3)
    await spans.first.get_by_role("button", name="answer", exact=True).press("Enter")
    await expect(page.get_by_role("group", name="Attributes of answer")).to_contain_text(json.dumps(MARKUP))
    for label in ("length@2", "latency@1", "full@1"):
        await expect(page.get_by_role("heading", name=label)).to_be_visible()
    await picture(page, "job-row")
    use = page.get_by_role("link", name="Use in the workbench")
    assert await use.get_attribute("href") == f"/?job={seeds.small}&row=3"
    await page.get_by_role("link", name="Next").click()
    await expect(page.get_by_role("heading", name="Row 4")).to_be_visible()
    await page.goto(f"/jobs/{seeds.small}/rows/99")
    await expect(page.get_by_role("main")).to_contain_text("its rows are 0 to 11")


@pytest.mark.long
async def test_a_result_of_a_megabyte_is_shown_in_part_and_in_whole_when_asked(page: Page, host: Server) -> None:
    code = "def evaluate(i, outputs, t):\n    print('p' * 50_000)\n    return {'score': 1, 'reason': 'r' * 900, 'big': {'all': outputs}}\n"
    rows = [{"inputs": {"n": n}, "outputs": "x" * 1_000_000} for n in range(3)]
    with Client(host.url) as client:
        job = await asyncio.to_thread(client.jobs.create, [Evaluator(code)], rows)
        await asyncio.to_thread(client.jobs.wait, job.id)
        short = await asyncio.to_thread(client._transport.http.get, f"/v1/jobs/{job.id}/rows?brief=true")
    assert len(short.content) < 12_000
    await page.goto(f"/jobs/{job.id}")
    await expect(count(page)).to_contain_text("3 rows")
    await rows_link(page, "1").click()
    outputs = page.get_by_role("group", name="Outputs")
    await expect(outputs).to_have_text("x" * 20_000 + "…")
    await page.get_by_role("button", name="Show 980,000 more characters").click()
    await expect(outputs).to_have_text("x" * 1_000_000)
    await expect(page.get_by_text("Printed")).to_be_visible()
    again = page.get_by_role("link", name="Run it again")
    await expect(again).to_have_attribute("href", f"/?job={job.id}&row=1&label=evaluator%201")
    await again.click()
    await expect(page.get_by_text("'p' * 50_000")).to_be_visible()
    await expect(page).to_have_url(f"{host.url}/")  # the row is no longer in the address, because edits stay in the tab


@pytest.mark.long
async def test_bars_are_chosen_by_keyboard_too(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}")
    await page.get_by_text("Distribution, slowest rows").press("Enter")
    await page.get_by_text("Data as a table").press("Enter")
    await page.get_by_role("button", name="Show line 10", exact=True).press("Enter")
    await expect(page.get_by_role("button", name="Remove the filter score 0.9 to 1")).to_be_visible()

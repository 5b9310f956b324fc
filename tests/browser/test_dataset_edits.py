"""Users can edit data sets on the pages: they find, change, add and remove rows, count the values of columns, and
compare and restore versions.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Page, expect

from evaluator_host.client import Client
from tests.browser.looking import grave_findings, picture, widest_overflow
from tests.browser.seeds import MARKUP, Seeds
from tests.server import Server

pytestmark = pytest.mark.long("test_datasets.py tests the main features of the same page")

CITIES = [
    {"question": f"Capital {n}?", "city": ("Rome", "Lima")[n % 2], "score": n / 10, "meta": {"n": n}} for n in range(8)
]


async def both_themes_and_widths(page: Page, name: str) -> None:
    """Check that axe finds nothing serious in either theme, and that nothing sticks out of a narrow window."""
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert await grave_findings(page, colours=theme == "dark") == [], (name, theme)
        await picture(page, f"{name}-{theme}")
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await widest_overflow(page) == 0, name
    await picture(page, f"{name}-390")
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": 1280, "height": 800})


@pytest.fixture
def cities(host: Server) -> Iterator[Client]:
    """Store eight rows, and yield a client."""
    with Client(host.url) as client:
        client.datasets.upload("cities", CITIES)
        yield client
        client.datasets.delete("cities")


def rows_of(client: Client, name: str = "cities") -> list[dict[str, Any]]:
    return list(client.datasets.rows(name))


async def test_whole_numbers_keep_their_digits_when_another_column_is_changed(page: Page, host: Server) -> None:
    large = {"id": 2**53 + 1, "span": {"ids": [-(10**24) - 7, 1.5, 3]}, "note": "as it was"}
    with Client(host.url) as client:
        client.datasets.upload("large-ids", [large])
        await page.goto("/datasets/large-ids?row=0")
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("group", name="id")).to_have_text(str(large["id"]))
        await dialog.get_by_role("button", name="Change").click()
        await dialog.get_by_label("note", exact=True).fill("as it is")
        await dialog.get_by_role("button", name="Save as version 2").click()
        await expect(page.get_by_text("Row 0 changed: version 2")).to_be_visible()
        assert rows_of(client, "large-ids") == [{**large, "note": "as it is"}]
        await page.goto("/?dataset=large-ids&row=0")
        await expect(page.get_by_role("textbox", name="inputs")).to_contain_text(str(large["id"]))
        client.datasets.delete("large-ids")


async def test_columns_may_have_names_that_javascript_uses_itself(page: Page, host: Server) -> None:
    rows = [{"constructor": "a", "__proto__": "b"}, {"question": "c"}]
    with Client(host.url) as client:
        client.datasets.upload("odd-names", rows)
        for row, name in ((0, "__proto__"), (1, "question")):
            await page.goto(f"/datasets/odd-names?row={row}")
            dialog = page.get_by_role("dialog")
            await dialog.get_by_role("button", name="Change").click()
            await dialog.get_by_label(name, exact=True).fill("new")
            await dialog.get_by_role("button", name=f"Save as version {row + 2}").click()
            await expect(page.get_by_text(f"Row {row} changed: version {row + 2}")).to_be_visible()
            await expect(page.get_by_text("native code")).to_have_count(0)
        client.datasets.edit("odd-names", set={0: {"question": "d"}})
        await page.goto("/datasets/odd-names?tab=versions")
        changed = page.get_by_role("region", name="Changed rows")
        for change in ("constructor: a → no value", "__proto__: new → no value", "question: no value → d"):
            await expect(changed).to_contain_text(change)
        client.datasets.edit("odd-names", set={0: {**rows[0], "__proto__": "new"}})
        assert rows_of(client, "odd-names") == [{**rows[0], "__proto__": "new"}, {"question": "new"}]
        client.datasets.delete("odd-names")


async def test_rows_are_found_changed_added_and_removed(page: Page, cities: Client) -> None:
    await page.goto("/datasets/cities")
    await page.get_by_label("Column of a condition").select_option("city")
    await page.get_by_label("Value", exact=True).fill("Lima")
    await page.get_by_role("button", name="Add condition").click()
    await expect(page.get_by_text("4 matches in 8 rows")).to_be_visible()
    await page.get_by_role("button", name="score", exact=True).click()
    await page.get_by_role("button", name="score", exact=True).click()  # the second click sorts in descending order
    await expect(page.locator("tbody tr").first.get_by_role("button")).to_have_text("7")
    await both_themes_and_widths(page, "dataset-found")
    await page.get_by_role("button", name="Row 7").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Next").click()
    await expect(dialog.get_by_role("group", name="question")).to_have_text("Capital 5?")
    await dialog.get_by_role("button", name="Change").click()
    await dialog.get_by_label("question", exact=True).fill(MARKUP)
    await dialog.get_by_label("meta", exact=True).fill('{"n": ')
    await dialog.get_by_role("button", name="Save as version 2").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("meta: This is not valid JSON")
    await dialog.get_by_label("meta", exact=True).fill('{"n": 55}')
    await both_themes_and_widths(page, "dataset-row-form")
    await dialog.get_by_role("button", name="Save as version 2").click()
    await expect(page.get_by_text("Row 5 changed: version 2")).to_be_visible()
    await expect(page.get_by_role("cell", name=MARKUP)).to_be_visible()
    await page.get_by_role("button", name="Add a row…").click()
    await dialog.get_by_label("question", exact=True).fill("Capital of Peru?")
    await dialog.get_by_label("Kind of score").select_option("none")
    await dialog.get_by_role("button", name="Add a column").click()
    await dialog.get_by_label("Name of column 5").fill("note")
    await dialog.get_by_label("note", exact=True).fill("new")
    await dialog.get_by_role("button", name="Save as version 3").click()
    await page.get_by_role("button", name="Remove the condition city=Lima").click()
    await expect(page.get_by_text("9 rows").first).to_be_visible()
    for row in ("0", "2"):
        await page.get_by_role("checkbox", name=f"Select row {row}").check()
    await page.get_by_role("button", name="Remove 2 rows").click()
    await dialog.get_by_role("button", name="Remove 2 rows").click()
    await expect(page.get_by_text("2 rows removed: version 4")).to_be_visible()
    rows = rows_of(cities)
    assert rows[-1] == {"question": "Capital of Peru?", "city": "", "note": "new"}
    assert [row["question"] for row in rows[:4]] == ["Capital 1?", "Capital 3?", "Capital 4?", MARKUP]
    assert rows[3]["meta"] == {"n": 55}


async def test_a_row_that_others_changed_is_not_overwritten(page: Page, cities: Client) -> None:
    await page.goto("/datasets/cities?row=1")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Change").click()
    cities.datasets.edit("cities", remove=[0])
    await dialog.get_by_role("button", name="Save as version 2").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("version 1 is no longer the newest")
    assert len(rows_of(cities)) == 7


async def test_columns_are_counted_and_versions_compared_and_restored(page: Page, cities: Client) -> None:
    cities.datasets.edit("cities", set={1: {**CITIES[1], "city": "Quito"}}, remove=[4], add=[{"question": MARKUP}])
    await page.goto("/datasets/cities?tab=columns")
    await expect(page.get_by_role("row", name="score")).to_contain_text("0 to 0.7, mean")
    await both_themes_and_widths(page, "dataset-columns")
    await page.get_by_role("button", name="Rows where city is Lima").click()
    await expect(page.get_by_text("3 matches in 8 rows")).to_be_visible()
    await page.get_by_role("button", name="Versions").click()
    await expect(page.get_by_text("1 row changed, 1 added, 1 removed.")).to_be_visible()
    changed = page.get_by_role("region", name="Changed rows")
    await expect(changed).to_contain_text("city: Lima → Quito")
    await both_themes_and_widths(page, "dataset-versions")
    await page.get_by_role("link", name="cities@1").click()
    await expect(page.get_by_text("This is an older version")).to_be_visible()
    await expect(page.get_by_role("button", name="Add a row…")).to_have_count(0)
    await page.go_back()
    await page.get_by_role("button", name="Restore as version 3").click()
    await expect(page.get_by_text("Version 1 is the newest again, as version 3")).to_be_visible()
    assert rows_of(cities) == CITIES


async def test_rows_of_a_job_and_traces_become_rows_of_a_data_set(page: Page, host: Server, seeds: Seeds) -> None:
    dialog = page.get_by_role("dialog", name="to a data set")
    await page.goto(f"/jobs/{seeds.before}?outcome=failed")
    await page.get_by_role("button", name="Add the 50 rows shown to a data set…").click()
    await dialog.get_by_label("Its name").fill("failures")
    await dialog.get_by_role("button", name="Add 50 rows").click()
    await expect(page.get_by_text("50 rows added to failures, version 1")).to_be_visible()
    await page.goto(f"/jobs/{seeds.small}/rows/3")
    await page.get_by_role("button", name="Add to a data set…").click()
    await expect(dialog.get_by_label("Data set")).to_have_value("failures")
    await both_themes_and_widths(page, "dataset-add")
    await dialog.get_by_role("button", name="Add 1 row").click()
    await expect(page.get_by_text("1 row added to failures, version 2")).to_be_visible()
    await page.goto("/evaluators/latency?tab=traces&trace=1")
    await page.get_by_role("button", name="Add to a data set…").click()
    await dialog.get_by_role("button", name="Add 1 trace").click()
    await page.get_by_role("link", name="View", exact=True).click()
    await expect(page.get_by_text("rows 50 to 51 of 52")).to_be_visible()
    with Client(host.url) as client:
        rows = rows_of(client, "failures")[49:]
        client.datasets.delete("failures")
    assert rows[0]["answer"] is None
    assert rows[1]["inputs"]["n"] == 3
    assert "request" in str(rows[2]["trace"])

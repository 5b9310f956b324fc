"""Features that every page has: the palette, help, sample data, the gallery, and a message while the host cannot be
reached.
"""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.looking import Look, grave_findings, looking, picture, widest_overflow
from tests.browser.writing import open_workbench
from tests.server import Server

ROOT = Path(__file__).parents[2]


@pytest.mark.long
async def test_anything_is_found_by_a_few_letters(page: Page) -> None:
    await page.goto("/jobs")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.keyboard.press("ControlOrMeta+k")
    box = page.get_by_role("combobox", name="Find a page")
    await expect(box).to_be_focused()
    await box.fill("conversations")
    await expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text("Conversations")
    assert await grave_findings(page) == []
    await picture(page, "palette")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Conversations")).to_be_in_viewport()
    assert await page.title() == "Contracts · Help · Evaluator Host"


@pytest.mark.long
async def test_pages_are_found_before_what_is_written_about_them(page: Page) -> None:
    await page.goto("/jobs")
    await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    await page.keyboard.press("ControlOrMeta+k")
    await page.get_by_role("combobox", name="Find a page").fill("key")
    await expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text("API keys")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="API keys")).to_be_visible()


async def test_the_documentation_is_read_inside(look: Look) -> None:
    page = await look.page(width=390, height=844)
    await page.goto("/jobs")
    await page.get_by_role("button", name="Help").click()
    dialog = page.get_by_role("dialog", name="Help")
    assert await grave_findings(page) == []
    await dialog.get_by_role("link", name="Jobs, data sets").click()
    await expect(page.get_by_role("heading", name="Named evaluators")).to_be_visible()
    contents = page.get_by_role("navigation", name="Pages of the documentation")
    sections = re.findall(r"^## (.*)$", (ROOT / "docs" / "README.md").read_text("utf-8"), re.MULTILINE)
    # the last section lists only words, so the page leaves it out
    await expect(contents.get_by_role("heading")).to_have_text(sections[:-1])
    await contents.get_by_label("Find in the headings").fill("zebra")
    await expect(contents.get_by_role("listitem")).to_have_count(0)
    await expect(contents.get_by_text("No heading has “zebra”")).to_be_visible()
    await contents.get_by_label("Find in the headings").fill("")
    assert await widest_overflow(page) == 0
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert await grave_findings(page, colours=theme == "dark") == [], theme
    await picture(page, "help-jobs-390")
    await page.get_by_role("article").get_by_role("link", name="Live traffic", exact=False).first.click()
    await page.goto("/help/wires/opik")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Opik")
    await page.goto("/help/nothing")
    await expect(page.get_by_text("There is no page nothing")).to_be_visible()


@pytest.mark.long
async def test_sample_data_shows_jobs_and_their_change_in_one_click(browser: Browser, bare: Server) -> None:
    async with looking(browser, bare.url) as look:
        page = await look.page()
        await page.goto("/jobs")
        await page.get_by_role("button", name="Load the sample data").click()
        rows = page.get_by_role("region", name="Jobs").locator("tbody tr")
        await expect(rows).to_have_count(2)
        await expect(rows.first).to_contain_text("completed, 4.2 % of results failed", timeout=60_000)
        await expect(rows.first).to_contain_text("over 23 of 24 rows")
        # both jobs scored the same rows with the same code
        await expect(rows.first.get_by_role("link", name="no change")).to_be_visible()
        await page.get_by_label("Find a job").fill("contains")
        await expect(rows).to_have_count(1)
        assert await grave_findings(page) == []
        await picture(page, "jobs-samples")
        await rows.get_by_role("link", name="no change").click()
        await expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
        # a toast says that a job has ended if this browser started the job
        await expect(page.get_by_text("completed").first).to_be_visible()


@pytest.mark.long
async def test_examples_are_found_by_words(page: Page) -> None:
    await open_workbench(page)
    await page.get_by_role("button", name="Examples…").click()
    gallery = page.get_by_role("dialog", name="Examples")
    await gallery.get_by_label("Find an example").fill("tokens trace")
    await expect(gallery.get_by_role("listitem")).to_have_count(1)
    assert await grave_findings(page) == []
    await picture(page, "gallery")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Code of the evaluator")).to_contain_text("max_tokens")


@pytest.mark.long
async def test_a_host_that_is_gone_is_asked_again_until_it_is_back(page: Page) -> None:
    await page.goto("/jobs")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()

    async def gone(route: Route) -> None:
        await route.abort()

    for path in ("**/v1/**", "**/healthz"):
        await page.route(path, gone)
    await page.get_by_role("link", name="Data sets", exact=True).click()
    banner = page.get_by_text("This page tries again every few seconds")
    await expect(banner).to_be_visible()
    await page.unroute_all()
    await expect(banner).to_have_count(0)
    await expect(page.get_by_role("alert")).to_have_count(0)  # the parts that could not be loaded before are loaded now

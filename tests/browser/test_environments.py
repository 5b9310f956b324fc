"""On a host that has no environment yet, users of the pages watch an installation, see one fail, and read and delete
environments.
"""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.looking import Look, grave_findings, looking, picture
from tests.python_versions import OTHER
from tests.server import Server


@pytest.fixture
async def bare_look(browser: Browser, bare: Server) -> AsyncIterator[Look]:
    async with looking(browser, bare.url) as opened:
        yield opened


async def install(page: Page, packages: str, language: str = "python") -> None:
    await page.get_by_role("button", name="Install packages").click()
    dialog = page.get_by_role("dialog", name="Install packages")
    await dialog.get_by_label("Language").select_option(language)
    await dialog.get_by_label("Packages, one per line").fill(packages)
    await dialog.get_by_role("button", name="Install").click()


@pytest.mark.long
async def test_empty_lists_say_what_would_be_there(bare_look: Look) -> None:
    page = await bare_look.page()
    for path, text in (
        ("/evaluators", "No stored evaluators yet"),
        ("/datasets", "Drop a file here"),
        ("/jobs", "No jobs yet"),
        ("/jobs/new", "There is no data set yet"),
    ):
        await page.goto(path)
        await expect(page.get_by_text(text).first).to_be_visible()
        assert await grave_findings(page) == []
        await picture(page, f"empty-{path.strip('/').replace('/', '-')}")
    await page.goto("/jobs?status=paused")
    await expect(page.get_by_text("No matching jobs")).to_be_visible()
    await page.get_by_role("button", name="Show all jobs").click()
    await expect(page.get_by_text("No jobs yet")).to_be_visible()


async def test_packages_are_installed_as_one_looks_on_and_deleted(bare_look: Look) -> None:
    page = await bare_look.page()
    await page.goto("/environments")
    await install(page, "six==1.17.0\n")
    await expect(page.get_by_role("heading", name="six 1.17.0")).to_be_visible()
    await expect(page.locator(".record-title").get_by_text("ready")).to_be_visible()
    await expect(page.get_by_role("group", name="Lock")).to_contain_text("six==1.17.0")
    await expect(page.get_by_role("row", name="six 1.17.0 pinned")).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "environment-ready")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Save requirements.lock").click()
    assert "--hash=sha256:" in (await (await download.value).path()).read_text()
    await page.get_by_role("link", name="Packages").last.click()
    await expect(page.get_by_role("link", name="six 1.17.0")).to_be_visible()
    await page.get_by_role("link", name="six 1.17.0").click()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("The package set was deleted")).to_be_visible()
    await expect(page.get_by_role("link", name="six 1.17.0")).to_have_count(0)


@pytest.mark.long
async def test_packages_are_installed_for_another_python(bare_look: Look) -> None:
    page = await bare_look.page()
    await page.goto("/environments?new=1")
    dialog = page.get_by_role("dialog", name="Install packages")
    await dialog.get_by_label("Language").select_option("javascript")
    await expect(dialog.get_by_label("Python", exact=True)).to_have_count(0)
    await dialog.get_by_label("Language").select_option("python")
    await dialog.get_by_label("Python", exact=True).select_option(OTHER)
    await dialog.get_by_label("Packages, one per line").fill("six==1.17.0")
    await picture(page, "environment-python")
    await dialog.get_by_role("button", name="Install").click()
    await expect(page.locator(".record-title").get_by_text("ready")).to_be_visible()
    await expect(page.get_by_text(f"python {OTHER}")).to_be_visible()


@pytest.mark.long
async def test_an_invalid_pin_is_refused_and_a_build_that_fails_says_why(bare_look: Look) -> None:
    page = await bare_look.page()
    await page.goto("/environments?new=1")
    dialog = page.get_by_role("dialog", name="Install packages")
    await dialog.get_by_label("Packages, one per line").fill("six>=1")
    await dialog.get_by_role("button", name="Install").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("six")
    await dialog.get_by_label("Packages, one per line").fill("six==99.99.99")
    await dialog.get_by_role("button", name="Install").click()
    await expect(page.get_by_text("The packages could not be installed")).to_be_visible()
    await expect(page.get_by_role("region", name="Why the build failed")).to_contain_text("99.99.99")
    await expect(page.get_by_role("heading", name="six 99.99.99")).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "environment-failed")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("The packages could not be installed")).to_be_visible()
    await page.goto("/environments")
    await expect(page.get_by_role("row", name="99.99.99")).to_contain_text("failed")

"""Features of every page of the workbench: the frame, deep links, themes, a field for the key if the host needs one,
and the content security policy.
"""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Final, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from evaluator_host.web.workbench import DIST
from tests.browser.looking import Look, grave_findings, looking, picture, widest_overflow
from tests.browser.seeds import Seeds
from tests.keyed import make_key
from tests.server import Server

PLACES = {
    "/": "Workbench",
    "/evaluators": "Evaluators",
    "/datasets": "Data sets",
    "/jobs": "Jobs",
    "/labels": "Review",
}
SETUP = {
    "/models": "Models",
    "/models?show=secrets": "Secrets",
    "/schedules": "Schedules",
    "/environments": "Packages",
    "/models?show=keys": "API keys",
    "/migrate": "Import and migration",
    "/models?show=usage": "Usage",
}

THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A host that needs a key, and a key that works."""
    folder = tmp_path_factory.mktemp("keyed")
    url = f"sqlite:///{folder / 'host.db'}"
    key = make_key("people", "default", url=url)
    with Server(log=folder / "log", environment={"EVALUATOR_HOST_DATABASE_URL": url}) as running:
        yield running, key


async def test_every_page_is_reached_by_its_link_and_by_its_address(page: Page) -> None:
    await page.goto("/")
    for path, label in PLACES.items():
        await page.get_by_role("navigation", name="Main").get_by_role("link", name=label, exact=True).click()
        await expect(page).to_have_url(f"{page.url.split('/', 3)[0]}//{page.url.split('/', 3)[2]}{path}")
        await expect(page.get_by_role("heading", level=1)).to_have_count(1)
    for path, label in PLACES.items():
        await page.goto(path)
        lit = page.locator("nav [aria-current=page]")
        await expect(lit).to_have_text(label)
    await page.go_back()
    await expect(page.locator("nav [aria-current=page]")).to_have_text("Jobs")
    for path, label in SETUP.items():
        await page.get_by_role("button", name="Set up").click()
        await page.get_by_role("menuitem", name=label, exact=True).click()
        await expect(page).to_have_url(f"{page.url.split('/', 3)[0]}//{page.url.split('/', 3)[2]}{path}")
        await expect(page.get_by_role("heading", level=1)).to_have_count(1)
        await expect(page.get_by_role("menu")).to_have_count(0)
    await page.get_by_role("link", name="Alerts").click()
    await expect(page).to_have_url(re.compile(r"/schedules\?show=alerts$"))


@pytest.mark.long
async def test_an_address_with_escapes_that_are_not_valid_is_a_page_too(look: Look) -> None:
    page = await look.page()
    for path, words in (
        ("/evaluators/%E0%A4%A", "There is no evaluator %E0%A4%A"),
        ("/evaluators/100%25", "There is no evaluator 100%"),
        ("/nowhere/%E0%A4%A", "/nowhere/%E0%A4%A"),
        ("/evaluators/a%252Fb", "There is no evaluator a%2Fb"),
    ):
        await page.goto(path)
        await expect(page.get_by_role("main")).to_contain_text(words)
    look.faults.clear()  # the 404 of this page is expected


@pytest.mark.long
async def test_axe_finds_nothing_grave_on_any_page_and_each_fits_narrow_and_wide_windows(look: Look) -> None:
    page = await look.page()
    for path in (*PLACES, *SETUP):
        await page.goto(path)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        # wait until everything is shown, because an element that still fades in has too little contrast
        await expect(page.locator("main .spinner")).to_have_count(0)
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme)
            assert await grave_findings(page, colours=theme == "dark") == [], (path, theme)
        for width in (400, 2560, 1280):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await widest_overflow(page) == 0, (width, path)
            await picture(page, f"frame-{width}-{path.strip('/') or 'workbench'}")


@pytest.mark.long
async def test_a_narrow_navigation_shows_where_one_is(look: Look) -> None:
    page = await look.page(width=320)
    await page.goto("/labels")
    await expect(page.get_by_role("link", name="Review")).to_be_in_viewport(ratio=1)
    await expect(page.locator("nav[data-more-before]:not([data-more-after])")).to_have_count(1)
    await page.goto("/")
    await expect(page.locator("nav[data-more-after]:not([data-more-before])")).to_have_count(1)


@pytest.mark.long
async def test_the_theme_is_the_systems_until_one_is_chosen(look: Look) -> None:
    page = await look.page(theme="dark")
    await page.goto("/jobs")
    dark = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    await page.get_by_role("button", name="Use the light theme").click()
    light = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    await page.reload()
    await expect(page.get_by_role("button", name="Use the dark theme")).to_be_visible()
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == light


@pytest.mark.long
async def test_the_keyboard_skips_the_navigation(page: Page) -> None:
    await page.goto("/jobs")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()


@pytest.mark.long
async def test_a_page_for_a_missing_record_suggests_a_name_and_links_to_the_list(page: Page, seeds: Seeds) -> None:
    await page.goto("/evaluators/lengt")
    await expect(page.get_by_text("There is no evaluator lengt.")).to_be_visible()
    await page.get_by_role("link", name="length", exact=True).click()
    await expect(page).to_have_url(re.compile("/evaluators/length$"))
    for path, words, way in (
        ("/jobs/nope", "There is no job nope.", "All jobs"),
        ("/datasets/nope", "There is no data set nope.", "All data sets"),
        (f"/jobs/{seeds.small}/rows/99", "row 99", "The job and its rows"),
        ("/labels/nope", "There is no label queue nope.", "All label queues"),
        ("/dataset/many", "There is no page at /dataset/many.", "Data sets"),
    ):
        await page.goto(path)
        await expect(page.get_by_role("main")).to_contain_text(words)
        await expect(page.get_by_role("main").get_by_role("link", name=way, exact=True).last).to_be_visible()


@pytest.mark.long
async def test_a_filter_that_is_kept_is_a_link(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.small}?evaluator=length%402&outcome=scored&sort=score")
    await page.get_by_role("button", name="Keep this filter").click()
    await page.goto(f"/jobs/{seeds.before}?evaluator=length%401&at=50")
    await page.get_by_role("group", name="Kept filters").get_by_role("link", name="scored · score").click()
    await expect(page).to_have_url(re.compile(r"\?evaluator=length%401&outcome=scored&sort=score$"))
    await expect(page.get_by_label("Outcome")).to_have_value("scored")
    await page.get_by_role("button", name="Forget the filter scored · score").click()
    await expect(page.get_by_role("group", name="Kept filters").get_by_role("link")).to_have_count(0)
    await page.reload()
    await expect(page.get_by_role("button", name="Keep this filter")).to_be_visible()


@pytest.mark.long
async def test_a_path_that_is_not_a_page_shows_a_message(page: Page) -> None:
    await page.goto("/jobs/a/b/c/d")
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    answer = await page.goto("/nothing")
    assert answer is not None
    assert answer.status == 404
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    assert await page.title() == "Page not found · Evaluator Host"
    asked = await page.request.get("/nothing", headers={"Accept": "application/json"})
    assert (asked.status, (await asked.json())["code"]) == (404, "not_found")


@pytest.mark.long
async def test_the_licences_of_what_is_in_the_pages_come_with_them(page: Page) -> None:
    await page.goto("/")
    href = await page.locator("link[rel=license]").get_attribute("href")
    assert href is not None
    answer = await page.request.get(href)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    text = await answer.text()
    locked = json.loads((DIST.parent / "package-lock.json").read_text())["packages"]
    assert {
        name
        for name in locked[""]["dependencies"]
        if f"\n{name} {locked[f'node_modules/{name}']['version']} (" not in text
    } == set()
    assert text.count("Permission is hereby granted, free of charge") >= len(locked[""]["dependencies"])


async def test_the_policy_stops_markup_that_got_in_somehow(look: Look) -> None:
    page = await look.page()
    await page.goto("/jobs")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    thrown = await page.evaluate(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return null } catch (e) { return e.name } })()"
    )
    assert thrown == "TypeError"
    await page.evaluate(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x'}))"
    )
    blocked = await page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'stopped')")
    assert blocked == "stopped"
    assert look.faults
    look.faults.clear()


async def test_a_host_with_keys_shows_its_pages_and_asks_for_one(browser: Browser, keyed: tuple[Server, str]) -> None:
    host, key = keyed
    async with looking(browser, host.url) as look:
        page = await look.page()
        await page.goto("/jobs")
        await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        asked = page.get_by_role("dialog", name="This host needs a key")
        await expect(asked).to_be_visible()
        assert await grave_findings(page) == []
        await asked.get_by_label("API key").fill("eh_" + "x" * 40)
        await asked.get_by_role("button", name="Use this key").click()
        await expect(asked.get_by_text("This key is not valid")).to_be_visible()
        await asked.get_by_label("API key").fill(key)
        await page.keyboard.press("Enter")
        await expect(asked).to_be_hidden()
        await page.reload()
        await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        await expect(asked).to_be_hidden()


@pytest.mark.long
async def test_the_page_about_the_api_loads_nothing_from_other_hosts(look: Look, keyed: tuple[Server, str]) -> None:
    """The page that describes the API loads nothing from elsewhere. If the host needs a key, the page uses the key that
    the user entered in this tab.
    """
    host, key = keyed
    page = await look.page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{host.url}/docs")
    await expect(page.get_by_text("This host needs a key")).to_be_visible()
    await page.evaluate("key => sessionStorage.setItem('key', key)", key)
    await page.reload()
    await page.get_by_role("button", name="get /healthz", exact=True).click()
    await page.get_by_role("button", name="Try it out").click()
    await page.get_by_role("button", name="Execute").click()
    await expect(page.locator(".live-responses-table").get_by_text('"ok"')).to_be_visible()
    for width, theme in itertools.product((1280, 390), THEMES):
        await page.set_viewport_size({"width": width, "height": 800})
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for place in ("window.scrollTo(0, 0)", "document.querySelector('.models').scrollIntoView()"):
            await page.evaluate(place)
            assert await grave_findings(page) == [], (width, theme, place)
        await picture(page, f"docs-{width}-{theme}")
    await page.get_by_role("link", name="Routes of nemo").click()
    await expect(page.get_by_text("/apis/entities/v2/workspaces").first).to_be_visible()
    assert {url.split("/assets/")[0] for url in asked if "/assets/" in url} == {host.url}
    assert all(url.startswith((host.url, "data:")) for url in asked)

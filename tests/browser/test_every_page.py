"""Every page of the workbench: axe finds nothing grave in either theme, and the page loads little script before it
is shown.
"""

import re
from collections.abc import Callable
from typing import Final, Literal

import pytest
from playwright.async_api import expect

from evaluator_host.client import Client
from evaluator_host.web.workbench import DIST
from tests.browser.looking import WATCHED, Look, grave_findings
from tests.browser.seeds import Seeds
from tests.server import Server

ROUTES: Final[list[str]] = re.findall(r'path: "([^"]+)"', (DIST.parent / "src" / "routes.ts").read_text("utf-8"))
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
MOST_SCRIPT_BYTES: Final = 120_000
SHOWN: Final = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  const scripts = performance.getEntriesByType("resource").filter((one) => /\\.js$/.test(one.name) && one.startTime < window.shownAt);
  return [paint, scripts.reduce((sum, one) => sum + one.encodedBodySize, 0)];
}"""
"""Function that returns milliseconds to the first paint, and bytes of the scripts requested before all was shown."""


def address(route: str, seeds: Seeds) -> str:
    """Return the address of a route in which each parameter names an existing record."""
    named = {
        "/evaluators/:name": "/evaluators/length",
        "/datasets/:name": "/datasets/many",
        "/labels/:name": "/labels/every-page",
        "/help/:page": "/help/jobs",
        "/help/:folder/:page": "/help/wires/webhook",
        "/environments/:key": "/environments/unknown",
        "/compare": f"/compare?jobs={seeds.before},{seeds.after}",
    }
    values = {":id": seeds.small, ":index": "1", ":before": seeds.before, ":after": seeds.after}
    return named[route] if route in named else re.sub(r":\w+", lambda name: values[name[0]], route)


@pytest.mark.long("this loads all pages; the other files in this folder test what each page shows")
async def test_axe_finds_nothing_and_little_script_comes_before_the_page_is_shown(
    look: Look, host: Server, seeds: Seeds, record_property: Callable[[str, object], None]
) -> None:
    with Client(host.url) as client:
        client.labels.create("every-page", dataset="many")
    for route in ROUTES:
        page = await look.page()
        await page.add_init_script(WATCHED)
        await page.goto(address(route, seeds))
        await expect(page.get_by_role("heading", level=1).first).to_be_visible()
        await expect(page.locator("main .spinner")).to_have_count(0)
        painted_ms, script_bytes = await page.evaluate(SHOWN)
        record_property(route, f"first paint {painted_ms:.0f} ms, {script_bytes} bytes of script")
        assert 0 < script_bytes <= MOST_SCRIPT_BYTES, route
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme)
            assert await grave_findings(page, colours=theme == "dark") == [], (route, theme)
        await page.close()

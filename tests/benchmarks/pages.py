"""Measures how long Chromium takes to first paint each page with an empty cache, and compares it with the first paint
of `/healthz`, the smallest page of a host.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import Browser, async_playwright

from evaluator_host.client import Client
from tests.browser.conftest import CHROMIUM
from tests.browser.looking import WATCHED
from tests.browser.seeds import sow
from tests.browser.test_every_page import ROUTES, address

EMPTY: Final = "/healthz"
"""A page with one word. Its first paint is the floor with which the first paints of other pages are compared."""
TURNS: Final = 9
FLAGS: Final = ("--no-sandbox", "--disable-gpu")  # the tests' flags are not used, because they reduce compiling
PAINTED: Final = """(isPage) => new Promise((done) => {
  const look = () => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
    if (paint === undefined || (isPage && window.shownAt === undefined)) return setTimeout(look, 50);
    const shown = Math.max(paint, window.shownAt ?? 0);
    const scripts = performance.getEntriesByType("resource").filter((one) => /\\.js$/.test(one.name) && one.startTime < shown);
    done([paint, shown, scripts.reduce((sum, one) => sum + one.encodedBodySize, 0)]);
  };
  look();
})"""
"""Function that returns milliseconds to the first paint, milliseconds until all was shown, and bytes of scripts requested until then."""


@dataclass(frozen=True, slots=True)
class Loads:
    """The measurements of all loads of a page.

    Attributes:
      paint_ms: Milliseconds until the page showed anything.
      shown_ms: Milliseconds until the page showed its heading and its records.
      worked_ms: Milliseconds of processor time that the page's process used until it showed its records.
      script_kb: Size, as sent, of the scripts requested until then.
    """

    paint_ms: list[float] = field(default_factory=list)
    shown_ms: list[float] = field(default_factory=list)
    worked_ms: list[float] = field(default_factory=list)
    script_kb: list[float] = field(default_factory=list)


def addresses(url: str) -> dict[str, str]:
    """Store records on a host; return the addresses of the pages that show the records, by route."""
    with Client(url) as client:
        seeds = sow(client, many=10_000)
        client.labels.create("every-page", dataset="many")
    return {route: address(route, seeds) for route in ROUTES} | {"/docs": "/docs"}


async def loads(url: str, paths: Mapping[str, str], *, turns: int = TURNS) -> dict[str, Loads]:
    """Load each page and `EMPTY` alternately, each in a new window. The first round only warms the host, and is not
    counted.

    Args:
      paths: The address of each page, by the page's name in the result.
    """
    found = {name: Loads() for name in (EMPTY, *paths)}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for turn in range(turns + 1):
            for name, its in found.items():
                await _load(browser, url, paths.get(name, EMPTY), its if turn else Loads())
        await browser.close()
    return found


async def _load(browser: Browser, url: str, path: str, into: Loads) -> None:
    context = await browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    await context.add_init_script(WATCHED)
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Performance.enable")

    async def worked_s() -> float:
        metrics = (await session.send("Performance.getMetrics"))["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == "ProcessTime")

    before_s = await worked_s()
    await page.goto(path, wait_until="commit")
    paint_ms, shown_ms, script_bytes = await page.evaluate(PAINTED, path != EMPTY)
    into.worked_ms.append(1000 * (await worked_s() - before_s))
    into.paint_ms.append(paint_ms)
    into.shown_ms.append(shown_ms)
    into.script_kb.append(script_bytes / 1000)
    await context.close()

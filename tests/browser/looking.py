"""Opens windows of the browser; collects their faults and the findings of axe, and takes pictures."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Error, Page, ViewportSize

from evaluator_host.web.workbench import DIST

SETTLED = """
new Promise((settle) => {
  const look = () => (document.getAnimations().some(moves) ? requestAnimationFrame(look) : settle());
  const moves = (one) => one.playState === 'running' && one.effect.getComputedTiming().endTime < Infinity;
  requestAnimationFrame(look);
})
""".strip()
"""Script that ends once the page's theme is applied and no colour changes any more, because only then can contrast be
checked. It does not wait for an animation's `finished`, because Chromium never resolves that promise if the element
disappears in the meantime.
"""
WATCHED: Final = """
new MutationObserver(() => {
  const isShown = document.querySelector("main h1, header h1") !== null && document.querySelector("main .spinner") === null;
  if (!isShown) window.shownAt = undefined;
  else window.shownAt ??= performance.now();
}).observe(document, { childList: true, subtree: true });
"""
"""Script that records when the page showed its heading and had loaded everything."""
AXE = DIST.parent / "node_modules" / "axe-core" / "axe.min.js"
# folder for pictures; if the variable is not set, no pictures are taken
PICTURES = os.environ.get("EVALUATOR_HOST_TEST_PICTURES")
GRAVE = ("moderate", "serious", "critical")


class Look:
    """Opens windows, and records what went wrong in them.

    Attributes:
      faults: Errors on the console, exceptions that nobody caught, and violations of the page's content security
        policy. A test that expects faults removes them from this list.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self.faults: list[str] = []

    async def page(
        self, *, width: int = 1280, height: int = 800, theme: Literal["light", "dark"] = "light", **options: Any
    ) -> Page:
        """Open a window that shares nothing with other windows. Its `goto` accepts paths."""
        context = await self._new_context(**options) if options else await self._emptied()
        page = await context.new_page()
        await page.set_viewport_size(ViewportSize(width=width, height=height))
        await page.emulate_media(color_scheme=theme)
        page.on("console", self._heard)
        page.on("pageerror", self._threw)
        return page

    async def _emptied(self) -> BrowserContext:
        """Empty the storage of an earlier window's context, and return the context.

        Contexts are used again because a new context would load the pages' code again, which takes half a second.
        """
        if (self._browser, self._url) not in _KEPT:
            _KEPT[self._browser, self._url] = await self._new_context()
        kept = _KEPT[self._browser, self._url]
        if kept.pages:
            return await self._new_context()
        page = await kept.new_page()
        session = await kept.new_cdp_session(page)
        await session.send("Storage.clearDataForOrigin", {"origin": self._url, "storageTypes": "cookies,local_storage"})
        await page.close()
        return kept

    async def _new_context(self, **options: Any) -> BrowserContext:
        context = await self._browser.new_context(base_url=self._url, **options)
        context.set_default_timeout(30_000)
        return context

    def _heard(self, message: ConsoleMessage) -> None:
        # Chromium also reports responses with status 4xx as errors; tests check how the page shows these
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.faults.append(message.text)

    def _threw(self, error: Error) -> None:
        self.faults.append(str(error))


_KEPT: Final[dict[tuple[Browser, str], BrowserContext]] = {}


@asynccontextmanager
async def looking(browser: Browser, url: str) -> AsyncIterator[Look]:
    """Open windows for tests, close them afterwards, and fail if something went wrong in one of them."""
    before = {page for context in browser.contexts for page in context.pages}
    look = Look(browser, url)
    try:
        yield look
    finally:
        for context in list(browser.contexts):
            if context not in _KEPT.values() and before.isdisjoint(context.pages):
                await context.close()
            for page in set(context.pages) - before:
                await page.close()
    assert not look.faults, look.faults


async def grave_findings(page: Page, *, colours: bool = False) -> list[str]:
    """Return axe's findings (moderate to critical) about the page in its present state; with `colours`, only findings
    about colours.
    """
    # axe runs in an isolated world, because the page's policy refuses scripts that the host has not served
    session = await page.context.new_cdp_session(page)
    frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
    world = await session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"})
    where = {"contextId": world["executionContextId"]}
    there = await session.send("Runtime.evaluate", {"expression": "typeof axe", **where})
    if there["result"]["value"] == "undefined":
        await session.send("Runtime.evaluate", {"expression": AXE.read_text("utf-8"), **where})
    # the pages have no frames, and only rules about videos need the files that `preload` fetches
    options = {"resultTypes": ["violations"], "iframes": False, "preload": False}
    options |= {"runOnly": ["color-contrast", "link-in-text-block"]} if colours else {}
    run = f"{SETTLED}.then(() => axe.run(document, {json.dumps(options)})).then((found) => JSON.stringify(found.violations))"
    answer = await session.send("Runtime.evaluate", {"expression": run, "awaitPromise": True, **where})
    await session.detach()
    found = json.loads(answer["result"]["value"])
    return [
        f"{one['impact']} {one['id']}: {one['help']}: {[(node['html'][:160], node.get('failureSummary')) for node in one['nodes'][:4]]}"
        for one in found
        if one["impact"] in GRAVE
    ]


async def from_more(page: Page, action: str) -> None:
    """Choose an action from a page's *More* menu."""
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name=action).click()


async def picture(page: Page, name: str) -> None:
    """Take a picture for people to look at, if a folder for pictures is set."""
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def widest_overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window; 0 if the page fits."""
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return max(0, int(await page.evaluate("document.documentElement.scrollWidth - innerWidth")))

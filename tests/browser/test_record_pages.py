"""Every page of records in both themes, narrow and wide: axe finds nothing grave, nothing sticks out, markup is shown as text."""

from typing import Final, Literal

import pytest
from playwright.async_api import Page, expect

from tests.browser.looking import Look, grave_findings, picture, widest_overflow
from tests.browser.seeds import Seeds

PARTS: Final = 8  # number of parts into which the pages are divided; `make test` checks the first
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
WIDTHS: Final = (390, 2560)
CARDS: Final = ("/jobs", "/datasets", "/environments", "/datasets/many?row=3")
"""Pages that are also checked on a phone in the dark theme, where their rows become cards."""


def places(seeds: Seeds) -> dict[str, str]:
    return {
        "/evaluators": "length",
        "/evaluators/length": "About it",
        "/evaluators/length?tab=diff": "threshold",
        "/evaluators/latency?tab=traces": "latency@1",
        "/evaluators/latency?tab=traces&trace=1": "Use in the workbench",
        "/datasets": "many",
        "/datasets/many": "rows 0 to 49",
        "/datasets/many?row=3": "Use in the workbench",
        "/environments": "lodash 4.17.21",
        "/environments?new=1": "Packages, one per line",
        "/jobs": seeds.before[4:12],
        "/jobs/new?evaluator=length&dataset=many": "Preview of the first row",
        f"/jobs/{seeds.before}": "2,000 rows",
        f"/jobs/{seeds.small}/rows/3": "4 spans",
        f"/compare/{seeds.before}/{seeds.after}": "Rows above the line have a higher value",
    }


def telling(seeds: Seeds) -> dict[str, str]:
    """Return the pages with the most content, because a fault in another theme or width shows there first."""
    chosen = (
        "/evaluators/length?tab=diff",
        "/datasets/many?row=3",
        f"/jobs/{seeds.before}",
        "/jobs/new?evaluator=length&dataset=many",
    )
    rest = (f"/jobs/{seeds.small}/rows/3", f"/compare/{seeds.before}/{seeds.after}")
    return {path: text for path, text in places(seeds).items() if path in (*chosen, *rest)}


async def show(page: Page, path: str, text: str) -> None:
    await page.goto(path)
    await expect(page.get_by_text(text).first).to_be_visible()
    await page.wait_for_load_state("networkidle")


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
async def test_axe_finds_nothing_grave_and_pages_fit_their_windows(look: Look, seeds: Seeds, part: int) -> None:
    """Each page fits its window, and axe finds nothing grave, in both themes and both widths; a theme may change only
    colours.
    """
    page = await look.page(reduced_motion="reduce")
    for path, text in [*places(seeds).items()][part::PARTS]:
        name = path.strip("/").replace("/", "-").replace("?", "-")
        for width in (1280, *(WIDTHS if path in telling(seeds) else WIDTHS[:1])):
            await page.set_viewport_size({"width": width, "height": 800})
            # each width loads a diff again, because a diff that becomes narrow is drawn again and has other colours
            # until then
            if width == 1280 or "tab=diff" in path:
                await show(page, path, text)
                assert await page.locator("main img, main b").count() == 0, path
                assert not (await page.title()).startswith("owned")
            assert await widest_overflow(page) == 0, (path, width)
            for theme in THEMES if width == 1280 or (width == WIDTHS[0] and path in CARDS) else THEMES[:1]:
                await page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
                if width < 2000:
                    assert await grave_findings(page, colours=theme == "dark") == [], (path, theme, width)
                await picture(page, f"{width}-{theme}-{name}")

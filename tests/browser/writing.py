"""Actions of people in the workbench: write code, fill in a row, run it, read the result."""

from playwright.async_api import Locator, Page, expect

CODE = "Code of the evaluator"


async def open_workbench(page: Page) -> None:
    """Wait until the whole workbench is loaded, including the editors."""
    await page.goto("/")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(4)
    await loads(page)


async def write(page: Page, label: str, text: str) -> None:
    """Replace an editor's content with `text`."""
    editor = page.get_by_role("textbox", name=label, exact=True)
    await editor.click()
    await page.keyboard.press("ControlOrMeta+a")
    # the editor is cleared first, because Chromium keeps the styles of text that is typed over and then reports them as
    # violations
    await page.keyboard.press("Delete")
    await page.keyboard.insert_text(text)


async def start_from(page: Page, title: str) -> None:
    """Choose an example from the gallery."""
    await page.get_by_role("button", name="Examples…").click()
    gallery = page.get_by_role("dialog", name="Examples")
    await gallery.get_by_label("Find an example").fill(title)
    await gallery.get_by_role("button").filter(has=page.get_by_text(title, exact=True)).click()
    await expect(gallery).to_have_count(0)


async def loads(page: Page) -> None:
    """Wait until the host has checked the code and found no problem."""
    await expect(page.locator(".status-line").get_by_text("✓ loads")).to_be_visible(timeout=30_000)


async def run(page: Page) -> Locator:
    """Run the evaluator, and return the result card once it is there."""
    before = await page.locator(".run").count() or await page.get_by_test_id("score").count()
    await page.get_by_role("button", name="Run", exact=True).click()
    if before:
        await expect(page.locator(".run")).to_have_count(min(before + 1, 30), timeout=60_000)
    card = page.get_by_role("article", name="Result")
    await expect(card).to_be_visible(timeout=60_000)
    return card


def score(card: Locator) -> Locator:
    """Return the element that shows the score, or that says that there is no score."""
    return card.get_by_test_id("score")

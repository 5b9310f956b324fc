"""The main tasks can be done with only the keyboard: find the workbench, write code, run it, run it on a data set, and
look through the rows.
"""

import pytest
from playwright.async_api import Locator, Page, expect

from evaluator_host.client import Client
from tests.server import Server

pytestmark = pytest.mark.long("this visits many pages; test_editor.py runs code with the keyboard")
CODE = "def evaluate(inputs, outputs, trace):\nreturn len(inputs['city']) > 4"  # the editor adds the indentation
RING = """(element) => {
  const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(element.closest(".code-editor") ?? element);
  return (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
}"""


async def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus, and check that the focus is visible."""
    for _ in range(80):
        if await page.evaluate("document.activeElement.closest('.main-editor') !== null"):
            await page.keyboard.press("Escape")  # after Escape, Tab leaves the editor instead of indenting
        await page.keyboard.press("Tab")
        if await wanted.evaluate("(element) => element === document.activeElement"):
            assert await wanted.evaluate(RING), "nothing shows that the element has the focus"
            return
    raise AssertionError(f"Tab does not get to {wanted}")


async def test_keys_alone_get_from_a_first_look_to_the_rows_of_a_job(page: Page, host: Server) -> None:
    with Client(host.url) as client:
        client.datasets.upload("by-keys", [{"city": "Paris", "output": "x"}, {"city": "Rome", "output": "y"}])
    await page.goto("/jobs")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.keyboard.press("ControlOrMeta+k")
    await expect(page.get_by_role("dialog", name="Commands").get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("page workbench")
    await expect(page.locator("#command-0")).to_contain_text("Workbench")
    await page.keyboard.press("Enter")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(4)
    await tab_to(page, page.get_by_role("textbox", name="Code of the evaluator"))
    await page.keyboard.press("ControlOrMeta+a")
    await page.keyboard.press("Delete")
    await page.keyboard.type(CODE)
    await page.keyboard.press("Escape")  # closes the list of completions
    await tab_to(page, page.get_by_role("textbox", name="inputs"))
    await page.keyboard.press("ControlOrMeta+a")
    await page.keyboard.insert_text('{"city": "Lima"}')
    await page.keyboard.press("ControlOrMeta+Enter")
    await expect(page.get_by_test_id("score")).to_have_text("0")
    await tab_to(page, page.get_by_role("button", name="Run on a data set…"))
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await tab_to(page, dialog.get_by_label("Data set"))
    await page.keyboard.type("by-keys")
    await tab_to(page, dialog.get_by_role("button", name="Run on 2 rows"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".record-title .chip")).to_have_text("completed")
    await expect(page.get_by_role("link", name="0", exact=True)).to_be_visible()
    await page.keyboard.press("j")
    await expect(page.get_by_role("complementary", name="Row 0")).to_contain_text("Paris")
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Help")).to_be_visible()
    await page.keyboard.press("Escape")
    await tab_to(page, page.get_by_role("link", name="0", exact=True))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Row 0")).to_be_visible()

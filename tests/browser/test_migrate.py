"""On the migration page, a user pastes a legacy evaluator, sees the new code, the changes and the proof, and accepts
the new code.
"""

import asyncio
import json

import pytest
from playwright.async_api import Page, expect

from tests.browser.looking import Look, grave_findings, picture, widest_overflow
from tests.browser.writing import CODE, loads, write
from tests.server import Server

LEGACY = "Legacy code"
EXACT = "def evaluate(app_params, inputs, output, correct_answer):\n    return float(output == correct_answer)\n"
CHANCE = "import random\n\ndef evaluate(app_params, inputs, output, correct_answer):\n    return random.random()\n"
SETTINGS = (
    "def evaluate(app_params, inputs, output, correct_answer):\n"
    "    limit = app_params['limit'] if app_params else 1\n    return limit * float(output == correct_answer)\n"
)
COUNTS = (
    "def evaluate(app_params, inputs, output, correct_answer):\n"
    "    return evaluate.__code__.co_argcount - 3 if output else 0.5\n"
)


async def migrate(page: Page, code: str) -> None:
    await page.goto("/migrate")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(1)
    await write(page, LEGACY, code)
    await page.keyboard.press("ControlOrMeta+Enter")
    await expect(page.get_by_role("heading", name="Rewritten")).to_be_visible(timeout=60_000)


@pytest.mark.long
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_example_is_rewritten_and_proven(look: Look, theme: str) -> None:
    page = await look.page(theme=theme)
    await page.goto("/migrate")
    await page.get_by_role("button", name="Show an example").click()
    await page.get_by_role("button", name="Migrate", exact=True).click()
    await expect(page.get_by_text("✓ proven")).to_be_visible(timeout=60_000)
    await expect(page.get_by_text("became (inputs, outputs, trace)")).to_be_visible()
    before, after = page.get_by_role("textbox", name="Legacy", exact=True), page.get_by_role("textbox", name="Migrated")
    await expect(before).to_contain_text("app_params")
    await expect(after).to_contain_text("def evaluate(inputs, outputs, trace)")
    assert await grave_findings(page) == []
    await picture(page, f"migrated-{theme}")


async def test_migrated_code_goes_to_the_workbench(page: Page) -> None:
    await migrate(page, EXACT)
    await page.get_by_role("button", name="Open in the workbench").click()
    await expect(page.get_by_role("textbox", name=CODE)).to_contain_text("def evaluate(inputs, outputs, trace)")
    await loads(page)


@pytest.mark.long
async def test_the_users_own_rows_prove_it_and_open_points_are_listed(page: Page) -> None:
    await page.goto("/migrate")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(1)
    await write(page, LEGACY, SETTINGS)
    await page.get_by_label("Rows for the proof").select_option("my own rows")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(2)
    await write(page, "Rows", '{"inputs": {}}')
    await expect(page.get_by_text("Rows must be a list")).to_be_visible()
    await expect(page.get_by_role("button", name="Migrate", exact=True)).to_be_disabled()
    rows = [{"inputs": {"correct_answer": n}, "outputs": n} for n in range(5)]
    await write(page, "Rows", json.dumps(rows))
    await page.get_by_role("button", name="Migrate", exact=True).click()
    await expect(page.get_by_text("agree on 5 rows")).to_be_visible(timeout=60_000)
    await expect(page.get_by_role("heading", name="For you to change")).to_be_visible()
    await picture(page, "migrated-unresolved")


@pytest.mark.long
async def test_a_migration_is_cancelled(page: Page) -> None:
    await page.goto("/migrate")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(1)
    await write(page, LEGACY, EXACT.replace("    return", "    import time\n    time.sleep(2)\n    return"))
    await page.get_by_role("button", name="Migrate", exact=True).click()
    await expect(page.get_by_text("scoring rows with both versions (")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_text("scoring rows with both versions")).to_have_count(0)
    await expect(page.get_by_role("button", name="Migrate", exact=True)).to_be_enabled()
    await expect(page.get_by_role("heading", name="Rewritten")).to_have_count(0)
    await expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.long
async def test_chance_cannot_be_compared(page: Page) -> None:
    await migrate(page, CHANCE)
    await expect(page.get_by_text("not comparable")).to_be_visible()
    await picture(page, "migrated-not-comparable")


@pytest.mark.long
async def test_rows_on_which_they_differ_are_shown(page: Page) -> None:
    await migrate(page, COUNTS)
    await expect(page.get_by_text("✗ scores differ")).to_be_visible()
    table = page.get_by_role("region", name="Rows on which they differ")
    await expect(table.locator("tbody tr").first).to_contain_text("score")
    await table.get_by_text("Row", exact=True).last.click()
    await expect(table.locator("pre").last).to_contain_text("outputs")
    assert await grave_findings(page) == []
    await picture(page, "migrated-differs")


@pytest.mark.long
async def test_code_that_is_not_rewritten_is_kept_with_an_adapter(page: Page) -> None:
    await page.goto("/migrate")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(1)
    await write(page, LEGACY, "evaluate = (lambda: lambda a, i, o, c: float(o == c))()\n")
    await page.get_by_role("button", name="Migrate", exact=True).click()
    await expect(page.get_by_role("heading", name="Left as it is")).to_be_visible(timeout=60_000)
    await page.get_by_role("button", name="Keep the code, add an adapter").click()
    await expect(page.get_by_text("✓ proven")).to_be_visible(timeout=60_000)
    await expect(page.get_by_role("textbox", name="Migrated")).to_contain_text("legacy_evaluate")
    assert await grave_findings(page) == []


@pytest.mark.long
async def test_code_that_is_not_an_evaluator_gets_a_message(page: Page) -> None:
    await page.goto("/migrate")
    await expect(page.locator(".code-editor[data-ready=true]")).to_have_count(1)
    await write(page, LEGACY, "x = 1\n")
    await page.get_by_role("button", name="Migrate", exact=True).click()
    await expect(page.get_by_role("heading", name="No evaluator")).to_be_visible(timeout=60_000)
    await expect(page.locator(".diff")).to_have_count(0)


@pytest.mark.long
async def test_a_stored_one_gets_its_next_version_with_the_proof(page: Page, host: Server) -> None:
    body = {"name": "browser-legacy", "code": EXACT}
    assert (await asyncio.to_thread(host.client.post, "/v1/evaluators", json=body)).status_code == 201
    await page.goto("/migrate")
    await page.get_by_label("Use a stored evaluator").select_option("browser-legacy")
    await expect(page.get_by_role("textbox", name=LEGACY)).to_contain_text("app_params")
    await page.get_by_role("button", name="Migrate", exact=True).click()
    await page.get_by_role("button", name="Save as version 2 of browser-legacy").click(timeout=60_000)
    await expect(page.get_by_text("browser-legacy is now at version 2")).to_be_visible(timeout=60_000)
    made = (await asyncio.to_thread(host.client.get, "/v1/evaluators/browser-legacy")).json()
    assert made["version"] == 2
    assert made["origin"]["proof"]["verdict"] == "proven"
    assert made["contract"] == "evaluate"


@pytest.mark.long
async def test_a_narrow_window_shows_one_below_the_other(look: Look) -> None:
    page = await look.page(width=400)
    await migrate(page, EXACT)
    await expect(page.get_by_text("Legacy → Migrated")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Migrated")).to_contain_text("(inputs, outputs, trace)")
    assert await widest_overflow(page) == 0
    assert await grave_findings(page) == []

"""In label queues, users label the rows of a job one by one with the keyboard, see progress and agreement, and label
rows of a data set on a phone.
"""

import pytest
from playwright.async_api import Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from tests.browser.looking import Look, from_more, grave_findings, picture, widest_overflow
from tests.browser.seeds import Seeds
from tests.server import Server


async def test_rows_are_labelled_with_keys_and_agreement_is_shown(page: Page, seeds: Seeds) -> None:
    dialog = page.get_by_role("dialog", name="New label queue")
    for outcome, taken in (("not-passed", "not_passed"), ("skipped", "all"), ("", "all")):
        await page.goto(f"/jobs/{seeds.small}?outcome={outcome}")
        await from_more(page, "Have people label rows…")
        await expect(dialog.get_by_label("Which rows")).to_have_value(taken)
    await expect(dialog.get_by_label("Rows of")).to_have_value(f"job {seeds.small}")
    choices = await dialog.get_by_label("Rows of").locator("option").all_text_contents()
    assert len(choices) == len(set(choices)), "jobs with the same title must have different labels"
    await dialog.get_by_label("Name").fill("review")
    await dialog.get_by_label("At most").fill("4")
    await dialog.get_by_label("Instructions").fill("Is the answer long enough?")
    assert await grave_findings(page) == []
    await picture(page, "labels-new")
    await dialog.get_by_role("button", name="Create the queue").click()
    await expect(page.get_by_role("heading", name="Row 0")).to_be_visible()
    await page.get_by_label("Your name").fill("ann")
    await page.keyboard.press("Escape")  # this takes the focus from the field, so that keys set labels again
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        assert await grave_findings(page, colours=theme == "dark") == [], theme
        await picture(page, f"labels-row-{theme}")
    # results are hidden, because they would influence people
    await expect(page.get_by_role("region", name="length@2")).to_have_count(0)
    await page.keyboard.press("1")
    await expect(page.get_by_text("1 of 4 labelled")).to_be_visible()
    await expect(page.get_by_role("heading", name="Row 3")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.get_by_role("heading", name="Row 6")).to_be_visible()
    await page.keyboard.press("k")  # this key goes back to the previous row
    await expect(page.get_by_role("button", name="Not passed")).to_have_attribute("aria-pressed", "true")
    await expect(page.get_by_role("region", name="length@2")).to_be_visible()
    await page.keyboard.press("u")
    await expect(page.get_by_text("1 of 4 labelled")).to_be_visible()
    await expect(page.get_by_role("button", name="Not passed")).to_have_attribute("aria-pressed", "false")
    await expect(page.locator(".rows-busy")).to_have_count(0)
    await page.keyboard.press("c")
    await page.keyboard.type("too short")
    await page.keyboard.press("Escape")
    await page.keyboard.press("2")
    await expect(page.get_by_role("heading", name="Row 6")).to_be_visible()
    await page.keyboard.press("s")
    await expect(page.get_by_role("heading", name="Row 9")).to_be_visible()
    await page.keyboard.press("p")
    await expect(page.get_by_text("Every row is labelled or skipped")).to_be_visible()
    await page.get_by_role("button", name="Rows", exact=True).click()
    await expect(page.get_by_role("row", name="too short")).to_contain_text("not passed")
    await page.get_by_role("button", name="Agreement", exact=True).click()
    await expect(page.get_by_role("row", name="length@2")).to_contain_text("queue review")
    assert await grave_findings(page) == []
    await picture(page, "labels-agreement")
    await page.goto(f"/jobs/{seeds.small}")
    await expect(page.get_by_role("region", name="Agreement with people")).to_contain_text("3 of 4 labelled")
    await page.get_by_role("link", name="Labels and judgements as a matrix").click()
    await expect(page.get_by_role("region", name="Confusion matrix of length@2")).to_be_visible()
    await picture(page, "labels-confusion")
    await page.goto("/labels/review")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("review was deleted")).to_be_visible()


@pytest.mark.long
async def test_rows_of_a_data_set_are_labelled_on_a_phone(look: Look, host: Server) -> None:
    with Client(host.url) as client:
        client.datasets.upload("to-label", [{"text": f"text {n} " * 40} for n in range(3)])
        page = await look.page(width=390, height=800, theme="dark")
        await page.goto("/labels?new=1&dataset=to-label")
        dialog = page.get_by_role("dialog", name="New label queue")
        await dialog.get_by_label("Name").fill("tone")
        await dialog.get_by_label("A label is").select_option("score")
        await dialog.get_by_label("From").fill("")
        await expect(dialog.get_by_role("button", name="Create the queue")).to_be_disabled()
        await dialog.get_by_label("A label is").select_option("choice")
        await dialog.get_by_label("Choices, one per line").fill("good\nbad\nsoso")
        await dialog.get_by_role("button", name="Create the queue").click()
        soso = page.get_by_role("button", name="soso")
        await expect(soso).to_be_in_viewport(ratio=1)
        assert await grave_findings(page) == []
        assert await widest_overflow(page) == 0
        await picture(page, "labels-390")
        await soso.click()
        for row, key in ((1, "b"), (2, "3")):
            await expect(page.get_by_role("heading", name=f"Row {row}")).to_be_visible()
            # wait, because while a field has the focus, keys are ordinary text
            await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 150)))")
            await page.keyboard.press(key)
        await expect(page.get_by_text("Every row is labelled or skipped")).to_be_visible()
        await page.goto("/labels")
        await expect(page.get_by_role("link", name="tone")).to_be_visible()
        assert await widest_overflow(page) == 0
        await picture(page, "labels-list-390")
        client.datasets.delete("to-label", force=True)


@pytest.mark.long
async def test_the_agreement_with_different_questions_is_shown_for_each_queue(page: Page, host: Server) -> None:
    code = Evaluator("def evaluate(inputs, outputs, trace):\n    return {'score': 1.0, 'passed': True}\n")
    with Client(host.url) as client:
        job = client.jobs.wait(client.jobs.create([code], [{"outputs": "a"}]).id)
        for name in ("right", "polite"):
            client.labels.create(name, job=job.id, instructions=f"Is it {name}?")
            client.labels.set(name, 0, name == "right")
        await page.goto(f"/jobs/{job.id}")
        panel = page.get_by_role("region", name="Agreement with people")
        await expect(panel.get_by_role("row", name="queue right")).to_contain_text("100 %")
        await expect(panel.get_by_role("row", name="queue polite")).to_contain_text("0 %")
        await panel.get_by_role("link", name="Labels and judgements").click()
        await expect(page.get_by_role("alert")).to_contain_text("ask people different questions")
        await page.get_by_label("Labels from people").select_option("Label queue polite")
        await page.get_by_role("button", name="Compare").click()
        await expect(page.get_by_role("row", name="queue polite")).to_contain_text("0 %")
        for name in ("right", "polite"):
            client.labels.delete(name)

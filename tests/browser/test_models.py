"""On the pages of models, secrets and judges, users add and test a model, and judge with it. No page shows a secret's
value.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.async_api import Browser, Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import JobStatus
from tests.browser.looking import Look, from_more, grave_findings, looking, picture, widest_overflow
from tests.browser.writing import CODE, open_workbench, run, write
from tests.model_server import ModelServer
from tests.server import FORKED, Server

KEY = "sk-live-0123456789abcdef"
APART = """(tables) => tables.flatMap((table) => {
  const side = (cell) => getComputedStyle(cell).textAlign;
  const cells = [...(table.tBodies[0]?.rows[0]?.cells ?? [])];
  return [...table.tHead.rows[0].cells].filter((head, at) => side(head) !== side(cells[at])).map((head) => head.textContent);
})"""
"""Returns the heads of columns that are not aligned as the cells below them."""


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with ModelServer(key=KEY, plays_all=True) as server:
        yield server


async def looked_at(look: Look, page: Page, name: str) -> None:
    """Check that axe finds nothing serious in either theme, and that nothing sticks out of a wide or a narrow window."""
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        assert await grave_findings(page, colours=theme == "dark") == [], (name, theme)
        for width in (1280, 390):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await widest_overflow(page) == 0, (name, width)
            await picture(page, f"{name}-{theme}-{width}")
    await page.set_viewport_size({"width": 1280, "height": 800})


async def test_a_model_is_added_tested_and_judged_with(
    look: Look, page: Page, host: Server, provider: ModelServer
) -> None:
    await page.goto("/models?show=secrets")
    await page.get_by_role("button", name="Add a secret").click()
    await page.get_by_label("Name", exact=True).fill("provider")
    await page.get_by_label("Value", exact=True).fill(KEY)
    await page.get_by_role("button", name="Save").click()
    row = page.get_by_role("region", name="Secrets").locator("tr", has_text="provider")
    await expect(row.get_by_text("only the host")).to_be_visible()

    await page.goto("/models")
    await page.get_by_role("button", name="Add a model").click()
    await page.get_by_label("Provider", exact=True).select_option("other")
    await page.get_by_label("URL").fill(provider.url)
    await page.get_by_label("Model at the provider").fill("real-name")
    await page.get_by_label("Name", exact=True).fill("judge-small")
    await page.get_by_label("Key", exact=True).select_option("provider")
    await page.get_by_label("Price of a million input tokens").fill("1000")
    await page.get_by_label("Price of a million output tokens").fill("2000")
    await page.get_by_role("button", name="Add and try").click()
    await expect(page.get_by_role("dialog").get_by_text("works")).to_be_visible()
    await page.get_by_role("button", name="Close").last.click()
    row = page.get_by_role("region", name="Models").locator("tr", has_text="judge-small")
    await expect(row.get_by_text("1000 in, 2000 out")).to_be_visible()
    await expect(row.get_by_text("works")).to_be_visible()
    await row.get_by_role("button", name="Test judge-small").click()
    await expect(row.get_by_text("works")).to_be_visible()
    await expect(row.get_by_text("answer to Answer with the word ok.")).to_be_visible()
    await row.get_by_role("button", name="Change judge-small").click()
    await expect(page.get_by_label("Model at the provider")).to_have_value("real-name")
    await page.get_by_label("Price of a million input tokens").fill("1500")
    await page.get_by_role("button", name="Save").click()
    await expect(row.get_by_text("1500 in, 2000 out")).to_be_visible()
    await looked_at(look, page, "models")

    await row.get_by_role("link", name="New judge with judge-small").click()
    await page.get_by_label("Prompt").fill("Is this polite? Say polite or rude.\n{{ outputs }}")
    await page.get_by_label("Answers", exact=True).select_option("labels")
    for at, (label, score) in enumerate((("polite", "1"), ("rude", "0")), start=1):
        part = page.get_by_role("group", name=f"Label {at}")
        await part.get_by_label("Label", exact=True).fill(label)
        await part.get_by_label("Score").fill(score)
    await write(page, "Outputs", '"you are polite"')
    await page.get_by_role("button", name="Run the judge").click()
    result = page.get_by_role("article", name="Result")
    await expect(result.get_by_test_id("score")).to_have_text("1")
    await expect(result.get_by_text("1 model request")).to_be_visible()
    await expect(result.get_by_text("cost 0.")).to_be_visible()
    await looked_at(look, page, "judge")
    await page.get_by_label("Name", exact=True).fill("politeness")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", name="Judge politeness")).to_be_visible()
    await expect(page.get_by_role("group", name="Label 2").get_by_label("Label", exact=True)).to_have_value("rude")
    await page.get_by_role("button", name="Save a new version").click()
    await expect(page.get_by_text("politeness is saved as version")).to_be_visible()

    await page.goto("/evaluators/politeness")
    await expect(page.get_by_text("judge-small").first).to_be_visible()
    link = page.get_by_role("link", name="Edit the judge")
    assert "/judge?evaluator=politeness%40" in str(await link.get_attribute("href"))
    await page.goto("/models?show=usage")
    await expect(page.get_by_role("region", name="Usage by day").get_by_text("judge-small")).to_be_visible()
    await expect(page.get_by_text("of 1,000", exact=False).first).to_be_visible()
    apart = await page.locator("table").evaluate_all(APART)
    assert apart == [], "the heads of columns with numbers are on the other side than the numbers"
    await looked_at(look, page, "usage")
    assert KEY not in await page.content()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A host that is not configured for models."""
    folder = tmp_path_factory.mktemp("fresh")
    database = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder / 'host.db'}"}
    with Server(log=folder / "log", environment={**FORKED, **database}) as running:
        yield running


@pytest.mark.long
async def test_a_judge_is_made_on_a_host_that_nobody_prepared(
    browser: Browser, fresh: Server, provider: ModelServer
) -> None:
    async with looking(browser, fresh.url) as look:
        page = await look.page()
        await page.goto("/judge")
        await page.get_by_role("button", name="Add a model").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Model at the provider").fill("real name")
        await dialog.get_by_label("Key of the provider").fill(KEY)
        add = dialog.get_by_role("button", name="Add and try")
        await expect(dialog.get_by_text("Evaluators of this host may call models on api.openai.com")).to_be_visible()
        await looked_at(look, page, "add-model")
        await dialog.get_by_label("Provider", exact=True).select_option("other")
        await dialog.get_by_label("URL").fill(provider.url)
        await expect(add).to_be_disabled()
        await expect(dialog.get_by_text(f"Tick the box that allows {provider.url[7:-3]}.")).to_be_visible()
        await dialog.get_by_label(f"Evaluators of this host may call models on {provider.url[7:-3]}").check()
        await add.click()
        await expect(dialog.get_by_text("works")).to_be_visible()
        await dialog.get_by_role("link", name="New judge with this model").click()
        await expect(page.get_by_label("Model", exact=True)).to_have_value("real-name")
        await page.get_by_label("Start from").select_option("faithfulness")
        await expect(page.get_by_role("group", name="Label 3").get_by_label("Label", exact=True)).to_have_value(
            "unfaithful"
        )
        await page.get_by_role("button", name="Run the judge").click()
        await expect(page.get_by_role("article", name="Result").get_by_text("1 model request")).to_be_visible()
        await looked_at(look, page, "ready-judge")

        await page.goto("/models")
        await page.get_by_role("button", name="Add a model").click()
        await dialog.get_by_label("Provider", exact=True).select_option("other")
        await dialog.get_by_label("URL").fill(provider.url)
        await dialog.get_by_label("Model at the provider").fill("second")
        await dialog.get_by_label("Key", exact=True).select_option("real-name")
        # the page asks this question only once
        await expect(dialog.get_by_text("Evaluators of this host may call models on")).to_have_count(0)
        await add.click()
        await expect(dialog.get_by_text("works")).to_be_visible()
        await dialog.get_by_role("button", name="Close").last.click()
        await looked_at(look, page, "models-allowed")
        hosts = page.get_by_role("region", name="Hosts on which evaluators may call models")
        await hosts.get_by_role("button", name="Forbid").click()
        await dialog.get_by_role("button", name="Forbid").click()
        await expect(hosts).to_have_count(0)
        row = page.get_by_role("region", name="Models").locator("tr", has_text="second")
        await row.get_by_role("button", name="Test second").click()
        await expect(row.get_by_text("evaluators may not call models on 127.0.0.1")).to_be_visible()
        await expect(row.get_by_role("button", name="Change second")).to_have_class(re.compile("button-primary"))
        await page.get_by_role("button", name="Add a model").click()
        await dialog.get_by_label("Provider", exact=True).select_option("other")
        await dialog.get_by_label("URL").fill("http://127.0.0.1:1/v1")
        await dialog.get_by_label("Model at the provider").fill("down")
        await dialog.get_by_label("Key", exact=True).select_option("")
        await dialog.get_by_label("Evaluators of this host may call models on 127.0.0.1:1").check()
        await add.click()
        refused = "nothing answers at the model's address: the connection was refused"
        await expect(dialog.get_by_role("status")).to_contain_text(refused)
        await dialog.get_by_role("button", name="Change…").click()
        await expect(dialog.get_by_label("URL")).to_have_value("http://127.0.0.1:1/v1")
        assert KEY not in await page.content()


@pytest.mark.long
async def test_the_agreement_of_a_judge_is_read(look: Look, page: Page, host: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return {'score': 1 / len(outputs), 'label': outputs}\n"
    labelled = ("good", "good"), ("bad", "bad"), ("good", "bad"), ("", "bad"), ("bad", ""), ("good", None)
    rows = [{"answer": one, "human": human} for one, human in labelled]

    def made() -> str:
        with Client(host.url) as client:
            job = client.jobs.create([Evaluator(code)], rows, mapping={"outputs": "answer"})
            assert client.jobs.wait(job.id).status is JobStatus.COMPLETED
            return job.id

    job = await asyncio.to_thread(made)
    await page.goto(f"/jobs/{job}")
    await from_more(page, "Agreement with people…")
    await expect(page.get_by_role("link", name="label rows of this job")).to_be_visible()
    await page.get_by_label("Labels from people").select_option("human")
    await page.get_by_role("button", name="Compare").click()
    await expect(page.get_by_text("66.7 %", exact=False).first).to_be_visible()
    cell = page.get_by_role("cell", name="3, 2 rows without a label, 1 labelled row that failed")
    await expect(cell).to_be_visible()
    matrix = page.get_by_role("region", name="Confusion matrix")
    await expect(matrix.get_by_role("columnheader", name="Judged good")).to_be_visible()
    await looked_at(look, page, "agreement")


@pytest.mark.long
async def test_a_secret_is_rotated_and_removed(look: Look, page: Page, host: Server) -> None:
    await page.goto("/models?show=secrets")
    await page.get_by_role("button", name="Add a secret").click()
    await page.get_by_label("Name", exact=True).fill("crm")
    await page.get_by_label("Value", exact=True).fill("first-value-0123")
    await page.get_by_role("button", name="Save").click()
    row = page.get_by_role("region", name="Secrets").locator("tr", has_text="crm")
    await expect(row.get_by_text("code with a grant")).to_be_visible()
    await looked_at(look, page, "secrets")
    await row.get_by_role("button", name="New value of crm").click()
    await page.get_by_label("Value", exact=True).fill("second-value-0123")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("crm has its new value")).to_be_visible()
    await row.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(row).to_have_count(0)
    assert "value-0123" not in await page.content()


@pytest.mark.long
async def test_grants_stay_when_a_version_is_opened_and_restored(page: Page, host: Server) -> None:
    def made() -> None:
        granted = Evaluator("def evaluate(i, o, t):\n    return 1\n", network=("api.example.com:443",))
        with Client(host.url) as client:
            client.evaluators.create("reaching", granted, force=True)
            client.evaluators.update("reaching", replace(granted, network=()), force=True)

    await asyncio.to_thread(made)
    await page.goto("/evaluators/reaching?version=1")
    await page.get_by_role("button", name="Restore as version 3").click()
    await expect(page.get_by_text("3 versions")).to_be_visible()

    def newest() -> tuple[str, ...]:
        with Client(host.url) as client:
            return client.evaluators.get("reaching").evaluator.network

    assert await asyncio.to_thread(newest) == ("api.example.com:443",)
    await page.goto("/?evaluator=reaching%401")
    await page.get_by_text("Settings", exact=False).first.click()
    await expect(page.get_by_label("Hosts")).to_have_value("api.example.com:443")


@pytest.mark.long
async def test_a_page_says_how_keys_are_made(look: Look, page: Page) -> None:
    await page.goto("/models?show=keys")
    await expect(page.get_by_text("This host has no keys")).to_be_visible()
    await expect(page.get_by_role("row", name="Revoke a key")).to_contain_text("evaluator-host keys revoke ci")
    await page.get_by_role("link", name="Authentication").click()
    await expect(page.get_by_role("heading", name="Authentication")).to_be_in_viewport()
    await page.goto("/models?show=keys")
    await expect(page.get_by_role("button", name="Copy").first).to_be_visible()
    await looked_at(look, page, "keys")


@pytest.mark.long
async def test_a_message_about_models_leads_to_their_page(page: Page) -> None:
    await open_workbench(page)
    await write(page, CODE, "import openai\n\ndef evaluate(inputs, outputs, trace):\n    return openai.OpenAI()\n")
    card = await run(page)
    await expect(card).to_contain_text("register it on the page Models, and name it in Settings")
    await picture(page, "no-model")
    await card.get_by_role("link", name="Models", exact=True).first.click()
    await expect(page).to_have_url(re.compile("/models$"))

"""On the pages of named evaluators, users find evaluators, compare versions, see live traces, and delete evaluators."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.async_api import Page, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from tests.browser.looking import Look, grave_findings, picture, widest_overflow
from tests.browser.seeds import MARKUP, Seeds
from tests.server import Server


def work(workflow: dict[str, Any], folder: Path, rows: str) -> tuple[int, str]:
    """Run the commands of a GitHub workflow for pull request 7, until one fails; return its exit code and messages."""
    job = workflow["jobs"]["evaluate"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0] == "pip install evaluator-host"
    (folder / "answers.csv").write_text(rows)
    given = {name: value.replace("${{ github.event.number }}", "7") for name, value in job["env"].items()}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in commands[1:]:
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=folder, env={**os.environ, **given, "PATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            break
    return done.returncode, done.stderr


async def test_evaluators_are_found_and_the_address_says_so(page: Page, seeds: Seeds) -> None:
    await page.goto("/evaluators")
    table = page.get_by_role("region", name="Evaluators")
    await expect(table.get_by_role("link", name="length", exact=True)).to_be_visible()
    await expect(table.get_by_text(f"Counts letters {MARKUP}")).to_be_visible()
    await expect(table.get_by_role("rowheader", name="broken does not load", exact=True)).to_be_visible()
    await page.get_by_label("Find an evaluator").fill("LETTERS")
    await expect(table.locator("tbody tr")).to_have_count(1)
    await page.reload()
    await expect(table.locator("tbody tr")).to_have_count(1)
    await page.get_by_label("Find an evaluator").fill("nobody")
    await expect(page.get_by_text("No evaluator has “nobody”")).to_be_visible()
    assert await page.title() == "Evaluators · Evaluator Host"


@pytest.mark.long
async def test_tags_messages_and_the_last_job_are_shown(page: Page, host: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return 0.25\n"
    with Client(host.url) as client:
        await asyncio.to_thread(client.evaluators.create, "browser-tagged", Evaluator(code), tags=["browser-tone"])
        changed = Evaluator(code + "# same\n")
        await asyncio.to_thread(client.evaluators.update, "browser-tagged", changed, message="says the same")
        job = await asyncio.to_thread(client.jobs.create, ["browser-tagged"], [{"inputs": {}, "outputs": 1}])
        await asyncio.to_thread(client.jobs.wait, job.id)
    await page.goto("/evaluators")
    await page.get_by_role("group", name="Tags").get_by_role("button", name="browser-tone").click()
    lines = page.get_by_role("region", name="Evaluators").locator("tbody tr")
    await expect(lines).to_have_count(1)
    await page.reload()
    await expect(lines).to_have_count(1)
    await expect(lines.get_by_role("link", name="0.25")).to_have_attribute("href", f"/jobs/{job.id}")
    await lines.get_by_role("link", name="browser-tagged").click()
    await expect(page.get_by_role("region", name="About it")).to_contain_text("says the same")
    await page.get_by_role("button", name="Description and tags…").click()
    await page.get_by_role("textbox", name="Tags").fill("browser-tone, slow")
    await page.get_by_role("textbox", name="Description").fill("Says a quarter")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("link", name="slow")).to_be_visible()
    await expect(page.get_by_text("Says a quarter")).to_be_visible()
    await page.get_by_label("Version", exact=True).select_option("1")
    await page.get_by_role("button", name="Restore as version 3").click()
    await expect(page.get_by_role("region", name="About it")).to_contain_text("Version 1 again")
    await expect(page.get_by_role("region", name="About it")).to_contain_text("3 of 3")


@pytest.mark.long
async def test_versions_are_read_and_compared(page: Page, seeds: Seeds) -> None:
    await page.goto("/evaluators/length")
    await expect(page.get_by_role("heading", name="length")).to_be_visible()
    code = page.get_by_role("region", name="Code of version 2")
    await expect(code.get_by_text("% 7")).to_be_visible()
    await page.get_by_label("Version", exact=True).select_option("1")
    await expect(page).to_have_url(f"{page.url.split('/evaluators')[0]}/evaluators/length?version=1")
    await expect(page.get_by_role("region", name="Code of version 1").get_by_text("% 11")).to_be_visible()
    workbench = page.get_by_role("link", name="Open in the workbench")
    assert await workbench.get_attribute("href") == "/?evaluator=length%401"
    assert await page.get_by_role("link", name="Start a job").get_attribute("href") == "/jobs/new?evaluator=length%401"
    await page.get_by_role("button", name="Differences").click()
    await expect(page.get_by_role("region", name="Settings")).to_contain_text("threshold 0.5 → 0.6")
    await expect(page.locator(".diff").get_by_text("lacks an")).to_be_visible()
    await expect(page.locator(".diff").get_by_text("has no")).to_be_visible()
    await picture(page, "evaluator-diff")
    await page.get_by_label("To", exact=True).select_option("1")
    await expect(page.get_by_text("The code is the same.")).to_be_visible()


@pytest.mark.long
async def test_an_evaluator_is_used_elsewhere_by_what_the_page_says(
    look: Look, page: Page, host: Server, seeds: Seeds, tmp_path: Path
) -> None:
    await page.goto("/evaluators/length")
    await page.get_by_role("button", name="Use it…").click()
    dialog = page.get_by_role("dialog", name="Use length@2")
    shown = await dialog.get_by_role("region", name="curl").text_content() or ""
    done = await asyncio.to_thread(subprocess.run, ["sh", "-c", shown], capture_output=True, text=True)
    assert '"version":2' in done.stdout.replace(" ", "")
    await dialog.get_by_role("button", name="Python").click()
    shown = await dialog.get_by_role("region", name="Python").text_content() or ""
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", shown], capture_output=True, text=True)
    assert "letters of" in done.stdout, done.stderr
    await dialog.get_by_role("button", name="GitHub").click()
    workflow = yaml.safe_load(await dialog.get_by_role("region", name="GitHub").text_content() or "")
    (passed, _), (failed, why) = [
        await asyncio.to_thread(work, workflow, tmp_path, f"n,mark,answer\n1,x,{answer}\n")
        for answer in ("sixsix", "one")
    ]
    assert (passed, failed) == (0, 1), why
    assert "length@2: the mean score 0.5 is under --fail-under 0.8, so the exit code is 1" in why
    for way in ("TypeScript", "pytest", "GitHub"):
        await dialog.get_by_role("button", name=way).click()
        await expect(dialog.get_by_role("region", name=way)).to_contain_text("length@2")
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert await grave_findings(page) == [], theme
        for width in (1280, 390):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await widest_overflow(page) == 0
            await picture(page, f"use-it-{theme}-{width}")


@pytest.mark.long
async def test_an_evaluator_that_does_not_load_says_why(page: Page, seeds: Seeds) -> None:
    await page.goto("/evaluators/broken")
    await expect(page.get_by_text("It does not load, line 1")).to_be_visible()
    await page.get_by_role("button", name="Differences").click()
    await expect(page.get_by_text("There is only one version")).to_be_visible()


@pytest.mark.long
async def test_live_traces_are_opened_and_have_an_address(page: Page, seeds: Seeds) -> None:
    await page.goto("/evaluators/latency?tab=traces")
    rows = page.get_by_role("region", name="Live traces").locator("tbody tr")
    await expect(rows).to_have_count(3)
    await expect(rows.first).to_contain_text("2 spans, 2 s")
    await expect(rows.first.get_by_role("button")).to_contain_text("request <img src=x")
    await rows.first.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    spans = dialog.get_by_role("list", name="Spans")
    await expect(spans.get_by_role("button", name=f"request {MARKUP}", exact=True)).to_be_visible()
    await expect(spans.get_by_text("1.2 s")).to_be_visible()
    await picture(page, "evaluator-trace")
    await page.reload()
    await expect(dialog.get_by_text("2 spans, 2 s")).to_be_visible()
    number = page.url.split("trace=")[1]
    use = dialog.get_by_role("link", name="Use in the workbench")
    assert await use.get_attribute("href") == f"/?evaluator=latency&trace={number}"
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.goto("/evaluators/length?tab=traces")
    await expect(page.get_by_text("No live trace has been scored yet")).to_be_visible()


@pytest.mark.long
async def test_an_evaluator_is_deleted_once_that_is_confirmed(page: Page, host: Server) -> None:
    code = "def evaluate(i, o, t):\n    return 1\n"
    with Client(host.url) as client:
        await asyncio.to_thread(client.evaluators.create, "doomed", Evaluator(code))
        client.schedules.create("doom", "0 7 * * 1", evaluators=["doomed"], dataset=[{"n": 1}])
    await page.goto("/evaluators/doomed")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    await expect(page.get_by_role("heading", name="doomed")).to_be_visible()
    await page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("doomed is used by schedule doom")
    await dialog.get_by_role("button", name="Delete anyway").click()
    await expect(page.get_by_text("doomed was deleted")).to_be_visible()
    await expect(page.get_by_role("heading", name="Evaluators")).to_be_visible()
    await page.goto("/evaluators/doomed")
    await expect(page.get_by_text("There is no evaluator doomed")).to_be_visible()

"""On the pages of jobs, users start a job with a form, follow it live, pause, resume and stop it, see statistics and
plots, download results, and compare jobs.
"""

import asyncio
import csv
import json
import re
import sys
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.async_api import Page, Route, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobStatus
from tests.browser.looking import Look, from_more, grave_findings, picture, widest_overflow
from tests.browser.seeds import LENGTH, MARKUP, Seeds
from tests.server import Server

SLOW = "import time\n\ndef evaluate(inputs, outputs, trace):\n    time.sleep(0.05)\n    return inputs['n'] % 2\n"


@pytest.fixture(scope="module")
def client(host: Server) -> Iterator[Client]:
    with Client(host.url) as opened:
        yield opened


async def status(page: Page, text: str) -> None:
    await expect(page.locator(".record-title .chip")).to_contain_text(text)


async def test_a_job_is_started_by_a_form_and_ends_as_one_looks_on(page: Page, seeds: Seeds) -> None:
    await page.goto("/jobs/new")
    await page.get_by_role("button", name="Start the job").click()
    await expect(page.get_by_role("alert")).to_contain_text("Choose an evaluator")
    await page.get_by_role("checkbox", name="length", exact=True).check()
    await page.get_by_label("Specific version").fill("length@1")
    await page.get_by_role("button", name="Add").click()
    await page.get_by_role("combobox", name="Data set").select_option("many")
    await expect(page.get_by_role("group", name="First row", exact=True)).to_contain_text("question 0")
    await page.get_by_label("First N rows").fill("40")
    await expect(page.get_by_text("Suggested by the columns")).to_be_visible()
    await expect(page.get_by_label("Source of field 1")).to_have_value("answer")
    await expect(page.get_by_role("list", name="Missing columns")).to_have_count(0)
    await page.get_by_label("Share a process between rows").check()
    await picture(page, "job-new")
    await page.get_by_role("button", name="Start the job").click()
    await status(page, "completed")
    await expect(page.get_by_text("80 of 80 results · 10 failed")).to_be_visible()
    await status(page, "completed, 12.5 % of results failed")
    await expect(page.get_by_text("outputs ← answer")).to_be_visible()
    await page.get_by_role("button", name="length@1", exact=True).click()
    await expect(page.get_by_role("list", name="Statistics of length@1")).to_contain_text("Failed5")
    await page.get_by_role("link", name="Run again").click()
    await expect(page.get_by_label("Source of field 1")).to_have_value("answer")
    await expect(page.get_by_role("button", name="Remove length@1")).to_be_visible()
    await expect(page.get_by_label("First N rows")).to_have_value("40")


@pytest.mark.long
async def test_a_job_without_the_outputs_that_its_code_reads_does_not_start(
    page: Page, seeds: Seeds, client: Client
) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == inputs['expected'] else 0.0\n"
    rows = [{"id": n, "question": f"q{n}", "expected": f"a{n}", "reply": f"a{n % 250}"} for n in range(500)]
    await asyncio.to_thread(client.evaluators.create, "compares", Evaluator(code))
    await asyncio.to_thread(client.datasets.upload, "support", rows)
    await page.goto("/jobs/new?evaluator=compares&dataset=support")
    await expect(page.get_by_label("Source of field 1")).to_have_value("reply")
    await page.get_by_role("button", name="Remove field 1").click()
    await expect(page.get_by_role("list", name="Missing columns")).to_contain_text("No column contains the outputs")
    await page.get_by_role("button", name="Start the job").click()
    await expect(page.get_by_role("alert")).to_contain_text("did you mean outputs=reply?")


@pytest.mark.long
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
async def test_a_job_with_doubtful_scores_says_so_and_is_run_again_with_a_mapping(
    look: Look, client: Client, width: int, theme: Literal["light", "dark"]
) -> None:
    name, code = f"doubtful-{width}", "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['wanted']\n"
    rows = [{"question": f"q{n}", "expected": f"a{n}", "reply": f"a{n % 250}"} for n in range(500)]
    await asyncio.to_thread(client.evaluators.create, name, Evaluator(code))
    await asyncio.to_thread(client.datasets.upload, name, rows)
    mapping = {"outputs": "none", "inputs.wanted": "expected"}
    made = await asyncio.to_thread(client.jobs.create, [name], name, mapping=mapping, isolation=Isolation.BATCH)
    await asyncio.to_thread(client.jobs.wait, made.id)
    page = await look.page(width=width, theme=theme)
    await page.goto(f"/jobs/{made.id}")
    await status(page, "scores doubtful")
    card = page.get_by_role("region", name="Warnings")
    await expect(card).to_contain_text("You cannot rely on these scores")
    await expect(card).to_contain_text("missing_outputs 500 rows")
    await expect(card.get_by_role("link", name="row 0")).to_be_visible()
    await picture(page, f"job-doubtful-{width}-{theme}")
    assert await widest_overflow(page) == 0
    assert await grave_findings(page, colours=True) == []
    await card.get_by_role("link", name="Fix the mapping and run again").click()
    await expect(page.get_by_role("heading", name=f"Run job {made.id[4:12]} again")).to_be_visible()
    for at, (field, source) in enumerate((("outputs", "reply"), ("inputs.wanted", "expected")), start=1):
        await expect(page.get_by_label(f"Field {at}", exact=True)).to_have_value(field)
        await expect(page.get_by_label(f"Source of field {at}")).to_have_value(source)
    await page.get_by_role("button", name="Start the job").click()
    await status(page, "completed")
    await expect(page.get_by_text("outputs ← reply")).to_be_visible()
    await expect(card).to_have_count(0)
    await page.goto("/jobs")
    await expect(page.get_by_role("row", name=made.id[4:12])).to_contain_text("scores doubtful")
    await picture(page, f"jobs-doubtful-{width}-{theme}")
    assert await grave_findings(page, colours=True) == []
    await page.goto(f"/evaluators/{name}")
    await page.get_by_text("Jobs and scores").click()
    trend = page.get_by_role("region", name=f"Jobs that used {name}")
    await expect(trend.get_by_role("row", name=made.id[4:12])).to_contain_text("0, doubtful")
    assert await grave_findings(page, colours=True) == []


@pytest.mark.long
async def test_an_evaluator_has_settings_of_its_own_in_a_job(page: Page, seeds: Seeds, client: Client) -> None:
    python = f"3.{sys.version_info.minor}"
    code = Evaluator(LENGTH, threshold=0.5, python=python)
    await asyncio.to_thread(client.evaluators.create, "strict", code)
    await page.goto("/jobs/new?evaluator=strict&evaluator=latency&dataset=many")
    await page.get_by_label("First N rows").fill("40")
    own = page.get_by_role("list", name="Settings in this job").get_by_role("listitem")
    await own.first.get_by_text("Settings of strict").click()
    await expect(own.first.get_by_label("Pass threshold")).to_have_value("0.5")
    await own.first.get_by_label("Pass threshold").fill("0.9")
    await own.first.get_by_label("Timeout (s)").fill("100000")
    await expect(own.first).to_contain_text("changed for this job")
    await page.get_by_role("button", name="Start the job").click()
    await expect(own.first.locator(".field-error")).to_contain_text("over this host's ceiling")
    await picture(page, "job-new-own")
    await own.first.get_by_label("Timeout (s)").fill("20")
    await expect(own.first.locator(".field-error")).to_have_count(0)
    await page.get_by_role("button", name="Start the job").click()
    await status(page, "completed")
    ran = await asyncio.to_thread(client._transport.http.get, f"/v1/jobs/{page.url.rpartition('/')[2]}/evaluators")
    first, second = ran.json()
    assert (first["evaluator"]["threshold"], first["evaluator"]["limits"]["timeout_s"], first["name"]) == (
        0.9,
        20,
        None,
    )
    assert first["evaluator"]["python"] == python
    assert second["label"] == "latency@1"
    stored = await asyncio.to_thread(client.evaluators.get, "strict")
    assert stored.evaluator.threshold == 0.5
    await page.get_by_role("link", name="Run again").click()
    await own.first.get_by_text("Settings of evaluator 1 (pasted)").click()
    await expect(own.first.get_by_label("Pass threshold")).to_have_value("0.9")
    await expect(own.first.get_by_label("Timeout (s)")).to_have_value("20")
    await page.get_by_role("button", name="Remove latency@1").click()
    await page.get_by_role("button", name="Start the job").click()
    await status(page, "completed")
    await expect(page.get_by_text("40 of 40 rows")).to_be_visible()


@pytest.mark.long
async def test_columns_are_mapped_by_name_and_missing_ones_are_named(page: Page, client: Client) -> None:
    code = "def evaluate(row, said, trace):\n    return said == row['correct_answer'] and row.get('city') != row[\"Author\"]\n"
    columns = [{"prompt": "Capital of France?", "gold": "Paris", "response": "Paris", "author_": "Ann"}]
    await asyncio.to_thread(client.datasets.upload, "named-otherwise", columns)
    await asyncio.to_thread(client.evaluators.create, "reads-columns", Evaluator(code))
    await page.goto("/jobs/new?evaluator=reads-columns&dataset=named-otherwise")
    sources = page.get_by_label("Source of field")
    await expect(sources).to_have_count(3)
    for at, source in enumerate(("response", "gold", "author_")):
        await expect(sources.nth(at)).to_have_value(source)
    await expect(page.get_by_label("Field 3", exact=True)).to_have_value("inputs.Author")
    missing = page.get_by_role("list", name="Missing columns")
    await expect(missing).to_have_text("reads-columns reads city, but no column contains it. Map city")
    await picture(page, "job-new-missing")
    await missing.get_by_role("button", name="Map city").click()
    await expect(missing).to_have_count(0)
    await sources.nth(3).fill("prompt")
    await page.get_by_role("button", name="Start the job").click()
    await status(page, "completed")
    await expect(page.get_by_text("inputs.city ← prompt")).to_be_visible()


@pytest.mark.long
async def test_an_order_that_the_host_refuses_says_why(page: Page, seeds: Seeds) -> None:
    await page.goto("/jobs/new?evaluator=length%4099&dataset=many")
    await page.get_by_role("button", name="Start the job").click()
    await expect(page.get_by_role("alert")).to_contain_text("length")
    await page.get_by_role("button", name="Remove length@99").click()
    length = page.get_by_role("checkbox", name="length", exact=True)
    await expect(length).not_to_be_checked()
    await length.check()
    await page.get_by_label("Generate the outputs with a model first").check()
    await page.get_by_role("button", name="Start the job").click()
    await expect(page.get_by_role("alert")).to_contain_text("The model needs a base URL")
    await page.get_by_label("Base URL").fill("ftp://nowhere")
    await page.get_by_role("textbox", name="Model").fill("m")
    await page.get_by_label("Prompt").fill("{{ question }}")
    await page.get_by_role("button", name="Start the job").click()
    await expect(page.get_by_role("alert")).to_contain_text("http")


@pytest.mark.long
async def test_a_job_is_paused_resumed_and_cancelled(page: Page, client: Client) -> None:
    rows = [{"inputs": {"n": n}, "outputs": n} for n in range(4000)]
    job = await asyncio.to_thread(client.jobs.create, [Evaluator(SLOW)], rows, parallelism=1)
    await page.goto(f"/jobs/{job.id}")
    await expect(page.get_by_role("list", name="Statistics of evaluator 1")).to_be_visible()
    await expect(page.get_by_text(" left")).to_be_visible()
    await page.get_by_role("button", name="Pause").click()
    await status(page, "paused")
    await page.get_by_role("button", name="Refresh").click()
    done = (await asyncio.to_thread(client.jobs.get, job.id)).progress.done
    await expect(page.locator(".rows-panel > .panel-head")).to_contain_text(f"{done:,} row")
    await page.goto("/jobs")
    line = page.get_by_role("row", name=job.id[4:12])
    await expect(line).to_contain_text("paused")
    await line.get_by_role("link").first.click()
    await page.get_by_role("button", name="Resume").click()
    await status(page, "running")
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await status(page, "cancelled")
    assert (await asyncio.to_thread(client.jobs.get, job.id)).status is JobStatus.CANCELLED
    await from_more(page, "Delete…")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("The job was deleted")).to_be_visible()
    await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()


@pytest.mark.long
async def test_a_job_that_failed_may_go_on(page: Page, client: Client) -> None:
    fails = Evaluator("def evaluate(inputs, outputs, trace):\n    assert outputs > 1\n    return 1.0\n")
    rows = [{"inputs": {}, "outputs": n} for n in range(4)]
    job = await asyncio.to_thread(client.jobs.create, [fails], rows, max_failures=1, parallelism=1)
    await page.goto(f"/jobs/{job.id}")
    await status(page, "failed")
    async with page.expect_response(f"**/v1/jobs/{job.id}/resume") as asked:
        await page.get_by_role("button", name="Resume").click()
    assert (await asked.value).ok
    await status(page, "completed")  # since it was resumed, the job may have one more failed row than before


@pytest.mark.long
async def test_jobs_are_filtered_and_two_are_chosen_to_compare(page: Page, seeds: Seeds) -> None:
    await page.goto("/jobs")
    await page.get_by_label("Status").select_option("completed")
    await expect(page).to_have_url(f"{page.url.split('?')[0]}?status=completed")
    compare = page.get_by_role("button", name="Compare", exact=True)
    await expect(compare).to_be_disabled()
    for job in (seeds.after, seeds.before):
        await page.get_by_role("checkbox", name=job[4:12]).check()
    await compare.click()
    await expect(page).to_have_url(f"{page.url.split('/compare')[0]}/compare/{seeds.before}/{seeds.after}")


@pytest.mark.long
async def test_a_job_over_a_replaced_data_set_is_compared_and_run_again(
    page: Page, seeds: Seeds, client: Client
) -> None:
    def made(value: int, *, replace: bool) -> str:
        client.datasets.upload(
            "quiz", [{"question": f"question {n}", "outputs": str(value)} for n in range(3)], replace=replace
        )
        return client.jobs.wait(client.jobs.create(["length@1"], "quiz").id).id

    first = await asyncio.to_thread(made, 1, replace=False)
    dialog = page.get_by_role("dialog", name="Compare with another job")
    second = await asyncio.to_thread(made, 22, replace=True)
    await page.goto("/jobs?search=quiz")
    line = page.get_by_role("row").filter(has_text=first[4:12])
    await expect(line.locator(".cell-dataset")).to_have_text("quiz@1 (newest: 2)")
    await page.goto(f"/jobs/{second}")
    await page.get_by_role("button", name="Compare…").click()
    await expect(dialog.get_by_role("listitem").first).to_contain_text("quiz@1, length@1, completed")
    await dialog.get_by_role("link").first.click()
    await expect(page).to_have_url(re.compile(f"/compare/{first}/{second}$"))
    await expect(page.get_by_role("row", name="data quiz@1 quiz@2")).to_be_visible()
    await page.goto(f"/jobs/{first}")
    await page.get_by_role("link", name="Run again").click()
    await expect(
        page.get_by_text("quiz has been replaced since: this job will use version 2; the earlier job used version 1.")
    ).to_be_visible()
    await expect(page.get_by_role("combobox", name="Data set")).to_have_value("quiz")
    older = await asyncio.to_thread(client.jobs.create, ["length@1"], "quiz@1")
    assert (older.dataset_name, older.dataset_version, older.dataset_newest) == ("quiz", 1, 2)
    await asyncio.to_thread(client.datasets.delete, "quiz", force=True)
    gone = await asyncio.to_thread(client.jobs.get, first)
    assert (gone.dataset_name, gone.dataset_version, gone.dataset_newest) == ("quiz", None, None)


@pytest.mark.long
async def test_jobs_over_two_data_sets_with_the_same_questions_are_compared(
    page: Page, seeds: Seeds, client: Client
) -> None:
    def made(name: str, answer: str, rows: int = 3) -> str:
        client.datasets.upload(name, [{"question": f"question {n}", "outputs": answer} for n in range(rows)])
        return client.jobs.wait(client.jobs.create(["length@1"], name).id).id

    old = await asyncio.to_thread(made, "old-bot", "1")
    longer = await asyncio.to_thread(made, "longer-bot", "1", rows=4)
    new = await asyncio.to_thread(made, "new-bot", "22")
    await page.goto(f"/jobs/{new}")
    await page.get_by_role("button", name="Compare…").click()
    choices = page.get_by_role("dialog", name="Compare with another job").get_by_role("listitem")
    await expect(choices.first).to_contain_text("old-bot@1, length@1, completed")
    other = choices.filter(has_text=longer[4:12])
    await expect(other).to_contain_text("completed, has a different number of rows")
    await choices.first.get_by_role("link").click()
    await expect(page).to_have_url(re.compile(f"/compare/{old}/{new}$"))
    await expect(page.get_by_role("row", name="data old-bot@1 new-bot@1")).to_be_visible()


@pytest.mark.long
async def test_statistics_and_plots_of_many_rows_are_taken_home(page: Page, seeds: Seeds, client: Client) -> None:
    statistics = (await asyncio.to_thread(client.jobs.results, seeds.before)).evaluators[0]
    score = next(metric for metric in statistics.metrics if metric.name == "score")
    await page.goto(f"/jobs/{seeds.before}")
    tiles = page.get_by_role("list", name="Statistics of length@1")
    await expect(tiles).to_contain_text(f"Scored{statistics.scored:,}")
    await expect(tiles).to_contain_text(f"Mean score{score.mean:.4g}")
    assert statistics.pass_interval is not None
    low, high = (f"{100 * bound:.1f} %" for bound in statistics.pass_interval)
    await expect(tiles).to_contain_text(f"95 % interval {low} to {high}")
    await expect(page.get_by_role("region", name="Metrics").get_by_role("row", name="words")).to_be_visible()
    rows = page.get_by_role("region", name="Rows and results")
    await expect(rows.get_by_role("columnheader", name="words")).to_be_visible()
    await page.get_by_text("Distribution, slowest rows").click()
    await expect(page.locator("canvas[data-drawn=true]")).to_have_count(1)
    name = f"{seeds.before}-score"
    async with page.expect_download() as download:
        await page.get_by_role("button", name=f"{name}: save as CSV").click()
    table = list(csv.reader((await (await download.value).path()).read_text().splitlines()))
    assert table[0] == ["from", "to", "rows"]
    assert [int(row[2]) for row in table[1:]] == [one.count for one in score.histogram]
    async with page.expect_download() as download:
        await page.get_by_role("button", name=f"{name}: save as PNG").click()
    assert (await (await download.value).path()).read_bytes()[:4] == b"\x89PNG"
    await page.get_by_text("Data as a table").click()
    await expect(page.get_by_role("region", name="Data: How score is distributed").locator("tbody tr")).to_have_count(
        len(score.histogram)
    )
    await from_more(page, "Download rows…")
    dialog = page.get_by_role("dialog", name="Download rows")
    await dialog.get_by_label("Format").select_option("JSON Lines, with all details")
    async with page.expect_download() as download:
        await dialog.get_by_role("button", name="Download", exact=True).click()
    lines = (await (await download.value).path()).read_text().splitlines()
    assert len(lines) == 2000
    assert json.loads(lines[-1])["index"] == 1999
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name=f"Failed {statistics.failed:,}").click()
    await from_more(page, "Download rows…")
    await picture(page, "job-download")
    await expect(dialog.get_by_label("Rows")).to_have_value("matching")
    async with page.expect_download() as download:
        await dialog.get_by_role("button", name="Download", exact=True).click()
    failed = list(csv.DictReader((await (await download.value).path()).read_text().splitlines()))
    assert (len(failed), {one["status"] for one in failed}) == (statistics.failed, {"failed"})
    await page.get_by_role("button", name=re.compile("^All ")).click()
    await page.get_by_label("Metric", exact=True).select_option("words")
    await expect(page.get_by_role("img", name="How words is distributed")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("img", name="How words is distributed")).to_be_visible()


@pytest.mark.long
async def test_rows_are_in_the_first_screen_and_the_job_has_a_name(look: Look, seeds: Seeds) -> None:
    page = await look.page()
    await page.goto(f"/jobs/{seeds.before}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile(r"^length · many \(answer\) · \d+ [A-Z]")
    )
    rows = page.get_by_role("region", name="Rows and results").locator("tbody tr")
    await expect(rows).to_have_count(50)
    third = await rows.nth(1).bounding_box()
    assert third is not None
    assert third["y"] + third["height"] <= 800
    await page.get_by_role("button", name=re.compile(r"^Not passed [\d,]+$")).click()
    await expect(rows.first).to_contain_text("not passed")
    await page.get_by_role("button", name="All 2,000").click()
    await page.set_viewport_size({"width": 390, "height": 800})
    await expect(rows).to_have_count(10)
    assert await widest_overflow(page) == 0
    assert await grave_findings(page) == []


@pytest.mark.long
async def test_a_pass_rate_that_is_missing_leads_to_the_threshold(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.small}?evaluator=latency%401")
    await page.get_by_role("link", name="Set a pass threshold…").click()
    await expect(page.get_by_label("Pass threshold")).to_have_value("")
    await expect(page.locator("details.settings > summary")).to_contain_text("no pass threshold")
    await expect(page.get_by_role("textbox", name="Code")).to_contain_text("len(trace['spans'])")
    await picture(page, "threshold")


@pytest.mark.long
async def test_failures_are_grouped_and_lead_to_their_rows(page: Page, seeds: Seeds) -> None:
    await page.goto(f"/jobs/{seeds.before}")
    await page.get_by_role("button", name="Failed 201").click()
    failures = page.get_by_role("region", name="Failures").get_by_role("listitem")
    await expect(failures).to_have_count(2)
    await expect(failures.first).to_contain_text("200")
    await expect(failures.first).to_contain_text(f"row 0 has no output {MARKUP}")
    await expect(failures.last).to_contain_text("ZeroDivisionError")
    rows = page.get_by_role("region", name="Rows and results").locator("tbody tr")
    await expect(rows.nth(1)).to_contain_text("ZeroDivisionError: division by zero")
    await picture(page, "job-2000")
    await failures.last.get_by_role("link", name="row 1").click()
    await expect(page.get_by_role("heading", name="Row 1")).to_be_visible()
    await expect(page.get_by_text("ZeroDivisionError on line 6")).to_be_visible()
    assert (await page.title()).startswith("Row 1 · length · many (answer) · ")


@pytest.mark.long
async def test_two_jobs_are_compared(page: Page, seeds: Seeds, client: Client) -> None:
    compared = (await asyncio.to_thread(client.jobs.compare, seeds.before, seeds.after))[0]
    await page.goto(f"/jobs/{seeds.after}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.get_by_role("button", name="Compare…").click()
    choice = page.get_by_role("dialog").get_by_role("listitem").filter(has_text=seeds.before[4:12])
    await expect(choice).to_contain_text(compared.before)
    await choice.get_by_role("link").click()
    await expect(page.get_by_role("region", name=f"Worse: {compared.regressed:,}")).to_be_visible()
    await expect(page.get_by_text(f"of {compared.judged:,} rows with a verdict in both")).to_be_visible()
    better = page.get_by_role("region", name="Rows that are better").locator("tbody tr")
    await expect(better).to_have_count(8)
    await expect(better.first).to_contain_text("letters of word")
    worse = page.get_by_role("region", name="Rows that are worse").locator("tbody tr")
    await expect(worse).to_have_count(8)
    tables = 3 if compared.passes_lost_rows else 2
    assert sum("/rows?row=" in url for url in asked) == 2 * tables, "each table must make only one request for each job"
    await expect(page.locator("canvas[data-drawn=true]")).to_have_count(1)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Rows that are worse: save as CSV").click()
    saved = list(csv.DictReader((await (await download.value).path()).read_text().splitlines()))
    changes = await asyncio.to_thread(lambda: list(client.jobs.changes(seeds.before, seeds.after, better=False)))
    assert sorted(int(one["row"]) for one in saved) == [change.row for change in changes]
    falls = [float(one["change"] or "-inf") for one in saved]
    assert falls == sorted(falls), "the rows must be saved worst first"
    first = await asyncio.to_thread(client.jobs.row, seeds.after, int(saved[0]["row"]))
    assert saved[0]["passed_after"] == str(first.results[0].result["passed"]).lower().replace("none", "")
    inputs = {name.removeprefix("inputs."): value for name, value in saved[0].items() if name.startswith("inputs.")}
    assert set(inputs) < set(first.row)
    assert inputs["n"] == str(first.row["n"])
    async with page.expect_download() as download:
        await page.locator("figure").get_by_role("button", name="save as CSV").click()
    points = list(csv.DictReader((await (await download.value).path()).read_text().splitlines()))
    assert sum(int(point["rows"]) for point in points) == compared.metrics[0].n
    await page.get_by_role("button", name=f"All {compared.improved:,} in order of rows").click()
    await expect(page.get_by_role("button", name=f"Show more of {compared.improved:,} rows")).to_be_visible()
    await page.get_by_role("button", name="The 100 that changed most").click()
    differences = page.get_by_role("region", name="Mean differences")
    await expect(differences.get_by_role("row", name="words")).to_contain_text("no difference")
    await picture(page, "compare")
    change = compared.improvements[0]
    await better.first.get_by_role("link", name=f"row {change.row:,}").click()
    await expect(page.get_by_role("heading", name=f"Row {change.row:,}")).to_be_visible()
    await page.go_back()
    await page.get_by_role("link", name="Swap").click()
    await expect(page.get_by_role("region", name=f"Better: {compared.regressed:,}")).to_be_visible()
    await page.get_by_role("button", name=f"Compare the texts of row {change.row}", exact=True).click()
    texts = page.get_by_role("dialog", name=f"Row {change.row:,} in both jobs")
    await expect(texts.get_by_role("heading", name="Outputs, the same in both")).to_be_visible()
    # in this row, the two jobs have errors with different words
    await page.goto(f"/compare/{seeds.before}/{seeds.after}?row=0")
    await expect(page.get_by_role("dialog").locator(".diff .cm-changedText").first).to_be_visible()
    assert await grave_findings(page) == []
    await picture(page, "compare-texts")
    await page.goto(f"/compare/{seeds.small}/{seeds.small}")
    await expect(page.get_by_role("region", name="Worse: 0")).to_be_visible()
    # without a score, neither job is better or worse
    await expect(page.locator(".tile-value.pass, .tile-value.fail")).to_have_count(0)
    await page.goto(f"/compare/{seeds.before}/{seeds.small}")
    await expect(page.get_by_role("alert")).to_contain_text("different rows")


@pytest.mark.long
async def test_a_comparison_lists_the_rows_that_are_found(page: Page, client: Client) -> None:
    rows = [{"n": n, "city": "Rome" if n in (2, 5) else "Lima"} for n in range(8)]
    better = "def evaluate(inputs, outputs, trace):\n    return inputs['n'] % 2"
    await asyncio.to_thread(client.datasets.upload, "compare-found", rows)
    jobs = []
    for code in ("def evaluate(inputs, outputs, trace):\n    return 0.5", better):
        made = await asyncio.to_thread(client.jobs.create, [Evaluator(code, threshold=0.5)], "compare-found")
        jobs.append((await asyncio.to_thread(client.jobs.wait, made.id)).id)
    await page.goto(f"/compare/{jobs[0]}/{jobs[1]}")
    for name, job in zip(("Before", "After"), jobs, strict=True):
        column = page.get_by_role("columnheader", name=f"{name}: ").filter(has_text=f"({job[4:12]})")
        await expect(column.first).to_be_visible()
    await page.get_by_label("Column", exact=True).select_option("city")
    by_city = page.get_by_role("region", name="Difference by city").locator("tbody tr")
    await expect(by_city).to_have_count(2)
    await expect(by_city.nth(1)).to_contain_text("Rome")
    await expect(by_city.nth(1)).to_contain_text("too few rows")
    assert await grave_findings(page) == []
    await picture(page, "compare-by-column")
    worse = page.get_by_role("region", name="Rows that are worse").locator("tbody tr")
    risen = page.get_by_role("region", name="Rows that are better").locator("tbody tr")
    await expect(worse).to_have_count(4)
    await page.get_by_label("Find text in rows").fill("Rome")
    await page.keyboard.press("Enter")
    await expect(worse).to_have_count(1)
    await expect(worse).to_contain_text("row 2")
    await expect(page.get_by_role("region", name="Worse: 1 of 4")).to_be_visible()
    await picture(page, "compare-found")

    async def held(route: Route) -> None:  # a search that goes on
        await asked.wait()
        await route.continue_()

    asked = asyncio.Event()
    await page.route("**/rows?*text=Lima*", held)
    await page.get_by_label("Find text in rows").fill("Lima")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Rows that are worse: save as CSV")).to_be_disabled()
    asked.set()
    await expect(page.get_by_role("region", name="Worse: 3 of 4")).to_be_visible()
    await page.get_by_label("Find text in rows").fill("Rome")
    await page.keyboard.press("Enter")
    await expect(worse).to_have_count(1)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Rows that are worse: save as CSV").click()
    saved = list(csv.DictReader((await (await download.value).path()).read_text().splitlines()))
    assert [one["row"] for one in saved] == ["2"]
    await expect(risen).to_contain_text("row 5")
    await page.reload()
    await expect(worse).to_have_count(1)
    await page.get_by_label("Outcome").select_option("Passes in the later job")
    await expect(page.get_by_text("No changed row matches the search.")).to_have_count(1)
    await expect(risen).to_have_count(1)
    await page.get_by_label("Find text in rows").fill("")
    await expect(risen).to_have_count(4)
    await page.goto(f"/compare?jobs={','.join(jobs)}&text=Rome")
    await expect(page.get_by_role("region", name="Rows that differ").locator("tbody tr")).to_have_count(2)

"""Users see an alert about one job on the pages, and a badge with the number of alerts, and can acknowledge an alert."""

import asyncio

import pytest
from playwright.async_api import Page, Route, expect

from evaluator_host.client import Client
from evaluator_host.types.alerts import AlertRule, Metric
from evaluator_host.types.evaluator import Evaluator
from tests.browser.looking import from_more, grave_findings, picture
from tests.server import Server


async def test_an_alert_on_a_job_fires_on_every_page_until_it_is_acknowledged(page: Page, host: Server) -> None:
    with Client(host.url) as client:
        job = client.jobs.create([Evaluator("def evaluate(i, o, t):\n    return 0.25\n")], [{"n": 1}], name="low one")
        await asyncio.to_thread(client.jobs.wait, job.id)
        await page.goto(f"/jobs/{job.id}")
        await from_more(page, "Alert me…")
        dialog = page.get_by_role("dialog", name="New alert")
        await expect(dialog.get_by_label("Watches")).to_have_value(f"job {job.id}")
        await expect(dialog.get_by_label("Watches").locator("option:checked")).to_have_text("Job low one")
        await dialog.get_by_label("Name").fill("too-low")
        await dialog.get_by_label("Webhook (optional)").fill("hooks")
        await dialog.get_by_role("button", name="Create").click()
        await expect(dialog.get_by_role("alert").get_by_role("strong")).to_have_text("Webhook")
        await dialog.get_by_label("Webhook (optional)").fill("")
        await dialog.get_by_label("Bound", exact=True).fill("")
        await expect(dialog.get_by_text("Enter a number.")).to_be_visible()
        await expect(dialog.get_by_role("button", name="Create")).to_be_disabled()
        await dialog.get_by_label("Bound", exact=True).fill("0.8")
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.method) if request.url.endswith("/v1/alerts") else None)
        await dialog.get_by_role("button", name="Create").dblclick()
        await expect(dialog).to_have_count(0)
        assert sent.count("POST") == 1
        for _ in range(60):
            if client.alerts.get("too-low").firing:
                break
            await asyncio.sleep(0.5)
        await page.goto("/evaluators")
        badge = page.get_by_role("banner").locator("a.icon-button")
        await expect(badge).to_contain_text("1 alert is firing")
        await badge.click()
        row = page.get_by_role("row", name="too-low")
        await expect(row.get_by_text("firing", exact=True)).to_be_visible()
        # the job has ended, so its alert cannot be paused
        await expect(row.get_by_role("button", name="Pause")).to_have_count(0)
        assert await grave_findings(page) == []
        await picture(page, "alerts-firing")
        await row.get_by_role("button", name="Acknowledge").click()
        await expect(row.get_by_text("acknowledged", exact=True)).to_be_visible()
        await expect(badge).not_to_contain_text("firing")
        assert await grave_findings(page) == []
        client.alerts.delete("too-low")
        client.labels.create("of-the-low-one", job=job.id)
        await page.goto("/labels")
        await expect(page.get_by_role("row", name="of-the-low-one").get_by_role("link", name="low one")).to_be_visible()
        client.labels.delete("of-the-low-one")


GONE = "there is no data set due-rows; `evaluator-host datasets list` lists the names"


@pytest.mark.long
async def test_a_schedule_that_made_no_job_counts_unless_an_alert_says_so(page: Page, host: Server) -> None:
    with Client(host.url) as client:
        client.datasets.upload("due-rows", [{"n": 1}])
        client.evaluators.create("due", Evaluator("def evaluate(i, o, t):\n    return 1.0\n"))
        client.schedules.create("due-weekly", "0 7 * * 1", evaluators=["due"], dataset="due-rows")

        async def missed(route: Route) -> None:
            answer = await route.fetch()
            found = [{**one, "last_error": GONE} for one in await answer.json()]
            await route.fulfill(response=answer, json=found)

        await page.route("**/v1/schedules", missed)
        badge = page.get_by_role("banner").locator("a.icon-button")
        await page.goto("/evaluators")
        await expect(badge).to_contain_text("1 schedule created no job")
        assert await grave_findings(page) == []
        client.schedules.update("due-weekly", paused=True)
        await page.goto("/evaluators")
        await expect(badge).to_have_text("Alerts")
        client.schedules.update("due-weekly", paused=False)
        client.alerts.create("due-low", AlertRule(Metric.MEAN, schedule="due-weekly", below=0.5))
        await page.goto("/schedules")
        await expect(badge).to_have_text("Alerts")
        await expect(page.get_by_text("there is no data set due-rows", exact=True)).to_be_visible()
        await page.goto("/schedules?show=alerts")
        await expect(page.get_by_role("row", name="due-low")).to_contain_text("not checked yet")
        client.alerts.delete("due-low")
        client.schedules.delete("due-weekly")

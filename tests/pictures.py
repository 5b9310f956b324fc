"""`make pictures`: takes pictures of running pages for README and docs, each in the light and in the dark theme."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final, Literal

from playwright.async_api import Page, async_playwright, expect

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.looking import SETTLED, looking
from tests.browser.writing import loads, run, score
from tests.server import Server, new_home

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
NAMES: Final = ("workbench", "comparison")
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")

CODE = """from rapidfuzz import fuzz


def evaluate(inputs, outputs, trace):
    alike = fuzz.token_set_ratio(outputs, inputs["expected"]) / 100
    return {
        "score": alike,
        "passed": alike >= 0.8,
        "reason": f"{alike:.0%} of the expected words",
    }
"""
ANSWERS = [  # question, expected answer, answer of the first prompt, answer of the second
    ("How long do refunds take?", "Refunds take 5 working days.", "It depends on your bank.", "Refunds take 5 working days."),
    ("Can I change my address?", "Yes, under Account, Addresses.", "Yes, under Account, Addresses.", "Yes: Account, Addresses."),
    ("Do you ship to Norway?", "Yes, in 4 to 6 days.", "We ship all over Europe.", "Yes, in 4 to 6 days."),
    ("Where is my invoice?", "Under Orders, Invoices.", "You can find it in your orders.", "Under Orders, Invoices."),
    ("How do I cancel?", "Cancel under Plan at any time.", "Cancel under Plan at any time.", "Cancel under Plan at any time."),
    ("Is there a student price?", "Students pay half.", "Students pay half the price.", "Students pay half."),
    ("What does Team cost?", "Team costs 12 euros a month.", "Please see our price list.", "Team costs 12 euros a month."),
    ("Can I pay by invoice?", "From 10 seats on.", "Yes, you can.", "From 10 seats on."),
    ("Do you have an API?", "Yes, on every plan.", "Yes, on every plan.", "Yes, on every plan."),
    ("Who sees my data?", "Only your team.", "Your privacy matters to us.", "Only the members of your team."),
    ("How do I reset my password?", "Use the link on the sign-in page.", "Use the link on the sign-in page.", "By e-mail."),
    ("Is there a free plan?", "Yes, for one person.", "Yes.", "Yes, for one person."),
    ("Where are your servers?", "In Frankfurt and Dublin.", "In the cloud.", "In Frankfurt and Dublin."),
    ("Can I export everything?", "Yes, as CSV or JSON.", "Yes, as CSV or JSON.", "Yes, as CSV or JSON."),
    ("When is support open?", "On weekdays from 8 to 18.", "Support is open all week.", "On weekdays from 8 to 18."),
]  # fmt: skip


def rows() -> list[dict[str, Any]]:
    names = ("question", "expected", "answer", "answer_v2")
    return [dict(zip(names, row, strict=True)) for row in ANSWERS]


async def take(folder: Path) -> list[Path]:
    """Take every picture from a new host with records, save the pictures in a folder, and return their paths."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        settings = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'host.db'}"}
        with Server(log=home / "log", data_dir=new_home(home), environment=settings) as host:
            before, after = await asyncio.to_thread(_stored, host.url)
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
                async with looking(browser, host.url) as look:
                    page = await look.page(width=1280, height=760, device_scale_factor=1.15)
                    await page.goto(f"/?job={before}&row=5&evaluator=alike")
                    await loads(page)
                    await run(page)
                    # a second run, so that the picture shows the time of a warm sandbox
                    await expect(score(await run(page))).to_be_visible()
                    taken = await _in_both_themes(page, folder, "workbench")
                    await page.goto(f"/compare/{before}/{after}")
                    await expect(page.get_by_role("heading", level=1)).to_be_visible()
                    await expect(page.get_by_text("How long do refunds take?").first).to_be_visible()
                    taken += await _in_both_themes(page, folder, "comparison")
                await browser.close()
    return taken


def _stored(url: str) -> tuple[str, str]:
    """Store an evaluator and rows, run two jobs over the rows, and return the jobs' ids."""
    with Client(url) as client:
        client.evaluators.create("alike", Evaluator(CODE, packages=("rapidfuzz==3.14.6",)))
        client.datasets.upload("support", rows())
        jobs = [
            client.jobs.create(["alike"], "support", mapping={"outputs": column}) for column in ("answer", "answer_v2")
        ]
        for job in jobs:
            client.jobs.wait(job.id)
        return jobs[0].id, jobs[1].id


async def _in_both_themes(page: Page, folder: Path, name: str) -> list[Path]:
    taken = []
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme)
        await page.evaluate(SETTLED)
        taken.append(folder / f"{name}-{theme}.png")
        await page.screenshot(path=taken[-1])
    return taken


if __name__ == "__main__":
    for made in asyncio.run(take(FOLDER)):
        print(f"{made}  {made.stat().st_size // 1024} KB")

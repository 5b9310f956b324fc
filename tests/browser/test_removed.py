"""The pages of a host from which some resources and a vendor were removed show only the remaining resources."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.looking import looking
from tests.resources.copies import copy_without
from tests.server import Server, new_home

pytestmark = pytest.mark.long(
    "this runs a host from a copy of the source; tests/resources/test_removal.py also removes a resource"
)
GONE = ("platform/labels", "platform/alerts", "platform/schedules", "platform/traces", "vendors/langfuse")


@pytest.fixture(scope="module")
def smaller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A host that runs from a copy of the source tree without the folders in `GONE`."""
    folder = tmp_path_factory.mktemp("smaller")
    environment = {"PYTHONPATH": str(copy_without(GONE, folder / "tree")), "PYTHONSAFEPATH": "1"}
    with Server("none", data_dir=new_home(folder), log=folder / "log", environment=environment) as running:
        yield running


async def test_pages_of_removed_resources_are_not_offered(browser: Browser, smaller: Server) -> None:
    kept = smaller.client.get("/v1/info").json()["resources"]
    assert not {Path(one).name for one in GONE} & set(kept)
    assert "jobs" in kept
    evaluator = {"name": "kept", "code": "def evaluate(inputs, outputs, trace):\n    return 1\n"}
    smaller.client.post("/v1/evaluators", json=evaluator).raise_for_status()
    async with looking(browser, smaller.url) as look:
        page = await look.page()
        await page.goto("/")
        places = page.get_by_role("navigation", name="Main").get_by_role("link")
        await expect(places).to_have_text(["Workbench", "Evaluators", "Data sets", "Jobs"])
        await expect(page.get_by_role("link", name="Alerts")).to_have_count(0)
        await page.get_by_role("button", name="Set up").click()
        await expect(page.get_by_role("menuitem", name="Secrets")).to_be_visible()
        await expect(page.get_by_role("menuitem", name="Schedules")).to_have_count(0)
        for path in ("/labels", "/schedules"):
            await page.goto(path)
            await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
        await page.goto("/evaluators/kept")
        await expect(page.get_by_role("button", name="Differences")).to_be_visible()
        await expect(page.get_by_role("button", name="Live traces")).to_have_count(0)
        await page.goto("/help")
        contents = page.get_by_role("navigation", name="Pages of the documentation")
        await expect(contents.get_by_role("link", name="LangSmith: evaluators")).to_be_visible()
        await expect(contents.get_by_role("link", name="Opik", exact=True)).to_be_visible()
        await expect(contents.get_by_role("link", name="Langfuse")).to_have_count(0)
        await page.goto("/help/wires/langfuse")
        await expect(page.get_by_text("There is no page wires/langfuse")).to_be_visible()

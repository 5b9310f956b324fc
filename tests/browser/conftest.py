"""Fixtures: a real host with real sandboxes, and a real Chromium that shows the host's pages. All tests here share
both.
"""

import shutil
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from evaluator_host.client import Client
from tests.browser.looking import Look, looking
from tests.browser.seeds import Seeds, sow
from tests.server import FORKED, Server, new_home

# The headless shell takes half the processor time of the whole browser.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or "chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",
    "--process-per-site",
    "--disable-site-isolation-trials",
    # pages are open only for seconds, so compiling less code saves more time than faster code
    "--js-flags=--max-lazy,--no-opt",
]

expect.set_options(timeout=30_000)  # long, because the machine may be busy with other tests


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The host that serves the pages. Each test gives unique names to the records that it stores."""
    folder = tmp_path_factory.mktemp("host")
    environment = {
        **FORKED,
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder / 'host.db'}",
        "EVALUATOR_HOST_JUDGE_HOSTS": '["127.0.0.1"]',
        "EVALUATOR_HOST_CODE_SECRETS": '["crm"]',
        "EVALUATOR_HOST_MODEL_DAY": '{"requests": 1000}',
        "EVALUATOR_HOST_NETWORK_HOSTS": '["api.example.com:443"]',
    }
    with Server(log=folder / "log", environment=environment) as running:
        yield running


@pytest.fixture(scope="session")
def seeds(host: Server) -> Seeds:
    """Evaluators, data sets, jobs and traces on the host, which tests read but do not change."""
    with Client(host.url) as client:
        return sow(client)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A host without any stored records and without installed packages."""
    folder = tmp_path_factory.mktemp("bare")
    database = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder / 'host.db'}"}
    with Server(log=folder / "log", data_dir=new_home(folder), environment=database) as running:
        yield running


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A running Chromium, which all tests share."""
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield running
        await running.close()


@pytest.fixture
async def look(browser: Browser, host: Server) -> AsyncIterator[Look]:
    """Opens pages of the host. The test fails if a page reports a fault or violates its content security policy."""
    async with looking(browser, host.url) as opened:
        yield opened


@pytest.fixture
async def page(look: Look) -> Page:
    """An empty window of 1280 by 800; `await page.goto("/jobs")` opens a page in it."""
    return await look.page()

"""Makes services for tests, one for each way to start a sandbox: fresh, from a template, and in Docker."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from evaluator_host.engine.config.settings import SandboxStart
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from tests.conftest import settings


def service_of_each_start() -> Any:
    """Return a fixture `service` for a module whose tests run once for each way to start a sandbox."""

    @pytest.fixture(scope="module", params=["fresh", "template", "docker"], name="service")
    async def made(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
        backend = "docker" if request.param == "docker" else "bubblewrap"
        start = SandboxStart.TEMPLATE if request.param == "template" else SandboxStart.FRESH
        async with open_engine(settings(backend, sandbox_start=start)) as opened:
            yield opened

    return made

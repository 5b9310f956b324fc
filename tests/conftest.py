"""Fixtures over the real thing: a service on each backend, shared by a whole run."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.config import SandboxChoice, Settings
from evaluator_host.service import Service
from evaluator_host.wiring import open_service
from tests.engines import engine_address

BACKENDS = ("bubblewrap", "docker")
DATA_DIR = Path(os.environ.get("EVALUATOR_HOST_TEST_DATA", "/var/tmp/evaluator-host-tests/data"))


def settings(backend: str, **changes: object) -> Settings:
    """Return settings for a service on `backend`; the engine is started when none answers."""
    address = engine_address() if backend == "docker" else None
    return Settings(sandbox=SandboxChoice(backend), data_dir=DATA_DIR, docker_host=address, **changes)


@pytest.fixture(scope="session", params=BACKENDS)
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """A running service on each backend in turn."""
    async with open_service(settings(request.param)) as opened:
        yield opened

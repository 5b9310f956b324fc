"""Fixtures: a service that proves migrations in its sandboxes."""

from collections.abc import AsyncIterator

import pytest

from evaluator_host.engine.config.settings import SandboxStart
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from tests.conftest import settings


@pytest.fixture(scope="session")
async def host() -> AsyncIterator[Service]:
    """A service on one backend, because other tests show that both backends give the same scores. Its Python sandboxes
    are forked, because that is cheaper.
    """
    chosen = settings("bubblewrap", sandbox_start=SandboxStart.TEMPLATE)
    async with open_engine(chosen) as opened:
        yield opened

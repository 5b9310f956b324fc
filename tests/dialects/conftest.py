"""Fixtures for dialect tests: Python sandboxes are forked from a template process, which takes half the time of a fresh
start.

`tests/contract/test_template.py` checks that forked and fresh sandboxes behave in the same way. Containers, and
sandboxes that commands start, are not forked.
"""

from collections.abc import AsyncIterator

import pytest

from evaluator_host.engine.config.settings import SandboxStart
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from tests.conftest import BACKENDS, settings


@pytest.fixture(scope="session", params=BACKENDS)
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """A running service on each backend in turn; it starts sandboxes only when they are needed."""
    chosen = settings(request.param, sandbox_start=SandboxStart.TEMPLATE)
    async with open_engine(chosen) as opened:
        yield opened

"""Fixtures: a store on each kind of database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.platform.store.store import Store
from tests.databases import opened_store


@pytest.fixture
async def store(database_url: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(database_url, tmp_path) as opened:
        yield opened

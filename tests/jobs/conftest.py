"""Fixtures for tests of jobs: each test runs with SQLite, and also with PostgreSQL if transactions differ there.

The tests in tests/store run queries about jobs on both databases, and `test_same_on_both.py` runs a whole job on both.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.databases import Databases
from tests.jobs.alerting import Receiver
from tests.jobs.desk import Desk, opened


@pytest.fixture
def database_url(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """A database with all tables. Tests marked `ON_EACH_DATABASE` (tests.jobs.desk) run once for each kind
    of database.
    """
    with databases.lend(getattr(request, "param", "sqlite")) as url:
        yield url


@pytest.fixture
async def desk(database_url: str, tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(database_url, tmp_path) as made:
        yield made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()

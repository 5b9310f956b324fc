"""Fixtures for tests of jobs: each test has a SQLite database, and PostgreSQL too if its transactions differ.

Queries about jobs are tested on both databases in tests/store, and a whole job in `test_same_on_both.py`.
"""

import pytest

from tests.databases import Databases


@pytest.fixture
def database_url(request: pytest.FixtureRequest, databases: Databases) -> str:
    """A new database with all tables; tests marked `ON_EACH_DATABASE` (tests.jobs.desk) run with each kind of database."""
    return databases.make(getattr(request, "param", "sqlite"))

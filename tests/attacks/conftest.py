"""Fixtures for tests of package builds, made once for each test module: a package index, and the data directory of a
host that installs packages from that index.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.indexes import Index


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index() as serving:
        yield serving


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")

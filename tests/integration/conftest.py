"""Fixtures that several modules share."""

from collections.abc import Iterator

import pytest

from tests import registry_server as registries


@pytest.fixture(scope="session")
def registry_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[registries.Registry]:
    """One registry that all tests of package sets share."""
    with registries.serving(tmp_path_factory.mktemp("registry")) as server:
        yield server

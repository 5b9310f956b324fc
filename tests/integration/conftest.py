"""Fixtures that several modules share."""

import contextlib
from collections.abc import Iterator

import docker
import pytest

from tests import package_sets
from tests import registry_server as registries
from tests.engines import engine_address


@pytest.fixture(scope="session")
def registry_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[registries.Registry]:
    """One registry for all sets."""
    with registries.serving(tmp_path_factory.mktemp("registry")) as server:
        yield server


@pytest.fixture(scope="session")
def small_image() -> Iterator[str]:
    """An image to put sets on for a journey; the runtime image takes a minute to push, and nothing of it is used."""
    with contextlib.closing(docker.APIClient(base_url=engine_address())) as client:
        name = package_sets.small_image(client)
        yield name
        client.remove_image(name, force=True)

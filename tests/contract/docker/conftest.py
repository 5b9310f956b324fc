"""Fixtures: a backend on a real engine with the probe image, and a runner in one of its sandboxes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from tests import engines
from tests.docker_guests import Guest, MakeBackend, containers, own, start


@pytest.fixture(scope="module")
def docker_host() -> str:
    return engines.bare_engine_address()


@pytest.fixture(scope="module")
def probe_image() -> str:
    return engines.probe_image()


@pytest.fixture
async def make_backend(docker_host: str, probe_image: str) -> AsyncIterator[MakeBackend]:
    made: list[DockerBackend] = []

    def make(**changes: Any) -> DockerBackend:
        arguments = {"docker_host": docker_host, "runtime": None, "image": probe_image, "instance": own()}
        made.append(DockerBackend(**{**arguments, **changes}))
        return made[-1]

    yield make
    for backend in made:
        await backend.close()
    assert containers(docker_host, own()) == []


@pytest.fixture
async def backend(make_backend: MakeBackend) -> DockerBackend:
    return make_backend()


@pytest.fixture
async def guest(backend: DockerBackend) -> AsyncIterator[Guest]:
    started = await start(backend)
    yield started
    await started.link.destroy()

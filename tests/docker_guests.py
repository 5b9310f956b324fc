"""Starts sandboxes of the Docker backend that run the tests' probe runner."""

import asyncio
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import docker.errors

from evaluator_host.engine.sandbox.docker.backend import DockerBackend, DockerLink
from evaluator_host.engine.sandbox.docker.cleanup import LABEL_INSTANCE
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.protocol import Frame, FrameDecoder, encode
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec

MakeBackend = Callable[..., DockerBackend]


def own() -> str:
    """Return the name that marks the containers of these tests as theirs; a service in the same run has another name."""
    return f"{this_instance()}.1"


def spec(language: Language = Language.PYTHON, **limits: int) -> SandboxSpec:
    return SandboxSpec(language, Environment("", language, ""), **limits)


class Guest:
    """A started sandbox with the probe runner in it."""

    def __init__(self, link: DockerLink) -> None:
        self.link = link
        self._decoder = FrameDecoder()
        self._frames: list[Frame] = []

    async def frame(self) -> Frame | None:
        async with asyncio.timeout(30):
            while not self._frames:
                data = await self.link.read()
                if not data:
                    return None
                self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    async def run(self, code: str) -> Any:
        """Run code in the runner and return the `answer` that the code sets, or None if the runner ended instead."""
        self.link.write(encode({"type": "run"}, textwrap.dedent(code).encode()))
        frame = await self.frame()
        if frame is None:
            return None
        assert frame.type == "answer", json.loads(frame.body)
        return json.loads(frame.body)


async def start(backend: DockerBackend, wanted: SandboxSpec | None = None) -> Guest:
    guest = Guest(await backend.start(wanted or spec()))
    hello = await guest.frame()
    assert hello is not None, await guest.link.destroy()
    assert hello.type == "hello"
    return guest


def containers(docker_host: str, instance: str) -> list[str]:
    """Return the names of a host's containers on the engine."""
    client = docker.APIClient(base_url=docker_host)
    found = client.containers(all=True, filters={"label": f"{LABEL_INSTANCE}={instance}"})
    client.close()
    return [item["Names"][0].removeprefix("/") for item in found]


def own_namespaces() -> set[str]:
    return {str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("net", "pid", "ipc", "uts", "mnt")}

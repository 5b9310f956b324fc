"""Common parts of backends with sandboxes that use the programs and files of this machine."""

import itertools
import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.sandbox.pythons import Pythons, host_platform
from evaluator_host.types.evaluator import Environment, Language


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTools:
    """The programs of this machine with which sandboxes run evaluators. The Docker image contains copies of them."""

    node: Path  # the Node binary for JavaScript and TypeScript
    esbuild: Path  # bundler for JavaScript and TypeScript
    javascript: Path  # folder of the built JavaScript runner
    # called before each start of a sandbox for JavaScript; installs esbuild and builds the runner if they are missing.
    # None if both are there.
    ensure_javascript: Callable[[], Awaitable[None]] | None = None
    restricted: Path  # folder that contains RestrictedPython
    shell: Path | None = None  # folder with a shell and text tools; only bubblewrap uses it
    python_with_node: bool = False  # whether sandboxes for Python have Node too
    runtimes: Path = RUNTIMES_DIR  # folder of the runners' sources

    @property
    def node_flags(self) -> tuple[str, ...]:
        """Return Node's flags, which come before the runner's name."""
        flags = self.runtimes / "javascript" / "node_flags.json"
        return tuple(json.loads(flags.read_text(encoding="utf-8"))) if flags.is_file() else ()


class LocalBackend:
    """Base of backends whose sandboxes read the installed folders directly, so that nothing has to be prepared.

    Args:
      tools: The programs that sandboxes run.
      pythons: Other interpreters that a spec may request.
    """

    def __init__(self, tools: LocalTools, pythons: Pythons | None = None) -> None:
        self.platform = host_platform()
        self._tools = tools
        self._pythons = pythons or Pythons()
        self._numbers = itertools.count(1)

    def python_versions(self) -> tuple[str, ...]:
        """Return the minor versions of Python on this machine, such as `3.13`; the first call may block for seconds."""
        return self._pythons.minors()

    async def prepare(self, environment: Environment) -> None:
        """Do nothing, because sandboxes read the installed folder (`Backend.prepare`)."""

    async def compare(self, environment: Environment) -> list[str]:  # noqa: ARG002 - part of the interface
        """Return no differences, because sandboxes read the installed folder (`Backend.compare`)."""
        return []

    async def drop_environment(self, digest: str) -> None:
        """Do nothing, because nothing was prepared (`Backend.drop_environment`)."""

    async def prune_environments(self, live: Collection[str]) -> list[str]:  # noqa: ARG002 - part of the interface
        """Remove and return nothing, because nothing was prepared (`Backend.prune_environments`)."""
        return []

    async def _ensure_tools(self, language: Language) -> None:
        if self._tools.ensure_javascript is not None and language is not Language.PYTHON:
            await self._tools.ensure_javascript()

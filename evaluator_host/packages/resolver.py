"""Runs uv and npm; makes their messages fit to show: short, without colours, paths, addresses or credentials."""

import re
from dataclasses import dataclass, field
from typing import Final

from evaluator_host.model.errors import IndexUnavailable, Misconfigured, PackagesFailed
from evaluator_host.packages.index import IndexSettings, Workspace
from evaluator_host.packages.lock import Target
from evaluator_host.packages.tools import Tools, installed_tools
from evaluator_host.system import processes
from evaluator_host.system.processes import Command, Finished, LimitReached, OutputFlood, Run

_LINES: Final = 15
_CHARACTERS: Final = 2_000
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ABSOLUTE_PATH: Final = re.compile(r"(?<![\w@/:.-])/(?:[\w.@+-]+/)+[\w.@+-]*")
_UNREACHABLE: Final = (
    "the package index cannot be reached from this host: check the address, the proxy and the CA file, then try again."
)


@dataclass(frozen=True, slots=True)
class Resolver:
    """How uv and npm are run, and for what.

    Attributes:
      index: Where packages come from.
      target: The runtime that packages are for.
      tools: Where uv and npm lie.
      run: Runs a command: as a plain process, or in a build sandbox.
    """

    index: IndexSettings
    target: Target
    tools: Tools = field(default_factory=installed_tools)
    run: Run = processes.run

    async def attempt(self, argv: tuple[str, ...], workspace: Workspace) -> Finished:
        """Run uv or npm in a workspace and return its exit code and output.

        Raises:
          IndexUnavailable: it did not end within `index.timeout_s`.
          PackagesFailed: it wrote too much, or reached a limit of the build sandbox.
          Misconfigured: it is not installed.
        """
        timeout_s = self.index.timeout_s
        try:
            return await self.run(Command(argv, workspace.path, workspace.environment), timeout_s)
        except TimeoutError as error:
            raise unreachable(f"resolving took longer than {timeout_s:g} s", self.index) from error
        except OutputFlood as error:
            raise PackagesFailed("The set resolves to more than a host can keep; pin fewer packages.") from error
        except LimitReached as error:
            raise PackagesFailed(f"The packages cannot be installed here: {error}.") from error
        except OSError as error:
            raise Misconfigured(f"The resolver cannot be started ({error.strerror}): reinstall this host.") from error


def shorten(text: str, index: IndexSettings) -> str:
    """Return at most 15 lines of a message that are safe to show to a user."""
    plain = _CONTROL.sub("", _ANSI.sub("", text))
    plain = _ABSOLUTE_PATH.sub("…", index.redact(plain))
    lines = [line.rstrip() for line in plain.strip().splitlines() if line.strip()]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], "…"]
    return "\n".join(lines)[:_CHARACTERS]


def unreachable(reason: str, index: IndexSettings) -> IndexUnavailable:
    """Return the exception for an index that does not answer, with the reason that the tool gave."""
    return IndexUnavailable(f"{shorten(reason, index)}: {_UNREACHABLE}")

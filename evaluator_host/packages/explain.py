"""Resolvers' own words, made fit to show: short, without colours, paths, addresses of ours or credentials."""

import re
from typing import Final

from evaluator_host.model.errors import IndexUnavailable, Misconfigured, PackagesFailed
from evaluator_host.packages.index import IndexSettings
from evaluator_host.system.processes import Command, Finished, LimitReached, OutputFlood, Run

_LINES: Final = 15
_CHARACTERS: Final = 2_000
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ABSOLUTE_PATH: Final = re.compile(r"(?<![\w@/:.-])/(?:[\w.@+-]+/)+[\w.@+-]*")
_UNREACHABLE: Final = (
    "the package index cannot be reached from this host: check the address, the proxy and the CA file, then try again."
)


def shorten(text: str, index: IndexSettings) -> str:
    """Return at most 15 lines of it that are safe to show to a user."""
    plain = _CONTROL.sub("", _ANSI.sub("", text))
    plain = _ABSOLUTE_PATH.sub("…", index.redact(plain))
    lines = [line.rstrip() for line in plain.strip().splitlines() if line.strip()]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], "…"]
    return "\n".join(lines)[:_CHARACTERS]


def unreachable(reason: str, index: IndexSettings) -> IndexUnavailable:
    """Return the exception for an index that does not answer, with its last words."""
    return IndexUnavailable(f"{shorten(reason, index)}: {_UNREACHABLE}")


async def attempt(command: Command, index: IndexSettings, run: Run) -> Finished:
    """Run a resolver, its hanging and flooding translated.

    Raises:
      IndexUnavailable: it did not end within `index.timeout_s`.
      PackagesFailed: it wrote without end, or was ended at a limit of the builder.
      Misconfigured: it is not installed.
    """
    try:
        return await run(command, index.timeout_s)
    except TimeoutError as error:
        raise unreachable(f"resolving took longer than {index.timeout_s:g} s", index) from error
    except OutputFlood as error:
        raise PackagesFailed("The set resolves to more than a host can keep; pin fewer packages.") from error
    except LimitReached as error:
        raise PackagesFailed(f"The packages cannot be installed here: {error}.") from error
    except OSError as error:
        raise Misconfigured(f"The resolver cannot be started ({error.strerror}): reinstall this host.") from error

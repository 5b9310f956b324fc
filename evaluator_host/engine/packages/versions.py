"""Lists the versions of a package for users to choose from, and caches each list for five minutes."""

import re
import time
from dataclasses import dataclass
from typing import Final

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import LockTarget
from evaluator_host.engine.packages.npm.resolve import matching_versions
from evaluator_host.engine.packages.pip.programs import PipPrograms
from evaluator_host.engine.packages.tools import Resolver, close_name
from evaluator_host.engine.system import processes
from evaluator_host.engine.system.processes import Run
from evaluator_host.types.errors import InvalidRequest, NotFound, Problem
from evaluator_host.types.evaluator import Language

MOST: Final = 500  # maximum length of the list, because nobody reads more versions

_REMEMBERED_S: Final = 300.0
_MOST_REMEMBERED: Final = 256
_NAMES: Final = {
    "python": re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"),
    "javascript": re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]{0,99}"),
}


@dataclass(frozen=True, slots=True)
class PackageVersions:
    """A package's versions that this host can load: at most 500, the newest first, but pre-releases last."""

    name: str
    language: Language
    versions: tuple[str, ...]


class VersionList:
    """Queries the index for versions, and caches each list for five minutes."""

    def __init__(self, index: IndexSettings) -> None:
        self._index = index
        self._kept: dict[tuple[str, str], tuple[float, PackageVersions | None]] = {}
        self._programs = PipPrograms()

    async def list_versions(
        self, name: str, language: Language, *, target: LockTarget, run: Run = processes.run
    ) -> PackageVersions:
        """Return the versions of a package; `run` starts the processes that query the index.

        Raises:
          InvalidRequest: no package can have that name.
          NotFound: the index has no such package, or no version of it can be loaded here.
          IndexUnavailable: the index does not answer.
        """
        if not _NAMES[language.runner].fullmatch(name):
            problem = Problem("name", "this is not a valid package name")
            raise InvalidRequest(f"{name[:100]!r} is not a valid package name", problems=(problem,))
        key = (language.runner, name)
        kept = self._kept.get(key)
        if kept is None or kept[0] < time.monotonic():
            found = await self._ask(name, language, Resolver(self._index, target, run=run))
            while len(self._kept) >= _MOST_REMEMBERED:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[key] = (time.monotonic() + _REMEMBERED_S, found)
        if kept[1] is None:
            meant = close_name(name, language)
            raise NotFound(
                f"the index has no package {name} for this host{f'; did you mean {meant}?' if meant else ''}"
            )
        return kept[1]

    async def _ask(self, name: str, language: Language, resolver: Resolver) -> PackageVersions | None:
        if language is Language.PYTHON:
            found = await self._programs.ask("versions", {"name": name}, resolver)
            versions = tuple(found["versions"] or ())
            return PackageVersions(found["name"], language, versions[:MOST]) if versions else None
        (matching,) = await matching_versions([(name, "*")], resolver)
        return PackageVersions(name, language, matching[::-1][:MOST]) if matching else None

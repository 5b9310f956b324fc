"""Parses pins (exact package versions), finds the runtime for them, and suggests pins in place of refused strings."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import anyio.to_thread

from evaluator_host.engine.environments.record import target_for
from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import Lock, LockTarget, Pin, RawPin
from evaluator_host.engine.packages.npm.resolve import newest_in_ranges
from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.packages.pip.programs import PipPrograms
from evaluator_host.engine.packages.pip.resolve import newest_together
from evaluator_host.engine.packages.providers import ImportedModule, Provider, find_providers
from evaluator_host.engine.packages.suggest import TIMEOUT_S, suggest
from evaluator_host.engine.packages.tools import LOOKUPS_AT_ONCE, Resolver, in_turn
from evaluator_host.engine.packages.versions import PackageVersions, VersionList
from evaluator_host.engine.sandbox.base import Backend
from evaluator_host.engine.system.turns import Turns
from evaluator_host.types.errors import InvalidPin, InvalidRequest, Problem
from evaluator_host.types.evaluator import Language


class PackageQueries:
    """Parses pins, and searches the package index for suggestions.

    At most three processes search at once, and workspaces take turns.
    """

    def __init__(self, index: IndexSettings, backend: Backend) -> None:
        # Searches do not use the builds' download folder: its files may belong to another user, and the tools refuse
        # such files.
        self._index = replace(index, cache_dir=index.cache_dir.with_name("lookups"))
        self._backend = backend
        self._turns = Turns(LOOKUPS_AT_ONCE)
        self._programs = PipPrograms()
        self._versions = VersionList(replace(self._index, timeout_s=TIMEOUT_S))

    async def pythons(self) -> tuple[str, ...]:
        """Return the minor versions of Python that evaluators may request."""
        return await anyio.to_thread.run_sync(self._backend.python_versions)

    async def python(self, asked: str | None, *, field: str = "evaluator.python") -> str | None:
        """Check that this host has the Python version `asked`; return `asked`, or None for the backend's own version.

        Raises:
          InvalidRequest: this host has no such version; the error names `field`, and says how to install the version.
        """
        if asked is None or asked == self._backend.platform.python:
            return None
        versions = await self.pythons()
        if asked in versions:
            return asked
        here = ", ".join(versions)
        hint = (
            f"choose one of {here}, or ask the operator to install Python {asked}: "
            f"{_how_to_get(asked, self._backend.name)}"
        )
        message = f"there is no Python {asked} here, only {here}"
        raise InvalidRequest(f"{message}; {hint}", problems=(Problem(field, message, hint),))

    async def python_of_set(self, asked: str | None, language: Language) -> str | None:
        """Check the version of Python for a package set, and return it, as the method `python` does.

        Raises:
          InvalidRequest: this host has no such version, or the language is not Python.
        """
        if asked is not None and language is not Language.PYTHON:
            message, hint = f"only Python evaluators have this field, not {language}", "leave it out"
            raise InvalidRequest(f"python: {message}; {hint}", problems=(Problem("python", message, hint),))
        return await self.python(asked, field="python")

    async def parse(
        self, raw: Sequence[RawPin], language: Language, python: str | None = None, *, workspace: str = ""
    ) -> tuple[Pin, ...]:
        """Return pins that users wrote, parsed and checked.

        For a pin that is not exact, wait for the turn of `workspace`, then search the index for a hint. `python` is a
        result of the method `python`.

        Raises:
          InvalidPin: a pin is not exact; each hint is the pin that was probably meant.
        """
        try:
            return await anyio.to_thread.run_sync(parse, raw, language)
        except InvalidPin as error:
            target = self.target(language, python)
            run = in_turn(self._turns, workspace)
            problems = await suggest(error.problems, raw, language, target=target, index=self._index, run=run)
            raise InvalidPin(error.detail, problems=problems) from error

    async def providers(
        self, modules: Sequence[ImportedModule], language: Language, python: str | None, *, workspace: str = ""
    ) -> list[Provider]:
        """Search the index; return the package that provides each module, in the newest version for the runtime."""
        resolver = self._resolver(language, python, workspace)
        return await find_providers(modules, language, resolver=resolver, programs=self._programs)

    async def pins_for(self, modules: Sequence[str], language: Language, *, workspace: str = "") -> list[str | None]:
        """Return an exact pin of the package that probably provides each module; None where no package is found."""
        wanted = [ImportedModule(module) for module in modules]
        return [one.pin for one in await self.providers(wanted, language, None, workspace=workspace)]

    async def pins_together(
        self,
        pins: Sequence[str],
        new: Sequence[str],
        language: Language,
        python: str | None,
        *,
        ranges: Mapping[str, str],
        workspace: str = "",
    ) -> list[str]:
        """Return pins for the packages in `new`, in the newest versions that work together and with `pins`.

        If there are no such versions, return `new` unchanged: the installation then reports the conflict.

        In JavaScript, a package in `ranges` gets the newest version in its range, if the range has a version.
        """
        resolver = self._resolver(language, python, workspace)
        if language is not Language.PYTHON:
            return await newest_in_ranges(new, ranges, resolver)
        newest = dict(pin.split("==") for pin in new)
        found = await newest_together(pins, newest, resolver)
        return list(new) if found is None else [f"{name}=={found[name]}" for name in newest]

    def _resolver(self, language: Language, python: str | None, workspace: str) -> Resolver:
        index, run = replace(self._index, timeout_s=TIMEOUT_S), in_turn(self._turns, workspace)
        return Resolver(index, self.target(language, python), run=run)

    async def versions(self, name: str, language: Language, *, workspace: str = "") -> PackageVersions:
        """Return the versions of a package that can be installed here, the newest first.

        Raises:
          InvalidRequest: no package can have that name.
          NotFound: the index has no such package for this host.
          IndexUnavailable: the index does not answer.
        """
        run = in_turn(self._turns, workspace)
        return await self._versions.list_versions(name, language, target=self.target(language), run=run)

    def target(self, language: Language, python: str | None = None) -> LockTarget:
        """Return the runtime for package sets of a language; `python` is a result of the method `python`."""
        return target_for(self._backend.platform, language, python)

    async def target_of(self, lock: Lock) -> LockTarget:
        """Return the runtime on this host for a lock.

        This is the lock's version of Python if it is installed, else the host's own version.
        """
        if lock.language is Language.PYTHON:
            with suppress(InvalidRequest):
                return self.target(lock.language, await self.python(lock.target.runtime))
        return self.target(lock.language)


def _how_to_get(minor: str, backend: str) -> str:
    if backend == "docker":
        return (
            "containers have only the Python of their image; the bubblewrap backend offers every Python of the machine"
        )
    return f"`uv python install {minor}`, a package of the system, or a path in EVALUATOR_HOST_PYTHONS"

"""Finds the package that provides an imported module, and whether the package has the names that the code uses.

The host chooses a package by itself only if `known_packages.json` lists it. A module may also be the author's own file
with the name of a package. So before the host installs anything, it looks in the package's wheel for the names that the
code uses.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluator_host.engine.packages.lock import Pin
from evaluator_host.engine.packages.npm.resolve import matching_versions
from evaluator_host.engine.packages.pip import syntax as pip_syntax
from evaluator_host.engine.packages.pip.programs import PipPrograms
from evaluator_host.engine.packages.suggest import is_known, is_plain, pin_for, range_of
from evaluator_host.engine.packages.tools import Resolver, lacks_wheels
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import Language

_SHOWN: Final = 3  # maximum number of names to show in a message


@dataclass(frozen=True, slots=True)
class ImportedModule:
    """A module that code imports (`schema`), and the names that the code uses from it (`("Schema", "parts.Or")`)."""

    module: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provider:
    """The package that provides a module."""

    pin: str | None = None  # exact pin; only a name if the index did not answer; None if no package is known
    is_own: bool = False  # whether the module is probably a file that the author wrote
    problem: str | None = None  # why there is no exact pin, or why the module does not belong to the package
    unanswered: HostError | None = None  # the error, if the index did not answer

    @property
    def is_exact(self) -> bool:
        """Return whether the pin has a version."""
        return self.pin is not None and ("==" in self.pin or "@" in self.pin[1:])


async def find_providers(
    modules: Sequence[ImportedModule], language: Language, *, resolver: Resolver, programs: PipPrograms
) -> list[Provider]:
    """Return the package that provides each module, in the newest version that the runtime can load."""
    if language is Language.PYTHON:
        return await _python(modules, resolver, programs)
    return await _npm([one.module for one in modules], language, resolver)


def named_provider(module: str, language: Language) -> Provider:
    """Return the package that provides a module, judged only by the module's name."""
    package = pin_for(module, language)
    own = language is Language.PYTHON and package is not None and not is_known(package, language)
    return Provider(package, is_own=own)


async def _python(modules: Sequence[ImportedModule], resolver: Resolver, programs: PipPrograms) -> list[Provider]:
    packages: dict[str, list[ImportedModule]] = {}
    for one in modules:
        if package := pin_for(one.module, Language.PYTHON):
            packages.setdefault(package, []).append(one)
    found: dict[ImportedModule, Provider] = {}
    async with asyncio.TaskGroup() as group:
        for package, wanted in packages.items():
            group.create_task(_add_python(package, wanted, resolver, programs, found))
    return [found.get(one, Provider()) for one in modules]


async def _add_python(
    package: str,
    wanted: list[ImportedModule],
    resolver: Resolver,
    programs: PipPrograms,
    found: dict[ImportedModule, Provider],
) -> None:
    named = {one: named_provider(one.module, Language.PYTHON) for one in wanted}
    names: dict[str, list[str]] = {}
    for one in wanted:
        names.setdefault(one.module, []).extend(one.names)
    question = {
        "name": package,
        "range": next((text for one in wanted if (text := range_of(one.module))), ""),
        "wanted": names,
    }
    try:
        answer = await programs.ask("contents", question, resolver)
    except HostError as error:
        found |= {one: replace(named[one], unanswered=error) for one in wanted}
        return
    pin = pip_syntax.read(f"{package}=={answer['version']}") if answer["version"] else None
    for one in wanted:
        if isinstance(pin, Pin):
            found[one] = _told(one, pin, answer["has"].get(one.module), is_known=not named[one].is_own)
        elif answer["found"]:
            lacks = lacks_wheels(resolver.target, source_only=answer["source_only"])
            found[one] = Provider(is_own=named[one].is_own, problem=f"{package} {lacks}")
        else:
            found[one] = Provider(is_own=True, problem=_unknown(package))


def _told(one: ImportedModule, pin: Pin, has: list[str] | None, *, is_known: bool) -> Provider:
    """Return the provider of a module; `has` contains the names that the module has in the package's wheel.

    A package that is not well known must have every name that the code uses, because anybody may have published it. So
    must a package with an ordinary word as its name, because the author may have a module of that name.
    """
    if has is None:
        return Provider(is_own=True, problem=f"the package {pin.text} has no module {one.module}")
    lacking = [name for name in one.names if name not in has]
    is_sure = is_known and not is_plain(one.module)
    if lacking and (len(lacking) == len(one.names) or not is_sure):
        names = ", ".join(lacking[:_SHOWN]) + (", …" if len(lacking) > _SHOWN else "")
        return Provider(is_own=True, problem=f"the package {pin.text} has no {names}")
    if not is_sure and not one.names:
        unsure = (
            f"the names that the code uses from this module do not show whether it belongs to the package {pin.text}"
        )
        return Provider(is_own=True, problem=unsure if is_known else _unknown(pin.name))
    return Provider(pin.text, is_own=not is_known)


def _unknown(package: str) -> str:
    return f"no well-known package is called {package}"


async def _npm(modules: Sequence[str], language: Language, resolver: Resolver) -> list[Provider]:
    named = [named_provider(module, language) for module in modules]
    asked = list(dict.fromkeys(one.pin for one in named if one.pin is not None and not one.is_exact))
    try:
        versions = await matching_versions([(name, "latest") for name in asked], resolver)
    except HostError as error:
        return [replace(one, unanswered=None if one.pin is None or one.is_exact else error) for one in named]
    newest = {
        name: Provider(f"{name}@{found[-1]}") if found else Provider(problem=f"the index has no package {name}")
        for name, found in zip(asked, versions, strict=True)
    }
    return [newest.get(one.pin or "", one) for one in named]

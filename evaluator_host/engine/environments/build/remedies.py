"""Finds which package to pin when a package imports another one that it does not declare as a dependency."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from packaging.utils import canonicalize_name

from evaluator_host.engine.packages.suggest import is_known, pin_for, range_of
from evaluator_host.types.evaluator import Environment, Language
from evaluator_host.types.outcome import Failed

# a function that finds the exact pins of modules in the index
PinsFor: TypeAlias = Callable[[Sequence[str], Language], Awaitable[list[str | None]]]

_ABSENT: Final = re.compile(r"No module named '([\w.]+)'|Cannot find module '([^'./][^']*)'")
_ASKED: Final = 5  # maximum number of missing modules, for each set, for which to look up pins


def lacking(failed: Failed, environment: Environment) -> str | None:
    """Return the module that an import lacked, if it belongs to a well-known package outside the package set."""
    found = _ABSENT.match(failed.error.message)
    module = (found[1] or found[2]) if found else ""
    package = pin_for(module, environment.language) if module else None
    if package is None or not is_known(package, environment.language):
        return None
    is_there = any(one.name == package for one in environment.packages)
    return module if not is_there or range_of(module) else None


def without_part(failed: Failed, environment: Environment) -> str | None:
    """Return a message if an import failed because another package is in the wrong version, else None."""
    found = _ABSENT.match(failed.error.message)
    if found is None or "." not in (module := found[1] or ""):
        return None
    name = canonicalize_name(pin_for(module, environment.language) or module.partition(".")[0])
    there = next(
        (one for one in environment.packages if canonicalize_name(one.name) == name and not one.requested), None
    )
    if there is None:
        return None
    came = f"{name} {there.version}, which was installed as a dependency, has no such module"
    return f"{came}: pin another version of {name} too, usually an earlier one"


async def with_pins(lacks: dict[str, str], language: Language, pins_for: PinsFor) -> dict[str, tuple[str, str]]:
    """Find pins for modules that imports lacked; return `{note: (note that also names the pin, pin)}`.

    `lacks` maps the notes on failed imports to the missing modules. A note is left out if no pin is found for its
    module.
    """
    modules = list(dict.fromkeys(lacks.values()))[:_ASKED]
    pins = dict(zip(modules, await pins_for(modules, language) if modules else (), strict=True))
    return {
        note: (f"{note} (pin {pin} too, which contains it)", pin)
        for note, module in lacks.items()
        if (pin := pins.get(module))
    }

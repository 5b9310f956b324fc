"""Lets a package offer names from modules that are imported only when a name is first used."""

from __future__ import annotations

import sys
from typing import Any


def names(where: dict[str, str]) -> list[str]:
    """Return all names that the modules define, sorted. `where` has each module's names, separated by spaces."""
    return sorted(name for text in where.values() for name in text.split())


def attribute(package: str, namespace: dict[str, Any], where: dict[str, str], name: str) -> Any:
    """Import the module that defines a name, store the name's value in the package's namespace, and return the value.

    Raises:
      AttributeError: no module has this name.
    """
    module = next((module for module, known in where.items() if name in known.split()), None)
    if module is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    full = f"{package}.{module}"
    __import__(full)
    value = namespace[name] = getattr(sys.modules[full], name)
    return value

"""Owns how a package has names of modules that it has not imported yet."""

from __future__ import annotations

import sys
from typing import Any


def names(where: dict[str, str]) -> list[str]:
    """Return all names, sorted; `where` has those of each module, with spaces between."""
    return sorted(name for text in where.values() for name in text.split())


def attribute(package: str, namespace: dict[str, Any], where: dict[str, str], name: str) -> Any:
    """Import the module that has a name, and keep the name in the namespace of its package.

    Raises:
      AttributeError: no module has it.
    """
    module = next((module for module, known in where.items() if name in known.split()), None)
    if module is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    full = f"{package}.{module}"
    __import__(full)
    value = namespace[name] = getattr(sys.modules[full], name)
    return value

"""Reads the lock files that come with this host, so that the packages of light SDK modules are never resolved anew."""

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from evaluator_host.model.evaluator import Language
from evaluator_host.packages.lock import Lock, LockedPackage, Target
from evaluator_host.packages.pins import Pin
from evaluator_host.packages.pip.resolve import read_requirements, requirements_text


@lru_cache(maxsize=64)
def shipped_lock(file: Path, roots: frozenset[str], target: Target) -> Lock:
    """Return the lock of some packages of a lock file and of all their dependencies.

    Args:
      file: Requirements with hashes, as uv writes them.
      roots: Names of the packages to lock; their dependencies are added.
      target: The Python it is for.
    """
    known = _read(file)
    names = _needed(roots, known)
    packages = tuple(replace(known[name], requested=name in roots) for name in sorted(names))
    return Lock(Language.PYTHON, target, shipped_pins(file, roots), packages, requirements_text(packages))


@lru_cache(maxsize=64)
def shipped_pins(file: Path, roots: frozenset[str]) -> tuple[Pin, ...]:
    """Return the pins of some packages of a lock file."""
    known = _read(file)
    return tuple(Pin(name, known[name].version) for name in sorted(roots))


@lru_cache(maxsize=4)
def _read(file: Path) -> dict[str, LockedPackage]:
    return {package.name: package for package in read_requirements(file.read_text("utf-8"), set())}


def _needed(roots: Collection[str], known: dict[str, LockedPackage]) -> set[str]:
    names: set[str] = set()
    left = list(roots)
    while left:
        name = left.pop()
        if name not in names:
            names.add(name)
            left.extend(known[name].dependencies)
    return names

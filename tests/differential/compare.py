"""Compares two results field by field, and finds differences that no section of the documentation explains."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

NOT_THERE = "<not there>"


def differences(real: Any, here: Any, path: str = "", *, relative: float = 0.0) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, the package's value, this host's value) for every different field; numbers may differ by `relative`."""
    if isinstance(real, dict) and isinstance(here, dict):
        for name in dict.fromkeys([*real, *here]):
            pair = (real.get(name, NOT_THERE), here.get(name, NOT_THERE))
            yield from differences(*pair, f"{path}.{name}" if path else name, relative=relative)
    elif isinstance(real, list) and isinstance(here, list) and len(real) == len(here):
        for at, pair in enumerate(zip(real, here, strict=True)):
            yield from differences(*pair, f"{path}[{at}]", relative=relative)
    elif not _same(real, here, relative):
        yield path, real, here


def _same(real: Any, here: Any, relative: float) -> bool:
    if type(real) in (int, float) and type(here) in (int, float):
        return real == here or math.isclose(real, here, rel_tol=relative, abs_tol=relative)
    return type(real) is type(here) and bool(real == here)


def unexplained(found: Mapping[str, list[tuple[str, Any, Any]]], explained: Mapping[str, str]) -> dict[str, Any]:
    """Return the differences that no entry in `explained` explains, by case, and the entries in it that explain no
    difference.

    Args:
      found: The differences of each case.
      explained: Sections of the documentation that explain differences, by a pattern for `case: path`.
    """
    left: dict[str, Any] = {}
    used = set()
    for case, fields in found.items():
        for path, real, here in fields:
            entry = next((one for one in explained if re.fullmatch(one, f"{case}: {path}")), None)
            used.add(entry)
            if entry is None:
                left[f"{case}: {path}"] = {"real": str(real)[:500], "here": str(here)[:500]}
    for entry in explained.keys() - used:
        left[entry] = "differs no more: take the entry away"
    return left

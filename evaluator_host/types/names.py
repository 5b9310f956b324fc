"""Words for messages: the known name that a misspelt name probably means, and a number with its noun."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

_LOOKED_AT: Final = 1000  # maximum number of names to compare, which takes a few milliseconds
_LETTERS: Final = 80  # compare at most this many characters of a name
_LONGEST: Final = 63  # maximum number of characters in the name of a stored object
_NOT_OF_NAMES: Final = re.compile(r"[^A-Za-z0-9._]+")


def nearest_name(given: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a misspelt name, ignoring case; None if no name is similar."""
    by_lower = {one.lower(): one for one in islice(known, _LOOKED_AT)}
    found = get_close_matches(given[:_LETTERS].lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None


def what_was_meant(given: str, known: Iterable[str], *, otherwise: str) -> str:
    """Return advice on a name that does not exist: `did you mean support?`; without a similar name, `otherwise`."""
    meant = nearest_name(given, known)
    return otherwise if meant is None else f"did you mean {meant}?"


def usable_name(given: str) -> str:
    """Turn a string, such as the stem of a file, into the name of a stored object: `my data (v1)` → `my-data-v1`."""
    return _NOT_OF_NAMES.sub("-", given).strip("-._")[:_LONGEST].rstrip("-._") or "data"


def counted(count: int, noun: str, ending: str = "s") -> str:
    """Return a number with its noun: `1 row`, `2 rows`; `ending` is added for the plural."""
    return f"{count} {noun}{'' if count == 1 else ending}"


def id_of(record: Mapping[str, Any]) -> str | None:
    """Return the id that a row of data gives itself; None if it has no `id` that is a string or a number."""
    found = record.get("id")
    return str(found) if isinstance(found, str | int) else None

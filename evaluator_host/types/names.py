"""Words for messages: the known name that a misspelt name probably means, and a number with its noun."""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice
from typing import Any, Final

_LOOKED_AT: Final = 1000  # maximum number of names to compare roughly, by the letters that they contain
_COMPARED: Final = 20  # maximum number of names to compare letter by letter; two names of 63 letters take a millisecond
_LETTERS: Final = 80  # maximum number of characters of a name to compare
_ALIKE: Final = 0.6  # smallest similarity of two names, as difflib measures it
_LONGEST: Final = 63  # maximum number of characters in the name of a stored object
_NOT_OF_NAMES: Final = re.compile(r"[^A-Za-z0-9._]+")


def nearest_name(given: str, known: Iterable[str], *, alike: float = _ALIKE) -> str | None:
    """Return the known name that is most similar to a misspelt name, or None if no name is similar. Case is ignored.

    `alike` is the smallest similarity that counts, from 0 to 1.
    """
    by_lower = {one[:_LETTERS].lower(): one for one in islice(known, _LOOKED_AT)}
    wanted = given[:_LETTERS].lower()
    matcher = SequenceMatcher(b=wanted)
    likely = []
    for one in by_lower:
        matcher.set_seq1(one)
        if matcher.real_quick_ratio() >= alike and (most := matcher.quick_ratio()) >= alike:
            same = next((at for at, (a, b) in enumerate(zip(one, wanted, strict=False)) if a != b), len(wanted))
            # among names with the same letters, those with the longest common prefix come first
            likely.append((most + same / _LETTERS, one))
    similar = []
    for _, one in nlargest(_COMPARED, likely):
        matcher.set_seq1(one)
        similar.append((matcher.ratio(), one))
    found, best = max(similar, default=(0.0, ""))
    return by_lower[best] if similar and found >= alike else None


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
    """Return the id that a row of data gives itself, or None if it has no `id` that is a string or a number."""
    found = record.get("id")
    return str(found) if isinstance(found, str | int) else None

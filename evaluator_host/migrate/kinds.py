"""Finds out whether an expression evaluates to text, if the program shows it, for all languages."""

from enum import StrEnum
from typing import Final

DEPTH: Final = 8  # maximum number of functions and variables to follow, one from another


class Kind(StrEnum):
    """Whether an expression evaluates to text."""

    TEXT = "text"
    NUMBER = "number"
    EITHER = "either"  # text or a number
    PERHAPS = "perhaps"  # text, or an unknown value
    UNKNOWN = "unknown"  # nothing shows that it is text


def combined(kinds: list[Kind]) -> Kind:
    """Return the kind of a value that has one of these kinds, such as the value of a conditional expression."""
    found = set(kinds)
    if not found or found == {Kind.UNKNOWN}:
        return Kind.UNKNOWN
    if len(found) == 1:
        return found.pop()
    if found <= {Kind.TEXT, Kind.NUMBER, Kind.EITHER}:
        return Kind.EITHER
    return Kind.PERHAPS if found & {Kind.TEXT, Kind.EITHER, Kind.PERHAPS} else Kind.UNKNOWN

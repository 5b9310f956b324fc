"""Whether an expression evaluates to text, as far as a program shows it; for all languages."""

from enum import StrEnum
from typing import Final

DEPTH: Final = 8  # most levels of functions and variables to follow


class Kind(StrEnum):
    """Whether an expression evaluates to text."""

    TEXT = "text"
    NUMBER = "number"
    EITHER = "either"  # a text or a number
    PERHAPS = "perhaps"  # text, or a value that is not known
    UNKNOWN = "unknown"  # nothing says that it is text


def combined(kinds: list[Kind]) -> Kind:
    """Return the kind of a value that has one of these kinds, such as that of a conditional expression."""
    found = set(kinds)
    if not found or found == {Kind.UNKNOWN}:
        return Kind.UNKNOWN
    if len(found) == 1:
        return found.pop()
    if found <= {Kind.TEXT, Kind.NUMBER, Kind.EITHER}:
        return Kind.EITHER
    return Kind.PERHAPS if found & {Kind.TEXT, Kind.EITHER, Kind.PERHAPS} else Kind.UNKNOWN

"""Kinds of values, for all languages: whether a program shows that an expression evaluates to text."""

from enum import StrEnum
from typing import Final

DEPTH: Final = 8  # maximum length of a chain of functions and variables to follow


class TextKind(StrEnum):
    """Whether an expression evaluates to text."""

    TEXT = "text"
    NUMBER = "number"
    EITHER = "either"  # text or a number
    PERHAPS = "perhaps"  # text, or an unknown value
    UNKNOWN = "unknown"  # nothing shows that the value is text


def combined(kinds: list[TextKind]) -> TextKind:
    """Combine the possible kinds of a value, such as those of a conditional expression's branches, into one."""
    found = set(kinds)
    if not found or found == {TextKind.UNKNOWN}:
        return TextKind.UNKNOWN
    if len(found) == 1:
        return found.pop()
    if found <= {TextKind.TEXT, TextKind.NUMBER, TextKind.EITHER}:
        return TextKind.EITHER
    return TextKind.PERHAPS if found & {TextKind.TEXT, TextKind.EITHER, TextKind.PERHAPS} else TextKind.UNKNOWN

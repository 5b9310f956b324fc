"""Collects notes about how a file was read."""

from collections.abc import Callable
from typing import TypeAlias

Note: TypeAlias = Callable[[str], object]
"""A function that gets a sentence about a deviation of a file from its format, such as another encoding."""


class Notes:
    """Passes notes to a function.

    `once` passes only one note for each kind of fault, even if many rows have such a fault.
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._said: set[str] = set()

    def __call__(self, sentence: str) -> None:
        """Pass a note to the function."""
        self._note(sentence)

    def once(self, kind: str, sentence: str) -> None:
        """Pass a note to the function, unless a note of this kind was passed before."""
        if kind not in self._said:
            self._said.add(kind)
            self._note(sentence)

"""Collects notes about how a file was read."""

from collections.abc import Callable
from typing import TypeAlias

Note: TypeAlias = Callable[[str], object]
"""Called with a sentence about how a file was read, such as its encoding, if that differs from its format."""


class Notes:
    """Passes notes on; notes of one kind only once, for however many rows."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._said: set[str] = set()

    def __call__(self, sentence: str) -> None:
        """Pass a note on."""
        self._note(sentence)

    def once(self, kind: str, sentence: str) -> None:
        """Pass a note on, unless there was one of this kind."""
        if kind not in self._said:
            self._said.add(kind)
            self._note(sentence)

"""Tells the handler of a request when its client hangs up."""

from collections.abc import Callable
from typing import Final

HANG_UP: Final = "evaluator_host.hang_up"
"""Entry of a request's scope: the `HangUp` of its connection."""


class HangUp:
    """Tells whoever handles a connection's request when the client hangs up."""

    __slots__ = ("_has_happened", "_tell")

    def __init__(self) -> None:
        self._has_happened = False
        self._tell: Callable[[], object] | None = None

    def watch(self, tell: Callable[[], object]) -> None:
        """Call `tell` when the client hangs up, or now if it has hung up already, unless `leave` is called before."""
        self._tell = tell
        if self._has_happened:
            tell()

    def leave(self) -> None:
        """Tell nobody any more."""
        self._tell = None

    def happen(self) -> None:
        """Note that the client has hung up, and tell it."""
        self._has_happened = True
        if self._tell is not None:
            self._tell()

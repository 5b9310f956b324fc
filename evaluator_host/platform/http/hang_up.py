"""Tells a request's handler when the client hangs up."""

from collections.abc import Callable
from typing import Final

HANG_UP: Final = "evaluator_host.hang_up"
"""Entry of a request's scope: the `HangUp` of its connection."""


class HangUp:
    """Tells the handler of a connection's current request when the client hangs up."""

    __slots__ = ("_has_happened", "_tell")

    def __init__(self) -> None:
        self._has_happened = False
        self._tell: Callable[[], object] | None = None

    def watch(self, tell: Callable[[], object]) -> None:
        """Call `tell` when the client hangs up, or now if it already has. `leave` cancels this."""
        self._tell = tell
        if self._has_happened:
            tell()

    def leave(self) -> None:
        """Cancel `watch`."""
        self._tell = None

    def happen(self) -> None:
        """Record that the client has hung up, and tell the handler."""
        self._has_happened = True
        if self._tell is not None:
            self._tell()

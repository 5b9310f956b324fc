"""A time limit for short steps, of which one task takes many, one after another."""

import asyncio
import math
from types import TracebackType
from typing import Self


class TimeLimit:
    """A context that ends a step of the present task when the step has taken too long; `expired` then says so.

    This class does the same as `asyncio.timeout`, but does not raise `TimeoutError`, and takes a fifth of the processor
    time. If a step ends early, the timer runs on for the next step. Only one task at a time may use it.
    """

    __slots__ = ("_cancelling", "_due", "_task", "_timer", "_until", "expired")

    def __init__(self) -> None:
        self.expired = False
        self._until = math.inf  # time on the event loop's clock at which the present step has to end
        self._due = math.inf  # time on the event loop's clock at which the timer fires; infinite if it does not run
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None  # the task whose step is under way
        self._cancelling = 0

    def within(self, seconds: float) -> Self:
        """Set the limit of the step that begins now, and return this context."""
        self._until = asyncio.get_running_loop().time() + seconds
        return self

    def __enter__(self) -> Self:
        """Begin a step."""
        self._task = task = asyncio.current_task()
        assert task is not None  # noqa: S101 - only tasks have steps that can be ended
        self._cancelling = task.cancelling()
        self.expired = False
        if self._until < self._due:
            self._ring_at(self._until)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """End a step. If the time limit has cancelled the step, the cancellation ends here."""
        task, self._task = self._task, None
        assert task is not None  # noqa: S101 - `__enter__` has set it
        return self.expired and task.uncancel() <= self._cancelling and kind is asyncio.CancelledError

    def pause(self) -> float:
        """Set no limit for now, and return the seconds that were left."""
        left_s, self._until = self._until - asyncio.get_running_loop().time(), math.inf
        return left_s

    def go_on(self, left_s: float) -> None:
        """End the step in this many seconds."""
        self.within(left_s)
        if self._until < self._due:
            self._ring_at(self._until)

    def _ring_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = asyncio.get_running_loop().call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer, self._due = None, math.inf
        if self._task is None or self._until == math.inf or self.expired:
            return
        if asyncio.get_running_loop().time() < self._until:  # the timer was set for an earlier step
            self._ring_at(self._until)
        else:
            self.expired = True
            self._task.cancel()

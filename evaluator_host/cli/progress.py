"""Progress bars: of a run, by what was read of the data file, and of a build of packages. Shown on a terminal only."""

import time
from types import TracebackType
from typing import Any, Final, Self

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from evaluator_host.cli.console import err
from evaluator_host.cli.summary import Summary
from evaluator_host.environments.record import BuildEvent, Step
from evaluator_host.model import Status

_EVERY_S: Final = 0.1


class Progress:
    """A context in which `advance` moves a bar, or does nothing where nobody would see one."""

    def __init__(self, size: int, *, shown: bool) -> None:
        self._bar = Bar(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]} rows, {task.fields[failed]} failed, {task.fields[speed]:.0f} rows/s"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            disable=not (shown and err.is_terminal),
        )
        self._task: Final[Any] = self._bar.add_task("", total=max(size, 1), rows=0, failed=0, speed=0.0)
        self._started = time.monotonic()
        self._drawn = 0.0

    def advance(self, position: int, summary: Summary) -> None:
        """Show how far the run is."""
        now = time.monotonic()
        if now - self._drawn < _EVERY_S:
            return
        self._drawn = now
        speed = summary.rows / max(now - self._started, 1e-3)
        self._bar.update(
            self._task,
            completed=position,
            rows=summary.rows,
            failed=summary.statuses[Status.FAILED],
            speed=speed,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


class BuildProgress:
    """A context in which `show` draws the step of a build."""

    def __init__(self, *, shown: bool) -> None:
        self._bar = Bar(
            TextColumn("packages: {task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            console=err,
            transient=True,
            disable=not (shown and err.is_terminal),
        )
        self._task: Final[Any] = self._bar.add_task(Step.RESOLVING.value, total=None, count="")

    def show(self, event: BuildEvent) -> None:
        """Draw a step."""
        count = f"{event.done} of {event.total}" if event.total else ""
        self._bar.update(self._task, description=event.step.value, total=event.total, completed=event.done, count=count)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

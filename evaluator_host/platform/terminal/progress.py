"""Progress bars for runs, jobs and package builds, which appear only on a terminal."""

import time
from typing import Any, Final, Self

from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from evaluator_host.engine.environments.record import BuildEvent, Step
from evaluator_host.platform.terminal.console import err
from evaluator_host.platform.terminal.summary import Summary
from evaluator_host.types.jobs import JobReport
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import per_second
from evaluator_host.types.outcome import Status

_EVERY_S: Final = 0.1


def is_seen(*, shown: bool) -> bool:
    """Whether to draw a progress bar: `shown` must be set, and standard error must be a terminal."""
    return shown and err.is_terminal


class _Bar:
    def __init__(self, *columns: ProgressColumn, shown: bool) -> None:
        self._bar = Bar(*columns, console=err, transient=True, disable=not is_seen(shown=shown))

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


class Progress(_Bar):
    """Shows how much of a data file a run has read. `advance` moves the bar."""

    def __init__(self, size: int, *, shown: bool) -> None:
        super().__init__(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]} rows, {task.fields[failed]} failed, {task.fields[speed]:g} rows/s"),
            TimeRemainingColumn(),
            shown=shown,
        )
        self._task: Final[Any] = self._bar.add_task("", total=max(size, 1), rows=0, failed=0, speed=0.0)
        self._started = time.monotonic()
        self._drawn = 0.0

    def advance(self, position: int, summary: Summary) -> None:
        """At most every 0.1 s, move the bar to a byte position in the data file and show `summary`'s row counts."""
        now = time.monotonic()
        if now - self._drawn < _EVERY_S:
            return
        self._drawn = now
        speed = per_second(summary.rows, now - self._started) or 0.0
        failed = summary.statuses[Status.FAILED]
        self._bar.update(self._task, completed=position, rows=summary.rows, failed=failed, speed=speed)


class BuildProgress(_Bar):
    """Shows the steps of a package build (`show`), or the phases of a push or pull (`tell`)."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__(
            TextColumn("packages: {task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            shown=shown,
        )
        self._task: Final[Any] = self._bar.add_task(Step.RESOLVING.value, total=None, count="")

    def show(self, event: BuildEvent) -> None:
        """Draw one step of the build."""
        self.tell(event.step.value, event.done, event.total)

    def tell(self, phase: str, done: int, total: int | None) -> None:
        """Draw one phase of a push or pull: how much of it is done, and its total if this is known."""
        self._bar.start()  # starting the bar again has no effect
        count = f"{done} of {total}" if total else ""
        self._bar.update(self._task, description=phase, total=total, completed=done, count=count)

    def __enter__(self) -> Self:
        return self


class JobProgressBar(_Bar):
    """Shows the progress of a job: first the outputs that a model produces, then the results."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[said]}"),
            shown=shown,
        )
        self._task: Final[Any] = self._bar.add_task("queued", total=None, said="")

    def show(self, job: JobReport) -> None:
        """Draw the progress of a job."""
        progress = job.progress
        rows = progress.rows // max(len(job.evaluators), 1)
        if not job.status.final and progress.generated is not None and progress.generated < rows:
            total, done = rows, progress.generated
            said = f"the model was asked about {done} of {rows} rows"
        else:
            total, done = max(progress.rows, 1), progress.done
            speed = f", {progress.rows_per_s:g} {job.unit}s/s" if progress.rows_per_s else ""
            left = f", {progress.eta_s:.0f} s to go" if progress.eta_s else ""
            said = f"{done} of {counted(progress.rows, job.unit)}, {progress.failed} failed{speed}{left}"
        self._bar.update(self._task, description=job.status.value, total=total, completed=done, said=said)

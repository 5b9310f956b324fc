"""Who evaluates for a command: a service in this process, or a running host over HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Protocol

from evaluator_host.config import Settings
from evaluator_host.model import EvaluationResult, Evaluator, Isolation, Row
from evaluator_host.service import CheckReport
from evaluator_host.wiring import open_service


class Target(Protocol):
    """What `run` and `check` need; `Service` is one."""

    async def evaluate(self, evaluator: Evaluator, row: Row) -> EvaluationResult:
        """Evaluate one row."""
        ...

    def evaluate_rows(
        self, evaluator: Evaluator, rows: Iterable[Row], *, isolation: Isolation, parallelism: int | None
    ) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Evaluate rows; yields `(index, result)` as they finish, in no fixed order."""
        ...

    async def check(self, evaluator: Evaluator) -> CheckReport:
        """Load an evaluator without running a row."""
        ...


@asynccontextmanager
async def open_target(settings: Settings, url: str | None) -> AsyncIterator[Target]:
    """Open the host at a URL, or a service in this process when there is none.

    Raises:
      HostUnreachable: no host answers at the URL.
      SandboxUnavailable: no backend works.
    """
    if url is None:
        async with open_service(settings, prewarm=False) as service:
            yield service
        return
    from evaluator_host.cli.remote import open_remote  # noqa: PLC0415 - httpx, which few runs need

    async with open_remote(url) as remote:
        yield remote

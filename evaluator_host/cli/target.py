"""Who evaluates for a command: a service in this process, or a running host over HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

from evaluator_host.cli.progress import BuildProgress
from evaluator_host.config import Settings
from evaluator_host.environments.record import BuildStatus, EnvironmentReport
from evaluator_host.environments.store import Environments
from evaluator_host.model import EvaluationResult, Evaluator, Isolation, Language, Row
from evaluator_host.service import CheckReport, Service
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


async def prepare_packages(target: Target, evaluator: Evaluator, *, shown: bool) -> None:
    """Install what an evaluator pins, with a progress bar; a host at a URL does that by itself, in silence.

    Raises:
      InvalidPin: a package is not pinned exactly.
      PackagesFailed: the set cannot be resolved or installed.
      IndexUnavailable: the index does not answer.
    """
    if evaluator.packages and isinstance(target, Service):
        await build(target.environments, evaluator.packages, evaluator.language, shown=shown)


async def build(
    environments: Environments, packages: tuple[str, ...], language: Language, *, shown: bool
) -> EnvironmentReport:
    """Install a package set and say how far it is."""
    report = await environments.request(packages, language)
    if report.status is not BuildStatus.READY:
        with BuildProgress(shown=shown) as progress:
            async with aclosing(environments.events(report.key)) as events:
                async for event in events:
                    progress.show(event)
    return await environments.built(report.key)

"""Opens the service that evaluates for a command: in this process, or on a running host over HTTP."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.environments.record import BuildStatus, EnvironmentReport
from evaluator_host.engine.environments.store import Environments
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.packages.declared import name_of_pin
from evaluator_host.engine.packages.scripts import require_python
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE
from evaluator_host.platform.evaluators.evaluator_files import LoadedEvaluator, tell_files
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import AUTO_PACKAGES, Evaluator, Isolation, Language, Row
from evaluator_host.types.outcome import EvaluationError, EvaluationResult, Note

if TYPE_CHECKING:
    from evaluator_host.platform.terminal.remote_service import RemoteService


EvaluationService: TypeAlias = "Service | RemoteService"
"""The service that evaluates for a command: one in this process, or a running host."""

_PIN: Final = re.compile(r"@?[A-Za-z][\w./-]{0,200}(?:==|@)\d[\w.+-]{0,60}")
_NO_MODULE: Final = ("ModuleNotFoundError", "ImportError", "Error")  # JavaScript's `require` throws `Error`


@asynccontextmanager
async def open_evaluation_service(settings: Settings, url: str | None) -> AsyncIterator[EvaluationService]:
    """Yield the service that evaluates: the host at a URL or, without a URL, a service in this process.

    Raises:
      HostUnreachable: no host answers at the URL.
      Unauthorized: the host needs a key, but no key or a wrong key is set or saved for this host.
      SandboxUnavailable: no backend works.
    """
    if url is None:
        async with AsyncExitStack() as stack:
            models = None
            if settings.judge_hosts or settings.models or settings.network_hosts or settings.code_secrets:
                from evaluator_host.platform.models.judges import open_judges  # noqa: PLC0415 - httpx, which few runs need

                models = await stack.enter_async_context(open_judges(settings, None))
            yield await stack.enter_async_context(open_engine(settings, models=models))
        return
    from evaluator_host.platform.terminal.logins import key_for  # noqa: PLC0415 - httpx, which few runs need
    from evaluator_host.platform.terminal.remote_service import open_remote_service  # noqa: PLC0415 - httpx, which few runs need

    async with open_remote_service(url, key_for(url)) as remote:
        yield remote


async def evaluate_in_order(
    target: EvaluationService, evaluator: Evaluator, rows: Sequence[Row], *, parallelism: int | None = None, **more: Any
) -> list[EvaluationResult]:
    """Evaluate rows, isolated from each other, and return the results in the order of the rows.

    `more` are options of `evaluate_rows`.
    """
    stream = target.evaluate_rows(evaluator, rows, isolation=Isolation.ROW, parallelism=parallelism, **more)
    async with aclosing(stream) as answers:
        results = {index: result async for index, result in answers}
    return [results[index] for index in range(len(rows))]


async def prepare(target: EvaluationService, given: LoadedEvaluator, *, shown: bool) -> None:
    """Prepare an evaluator: check the Python version of its file, store its data files, and install its packages.

    If `shown`, a progress bar and the names of the files are printed.

    Raises:
      InvalidRequest: the service runs evaluators on a different version of Python.
      InvalidPin: a package is not pinned exactly.
      PackagesFailed: the packages cannot be resolved or installed.
      IndexUnavailable: the index does not answer.
    """
    if shown:
        tell_files(given)
    runtimes = target.info().runtimes
    python = given.evaluator.python or runtimes.get("python")
    if given.requires_python is not None and python is not None:
        require_python(given.requires_python, python)
    for path in given.data.values():
        await (target.data.add(DEFAULT_WORKSPACE, path) if isinstance(target, Service) else target.send_data(path))
    evaluator, language = given.evaluator, given.evaluator.language
    if isinstance(target, Service):
        evaluator = await target.pinned(evaluator)
    packages = evaluator.packages
    if not packages or AUTO_PACKAGES in packages:
        return
    from evaluator_host.platform.terminal.progress import BuildProgress, is_seen  # noqa: PLC0415 - few evaluators pin packages

    if isinstance(target, Service):
        await build(target.environments, packages, language, python=given.evaluator.python, shown=shown)
    elif is_seen(shown=shown):
        with BuildProgress(shown=shown) as progress:
            async for event in target.build(packages, language, given.evaluator.python):
                progress.show(event)


async def pins_to_add(target: EvaluationService, given: LoadedEvaluator, result: EvaluationResult) -> list[str]:
    """If an import failed, return the pins of all packages that the code imports and does not pin."""
    if result.error is None or result.error.type not in _NO_MODULE:
        return []
    report = await target.check(given.evaluator)
    found = (one.pin for one in report.missing_imports if one.pin and one.path is None)
    return [*dict.fromkeys(_as_declared(pin, given) for pin in found)]


def advice_on_pins(pins: Sequence[str], result: EvaluationResult) -> str:
    """Return the advice to add pins: `add --package NAME==VERSION`; `""` if the hint of the error names all of them."""
    hint = (result.error and result.error.hint) or ""
    return "" if all(pin in hint for pin in pins) else f"add {' '.join(f'--package {pin}' for pin in pins)}"


def with_declared(result: EvaluationResult, given: LoadedEvaluator) -> EvaluationResult:
    """Return the result with hints that name the versions in a lock file of the evaluator's project."""
    if not given.declared or (result.error is None and not result.warnings):
        return result
    error = None if result.error is None else _hint_with_declared(result.error, given)
    return replace(result, error=error, warnings=_notes_with_declared(result.warnings, given))


def report_with_declared(report: CheckReport, given: LoadedEvaluator) -> CheckReport:
    """Return the report with the versions in a lock file of the evaluator's project, in place of the newest ones."""

    def declared(text: str | None) -> str | None:
        return None if text is None else _as_declared(text, given)

    return replace(
        report,
        missing_imports=tuple(
            replace(one, pin=declared(one.pin), hint=declared(one.hint)) for one in report.missing_imports
        ),
        problems=tuple(_hint_with_declared(problem, given) for problem in report.problems),
        notes=_notes_with_declared(report.notes, given),
    )


def _hint_with_declared(error: EvaluationError, given: LoadedEvaluator) -> EvaluationError:
    return error if error.hint is None else replace(error, hint=_as_declared(error.hint, given))


def _notes_with_declared(notes: Sequence[Note], given: LoadedEvaluator) -> tuple[Note, ...]:
    return tuple(one if one.remedy is None else replace(one, remedy=_as_declared(one.remedy, given)) for one in notes)


def _as_declared(text: str, given: LoadedEvaluator) -> str:
    """Return a text whose pins have the versions in a lock file of the evaluator's project."""
    return _PIN.sub(lambda found: given.declared.get(name_of_pin(found[0]), found[0]), text)


async def build(
    environments: Environments, packages: tuple[str, ...], language: Language, *, python: str | None, shown: bool
) -> EnvironmentReport:
    """Install exact package versions for Python version `python` (None: the host's version).

    Draw a progress bar if `shown`.
    """
    from evaluator_host.platform.terminal.progress import BuildProgress  # noqa: PLC0415 - as above

    report = await environments.request(packages, language, python)
    if report.status is not BuildStatus.READY:
        with BuildProgress(shown=shown) as progress:
            async with aclosing(environments.events(report.key)) as events:
                async for event in events:
                    progress.show(event)
    return await environments.built(report.key)

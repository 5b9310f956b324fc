"""The operations of a host, which its web server, its commands and its jobs use."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Final

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.contracts.reads import OutputsRead, output_names
from evaluator_host.engine.contracts.table import has_corpus_scores
from evaluator_host.engine.data_files import DataFiles
from evaluator_host.engine.environments.record import EnvironmentReport, empty_environment
from evaluator_host.engine.environments.store import Environments
from evaluator_host.engine.pool import Lease, Pool
from evaluator_host.engine.service.attempts import (
    ModelCalls,
    Models,
    each,
    lease_sandbox,
)
from evaluator_host.engine.service.auto_packages import AutoPackages
from evaluator_host.engine.service.caller import DEFAULT_CALLER, Caller
from evaluator_host.engine.service.calls import Callee, call_once, finish, row_binder
from evaluator_host.engine.service.calls_first import CallsFirst
from evaluator_host.engine.service.editor import answer_question
from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.engine.service.missing_imports import missing_of
from evaluator_host.engine.service.model_grants import ModelGrant
from evaluator_host.engine.service.peers import Peers
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.engine.service.prepared import Prepared, sandbox_spec
from evaluator_host.engine.service.preparer import Preparer, SetUsed
from evaluator_host.engine.service.rows import RowStream
from evaluator_host.engine.service.summaries import check_report, host_info
from evaluator_host.engine.service.together import score_together
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.engine.system.memory import Reservation
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.types.errors import (
    HostError,
    InvalidRequest,
    SandboxLost,
    TooLarge,
)
from evaluator_host.types.evaluation import CheckReport, EditorAnswer, HostInfo
from evaluator_host.types.evaluator import (
    AUTO_PACKAGES,
    EncodedRow,
    Environment,
    Evaluator,
    Isolation,
    Json,
    Language,
    Row,
    SandboxSpec,
)
from evaluator_host.types.outcome import (
    ErrorCode,
    EvaluationResult,
    Failed,
    Given,
    MissingImport,
    Status,
)
from evaluator_host.types.redaction import Redactor

# seconds for which a layout of data files is kept, in addition to the longest life of a sandbox
_UNUSED_S: Final = 3600.0
_BATCH_MB: Final = 256  # maximum memory in MB for the results of a batch; as JSON they are several times smaller
# start another sandbox only for at least this many rows; fewer would finish before it has started
_ROWS_WORTH_A_SANDBOX: Final = 16
_WISHES: Final = 5  # maximum number of grants that a refusal names


class Service:
    """The operations of one host: evaluate rows, check evaluators, install package sets.

    A failure of the user's code is a result, never an exception. The methods that run code share these exceptions.

    Raises:
      InvalidRequest: the evaluator is not valid.
      InvalidPin: a package is not pinned exactly.
      PackagesFailed: the package set cannot be resolved or installed.
      IndexUnavailable: the set is new, and the index does not answer.
      Busy: too many calls are already waiting.
      SandboxUnavailable: no sandbox can be started.
    """

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        metrics: Metrics,
        environments: Environments,  # package sets of the host
        processes: LimitedProcesses,  # runs functions on callers' data, with limits on time and memory
        *,
        models: Models | None = None,  # answers the model requests of evaluators; None makes such requests fail
        on_set_used: SetUsed | None = None,  # called with a workspace and the digest of a package set that it uses
        supervisor: Supervisor | None = None,  # runs the tasks of the host; None for a new one
        peers: Peers | None = None,  # the other processes of the host; None if there are none
    ) -> None:
        self.supervisor = supervisor or Supervisor()
        self.settings = settings
        self.pool = pool
        self.metrics = metrics
        self.environments = environments
        self.processes = processes
        self._models = models
        self.calls = CallsFirst()
        self._batch_bytes = min(_BATCH_MB, settings.memory_mb) << 20
        self._pins = PinLookup(environments.queries.providers)
        self._auto = AutoPackages(
            self._pins, self._missing_imports, environments.queries.pins_together, allowed=settings.auto_packages
        )
        self.data = DataFiles(
            settings.data_dir / "data",
            most_bytes=settings.data_mb << 20,
            reserve_bytes=settings.free_disk_mb << 20,
            unused_s=settings.sandbox_max_age_s + _UNUSED_S,
        )
        self._preparer = Preparer(settings, environments, self._pins, data=self.data, on_set_used=on_set_used)
        self._expecting: set[asyncio.Task[None]] = set()
        self._peers = peers or Peers()

    async def evaluate(
        self,
        evaluator: Evaluator,
        row: Row | EncodedRow,
        *,
        caller: Caller = DEFAULT_CALLER,
    ) -> EvaluationResult:
        if not evaluator.models:
            given_on = await self._peers.evaluate(evaluator, row, caller)
            if given_on is not None:
                return given_on
        started = time.perf_counter()
        callee = self._callee(*await self._granted(await self._prepare(evaluator, caller), caller))
        scored = await finish(await call_once(callee, row, since=started))
        self.metrics.count(scored)
        return scored

    async def pinned(self, evaluator: Evaluator, *, caller: Caller = DEFAULT_CALLER) -> Evaluator:
        """Return an evaluator with exact pins in place of `auto`, after loading the code in a sandbox.

        Raises:
          InvalidRequest: this host does not choose packages.
          IndexUnavailable: the index does not list the available versions.
        """
        return await self._auto.pinned(evaluator, caller.workspace)

    async def _prepare(self, evaluator: Evaluator, caller: Caller, *, check: bool = False) -> Prepared:
        given = evaluator.packages
        chooses = AUTO_PACKAGES in given
        if chooses:
            evaluator = await self._auto.pinned(evaluator, caller.workspace)
        prepared = await self._preparer.prepare(evaluator, caller.workspace, lock=caller.lock, check=check)
        if chooses:
            prepared = replace(prepared, chosen=tuple(pin for pin in evaluator.packages if pin not in given))
        return prepared if caller.load_timeout_s is None else prepared.loaded_within(caller.load_timeout_s)

    async def _granted(self, prepared: Prepared, caller: Caller) -> tuple[Prepared, ModelGrant | None]:
        """Return an evaluator with its secrets, and its grant of models and hosts (None if it asks for neither)."""
        evaluator = prepared.evaluator
        if not (evaluator.connects or evaluator.secrets):
            return prepared, None
        if self._models is None or self.pool.backend.name == SandboxChoice.NONE:
            raise InvalidRequest(
                (
                    "this host runs code without a sandbox, and so does not grant models, hosts or secrets: leave "
                    "them out, or set EVALUATOR_HOST_SANDBOX to bubblewrap or docker"
                )
                if self._models is not None
                else (
                    f"this command runs without a host, and has no {_wishes(evaluator)}: to use what was added on a "
                    "host, name the host with `--url`; without a host, set EVALUATOR_HOST_MODELS, "
                    "EVALUATOR_HOST_NETWORK_HOSTS or EVALUATOR_HOST_CODE_SECRETS"
                )
            )
        secrets = await self._models.reveal(evaluator, caller.workspace) if evaluator.secrets else {}
        if secrets:
            prepared = prepared.with_secrets(secrets)
        if not evaluator.connects:
            return prepared, None
        redactor = Redactor(*secrets.values())
        return prepared, await self._models.grant(evaluator, caller.workspace, caller.terms, redactor=redactor)

    def _callee(self, prepared: Prepared, grant: ModelGrant | None, models: ModelCalls | None = None) -> Callee:
        return Callee(self.pool, prepared, row_binder(self.processes, prepared), models or self._models, grant)

    async def evaluate_rows(
        self,
        evaluator: Evaluator,
        # the rows; an error or a `Skipped` in place of a row is that row's outcome; an asynchronous source may be
        # endless
        rows: Iterable[Given] | AsyncIterable[Given],
        *,
        # numbers of the rows, in the order in which `rows` yields them; None to number them by position
        numbers: Iterable[int] | None = None,
        isolation: Isolation = Isolation.ROW,  # `batch` lets the rows that one sandbox gets share a process or context
        # maximum number of sandboxes to use at once; None for as many as an evaluator may have
        parallelism: int | None = None,
        caller: Caller = DEFAULT_CALLER,
        # whether the code has this machine's network: only for a command that a person runs with `--allow-network`,
        # never for a request to a host
        network: bool = False,
        models: ModelCalls | None = None,  # answers this evaluator's model requests; None for the host's models
    ) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Evaluate rows in several sandboxes; yield `(index, result)` when a row is finished, in no fixed order."""
        prepared = await self._prepare(evaluator, caller)
        prepared, grant = await self._granted(prepared.with_network() if network else prepared, caller)
        callee = self._callee(prepared, grant, models)
        async with aclosing(self._stream(callee, rows, isolation, parallelism, numbers)) as answers:
            async for index, scored, _ in answers:
                yield index, scored

    async def _stream(
        self,
        callee: Callee,
        rows: Iterable[Given] | AsyncIterable[Given],
        isolation: Isolation,
        parallelism: int | None,
        numbers: Iterable[int] | None = None,
    ) -> AsyncGenerator[tuple[int, EvaluationResult, int], None]:
        granted = callee.grant is not None
        ceiling = self.settings.waiting_rows if granted else self.settings.max_sandboxes_per_evaluator
        at_once = max(1, min(parallelism or ceiling, ceiling))
        stream = RowStream(callee, rows, numbers=numbers, isolation=isolation, parallelism=at_once, calls=self.calls)
        async with aclosing(aiter(stream)) as answers:
            async for answer in answers:
                self.metrics.count(answer[1])
                yield answer

    async def evaluate_batch(
        self,
        evaluator: Evaluator,
        rows: Sequence[Row | EncodedRow],
        *,
        isolation: Isolation = Isolation.ROW,
        caller: Caller = DEFAULT_CALLER,
        memory: Reservation | None = None,
    ) -> list[EvaluationResult]:
        """Evaluate rows and return their results in the rows' order.

        Raises:
          TooLarge: the results take more memory than a batch may have.
          Busy: too many calls are already waiting, or `memory` has no room for the results.
        """
        prepared, grant = await self._granted(await self._prepare(evaluator, caller), caller)
        parallelism = None if grant is not None else 1 + len(rows) // _ROWS_WORTH_A_SANDBOX
        results: dict[int, EvaluationResult] = {}
        taken = 0
        stream = self._stream(self._callee(prepared, grant), rows, isolation, parallelism)
        async with aclosing(stream) as answers:
            async for index, scored, size in answers:
                results[index] = scored
                taken += size
                if taken > self._batch_bytes:
                    raise batch_too_large(len(results))
                if memory is not None:
                    memory.add(size)
        return [results[index] for index in range(len(rows))]

    async def evaluate_together(
        self,
        evaluator: Evaluator,
        rows: Sequence[Row | EncodedRow],
        results: Sequence[EvaluationResult],
        *,
        caller: Caller = DEFAULT_CALLER,
    ) -> EvaluationResult | None:
        """Score together those rows of a batch that were scored, according to their `results`.

        Return None if no row was scored, or the evaluator does not score rows together.
        """
        if not results or not has_corpus_scores(results[0].evaluator.contract):
            return None
        scored = [replace(row, index=at) for at, row in enumerate(rows) if results[at].status is Status.SCORED]
        return await self.score_together(evaluator, each(scored), caller=caller) if scored else None

    async def score_together(
        self,
        evaluator: Evaluator,
        rows: AsyncIterable[Row | EncodedRow],
        *,
        caller: Caller = DEFAULT_CALLER,
    ) -> EvaluationResult | None:
        """Score all rows together in one call with the limits of a row, after they were scored one by one.

        The result is None if the evaluator does not score rows together, or there are no rows. The result is an error
        if the rows have more than 64 MB as JSON, the maximum that a sandbox accepts at once. Each row must have its
        `index`. `rows` is read only if the evaluator scores rows together.
        """
        started = time.perf_counter()
        prepared, _ = await self._granted((await self._prepare(evaluator, caller)).for_rows_together(), caller)
        return await score_together(self.pool, prepared, rows, started=started)

    async def check(self, evaluator: Evaluator, *, caller: Caller = DEFAULT_CALLER) -> CheckReport:
        """Load an evaluator in a sandbox without running a row, and report its contract, imports and problems."""
        prepared, _ = await self._granted(await self._prepare(evaluator, caller, check=True), caller)
        answer, missing = await self._load_once(prepared)
        found = await self._pins.find(missing, evaluator, caller.workspace)
        return check_report(prepared, answer, found)

    async def _load_once(self, prepared: Prepared) -> tuple[Lease | Failed, tuple[MissingImport, ...]]:
        answer = await lease_sandbox(self.pool, prepared.request)
        if isinstance(answer, Lease):
            self.pool.retire(answer)
        elif answer.error.code is ErrorCode.SANDBOX_LOST:
            raise SandboxLost(answer.error.message)
        return answer, answer.loaded.imports if isinstance(answer, Lease) else missing_of(answer, prepared.evaluator)

    async def _missing_imports(self, evaluator: Evaluator, workspace: str) -> tuple[MissingImport, ...]:
        caller = Caller(workspace)
        prepared, _ = await self._granted(await self._prepare(evaluator, caller, check=True), caller)
        return (await self._load_once(prepared))[1]

    async def outputs_read(self, evaluator: Evaluator, *, caller: Caller = DEFAULT_CALLER) -> OutputsRead | None:
        """Load an evaluator, and return how it reads outputs, or None if it does not load.

        The sandbox stays ready for the evaluator's rows.
        """
        prepared, _ = await self._granted(await self._prepare(evaluator, caller), caller)
        answer = await lease_sandbox(self.pool, prepared.request)
        if not isinstance(answer, Lease):
            return None
        self.pool.release(answer)
        names = output_names(answer.loaded)
        others = tuple(one for one in answer.loaded.parameters if one not in names)
        return OutputsRead(answer.loaded.contract, names, others)

    async def answer_question(
        self, evaluator: Evaluator, question: dict[str, Json], *, caller: Caller = DEFAULT_CALLER
    ) -> EditorAnswer:
        """Answer an editor's question about Python code: completions, documentation, parameters or problems.

        `question` is `{"what", "line", "column", "given"}`: the body of `POST /v1/editor` without `evaluator`.
        """
        return await answer_question(self.pool, await self._prepare(evaluator, caller), question)

    async def install(
        self, packages: Sequence[str], language: Language, python: str | None = None, *, workspace: str = ""
    ) -> EnvironmentReport:
        """Return the state of a package set; if the set is new, start to install it.

        After the set is installed, start a sandbox for it.

        Raises:
          InvalidPin: a package is not pinned exactly.
          InvalidRequest: there is no such Python here.
        """
        report = await self.environments.request(packages, language, python, workspace=workspace)
        expected = self._expect(report.key, tuple(packages), language, python, workspace)
        task = asyncio.get_running_loop().create_task(expected)
        self._expecting.add(task)
        task.add_done_callback(self._expecting.discard)
        return report

    async def ready(self) -> None:
        """Check that every part of the host works and a Python sandbox can start.

        Raises:
          SandboxUnavailable: no sandbox can start.
          PartFailed: a task of the host has failed, and is being restarted.
          StoreUnavailable: the database does not answer.
        """
        self.supervisor.require_working()
        await self.pool.probe(default_spec(Language.PYTHON, self.settings))

    def info(self) -> HostInfo:
        """Return the host's version, backend, limits and runtimes; of Python, only the default version."""
        return host_info(self.settings, self.pool, self.environments)

    async def full_info(self) -> HostInfo:
        """Return `info` with all Python versions that evaluators may request; the first call takes a second."""
        return replace(self.info(), pythons=await self.environments.queries.pythons())

    async def _expect(
        self, key: str, packages: tuple[str, ...], language: Language, python: str | None, workspace: str
    ) -> None:
        with suppress(HostError):  # the state of the package set says why it is missing
            await self.environments.built(key)
            python = await self.environments.queries.python_of_set(python, language)
            known = await self.environments.require(packages, language, python, workspace=workspace)
            await self.pool.prewarm(default_spec(language, self.settings, known.environment))


def batch_too_large(rows: int) -> TooLarge:
    """Return the error for a batch with results that are too large for one response."""
    return TooLarge(
        f"the results of the first {rows} rows are too large for one response; send fewer rows, have the evaluator "
        "return less, or create a job (POST /v1/jobs), whose results are stored and read in pages"
    )


def default_spec(language: Language, settings: Settings, environment: Environment | None = None) -> SandboxSpec:
    """Return the sandbox spec for default limits and this environment; None means the environment without packages."""
    return sandbox_spec(environment or empty_environment(language), settings.default_limits)


def _wishes(evaluator: Evaluator) -> str:
    """Return the grants that an evaluator asks for, as text: `model judge-small, secret API_KEY`."""
    kinds = (("model", evaluator.models), ("host", evaluator.network), ("secret", evaluator.secrets.values()))
    found = [f"{kind} {str(name)[:80]}" for kind, names in kinds for name in names]
    more = f" and {len(found) - _WISHES} more" if len(found) > _WISHES else ""
    return ", ".join(found[:_WISHES]) + more

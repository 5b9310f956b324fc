"""`Client` and `AsyncClient`, and the methods that belong to no group: `evaluate`, `check`, `migrate`, `info`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Literal, Self, TypeVar

from ..types.evaluation import Batch, CheckReport, HostInfo
from ..types.evaluator import Contract, Evaluator, Isolation, Json, Replay, Row
from ..types.migrations import Import, Migration
from ..types.outcome import EvaluationResult
from ..types.stored import UsageReport
from .calls import (
    Call,
    encode,
    evaluator_body,
    evaluator_headers,
    given_cases,
    http_options,
    pasted_body,
    proof_body,
    row_body,
)
from .jobs import JobVerbs
from .labels import LabelVerbs
from .models import ModelVerbs
from .resources import DatasetVerbs, DataVerbs, EvaluatorVerbs, SecretVerbs
from .schedules import AlertVerbs, ScheduleVerbs
from .transport import AsyncTransport, SyncTransport, TransportT, Verbs, verb

_V = TypeVar("_V")


def _replay_body(replay: Replay) -> dict[str, Json]:
    return {} if replay is Replay.OFF else {"replay": replay}


class HostVerbs(Verbs[TransportT]):
    """Client methods that evaluate, check and migrate, and groups of methods for the objects that the host stores.

    Args:
      transport: Sends the calls.

    Attributes:
      evaluators: Named evaluators.
      datasets: Stored rows.
      jobs: Jobs, which run evaluators over data sets.
      secrets: Keys of models' APIs.
      data: Data files that evaluators read.
      models: Models that evaluators may be granted.
      schedules: Schedules, which create jobs at fixed times.
      alerts: Alerts, which send messages when metrics go out of bounds.
      labels: Queues of rows that wait for people to label them.
    """

    def __init__(self, transport: TransportT) -> None:
        super().__init__(transport)
        self.evaluators = EvaluatorVerbs(transport)
        self.datasets = DatasetVerbs(transport)
        self.jobs = JobVerbs(transport)
        self.secrets = SecretVerbs(transport)
        self.data = DataVerbs(transport)
        self.models = ModelVerbs(transport)
        self.schedules = ScheduleVerbs(transport)
        self.alerts = AlertVerbs(transport)
        self.labels = LabelVerbs(transport)

    def verbs(self, kind: Callable[[TransportT], _V]) -> _V:
        """Return further methods that another package defines for this host.

        Args:
          kind: A subclass of `Verbs`.
        """
        return kind(self._transport)

    @verb
    async def evaluate(
        self,
        evaluator: Evaluator | str,
        *,
        inputs: dict[str, Json] | None = None,
        outputs: Json = None,
        trace: dict[str, Json] | None = None,
        variables: dict[str, Json] | None = None,
        criteria: Json = None,
        messages: list[Json] | None = None,
        replay: Replay = Replay.OFF,
    ) -> EvaluationResult:
        """Evaluate one row. A failure of the evaluator's code is a result, not an exception.

        Args:
          evaluator: The code and its settings, or the name of a stored evaluator (`exact-match@3`).
          inputs: Columns of the test case, keyed by name: `{"question": …, "correct_answer": …}`.
          outputs: The output to score, any JSON value.
          trace: The application's trace, `{"spans": {id: {"name", "attributes", "children"}}}`.
          variables: Arguments by name, for code that defines `main` instead of `evaluate`.
          criteria: Evaluation criteria of the test case, for evaluators of platforms that have such criteria.
          messages: A conversation, `[{"role", "content", "tool_calls"?}]`.
          replay: Whether to record and reuse the answers of models that the evaluator calls.

        Raises:
          NotFound: there is no evaluator of that name.
          PackagesFailed: the evaluator's packages cannot be installed.
        """
        row = Row(inputs or {}, outputs, trace, variables, criteria, messages=messages)
        body = {"evaluator": evaluator_body(evaluator), **row_body(row), **_replay_body(replay)}
        call = Call("POST", "/v1/evaluate", EvaluationResult, encode(body), evaluator_headers(evaluator))
        return await self._transport.send(call)

    @verb
    async def evaluate_batch(
        self,
        evaluator: Evaluator | str,
        rows: Iterable[Row | Mapping[str, Json]],
        *,
        isolation: Isolation = Isolation.ROW,
        outputs: Literal["none"] | None = None,
        replay: Replay = Replay.OFF,
    ) -> Batch:
        """Evaluate rows in one request; results keep their order.

        The mean of the summary is over `mean_rows`: rows that failed or have no score are left out.

        Args:
          evaluator: The code and its settings, or the name of a stored evaluator.
          rows: Rows, or dictionaries with their fields: `{"inputs": {…}, "outputs": "Paris"}`; at most as many as the
            host accepts in one request (`EVALUATOR_HOST_MAX_ROWS_PER_BATCH`).
          isolation: `BATCH` lets rows share a process, for speed.
          outputs: `"none"` means that the rows intentionally have no outputs.
          replay: Whether to record and reuse the answers of models that the evaluator calls.

        Raises:
          InvalidRequest: the code reads outputs, but several rows were given and all lack them.
          NotFound: there is no evaluator of that name.
          PackagesFailed: the evaluator's packages cannot be installed.
        """
        posted = [row_body(row) for row in rows]
        given = {"evaluator": evaluator_body(evaluator), "rows": posted, "isolation": isolation}
        body = {**given, **({} if outputs is None else {"outputs": outputs}), **_replay_body(replay)}
        call = Call("POST", "/v1/evaluate/batch", Batch, encode(body), evaluator_headers(evaluator))
        return await self._transport.send(call)

    @verb
    async def check(
        self, evaluator: Evaluator | str, *, cases: Sequence[Mapping[str, Json]] | None = None
    ) -> CheckReport:
        """Load an evaluator in a sandbox, and run its cases.

        Args:
          evaluator: The code and its settings, or the name of a stored evaluator.
          cases: Test cases: rows with `expect`, and `case` as the name; None for the cases of the stored evaluator.

        Raises:
          NotFound: there is no evaluator of that name.
          PackagesFailed: the evaluator's packages cannot be installed.
        """
        body = {"evaluator": evaluator_body(evaluator), **given_cases(cases)}
        return await self._transport.send(
            Call("POST", "/v1/check", CheckReport, encode(body), evaluator_headers(evaluator))
        )

    @verb
    async def migrate(
        self,
        evaluator: Evaluator,
        rows: Iterable[Row | Mapping[str, Json]] | None = None,
        *,
        dataset: str | None = None,
        mapping: Mapping[str, str] | None = None,
        job: str | None = None,
        to: Contract = Contract.EVALUATE,
        adapt: bool = False,
    ) -> Migration:
        """Rewrite a legacy evaluator, and prove on rows that its scores stay the same.

        Args:
          evaluator: The legacy evaluator.
          rows: Rows for the proof; if there are no rows, no data set and no job, the host generates rows.
          dataset: Name of a data set with the rows for the proof.
          mapping: Which column or template of the data set fills each field of a row.
          job: Id of a job with the rows for the proof, as its evaluators got them.
          to: The contract of the new code: `evaluate`, or `main` for code that is `evaluate` now.
          adapt: Whether to keep code that cannot be rewritten, or scores differently afterwards, and to add a function
            `evaluate(inputs, outputs, trace)` that calls it.

        Raises:
          NotFound: there is no such data set or job.
        """
        body: dict[str, Any] = {
            "to": to,
            "adapt": adapt,
            **pasted_body(evaluator),
            **proof_body(rows, dataset, mapping, job=job),
        }
        body.pop("python", None)
        return await self._transport.send(Call("POST", "/v1/migrate", Migration, encode(body)))

    @verb
    async def import_files(
        self,
        files: Mapping[str, str],
        path: str,
        *,
        name: str | None = None,
        platform: str | None = None,
        contract: Contract = Contract.AUTO,
        packages: Iterable[str] = (),
        models: Iterable[str] = (),
        replace: bool = False,
        force: bool = False,
        dry_run: bool = False,
    ) -> Import:
        """Import evaluators and rows from a platform's configuration or export, or from a module of evaluators.

        Args:
          files: Contents of the file to import and of all files that it names, keyed by path from a common root.
          path: Path of the file to import; it is one of the paths in `files`.
          name: First part of the evaluators' names, and name of the data set; None to use the file's name.
          platform: Platform that the file is from; None if the host should recognise the platform.
          contract: Contract of the evaluators in a module.
          packages: Exact pins for every evaluator; `auto` adds the packages that each evaluator imports.
          models: Registered models for evaluators that call a model: `judge-small`, `embedding=embed-small`.
          replace: Whether to add versions to existing evaluators, and to replace an existing data set.
          force: Whether to store even evaluators that do not load.
          dry_run: Whether to store nothing.

        Raises:
          NameTaken: a name is in use, and `replace` is false.
          InvalidRequest: the file cannot be read, or is not from a known platform.
        """
        body = {
            "files": files, "path": path, "name": name, "platform": platform, "contract": contract,
            "packages": [packages] if isinstance(packages, str) else list(packages), "models": list(models),
            "replace": replace, "force": force, "dry_run": dry_run,
        }  # fmt: skip
        return await self._transport.send(Call("POST", "/v1/import", Import, encode(body)))

    @verb
    async def info(self) -> HostInfo:
        """Return the version of the host, its backend and its limits."""
        return await self._get("/v1/info", HostInfo)

    @verb
    async def usage(self) -> UsageReport:
        """Return how many bytes your key's workspace stores, and its quota."""
        return await self._get("/v1/usage", UsageReport)

    @verb
    async def ready(self) -> None:
        """Check that the host can start a sandbox; raise an error if it cannot.

        Raises:
          SandboxUnavailable: the host cannot start a sandbox.
        """
        await self._get("/readyz", NoneType)


class Client(HostVerbs[SyncTransport]):
    """Synchronous client of a host: each method blocks until the response arrives.

    Example:
      with Client() as client:
          result = client.evaluate(Evaluator(code), inputs={"correct_answer": "Paris"}, outputs="Paris")

    Args:
      url: URL of the host; None for the URL in EVALUATOR_HOST_URL, else this machine at EVALUATOR_HOST_PORT or 8710.
      key: Key from `evaluator-host keys create`, if the host requires one; without a URL the key in EVALUATOR_HOST_KEY.
      timeout_s: Seconds to wait for one response; None waits for ever.
      retries: How often a call is sent again after `Busy`, each time after the pause that the host requests.

    Every method may raise:

    Raises:
      HostUnreachable: no Evaluator Host answers at the URL.
      Unauthorized: the host requires a key, and the given key is missing or not valid.
      InvalidRequest: the arguments are not valid; `problems` has every fault.
      Busy: the queue of the host stayed full for every retry.
      SandboxUnavailable: the host cannot start sandboxes.
      HostError: any other refusal of the host; its subclasses are in the module `types.errors` of this package.
    """

    def __init__(
        self, url: str | None = None, *, key: str | None = None, timeout_s: float | None = 600.0, retries: int = 3
    ) -> None:
        super().__init__(SyncTransport(http_options(url, key=key, timeout_s=timeout_s), retries))

    def close(self) -> None:
        """Close the client's connections."""
        self._transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(HostVerbs[AsyncTransport]):
    """Asynchronous client of a host: the methods of `Client`, awaited.

    You await a method that returns a value in `Client`, and read a method that yields values with `async for`.

    Example:
      async with AsyncClient() as client:
          job = await client.jobs.create(["exact-match"], "capitals")
          async for report in client.jobs.watch(job.id):
              print(report.progress.done)

    Args:
      url: URL of the host; None for the URL in EVALUATOR_HOST_URL, else this machine at EVALUATOR_HOST_PORT or 8710.
      key: Key from `evaluator-host keys create`, if the host requires one; without a URL the key in EVALUATOR_HOST_KEY.
      timeout_s: Seconds to wait for one response; None waits for ever.
      retries: How often a call is sent again after `Busy`, each time after the pause that the host requests.

    Raises:
      HostError: in the same cases as the methods of `Client`.
    """

    def __init__(
        self, url: str | None = None, *, key: str | None = None, timeout_s: float | None = 600.0, retries: int = 3
    ) -> None:
        super().__init__(AsyncTransport(http_options(url, key=key, timeout_s=timeout_s), retries))

    async def close(self) -> None:
        """Close the client's connections."""
        await self._transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

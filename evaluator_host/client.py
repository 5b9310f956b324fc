"""Client of a running host, typed, in two flavours over the same requests.

A call is described once, as data (`calls.Call`); `Client` and `AsyncClient` differ only in how they send it. What the
host refuses comes back as the exception it raised there, see `errors`.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

import httpx

from evaluator_host import calls, record_calls
from evaluator_host.calls import Call
from evaluator_host.job_calls import JobCalls
from evaluator_host.model.errors import Busy, HostUnreachable
from evaluator_host.model.evaluator import Contract, Evaluator, Isolation, Json, Row
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.resources import DatasetCalls, EvaluatorCalls, Send
from evaluator_host.schemas.evaluation import Batch, BatchSummary, CheckReport, HostInfo
from evaluator_host.schemas.migration import Migration
from evaluator_host.schemas.secrets import SecretReport

__all__ = ["DEFAULT_URL", "AsyncClient", "Batch", "BatchSummary", "Client", "HostUnreachable"]

T = TypeVar("T")

DEFAULT_URL: Final = "http://127.0.0.1:8710"


class SecretCalls:
    """Secrets of the key's workspace. What they are is never shown again."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def set(self, name: str, value: str) -> SecretReport:
        """Keep a secret under a name, in the place of the one that may be there."""
        return self._send(record_calls.set_secret(name, value))

    def all(self) -> list[SecretReport]:
        """Return the secrets by name."""
        return self._send(record_calls.secrets())

    def get(self, name: str) -> SecretReport:
        """Return since when there is a secret.

        Raises:
          NotFound: there is none of that name.
        """
        return self._send(record_calls.secret(name))

    def delete(self, name: str) -> None:
        """Remove a secret. Jobs that still need it fail."""
        self._send(record_calls.delete_secret(name))


class Client:
    """Calls a host and waits.

    Example:
      with Client() as client:
          result = client.evaluate(Evaluator(code), inputs={"correct_answer": "Paris"}, outputs="Paris")

    Every method may raise:

    Raises:
      HostUnreachable: nothing answers there.
      Unauthorized: the host wants a key, and this is none that works there.
      InvalidRequest: the host cannot take the request.
      Busy: the host's queue stayed full for every retry.
      SandboxUnavailable: the host can start no sandbox.

    Args:
      url: Of the host.
      key: From `evaluator-host keys create`, for a host that wants one.
      timeout_s: For one answer; None waits for ever.
      retries: How often a `Busy` is tried again, after the pause the host asks for.

    Attributes:
      evaluators: Named evaluators.
      datasets: Stored rows.
      jobs: Evaluators over data sets.
      secrets: Keys of models' APIs.
    """

    def __init__(
        self, url: str = DEFAULT_URL, *, key: str | None = None, timeout_s: float | None = 600.0, retries: int = 3
    ) -> None:
        self._http = httpx.Client(**calls.http_options(url, key=key, timeout_s=timeout_s))
        self._retries = retries
        self.evaluators = EvaluatorCalls(self._send)
        self.datasets = DatasetCalls(self._send, self._http)
        self.jobs = JobCalls(self._send, self._http)
        self.secrets = SecretCalls(self._send)

    def evaluate(
        self,
        evaluator: Evaluator | str,
        *,
        inputs: dict[str, Json] | None = None,
        outputs: Json = None,
        trace: dict[str, Json] | None = None,
        variables: dict[str, Json] | None = None,
        criteria: Json = None,
    ) -> EvaluationResult:
        """Evaluate one row, with an evaluator or the name of a stored one (`exact-match@3`).

        A failure of the evaluator's code is a result, not an exception.
        """
        return self._send(calls.evaluate(evaluator, Row(inputs or {}, outputs, trace, variables, criteria)))

    def evaluate_batch(
        self, evaluator: Evaluator | str, rows: Iterable[Row], *, isolation: Isolation = Isolation.ROW
    ) -> Batch:
        """Evaluate rows; results keep their order."""
        return self._send(calls.evaluate_batch(evaluator, rows, isolation))

    def check(self, evaluator: Evaluator | str) -> CheckReport:
        """Load an evaluator in a sandbox without running a row."""
        return self._send(calls.check(evaluator))

    def migrate(
        self,
        evaluator: Evaluator,
        rows: Iterable[Row] | None = None,
        *,
        dataset: str | None = None,
        mapping: Mapping[str, str] | None = None,
        job: str | None = None,
        to: Contract = Contract.EVALUATE,
    ) -> Migration:
        """Rewrite a legacy evaluator, and prove on rows that its scores stay the same.

        Args:
          evaluator: The legacy one.
          rows: To prove it on; without them, and without a data set, the host makes some up.
          dataset: Name of a data set to prove it on.
          mapping: Row fields by column or template of the data set.
          job: Id of a job whose rows to prove it on, as its evaluators were given them.
          to: The contract of the new code: `evaluate`, or `main` for one that is `evaluate` now.
        """
        return self._send(calls.migrate(evaluator, rows, dataset, mapping=mapping, job=job, to=to))

    def info(self) -> HostInfo:
        """Ask what the host is and has."""
        return self._send(calls.INFO)

    def ready(self) -> None:
        """Return when the host can start a sandbox."""
        self._send(calls.READY)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: Call[T]) -> T:
        for attempt in range(self._retries + 1):
            try:
                response = self._http.request(call.method, call.path, content=call.body, headers=call.headers)
                return calls.answer(call, response)
            except httpx.HTTPError as error:
                raise calls.unreachable(error, self._http.base_url) from error
            except Busy as busy:
                if attempt == self._retries:
                    raise
                time.sleep(calls.pause_s(busy))
        raise AssertionError("unreachable")  # pragma: no cover


class AsyncClient:
    """Calls a host without blocking; the methods, arguments and exceptions of `Client`, awaited."""

    def __init__(
        self, url: str = DEFAULT_URL, *, key: str | None = None, timeout_s: float | None = 600.0, retries: int = 3
    ) -> None:
        self._http = httpx.AsyncClient(**calls.http_options(url, key=key, timeout_s=timeout_s))
        self._retries = retries

    async def evaluate(
        self,
        evaluator: Evaluator | str,
        *,
        inputs: dict[str, Json] | None = None,
        outputs: Json = None,
        trace: dict[str, Json] | None = None,
        variables: dict[str, Json] | None = None,
        criteria: Json = None,
    ) -> EvaluationResult:
        """Evaluate one row, with an evaluator or the name of a stored one (`exact-match@3`).

        A failure of the evaluator's code is a result, not an exception.
        """
        return await self._send(calls.evaluate(evaluator, Row(inputs or {}, outputs, trace, variables, criteria)))

    async def evaluate_batch(
        self, evaluator: Evaluator | str, rows: Iterable[Row], *, isolation: Isolation = Isolation.ROW
    ) -> Batch:
        """Evaluate rows; results keep their order."""
        return await self._send(calls.evaluate_batch(evaluator, rows, isolation))

    async def check(self, evaluator: Evaluator | str) -> CheckReport:
        """Load an evaluator in a sandbox without running a row."""
        return await self._send(calls.check(evaluator))

    async def migrate(
        self,
        evaluator: Evaluator,
        rows: Iterable[Row] | None = None,
        *,
        dataset: str | None = None,
        mapping: Mapping[str, str] | None = None,
        job: str | None = None,
        to: Contract = Contract.EVALUATE,
    ) -> Migration:
        """Rewrite a legacy evaluator, and prove on rows that its scores stay the same."""
        return await self._send(calls.migrate(evaluator, rows, dataset, mapping=mapping, job=job, to=to))

    async def info(self) -> HostInfo:
        """Ask what the host is and has."""
        return await self._send(calls.INFO)

    async def ready(self) -> None:
        """Return when the host can start a sandbox."""
        await self._send(calls.READY)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, call: Call[T]) -> T:
        for attempt in range(self._retries + 1):
            try:
                response = await self._http.request(call.method, call.path, content=call.body, headers=call.headers)
                return calls.answer(call, response)
            except httpx.HTTPError as error:
                raise calls.unreachable(error, self._http.base_url) from error
            except Busy as busy:
                if attempt == self._retries:
                    raise
                await asyncio.sleep(calls.pause_s(busy))
        raise AssertionError("unreachable")  # pragma: no cover

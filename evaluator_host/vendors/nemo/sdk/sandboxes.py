"""Runs metrics in sandboxes of this machine, for `Evaluator(client=Sandboxes(…))`: in parallel, with limits per row."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, Final, Self

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.model_requests import Ask
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.attempts import each
from evaluator_host.sdk.datasets.loader import prepare_rows
from evaluator_host.sdk.execution.backend import LocalBackend, filtered, joined
from evaluator_host.sdk.execution.online import Sample
from evaluator_host.sdk.execution.utils import unique_metric_keys
from evaluator_host.sdk.inference import ClientInferenceError, make_inference_request
from evaluator_host.sdk.metrics.utils import metric_type_name
from evaluator_host.sdk.values.common import SecretRef
from evaluator_host.sdk.values.models import Model
from evaluator_host.sdk.values.results import BenchmarkEvaluationResult, EvaluationResult
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Isolation, Json, Limits, Row
from evaluator_host.types.evaluator import Evaluator as HostEvaluator
from evaluator_host.types.outcome import EvaluationResult as HostResult
from evaluator_host.types.outcome import Status
from evaluator_host.vendors.nemo.sdk.results import Answered, evaluation_result, raise_first
from evaluator_host.vendors.nemo.sdk.source import ENTRY, metric_code
from evaluator_host.vendors.nemo.status import plain_message

_UNNAMED: Final = Limits()


class Sandboxes:
    """Runs metrics in sandboxes, which last for one evaluation, or for all evaluations inside an `async with`.

    Args:
      packages: Exact versions of the packages that the metric imports besides the SDK.
      isolation: `row` starts a process for each row; with `batch`, which is faster, a sandbox has one process for all
        its rows.
      memory_mb: Memory of a sandbox, in MB.
      timeout_s: Time limit in seconds for scoring one row, unless `row_timeout_s` is given.
    """

    def __init__(
        self,
        *,
        packages: Sequence[str] = (),
        isolation: Isolation | str = Isolation.ROW,
        memory_mb: int = _UNNAMED.memory_mb,
        timeout_s: float = _UNNAMED.timeout_s,
    ) -> None:
        self._packages = tuple(packages)
        self._isolation = Isolation(isolation)
        self._memory_mb = memory_mb
        self._timeout_s = timeout_s
        self._local = LocalBackend()
        self._service: Service | None = None
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the service that starts sandboxes, for several evaluations on this event loop.

        Raises:
          SandboxUnavailable: this machine cannot start sandboxes.
        """
        self._service = await self._open.enter_async_context(self._opened())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._service = None
        await self._open.aclose()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Service]:
        if self._service is not None:
            yield self._service
            return
        async with open_engine(Settings(idle_sandboxes=0)) as service:
            yield service

    async def evaluate(self, *, metric: Any, **options: Any) -> EvaluationResult:
        """Run one metric, with the same options as `LocalBackend.evaluate`.

        Raises:
          EvaluationError: a row failed.
          NoSource: the metric cannot be sent to a sandbox.
        """
        key = metric_type_name(metric)
        rows, samples = await self._given(key, **options)
        async with self._opened() as service:
            result = await self._run(service, metric, key, rows, samples, **options)
        return filtered(result, options.get("aggregate_fields"))

    async def evaluate_benchmark(self, *, metrics: Sequence[Any], **options: Any) -> BenchmarkEvaluationResult:
        """Run several metrics, with the same options as `LocalBackend.evaluate_benchmark`.

        Raises:
          EvaluationError: a row failed.
          NoSource: a metric cannot be sent to a sandbox.
          ValueError: there is no metric.
        """
        if not metrics:
            raise ValueError("metrics must contain at least one metric")
        rows, samples = await self._given(None, **options)
        results = {}
        async with self._opened() as service:
            for key, metric in zip(unique_metric_keys(metrics), metrics, strict=True):
                found = await self._run(service, metric, key, rows, samples, in_declared_order=True, **options)
                results[key] = filtered(found, options.get("aggregate_fields"))
        return joined(results, len(rows))

    async def _given(
        self,
        key: str | None,
        *,
        dataset: Any,
        params: Any,
        field_mapping: Any = None,
        target: Any = None,
        prompt_template: Any = None,
        preprocess_hooks: Any = None,
        postprocess_hooks: Any = None,
        **_others: Any,
    ) -> tuple[list[dict[str, Any]], list[Sample]]:
        """Return the rows, and the sample that the target generated for each row. This process calls the target."""
        rows = prepare_rows(dataset, limit=params.limit_samples, mapping=field_mapping)
        hooks = preprocess_hooks, postprocess_hooks
        return rows, await self._local._samples(rows, target, params, prompt_template, hooks, key=key)  # noqa: SLF001

    async def _run(
        self,
        service: Service,
        metric: Any,
        key: str,
        rows: Sequence[dict[str, Any]],
        samples: Sequence[Sample],
        *,
        params: Any,
        in_declared_order: bool = False,
        target: Any = None,
        on_error: str = "raise",
        row_timeout_s: float | None = None,
        **_others: Any,
    ) -> EvaluationResult:
        evaluator = HostEvaluator(
            metric_code(metric),
            contract=Contract("nemo"),
            packages=self._packages,
            settings=EvaluatorSettings(entry=ENTRY),
            limits=Limits(timeout_s=row_timeout_s or self._timeout_s, memory_mb=self._memory_mb),
        )
        sent = [
            Row(row, index=index)
            if target is None
            else Row(row, sample.given.get("output_text"), response=_response(sample, target), index=index)
            for index, (row, sample) in enumerate(zip(rows, samples, strict=True))
        ]
        wanted = [row for row, sample in zip(sent, samples, strict=True) if sample.error is None]
        found: dict[int, HostResult] = {}
        stream = service.evaluate_rows(
            evaluator,
            wanted,
            isolation=self._isolation,
            parallelism=min(params.parallelism, 64),
            models=_OwnModels(metric),
        )
        async with aclosing(stream) as answers:
            async for at, result in answers:
                found[wanted[at].index or 0] = result
        answered = [_answered(found.get(index), sample) for index, sample in enumerate(samples)]
        if on_error == "raise" and not getattr(params, "ignore_request_failure", False):
            raise_first(key, answered)
        scored = [sent[index] for index, one in enumerate(answered) if one.error is None]
        together = await service.score_together(evaluator, each(scored)) if scored else None
        if together is not None and together.error is not None:
            raise RuntimeError(f"the metric cannot score all rows together: {together.error.message}")
        value = together.value if together else None
        return evaluation_result(metric, key, rows, answered, together=value, in_declared_order=in_declared_order)


def _response(sample: Sample, target: Any) -> Json:
    response = sample.given.get("response")
    return response if not response or isinstance(target, Model) else {"agent": response}


class _OwnModels:
    """Calls a judge's model from this process, and refuses to call any other model."""

    def __init__(self, metric: Any) -> None:
        own = getattr(metric, "model", None)
        self._allowed = own.url if isinstance(own, Model) else None
        self._secrets = LocalBackend().secret_resolver

    async def answer(self, ask: Ask, _workspace: str) -> dict[str, Json]:
        """Send a judge's request to its model; return the whole response, or the error."""
        if ask.url != self._allowed:
            raise InvalidRequest(
                f"the metric calls a model at {ask.url[:80]}, but has a different model; give the metric that model"
            )
        key = await self._secrets.resolve_secret(SecretRef(ask.secret)) if ask.secret is not None else None
        if ask.secret is not None and not key:
            raise InvalidRequest(f"Missing secret '{ask.secret}' for API key authentication with LLM judge.")
        model = Model(url=ask.url, name=ask.model, format="openai")
        try:
            response = await make_inference_request(
                model, dict(ask.request), ask.retries, api_key=key, timeout=ask.timeout_s
            )
        except RuntimeError as error:
            return {
                "error": str(error),
                "status": error.status_code if isinstance(error, ClientInferenceError) else None,
            }
        return {"response": response}


def _answered(result: HostResult | None, sample: Sample) -> Answered:
    if result is None:
        return Answered(None, sample.error, sample.given, sample.requests)
    requests = [*sample.requests, *result.requests]
    if result.status is Status.SCORED:
        return Answered(result.value, None, sample.given, requests)
    error = result.error
    message = plain_message(error.message) if error is not None else "no result"
    return Answered(None, message, sample.given, requests)

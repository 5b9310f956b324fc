"""Provides `Evaluator`, which runs metrics over a data set, for async and for plain code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from ..metrics.protocol import Metric
from ..values.dataset_schemas import FieldMapping
from ..values.datasets import DatasetInput
from ..values.params import RunConfig
from ..values.results import BenchmarkEvaluationResult, EvaluationResult
from .backend import LocalBackend, OnError
from .config import resolve_params
from .utils import is_metric, is_metric_sequence

Result = EvaluationResult | BenchmarkEvaluationResult
_METHODS = ("evaluate", "evaluate_benchmark")


class Evaluator:
    """Runs metrics, in this process unless a backend is given.

    Args:
      client: The backend: an object with methods `evaluate` and `evaluate_benchmark`; either both or neither are async.
    """

    def __init__(self, client: Any = None) -> None:
        if client is not None:
            _require_backend(client)
        self._backend = LocalBackend() if client is None else client

    async def run(
        self,
        metrics: Metric | Sequence[Metric],
        dataset: DatasetInput | str | Path,
        *,
        config: RunConfig | None = None,
        target: object = None,
        field_mapping: FieldMapping | None = None,
        prompt_template: str | dict[str, Any] | None = None,
        aggregate_fields: tuple[str, ...] | None = None,
        preprocess_hooks: Sequence[Any] | None = None,
        postprocess_hooks: Sequence[Any] | None = None,
        on_error: OnError = "raise",
        row_timeout_s: float | None = None,
    ) -> Result:
        """Return the result of one metric over a data set, or the results of several.

        Args:
          metrics: One metric, or a list of them.
          dataset: Rows, or a file with rows.
          config: Parallelism and limits of the run; a `RunConfigOnlineModel` if there is a target model.
          target: A `Model` that first makes the outputs.
          field_mapping: The column of each canonical field, such as the reference.
          prompt_template: Template of the request to the target: a string, or an object such as `{"messages": […]}`.
          aggregate_fields: The fields of aggregate scores to write; None for all.
          preprocess_hooks: Functions that change the requests to the target.
          postprocess_hooks: Functions that change the target's answers.
          on_error: With `row`, a row that fails gets `metric_errors` and the run goes on. With `raise`, the first row
            that fails ends the run.
          row_timeout_s: Time limit in seconds for scoring a row. Code that never awaits is not stopped, because it runs
            in this process.

        Raises:
          EvaluationError: a row failed.
          TypeError: `metrics` has no metric, or `config` is for another kind of run.
        """
        options: dict[str, Any] = {
            "dataset": dataset,
            "params": resolve_params(config, target),
            "target": target,
            "field_mapping": field_mapping,
            "prompt_template": prompt_template,
            "aggregate_fields": aggregate_fields,
            "preprocess_hooks": None if preprocess_hooks is None else tuple(preprocess_hooks),
            "postprocess_hooks": None if postprocess_hooks is None else tuple(postprocess_hooks),
        }
        options |= {} if on_error == "raise" else {"on_error": on_error}  # some backends lack these options
        options |= {} if row_timeout_s is None else {"row_timeout_s": row_timeout_s}
        if is_metric_sequence(metrics):
            return await self._asked(
                "evaluate_benchmark",
                metrics=list(metrics),  # type: ignore[arg-type]
                **options,
            )
        if not is_metric(metrics):
            raise TypeError("metrics must be a Metric or a sequence of Metric objects")
        return await self._asked("evaluate", metric=metrics, **options)

    def run_sync(
        self, metrics: Metric | Sequence[Metric], dataset: DatasetInput | str | Path, **options: Any
    ) -> Result:
        """Call `run` from code that is not async, and wait for the result; an event loop may be running."""
        return _run_to_end(lambda: self.run(metrics, dataset, **options))

    async def _asked(self, method: str, **options: Any) -> Result:
        import asyncio

        call = getattr(self._backend, method)
        if asyncio.iscoroutinefunction(call):
            return await call(**options)  # type: ignore[no-any-return]
        return await asyncio.to_thread(call, **options)


def _require_backend(client: Any) -> None:
    import asyncio

    missing = [name for name in _METHODS if not callable(getattr(client, name, None))]
    if missing:
        raise TypeError(
            f"client must provide callable evaluate and evaluate_benchmark methods; missing: {', '.join(missing)}"
        )
    if len({asyncio.iscoroutinefunction(getattr(client, name)) for name in _METHODS}) > 1:
        raise TypeError(
            "client must implement either async evaluate/evaluate_benchmark "
            "or sync evaluate/evaluate_benchmark; mixed sync/async clients are not supported"
        )


def _run_to_end(begin: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "nemo-evaluator-sdk-sync-runner") as thread:
        return thread.submit(lambda: asyncio.run(begin())).result()

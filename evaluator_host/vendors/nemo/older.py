"""Operations of NeMo Evaluator's older releases: score a few rows at once, and start a job with one metric."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.platform.jobs.results.aggregate import aggregate
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Isolation, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationResult, Status
from evaluator_host.vendors.nemo.built_in import bundle_of
from evaluator_host.vendors.nemo.bundles import checked, evaluator_of, numeric_outputs
from evaluator_host.vendors.nemo.metrics import NemoMetrics
from evaluator_host.vendors.nemo.results import statistics_of
from evaluator_host.vendors.nemo.spec import NemoJobIn, OlderJobIn, OlderSpecIn, SpecIn

_DEFAULTS: Final = {"labels": {}, "supported_job_types": ["online", "offline"]}
FIELDS: Final = ("nan_count", "sum", "mean", "min", "max")  # statistics of a result unless the request names others


@dataclass(frozen=True, slots=True)
class RowFailed(Exception):
    """A row that cannot be scored, which ends the evaluation; `detail` is NeMo's message."""

    detail: str


class OlderVerbs:
    """The operations behind the older routes.

    Args:
      service: Scores rows.
      metrics: Stored metrics.
    """

    def __init__(self, service: Service, metrics: NemoMetrics) -> None:
        self._service = service
        self._metrics = metrics

    async def evaluate(
        self,
        workspace_id: str,
        namespace: str,
        metric: dict[str, Any] | str,
        rows: list[dict[str, Any]],
        *,
        fields: Sequence[str],
    ) -> dict[str, Any]:
        """Score a few rows at once with a metric, or with a stored metric given by name; return NeMo's response.

        `fields` are the names of the statistics in the response.

        Raises:
          InvalidRequest: the metric is not valid or not supported, or its model cannot be called.
          NotFound: there is no such metric.
          RowFailed: a row cannot be scored.
        """
        bundle = await self._bundle(workspace_id, namespace, metric)
        evaluator = evaluator_of(bundle, field="metric")
        given = [Row({**row}) for row in rows]
        results = await self._service.evaluate_batch(
            evaluator, given, isolation=Isolation.BATCH, caller=Caller(workspace_id)
        )
        for index, result in enumerate(results):
            if result.error is not None and result.error.code is ErrorCode.TARGET_FAILED:
                raise InvalidRequest.of("metric", result.error.message, result.error.hint)
            if result.status is not Status.SCORED:
                raise RowFailed(f"Evaluation failed at row {index}: {_message(result)}")
        together = await self._service.evaluate_together(evaluator, given, results, caller=Caller(workspace_id))
        return {
            "metric": _shown(metric, bundle),
            "aggregate_scores": await asyncio.to_thread(_aggregates, bundle, results, together, fields),
            "row_scores": [
                {"index": index, "row": rows[index], "scores": _scores(result)} for index, result in enumerate(results)
            ],
        }

    async def job(self, workspace_id: str, namespace: str, body: OlderJobIn) -> NemoJobIn:
        """Convert an older job request to the current format.

        Raises:
          InvalidRequest: the metric is not valid or not supported.
          NotFound: there is no such metric.
        """
        spec = body.spec
        bundle = await self._bundle(workspace_id, namespace, spec.metric)
        newer = SpecIn.model_validate(
            {
                "metrics": [bundle],
                "dataset": spec.dataset if isinstance(spec.dataset, str) else spec.dataset.rows,
                **_given(spec),
            }
        )
        return NemoJobIn(
            name=body.name,
            description=body.description,
            project=body.project,
            spec=newer,
            ownership=body.ownership,
            custom_fields=body.custom_fields,
        )

    async def keep(self, workspace_id: str, namespace: str, name: str, metric: dict[str, Any]) -> dict[str, Any]:
        """Store a built-in metric under a name, and return its description.

        Raises:
          InvalidRequest: the name or the metric is not valid.
          NameTaken: there is a metric with that name.
        """
        bundle = bundle_of(metric, field="metric")
        return _older(await self._metrics.create(workspace_id, namespace, name, bundle, None), metric)

    async def get(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return a stored metric.

        Raises:
          NotFound: there is no metric with that name.
        """
        bundle = await self._metrics.bundle(workspace_id, namespace, name)
        found = await self._metrics.get(workspace_id, namespace, name)
        return _older(found, bundle["payload"].get("metric") or {"type": bundle["metric_type"]})

    async def _bundle(self, workspace_id: str, namespace: str, metric: dict[str, Any] | str) -> dict[str, Any]:
        if isinstance(metric, str):
            return await self._metrics.bundle(workspace_id, namespace, metric)
        return checked(bundle_of(metric, field="metric"), field="metric")


def aggregate_fields(asked: Sequence[str]) -> tuple[str, ...]:
    """Check and return the names of statistics in a request; if there are none, return the default names.

    Raises:
      InvalidRequest: a name is unknown.
    """
    known = {*FIELDS, "std_dev", "variance", "score_type", "percentiles", "histogram", "count", "name"}
    if odd := [one for one in asked if one not in known]:
        message = f"there is no aggregate {odd[0][:60]!r}; choose from {', '.join(sorted(known))}"
        raise InvalidRequest.of("aggregate_fields", message)
    return tuple(asked) or FIELDS


def _given(spec: OlderSpecIn) -> dict[str, Any]:
    given = {"params": spec.params, "target": spec.model, "field_mapping": spec.field_mapping}
    made = {name: value for name, value in given.items() if value is not None}
    return made if spec.prompt_template is None else {**made, "prompt_template": spec.prompt_template}


def _aggregates(
    bundle: dict[str, Any], results: list[EvaluationResult], together: EvaluationResult | None, fields: Sequence[str]
) -> list[dict[str, Any]]:
    rows = [_scores(result) for result in results]
    statistics = []
    for name in dict.fromkeys([*numeric_outputs(bundle), *(name for row in rows for name in row)]):
        values = [row.get(name) for row in rows]
        known = [value for value in values if value is not None]
        statistics.append(aggregate(name, known, nan_count=len(values) - len(known)))
    if together is not None:
        statistics += [aggregate(name, [float(value)]) for name, value in together.metrics.items()]
    shown = [statistics_of(one, name=one.name) for one in statistics]
    return [{name: one[name] for name in ("name", "count", *fields) if name in one} for one in shown]


def _scores(result: EvaluationResult) -> dict[str, float | None]:
    raw = result.value["scores"] if isinstance(result.value, dict) else {}
    return {name: None if value in (None, "NaN") else float(value) for name, value in raw.items()}


def _message(result: EvaluationResult) -> str:
    return result.error.message if result.error is not None else "the row was skipped"


def _shown(metric: dict[str, Any] | str, bundle: dict[str, Any]) -> dict[str, Any]:
    config = metric if isinstance(metric, dict) else bundle["payload"].get("metric") or {"type": bundle["metric_type"]}
    return {**_DEFAULTS, **{name: value for name, value in config.items() if value is not None}}


def _older(found: dict[str, Any], metric: dict[str, Any]) -> dict[str, Any]:
    own = {name: found[name] for name in ("id", "name", "workspace", "created_at", "updated_at")}
    return {**_DEFAULTS, **{name: value for name, value in metric.items() if value is not None}, **own}

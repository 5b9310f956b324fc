"""A job's results in NeMo's format: statistics by `metric.output`, rows, a tar file with both, and logs."""

import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from evaluator_host.platform.jobs.results.aggregate import aggregate, as_float
from evaluator_host.platform.jobs.results.results import JobResults
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.results.table import Filter
from evaluator_host.types.errors import NotFound
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import Status
from evaluator_host.types.results import Aggregate, EvaluatorStatistics, JobRow
from evaluator_host.vendors.nemo.built_in import levels_of
from evaluator_host.vendors.nemo.bundles import numeric_outputs
from evaluator_host.vendors.nemo.entities import Entity, Order
from evaluator_host.vendors.nemo.filters import Filter as RecordFilter
from evaluator_host.vendors.nemo.filters import every
from evaluator_host.vendors.nemo.jobs import NemoJobs, keys_of
from evaluator_host.vendors.nemo.names import page_of, stamp
from evaluator_host.vendors.nemo.spec import AGENTS
from evaluator_host.vendors.nemo.status import COMPLETED, failure_of

NAMES: Final = ("aggregate-scores", "row-scores", "artifacts")
_PLAIN: Final = ("sum", "mean", "min", "max", "std_dev", "variance")

Levels = list[dict[str, Any]]


def scores_of(
    key: str, bundle: dict[str, Any], statistics: EvaluatorStatistics, first: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the statistics of a metric's declared outputs, and of the scores that it gives to all rows together.

    Args:
      key: The metric's name in the result.
      bundle: Metric bundle, which declares the outputs.
      statistics: The host's statistics for the metric.
      first: Names of outputs that come first, in this order; the others follow in the order in which they are declared.
    """
    found = {one.name: one for one in statistics.metrics}
    declared = numeric_outputs(bundle)
    own = [name for name in found if name != "score" or not declared]  # `score` repeats a declared output
    names = dict.fromkeys([*(name for name in first if name in declared), *declared, *own])
    rubrics = levels_of(bundle["payload"].get("metric") or {})
    made = [
        statistics_of(
            found.get(name) or Aggregate(name, 0, statistics.scored),
            name=f"{key}.{name}",
            missing=statistics.failed,
            levels=rubrics.get(name) or None,
        )
        for name in names
    ]
    together = {} if statistics.together is None else statistics.together.metrics
    corpus = [aggregate(name, [as_float(value)]) for name, value in together.items()]
    return [*made, *(statistics_of(one, name=f"{key}.{one.name}") for one in corpus)]


def statistics_of(one: Aggregate, *, name: str, missing: int = 0, levels: Levels | None = None) -> dict[str, Any]:
    """Return the statistics of one of a metric's outputs.

    Args:
      one: The host's statistics for the output.
      name: Name of the statistics in the result.
      missing: Number of failed rows. They count like rows whose value is NaN or infinite.
      levels: Configured levels of the score's rubric; None for a score without a rubric.
    """
    made = {"name": name, "count": one.count, "nan_count": one.nan_count + missing}
    made |= {field: getattr(one, field) for field in _PLAIN}
    if levels is not None:
        counts = {level.label: level.count for level in one.rubric_distribution or ()}
        spread = [{**_level(level), "count": counts.get(str(level.get("label")), 0)} for level in levels]
        return {**made, "score_type": "rubric", "rubric_distribution": spread, "mode_category": one.mode_category}
    percentiles = None if one.percentiles is None else {p: v for p, v in one.percentiles.items() if p != "p99"}
    bins = [asdict(bin_) for bin_ in one.histogram]
    return {**made, "score_type": "range", "percentiles": percentiles, "histogram": {"bins": bins}}


def _level(level: dict[str, Any]) -> dict[str, Any]:
    return {"label": level.get("label"), "description": level.get("description"), "value": level.get("value")}


class NemoResults:
    """Reads the results of jobs.

    Args:
      jobs: Finds NeMo jobs and the host's jobs behind them.
      statistics: Statistics of the host's jobs.
      rows: Reads the rows of the host's jobs.
    """

    def __init__(self, jobs: NemoJobs, statistics: JobResults, rows: RowReader) -> None:
        self._jobs = jobs
        self._statistics = statistics
        self._rows = rows

    async def listed(self, workspace_id: str, namespace: str, name: str) -> list[dict[str, Any]]:
        """Return the list of a job's results, which is empty before the job has completed.

        Raises:
          NotFound: there is no such job.
        """
        entity = await self._jobs.entity(workspace_id, namespace, name)
        state = await self._jobs.state(workspace_id, entity)
        return [_described(entity, one) for one in NAMES] if state.status == COMPLETED else []

    async def described(self, workspace_id: str, namespace: str, name: str, result: str) -> dict[str, Any]:
        """Describe one of a job's results.

        Raises:
          NotFound: there is no such job, or it has no such result.
        """
        return _described(await self._completed(workspace_id, namespace, name, result), result)

    async def aggregates(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return the aggregate statistics of a job.

        Raises:
          NotFound: there is no such job, or it has not completed.
        """
        entity = await self._completed(workspace_id, namespace, name, NAMES[0])
        job_id, keys = entity.content["job_id"], keys_of(entity)
        statistics = await self._statistics.statistics(workspace_id, job_id)
        parts = zip(keys, entity.content["spec"]["metrics"], statistics.evaluators, strict=True)
        first = await self._first_outputs(workspace_id, job_id) if len(keys) == 1 else []
        return {"scores": [score for key, bundle, one in parts for score in scores_of(key, bundle, one, first)]}

    async def _first_outputs(self, workspace_id: str, job_id: str) -> list[str]:
        """Return the names of the outputs in a job's first row; NeMo lists the statistics in the same order."""
        found = (await self._rows.page(workspace_id, job_id, Filter(), limit=1)).rows
        value = found[0].result["value"] if found and found[0].result["status"] == Status.SCORED else None
        return [one["name"] for one in value["outputs"]] if value else []

    async def rows(
        self, workspace_id: str, namespace: str, name: str, *, limit: int | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the rows of a job with their results, by row number.

        Raises:
          NotFound: there is no such job, or it has not completed.
        """
        entity = await self._completed(workspace_id, namespace, name, NAMES[1])
        return self._row_scores(workspace_id, entity, limit)

    async def archive(self, workspace_id: str, namespace: str, name: str) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a tar file with a job's statistics and rows.

        The rows are read twice, because a tar file has the size of each file before its content.

        Raises:
          NotFound: there is no such job, or it has not completed.
        """
        aggregates = encode_json(await self.aggregates(workspace_id, namespace, name))
        yield _tar_header("aggregate-scores.json", len(aggregates)) + aggregates + _tar_padding(len(aggregates))
        size = 0
        async for row in await self.rows(workspace_id, namespace, name):
            size += len(encode_json(row)) + 1
        yield _tar_header("row-scores.jsonl", size)
        async for row in await self.rows(workspace_id, namespace, name):
            yield encode_json(row) + b"\n"
        yield _tar_padding(size) + bytes(2 * tarfile.BLOCKSIZE)

    async def logs(
        self, workspace_id: str, namespace: str, name: str, *, cursor: str | None, limit: int
    ) -> dict[str, Any]:
        """Return the output printed by a job's rows, and the errors of failed rows.

        Raises:
          NotFound: there is no such job.
          InvalidRequest: the cursor comes from another list.
        """
        entity = await self._jobs.entity(workspace_id, namespace, name)
        state = await self._jobs.state(workspace_id, entity)
        if state.lost:
            return {"data": [], "total": 0, "next_page": None, "prev_page": None}
        found = await self._rows.page(workspace_id, entity.content["job_id"], Filter(), cursor=cursor, limit=limit)
        at = stamp(state.changed_at or entity.created_at)
        said = [(f"row {row.index}", line) for row in found.rows for line in _lines(row)]
        if cursor is None and state.error is not None:
            said.insert(0, ("job", str(state.error["message"])))
        data = [
            {"timestamp": at, "job": entity.name, "job_step": "evaluation", "job_task": task, "message": message}
            for task, message in said
        ]
        total = int(state.details.get("done", len(data)))
        return {"data": data, "total": total, "next_page": found.next_cursor, "prev_page": None}

    async def records(
        self, workspace_id: str, namespace: str, keep: RecordFilter | None, *, number: int, size: int, order: Order
    ) -> dict[str, Any]:
        """Return a page of results that match a filter, from the completed jobs in a namespace."""
        fetch = partial(self._jobs.all, workspace_id, namespace, order=order)
        jobs, sort = await every(fetch, lambda job: job["status"] == COMPLETED)
        cut = partial(page_of, number=number, size=size, sort=sort)
        if keep is None:
            part = cut(jobs)
            return {**part, "data": [await self.record(workspace_id, namespace, job["name"]) for job in part["data"]]}
        made = [await self.record(workspace_id, namespace, job["name"]) for job in jobs]
        return cut([one for one in made if keep(one)])

    async def record(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return the result of a completed job, by the job's name or id.

        Raises:
          NotFound: there is no such job, or it has not completed.
        """
        entity = await self._completed(workspace_id, namespace, name, NAMES[0])
        spec = entity.content["spec"]
        target = spec.get("target") or {}
        return {
            "id": entity.id,
            "name": entity.name,
            "workspace": namespace,
            "job_id": entity.name,
            "project": entity.content.get("project"),
            "target_kind": None if not target else "agent" if target.get("format") in AGENTS else "model",
            "target_name": target.get("name"),
            "target_url": target.get("url"),
            "scores": await self.aggregates(workspace_id, namespace, name),
            "bundle_ref": f"{namespace}/{entity.name}#artifacts",
            "dataset_ref": spec["dataset"] if isinstance(spec["dataset"], str) else None,
            "metric_types": [bundle["metric_type"] for bundle in spec["metrics"]],
            "created_at": stamp(entity.created_at),
            "updated_at": stamp(entity.updated_at),
        }

    async def _completed(self, workspace_id: str, namespace: str, name: str, result: str) -> Entity:
        if result not in NAMES:
            raise NotFound(f"there is no result {result[:80]!r}; choose from {', '.join(NAMES)}")
        entity = await self._jobs.entity(workspace_id, namespace, name)
        state = await self._jobs.state(workspace_id, entity)
        if state.status != COMPLETED:
            raise NotFound(f"the job {name[:80]} has no results while its status is {state.status}")
        return entity

    async def _labels(self, workspace_id: str, entity: Entity) -> dict[str, str]:
        """Return each metric's name in NeMo's results, by the label of its evaluator on this host."""
        statistics = await self._statistics.statistics(workspace_id, entity.content["job_id"])
        return dict(zip((one.evaluator for one in statistics.evaluators), keys_of(entity), strict=True))

    async def _row_scores(
        self, workspace_id: str, entity: Entity, limit: int | None
    ) -> AsyncGenerator[dict[str, Any], None]:
        labels = await self._labels(workspace_id, entity)
        bundles = dict(zip(keys_of(entity), entity.content["spec"]["metrics"], strict=True))
        made: dict[str, Any] | None = None
        async for row in self._every(workspace_id, entity):
            if made is None or made["row_index"] != row.index:
                if made is not None:
                    yield made
                if limit is not None and row.index >= limit:
                    return
                made = _begun(row)
            key = labels[row.evaluator]
            _score(made, key, row, bundles[key], in_declared_order=len(bundles) > 1)
        if made is not None:
            yield made

    async def _every(self, workspace_id: str, entity: Entity) -> AsyncIterator[JobRow]:
        async for portion in self._rows.every(workspace_id, entity.content["job_id"], Filter()):
            for row in portion:
                yield row


def _begun(row: JobRow) -> dict[str, Any]:
    from evaluator_host.sdk.execution.samples import build_offline_sample  # noqa: PLC0415 - the import takes 40 ms

    item = row.row["inputs"]
    sample, requests = generated_sample(row) if row.request is not None else (build_offline_sample(item), [])
    return {
        "row_index": row.index,
        "item": item,
        "sample": sample,
        "metrics": {},
        "requests": requests,
        "metric_errors": None,
        "metric_diagnostics": None,
    }


def generated_sample(row: JobRow) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Convert a model's output for a row to NeMo's form.

    Return the sample, and a list with the logged request and response.
    """
    from evaluator_host.sdk.execution.samples import sampled  # noqa: PLC0415 - as in `_begun`

    log = row.request or {}
    if log.get("response") is None:
        return {"output_text": None, "response": {}, "inference_error": log["error"]}, []
    if "answer" in log:  # the target is an agent
        own = {"output_text": row.output} if row.output and isinstance(row.output, str) else {}
        return sampled(log["response"]["agent"], own), [{"request": log["body"], "response": log["answer"]}]
    request = logged_request({"request": log["body"], "response": log["response"]})
    sample = {"output_text": row.output} if isinstance(row.output, str) and row.output else {}
    return sampled(request["response"], sample), [request]


def logged_request(one: dict[str, Any]) -> dict[str, Any]:
    """Return `{"request", "response"}` as NeMo logs them: all of OpenAI's fields are present, null if unset."""
    from evaluator_host.sdk.openai_types import completed  # noqa: PLC0415 - as in `_begun`

    request = one["request"]
    chat = None if request is None else "messages" in request
    return {**one, "response": completed(one["response"], chat=chat)}


def _score(
    made: dict[str, Any], key: str, row: JobRow, bundle: dict[str, Any], *, in_declared_order: bool = False
) -> None:
    made["requests"] += map(logged_request, row.result.get("requests") or ())
    if row.result["status"] != Status.SCORED:
        made["metrics"][key] = [{"name": name, "value": "NaN"} for name in numeric_outputs(bundle)]
        made["metric_errors"] = {**(made["metric_errors"] or {}), key: failure_of(row)}
        return
    value = row.result["value"]
    outputs = {one["name"]: one for one in value["outputs"]}
    order = [one["name"] for one in bundle["outputs"]] if in_declared_order else list(outputs)
    made["metrics"][key] = [outputs[name] for name in order if name in outputs]
    if value["diagnostics"]:
        made["metric_diagnostics"] = {**(made["metric_diagnostics"] or {}), key: value["diagnostics"]}


def _lines(row: JobRow) -> list[str]:
    logs = row.result.get("logs") or {}
    said = [line for name in ("stdout", "stderr") for line in str(logs.get(name) or "").splitlines()]
    return [*said, *([failure_of(row)] if row.result["status"] == Status.FAILED else [])]


def _described(entity: Entity, result: str) -> dict[str, Any]:
    base = f"/apis/evaluator/v2/workspaces/{entity.namespace}/evaluate/jobs/{entity.name}/results/{result}"
    return {
        "name": result,
        "job": entity.name,
        "workspace": entity.namespace,
        "project": entity.content.get("project"),
        "created_at": stamp(entity.created_at),
        "updated_at": stamp(entity.updated_at),
        "artifact_url": f"{entity.namespace}/{entity.name}#{result}",
        "artifact_storage_type": "fileset",
        "download_url": f"{base}/download",
    }


def _tar_header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.PAX_FORMAT)


def _tar_padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)

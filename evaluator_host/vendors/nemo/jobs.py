"""NeMo's evaluation jobs: each NeMo job has a name, and starts a job of this host."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from evaluator_host.platform.datasets.files import RowLimits, write_rows
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.results.table import Filter
from evaluator_host.platform.jobs.service import JobService
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.types.errors import HostError, InUse, InvalidRequest, NameTaken, NotFound, Problem
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobConfig, Target
from evaluator_host.types.outcome import Status
from evaluator_host.types.stored import DatasetFacts, DatasetReport
from evaluator_host.vendors.nemo.bundles import checked, evaluator_of, python_of
from evaluator_host.vendors.nemo.entities import Entities, Entity, EntityKind, Order, Place
from evaluator_host.vendors.nemo.filesets import Filesets, RowsIn
from evaluator_host.vendors.nemo.metrics import NemoMetrics
from evaluator_host.vendors.nemo.models import NemoModels
from evaluator_host.vendors.nemo.names import page, require_name, shown, stamp
from evaluator_host.vendors.nemo.spec import FieldMappingIn, NemoJobIn, ParamsIn, SpecIn
from evaluator_host.vendors.nemo.status import JobState, failure_of, state_of

_TRIES: Final = 3  # maximum number of tries to create a job: somebody may delete its stored rows in the meantime
_NO_BLOB: Final = "AA=="  # replaces a pickled metric in lists, because a metric may be several MB long


class NemoJobs:
    """The NeMo jobs of every workspace.

    Args:
      entities: Names and specs of the jobs.
      filesets: Uploaded rows, to which jobs refer.
      metrics: Stored metrics, to which jobs refer.
      models: Stored models, to which jobs refer.
      board: The host's own jobs; each NeMo job starts one of them.
      rows: Reads rows with their results.
      datasets: Stores the rows of each job.
      max_rows: Maximum number of rows in a request for a job.
      require_python: Raises InvalidRequest for a Python version (such as 3.13) that this host cannot run.
    """

    def __init__(
        self,
        entities: Entities,
        filesets: Filesets,
        metrics: NemoMetrics,
        models: NemoModels,
        *,
        board: JobService,
        rows: RowReader,
        datasets: DatasetService,
        max_rows: int,
        require_python: Callable[[str | None], Awaitable[object]],
    ) -> None:
        self._entities = entities
        self._filesets = filesets
        self._metrics = metrics
        self._models = models
        self._board = board
        self._rows = rows
        self._datasets = datasets
        self._max_rows = max_rows
        self._python = require_python

    async def create(self, workspace_id: str, namespace: str, body: NemoJobIn) -> dict[str, Any]:
        """Queue a NeMo job, and return its description.

        Raises:
          InvalidRequest: a field of the request is not valid or not supported.
          NotFound: there is no such namespace, metric, fileset or model.
          NameTaken: there is a job with that name.
        """
        from evaluator_host.vendors.nemo.targets import target_of  # noqa: PLC0415 - loading NeMo's classes takes 40 ms

        name = require_name(body.name or f"evaluate-{secrets.token_hex(5)}", "job")
        await self._entities.require_namespace(_place(workspace_id, namespace))
        if await self._entities.find_entity(_place(workspace_id, namespace), name) is not None:
            raise NameTaken(f"there is a job named {name} in {namespace}; choose another name")
        bundles = await self._bundles(workspace_id, namespace, body.spec)
        for at, one in enumerate(bundles):
            await self._require_python(one, _metric_field(at))
        evaluators = [evaluator_of(one, field=_metric_field(at)) for at, one in enumerate(bundles)]
        target = await target_of(self._models, workspace_id, namespace, body.spec)
        dumped = await asyncio.to_thread(body.spec.model_dump, mode="json", exclude_unset=True)
        spec = {**dumped, "metrics": bundles}
        job_id = await self._order(workspace_id, namespace, body.spec, evaluators=evaluators, target=target)
        own: dict[str, Any] = {"description": body.description, "project": body.project}
        own |= {"ownership": body.ownership, "custom_fields": body.custom_fields}
        content = {**own, "spec": _with_model(spec, target), "job_id": job_id}
        place = _place(workspace_id, namespace)
        try:
            entity = await self._entities.add_entity(place, name, content)
        # another job took the name in the meantime, or the database failed, perhaps after it had stored the job
        except BaseException:
            found = await self._entities.find_entity(place, name)
            if found is None or found.content["job_id"] != job_id:
                with suppress(InUse):  # the job has already ended
                    await self._board.set_desired_state(workspace_id, job_id, DesiredState.CANCEL)
            raise
        return _shown(entity, await self.state(workspace_id, entity))

    async def get(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return a NeMo job.

        Raises:
          NotFound: there is no job with that name.
        """
        entity = await self.entity(workspace_id, namespace, name)
        return _shown(entity, await self.state(workspace_id, entity))

    async def all(self, workspace_id: str, namespace: str, *, number: int, size: int, order: Order) -> dict[str, Any]:
        """Return page `number`, from 1, of the NeMo jobs in a namespace. Their pickled metrics are left out."""
        place = _place(workspace_id, namespace)
        first = (number - 1) * size
        found, total = await self._entities.page(place, _without_blobs, order=order, first=first, limit=size)
        data = [_shown(one, await self.state(workspace_id, one)) for one in found]
        return page(data, number=number, size=size, total=total, sort=order)

    async def status(self, workspace_id: str, namespace: str, name: str) -> dict[str, Any]:
        """Return the status of a NeMo job.

        Raises:
          NotFound: there is no job with that name.
        """
        entity = await self.entity(workspace_id, namespace, name)
        state = await self.state(workspace_id, entity)
        made = shown(entity, status=state.status, status_details=state.details, error_details=state.error, steps=[])
        return {**made, "updated_at": stamp(state.changed_at or entity.updated_at)}

    async def want(self, workspace_id: str, namespace: str, name: str, wanted: DesiredState) -> dict[str, Any]:
        """Ask a job to stop, pause or resume. Return the job's description.

        Raises:
          NotFound: there is no job with that name.
          InUse: the job has ended.
        """
        entity = await self.entity(workspace_id, namespace, name)
        await self._board.set_desired_state(workspace_id, entity.content["job_id"], wanted)
        return _shown(entity, await self.state(workspace_id, entity))

    async def delete(self, workspace_id: str, namespace: str, name: str) -> None:
        """Delete a job with its results.

        Raises:
          NotFound: there is no job with that name.
          InUse: the job has not ended.
        """
        entity = await self.entity(workspace_id, namespace, name)
        if not (await self.state(workspace_id, entity)).lost:
            await self._board.delete_job(workspace_id, entity.content["job_id"])
        await self._entities.delete_entity(_place(workspace_id, namespace), name)

    async def entity(self, workspace_id: str, namespace: str, name: str) -> Entity:
        """Return the stored entity of a NeMo job.

        Raises:
          NotFound: there is no job with that name.
        """
        return await self._entities.get_entity(_place(workspace_id, namespace), name)

    async def state(self, workspace_id: str, entity: Entity) -> JobState:
        """Return the state of the host's job that a NeMo job started."""
        try:
            report = await self._board.get_job(workspace_id, entity.content["job_id"])
        except NotFound:
            return JobState.gone()
        state = state_of(report)
        if report.error is None or report.error.code != "max_failures":
            return state
        found = await self._rows.page(workspace_id, report.id, Filter(status=Status.FAILED), limit=1)
        keys = dict(zip(report.evaluators, keys_of(entity), strict=True))
        message = next((failure_of(row, keys[row.evaluator]) for row in found.rows), None)
        if message is None:  # the model failed, and no row was scored
            where = f"for metric {keys[report.evaluators[0]]!r} on row {report.error.row}"
            said = report.error.message.removeprefix(f"row {report.error.row}: ")
            message = f"Evaluation failed during sample generation {where}: {said}"
        return replace(state, error={"message": message, "code": report.error.code})

    async def _bundles(self, workspace_id: str, namespace: str, spec: SpecIn) -> list[dict[str, Any]]:
        found = []
        for at, given in enumerate(spec.metrics):
            if isinstance(given, str):
                found.append(await self._metrics.bundle(workspace_id, namespace, given))
            else:
                found.append(checked(given.model_dump(mode="json"), field=_metric_field(at)))
        return found

    async def _require_python(self, bundle: dict[str, Any], field: str) -> None:
        """Check that this host has the Python version that pickled a metric, because no other version can load it."""
        try:
            await self._python(python_of(bundle))
        except InvalidRequest as error:
            problems = tuple(replace(one, field=f"{field}.payload.python_version") for one in error.problems)
            detail = f"the metric was pickled with Python {python_of(bundle)}: {error.detail}"
            raise InvalidRequest(detail, problems=problems) from error

    async def _order(
        self, workspace_id: str, namespace: str, spec: SpecIn, *, evaluators: list[Evaluator], target: Target | None
    ) -> str:
        """Store the rows, queue a job of the host that scores them, and return this job's id.

        Raises:
          InUse: the rows were removed several times before the job was created.
        """
        for _ in range(_TRIES):
            kept = await self._kept_rows(workspace_id, namespace, spec)
            job = JobSpec(evaluators, kept.id, target=target, config=_config(spec.params or ParamsIn()))
            try:
                return (await self._board.create_job(job, workspace_id)).id
            except NotFound:
                if await self._has_rows(workspace_id, kept.id):
                    raise
            except HostError as error:
                error.problems = tuple(_renamed(problem) for problem in error.problems)
                raise
        raise InUse("the rows of the job were removed before the job was created; create it again")

    async def _has_rows(self, workspace_id: str, dataset_id: str) -> bool:
        try:
            await self._datasets.get_dataset(workspace_id, dataset_id)
        except NotFound:
            return False
        return True

    async def _kept_rows(self, workspace_id: str, namespace: str, spec: SpecIn) -> DatasetReport:
        limit = (spec.params or ParamsIn()).limit_samples
        if isinstance(spec.dataset, str):
            files = await self._filesets.row_files(workspace_id, namespace, spec.dataset)
            given = (files, spec.field_mapping, limit)
            size = sum([(await asyncio.to_thread(one.file.stat)).st_size for one in files])
            formats = {one.format for one in files}
            return await self._datasets.add_files(
                workspace_id, write_fileset, *given, input_bytes=size, formats=formats
            )
        rows = _rows(self._own_rows(spec.dataset), spec.field_mapping, limit=limit)
        return await self._datasets.add_unnamed(workspace_id, rows, "jsonl")

    def _own_rows(self, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        if not 0 < len(rows) <= self._max_rows:
            message = f"the request has {len(rows)} rows; it must have 1 to {self._max_rows}"
            problem = Problem("spec.dataset", message, "upload more rows to a fileset, and give its name")
            raise InvalidRequest("the job has no rows, or too many", problems=(problem,))
        return iter(rows)


def keys_of(entity: Entity) -> list[str]:
    """Return the names that a job's metrics have in its results.

    The first metric of type `m` is called `m`, the second `m_2`.
    """
    seen: Counter[str] = Counter()
    found = []
    for bundle in entity.content["spec"]["metrics"]:
        kind = bundle["metric_type"]
        seen[kind] += 1
        found.append(kind if seen[kind] == 1 else f"{kind}_{seen[kind]}")
    return found


def write_fileset(
    stage: Path,
    files: list[RowsIn],
    mapping: FieldMappingIn | None,
    limit: int | None,
    limits: RowLimits,
) -> DatasetFacts:
    """Write at most `limit` rows of a fileset's files into folder `stage`, as a data set."""
    records = (record for one in files for record in one.records(limits.max_row_bytes))
    rows = enumerate(_rows(records, mapping, limit=limit), start=1)
    return write_rows(stage, rows, format_="jsonl", limits=limits)


def _rows(
    records: Iterator[dict[str, Any]], mapping: FieldMappingIn | None, *, limit: int | None
) -> Iterator[dict[str, Any]]:
    """Yield rows in the API's form. A metric gets the whole record, including the mapped fields."""
    for number, record in enumerate(records):
        if limit is not None and number >= limit:
            return
        yield {"inputs": record if mapping is None else mapping.applied_to(record)}


def _config(params: ParamsIn) -> JobConfig:
    return JobConfig(
        parallelism=params.parallelism,
        isolation=Isolation.BATCH,  # rows share a process, so that one copy of the metric serves all of them
        max_failures=None if params.ignore_request_failure else 0,
    )


def _place(workspace_id: str, namespace: str) -> Place:
    return Place(workspace_id, EntityKind.JOB, namespace)


def _metric_field(at: int) -> str:
    return f"spec.metrics[{at}]"


def _renamed(problem: Problem) -> Problem:
    field = problem.field.replace("evaluators[", "spec.metrics[")
    return Problem(field, problem.message, problem.hint)


def _with_model(spec: dict[str, Any], target: Target | None) -> dict[str, Any]:
    """Return a job's spec as clients see it: a model reference is replaced by the model itself."""
    if target is None or not isinstance(spec.get("target"), str):
        return spec
    return {**spec, "target": {"url": target.base_url, "name": target.model, "format": "nim"}}


def _shown(entity: Entity, state: JobState) -> dict[str, Any]:
    content = entity.content
    own = {key: content.get(key) for key in ("description", "project", "ownership", "custom_fields")}
    said = {"status": state.status, "status_details": state.details, "error_details": state.error}
    return shown(entity, spec=content["spec"], **said, **own)


def _without_blobs(job: Entity) -> Entity:
    spec = job.content["spec"]
    metrics = [
        {**one, "payload": {**one["payload"], **({"blob": _NO_BLOB} if "blob" in one["payload"] else {})}}
        for one in spec["metrics"]
    ]
    return replace(job, content={**job.content, "spec": {**spec, "metrics": metrics}})

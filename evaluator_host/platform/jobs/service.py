"""Creates, lists, watches, pauses, resumes, cancels and deletes jobs."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import orjson

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.prepared import evaluator_digest, require_fit
from evaluator_host.engine.system.threads import work_for
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.datasets.mapping import NEW_CHARS, NO_OUTPUTS, is_template, too_long
from evaluator_host.platform.datasets.rendering import require_templates
from evaluator_host.platform.datasets.table import Dataset, Datasets, new_dataset_id
from evaluator_host.platform.evaluators.registry import ResolvedEvaluator
from evaluator_host.platform.jobs.first_rows import FirstRowsOfJobs
from evaluator_host.platform.jobs.output_table import Outputs
from evaluator_host.platform.jobs.records import DesiredState, Job, JobEvaluator, JobOverview
from evaluator_host.platform.jobs.spec import (
    JobSpec,
    StoredSpec,
    evaluator_of,
    evaluator_to_json,
    label_of,
    nodes_of,
    spec_from_json,
    spec_to_json,
)
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.jobs.tallies import EvaluatorTally
from evaluator_host.platform.models.access import ModelAccess
from evaluator_host.platform.models.prompts import prompt_templates
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.types.errors import InUse, InvalidPin, InvalidRequest, NotFound, Problem
from evaluator_host.types.evaluator import Evaluator, Json
from evaluator_host.types.jobs import (
    EvaluatorScore,
    Executor,
    Failures,
    JobError,
    JobProgress,
    JobReport,
    JobScore,
    MappingAdvice,
    ScoredJob,
    ScoreHistory,
    ScoreLine,
)
from evaluator_host.types.numbers import per_second

_LOOKS_APART_S: Final = 0.1  # minimum number of seconds between two queries for all watchers
_FIRST_LOOK_S: Final = 0.05  # seconds until a watched job is read again for the first time; doubled after each time
LOOK_EVERY_S: Final = 0.5  # maximum number of seconds between two reads of a watched job
_JOBS_AT_ONCE: Final = 50  # maximum number of jobs that are read and sent at a time
_FIRST_JOBS: Final = 4  # number of jobs in the first part; few, since a mapping and a prompt may have 1 MB each
_PART_BYTES: Final = 2 << 20  # bytes that the jobs in each later part should have
_JOBS_OF_HISTORY: Final = 20  # jobs of a score history that are read at a time
_OF_SCORE_BYTES: Final = 4 << 10  # bytes that an evaluator's scores are assumed to take in a part
_NAMED: Final = 3  # maximum number of evaluators that a job's title names
_COLUMN_CHARS: Final = 40  # maximum number of characters of a column's name in a job's title
_TRIES: Final = 3  # how many times to try to create a job; a try fails if the job's data set is replaced meanwhile

_Chosen: TypeAlias = list[tuple[JobEvaluator, Evaluator]]
"""The evaluators of a job, each with the copy that the job stores."""
Resolve: TypeAlias = Callable[[str, str], Awaitable[ResolvedEvaluator]]
"""Takes a workspace id and a reference (`exact-match`, `exact-match@3`); returns the evaluator, or raises NotFound."""


@runtime_checkable
class JobRunner(Protocol):
    """Runs the jobs of a host: a `Scheduler` in this process or in another process."""

    async def run(self) -> None:
        """Claim and run jobs until cancelled; then put running jobs back in the queue."""
        ...

    def wake(self) -> None:
        """Check for queued jobs now, before the next regular check."""
        ...

    def set_desired_state(self, job_id: str, desired: DesiredState) -> None:
        """Pass a new desired state at once to a running job, before the job next writes."""
        ...


@dataclass(slots=True)
class JobService:
    """The jobs of one host.

    Every method that takes a `job_id` raises `NotFound` if the workspace has no job with that id.
    """

    service: Service
    jobs: Jobs
    outputs: Outputs
    datasets: Datasets
    folder: RowsFolder
    runner: JobRunner
    resolve: Resolve  # function that finds stored evaluators
    usage: StorageUsage
    models: ModelAccess | None = None  # checks the models of online jobs; None for a host without such jobs
    _watched: Counter[str] = field(init=False, default_factory=Counter)
    _looking: asyncio.Task[dict[str, JobReport | None]] | None = field(init=False, default=None)
    _looked_at_s: float = field(init=False, default=0.0)

    async def create_job(self, spec: JobSpec, workspace_id: str, *, idempotency_key: str | None = None) -> JobReport:
        """Queue a job and return it. If an earlier job has the same idempotency key, return that job.

        Raises:
          InvalidRequest: an evaluator, the mapping, the target or the data is not valid.
          InvalidPin: a package is not pinned exactly.
          NotFound: there is no such evaluator or data set.
          InUse: the data set was replaced several times meanwhile; try again.
          OverQuota: the workspace has reached its quota.
          MachineExhausted: this machine has too little free disk.
        """
        if idempotency_key is not None:
            earlier = await self.jobs.find_by_idempotency_key(workspace_id, idempotency_key)
            if earlier is not None:
                return await self.get_job(workspace_id, earlier.id)
        stored, evaluators = await self._checked(spec, workspace_id)
        request, kept = spec_to_json(stored), [one for one, _ in evaluators]
        size = len(request) + sum(len(one.content) + len(one.lock or "") for one in kept)
        await self.usage.require_room(workspace_id, size)
        await self._require_first_rows(spec, evaluators, workspace_id)
        for _ in range(_TRIES):
            dataset = await self._dataset(spec.dataset, workspace_id)
            try:
                job = await self.jobs.add_job(
                    workspace_id,
                    dataset_id=dataset.id,
                    request=request,
                    rows=min(dataset.facts.rows, spec.config.limit_samples or dataset.facts.rows),
                    evaluators=kept,
                    idempotency_key=idempotency_key,
                    name=spec.name,
                    schedule=spec.schedule,
                )
            except NotFound:  # the host may remove a data set that has no name and no job yet
                continue
            self.runner.wake()
            return await self.get_job(workspace_id, job.id)
        raise InUse("the data set was replaced at the same moment; create the job again")

    async def require_job(self, spec: JobSpec, workspace_id: str) -> None:
        """Check the spec of a job that will be created later, in the same way as `create_job`.

        Raises:
          InvalidRequest: an evaluator, the mapping, the target or the data is not valid.
          InvalidPin: a package is not pinned exactly.
          NotFound: there is no such evaluator or data set.
        """
        _, evaluators = await self._checked(spec, workspace_id)
        await self._require_first_rows(spec, evaluators, workspace_id)

    async def _require_first_rows(self, spec: JobSpec, evaluators: _Chosen, workspace_id: str) -> None:
        dataset = await self._stored_dataset(spec, workspace_id)
        labelled = [(kept.label, evaluator) for kept, evaluator in evaluators]
        await FirstRowsOfJobs(self.service, self.folder).require(spec, labelled, dataset, workspace_id)

    async def advise_mapping(self, spec: JobSpec, workspace_id: str) -> MappingAdvice:
        """Return the mapping that a job's data and evaluators suggest, and the fields that the evaluators read.

        Raises:
          HostError: for the reasons given at `require_job`; mapping and target are not checked.
        """
        evaluators = [(kept.label, evaluator) for kept, evaluator in await self._evaluators(spec, workspace_id)]
        dataset = await self._stored_dataset(spec, workspace_id)
        return await FirstRowsOfJobs(self.service, self.folder).advise(spec, evaluators, dataset, workspace_id)

    async def _stored_dataset(self, spec: JobSpec, workspace_id: str) -> Dataset | None:
        return await self.datasets.get_dataset(workspace_id, spec.dataset) if isinstance(spec.dataset, str) else None

    async def _checked(self, spec: JobSpec, workspace_id: str) -> tuple[StoredSpec, _Chosen]:
        if sum(len(field) + len(source) for field, source in spec.mapping.items()) > NEW_CHARS:
            raise too_long(NEW_CHARS)
        stored = StoredSpec(spec.mapping, spec.target, spec.config)
        _ = stored.shard  # this raises an error if the shard is not valid
        if spec.config.executor is Executor.RAY and self.service.settings.ray_address is None:
            message = "this host has no Ray cluster; the operator can set EVALUATOR_HOST_RAY_ADDRESS"
            raise InvalidRequest.of("config.executor", message, "leave it out")
        templates = [(f"mapping.{field}", source) for field, source in stored.parse_mapping().templates]
        await self._require_target(spec, workspace_id)
        if spec.target is not None:
            templates += prompt_templates(spec.target)
        await require_templates(self.service.processes, workspace_id, templates)
        evaluators = await self._evaluators(spec, workspace_id)
        for _, made in evaluators:
            if spec.config.executor is Executor.RAY and (made.models or made.network or made.secrets):
                message = (
                    "evaluators with models, network or secrets cannot run on Ray: only the host itself can grant these"
                )
                raise InvalidRequest.of("config.executor", message, "leave `executor` out")
        if not evaluators:
            raise InvalidRequest("a job needs an evaluator", problems=(Problem("evaluators", "the list is empty"),))
        return stored, evaluators

    async def grants_of(self, job_id: str) -> tuple[str, ...]:
        """Return a job's grants without repetition: `model:NAME`, `network:HOST:PORT`, `secret:VARIABLE=NAME`."""
        kept = await self.jobs.evaluators(job_id)
        evaluators = await asyncio.to_thread(lambda: [evaluator_of(one) for one in kept])
        return tuple(dict.fromkeys(grant for one in evaluators for grant in one.grants))

    async def count_rows(self, spec: JobSpec, workspace_id: str) -> int:
        """Return how many rows a job with this spec has to score.

        Raises:
          NotFound: there is no such data set.
          InvalidRequest: `config.shard` is not valid.
        """
        rows = len(spec.dataset)
        if isinstance(spec.dataset, str):
            rows = (await self.datasets.get_dataset(workspace_id, spec.dataset)).facts.rows
        return len(StoredSpec(config=spec.config).shard.indexes(min(rows, spec.config.limit_samples or rows)))

    async def get_job(self, workspace_id: str, job_id: str) -> JobReport:
        return job_report(await self.jobs.get_overview(workspace_id, job_id))

    async def list_jobs(self, workspace_id: str, *, limit: int = 100, **chosen: Any) -> list[JobReport]:
        """Return jobs, newest first. `chosen` are filters: the keyword arguments of `Jobs.list_overviews`."""
        found = await self.jobs.list_overviews(workspace_id, limit=limit, **chosen)
        return await asyncio.to_thread(lambda: [job_report(job) for job in found])

    async def overviews(
        self, workspace_id: str, *, limit: int, **chosen: Any
    ) -> AsyncGenerator[list[JobOverview], None]:
        """Yield the jobs that `list_jobs` returns, in parts, before they are converted to reports."""
        after: Job | None = None
        count = _FIRST_JOBS
        while limit > 0:
            most = min(limit, count)
            part = await self.jobs.list_overviews(workspace_id, limit=most, after=after, **chosen)
            if not part:
                return
            after, read, count = part[-1].job, len(part), _next_count(part)
            yield part
            if read < most:
                return
            limit -= most

    async def rename_job(self, workspace_id: str, job_id: str, name: str | None) -> JobReport:
        """Rename a job, or remove its name, and return the job."""
        await self.jobs.rename_job(workspace_id, job_id, name)
        return await self.get_job(workspace_id, job_id)

    async def scores_of(
        self, workspace_id: str, evaluator: str, *, dataset: str | None = None, limit: int = 100
    ) -> list[EvaluatorScore]:
        """Return a stored evaluator's scores in completed jobs, the newest first.

        For an unknown name, the list is empty.
        """
        found = await self.jobs.scores_of(workspace_id, evaluator, dataset=dataset, limit=limit)
        return await asyncio.to_thread(lambda: [_point(job, one) for job, one in found])

    async def history_of(self, workspace_id: str, dataset: str, *, limit: int = 20) -> ScoreHistory:
        """Return the scores of each stored evaluator in the newest completed jobs over a data set, the oldest first.

        Raises:
          NotFound: there is no data set with that name, and no job over such a data set.
        """
        found: list[tuple[ScoredJob, dict[str, JobScore]]] = []
        after: Job | None = None
        while len(found) < limit:
            most = min(_JOBS_OF_HISTORY, limit - len(found))
            part = await self.jobs.list_completed(workspace_id, dataset, limit=most, after=after)
            found += await asyncio.to_thread(lambda: [_scored(job, tallies) for job, tallies in part])  # noqa: B023
            if len(part) < most:
                break
            after = part[-1][0]
        if not found:
            await self.datasets.get_dataset(workspace_id, dataset)
        lines: dict[str, list[JobScore | None]] = {}
        for place, (_, scores) in enumerate(reversed(found)):
            for name, score in scores.items():
                lines.setdefault(name, [None] * len(found))[place] = score
        jobs = tuple(job for job, _ in reversed(found))
        return ScoreHistory(dataset, jobs, tuple(ScoreLine(name, tuple(lines[name])) for name in sorted(lines)))

    async def last_scores(self, workspace_id: str) -> dict[str, EvaluatorScore]:
        """Return each stored evaluator's scores in the newest job that ran it, keyed by name.

        The job may be running.
        """
        found = await self.jobs.last_scores(workspace_id)
        return await asyncio.to_thread(lambda: {one.name or "": _point(job, one) for job, one in found})

    async def watch_job(self, workspace_id: str, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield a job at once, then after every change, until it has ended or was deleted."""
        last = await self.get_job(workspace_id, job_id)
        yield last
        self._watched[job_id] += 1
        pause_s = _FIRST_LOOK_S  # short at first, so that nobody waits half a second for a job of a few rows
        try:
            while not last.status.final:
                await asyncio.sleep(pause_s)
                seen = await self._look(pause_s / 2)
                pause_s = min(2 * pause_s, LOOK_EVERY_S)
                if (report := seen.get(job_id, last)) is None:
                    return
                eta_s = report.progress.eta_s
                if eta_s is not None and report.progress.done != last.progress.done:
                    pause_s = max(_FIRST_LOOK_S, min(eta_s, pause_s))  # so that the end is seen soon
                if report != last:
                    yield report
                last = report
        finally:
            self._watched[job_id] -= 1
            if not self._watched[job_id]:
                del self._watched[job_id]

    async def _look(self, age_s: float) -> dict[str, JobReport | None]:
        """Return the watched jobs as they were at most `age_s` ago, keyed by id (None if deleted).

        All watchers share one query.
        """
        now_s = asyncio.get_running_loop().time()
        if self._looking is None or (self._looking.done() and now_s - self._looked_at_s > age_s):
            wait_s = max(0.0, self._looked_at_s + _LOOKS_APART_S - now_s)
            self._looked_at_s = now_s + wait_s
            self._looking = asyncio.create_task(self._read_watched(wait_s))
            # this reads the exception, which asyncio would otherwise log
            self._looking.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._looking)

    async def _read_watched(self, wait_s: float) -> dict[str, JobReport | None]:
        work_for("")  # this work is for all watchers, not for the workspace of the first one
        await asyncio.sleep(wait_s)
        asked = list(self._watched)
        jobs = await self.jobs.find_overviews(asked) if asked else []
        found = await asyncio.to_thread(lambda: {one.job.id: job_report(one) for one in jobs})
        return {job_id: found.get(job_id) for job_id in asked}

    async def set_desired_state(self, workspace_id: str, job_id: str, desired: DesiredState) -> JobReport:
        """Set whether a job should run, pause or stop, and return the job. A failed job may run again.

        A job that failed because of `max_failures` may then have that many further failures.

        Raises:
          InUse: the job has ended, but did not fail.
        """
        request = await self._allowing_more(workspace_id, job_id) if desired is DesiredState.RUN else None
        await self.jobs.set_desired_state(workspace_id, job_id, desired, request=request)
        self.runner.set_desired_state(job_id, desired)
        self.runner.wake()
        return await self.get_job(workspace_id, job_id)

    async def _allowing_more(self, workspace_id: str, job_id: str) -> str | None:
        """If a job failed because of `max_failures`, return its request with a higher limit. Otherwise return None."""
        job = await self.jobs.get_job(workspace_id, job_id)
        stored = spec_from_json(job.request)
        most = stored.config.max_failures
        if most is None or not job.error or orjson.loads(job.error)["code"] != "max_failures":
            return None
        _, unanswered = await self.outputs.count(job_id)
        failed = max(job.failed, unanswered)
        return spec_to_json(replace(stored, config=replace(stored.config, max_failures=failed + most)))

    async def delete_job(self, workspace_id: str, job_id: str) -> None:
        """Delete a job that has ended, its results, and its rows if nothing else needs the rows.

        Raises:
          InUse: the job has not ended.
        """
        await self.jobs.delete_job(workspace_id, job_id)
        await self.datasets.forget_unused(workspace_id, remove=self.folder.remove)

    async def delete_ended(self, before: datetime) -> int:
        """Delete all workspaces' jobs that ended before a time; return how many were deleted."""
        deleted = await self.jobs.delete_ended(before)
        if deleted:
            await self.datasets.forget_unused(remove=self.folder.remove)
        return deleted

    async def _evaluators(self, spec: JobSpec, workspace_id: str) -> _Chosen:
        """Return a job's evaluators. A schedule may name one twice: `["qa", "qa@2"]`, once 2 is the newest version."""
        found: _Chosen = []
        for given in spec.evaluators:
            one, evaluator = await self._evaluator(given, workspace_id, before=[kept for kept, _ in found])
            same = next((other for other, _ in found if other.label == one.label), None)
            if same is None:
                found.append((one, evaluator))
            elif spec.schedule is None or same.digest != one.digest:
                field = f"evaluators.{one.position}"
                raise InvalidRequest.of(field, f"the job already has an evaluator {one.label}", "leave out one of them")
        return found

    async def _evaluator(
        self, given: Evaluator | str, workspace_id: str, *, before: Sequence[JobEvaluator]
    ) -> tuple[JobEvaluator, Evaluator]:
        position, taken = len(before), {one.label for one in before}
        named = await self.resolve(workspace_id, given) if isinstance(given, str) else ResolvedEvaluator(given, None)
        evaluator = named.evaluator
        try:
            require_fit(evaluator, self.service.settings)
            evaluator = await self.service.pinned(evaluator, caller=Caller(workspace_id))
        except InvalidRequest as error:
            problems = (
                replace(one, field=f"evaluators.{position}.{one.field.removeprefix('evaluator.')}")
                for one in error.problems
            )
            raise InvalidRequest(error.detail, problems=tuple(problems)) from error
        if evaluator.python is not None:
            await self.service.environments.queries.python(evaluator.python)
        if evaluator.packages:
            try:
                queries = self.service.environments.queries
                await queries.parse(evaluator.packages, evaluator.language, workspace=workspace_id)
            except InvalidPin as error:
                problems = (replace(one, field=f"evaluators.{position}.{one.field}") for one in error.problems)
                raise InvalidPin(error.detail, problems=tuple(problems)) from error
        label = (
            f"{evaluator.name}@{evaluator.version}" if evaluator.name else label_of(evaluator, position, taken=taken)
        )
        # in a thread, because a job may have a hundred evaluators with a megabyte of code
        digest, content = await asyncio.to_thread(lambda: (evaluator_digest(evaluator), evaluator_to_json(evaluator)))
        kept = JobEvaluator(
            position=position,
            label=label,
            name=evaluator.name,
            version=evaluator.version,
            digest=digest,
            content=content,
            lock=named.lock,
        )
        return kept, evaluator

    async def _require_target(self, spec: JobSpec, workspace_id: str) -> None:
        if spec.target is None:
            return
        if self.models is None:
            raise InvalidRequest(
                "this host does not call models, so a job here cannot have a target; upload rows with outputs"
            )
        if "outputs" in spec.mapping or "trace" in spec.mapping:
            message = "outputs and trace come from the target's model; map other fields only"
            raise InvalidRequest.of("mapping", message)
        await self.models.require(spec.target, workspace_id)

    async def _dataset(self, given: str | Sequence[dict[str, Json]], workspace_id: str) -> Dataset:
        if isinstance(given, str):
            return await self.datasets.get_dataset(workspace_id, given)
        dataset_id = new_dataset_id()
        ceiling = self.service.settings.body_mb << 20
        facts = await asyncio.to_thread(
            self.folder.write, dataset_id, enumerate(given, start=1), format_="json", max_bytes=2 * ceiling
        )
        return await self.datasets.add_dataset(dataset_id, workspace_id, None, facts)


def _next_count(part: Sequence[JobOverview]) -> int:
    """Return how many jobs to read next, judging by the size of the jobs in `part`."""
    size = sum(len(one.job.request) + _OF_SCORE_BYTES * len(one.evaluators) for one in part)
    return min(_JOBS_AT_ONCE, max(1, _PART_BYTES * len(part) // size))


def job_report(overview: JobOverview) -> JobReport:
    """Return a stored job in the form that its workspace sees."""
    job, stored = overview.job, spec_from_json(overview.job.request)
    progress = _progress(overview, len(stored.shard.indexes(job.rows)) * len(overview.evaluators))
    scores = tuple(_score(job, one, stored) for one in overview.evaluators)
    return JobReport(
        id=job.id,
        name=job.name,
        status=job.status,
        evaluators=tuple(one.label for one in overview.evaluators),
        scores=scores,
        dataset=overview.dataset,
        dataset_name=job.dataset_name,
        schedule=job.schedule,
        mapping=stored.mapping,
        target=stored.target,
        config=stored.config,
        progress=progress if stored.target is None else replace(progress, generated=overview.asked),
        error=JobError(**orjson.loads(job.error)) if job.error else None,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        nodes=tuple(nodes_of(job)),
        title=_title(job, overview.evaluators, stored),
        doubt="; ".join(f"{one.evaluator}: {one.doubt}" for one in scores if one.doubt) or None,
        dataset_version=overview.version,
        dataset_newest=overview.newest,
        running_s=round(job.running_s, 3),
    )


def _title(job: Job, evaluators: Sequence[EvaluatorTally], stored: StoredSpec) -> str:
    """Return a job's title.

    The title is the job's name, or else its evaluators, its data set with the column of answers, and its day.
    """
    if job.name is not None:
        return job.name
    names = [re.sub(r"@\d+$", "", one.label) for one in evaluators]
    more = [] if len(names) <= _NAMED else [f"{len(names) - _NAMED} more"]
    rows = job.dataset_name or "its own rows"
    answers = stored.mapping.get("outputs", NO_OUTPUTS[1])
    is_column = answers != NO_OUTPUTS[1] and not is_template(answers) and stored.target is None
    if is_column and len(answers) <= _COLUMN_CHARS:
        rows += f" ({answers})"
    day = f"{job.created_at.day} {job.created_at:%b}"
    return " · ".join((", ".join([*names[:_NAMED], *more]), rows, day))


def _scored(job: Job, tallies: Sequence[EvaluatorTally]) -> tuple[ScoredJob, dict[str, JobScore]]:
    """Return a job, and the scores of its stored evaluators, keyed by name.

    Of several versions, the newest one counts.
    """
    stored = spec_from_json(job.request)
    named = [one for one in sorted(tallies, key=lambda one: one.version or 0) if one.name is not None]
    scores = {str(one.name): _score(job, one, stored) for one in named}
    return ScoredJob(job.id, _title(job, tallies, stored), job.created_at), scores


def _point(job: Job, one: EvaluatorTally) -> EvaluatorScore:
    made = (one.version, job.finished_at, _score(job, one), job.created_at)
    return EvaluatorScore(job.id, job.name, job.dataset_name, *made)


def _score(job: Job, one: EvaluatorTally, stored: StoredSpec | None = None) -> JobScore:
    stored = stored or spec_from_json(job.request)
    zero = stored.config.failures is Failures.ZERO
    return JobScore(
        evaluator=one.label,
        rows=len(stored.shard.indexes(job.rows)),
        scored=one.tally.scored,
        failed=one.tally.failed,
        skipped=one.tally.skipped,
        mean=one.tally.mean_score(failures_are_zero=zero),
        pass_rate=one.tally.pass_rate(failures_are_zero=zero),
        previous=None if one.previous is None else one.previous_job,
        change=one.change(failures_are_zero=zero),
        warnings=one.tally.counted_warnings(),
        doubt=one.doubt() if job.status.final else None,
        mean_rows=one.tally.mean_rows(failures_are_zero=zero),
        judged=one.tally.judged_rows(failures_are_zero=zero),
    )


def _progress(overview: JobOverview, rows: int) -> JobProgress:
    job = overview.job
    rate = per_second(job.done, job.running_s) if job.done and not overview.silent else None
    left = max(0, rows - job.done)
    eta_s = left / rate if rate and not job.status.final else None
    return JobProgress(
        rows=rows,
        done=job.done,
        failed=job.failed,
        rows_per_s=rate,
        eta_s=None if eta_s is None else round(eta_s, 1),
    )

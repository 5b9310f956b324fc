"""Client methods for jobs: `client.jobs`."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import asdict
from datetime import datetime
from types import NoneType
from typing import Any, Final

from ..types.errors import HostError
from ..types.evaluator import Evaluator, Isolation, Json, ModelBudget, Replay
from ..types.jobs import Executor, Failures, JobEstimate, JobReport, JobStatus, Target
from ..types.line_buffer import LineBuffer
from .calls import Call, decode, encode, evaluator_body, query
from .job_results import JobResultVerbs, job_path
from .transport import TransportT, stream, verb

_EVENT_DATA: Final = b"data:"
_AGAIN_S: Final = 1.0  # seconds between two requests for a job whose events cannot be read


class JobVerbs(JobResultVerbs[TransportT]):
    """Methods for the jobs in your key's workspace.

    For every method that takes a `job_id`:

    Args:
      job_id: Id of the job.

    Raises:
      NotFound: there is no such job.
      InUse: the method pauses, resumes or cancels a job that has ended (a failed job can be resumed), or deletes a job
        that has not ended.
      InvalidRequest: a filter does not exist, or its value is not valid.
    """

    @verb
    async def create(
        self,
        evaluators: Iterable[Evaluator | str],
        dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
        *,
        mapping: dict[str, str] | None = None,
        target: Target | None = None,
        parallelism: int | None = None,
        limit_samples: int | None = None,
        shard: str | None = None,
        executor: Executor = Executor.LOCAL,
        isolation: Isolation = Isolation.ROW,
        max_failures: int | None = None,
        replay: Replay = Replay.OFF,
        budget: ModelBudget | None = None,
        failures: Failures = Failures.EXCLUDE,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> JobReport:
        """Queue a job.

        Args:
          evaluators: Evaluators with their code, and names of stored evaluators (`exact-match@3`).
          dataset: Name of a data set, rows, or `{"eval_set": {…}, "executions": […]}` (docs/dialects); with an eval set
            and no evaluators, the job runs the evaluators in the eval set.
          mapping: Which column or template fills each field of a row:
            `{"outputs": "answer", "correct_answer": "gold"}`.
          target: A model that first produces the outputs.
          parallelism: Number of sandboxes that run at once.
          limit_samples: How many rows to score, starting with the first.
          shard: The part of these rows to score: `3/16` stands for the rows with index modulo 16 equal to 3.
          executor: `RAY` evaluates the rows on the nodes of the host's Ray cluster.
          isolation: `BATCH` lets rows share a process, for speed.
          max_failures: The job fails when more results (rows times evaluators) than this have failed.
          replay: Whether to record and reuse the answers of granted models.
          budget: Limits for the whole job's use of granted models; None for no limit.
          failures: Whether failed rows are left out of mean and pass rate, or count as 0 and as not passed.
          name: Name of the job, shown in lists and found by `search`.
          idempotency_key: A repeated call with the same key returns the job that the first call made.

        Raises:
          NotFound: there is no such evaluator, data set or secret.
          InvalidRequest: an evaluator, the mapping or the target is not valid; `problems` says why.
        """
        body = job_body(
            evaluators,
            dataset,
            mapping=mapping,
            target=target,
            parallelism=parallelism,
            limit_samples=limit_samples,
            shard=shard,
            executor=executor,
            isolation=isolation,
            max_failures=max_failures,
            replay=replay,
            budget=budget,
            failures=failures,
            name=name,
        )
        headers = () if idempotency_key is None else (("Idempotency-Key", idempotency_key),)
        return await self._transport.send(Call("POST", "/v1/jobs", JobReport, encode(body), headers))

    @verb
    async def estimate(
        self,
        evaluators: Iterable[Evaluator | str],
        dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
        *,
        mapping: dict[str, str] | None = None,
        target: Target | None = None,
        limit_samples: int | None = None,
        shard: str | None = None,
        isolation: Isolation = Isolation.ROW,
        replay: Replay = Replay.OFF,
        budget: ModelBudget | None = None,
        rows: int = 3,
    ) -> JobEstimate:
        """Score the first `rows` rows of a job, and estimate how much the whole job will use models.

        With `replay=Replay.PREFER`, the job itself uses the models' answers again. This method raises the same errors
        as `create`.

        Args:
          evaluators: Evaluators with their code, and names of stored evaluators (`exact-match@3`).
          dataset: Name of a data set, rows, or an eval set, as in `create`.
          mapping: Which column or template fills each field of a row:
            `{"outputs": "answer", "correct_answer": "gold"}`.
          target: A model that first produces the outputs.
          limit_samples: How many rows the job scores, starting with the first.
          shard: The part of these rows that the job scores, as in `create`; the rows that are scored now are the first
            rows of the data set.
          isolation: `BATCH` lets rows share a process, for speed.
          replay: Whether to record and reuse the answers of granted models.
          budget: Limits for the whole job's use of granted models.
          rows: Number of rows to score now.
        """
        config: dict[str, Any] = {
            "isolation": isolation,
            "limit_samples": limit_samples,
            "shard": shard,
            "replay": replay,
            "budget": budget,
        }
        body = job_body(evaluators, dataset, mapping=mapping, target=target, **config)
        return await self._transport.send(
            Call("POST", f"/v1/jobs/estimate{query(rows=rows)}", JobEstimate, encode(body))
        )

    @verb
    async def all(
        self,
        *,
        status: JobStatus | None = None,
        limit: int = 100,
        before: datetime | None = None,
        search: str | None = None,
    ) -> list[JobReport]:
        """Return jobs and their evaluators' scores so far, the newest job first.

        Args:
          status: Only jobs in this status.
          limit: Maximum number of jobs.
          before: `created_at` of the last job on the previous page.
          search: Only jobs with this text in their name, data set or evaluators.
        """
        at = None if before is None else before.isoformat()
        asked = query(status=status, limit=limit, before=at, search=search)
        return await self._get(f"/v1/jobs{asked}", list[JobReport])

    @verb
    async def get(self, job_id: str) -> JobReport:
        """Return a job and its progress."""
        return await self._report(job_id)

    @verb
    async def rename(self, job_id: str, name: str | None) -> JobReport:
        """Give a job another name, and return the job.

        Args:
          job_id: Id of the job.
          name: The new name; None removes the name.
        """
        return await self._transport.send(Call("PATCH", job_path(job_id), JobReport, encode({"name": name})))

    @stream
    def watch(self, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield the job whenever it changes, until it ends. A broken connection is opened again."""
        return self._changes(job_id)

    @verb
    async def wait(self, job_id: str, *, on_progress: Callable[[JobReport], None] | None = None) -> JobReport:
        """Return the job once it is completed, failed or cancelled.

        Args:
          job_id: Id of the job.
          on_progress: Called with the job whenever it changes.
        """
        async with aclosing(self._changes(job_id)) as reports:
            async for report in reports:
                if on_progress is not None:
                    on_progress(report)
                if report.status.final:
                    return report
        raise AssertionError("unreachable")  # pragma: no cover

    @verb
    async def pause(self, job_id: str) -> JobReport:
        """Pause a job; its results so far are kept."""
        return await self._control(job_id, "pause")

    @verb
    async def resume(self, job_id: str) -> JobReport:
        """Continue a paused job where it stopped, or continue a failed job."""
        return await self._control(job_id, "resume")

    @verb
    async def cancel(self, job_id: str) -> JobReport:
        """Cancel a job, which then cannot be resumed; its results so far are kept."""
        return await self._control(job_id, "cancel")

    @verb
    async def delete(self, job_id: str, *, force: bool = False) -> None:
        """Remove a job that has ended, and its results.

        Args:
          job_id: Id of the job.
          force: Whether to remove the job even if an alert or a label queue uses it.

        Raises:
          InUse: the job has not ended, or something uses it; the message says which.
        """
        await self._transport.send(Call("DELETE", job_path(job_id) + query(force=force), NoneType))

    async def _report(self, job_id: str) -> JobReport:
        return await self._get(job_path(job_id), JobReport)

    async def _control(self, job_id: str, action: str) -> JobReport:
        return await self._transport.send(Call("POST", job_path(job_id, action), JobReport))

    async def _changes(self, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield the job whenever it changes; the last report has its final state."""
        last: JobReport | None = None
        while True:
            came = False
            with suppress(HostError):  # the request below will raise the error again, unless only the connection broke
                async with aclosing(self._events(job_id)) as reports:
                    async for report in reports:
                        came, last = True, report
                        yield report
            report = await self._report(job_id)
            if report != last:
                yield report
            if report.status.final:
                return
            last = report
            if not came:
                await self._transport.sleep(_AGAIN_S)

    async def _events(self, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield a report of the job at each event of the server, until the job or the connection ends.

        Skip the final report.
        """
        call, buffer = Call("GET", job_path(job_id, "events"), JobReport), LineBuffer()
        async with aclosing(self._transport.download(call)) as pieces:
            async for piece in pieces:
                for line in buffer.feed(piece):
                    if line.startswith(_EVENT_DATA):
                        report = decode(JobReport, line.removeprefix(_EVENT_DATA))
                        if not report.status.final:
                            yield report


def job_body(
    evaluators: Iterable[Evaluator | str],
    dataset: str | Iterable[dict[str, Json]] | dict[str, Json],
    *,
    mapping: dict[str, str] | None = None,
    target: Target | None = None,
    name: str | None = None,
    **config: Any,
) -> dict[str, Any]:
    """Return the request body that creates a job; leave out the fields of `config` that have their defaults."""
    defaults = {None, Executor.LOCAL, Replay.OFF, Failures.EXCLUDE}
    body = {
        "evaluators": [evaluator_body(one) for one in evaluators],
        "dataset": dataset if isinstance(dataset, str | dict) else {"rows": list(dataset)},
        "mapping": mapping or {},
        "config": {field: value for field, value in config.items() if value not in defaults},
        "target": _target_body(target),
    }
    return body if name is None else {**body, "name": name}


def _target_body(target: Target | None) -> dict[str, Any] | None:
    if target is None:
        return None
    key = None if target.api_key is None else {"secret": target.api_key}
    return {**asdict(target), "api_key": key, "messages": list(target.messages) or None}

"""Estimates how many model calls and tokens a job will need, and their cost, by scoring its first rows."""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.results.results import JobResults
from evaluator_host.platform.jobs.service import JobService
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.models.table import ModelTable
from evaluator_host.platform.store.workspace_limits import LimitsOfWorkspaces
from evaluator_host.types.errors import HostBusy, HostError
from evaluator_host.types.evaluator import ModelBudget, Replay
from evaluator_host.types.jobs import JobEstimate
from evaluator_host.types.json_values import decode_json
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import exact, rounded_beside
from evaluator_host.types.outcome import ModelUsage

_LONGEST_S: Final = 300.0


class JobEstimates:
    """Estimates how many model calls and tokens the jobs of a host will need, and their cost."""

    def __init__(
        self,
        jobs: JobService,
        results: JobResults,
        models: ModelTable,
        host_day: ModelBudget | None,
        limits: LimitsOfWorkspaces,
    ) -> None:
        self._jobs = jobs
        self._results = results
        self._models = models
        self._host_day = host_day or ModelBudget()
        self._limits = limits

    async def estimate_job(self, spec: JobSpec, workspace_id: str, *, rows: int) -> JobEstimate:
        """Score the first `rows` rows in a temporary job. Return the estimated use of models by the whole job.

        Raises:
          HostBusy: the first rows are not scored within five minutes.
          HostError: the job is not valid, see `JobService.create_job`.
        """
        total = await self._jobs.count_rows(spec, workspace_id)
        first = replace(spec.config, limit_samples=max(1, min(rows, total)), shard=None)
        sample = replace(spec, config=first)
        job = await self._jobs.create_job(sample, workspace_id)
        try:
            async with asyncio.timeout(_LONGEST_S), aclosing(self._jobs.watch_job(workspace_id, job.id)) as reports:
                async for report in reports:
                    job = report
            statistics = (await self._results.statistics(workspace_id, job.id)).evaluators
            asked_rows, asked_target = await self._asked_target(job.id, rows)
        except TimeoutError as error:
            raise HostBusy(
                f"scoring the first {counted(rows, 'row')} took longer than {_LONGEST_S:g} s; estimate from fewer rows"
            ) from error
        finally:
            with suppress(HostError):
                if not job.status.final:
                    await self._jobs.set_desired_state(workspace_id, job.id, DesiredState.CANCEL)
                await self._jobs.delete_job(workspace_id, job.id)
        scored = sum(one.rows for one in statistics)
        used = sum((one.usage for one in statistics if one.usage is not None), start=ModelUsage())
        # even if the sample used recorded answers, there may be none for the other rows
        asked = used if spec.config.replay is Replay.REQUIRE else used.without_replay()
        factor = total * len(statistics) / scored if scored else 0.0
        whole = asked.scaled(factor)
        over = [
            *_over("the job", spec.config.budget, whole),
            *_over("the workspace today", await self._rest(workspace_id), whole),
        ]
        failed = sum(one.failed for one in statistics)
        # if failures ended the sample, the target may have answered more rows than were scored
        target = None if spec.target is None else asked_target.scaled(total / asked_rows if asked_rows else 0.0)
        return JobEstimate(total * len(statistics), scored, failed, used, whole, tuple(over), target)

    async def _asked_target(self, job_id: str, rows: int) -> tuple[int, ModelUsage]:
        """Return how many of the first rows were sent to the job's target, and their requests, tokens and cost."""
        asked, used = 0, ModelUsage()
        async for found in self._jobs.outputs.stretches(job_id, 0, rows):
            asked += len(found)
            for one in found.values():
                log = decode_json(one.log.encode())
                tokens, requests = log.get("tokens", {}), len(log["attempts"])
                cost = log.get("cost") if requests else 0.0
                used += ModelUsage(requests, 0, tokens.get("prompt", 0), tokens.get("completion", 0), cost)
        return asked, used

    async def _rest(self, workspace_id: str) -> ModelBudget:
        """Return how much of the workspace's budget for today is left."""
        day = (await self._limits.of(workspace_id)).model_day or self._host_day
        if day == ModelBudget():
            return day
        days = await self._models.list_usage(workspace_id, since=datetime.now(UTC).date().isoformat())
        tokens = sum(one.input_tokens + one.output_tokens for one in days)
        return ModelBudget(
            requests=None if day.requests is None else max(0, day.requests - sum(one.requests for one in days)),
            tokens=None if day.tokens is None else max(0, day.tokens - tokens),
            cost=None if day.cost is None else max(0.0, day.cost - sum(one.cost for one in days)),
        )


def _over(whose: str, budget: ModelBudget, used: ModelUsage) -> list[str]:
    """Return a message for each limit of a budget that an estimate exceeds."""
    tokens = used.input_tokens + used.output_tokens
    found = []
    if budget.requests is not None and used.requests > budget.requests:
        found.append(
            f"{whose} may call models {counted(budget.requests, 'time')}, but would call them about "
            f"{counted(used.requests, 'time')}"
        )
    if budget.tokens is not None and tokens > budget.tokens:
        found.append(f"{whose} may use {counted(budget.tokens, 'token')}, but would use about {tokens}")
    if budget.cost is not None and used.cost is not None and used.cost > budget.cost:
        about = rounded_beside(used.cost, budget.cost)
        found.append(f"{whose} may cost {exact(budget.cost)}, but would cost about {about}")
    return found

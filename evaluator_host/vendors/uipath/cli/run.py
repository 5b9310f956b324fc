"""Runs an eval set for `uipath eval`: on this machine, or on a host.

On a host, the agent runs first, and then a job.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service import Service
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.platform.evaluators.evaluation_service import (
    EvaluationService,
    evaluate_in_order,
    open_evaluation_service,
    prepare,
)
from evaluator_host.platform.evaluators.evaluator_files import LoadedEvaluator
from evaluator_host.platform.terminal.command import run_async
from evaluator_host.platform.terminal.progress import JobProgressBar
from evaluator_host.platform.terminal.remote_host import host
from evaluator_host.types.errors import HostError, InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.outcome import EvaluationResult
from evaluator_host.vendors.uipath.eval_set import EvalSet
from evaluator_host.vendors.uipath.evaluation import EvalRun, run_agent, score
from evaluator_host.vendors.uipath.evaluators import ProjectEvaluator
from evaluator_host.vendors.uipath.executions import Execution
from evaluator_host.vendors.uipath.records import eval_set_rows

_ROWS_WORTH_A_SANDBOX: Final = 8  # number of rows that take about as long as the start of a sandbox
_read_result: Final = Adapter(EvaluationResult).read


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of one `uipath eval` command. Without `agent`, it scores recorded executions.

    Attributes:
      network: Whether the agent's sandbox has network access; evaluators' sandboxes never have it.
    """

    eval_set: EvalSet
    evaluators: tuple[ProjectEvaluator, ...]
    given: tuple[LoadedEvaluator, ...]
    agent: LoadedEvaluator | None
    executions: dict[str, Execution]
    notes: tuple[str, ...]
    parallelism: int | None
    network: bool = False


def run_plan(plan: Plan, settings: Settings, url: str | None, *, shown: bool) -> EvalRun:
    """Run the eval set that a plan describes; `shown` says whether to show the progress.

    Raises:
      HostError: a job on the host at the URL did not complete.
    """
    run = run_async(lambda: _run(plan, settings, url, shown=shown))
    return run if url is None else _as_job(run, plan, url, shown=shown)


async def _run(plan: Plan, settings: Settings, url: str | None, *, shown: bool) -> EvalRun:
    """Run the agent, and the evaluators too unless they will run as a job on a host."""
    run = EvalRun(plan.eval_set, plan.evaluators, plan.executions, notes=plan.notes)
    if url is not None and plan.agent is None:
        return run
    async with open_evaluation_service(settings, url) as target:
        for given in (plan.agent, *(() if url is not None else plan.given)):
            if given is not None:
                await prepare(target, given, shown=shown)
        evaluate = partial(_evaluate, target, plan.parallelism)
        if plan.agent is not None:
            run_one = partial(evaluate, network=plan.network)
            run = replace(run, executions=await run_agent(plan.agent.evaluator, plan.eval_set.items, run_one))
        if url is not None:
            return run
        return replace(run, results=await score(run, [one.evaluator for one in plan.given], evaluate))


async def _evaluate(
    target: EvaluationService,
    parallelism: int | None,
    evaluator: Evaluator,
    rows: Sequence[Row],
    *,
    network: bool = False,
) -> list[EvaluationResult]:
    if not rows:
        return []
    parallelism = parallelism or 1 + len(rows) // _ROWS_WORTH_A_SANDBOX
    if network and not isinstance(target, Service):
        raise InvalidRequest(
            "--allow-network does not work with --url: sandboxes of a host have no network; leave out "
            "--url to run on this machine"
        )
    more = {"network": True} if network else {}
    return await evaluate_in_order(target, evaluator, rows, parallelism=parallelism, **more)


def _as_job(run: EvalRun, plan: Plan, url: str, *, shown: bool) -> EvalRun:
    """Score the executions in a job that a host stores and runs."""
    rows = eval_set_rows(run.eval_set, run.executions)
    with host(url) as client:
        evaluators = [given.evaluator for given in plan.given]
        job = client.jobs.create(evaluators, rows, parallelism=plan.parallelism)
        with JobProgressBar(shown=shown) as bar:
            job = client.jobs.wait(job.id, on_progress=bar.show)
        if job.status is not JobStatus.COMPLETED:
            why = job.error.message if job.error is not None else "somebody ended it"
            raise HostError(f"the job {job.id} is {job.status}: {why}")
        positions = {label: one.id for label, one in zip(job.evaluators, run.evaluators, strict=True)}
        results = {
            (run.eval_set.items[row.index].id, positions[row.evaluator]): _read_result(row.result)
            for row in client.jobs.rows(job.id)
        }
    asked = {
        (item.id, one.id) for item in run.eval_set.items for one in run.asked(item) if run.agent_error(item) is None
    }
    return replace(run, results={key: result for key, result in results.items() if key in asked}, job=job.id)

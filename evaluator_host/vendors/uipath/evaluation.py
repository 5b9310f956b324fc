"""Runs an eval set: the agent over its test cases, then each evaluator over the executions.

Test cases are independent: if the agent fails in a test case, that case has no result and the others are not affected.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.numbers import mean_of
from evaluator_host.types.outcome import EvaluationResult, Status
from evaluator_host.vendors.uipath.agent import execution_of
from evaluator_host.vendors.uipath.eval_set import EvalItem, EvalSet
from evaluator_host.vendors.uipath.evaluators import ProjectEvaluator
from evaluator_host.vendors.uipath.executions import Execution

_AT_ONCE: Final = 4  # maximum number of evaluators that run at the same time

Evaluate: TypeAlias = Callable[[Evaluator, Sequence[Row]], Awaitable[list[EvaluationResult]]]
"""Evaluates rows in sandboxes, and returns the results in the order of the rows."""


@dataclass(frozen=True, slots=True)
class EvalRun:
    """The result of running an eval set.

    Attributes:
      executions: Executions by test case id; a test case without a recorded execution is missing.
      results: Results by test case id and evaluator id.
      notes: Messages for the user about an otherwise successful run.
      job: Id of the job that scored on a host; None for a run on this machine.
    """

    eval_set: EvalSet
    evaluators: tuple[ProjectEvaluator, ...]
    executions: dict[str, Execution]
    results: dict[tuple[str, str], EvaluationResult] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    job: str | None = None

    def agent_error(self, item: EvalItem) -> str | None:
        """Return why a test case has no execution to score, or None if the test case has an execution."""
        execution = self.executions.get(item.id)
        return "this test case has no recorded execution" if execution is None else execution.error

    def asked(self, item: EvalItem) -> list[ProjectEvaluator]:
        """Return the evaluators for which a test case has criteria."""
        return [one for one in self.evaluators if one.id in item.criteria]


@dataclass(frozen=True, slots=True)
class EvalSetScore:
    """How one evaluator scored an eval set. `mean` is the mean of the existing scores, from 0 to 1."""

    id: str
    name: str
    weight: float
    rows: int
    scored: int
    failed: int
    skipped: int
    mean: float | None


async def run_agent(program: Evaluator, items: Sequence[EvalItem], evaluate: Evaluate) -> dict[str, Execution]:
    """Run an agent on every test case, and return executions by id; a case that needs a simulation gets an error."""
    run = [item for item in items if not item.unsimulated]
    rows = [Row(inputs=item.inputs, outputs={"mocks": list(item.mocks)} if item.mocks else None) for item in run]
    results = await evaluate(program, rows) if rows else []
    executions = {item.id: execution_of(item.id, result) for item, result in zip(run, results, strict=True)}
    refused = {item.id: Execution(item.id, error=item.unsimulated) for item in items if item.unsimulated}
    return {**executions, **refused}


async def score(
    run: EvalRun, evaluators: Sequence[Evaluator], evaluate: Evaluate
) -> dict[tuple[str, str], EvaluationResult]:
    """Run each evaluator on the executions of the test cases with criteria for this evaluator.

    Args:
      run: The run, with the executions to score.
      evaluators: The code of the run's evaluators, in the order of the eval set.
      evaluate: Runs an evaluator on rows.
    """
    results: dict[tuple[str, str], EvaluationResult] = {}
    places = asyncio.Semaphore(_AT_ONCE)

    async def score_by(one: ProjectEvaluator, evaluator: Evaluator) -> None:
        items = [item for item in run.eval_set.items if one.id in item.criteria and run.agent_error(item) is None]
        async with places:
            found = await evaluate(evaluator, [_row(item, run.executions[item.id], one.id) for item in items])
        results.update({(item.id, one.id): result for item, result in zip(items, found, strict=True)})

    async with asyncio.TaskGroup() as group:
        for one, evaluator in zip(run.evaluators, evaluators, strict=True):
            group.create_task(score_by(one, evaluator))
    return results


def scores(run: EvalRun) -> list[EvalSetScore]:
    """Count each evaluator's results and compute their mean.

    Test cases in which the agent failed count only as failed.
    """
    return [_score(run, one) for one in run.evaluators]


def overall(found: Sequence[EvalSetScore]) -> float | None:
    """Return the weighted mean of the evaluators' means, or None when there is no score."""
    known = [(one.mean, one.weight) for one in found if one.mean is not None]
    total = sum(weight for _, weight in known)
    return sum(mean * weight for mean, weight in known) / total if total else None


def _score(run: EvalRun, one: ProjectEvaluator) -> EvalSetScore:
    asked = [item for item in run.eval_set.items if one.id in item.criteria]
    results = [run.results.get((item.id, one.id)) for item in asked]
    scored = [result.score for result in results if result is not None and result.score is not None]
    failed = sum(result is None or result.status is Status.FAILED for result in results)
    skipped = sum(result is not None and result.status is Status.SKIPPED for result in results)
    return EvalSetScore(
        id=one.id,
        name=one.name,
        weight=run.eval_set.weights.get(one.id, 1.0),
        rows=len(asked),
        scored=len(results) - failed - skipped,
        failed=failed,
        skipped=skipped,
        mean=mean_of(scored) if scored else None,
    )


def _row(item: EvalItem, execution: Execution, evaluator_id: str) -> Row:
    said = {
        "expected_agent_behavior": item.expected_agent_behavior,
        "simulation_instructions": item.simulation_instructions,
    }
    return Row(
        inputs=item.inputs,
        outputs=execution.output,
        trace=execution.trace,
        variables=said if any(said.values()) else None,
        criteria=item.criteria[evaluator_id],
    )

"""Checks the static types of both clients. No test runs this file: mypy reads it in `make check`."""

from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path
from typing import Any, assert_type

from evaluator_host import AsyncClient, AsyncSandboxPool, Client, EvaluationResult, Evaluator, Row, SandboxPool
from evaluator_host.types.evaluation import Batch, CheckReport
from evaluator_host.types.jobs import JobReport
from evaluator_host.types.results import JobRow
from evaluator_host.types.stored import EvaluatorReport


def sync_types(client: Client, evaluator: Evaluator) -> None:
    assert_type(client.evaluate(evaluator, inputs={"a": 1}, outputs="b"), EvaluationResult)
    assert_type(client.evaluators.all(), list[EvaluatorReport])
    assert_type(client.jobs.create([evaluator], "rows"), JobReport)
    assert_type(client.jobs.rows("id", status="failed"), Generator[JobRow, None, None])
    assert_type(client.jobs.download("id", Path("rows.csv")), int)
    client.evaluate(1)  # type: ignore[arg-type]
    client.datasets.get()  # type: ignore[call-arg]


async def async_types(client: AsyncClient, evaluator: Evaluator) -> None:
    assert_type(await client.evaluate(evaluator, inputs={"a": 1}, outputs="b"), EvaluationResult)
    assert_type(await client.evaluators.all(), list[EvaluatorReport])
    assert_type(await client.jobs.create([evaluator], "rows"), JobReport)
    assert_type(client.jobs.rows("id", status="failed"), AsyncGenerator[JobRow, None])
    assert_type(client.datasets.rows("rows"), AsyncGenerator[dict[str, Any], None])
    assert_type(await client.jobs.download("id", Path("rows.csv")), int)
    client.secrets.delete("key")  # type: ignore[unused-coroutine]
    await client.evaluate(1)  # type: ignore[arg-type]


def pool_types(pool: SandboxPool, evaluator: Evaluator) -> None:
    assert_type(pool.evaluate(evaluator, inputs={"a": 1}, outputs="b"), EvaluationResult)
    assert_type(pool.evaluate_batch(evaluator, [Row()]), Batch)
    assert_type(pool.evaluate_stream(evaluator, [Row()]), Iterator[tuple[int, EvaluationResult]])
    assert_type(pool.check(evaluator), CheckReport)
    SandboxPool(max_sandboxes="two")  # type: ignore[arg-type]
    SandboxPool(sandboxes=2)  # type: ignore[call-arg]
    pool.evaluate(1)  # type: ignore[arg-type]


async def async_pool_types(pool: AsyncSandboxPool, evaluator: Evaluator) -> None:
    assert_type(await pool.evaluate(evaluator, outputs="b"), EvaluationResult)
    assert_type(await pool.evaluate_batch(evaluator, [Row()]), Batch)
    assert_type(pool.evaluate_stream(evaluator, [Row()]), AsyncGenerator[tuple[int, EvaluationResult], None])

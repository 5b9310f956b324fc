"""Calls the target of a job for every row, and adds the answers to the rows as their outputs before scoring.

Every answer is stored before scoring begins, so that no call has to be paid for again. Only the rows for which the
model is being called, or will be called next, are in memory.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.files import RowsFolder, line_chunks
from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.platform.datasets.rendering import render_records
from evaluator_host.platform.datasets.rows import ALL, Shard
from evaluator_host.platform.jobs.output_table import Outputs
from evaluator_host.platform.jobs.queue import StoredOutput
from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.jobs.result_writer import ResultWriter
from evaluator_host.platform.jobs.row_source import RowChunk, unmarked_lines
from evaluator_host.platform.models.agents import payload_of
from evaluator_host.platform.models.endpoint import Endpoint, ModelAnswer
from evaluator_host.platform.models.prompts import messages_of
from evaluator_host.types.evaluator import Json, Row
from evaluator_host.types.jobs import Target
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Given

_AHEAD_ROWS: Final = 64
_AHEAD_BYTES: Final = 4 << 20

_Asked = tuple[int, list[Json] | EvaluationError]


@dataclass(frozen=True, slots=True)
class Prompts:
    """Renders the prompts for the rows of a job from the job's template, in limited processes."""

    folder: RowsFolder
    processes: LimitedProcesses
    job: Job
    target: Target
    shard: Shard = ALL

    async def rows(self, answered: bytearray) -> AsyncGenerator[_Asked, None]:
        """Yield `(row number, messages)` for rows without an answer. Byte n of `answered` is 1 if row n has an answer.

        Raises:
          LimitExceeded: the templates take too much processor time or memory.
          HostError: no child process can be used now, see `LimitedProcesses.call`.
        """
        lines = unmarked_lines(self.folder, self.job.dataset_id, answered, count=self.job.rows, shard=self.shard)
        chunks = line_chunks(lines, _AHEAD_ROWS, _AHEAD_BYTES)
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            texts = [line for _, line in chunk]
            render = messages_of if self.target.agent is None else payload_of
            made = await render_records(self.processes, self.job.workspace_id, texts, render, self.target)
            for (number, _), messages in zip(chunk, made, strict=True):
                yield number, _unmade(messages) if isinstance(messages, BadRow) else messages


def _unmade(reason: BadRow) -> EvaluationError:
    message = f"the prompt could not be made from the row: {reason}"
    return EvaluationError(ErrorCode.BINDING_ERROR, message, hint="correct the prompt template of the job, or the row")


@dataclass(frozen=True, slots=True)
class Generation:
    """Calls a model for several rows concurrently."""

    endpoint: Endpoint  # endpoint of the model
    writer: ResultWriter  # writer that stores the answers
    _: KW_ONLY
    # called with each row whose call finally failed, and the error; an exception that this function raises ends the
    # generation
    on_failed: Callable[[int, EvaluationError], None]

    async def run(self, rows: AsyncGenerator[_Asked, None], *, concurrency: int) -> None:
        """Call the model for every row; each of `concurrency` workers makes one call at a time."""
        turn = asyncio.Lock()
        async with aclosing(rows), asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._work(rows, turn))

    async def _work(self, rows: AsyncGenerator[_Asked, None], turn: asyncio.Lock) -> None:
        while True:
            async with turn:
                row = await anext(rows, None)
            if row is None:
                return
            number, messages = row
            if isinstance(messages, EvaluationError):
                await self._keep(number, None, error=messages, latency_ms=0.0, log={"attempts": []})
                continue
            answer = await self.endpoint.ask(messages)
            await self._keep(number, answer.output, error=_error(answer), latency_ms=answer.latency_ms, log=answer.log)

    async def _keep(
        self, number: int, output: Json, *, error: EvaluationError | None, latency_ms: float, log: dict[str, Json]
    ) -> None:
        stored = StoredOutput(
            row=number,
            output=None if error is not None else encode_json(output).decode(),
            error=None if error is None else encode_json(error).decode(),
            latency_ms=latency_ms,
            log=encode_json(log).decode(),
        )
        await self.writer.add_output(stored)
        if error is not None:
            self.on_failed(number, error)


async def answered(chunk: RowChunk, outputs: Outputs, job_id: str) -> AsyncGenerator[RowChunk, None]:
    """Yield the rows of a chunk that have an answer, in smaller chunks. The answers become the rows' outputs."""
    rows = dict(zip(chunk.numbers, chunk.rows, strict=True))
    async for found in outputs.stretches(job_id, chunk.numbers[0], chunk.numbers[-1]):
        numbers = [number for number in found if number in rows]
        if numbers:
            yield RowChunk(numbers, [_with_output(rows[number], found[number], job_id) for number in numbers])


def request_log(stored: StoredOutput) -> dict[str, Json]:
    """Return the log of a model call (attempts, tokens, times) with its latency and error, as the API shows it."""
    log: dict[str, Json] = decode_json(stored.log.encode())
    error = decode_json(stored.error.encode()) if stored.error is not None else None
    return {**log, "latency_ms": stored.latency_ms, "error": error["message"] if error else None}


def _error(answer: ModelAnswer) -> EvaluationError | None:
    if answer.error is None:
        return None
    return EvaluationError(
        ErrorCode.TARGET_FAILED,
        f"the model did not answer: {answer.error}",
        hint="the row's request log has the details",
    )


def _with_output(row: Given, stored: StoredOutput, job_id: str) -> Given:
    if not isinstance(row, Row):
        return row
    if stored.error is not None:
        error = decode_json(stored.error.encode())
        return EvaluationError(ErrorCode(error["code"]), error["message"], hint=error["hint"])
    output = decode_json((stored.output or "null").encode())
    log = decode_json(stored.log.encode())
    trace = _trace(row, output, log, stored, job_id)
    return replace(row, outputs=output, trace=trace, response=log.get("response"))


def _trace(row: Row, output: Json, log: dict[str, Json], stored: StoredOutput, job_id: str) -> dict[str, Json]:
    """Convert a model call to a trace with one span, in the format of the traces that evaluators get."""
    digest = sha256(f"{job_id} {stored.row}".encode()).hexdigest()
    unit: dict[str, Json] = {"duration": {"total": stored.latency_ms / 1000}}
    if "tokens" in log:
        unit["tokens"] = log["tokens"]
    if "cost" in log:
        unit["costs"] = {"total": log["cost"]}
    started = datetime.fromisoformat(log["started_at"])
    span = {
        "name": "chat",
        "start_time": started.isoformat(),
        "end_time": (started + timedelta(milliseconds=stored.latency_ms)).isoformat(),
        "status_code": "OK",
        "attributes": {
            "gen_ai.request.model": log["model"],
            "ag": {"data": {"inputs": row.inputs, "outputs": output}, "metrics": {"unit": unit}},
        },
        "children": [],
    }
    return {"trace_id": digest[:32], "spans": {digest[32:48]: span}}

"""Writes the results of a running job in batches: each result once, and only while this host owns the job."""

import asyncio
import dataclasses
import functools
import hashlib
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Final

from evaluator_host.platform.jobs.queue import JobQueue, SharedPart, StoredOutput, StoredResult
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.types.errors import StoreUnavailable
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import EnvironmentInfo, EvaluationResult, EvaluatorInfo, Logs, Note

FLUSH_S: Final = 0.25
_AT_ONCE: Final = 500
_WAITING: Final = 4 * _AT_ONCE  # number of waiting results at which scoring waits for the store
# each 8 KB of a result count as one result, so a write has at most 4 MB, and at most 16 MB wait
_COUNTED_BYTES: Final = 8 << 10
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0

_SELDOM: Final = {
    "label": None, "reason": None, "warnings": (), "error": None, "logs": Logs(), "native": (), "requests": (),
    "usage": None, "not_loaded": (),
}  # fmt: skip
_APART: Final = frozenset({"metrics", "evaluator", "environment"})
_OFTEN: Final = tuple(
    field.name for field in dataclasses.fields(EvaluationResult) if field.name not in _APART | _SELDOM.keys()
)
_often_set: Final = attrgetter(*_OFTEN)
_seldom_set: Final = attrgetter(*_SELDOM)
_USUAL: Final = tuple(_SELDOM.values())

_log = logging.getLogger(__name__)


class NoLongerOurs(Exception):
    """This host no longer owns the job: another host claimed the job, or the job was deleted."""


class ResultWriter:
    """Stores the results of one job.

    The caller runs `run` as a task while it adds results. When it has added all of them, it calls `flush`.

    Attributes:
      failed: Number of failed results since this writer was created.
      stored: Number of results and answers that this writer has stored.

    Args:
      owner: Name of this host's scheduler, which has claimed the job.
      on_desired: Function that is called after every write, with the desired state of the job.

    Every method that writes raises `NoLongerOurs` if another host has claimed the job, or it was deleted.
    """

    def __init__(self, queue: JobQueue, job_id: str, owner: str, *, on_desired: Callable[[DesiredState], None]) -> None:
        self._queue = queue
        self._job_id = job_id
        self._owner = owner
        self._on_desired = on_desired
        self._results: list[StoredResult] = []
        self._parts: dict[int, SharedPart] = {}  # one part for each pair of evaluator and environment
        self._notes: dict[tuple[int, int], tuple[Note, ...]] = {}  # notes by evaluator and row
        self._outputs: list[StoredOutput] = []
        self._output_bytes = self._result_bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._full = asyncio.Event()
        self._since = self._tried_at = time.monotonic()
        self._turn = asyncio.Lock()
        self._unsure = False  # whether the last write may have succeeded although it raised an error
        self.failed = self.stored = 0

    async def add_result(self, position: int, row: int, result: EvaluationResult, *, large: bool = False) -> None:
        """Add a result to the next batch. Wait while the database cannot keep up. A thread encodes a `large` result."""
        made = (position, row, result)
        stored, part = await asyncio.to_thread(stored_result, *made) if large else stored_result(*made)
        self._parts[part.id] = part
        self._results.append(stored)
        if result.warnings:
            self._notes[position, row] = result.warnings
        self._result_bytes += _size(stored)
        self.failed += result.error is not None
        if (held := max(len(self._results), self._result_bytes // _COUNTED_BYTES)) >= _AT_ONCE:
            await self._wait_for_room(held)

    async def add_output(self, output: StoredOutput) -> None:
        """Add a model's answer to the next batch. Wait while the database cannot keep up."""
        self._outputs.append(output)
        self._output_bytes += _output_size(output)
        await self._wait_for_room(max(len(self._outputs), self._output_bytes // _COUNTED_BYTES))

    async def write_together(self, position: int, result: EvaluationResult) -> None:
        """Store an evaluator's score over all rows together.

        Raises:
          StoreUnavailable: the store does not answer.
        """
        kept = encode_json(result).decode()
        self._apply(await self._queue.save_together(self._job_id, self._owner, position, kept))

    async def run(self) -> None:
        """Write batches and heartbeats until cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), FLUSH_S)
            self._full.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write everything added so far, retrying until the database accepts it."""
        # the write runs in a task that nobody cancels, because nobody would know whether a cancelled write succeeded
        task = asyncio.create_task(self._flush())
        # asyncio would log the exception if nobody waited for the task and read it
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(task)

    async def _flush(self) -> None:
        async with self._turn:
            pause_s = _PAUSE_S
            while True:
                try:
                    await self._write()
                except StoreUnavailable as error:
                    _log.warning("job %s waits for the database: %s", self._job_id, error.detail)
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
                    self._unsure = True
                else:
                    return

    async def _write(self) -> None:
        if self._unsure:
            await self._drop_stored()
        outputs, results = self._outputs[:], self._results[:]
        self._tried_at = now = time.monotonic()
        running_s = now - self._since
        if outputs:
            self._apply(await self._queue.save_outputs(self._job_id, self._owner, outputs))
            del self._outputs[: len(outputs)]
            self.stored += len(outputs)
            self._output_bytes = sum(map(_output_size, self._outputs))
        parts = [self._parts[number] for number in {one.shared for one in results if one.shared is not None}]
        notes = {key: self._notes[key] for one in results if (key := (one.position, one.row)) in self._notes}
        save = self._queue.save(self._job_id, self._owner, results, parts=parts, notes=notes, running_s=running_s)
        self._apply(await save)
        del self._results[: len(results)]
        for key in notes:
            del self._notes[key]
        self._result_bytes = sum(map(_size, self._results))
        self.stored += len(results)
        self._since = now
        self._room.set()

    async def _drop_stored(self) -> None:
        """Drop waiting results that are already stored: the connection may have broken just after they were written."""
        answered = await self._queue.answered_rows(self._job_id)
        self._outputs = [one for one in self._outputs if not _marked(answered, one.row)]
        waiting_before = len(self._results)
        for position in {one.position for one in self._results}:
            done = await self._queue.done_rows(self._job_id, position)
            self._results = [one for one in self._results if one.position != position or not _marked(done, one.row)]
        # the write that stored these results also stored their running time
        if (stored := waiting_before - len(self._results)) > 0:
            self.stored += stored
            self._since = self._tried_at
        waiting = {(one.position, one.row) for one in self._results}
        self._notes = {key: found for key, found in self._notes.items() if key in waiting}
        self._unsure = False

    def _apply(self, desired: DesiredState | None) -> None:
        if desired is None:
            raise NoLongerOurs(self._job_id)
        self._on_desired(desired)

    async def _wait_for_room(self, held: int) -> None:
        if held >= _AT_ONCE:
            self._full.set()
        if held >= _WAITING:
            self._room.clear()
            await self._room.wait()


def stored_result(position: int, row: int, result: EvaluationResult) -> tuple[StoredResult, SharedPart]:
    """Convert a result to the form in the database. Leave out the fields that it shares with other results.

    The shared part contains the evaluator, the environment, and each rarely set field (`_SELDOM`) with its usual value.
    """
    part = _shared_part(result.evaluator, result.environment)
    own = dict(zip(_OFTEN, _often_set(result), strict=True))
    if (seldom := _seldom_set(result)) != _USUAL:
        own |= {name: value for name, value in zip(_SELDOM, seldom, strict=True) if value != _SELDOM[name]}
    stored = StoredResult(
        position=position,
        row=row,
        status=result.status.value,
        score=_finite(result.score),
        passed=result.passed,
        error_code=result.error.code.value if result.error else None,
        run_ms=result.timing_ms.run,
        metrics=encode_json(result.metrics).decode(),
        result=encode_json(own).decode(),
        shared=part.id,
    )
    return stored, part


@functools.lru_cache(64)
def _shared_part(evaluator: EvaluatorInfo, environment: EnvironmentInfo) -> SharedPart:
    content = encode_json({**_SELDOM, "evaluator": evaluator, "environment": environment})
    return SharedPart(int.from_bytes(hashlib.sha256(content).digest()[:6]), content.decode())


def _size(result: StoredResult) -> int:
    return len(result.result) + len(result.metrics)


def _output_size(output: StoredOutput) -> int:
    return len(output.output or "") + len(output.log)


def _marked(marks: bytearray, row: int) -> bool:
    return row < len(marks) and bool(marks[row])


def _finite(score: float | None) -> float | None:
    """Return a score for its column; None if it does not fit a float. The result's JSON keeps large integers exact."""
    try:
        return None if score is None else float(score)
    except OverflowError:
        return None

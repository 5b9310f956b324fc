"""Classes that evaluate the rows of a job: on this host, or on the nodes of a Ray cluster."""

import math
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final, Protocol

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.platform.jobs.nodes import ROWS, NodeUse, RayNodes
from evaluator_host.platform.jobs.queue import JobQueue
from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.jobs.row_source import CHUNK_ROWS, RowChunk
from evaluator_host.platform.jobs.spec import nodes_of
from evaluator_host.types.errors import StoreUnavailable
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import EvaluationResult

_NODES_EVERY_S: Final = 1.0  # seconds between two updates of the stored list of nodes that a job uses


class JobExecutor(Protocol):
    """Interface for evaluating the rows of one job."""

    @property
    def chunk_rows(self) -> int:
        """Maximum number of rows in a chunk."""
        ...

    @property
    def chunks_at_once(self) -> int:
        """Number of an evaluator's chunks to evaluate at the same time."""
        ...

    def evaluate(
        self, evaluator: Evaluator, chunk: RowChunk, caller: Caller, *, parallelism: int
    ) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Evaluate a chunk. Yield `(number of the row, result)`, in any order.

        Raises:
          HostError: the remaining rows cannot be evaluated now, or cannot be evaluated at all.
        """
        ...

    async def close(self) -> None:
        """Store everything that is not stored yet. The host calls this method before it releases the job."""
        ...


class LocalExecutor:
    """Evaluates rows in the sandboxes of this host."""

    chunk_rows = CHUNK_ROWS
    chunks_at_once = 1

    def __init__(self, service: Service, isolation: Isolation) -> None:
        self._service = service
        self._isolation = isolation

    def evaluate(
        self, evaluator: Evaluator, chunk: RowChunk, caller: Caller, *, parallelism: int
    ) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Evaluate a chunk in at most `parallelism` sandboxes. Yield `(number of the row, result)`, in any order."""
        return self._service.evaluate_rows(
            evaluator,
            chunk.rows,
            numbers=chunk.numbers,
            isolation=self._isolation,
            parallelism=parallelism,
            caller=caller,
        )

    async def close(self) -> None:
        """Do nothing, because this executor has nothing to store."""


class RayExecutor:
    """Evaluates chunks on the nodes of a Ray cluster, and stores the number of rows that each node evaluated."""

    def __init__(self, nodes: RayNodes, isolation: Isolation, *, job: Job, queue: JobQueue, owner: str) -> None:
        self.chunk_rows = ROWS[isolation]
        self._nodes = nodes
        self._isolation = isolation
        self._job_id = job.id
        self._queue = queue
        self._owner = owner
        self._use = NodeUse({one.name: one for one in nodes_of(job)})
        self._saved = -math.inf  # when the nodes were last stored, by `time.monotonic`

    @property
    def chunks_at_once(self) -> int:
        """Number of chunks that are enough to keep all nodes busy."""
        return self._nodes.at_once

    async def evaluate(
        self,
        evaluator: Evaluator,
        chunk: RowChunk,
        caller: Caller,
        *,
        parallelism: int,  # noqa: ARG002 - a node uses all its sandboxes
    ) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Send a chunk to a node of the cluster, and yield `(number of the row, result)` for each of its rows."""
        try:
            results = await self._nodes.evaluate(
                evaluator, chunk.rows, self._use, isolation=self._isolation, lock=caller.lock
            )
        finally:
            if time.monotonic() - self._saved >= _NODES_EVERY_S:
                await self._save()
        for numbered in zip(chunk.numbers, results, strict=True):
            yield numbered

    async def close(self) -> None:
        """Store the number of rows that each node evaluated."""
        if self._use.nodes:
            await self._save()

    async def _save(self) -> None:
        self._saved = time.monotonic()
        with suppress(StoreUnavailable):
            nodes = encode_json(list(self._use.nodes.values())).decode()
            await self._queue.save_nodes(self._job_id, self._owner, nodes)

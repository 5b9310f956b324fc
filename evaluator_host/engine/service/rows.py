"""Scores many rows of one evaluator on several sandboxes, in constant memory."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from typing import Final

from evaluator_host.engine.service.calls import Callee, CallOutcome, RowCalls, finish
from evaluator_host.engine.service.calls_first import CallsFirst
from evaluator_host.types.evaluator import Isolation
from evaluator_host.types.outcome import EvaluationResult, Given

BUFFERED: Final = 256  # maximum number of results that may wait for a slow consumer
BUFFERED_BYTES: Final = 16 << 20  # maximum memory in bytes that these results may take


class RowStream:
    """One evaluation of many rows. Iterate over it once; it yields `(index, result, size)` as rows finish.

    `size` is roughly how many bytes of memory the result takes.
    """

    def __init__(
        self,
        callee: Callee,
        rows: Iterable[Given] | AsyncIterable[Given],  # the rows; they may be anything that `RowCalls` accepts
        *,
        numbers: Iterable[int] | None = None,  # numbers of the rows; None to number them by position
        isolation: Isolation,  # `batch` lets the rows that one sandbox gets share a process or context
        parallelism: int,  # maximum number of sandboxes to use at once
        calls: CallsFirst | None = None,  # single calls that go before the rows of a batch
    ) -> None:
        self._parallelism = parallelism
        self._arriving = rows if isinstance(rows, AsyncIterable) else None
        self._calls = RowCalls(
            callee,
            () if isinstance(rows, AsyncIterable) else rows,
            self._put,
            arrive=self._arriving is not None,
            numbers=numbers,
            isolation=isolation,
            calls=calls,
        )
        self._results: asyncio.Queue[tuple[int, EvaluationResult, int] | None] = asyncio.Queue(BUFFERED)
        self._waiting_bytes = 0  # total size of the results in that queue, in bytes
        self._room = asyncio.Event()
        self._abandoned = False  # whether the consumer has stopped

    async def __aiter__(self) -> AsyncGenerator[tuple[int, EvaluationResult, int], None]:
        """Yield results until every row has a result.

        Raises:
          Busy: too many calls are already waiting.
          SandboxUnavailable: no sandbox can be started.
        """
        producer = asyncio.create_task(self._produce())
        try:
            while (item := await self._results.get()) is not None:
                self._waiting_bytes -= item[2]
                self._room.set()
                yield item
                await self._calls.give_way()
            await producer
        finally:
            self._abandoned = True
            producer.cancel()
            await asyncio.wait([producer])

    async def _produce(self) -> None:
        workers = {asyncio.create_task(self._calls.work()) for _ in range(self._parallelism)}
        if self._arriving is not None:
            workers.add(asyncio.create_task(self._calls.arrive(self._arriving)))
        try:
            pending = workers
            while pending and not self._calls.complete:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for worker in done:
                    worker.result()
        finally:
            for task in workers:
                task.cancel()
            await asyncio.wait(workers)
            await self._calls.close()
            if not self._abandoned:
                await self._results.put(None)

    async def _put(self, answer: CallOutcome) -> None:
        scored, size = await finish(answer), answer.size
        while self._waiting_bytes >= BUFFERED_BYTES:
            self._room.clear()
            await self._room.wait()
        self._waiting_bytes += size
        await self._results.put((answer.index, scored, size))

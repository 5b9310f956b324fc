"""`SandboxPool` and `AsyncSandboxPool`: evaluate rows in sandboxes of this process; no host is needed.

They have the methods of `Client` and `AsyncClient`, so that a program can use either without changes.
"""

import asyncio
import os
import queue
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, aclosing
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.summaries import summarise
from evaluator_host.platform.datasets.batch_outputs import Outputs, require_outputs
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluation import Batch, CheckReport
from evaluator_host.types.evaluator import Evaluator, Isolation, Json, Row
from evaluator_host.types.json_values import InvalidJson, require_finite
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult, Given

P = ParamSpec("P")
T = TypeVar("T")

_AHEAD: Final = 256  # maximum number of rows that wait for a sandbox, and of results that wait for a reader
_PART: Final = 64  # number of rows or results that one thread passes to another at a time
_END: Final = object()


class PoolOptions(TypedDict, total=False):
    """The keyword arguments of `AsyncSandboxPool` and `SandboxPool`."""

    max_sandboxes: int | None
    memory_mb: int | None
    data_dir: Path | str | None
    sandbox: SandboxChoice | str | None
    settings: Settings | None


class AsyncSandboxPool:
    """Evaluates rows in sandboxes of this process. Only the event loop that opens a pool can use it.

    Example:
      async with AsyncSandboxPool(max_sandboxes=4) as pool:
          result = await pool.evaluate(Evaluator(code), inputs={"question": "…"}, outputs="Paris")

    Args:
      max_sandboxes: Maximum number of sandboxes at once, also for a single evaluator; None for one on each processor
        that this process may use.
      memory_mb: Maximum sum of the memory limits of these sandboxes; None for half of the memory that this process may
        use. If several pools run on one machine, divide the memory between them.
      data_dir: Folder for tools and installed packages, which several processes of one machine may share.
      sandbox: `auto`, `bubblewrap`, `docker` or `none`.
      settings: Settings of a host; None to read them from `EVALUATOR_HOST_…`. The other arguments override them.

    Raises (on entering):
      SandboxUnavailable: no backend works on this machine; the message says what to install.
    """

    def __init__(
        self,
        *,
        max_sandboxes: int | None = None,
        memory_mb: int | None = None,
        data_dir: Path | str | None = None,
        sandbox: SandboxChoice | str | None = None,
        settings: Settings | None = None,
    ) -> None:
        most = max_sandboxes or len(os.sched_getaffinity(0))
        changes: dict[str, Any] = {
            "max_sandboxes": most,
            "max_sandboxes_per_evaluator": most,
            "idle_sandboxes": 0,
            "sandbox_memory_mb": memory_mb,
            "data_dir": data_dir,
            "sandbox": sandbox,
        }
        given = {name: value for name, value in changes.items() if value is not None}
        before = settings.model_dump(exclude_unset=True) if settings is not None else {}
        self.settings = Settings(**{**before, **given})
        self._stack = AsyncExitStack()
        self._service: Service | None = None

    async def open(self) -> None:
        """Choose the sandbox backend, and test it. `async with` calls this method.

        Raises:
          SandboxUnavailable: no backend works on this machine.
        """
        self._service = await self._stack.enter_async_context(open_engine(self.settings))

    async def close(self) -> None:
        """End all sandboxes. Calls that are still running fail."""
        self._service = None
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def evaluate(
        self,
        evaluator: Evaluator,
        *,
        inputs: dict[str, Json] | None = None,
        outputs: Json = None,
        trace: dict[str, Json] | None = None,
        variables: dict[str, Json] | None = None,
        criteria: Json = None,
        messages: list[dict[str, Json]] | None = None,
    ) -> EvaluationResult:
        """Evaluate one row. A failure of the evaluator's code is a result, not an exception.

        Args:
          evaluator: The code and its settings.
          inputs: Columns of the test case, keyed by name: `{"question": …, "correct_answer": …}`.
          outputs: The output to score, any JSON value.
          trace: The application's trace, `{"spans": {id: {"name", "attributes", "children"}}}`.
          variables: Arguments by name, for code that defines `main` instead of `evaluate`.
          criteria: Evaluation criteria of the test case, for evaluators of platforms that have such criteria.
          messages: A conversation, `[{"role": …, "content": …}]`.

        Raises:
          InvalidRequest: the evaluator is not valid, or the row has NaN or an infinity.
          PackagesFailed: the evaluator's packages cannot be installed.
          SandboxUnavailable: no sandbox can be started.
        """
        row = Row(inputs or {}, outputs, trace, variables, criteria, messages=messages)
        _require_finite(row.fields)
        return await self._open_service.evaluate(evaluator, row)

    async def evaluate_batch(
        self,
        evaluator: Evaluator,
        rows: Iterable[Row],
        *,
        isolation: Isolation = Isolation.ROW,
        outputs: Outputs = None,
    ) -> Batch:
        """Evaluate rows. The results keep the order of the rows, and are in memory together: at most 256 MB.

        The mean of the summary is over `mean_rows`: rows that failed or have no score are left out.

        Args:
          evaluator: The code and its settings.
          rows: Any number of rows. If they do not fit into memory, use `evaluate_stream`.
          isolation: `BATCH` lets rows share a process, for speed.
          outputs: `"none"` says that the rows intentionally have no outputs.

        Raises:
          InvalidRequest: a row has NaN or an infinity; or the code reads outputs, but several rows were given and all
            lack them.
          TooLarge: the results take too much memory.
          HostError: the evaluator, its packages or a sandbox fail, as in `evaluate`.
        """
        started, service, drawn = time.perf_counter(), self._open_service, list(rows)
        _require_finite({"rows": [row.fields for row in drawn]})
        if outputs is None:
            await require_outputs(service, evaluator, drawn)
        results = await service.evaluate_batch(evaluator, drawn, isolation=isolation) if drawn else []
        seconds = time.perf_counter() - started
        together = await service.evaluate_together(evaluator, drawn, results)
        return Batch(tuple(results), summarise(results, seconds=seconds, together=together), together)

    async def evaluate_stream(
        self,
        evaluator: Evaluator,
        rows: AsyncIterable[Given] | Iterable[Given],
        *,
        isolation: Isolation = Isolation.ROW,
        parallelism: int | None = None,
        lock: str | None = None,
    ) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Evaluate rows as they come. Yield `(number of the row from 0, result)` as rows finish, in no fixed order.

        The stream may be endless. At most a few hundred rows are read ahead of the results that the caller has read. A
        row with NaN or an infinity fails.

        Args:
          evaluator: The code and its settings.
          rows: An iterable that does not block, or an asynchronous iterable.
          isolation: `BATCH` lets rows share a process, for speed.
          parallelism: Number of sandboxes to use at once; None for all of the pool.
          lock: Lock of the evaluator's packages, as a host exports it; None to resolve their pins here.

        Raises:
          HostError: the evaluator, its packages or a sandbox fail, as in `evaluate`.
        """
        stream = self._open_service.evaluate_rows(
            evaluator, _finite(rows), isolation=isolation, parallelism=parallelism, caller=Caller(lock=lock)
        )
        async with aclosing(stream) as results:
            async for numbered in results:
                yield numbered

    async def check(self, evaluator: Evaluator) -> CheckReport:
        """Load an evaluator in a sandbox without running a row.

        Raises:
          HostError: the evaluator, its packages or a sandbox fail, as in `evaluate`.
        """
        return await self._open_service.check(evaluator)

    @property
    def _open_service(self) -> Service:
        if self._service is None:
            raise InvalidRequest("the pool is not open: use it inside `with`, or call `open()` first")
        return self._service


def _require_finite(given: dict[str, Any]) -> None:
    try:
        require_finite(given)
    except InvalidJson as error:
        raise InvalidRequest(str(error)) from error


def _finite(rows: AsyncIterable[Given] | Iterable[Given]) -> AsyncIterable[Given] | Iterable[Given]:
    """Return the rows. An error replaces each row with NaN or an infinity, because JSON would turn these into null."""
    if isinstance(rows, AsyncIterable):
        return (_or_error(row) async for row in rows)
    return map(_or_error, rows)


def _or_error(row: Given) -> Given:
    try:
        if isinstance(row, Row):
            require_finite(row.fields)
    except InvalidJson as error:
        return EvaluationError(ErrorCode.BINDING_ERROR, f"the row cannot be passed to the evaluator: {error}")
    return row


def _blocking(
    method: Callable[Concatenate[AsyncSandboxPool, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SandboxPool", P], T]:
    """Return a method of `SandboxPool` that calls the same method of its `AsyncSandboxPool` and waits for it."""

    @wraps(method)
    def wait(self: "SandboxPool", *args: P.args, **kwargs: P.kwargs) -> T:
        return self._await(method(self._pool, *args, **kwargs))

    return cast("Callable[Concatenate[SandboxPool, P], T]", wait)


class SandboxPool:
    """Evaluates rows in sandboxes of this process.

    It has the methods of `AsyncSandboxPool`, but they block, and any thread may call them.

    Example:
      with SandboxPool(max_sandboxes=4) as pool:
          batch = pool.evaluate_batch(Evaluator(code), [Row(outputs="Paris")])

    Args:
      options: Arguments of `AsyncSandboxPool`, by name.
    """

    def __init__(self, **options: Unpack[PoolOptions]) -> None:
        self._pool = AsyncSandboxPool(**options)
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None

    @property
    def settings(self) -> Settings:
        return self._pool.settings

    def open(self) -> None:
        """Choose the sandbox backend, and test it. `with` calls this method.

        Raises:
          SandboxUnavailable: no backend works on this machine.
        """
        self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox pool", daemon=True)
        self._thread.start()
        try:
            self._await(self._pool.open())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """End all sandboxes. Calls from other threads that are still running fail."""
        if self._thread is not None:
            try:
                self._await(self._pool.close())
            finally:
                self._stop()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    evaluate = _blocking(AsyncSandboxPool.evaluate)
    check = _blocking(AsyncSandboxPool.check)

    def evaluate_batch(
        self,
        evaluator: Evaluator,
        rows: Iterable[Row],
        *,
        isolation: Isolation = Isolation.ROW,
        outputs: Outputs = None,
    ) -> Batch:
        """Evaluate rows as `AsyncSandboxPool.evaluate_batch` does. Reading `rows` may block."""
        return self._await(self._pool.evaluate_batch(evaluator, list(rows), isolation=isolation, outputs=outputs))

    def evaluate_stream(
        self,
        evaluator: Evaluator,
        rows: Iterable[Given],
        *,
        isolation: Isolation = Isolation.ROW,
        parallelism: int | None = None,
        lock: str | None = None,
    ) -> Iterator[tuple[int, EvaluationResult]]:
        """Evaluate rows as they come. Yields `(number of the row from 0, result)` as rows finish, in no fixed order.

        The stream may be endless, and reading `rows` may block. A thread reads them, at most a few hundred ahead of the
        results that the caller has read.

        Args:
          evaluator: The code and its settings.
          rows: Any iterable.
          isolation: `BATCH` lets rows share a process, for speed.
          parallelism: Number of sandboxes to use at once; None for all of the pool.
          lock: As in `AsyncSandboxPool.evaluate_stream`.

        Raises:
          HostError: the evaluator, its packages or a sandbox fail, as in `evaluate`.
        """
        source = _RowsOfThread(rows, self._loop)
        stream = self._pool.evaluate_stream(evaluator, source, isolation=isolation, parallelism=parallelism, lock=lock)
        results = _ResultsForThread(stream)
        running = asyncio.run_coroutine_threadsafe(results.run(), self._loop)
        try:
            yield from results
            running.result()
        finally:
            running.cancel()
            source.stop()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        if self._thread is None or not self._thread.is_alive():
            work.close()
            raise InvalidRequest("the pool is not open: use it inside `with`, or call `open()` first")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:  # KeyboardInterrupt, too, must end the work in the other thread
            future.cancel()
            raise

    def _stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()


class _RowsOfThread:
    """An asynchronous iterable of rows. A separate thread reads them from an iterable that may block."""

    def __init__(self, rows: Iterable[Given], loop: asyncio.AbstractEventLoop) -> None:
        self._rows = rows
        self._loop = loop
        self._drawn: asyncio.Queue[Any] = asyncio.Queue()
        self._room = threading.Semaphore(_AHEAD)
        self._stopped = False

    def stop(self) -> None:
        """Read no more rows. A row that the thread is waiting for is thrown away."""
        self._stopped = True
        self._room.release()

    async def __aiter__(self) -> AsyncIterator[Given]:
        threading.Thread(target=self._draw, name="rows of a sandbox pool", daemon=True).start()
        while (item := await self._drawn.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            self._room.release()
            yield item

    def _draw(self) -> None:
        try:
            for row in self._rows:
                self._room.acquire()
                if self._stopped:
                    return
                self._send(row)
        except Exception as error:  # noqa: BLE001 - raised to the caller
            self._send(error)
        else:
            self._send(_END)

    def _send(self, item: Any) -> None:
        self._loop.call_soon_threadsafe(self._drawn.put_nowait, item)


class _ResultsForThread:
    """The results of a stream, for another thread to read in parts. If that thread is slow, the stream waits."""

    def __init__(self, stream: AsyncGenerator[tuple[int, EvaluationResult], None]) -> None:
        self._stream = stream
        self._read: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._waiting = 0
        self._room: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        """Pass results to the other thread until the stream ends."""
        self._loop, self._room = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with aclosing(self._stream) as results:
                async for numbered in results:
                    self._waiting += 1
                    self._read.put(numbered)
                    while self._waiting >= _AHEAD:
                        self._room.clear()
                        await self._room.wait()
        finally:
            self._read.put(_END)

    def __iter__(self) -> Iterator[tuple[int, EvaluationResult]]:
        taken = 0
        while (item := self._read.get()) is not _END:
            yield item
            taken += 1
            if taken == _PART and self._loop is not None:
                self._loop.call_soon_threadsafe(self._took, taken)
                taken = 0

    def _took(self, number: int) -> None:
        self._waiting -= number
        if self._room is not None:
            self._room.set()

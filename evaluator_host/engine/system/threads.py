"""The threads of `asyncio.to_thread`, which workspaces share: no workspace can occupy more than half of them.

The code that serves a caller says once for which workspace it works (`work_for`). Tasks that it starts work for the
same workspace.
"""

import asyncio
import os
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_Made = TypeVar("_Made")

_THREADS: Final = min(32, (os.cpu_count() or 1) + 4)  # as many as asyncio has by default
# workspace of the present task; empty for work of the host itself
_workspace: Final[ContextVar[str]] = ContextVar("workspace", default="")


def work_for(workspace: str) -> None:
    """From now on, the present task and the tasks that it starts work for this workspace."""
    _workspace.set(workspace)


def worked_for() -> str:
    """Return the workspace for which the present task works; an empty string for work of the host itself."""
    return _workspace.get()


def share_threads() -> None:
    """Let workspaces share the threads of the running event loop."""
    asyncio.get_running_loop().set_default_executor(SharedThreads(_THREADS))


class SharedThreads(ThreadPoolExecutor):
    """Threads in which workspaces take turns.

    Args:
      threads: Maximum number of threads; one workspace may use half of them, and the host itself all of them.
    """

    def __init__(self, threads: int) -> None:
        super().__init__(threads, thread_name_prefix="shared")
        self._each = max(1, threads // 2)
        self._changing = threading.Lock()
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()

    def submit(self, work: Callable[_P, _Made], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_Made]":
        """Run a function in a thread once the workspace of the present task has a turn."""
        future: Future[_Made] = Future()
        with self._changing:
            self._waiting.setdefault(_workspace.get(), deque()).append(partial(_run, future, work, *args, **kwargs))
        super().submit(self._work)
        return future

    def _work(self) -> None:
        """Do the waiting work of one workspace after another, until no workspace may start more."""
        while (taken := self._take()) is not None:
            workspace, run = taken
            try:
                run()
            finally:
                del run, taken  # free the data of this work before the next work runs
                with self._changing:
                    self._running[workspace] -= 1
                    if not self._running[workspace]:
                        del self._running[workspace]

    def _take(self) -> tuple[str, Callable[[], Any]] | None:
        with self._changing:
            for workspace, runs in self._waiting.items():
                if not workspace or self._running[workspace] < self._each:
                    run = runs.popleft()
                    self._running[workspace] += 1
                    del self._waiting[workspace]
                    if runs:  # move the workspace to the end of the queue
                        self._waiting[workspace] = runs
                    return workspace, run
        return None


def _run(future: "Future[Any]", work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets every error
        future.set_exception(error)
        # avoid a reference cycle: the error refers to this frame, which would refer to the future with the error
        del future

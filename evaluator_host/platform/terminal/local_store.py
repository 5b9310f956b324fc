"""Opens the database of a host for commands that run beside it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.store.opening import open_store
from evaluator_host.platform.terminal.command import run_async

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

T = TypeVar("T")


def with_store(settings: Settings, work: "Callable[[Store], Awaitable[T]]") -> T:
    """Open the database that these settings name, and run `work` with it."""

    async def run() -> T:
        async with open_store(settings) as store:
            return await work(store)

    return run_async(run)

"""Counts installations that began and connections that were made, because no report contains these numbers."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

_EVERY_S = 0.005  # seconds between two counts; an installation takes a hundred times as long


@contextlib.contextmanager
def counted_builds(data_dir: Path) -> Iterator[set[str]]:
    """Yield a set of names. Whenever a process with this data directory begins an installation, the set gets a new
    name.
    """
    staging = data_dir / "environments" / "build" / "staging"
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY_S):
            with contextlib.suppress(FileNotFoundError):
                seen.update(path.name for path in staging.iterdir())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


class DeadIndex:
    """An index that never answers: its address, and the number of connections to it (`asked`)."""

    def __init__(self) -> None:
        self.asked = 0
        self.url = ""

    async def refuse(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        writer.close()


@contextlib.asynccontextmanager
async def dead_index() -> AsyncIterator[DeadIndex]:
    """Open an index that never answers; it can also stand in for a registry or a proxy."""
    index = DeadIndex()
    async with await asyncio.start_server(index.refuse, "127.0.0.1", 0) as server:
        index.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        yield index

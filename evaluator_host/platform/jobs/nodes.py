"""Evaluates rows of jobs on the nodes of a Ray cluster. A separate process is the driver of the cluster.

Ray ends a driver when its raylet ends, so the driver must not be this process. The driver receives chunks of rows and
returns their results over its standard streams, as pickled frames: a length of eight bytes, then a tuple. The driver
needs no key and no database. If it ends before it has returned a chunk's results, the chunk is sent again.
"""

import asyncio
import itertools
import logging
import os
import pickle
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evaluator_host.engine.system.processes import start_process
from evaluator_host.types.errors import HostBusy, HostError, Misconfigured, PackagesFailed, SandboxUnavailable
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobNode, NodeState
from evaluator_host.types.outcome import EvaluationResult, Given

LENGTH: Final = struct.Struct("<Q")
_DRIVER: Final = "from evaluator_host.ray.driver import main; main()"
# prefixes of environment variables that may be secret; the driver gets none of them
_OURS: Final = ("EVALUATOR_HOST_", "DATABASE_URL")
ROWS: Final = {Isolation.ROW: 250, Isolation.BATCH: 2000}  # rows in a chunk; they keep a node busy for about 0.25 s
_IDLE_S: Final = 30.0  # seconds without a chunk after which the driver ends

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class NodeUse:
    """The nodes that one job has used: their states and row counts, keyed by node name."""

    nodes: dict[str, JobNode] = field(default_factory=dict)

    def add_rows(self, name: str, rows: int) -> None:
        """Add rows to the count of the node that has evaluated them."""
        known = self.nodes.get(name) or JobNode(name)
        self.nodes[name] = replace(known, rows=known.rows + rows)

    def note(self, found: Sequence[tuple[str, str, str | None]]) -> None:
        """Store the state of each node. `found` contains a tuple `(name, state, reason or None)` for each node."""
        for name, state, reason in found:
            known = self.nodes.get(name) or JobNode(name)
            self.nodes[name] = replace(known, state=NodeState(state), reason=reason)


class RayNodes:
    """The nodes of one Ray cluster. Use it in one event loop only. The first chunk starts the driver.

    Args:
      address: Address of the cluster: `10.0.0.1:6379`, or `auto` for the cluster on this machine.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.Future[list[EvaluationResult]], NodeUse]] = {}
        self._found: list[tuple[str, str, str | None]] = []
        self._idle: asyncio.TimerHandle | None = None

    @property
    def at_once(self) -> int:
        """How many chunks to send at the same time, to keep all ready nodes busy."""
        return 2 + 2 * sum(state == NodeState.READY for _, state, _ in self._found)

    async def evaluate(
        self, evaluator: Evaluator, rows: Sequence[Given], use: NodeUse, *, isolation: Isolation, lock: str | None
    ) -> list[EvaluationResult]:
        """Evaluate a chunk of rows on one node, and return the results in the order of the rows.

        Nodes and their row counts are added to `use`. `lock` is the lock of the evaluator's packages as JSON, or None.

        Raises:
          HostBusy: the driver ended, or no node can evaluate at the moment.
          PackagesFailed: no node can install the evaluator's packages.
          Misconfigured: the cluster cannot be used as it is configured.
        """
        process = await self._driver()
        number, done = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = (done, use)
        use.note(self._found)
        try:
            frame = await asyncio.to_thread(_frame, ("chunk", number, evaluator, list(rows), isolation.value, lock))
            assert process.stdin is not None  # noqa: S101 - a pipe
            with suppress(ConnectionError):  # raised if the driver has ended; awaiting `done` then raises an error, too
                process.stdin.write(frame)
                await process.stdin.drain()
            found: list[EvaluationResult] = await done
        except asyncio.CancelledError:
            self._send(("drop", number))
            raise
        finally:
            del self._waiting[number]
            self._rest()
        return found

    async def close(self) -> None:
        """End the driver, and with it the sandboxes on all nodes."""
        process, self._process = self._process, None
        if self._idle is not None:
            self._idle.cancel()
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _driver(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._idle is not None:
                self._idle.cancel()
            if self._process is None or self._process.returncode is not None:
                self._found = []
                self._process = await start_process(
                    *(sys.executable, "-P", "-c", _DRIVER, self._address),
                    env={name: text for name, text in os.environ.items() if not name.startswith(_OURS)},
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=1 << 20,
                )
                self._reading = asyncio.create_task(self._read(self._process))
            return self._process

    def _rest(self) -> None:
        """If no chunk is being evaluated, end the driver after `_IDLE_S` seconds, unless a chunk is sent before."""
        if self._idle is not None:
            self._idle.cancel()
        if not self._waiting:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(_IDLE_S, lambda: self._send(("end",)))

    def _send(self, message: tuple[Any, ...]) -> None:
        process = self._process
        if process is not None and process.returncode is None and process.stdin is not None:
            process.stdin.write(_frame(message))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Handle the driver's messages until it ends; then fail every waiting chunk."""
        assert process.stdout is not None  # noqa: S101 - a pipe
        ended = (HostBusy.code, "the driver of the Ray cluster ended")
        try:
            while True:
                size = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))[0]
                frame = await process.stdout.readexactly(size)
                kind, *rest = await asyncio.to_thread(pickle.loads, frame)
                if kind == "ended":
                    ended = rest[0], rest[1]
                self._take(kind, rest)
        except (asyncio.IncompleteReadError, ConnectionError):
            _log.info("the driver of the Ray cluster %s has ended", self._address)
        finally:
            await asyncio.shield(process.wait())
            for done, _ in self._waiting.values():
                if not done.done():
                    done.set_exception(_error(*ended))

    def _take(self, kind: str, rest: list[Any]) -> None:
        match kind:
            case "nodes":
                self._found = rest[0]
                for _, use in self._waiting.values():
                    use.note(self._found)
            case "done" | "failed" if rest[0] in self._waiting and not self._waiting[rest[0]][0].done():
                done, use = self._waiting[rest[0]]
                if kind == "done":
                    use.add_rows(rest[1], len(rest[2]))
                    done.set_result(rest[2])
                else:
                    done.set_exception(_error(rest[1], rest[2]))


def _error(code: str, detail: str) -> HostError:
    """Return the error for an error code from the driver. An unknown code counts as a temporary fault."""
    kinds: dict[str, type[HostError]] = {one.code: one for one in (PackagesFailed, Misconfigured, HostBusy)}
    return kinds.get(code, SandboxUnavailable)(detail)


def _frame(message: tuple[Any, ...]) -> bytes:
    content = pickle.dumps(message)
    return LENGTH.pack(len(content)) + content

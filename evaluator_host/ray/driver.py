"""The driver of a Ray cluster, for the jobs of one host. `jobs.nodes` starts it as a separate process.

The driver reads chunks of rows from standard input, and writes their results to standard output (`jobs.nodes` describes
both). Each node that was started with the resource `sandbox_pool` gets one worker with one pool of sandboxes, and is
tested first, as `doctor` does. A node that cannot evaluate is left out, with the reason. If a node is lost, its chunk
goes to another node. The driver ends when its standard input ends; Ray then ends the workers, and the workers end their
sandboxes.
"""

import asyncio
import os
import pickle
import sys
import time
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from evaluator_host.platform.jobs.nodes import LENGTH
from evaluator_host.ray import RESOURCE
from evaluator_host.scale.chunks import shared_pool
from evaluator_host.types.errors import HostError, Misconfigured, PackagesFailed, SandboxUnavailable
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.outcome import EvaluationResult, Given

_LOOK_EVERY_S: Final = 3.0  # seconds between two requests for the list of nodes
_AT_ONCE: Final = 2  # number of chunks sent to a node: one is evaluated while the next arrives
_PROBE_S: Final = 120.0
_AGAIN_S: Final = 15.0  # seconds until a node whose worker did not answer gets another worker, if the node still exists
_MISSED: Final = 3  # if this many requests in a row for the list of nodes fail, all nodes count as lost
_EXTRA: Final = "jobs on Ray need Ray where the host runs: pip install 'evaluator-host[ray]'"


class Worker:
    """A Ray actor that evaluates rows in the sandbox pool of its node.

    The environment of the node has the pool's settings.
    """

    def probe(self) -> str | None:
        """Return why no sandbox can be started on this node; None if a sandbox can be started."""
        try:
            shared_pool({}).check(Evaluator("def evaluate(inputs, outputs, trace):\n    return 1.0\n"))
        except HostError as error:
            return f"{error.code}: {error.detail}"
        return None

    def evaluate(
        self, evaluator: Evaluator, rows: Sequence[Given], isolation: str, lock: str | None
    ) -> list[EvaluationResult] | tuple[str, str]:
        """Return the result of each row, or `(error code, detail)` if this node cannot evaluate them."""
        try:
            stream = shared_pool({}).evaluate_stream(evaluator, rows, isolation=Isolation(isolation), lock=lock)
            found = dict(stream)
        except HostError as error:
            return error.code, "; ".join([error.detail, *(problem.message for problem in error.problems)])
        except Exception as error:  # noqa: BLE001 - a fault of this program, which the host's log shows
            return HostError.code, "".join(traceback.format_exception(error))[-2000:]
        return [found[number] for number in range(len(rows))]


@dataclass(slots=True)
class _Chunk:
    """Rows to evaluate, and the nodes that could not evaluate them, each with the reason."""

    number: int
    call: tuple[Any, ...]
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Node:
    """A node with its worker. The state is `starting`, `ready`, `excluded` or `lost`."""

    name: str
    worker: Any = None
    state: str = "starting"
    reason: str | None = None
    again: float | None = None  # time of the next attempt, if the node is still in the cluster


class Driver:
    """Passes the host's chunks of rows to workers on the nodes, and writes the results to `out`."""

    def __init__(self, ray: Any, out: BinaryIO) -> None:
        self._ray = ray
        self._out = out
        self._nodes: dict[str, _Node] = {}
        self._queue: deque[_Chunk] = deque()
        self._dropped: set[int] = set()
        self._more = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, source: asyncio.StreamReader) -> None:
        """Read chunks from the host and send them to nodes, until the input ends or the message `end` arrives."""
        watching = asyncio.create_task(self._watch())
        try:
            while True:
                size = LENGTH.unpack(await source.readexactly(LENGTH.size))[0]
                kind, *rest = pickle.loads(await source.readexactly(size))  # noqa: S301 - the host wrote it
                if kind == "end":
                    return
                if kind == "drop":
                    self._dropped.add(rest[0])
                    continue
                async with self._more:
                    self._queue.append(_Chunk(rest[0], tuple(rest[1:])))
                    self._more.notify_all()
        except asyncio.IncompleteReadError:
            return
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """Every few seconds, look for nodes that have joined or left the cluster."""
        missed = 0
        while True:
            try:
                alive = await self._alive()
                missed = 0
            except Exception as error:  # noqa: BLE001 - Ray's error; if it ended this task, chunks would wait for ever
                print(f"the nodes of the cluster cannot be listed: {_last_line(error)}", file=sys.stderr)
                missed += 1
                alive = {}
            if not 0 < missed < _MISSED:
                self._compare(alive)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _alive(self) -> dict[str, str]:
        """Return the addresses of the nodes that have the resource, keyed by the ids of the nodes."""
        found = await asyncio.to_thread(self._ray.nodes)
        return {
            one["NodeID"]: one["NodeManagerAddress"] for one in found if one["Alive"] and one["Resources"].get(RESOURCE)
        }

    def _compare(self, alive: dict[str, str]) -> None:
        """Serve new nodes, and nodes that are due for another attempt. If all nodes have left, fail waiting chunks."""
        for node_id, name in alive.items():
            known = self._nodes.get(node_id)
            if known is not None and (known.again is None or time.monotonic() < known.again):
                continue
            taken = any(node.name == name for other, node in self._nodes.items() if other != node_id)
            node = self._nodes[node_id] = _Node(f"{name} {node_id[:8]}" if taken else name)
            self._spawn(self._serve(node_id, node))
        for node_id, node in self._nodes.items():
            if node_id not in alive and node.state != "lost":
                self._change(node, "lost", "the node left the cluster")
        if not any(node.state in ("starting", "ready") for node in self._nodes.values()):
            self._fail_all()

    async def _serve(self, node_id: str, node: _Node) -> None:
        """Start the worker of a node, test it, and give it chunks until the node is lost."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 - an extra

        placed = NodeAffinitySchedulingStrategy(node_id, soft=False)
        options = {"num_cpus": 0, "resources": {RESOURCE: 1}, "scheduling_strategy": placed, "max_concurrency": 4}
        node.worker = self._ray.remote(Worker).options(**options).remote()
        try:
            reason = await asyncio.wait_for(_result(node.worker.probe.remote()), _PROBE_S)
        except TimeoutError:
            detail = (
                f"its worker did not start within {_PROBE_S:g} s: perhaps another program uses the node's {RESOURCE}"
            )
            self._leave(node, "excluded", detail)
            return
        except self._ray.exceptions.RayError as error:
            self._leave(node, "lost", _last_line(error))
            return
        if reason is not None:
            self._change(node, "excluded", reason)
            self._ray.kill(node.worker)
            return
        self._change(node, "ready", None)
        await asyncio.gather(*(self._work(node) for _ in range(_AT_ONCE)))

    async def _work(self, node: _Node) -> None:
        while node.state == "ready":
            chunk = await self._next(node)
            try:
                found = await _result(node.worker.evaluate.remote(*chunk.call))
            except self._ray.exceptions.RayError as error:
                self._leave(node, "lost", _last_line(error))
                await self._give_back(chunk)
                return
            if isinstance(found, list):
                self._say(("done", chunk.number, node.name, found))
                continue
            chunk.refused[node.name] = found
            self._note_refusal(node, found)
            await self._give_back(chunk)

    def _leave(self, node: _Node, state: str, reason: str) -> None:
        """End a worker that does not answer. Its node gets a second worker later: the first may only have been busy."""
        if node.again is None:
            node.again = time.monotonic() + _AGAIN_S
            self._change(node, state, reason)
            self._ray.kill(node.worker)

    def _note_refusal(self, node: _Node, found: tuple[str, str]) -> None:
        """Exclude a node that can no longer start sandboxes.

        A node that only lacks a package stays: it may be able to evaluate other code.
        """
        if found[0] != PackagesFailed.code:
            self._change(node, "excluded", f"{found[0]}: {found[1]}")
        else:
            self._tell(extra=[(node.name, "excluded", f"{found[0]}: {found[1]}")])

    async def _next(self, node: _Node) -> _Chunk:
        """Wait for a chunk that this node has not refused, and return it."""
        async with self._more:
            while True:
                for chunk in list(self._queue):
                    if chunk.number in self._dropped:
                        self._queue.remove(chunk)
                        self._dropped.discard(chunk.number)
                    elif node.name not in chunk.refused:
                        self._queue.remove(chunk)
                        return chunk
                await self._more.wait()

    async def _give_back(self, chunk: _Chunk) -> None:
        """Put a chunk back at the front of the queue. If every node has refused it, tell the host."""
        ready = [node for node in self._nodes.values() if node.state in ("starting", "ready")]
        if chunk.refused and all(node.name in chunk.refused for node in ready):
            code = next(iter(chunk.refused.values()))[0]
            reasons = "; ".join(f"node {name}: {detail}" for name, (_, detail) in chunk.refused.items())
            self._say(("failed", chunk.number, code, f"no node can evaluate: {reasons}"))
            return
        async with self._more:
            self._queue.appendleft(chunk)
            self._more.notify_all()

    def _fail_all(self) -> None:
        """Tell the host that no node can evaluate the waiting chunks."""
        reasons = "; ".join(f"node {node.name}: {node.reason}" for node in self._nodes.values())
        detail = f"no node can evaluate: {reasons}" if reasons else f"no node of the cluster offers {RESOURCE}"
        while self._queue:
            self._say(("failed", self._queue.popleft().number, SandboxUnavailable.code, detail))

    def _change(self, node: _Node, state: str, reason: str | None) -> None:
        if node.state != "lost":
            node.state, node.reason = state, reason
            self._tell()

    def _tell(self, extra: Sequence[tuple[str, str, str | None]] = ()) -> None:
        found = [(node.name, node.state, node.reason) for node in self._nodes.values()]
        named = {name for name, _, _ in extra}
        self._say(("nodes", [*(one for one in found if one[0] not in named), *extra]))

    def _say(self, message: tuple[Any, ...]) -> None:
        send(self._out, message)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def send(out: BinaryIO, message: tuple[Any, ...]) -> None:
    """Write a message to the host as one frame: its length, then its pickle."""
    content = pickle.dumps(message)
    out.write(LENGTH.pack(len(content)) + content)
    out.flush()


async def _result(reference: Any) -> Any:
    return await reference


def _last_line(error: BaseException) -> str:
    return str(error).strip().rpartition("\n")[2][:300] or type(error).__name__


async def _main(address: str) -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Ray's output goes to standard error, because it must not look like frames
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        send(out, ("ended", Misconfigured.code, _EXTRA))
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace="evaluator-host")
    except (ConnectionError, RuntimeError, ValueError) as error:
        detail = f"the Ray cluster at {address} cannot be reached: {_last_line(error)}"
        send(out, ("ended", SandboxUnavailable.code, detail))
        return
    source = asyncio.StreamReader(limit=1 << 20)
    protocol = asyncio.StreamReaderProtocol(source)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin.buffer)
    await Driver(ray, out).run(source)
    ray.shutdown()


def main() -> None:
    """Run a driver for the Ray cluster at the address in the first command-line argument."""
    asyncio.run(_main(sys.argv[1]))

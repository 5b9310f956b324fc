"""A runner and a backend in memory, for tests of code that uses the link to a runner: no process, no socket, no sleep.

The output of a row is a word that decides how the row ends:

- `hang`: the runner never answers;
- `late`: the row never begins;
- `die`: the runner ends;
- `lost`: the runner is lost through the backend's fault;
- `killed`: the runner is ended with SIGKILL;
- `slain`: only the row's process is killed;
- `garbage`: the answer is not a frame;
- `misnamed`: the answer is for another row.

Any other output scores 1. The code `bad` cannot be loaded. Code that begins with `bundle` comes back as a bundle of a
megabyte.
"""

import asyncio
import json
import math
import signal
import time
from collections.abc import Collection

from evaluator_host.engine.sandbox.base import Finding, Platform, Weight
from evaluator_host.engine.sandbox.exit_status import ExitStatus
from evaluator_host.engine.sandbox.protocol import FrameDecoder, encode
from evaluator_host.types.errors import SandboxUnavailable
from evaluator_host.types.evaluator import Environment, SandboxSpec


class FakeLink:
    """The link to one fake sandbox. `calls` has the bodies of the rows that it got, `bundle` the bundle of its load;
    `destroyed` is True after its end.
    """

    def __init__(self, number: int, *, preparing: str = "answers", used_mb: int | None = None) -> None:
        self.id = f"fake-{number}"
        self.calls: list[dict] = []
        self.bundle: object = None
        self.cancelled: list[str] = []
        self.prepared: list[str] | None = None
        self._preparing = preparing
        self.destroyed = False
        self.weights: list[Weight] = []
        self.used_mb = used_mb
        self.ended = False
        self.first_pid = None  # there is no process, so wall-clock time is measured
        self._lost = self._killed = False
        # time at which a row began to hang; later frames wait until that row is cancelled
        self._hangs_since: float | None = None
        self._behind: list[tuple[dict, dict]] = []
        self._decoder = FrameDecoder()
        self._out: asyncio.Queue[bytes] = asyncio.Queue()
        self._say({"type": "hello", "protocol": 1, "language": "python", "runtime": "python fake"})

    def write(self, data: bytes) -> None:
        for frame in self._decoder.feed(data):
            getattr(self, f"_on_{frame.type}")(frame.header, json.loads(frame.body or b"{}"))

    async def drain(self) -> None:
        pass

    async def read(self, *, patience_s: float = 0.0) -> bytes:
        return await self._out.get()

    def memory_events(self) -> int:
        return 0

    def used_bytes(self) -> int | None:
        return None if self.used_mb is None else self.used_mb << 20

    far = False

    async def look(self) -> None:
        return None  # the fake sandbox has no work clock, so wall-clock time counts

    def weigh(self, weight: Weight) -> None:
        self.weights.append(weight)

    async def destroy(self) -> ExitStatus:
        self.destroyed = self.ended = True
        self._out.put_nowait(b"")
        if self._killed:
            return ExitStatus(signal=signal.SIGKILL)
        return ExitStatus(exit_code=1, lost=self._lost)

    def die(self, *, lost: bool = False, killed: bool = False) -> None:
        self._lost, self._killed, self.ended = lost, killed, True
        self._out.put_nowait(b"")

    def _say(self, header: dict, body: object = None) -> None:
        self._out.put_nowait(encode(header, b"" if body is None else json.dumps(body).encode()))

    def _on_prepare(self, header: dict, body: dict) -> None:
        self.prepared = header["modules"]
        match self._preparing:
            case "never answers":
                return
            case "dies":
                self.die()
                return
        ready = self._preparing == "answers"
        self._say({"type": "prepared", "id": header["id"], "ready": ready, "reason": None, "prepare_ms": 1.0})

    def _on_load(self, header: dict, body: dict) -> None:
        if body["code"] == "bad":
            error = {"code": "syntax_error", "message": "bad", "line": 1}
            self._say({"type": "load_failed", "id": header["id"], "logs": None}, {"error": error})
            return
        self.bundle = body["bundle"]
        made = body["code"].ljust(1 << 20) if body["code"].startswith("bundle") else None
        answer = {"contract": "evaluate", "contract_source": "inferred", "reason": "", "entry": "evaluate"}
        self._say(
            {
                "type": "loaded",
                "id": header["id"],
                "parameters": ["inputs", "outputs", "trace"],
                "logs": None,
                **answer,
            },
            {"bundle": self.bundle or made},
        )

    def _on_call(self, header: dict, body: dict) -> None:
        self.calls.append(body)
        if self._hangs_since is not None:
            self._behind.append((header, body))
        else:
            self._run(header, body)

    def _run(self, header: dict, body: dict) -> None:
        match body["args"][1]:
            case "hang" | "late" as word:
                self._hangs_since = time.monotonic() if word == "hang" else math.inf
            case "die":
                self.die()
            case "lost":
                self.die(lost=True)
            case "killed":
                self.die(killed=True)
            case "slain":
                error = {"code": "crashed", "message": "the evaluator's process was killed by SIGKILL before returning"}
                self._say({"type": "failed", "id": header["id"], "run_ms": 1.0, "logs": None}, {"error": error})
            case "garbage":
                self._out.put_nowait(b"\xff" * 64)
            case "misnamed":
                self._say(
                    {"type": "result", "id": "999", "run_ms": 1.0, "logs": None}, {"kind": "number", "value": 1.0}
                )
            case "malformed":
                self._say({"type": "result", "id": header["id"], "run_ms": 1.0, "logs": None}, {"kind": "score"})
            case _:
                answer = {"type": "result", "id": header["id"], "run_ms": 1.0, "logs": None}
                self._say(answer, {"kind": "number", "value": 1.0})

    def _on_cancel(self, header: dict, body: dict) -> None:
        self.cancelled.append(header["id"])
        run_ms = max(0.0, time.monotonic() - (self._hangs_since or math.inf)) * 1000
        error = {"code": "cancelled", "message": "cancelled"}
        self._say({"type": "failed", "id": header["id"], "run_ms": run_ms, "logs": None}, {"error": error})
        self._hangs_since = None
        behind, self._behind = self._behind, []
        for call, row in behind:
            self._on_call(call, row)
            self.calls.pop()


class FakeBackend:
    """Starts fake sandboxes, and keeps the links to them in `links`. If `broken` is set, no sandbox starts; `gate`
    delays all starts.

    `preparing` decides what sandboxes do when they are asked to import packages in advance: `answers`, `refuses`,
    `dies`, `never answers`. `start_s` is the duration of a start; `starting` is the number of sandboxes that are
    starting now, `most_starting` the highest such number so far.
    """

    name = "fake"
    platform = Platform("3.13", "x86_64", (2, 41))

    def __init__(self) -> None:
        self.links: list[FakeLink] = []
        self.broken = False
        self.gate: asyncio.Event | None = None
        self.preparing = "answers"
        self.start_s = 0.0
        self.starting = self.most_starting = 0
        self.used_mb: int | None = None  # MB that each idle sandbox uses; None if the number is not known

    def python_versions(self) -> tuple[str, ...]:
        return (self.platform.python,)

    async def start(self, spec: SandboxSpec) -> FakeLink:
        self.starting += 1
        self.most_starting = max(self.most_starting, self.starting)
        try:
            await asyncio.sleep(self.start_s)
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.starting -= 1
        if self.broken:
            raise SandboxUnavailable("the fake backend is broken")
        self.links.append(FakeLink(len(self.links), preparing=self.preparing, used_mb=self.used_mb))
        return self.links[-1]

    async def prepare(self, environment: Environment) -> None:
        pass

    async def compare(self, environment: Environment) -> list[str]:
        return []

    async def drop_environment(self, digest: str) -> None:
        pass

    async def prune_environments(self, live: Collection[str]) -> list[str]:
        return []

    async def findings(self) -> list[Finding]:
        return []

    async def sweep(self) -> int:
        return 0

    async def close(self) -> None:
        pass

    @property
    def alive(self) -> int:
        return sum(not link.destroyed for link in self.links)

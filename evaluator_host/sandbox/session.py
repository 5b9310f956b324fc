"""A sandbox as the pool sees it: the runner protocol over a link. What the guest does comes back as a value.

One row at a time, answers in order (runtimes/PROTOCOL.md). Whatever is unexpected - a frame that is no frame, an answer
nobody asked for, silence past the limit - ends the sandbox: it is destroyed, never repaired.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from evaluator_host.model.errors import SandboxLost, SandboxUnavailable
from evaluator_host.model.evaluator import Language, SandboxSpec
from evaluator_host.model.json_values import encode_json
from evaluator_host.model.outcome import ErrorCode, EvaluationError, Failed, Loaded, Outcome
from evaluator_host.sandbox import messages
from evaluator_host.sandbox.base import Link
from evaluator_host.sandbox.exit_status import ExitStatus, classify_exit
from evaluator_host.sandbox.protocol import (
    BYTES_AHEAD,
    CALLS_AHEAD,
    PROTOCOL_VERSION,
    Frame,
    FrameDecoder,
    ProtocolError,
    encode,
)

_LAST_LOOK_S: Final = 0.01  # at what came while the host itself slept (stopped, swapped out) past the limit
_AHEAD_S: Final = 0.02  # enough to hide the host's own latency
HELLO_TIMEOUT_S: Final = 20.0  # a bubblewrap runner takes 25 ms, a container under gVisor on a loaded machine seconds


RUNNER_GAVE_UP: Final = 70  # exit code of a runner whose inside was destroyed, perhaps by an earlier row (PROTOCOL.md)


class RunnerGaveUp(SandboxLost):
    """The runner ended because something inside was destroyed, perhaps before this row began: worth one more try.

    Attributes:
      failed: The outcome of the row if it happens again: then it is the row's own doing.
    """

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.error.message)
        self.failed = failed


_Answer = TypeVar("_Answer", Loaded | Failed, Outcome)


class _Over(Exception):
    """The sandbox gave no proper answer; `reason` is for the log, `timed_out` when it was silent for too long."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.timed_out = timed_out


class SendWindow:
    """How far rows are sent ahead: as many rows as finish in `_AHEAD_S`, between 2 and `CALLS_AHEAD`."""

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._calls = 2
        self._answered = 0
        self._since = time.monotonic()

    @property
    def open(self) -> bool:
        """Whether one more may be sent."""
        return not self._sizes or (len(self._sizes) < self._calls and self._bytes < BYTES_AHEAD)

    def sent(self, size: int) -> None:
        """Count a call of `size` bytes as under way."""
        self._sizes.append(size)
        self._bytes += size

    def answered(self) -> None:
        """Count the oldest call as answered, and look again at how fast the rows are."""
        self._bytes -= self._sizes.popleft()
        self._answered += 1
        if self._answered % 8 == 0:
            now = time.monotonic()
            rate = 8 / max(now - self._since, 1e-6)
            self._since = now
            self._calls = max(2, min(CALLS_AHEAD, int(rate * _AHEAD_S)))


class Sandbox:
    """One started sandbox.

    Attributes:
      rows: Rows it was given so far.
      started_at: Monotonic seconds.
      broken: Nothing more can be asked of it; only `destroy` is left.
    """

    def __init__(self, link: Link, *, backend: str, spec: SandboxSpec, grace_s: float) -> None:
        self.link = link
        self.backend = backend
        self.spec = spec
        self.rows = 0
        self.started_at = time.monotonic()
        self.broken = False
        self.runtime = ""
        self._grace_s = grace_s
        self._decoder = FrameDecoder()
        self._frames: deque[Frame] = deque()
        self._last_id = 0
        self._window = SendWindow()
        self._outgoing: list[bytes] = []  # sent ahead; written together when nothing is left to read
        self._memory_events = 0
        self._unanswered: deque[str] = deque()

    @property
    def ended(self) -> bool:
        """Whether it cannot take a row any more."""
        return self.broken or self.link.ended

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way: no call unanswered, and no frame came that nobody asked for."""
        return not self._unanswered and not self._frames

    async def greet(self) -> None:
        """Wait for the runner's hello.

        Raises:
          SandboxUnavailable: it ended, or said something else; the detail holds the runner's own words.
          SandboxLost: something killed it.
        """
        try:
            frame = await self._next(HELLO_TIMEOUT_S)
            if frame.type != "hello" or frame.header.get("protocol") != PROTOCOL_VERSION:
                raise _Over(f"expected hello of protocol {PROTOCOL_VERSION}, got {frame.header}")
        except _Over as over:
            exit_status = await self.destroy()
            if exit_status.lost and exit_status.signal is not None:
                raise SandboxLost(f"something killed a {self.backend} sandbox while it started") from over
            words = exit_status.stderr_tail.strip() or over.reason
            raise SandboxUnavailable(
                f"a {self.backend} sandbox did not start: {words[-500:]}. Run `evaluator-host doctor` to see why"
            ) from over
        self.runtime = str(frame.header.get("runtime", ""))

    async def prepare(self, modules: Sequence[str], *, timeout_s: float) -> str | None:
        """Import modules ahead of the load (Python).

        Returns why no load should go on from that, or None when all is well. Whatever a package did, it is a value.
        """
        header = messages.prepare_header(self._new_id(), modules, timeout_s=timeout_s, spec=self.spec)
        try:
            self.link.write(encode(header))
            return messages.refused_to_prepare(await self._answer(timeout_s + self._grace_s))
        except (_Over, ProtocolError) as over:
            await self.destroy()
            return str(over)

    async def load(self, request: messages.LoadRequest) -> Loaded | Failed:
        """Compile the code and run it once at module level.

        Raises:
          SandboxLost: the sandbox died for a reason that is not the guest's.
        """
        try:
            self.link.write(encode(request.header(self._new_id()), encode_json(request.body())))
            frame = await self._answer(request.timeout_s + self._grace_s)
            answer = messages.loaded(frame)
        except (_Over, ProtocolError) as over:
            return await self._over(over, request.timeout_s)
        if isinstance(answer, Failed):
            self.broken = True
            return self._named(answer)
        return answer

    async def call(self, body: bytes, *, timeout_s: float, share: str | None = None) -> Outcome:
        """Evaluate one row in this sandbox.

        Whatever the guest does (raise, hang, flood, fork, die) comes back as a value, never as an exception.

        Args:
          body: The `call` body of the protocol, JSON.
          timeout_s: Wall-clock seconds for the row, queueing excluded.
          share: Consecutive calls with the same string share one process (Python) or context (JavaScript).

        Raises:
          SandboxLost: the sandbox died for a reason that is not the guest's; the caller may retry elsewhere.
        """
        self.send(body, timeout_s=timeout_s, share=share)
        return await self.receive(timeout_s=timeout_s)

    @property
    def room(self) -> bool:
        """Whether one more row may be sent before the oldest is answered."""
        return self._window.open

    def send(self, body: bytes, *, timeout_s: float, share: str | None = None) -> None:
        """Send a row ahead; `receive` returns the outcomes in the order of sending. Arguments as for `call`.

        Raises:
          ProtocolError: the body is over the protocol's limit; nothing was sent.
        """
        frame = encode({"type": "call", "id": str(self._last_id + 1), "timeout_s": timeout_s, "share": share}, body)
        self._new_id()
        self.rows += 1
        self._window.sent(len(frame))
        self._outgoing.append(frame)

    async def receive(self, *, timeout_s: float) -> Outcome:
        """Wait for the outcome of the oldest row that was sent; as `call`."""
        try:
            frame = await self._answer(timeout_s + self._grace_s)
            self._window.answered()
            outcome = self._named(messages.outcome(frame))
        except (_Over, ProtocolError) as over:
            return await self._over(over, timeout_s)
        if self._took_too_much(outcome):
            self.broken = True
        return outcome

    def _took_too_much(self, outcome: Outcome) -> bool:
        """Whether the memory of a row may still grow after its answer: native code in a thread cannot be stopped."""
        threads = self.spec.language is not Language.PYTHON  # whose rows are processes
        stopped = isinstance(outcome, Failed) and outcome.error.code is ErrorCode.MEMORY_LIMIT
        return threads and stopped and not self._unanswered

    async def settle(self) -> None:
        """After a caller hung up in the middle of a call: cancel what is unanswered, or break the sandbox."""
        self._flush()
        try:
            for call_id in self._unanswered:
                self.link.write(encode({"type": "cancel", "id": call_id}))
            while self._unanswered:
                await self._answer(self._grace_s)
                self._window.answered()
        except (_Over, ProtocolError):
            self.broken = True

    async def destroy(self) -> ExitStatus:
        """End it; see `Link.destroy`."""
        self.broken = True
        return await self.link.destroy()

    def _new_id(self) -> str:
        self._last_id += 1
        self._unanswered.append(str(self._last_id))
        return self._unanswered[-1]

    async def _answer(self, timeout_s: float) -> Frame:
        """Return the answer to the oldest unanswered call."""
        frame = await self._next(timeout_s)
        expected = self._unanswered.popleft()
        if frame.header.get("id") != expected:
            raise _Over(f"answer to {frame.header.get('id')!r}, expected {expected!r}")
        return frame

    def _flush(self) -> None:
        if self._outgoing:
            self.link.write(b"".join(self._outgoing) if len(self._outgoing) > 1 else self._outgoing[0])
            self._outgoing.clear()

    async def _next(self, timeout_s: float) -> Frame:
        if not self._frames:
            self._flush()
            if not await self._fill(timeout_s) and not await self._fill(_LAST_LOOK_S):
                raise _Over("the runner did not answer in time", timed_out=True)
        return self._frames.popleft()

    async def _fill(self, timeout_s: float) -> bool:
        """Read at least one frame; false when none came in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.link.drain()
                while not self._frames:
                    data = await self.link.read()
                    if not data:
                        raise _Over("the runner ended")
                    self._frames.extend(self._decoder.feed(data))
        except TimeoutError:
            return False
        except ProtocolError as error:
            raise _Over(str(error)) from error
        return True

    def _named(self, outcome: _Answer) -> _Answer | Failed:
        """Name an out-of-memory kill what it is: the runner only saw that its child was killed."""
        if not isinstance(outcome, Failed) or outcome.error.code is not ErrorCode.CRASHED:
            return outcome
        known, self._memory_events = self._memory_events, self.link.memory_events()
        if self._memory_events == known:
            return outcome
        return replace(outcome, error=messages.memory_limit(self.spec.memory_mb))

    async def _over(self, over: _Over | ProtocolError, timeout_s: float) -> Failed:
        exit_status = await self.destroy()
        if isinstance(over, _Over) and over.timed_out:
            return Failed(messages.timeout(timeout_s))
        if exit_status.lost:
            raise SandboxLost(f"the {self.backend} backend lost a sandbox: {exit_status.stderr_tail[-300:]}")
        code, message = classify_exit(exit_status, memory_mb=self.spec.memory_mb)
        failed = Failed(EvaluationError(code, message))
        if exit_status.exit_code == RUNNER_GAVE_UP and code is ErrorCode.CRASHED:
            raise RunnerGaveUp(failed)
        return failed

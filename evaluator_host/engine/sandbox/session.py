"""One sandbox as the pool uses it: speaks the runner protocol (runtimes/PROTOCOL.md) over a link.

A guest's failure is returned as a result. An exception means that the sandbox or its runner was lost, or that the
machine was too busy. After an unexpected event (a malformed frame, an answer without a call, silence past the limit),
the sandbox is destroyed, never repaired.
"""

import asyncio
import math
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from evaluator_host.engine.sandbox import messages
from evaluator_host.engine.sandbox.base import Gate, Link, Weight
from evaluator_host.engine.sandbox.exit_status import ExitStatus, classify_exit
from evaluator_host.engine.sandbox.linux.work_clock import WorkClock
from evaluator_host.engine.sandbox.protocol import (
    PROTOCOL_VERSION,
    Body,
    Frame,
    FrameDecoder,
    ProtocolError,
    encode,
    encode_head,
    parts_of,
)
from evaluator_host.engine.sandbox.send_window import SendWindow
from evaluator_host.engine.system.memory import ByteTurns
from evaluator_host.engine.system.time_limit import TimeLimit
from evaluator_host.types.errors import HostBusy, SandboxLost, SandboxSlow, SandboxUnavailable
from evaluator_host.types.evaluator import Language, SandboxSpec
from evaluator_host.types.json_texts import Octets
from evaluator_host.types.json_values import LARGE_BYTES, is_large, takes_more_memory
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Failed, Loaded, Outcome
from evaluator_host.types.redaction import Redactor

# time limit, in seconds, for a last read: a frame may have come in time while the host was stopped or swapped out
_LAST_READ_S: Final = 0.01
_AT_ONCE: Final = 64  # number of frames to handle before other tasks may run: one read may bring thousands
_START_S: Final = 0.1  # seconds that a row's process or context may take to start
# fraction of the time limit: if a stopped row ran for less than this by the runner's clock, the row does not count as
# begun
_BEGUN: Final = 0.5
SEE_DOCTOR: Final = "Run `evaluator-host doctor` to see why"
# how long to wait for `hello`, in seconds: bubblewrap takes 25 ms, gVisor on a loaded machine takes seconds
HELLO_TIMEOUT_S: Final = 20.0


_REFUSAL: Final = (
    b'{"error":{"message":"models are asked while a row is scored, not while the code is loaded; move the \
request into the function that scores","type":"invalid_request_error","param":null,"code":"not_while_loading"}}'
)
_NOT_NOW: Final = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\nx-should-retry: false\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_REFUSAL), _REFUSAL)
)
# maximum size of a result's body without its value; the runners have the same number
RESULT_EXTRA_BYTES: Final = 256 << 10
_DECODED_BYTES: Final = 64 << 20  # maximum memory, in bytes, that any body may take once decoded
# bytes of memory that are allowed for each byte of JSON: enough for long lists of numbers
_DECODED_PER_BYTE: Final = 8
RUNNER_GAVE_UP: Final = 70  # exit code of a runner whose own state was damaged (PROTOCOL.md)


class RunnerGaveUp(SandboxLost):
    """The runner was in a damaged state, was killed, or crashed while it loaded code.

    The caller should retry once, because the running row may not be the cause: an earlier row may have damaged the
    runner, or the machine may have killed the runner.
    """

    def __init__(self, failed: Failed, *, killed: bool = False) -> None:
        super().__init__(failed.error.message)
        # the row's outcome if the retry ends in the same way, which means that the row is the cause
        self.failed = failed
        # whether SIGKILL ended the runner; it usually comes from the machine, not from the evaluator
        self.killed = killed


_Read = TypeVar("_Read")


async def _aside(frame: Frame, read: Callable[[Frame], _Read]) -> _Read:
    """Parse an answer, in a thread if the answer is large; refuse an answer that is too large for the host's memory.

    Raises:
      ProtocolError: the frame is of another kind, or malformed.
    """
    if not is_large(frame.body):
        return read(frame)
    if takes_more_memory(frame.body, _DECODED_BYTES + _DECODED_PER_BYTE * len(frame.body)):
        raise ProtocolError(f"a body of {len(frame.body)} bytes has more values than the host accepts")
    return await asyncio.to_thread(read, frame)


class _NoAnswer(Exception):
    """The sandbox gave no proper answer."""

    def __init__(self, reason: str, *, timed_out: bool = False, starved: bool = False, ended: bool = False) -> None:
        super().__init__(reason)
        self.ended = ended  # whether the sandbox had ended
        self.reason = reason  # reason to write to the log
        self.timed_out = timed_out  # whether the sandbox used up its time without sending an answer
        self.starved = starved  # whether the machine gave the sandbox no processor time


def _timed_out(cancelled: Failed, timeout_s: float) -> Failed:
    """Return the outcome of a row that was stopped at its time limit.

    Raises:
      _NoAnswer: the row had not begun, because its runner or the engine was late.
    """
    if cancelled.run_ms < 1000 * _BEGUN * timeout_s:
        raise _NoAnswer("the sandbox did not begin a row in time", starved=True)
    return replace(cancelled, error=messages.timeout_error(timeout_s))


class Sandbox:
    """One started sandbox that loads an evaluator and evaluates rows.

    Args:
      link: The link from `Backend.start`.
      backend: Name of the backend.
      spec: Language, environment and limits with which the sandbox was started.
      grace_s: Seconds that the host waits for the runner beyond a row's own limit.
    """

    def __init__(self, link: Link, *, backend: str, spec: SandboxSpec, grace_s: float) -> None:
        self.link = link
        self.backend = backend
        self.spec = spec
        self.rows = 0  # number of rows sent so far
        self.started_at = time.monotonic()  # time of the start by the monotonic clock, in seconds
        self.broken = False  # whether frames can no longer be sent, so that only `destroy` can be called
        self.worked_s = 0.0  # total seconds that the answers took, as `linux.work_clock` counts them
        # memory in MB that the sandbox takes without a row, as `measure` last found it; at first its limit
        self.idle_mb = spec.memory_mb
        self.runtime = ""
        self._waits = self._long = False
        self._weight = Weight.USUAL
        self._grace_s = grace_s
        self._decoder = FrameDecoder()
        self._turns: ByteTurns | None = None
        self._turn_bytes = 0  # size of the large answer that this sandbox has a turn to read; 0 without a turn
        self._limit = TimeLimit()  # limit of each wait for an answer
        self._frames: deque[Frame] = deque()
        self._left = False  # whether the decoder has frames that were not handled because the time limit came first
        self._last_id = 0
        self._window = SendWindow()
        self._outgoing: list[Octets] = []  # frames that are written together as soon as nothing is left to read
        self._memory_events = 0
        self._unanswered: deque[str] = deque()
        self._gates: dict[str, Gate] = {}  # gates of unanswered rows, by the row's id
        self._redactor: Redactor | None = None

    def _masking(self, read: Callable[[Frame], _Read]) -> Callable[[Frame], _Read]:
        """Return a function that reads answers like `read`, and masks the evaluator's secrets."""
        redactor = self._redactor
        return read if redactor is None else lambda frame: redactor.value(read(frame))

    @property
    def ended(self) -> bool:
        """Return whether the sandbox can no longer take rows."""
        return self.broken or self.link.ended

    @property
    def quiet(self) -> bool:
        """Return whether every row was answered, and no unexpected frame has arrived."""
        return not self._unanswered and not self._frames and self._window.empty

    def weigh(self, *, waits: bool | None = None, long: bool | None = None) -> None:
        """Set the CPU weight for a row that waits for an answer from outside (`waits`), or runs long (`long`).

        None keeps the earlier value of `waits` or `long`.
        """
        self._waits = self._waits if waits is None else waits
        self._long = self._long if long is None else long
        weight = Weight.WAITS if self._waits else Weight.LONG if self._long else Weight.USUAL
        if weight is not self._weight:
            self._weight = weight
            self.link.weigh(weight)

    def measure(self) -> None:
        """Set `idle_mb` to the memory that is used now. Call this while no row runs."""
        used = self.link.used_bytes()
        if used is not None:
            self.idle_mb = min(self.spec.memory_mb, max(1, math.ceil(used / (1 << 20))))

    async def greet(self) -> None:
        """Wait for the runner's `hello` message.

        Raises:
          SandboxUnavailable: the runner ended or sent another frame; the detail has the end of its standard error.
          SandboxSlow: the runner did not answer in time.
          SandboxLost: something killed the sandbox.
        """
        try:
            frame = await self._next(HELLO_TIMEOUT_S)
            if frame.type != "hello" or frame.header.get("protocol") != PROTOCOL_VERSION:
                raise _NoAnswer(
                    f"the sandbox does not speak protocol {PROTOCOL_VERSION}, so its files may be of another "
                    "release; its "
                    f"first message was {frame.header}"
                )
        except _NoAnswer as no_answer:
            exit_status = await self.destroy()
            if exit_status.lost and exit_status.exit_code is None:
                raise SandboxLost(
                    f"something killed a {self.backend} sandbox while it started; try again"
                ) from no_answer
            words = exit_status.stderr_tail.strip() or no_answer.reason
            if no_answer.timed_out or no_answer.starved:
                raise SandboxSlow(
                    f"a {self.backend} sandbox did not start within {HELLO_TIMEOUT_S:g} s; usually, it starts "
                    f"in less than one second. Its output ended with: {words[-500:]}"
                ) from no_answer
            raise SandboxUnavailable(
                f"a {self.backend} sandbox did not start: {words[-500:]}. {SEE_DOCTOR}"
            ) from no_answer
        self.runtime = str(frame.header.get("runtime", ""))

    async def prepare(self, modules: Sequence[str], *, timeout_s: float) -> str | None:
        """Import Python modules before the load; return None, or the reason why the sandbox cannot be used.

        Nothing that a package does makes this method raise an error.

        Args:
          modules: Names of the modules.
          timeout_s: Wall-clock seconds for all imports together.
        """
        header = messages.prepare_header(self._new_id(), modules, timeout_s=timeout_s, spec=self.spec)
        try:
            self.link.write(encode(header))
            return messages.read_prepared((await self._answer(timeout_s + self._grace_s))[0])
        except (_NoAnswer, ProtocolError) as no_answer:
            await self.destroy()
            return str(no_answer)

    async def load(self, request: messages.LoadRequest, *, turns: ByteTurns | None = None) -> Loaded | Failed:
        """Compile the code and run it at module level. Anything the code does, even a crash, is returned as a value.

        Args:
          request: The code, and how it is called.
          turns: Limits how many bytes of large answers the host reads from all sandboxes at once; None for no limit.

        Raises:
          SandboxLost: the sandbox died, and the guest is not the cause.
          HostBusy: the machine gave the sandbox too little processor time.
        """
        self._turns = turns
        self._redactor = Redactor(*request.secrets.values()) if request.secrets else None
        try:
            self.link.write(encode(request.header(self._new_id()), request.body()))
            answer, stopped = await self._read_answer(request.timeout_s, messages.read_loaded)
        except (_NoAnswer, ProtocolError) as no_answer:
            return await self._failed(no_answer, messages.load_timeout_error(request.timeout_s))
        if stopped and isinstance(answer, Failed):
            answer = replace(answer, error=messages.load_timeout_error(request.timeout_s))
        self._decoder.body_bytes = (request.limits.result_kb << 10) + RESULT_EXTRA_BYTES
        if isinstance(answer, Failed):
            self.broken = True
            return self._name_memory_kill(answer)
        return answer

    async def call(
        self, body: Body, *, timeout_s: float, share: str | None = None, gate: Gate | None = None
    ) -> Outcome:
        """Evaluate one row in this sandbox.

        If the guest raises, hangs, floods its output, forks or dies, this method returns a value, and never raises an
        exception.

        Args:
          body: The `call` body of the protocol: JSON, whole or in parts.
          timeout_s: Seconds for the row, queueing excluded, as `linux.work_clock` counts them.
          share: Consecutive calls with the same string share one process (Python) or context (JavaScript).
          gate: Serves the row's connections; None for an evaluator without a grant.

        Raises:
          SandboxLost: the sandbox died, and the guest is not the cause; the caller may retry in another sandbox.
          HostBusy: the machine gave the sandbox too little processor time; the caller may retry elsewhere.
        """
        self.send(body, timeout_s=timeout_s, share=share, gate=gate)
        return await self.receive(timeout_s=timeout_s)

    @property
    def room(self) -> bool:
        """Return whether one more row may be sent before earlier rows are answered."""
        return self._window.open

    def send(self, body: Body, *, timeout_s: float, share: str | None = None, gate: Gate | None = None) -> None:
        """Send a row without waiting for its outcome; `receive` returns outcomes in the order of rows.

        The arguments are the same as for `call`.

        Raises:
          ProtocolError: the body is over the protocol's limit; nothing was sent.
        """
        limit_s = messages.runner_limit_s(timeout_s + (gate.most_wait_s if gate is not None else 0.0))
        parts = parts_of(body)
        size = sum(map(len, parts))
        head = encode_head({"type": "call", "id": str(self._last_id + 1), "timeout_s": limit_s, "share": share}, size)
        call_id = self._new_id()
        if gate is not None:
            self._gates[call_id] = gate
            gate.open(self)
        self.rows += 1
        self._window.sent(len(head) + size)
        self._outgoing += (head, *parts)

    async def receive(self, *, timeout_s: float) -> Outcome:
        """Wait for the outcome of the oldest unanswered row, and return it.

        Raises:
          SandboxLost, HostBusy: see `call`. `RunnerGaveUp` is also raised if SIGKILL ended the process of a row.
        """
        try:
            answer, stopped = await self._read_answer(timeout_s + _START_S, messages.read_outcome)
            if not isinstance(answer, Failed):
                return answer
            outcome = self._name_memory_kill(answer)
            if stopped and outcome.error.code is ErrorCode.CRASHED:
                outcome = _timed_out(outcome, timeout_s)
            elif messages.was_killed(outcome.error):
                self.broken = True  # a retry needs another sandbox
                raise RunnerGaveUp(outcome, killed=True)
        except (_NoAnswer, ProtocolError) as no_answer:
            return await self._failed(no_answer, messages.timeout_error(timeout_s))
        if self._took_too_much(outcome):
            self.broken = True
        return outcome

    def receive_at_once(self) -> Outcome | None:
        """Return the outcome of the oldest unanswered row if it has arrived; None if the caller must call `receive`."""
        frame = self._frames[0] if self._frames and not self._gates else None
        if frame is None or frame.type != "result" or frame.header.get("id") != self._unanswered[0]:
            return None
        if is_large(frame.body):
            return None
        try:
            outcome = self._masking(messages.read_outcome)(frame)
        except ProtocolError:
            return None
        self._frames.popleft()
        self._unanswered.popleft()
        self._window.answered()
        return outcome

    def _took_too_much(self, outcome: Failed) -> bool:
        """Return whether a row may have left a native thread, which cannot be stopped and may use more memory."""
        # rows of Python are processes, rows of JavaScript are threads
        threads = self.spec.language is not Language.PYTHON
        return threads and outcome.error.code is ErrorCode.MEMORY_LIMIT and not self._unanswered

    async def settle(self) -> None:
        """Cancel unanswered rows, because their caller hung up.

        If the runner does not answer, the sandbox is broken.
        """
        self._flush()
        for call_id in list(self._gates):
            self._close_gate(call_id)
        try:
            for call_id in self._unanswered:
                self.link.write(encode({"type": "cancel", "id": call_id}))
            while self._unanswered:
                await self._answer(self._grace_s)
        except (_NoAnswer, ProtocolError):
            self.broken = True
        finally:
            self._end_turn()

    async def destroy(self) -> ExitStatus:
        """Kill every process of the sandbox, remove its resources, and return how it ended. Never raises."""
        self.broken = True
        for call_id in list(self._gates):
            self._close_gate(call_id)
        return await self.link.destroy()

    def reply(self, connection: int, data: bytes, *, end: bool = False) -> None:
        """Queue bytes for a connection of a row; `end` closes the connection. Do nothing if the sandbox is broken."""
        if not self.broken:
            self.link.write(encode({"type": "bytes", "connection": connection, "end": end}, data))

    async def drain(self) -> None:
        """Wait until less than 1 MiB is queued for the runner."""
        await self.link.drain()

    def _pass_on(self, frame: Frame) -> None:
        """Pass bytes of a connection to the gate of the row that is running."""
        connection, position = frame.header.get("connection"), len(self._frames)
        if not isinstance(connection, int) or isinstance(connection, bool):
            raise ProtocolError("the sandbox sent bytes that belong to no connection")
        call_id = self._unanswered[position] if position < len(self._unanswered) else ""
        if (gate := self._gates.get(call_id)) is not None:
            gate.receive(connection, frame.body, end=frame.header.get("end") is True)
        elif frame.header.get("end") is not True:
            self.reply(connection, _NOT_NOW, end=True)

    def _close_gate(self, call_id: str) -> None:
        if (gate := self._gates.pop(call_id, None)) is not None:
            gate.close()

    def _new_id(self) -> str:
        self._last_id += 1
        self._unanswered.append(str(self._last_id))
        return self._unanswered[-1]

    async def _read_answer(self, limit_s: float, read: Callable[[Frame], _Read]) -> tuple[_Read, bool]:
        """Wait for an answer as `_answer` does.

        Return the answer as `read` parses it, and whether the call was stopped.
        """
        try:
            frame, stopped = await self._answer(limit_s, stops=True)
            return await _aside(frame, self._masking(read)), stopped
        finally:
            self._end_turn()

    async def _answer(self, limit_s: float, *, stops: bool = False) -> tuple[Frame, bool]:
        """Return the answer to the oldest unanswered call, and whether the call was stopped at its limit.

        Args:
          limit_s: Seconds, as `linux.work_clock` counts them.
          stops: Whether to cancel the call at its limit, so that the runner reports what it printed.
        """
        late = False
        try:
            frame = await self._next(limit_s)
        except _NoAnswer as no_answer:
            if not (stops and no_answer.timed_out):
                raise
            self.link.write(encode({"type": "cancel", "id": self._unanswered[0]}))
            frame = await self._next(self._grace_s, forgiving=False)
            late = True
        expected = self._unanswered.popleft()
        if self.rows:  # not for `prepare` and `load`, which come before the first row
            self._window.answered()
        if self._gates:
            self._close_gate(expected)
        if frame.header.get("id") != expected:
            raise _NoAnswer(f"got an answer to {frame.header.get('id')!r}, not to {expected!r}")
        return frame, late and await _aside(frame, messages.is_cancelled)

    def _flush(self) -> None:
        if not self._outgoing:
            return
        parts, self._outgoing = self._outgoing, []
        if sum(map(len, parts)) <= LARGE_BYTES:
            parts = [b"".join(parts)]
        for part in parts:
            self.link.write(part)

    async def _next(self, limit_s: float, *, forgiving: bool = True) -> Frame:
        if not self._frames:
            self._flush()
            clock = WorkClock(limit_s, far=self.link.far, forgiving=forgiving)
            gate = self._gates.get(self._unanswered[0]) if self._unanswered else None
            waited_s = gate.waited_s if gate is not None else 0.0
            while not await self._fill(clock.next_look_s, clock):
                self.weigh(long=True)
                before_s, waited_s = waited_s, gate.waited_s if gate is not None else 0.0
                clock.count(await self.link.look(), waited_s=waited_s - before_s)
                if (clock.expired or clock.starved) and not await self._fill(_LAST_READ_S, clock):
                    starved = not clock.expired
                    raise _NoAnswer("the runner did not answer in time", timed_out=not starved, starved=starved)
            if self._long:
                self.weigh(long=False)
            self.worked_s += clock.finish()
        return self._frames.popleft()

    async def _fill(self, timeout_s: float, clock: WorkClock) -> bool:
        """Read at least one frame, unless a frame was read already; return False if none came in time."""
        try:
            with self._limit.within(timeout_s):
                await self.link.drain()
                while not self._frames:
                    data = b""
                    if not self._left:
                        data = await self.link.read(patience_s=self._window.patience_s)
                        if not data:
                            raise _NoAnswer("the runner ended", ended=True)
                    await self._take(data)
                    if self._decoder.announced_bytes > LARGE_BYTES:
                        await self._take_turn(clock)
        except ProtocolError as error:
            raise _NoAnswer(str(error)) from error
        return not self._limit.expired

    async def _take(self, data: bytes) -> None:
        """Handle the frames that are complete now. Let other tasks run in between, even if a row sends very many.

        If this is cancelled, the next call handles the rest.
        """
        self._left, passed = True, False
        for count, frame in enumerate(self._decoder.feed(data), 1):
            if frame.type == "bytes":
                passed = True
                self._pass_on(frame)
            else:
                self._frames.append(frame)
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._left = False
        if passed:
            await asyncio.sleep(0)

    async def _take_turn(self, clock: WorkClock) -> None:
        """Wait until the large frame that is arriving may be read.

        The row's time does not include this wait.
        """
        # do not wait if large answers are not limited, if it is this sandbox's turn already, or if no time is left
        if self._turns is None or self._turn_bytes or self._limit.expired:
            return
        now = asyncio.get_running_loop().time
        since, left_s = now(), self._limit.pause()
        size = _DECODED_PER_BYTE * self._decoder.announced_bytes
        await self._turns.take(size)
        self._turn_bytes = size
        clock.leave_out(now() - since)
        self._limit.go_on(left_s)

    def _end_turn(self) -> None:
        if self._turns is not None and self._turn_bytes:
            self._turns.give_back(self._turn_bytes)
            self._turn_bytes = 0

    def _name_memory_kill(self, outcome: Failed) -> Failed:
        """Return a failure; change a crash to `memory_limit` if the kernel counted a kill at the memory limit.

        The runner cannot see such a kill. Other outcomes stay as they are, because in that case the killed process
        belonged to an earlier row.
        """
        known, self._memory_events = self._memory_events, self.link.memory_events()
        if self._memory_events == known or not messages.was_killed(outcome.error):
            return outcome
        return replace(outcome, error=messages.memory_error(self.spec.memory_mb))

    async def _failed(self, no_answer: _NoAnswer | ProtocolError, late: EvaluationError) -> Failed:
        exit_status = await self.destroy()
        if self._redactor is not None:
            exit_status = self._redactor.value(exit_status)
        if isinstance(no_answer, _NoAnswer):
            if no_answer.starved:
                raise HostBusy("this machine gave a sandbox too little processor time; try again")
            if no_answer.timed_out and not exit_status.lost:
                return Failed(late)
        code, message = classify_exit(exit_status, memory_mb=self.spec.memory_mb)
        if code is ErrorCode.SANDBOX_LOST:
            raise SandboxLost(
                f"the {self.backend} backend lost a sandbox; try again. {exit_status.stderr_tail[-300:]}".strip()
            )
        failed = Failed(EvaluationError(code, message))
        killed = exit_status.signal == signal.SIGKILL and isinstance(no_answer, _NoAnswer) and no_answer.ended
        # SIGABRT: Node aborts if an earlier row closed a standard stream, whose descriptor was then used for another
        # file.
        gave_up = exit_status.exit_code == RUNNER_GAVE_UP or exit_status.signal == signal.SIGABRT
        if code is ErrorCode.CRASHED and (killed or gave_up):
            raise RunnerGaveUp(failed, killed=killed)
        return failed

"""Runs rows in order: forks one row process at a time (before its call arrives), sends calls and answers, cleans up."""

from __future__ import annotations

import _socket
import os
import select
import time

from evaluator_runner import frames_out, kernel, row, zygote
from evaluator_runner.handles import Call, Listener, Lost, RowHandle, Starved, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from evaluator_runner.handles import Answer, ZygoteHandle
    from evaluator_runner.logs import Taken
    from evaluator_runner.supervisor import Supervisor
    from evaluator_runner.zygote import Job

_TICK_S = 0.05  # seconds between two checks for a dead row whose children keep its socket open
_IDLE_S = 1.0  # how long a shared process waits for its next call, in seconds
_AHEAD_CALLS = 32  # maximum number of unanswered calls in a shared process
_AHEAD_BYTES = 256 * 1024
_ERROR_BYTES = 256 * 1024  # number of bytes for an error's message and traceback as JSON
_FORK_TRIES = 50
# seconds within which a large call must pass from the host to its row; if it takes longer, the host or the row is late
_PASS_ON_S = 0.5
_EARLY_DEATHS = 3  # number of consecutive row processes that may die before their first call; then the sandbox ends
# how many times to check whether the row process is dead, 1 ms apart; a count, not a time limit, because each check
# takes longer on a busy machine
_DYING_TRIES = 200
_CANCELLED = ("cancelled", "the call was cancelled", None)


class Rows:
    """Takes calls off the supervisor's queue and answers them in order."""

    def __init__(self, supervisor: Supervisor, job: Job, *, reload: bool) -> None:
        self._supervisor = supervisor
        self._job = job
        self._reload = reload
        limits = job.header["limits"]
        self._logs = job.logs
        self._answer_bytes = int(limits["result_kb"]) * 1024 + _ERROR_BYTES
        self._row: RowHandle | None = None
        self._counter = kernel.ProcessCounter()
        self._load_error: Answer | None = None
        self._load_deadline = 0.0
        self._early_deaths = 0
        self._look_at = 0.0
        self._listener = None if reload else _listener()

    def dispatch(self) -> None:
        """Send the row process every call that it may take now; fork a row process if there is none."""
        if self._row is None:
            self._prepare()
        queue = self._supervisor.queue
        while queue and self._take(queue[0]):
            queue.popleft()
        if self._row is not None and self._row.outgoing.size:
            self._row.flush()
            arriving = self._supervisor.channel.arriving
            if arriving is not None and not arriving.late:
                arriving.late = not self._pass_on(self._row)
            self._supervisor.watch_writing(self._row.sock, wanted=self._row.outgoing.full)

    def _pass_on(self, handle: RowHandle) -> bool:
        """Move a large call from the channel to its row process; return False if the host or the row process is late.

        No copy of the call is kept in this process. The row does not run user code yet, and no other frame can arrive
        before the end of the call.
        """
        channel, outgoing, deadline = self._supervisor.channel, handle.outgoing, time.monotonic() + _PASS_ON_S
        while outgoing.size and channel.arriving is not None and not handle.ended:
            left = deadline - time.monotonic()
            reads, writes = ((), (handle.sock,)) if outgoing.full else ((channel.fd_in,), ())
            if left <= 0 or not any(select.select(reads, writes, (), left)):
                return False
            before = outgoing.size
            handle.flush()
            if outgoing.size == before and not outgoing.full:  # nothing arrived, so the channel has ended
                return False
        return True

    def _take(self, call: Call) -> bool:
        """Take the first call from the queue, unless it must wait; return whether the call was taken."""
        handle = self._row
        if handle is None:
            return False
        if call.cancelled and not handle.calls:
            self._supervisor.send_error(frames_out.failed_header(call), _CANCELLED)
            return True
        if self._load_error is not None:
            self._supervisor.channel.send(frames_out.failed_header(call), self._load_error.body)
            self._load_error = None
            self._retire()
            return True
        if not handle.ready:
            return False
        if handle.used:
            return self._take_shared(handle, call)
        handle.hand_over(call, more=call.share is not None)
        return True

    def _take_shared(self, handle: RowHandle, call: Call) -> bool:
        if call.share is None or call.share != handle.share:
            if not handle.calls:
                self._retire()
                if self._row is None:
                    self._prepare()
                return self._take(call)
            return False
        if len(handle.calls) >= _AHEAD_CALLS or handle.ahead_bytes >= _AHEAD_BYTES:
            return False
        handle.hand_over(call, more=True)
        return True

    @property
    def runs_one(self) -> bool:
        """Return whether there is a row process with unanswered calls."""
        return self._row is not None and bool(self._row.calls)

    def cancel(self, call_id: str) -> bool:
        """Cancel a call that was sent to the row process; return False if there is no such call."""
        handle = self._row
        if handle is None:
            return False
        if not handle.ready and self._supervisor.queue and self._supervisor.queue[0].id == call_id:
            self._cancel_reload(handle)
            return True
        for call in handle.calls:
            if call.id == call_id:
                call.cancelled = True
                if call is handle.calls[0]:
                    self._stop(handle, _CANCELLED)
                return True
        return False

    def _cancel_reload(self, handle: RowHandle) -> None:
        """Cancel the call that is waiting for the evaluator to be loaded again.

        The run time reported for the call starts with that load.
        """
        run_ms = (time.monotonic() - handle.started_at) * 1000
        self._supervisor.send_error(
            frames_out.failed_header(self._supervisor.queue.popleft(), run_ms=run_ms), _CANCELLED
        )
        handle.kill()
        self._retire()

    def patience_s(self) -> float | None:
        """Return how many seconds the main loop may sleep before `check_time` has to run, or None for no limit."""
        handle = self._row
        if handle is None:
            return 0.0
        now = time.monotonic()
        if handle.calls:
            limit: float = handle.calls[0].timeout_s
            return min(_TICK_S, handle.started_at + limit - now)
        if not handle.ready:
            return min(_TICK_S, self._load_deadline - now)
        return handle.started_at + _IDLE_S - now if handle.used else None

    def check_time(self) -> None:
        """End a row that is over its time limit, and notice if a row process died without closing its socket."""
        handle = self._row
        if handle is None:
            return
        now = time.monotonic()
        if handle.calls:
            call = handle.calls[0]
            if now >= handle.started_at + call.timeout_s:
                self._on_row()  # the answer may have arrived at the last moment
                if self._row is handle and handle.calls and handle.calls[0] is call:
                    self._stop(handle, frames_out.timeout(call.timeout_s, what="the row"))
            elif now >= self._look_at and self._looks_dead(handle, now):
                self._on_row()
                if self._row is handle and handle.calls and handle.calls[0] is call and not handle.heard:
                    self._died(handle)
        elif not handle.ready and now >= self._load_deadline:
            self._load_timed_out(handle)
        elif handle.used and now >= handle.started_at + _IDLE_S:
            self._retire()

    def _looks_dead(self, handle: RowHandle, now: float) -> bool:
        self._look_at = now + _TICK_S
        return kernel.is_dead(handle.pid)

    def kill(self) -> None:
        """Kill the row process before the runner ends."""
        if self._row is not None:
            self._row.kill()

    def _on_row(self) -> None:
        handle = self._row
        if handle is None:
            return
        if handle.outgoing.size:
            handle.flush()
            self._supervisor.watch_writing(handle.sock, wanted=handle.outgoing.full)
        try:
            for answer in handle.answers():
                self._deliver(handle, answer)
                if self._row is not handle:
                    return
        except ValueError:
            self._stop(handle, ("crashed", "the evaluator wrote to the connection that carries its result", None))
            return
        if handle.ended:
            self._died(handle)

    def _deliver(self, handle: RowHandle, answer: Answer) -> None:
        if not handle.calls:
            self._deliver_load(handle, answer)
            return
        call = handle.take_call()
        logs = self._printed(handle, answer)
        if call.cancelled:
            self._supervisor.send_error(frames_out.failed_header(call, logs=logs), _CANCELLED)
        else:
            failed = answer.kind != row.RESULT
            self._supervisor.channel.send(frames_out.answer_header(call, answer, failed=failed, logs=logs), answer.body)
        self._early_deaths = 0
        if call.share is None:
            self._retire()

    def _deliver_load(self, handle: RowHandle, answer: Answer) -> None:
        if handle.ready or answer.kind == row.RESULT:
            raise ValueError("a process sent a result without a request")
        handle.ready = True
        if answer.kind == row.FAILED:
            self._load_error = answer
        self._logs.discard()  # drop the output of this load, because the host already has that of the first load

    def _printed(self, handle: RowHandle, answer: Answer | None) -> Taken:
        """Return the output of a row.

        This is all output so far. If the next row may already print, it is only as many bytes as this row has counted.
        """
        self._logs.drain()
        if answer is None or not handle.calls:
            return self._logs.take()
        return self._logs.take(answer.out_bytes, answer.err_bytes)

    def _load_timed_out(self, handle: RowHandle) -> None:
        """Fail the waiting call because its load timed out; without a call, end the sandbox."""
        queue = self._supervisor.queue
        if not queue:
            raise Lost("a row process did not load in time")
        limit = float(self._job.header["timeout_s"])
        self._supervisor.send_error(
            frames_out.failed_header(queue.popleft()),
            frames_out.load_timeout(limit, what="loading the evaluator again"),
        )
        handle.kill()
        self._retire()

    def _stop(self, handle: RowHandle, error: tuple[str, str, str | None]) -> None:
        """End a row process and fail its first call with `error`."""
        peak = kernel.peak_memory_kb(handle.pid)
        handle.kill()
        self._fail(handle, error, peak)

    def _died(self, handle: RowHandle) -> None:
        """Fail the first call of a process that ended, or closed its socket, by itself."""
        for _ in range(_DYING_TRIES):
            if kernel.is_dead(handle.pid):
                break
            time.sleep(0.001)
        if not kernel.is_dead(handle.pid):
            self._stop(handle, ("crashed", "the evaluator closed the connection that carries its result", None))
            return
        if handle.own_child:
            seen = os.waitid(os.P_PID, handle.pid, os.WEXITED | os.WNOWAIT)
            code, status = (seen.si_code, seen.si_status) if seen else (0, 0)
        else:
            code, status = self._zygote().ask(zygote.LOOK)
        self._fail(handle, frames_out.death(code, status, while_="before returning"), None)

    def _fail(self, handle: RowHandle, error: tuple[str, str, str | None], peak_kb: int | None) -> None:
        """Fail the first call with `error`; put later calls back on the queue."""
        if not handle.calls:
            self._early_deaths += 1
            if self._early_deaths >= _EARLY_DEATHS:
                raise Lost("the processes for rows keep ending before they get a row")
            self._retire()
            return
        call = handle.calls.popleft()
        run_ms = (time.monotonic() - handle.started_at) * 1000
        self._supervisor.queue.extendleft(reversed(handle.calls))
        handle.calls.clear()
        logs = self._printed(handle, None)
        final = _CANCELLED if call.cancelled else error
        self._supervisor.send_error(frames_out.failed_header(call, run_ms=run_ms, peak_kb=peak_kb, logs=logs), final)
        self._retire()

    def _retire(self) -> None:
        """After a row's answer is sent, remove the row's processes, descriptors and files."""
        handle = self._row
        if handle is None:
            return
        self._supervisor.flush_now()
        self._row = None
        handle.kill()
        self._supervisor.end_connections()
        self._supervisor.forget(handle.sock)
        os.close(handle.sock)
        if handle.own_child:
            self._supervisor.clean(keep=())
        elif self._counter.last() != handle.pid:  # the row or another process has made threads or processes
            master = self._zygote()
            master.ask(zygote.REAP)
            self._supervisor.clean(keep=(master.pid,))
        else:
            self._prepare()  # fork the next row while the killed one is still ending
            self._supervisor.wipe()
        self._logs.discard()

    def _prepare(self) -> None:
        """Fork the next row process, which then waits for a call."""
        sock, pid = self._fork_own() if self._reload else self._fork_from_zygote()
        handle = RowHandle(sock, pid, answer_bytes=self._answer_bytes, own_child=self._reload)
        handle.started_at = time.monotonic()
        self._row = handle
        self._supervisor.watch(handle.sock, self._on_row)

    def _fork_own(self) -> tuple[int, int]:
        self._load_deadline = time.monotonic() + float(self._job.header["timeout_s"])
        try:
            ours, theirs = _socket.socketpair()
            pid = os.fork()
        except OSError as error:
            raise refused(error, "a row process could not be started") from error
        if pid == 0:
            zygote.run_row(self._job, theirs.fileno())
        theirs.close()
        ours.setblocking(False)  # noqa: FBT003 - positional in _socket
        return ours.detach(), pid

    def _fork_from_zygote(self) -> tuple[int, int]:
        master = self._zygote()
        for _ in range(_FORK_TRIES):
            try:
                return master.fork(self._listener, warm=not self._supervisor.queue)
            except BlockingIOError:
                time.sleep(_TICK_S)
        raise (
            Lost("the process that loaded the evaluator may not start processes")
            if _may_fork()
            else Starved("no process may start another one")
        )

    def _zygote(self) -> ZygoteHandle:
        if self._supervisor.zygote is None:
            raise Lost("no process has loaded the evaluator")
        return self._supervisor.zygote


def _listener() -> Listener | None:
    try:
        return Listener()
    except OSError:  # a sandbox that has network access may not make Unix sockets
        return None


def _may_fork() -> bool:
    """Return whether this process can still fork. Limits that a row sets for itself do not apply to this process."""
    try:
        pid = os.fork()
    except OSError:
        return False
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True

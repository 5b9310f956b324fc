"""Runs the runner's main loop: reads calls, writes answers, runs one row at a time and cleans up after each.

The supervisor never runs user code. Of all that user code writes, the supervisor decodes only the description of a
loaded evaluator.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import select
import sys
import time
from _collections import deque  # type: ignore[import-not-found]

from evaluator_runner import children, frames_out, jsontext, kernel
from evaluator_runner.channel import Arriving, BrokenChannel, Channel
from evaluator_runner.handles import Call, Lost, refused
from evaluator_runner.loading import Loading
from evaluator_runner.logs import Logs
from evaluator_runner.preimport_handle import Preparing
from evaluator_runner.relay import Relay
from evaluator_runner.rows import Rows
from evaluator_runner.scratch import Scratch
from evaluator_runner.survivors import end_survivors
from evaluator_runner.zygote import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from evaluator_runner.handles import ZygoteHandle
    from evaluator_runner.options import Options

# maximum number of bytes of answers that the host has not read; above this, no further row starts
_UNREAD_BYTES = 8 * 1024 * 1024


class Supervisor:
    """The process that exchanges frames with the host."""

    def __init__(self, fd_in: int, fd_out: int, *, options: Options) -> None:
        self.channel = Channel(fd_in, fd_out)
        self.options = options
        self.scratch: Scratch | None = None
        self.logs = Logs()
        self.queue: deque[Call] = deque()
        self.zygote: ZygoteHandle | None = None
        self.relay: Relay | None = None
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], object]] = {}
        self._preparing: Preparing | None = None
        self._loading: Loading | None = None
        self._rows: Rows | None = None
        self._writing = False
        self.watch(fd_in, self._on_channel)

    def run(self) -> None:
        """Serve until the channel ends."""
        _signal.signal(_signal.SIGTERM, _stop)
        # Ctrl-C in a terminal sends this signal to the runner, too, but the host ends the runner by closing the channel
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        try:
            while True:
                self._turn()
        except Lost as lost:
            sys.stderr.write(f"runner: {lost}\n")
            self._flush_last()
            raise SystemExit(lost.exit_code) from None
        except BrokenChannel as broken:
            sys.stderr.write(f"runner: {broken}\n")
            raise SystemExit(71) from None
        finally:
            self._end()

    def watch(self, fd: int, handler: Callable[[], object]) -> None:
        """Call `handler` when `fd` can be read, or has reached its end."""
        self._handlers[fd] = handler
        self._poll.register(fd, select.POLLIN)

    def watch_writing(self, fd: int, *, wanted: bool) -> None:
        """Set whether the handler of `fd` is also called when `fd` can be written to."""
        self._poll.modify(fd, select.POLLIN | select.POLLOUT if wanted else select.POLLIN)

    def forget(self, fd: int) -> None:
        """Stop watching `fd`."""
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def _turn(self) -> None:
        if self._rows is not None and self.channel.outgoing.size < _UNREAD_BYTES:
            self._rows.dispatch()
        self._flush()
        if self.relay is not None:
            self.relay.balance()
        for fd, _ in self._poll.poll(self._patience_ms()):
            handler = self._handlers.get(fd)
            if handler is not None:
                handler()
        for part in (self._preparing, self._loading, self._rows):
            if part is not None:
                part.check_time()

    def _patience_ms(self) -> float | None:
        waits = [part.patience_s() for part in (self._preparing, self._loading, self._rows) if part is not None]
        known = [wait for wait in waits if wait is not None]
        return max(0.0, min(known)) * 1000 + 0.5 if known else None

    def _flush(self) -> None:
        outgoing = self.channel.outgoing
        try:
            outgoing.flush()
        except OSError:
            raise SystemExit(0) from None  # the host has ended
        if (outgoing.size > 0) != self._writing:
            self._writing = outgoing.size > 0
            if self._writing:
                self._handlers[self.channel.fd_out] = self._flush
                self._poll.register(self.channel.fd_out, select.POLLOUT)
            else:
                self.forget(self.channel.fd_out)

    def flush_now(self) -> None:
        """Send the queued frames now, before slow work."""
        self._flush()

    def _on_channel(self) -> None:
        frames = self.channel.read()
        if frames is None:
            raise SystemExit(0)
        for header, body in frames:
            try:
                self._take(header, body)
            except (KeyError, TypeError, ValueError) as error:
                raise BrokenChannel(f"the host sent a frame that is not valid: {error!r}") from None

    def _take(self, header: dict[str, Any], body: bytes | memoryview | Arriving) -> None:
        kind = header.get("type")
        if kind == "call" or isinstance(body, Arriving):
            self.queue.append(Call(header, body))
        elif kind == "cancel":
            self._cancel(header["id"])
        elif kind == "bytes" and self.relay is not None:
            self.relay.take(header, bytes(body))
        elif kind == "load" and self._loading is None and self._rows is None:
            self._load(header, bytes(body))
        elif kind == "prepare" and self.scratch is None:
            self._preparing = Preparing(self, header, home=self._make_scratch(), logs=self.logs)
        else:
            raise BrokenChannel(f"the host sent a frame of type {kind!r}, which is not expected here")

    def _make_scratch(self) -> str:
        self.scratch = Scratch(private=self.options.private_tmp, data=self.options.data)
        return self.scratch.home

    def _load(self, header: dict[str, Any], body: bytes) -> None:
        if header.get("environment"):
            self._open_relay(header["environment"])
        prepared, imported = None, False
        if self._preparing is not None:
            prepared = self._preparing.take(header, body)
            imported = prepared is not None and self._preparing.imported
            self._preparing = None
        home = self.scratch.home if self.scratch is not None else self._make_scratch()
        self.logs.keep(int(header["limits"]["log_kb"]) * 1024)
        job = Job(header, body, options=self.options, home=home, logs=self.logs)
        if header.get("data_files") and self.scratch is not None:
            files = jsontext.decode(body.decode())["files"]
            self.scratch.seed({path: text.encode() for path, text in files.items()})
        self._loading = Loading(self, job, prepared=prepared, imported=imported)

    def give_to_children(self, job: Job) -> None:
        """Give every row the file from which its child processes load the evaluator."""
        if self.scratch is not None:
            self.scratch.seed({children.FILE: children.content(job.header, job.body)})

    def _open_relay(self, environment: dict[str, str]) -> None:
        """Open the port for connections to the host, and put its address into the variables of user code."""
        try:
            self.relay = Relay(self, is_open=lambda: self._loading is not None or self._runs_a_row())
        except OSError as error:
            raise refused(error, "the port for connections to the host could not be opened") from error
        for name, value in environment.items():
            environment[name] = value.replace("{address}", self.relay.address)

    def _runs_a_row(self) -> bool:
        return self._rows is not None and self._rows.runs_one

    def _cancel(self, call_id: str) -> None:
        if self._loading is not None and self._loading.cancel(call_id):
            return
        if self._rows is not None and self._rows.cancel(call_id):
            return
        for call in self.queue:
            if call.id == call_id:
                call.cancelled = True

    def loaded(self, job: Job, *, reload: bool) -> None:
        """Start to serve rows, after the evaluator has loaded.

        With `reload`, each row process loads the evaluator again.
        """
        self._loading = None
        self.end_connections()
        self._rows = Rows(self, job, reload=reload)

    def load_failed(self) -> None:
        """Wait for the end of the channel, because there is no evaluator to run."""
        self._loading = None
        self.clean(keep=())

    def end_connections(self) -> None:
        """Close the connections of user code to the host."""
        if self.relay is not None:
            self.relay.end_row()

    def clean(self, *, keep: Collection[int]) -> None:
        """End every process that is not in `keep`, and remove all leftover files.

        Raises:
          Lost: a process did not end.
        """
        if not end_survivors(self.zygote.pid if self.zygote is not None else 0, keep=keep):
            raise Lost("a process of a row cannot be ended")
        self.wipe()

    def wipe(self) -> None:
        """Remove leftover files. Call this only when no process can still write to them."""
        if self.scratch is not None:
            self.scratch.wipe()

    def left_at_load(self) -> str | None:
        """Return what is left outside the zygote after loading and would be shared by rows, or None."""
        if self.zygote is not None and any(pid != self.zygote.pid for pid in kernel.children_of(os.getpid())):
            return "processes"
        return "files" if self.scratch is not None and not self.scratch.is_empty() else None

    def send_error(self, header: str, error: tuple[str, str, str | None]) -> None:
        """Queue a frame with an `error` body."""
        self.channel.send(header, frames_out.error_body(*error))

    def _flush_last(self) -> None:
        deadline = time.monotonic() + 1.0
        while self.channel.outgoing.size and time.monotonic() < deadline:
            self._flush()
            select.select([], [self.channel.fd_out], [], 0.1)

    def _end(self) -> None:
        if self._rows is not None:
            self._rows.kill()
        if self.zygote is not None:
            self.zygote.end()
        end_survivors(0, keep=())
        if self.scratch is not None:
            self.scratch.remove()


def _stop(_number: int, _frame: object) -> None:
    raise SystemExit(0)

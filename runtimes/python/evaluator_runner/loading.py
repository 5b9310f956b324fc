"""Supervises a load: waits for the zygote's report, and handles the load's logs, time limit and failure."""

from __future__ import annotations

import time

from evaluator_runner import frames_out, jsontext, zygote
from evaluator_runner.handles import Lost, ZygoteHandle, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.supervisor import Supervisor
    from evaluator_runner.zygote import Job


class Loading:
    """A load in progress.

    Args:
      prepared: A preimport process that already has the job; None to start a new process.
      imported: Whether the preimport process imported packages; the evaluator might not need them.
    """

    def __init__(self, supervisor: Supervisor, job: Job, *, prepared: ZygoteHandle | None, imported: bool) -> None:
        self._supervisor = supervisor
        self._job = job
        self._timeout_s = float(job.header["timeout_s"])
        self._id: str = job.header["id"]
        self._started = time.monotonic()
        self._imported = imported
        self._zygote = prepared or self._fork()
        self._watch()
        for stream in (job.logs.out, job.logs.err):
            supervisor.watch(stream.fd, stream.read)

    def _fork(self) -> ZygoteHandle:
        try:
            return ZygoteHandle(lambda control: zygote.run(self._job, control))
        except OSError as error:
            raise refused(error, "the process that loads the evaluator could not be started") from error

    def _watch(self) -> None:
        self._supervisor.zygote = self._zygote
        self._supervisor.watch(self._zygote.fd, self._on_report)

    def patience_s(self) -> float:
        """Return the seconds until the load's time limit. The main loop may sleep for this time."""
        return self._started + self._timeout_s - time.monotonic()

    def check_time(self) -> None:
        """Fail the load if it is over its time limit."""
        if self.patience_s() <= 0 and self._supervisor.zygote is not None:
            self._give_up(frames_out.load_timeout(self._timeout_s, what="loading the evaluator"))

    def cancel(self, load_id: str) -> bool:
        """End the load if it has this id; return whether it has this id."""
        if load_id != self._id or self._supervisor.zygote is None:
            return False
        self._give_up(("cancelled", "the load was cancelled", None))
        return True

    def _on_report(self) -> None:
        try:
            report = self._zygote.report()
        except Lost:
            self._died()
            return
        if report is None:
            return
        kind, description, body = report
        loaded = kind == zygote.LOADED
        try:
            known = {} if kind == zygote.LOAD_FAILED else _describe(description)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            self._give_up(
                (
                    "crashed",
                    "the evaluator's code wrote to the connection between its sandbox and the host",
                    None,
                )
            )
            return
        if loaded:
            self._finish(known, body)
        elif not self._starts_again():
            self._answer("load_failed", {}, body)
            self._drop_zygote()
            self._supervisor.load_failed()

    def _starts_again(self) -> bool:
        """If preimported packages may have caused the failure, load again in a new process.

        Return whether the evaluator is loaded again.
        """
        if not self._imported or self.patience_s() < self._timeout_s / 2:
            return False
        self._imported = False
        self._drop_zygote()
        self._supervisor.clean(keep=())
        self._job.logs.discard()
        self._zygote = self._fork()
        self._watch()
        return True

    def _finish(self, known: dict[str, Any], body: bytes) -> None:
        """Answer the `load` call, and decide whether rows can be forked from the loaded process."""
        supervisor = self._supervisor
        if known.pop("pools"):
            supervisor.give_to_children(self._job)
        left = known.pop("left") or supervisor.left_at_load()
        if left is not None:
            code, name = _LEFT[left]
            message = f"loading the code left {name} behind, so each row loads it again in a separate process"
            known["notes"].append({"code": code, "message": message})
        self._answer("loaded", known, body)
        supervisor.flush_now()
        if left is not None:
            self._drop_zygote()
            supervisor.clean(keep=())
        supervisor.loaded(self._job, reload=left is not None)

    def _died(self) -> None:
        if self._starts_again():
            return
        status = self._zygote.end()
        self._supervisor.zygote = None
        self._give_up(frames_out.death_by_wait(status, while_="while loading"))

    def _give_up(self, error: tuple[str, str, str | None]) -> None:
        self._drop_zygote()
        self._answer("load_failed", {}, frames_out.error_body(*error))
        self._supervisor.load_failed()

    def _answer(self, kind: str, description: dict[str, Any], body: bytes) -> None:
        self._job.logs.drain()
        logs = self._job.logs.take()
        load_ms = (time.monotonic() - self._started) * 1000
        self._supervisor.forget(self._zygote.fd)
        self._supervisor.channel.send(
            frames_out.load_header(kind, self._id, description, load_ms=load_ms, logs=logs), body
        )

    def _drop_zygote(self) -> None:
        if self._supervisor.zygote is not None:
            self._supervisor.forget(self._zygote.fd)
            self._zygote.end()
            self._zygote.close()
            self._supervisor.zygote = None


def _describe(raw: bytes) -> dict[str, Any]:
    """Decode a zygote's description of its evaluator; raise ValueError or a similar error if its form is wrong."""
    description = jsontext.decode(raw.decode())
    if not isinstance(description["notes"], list) or description["left"] not in {None, *_LEFT}:
        raise ValueError("no description")
    known = {key: description[key] for key in (*_FIELDS, "left")}
    known["pools"] = description["pools"] is True
    return {**known, "together": True} if description["together"] is True else known


_LEFT = {
    "threads": ("threads_at_load", "threads"),
    "interpreters": ("threads_at_load", "interpreters"),
    "processes": ("threads_at_load", "processes"),
    "files": ("files_at_load", "files"),
    "descriptors": ("descriptors_at_load", "open files, sockets or pipes"),
    "memory": ("memory_at_load", "shared memory"),
}
_FIELDS = ("contract", "contract_source", "reason", "entry", "parameters", "notes")

"""Builds the frames that the supervisor writes: headers of answers to rows, and errors that the supervisor detects."""

from __future__ import annotations

from evaluator_runner import jsontext
from evaluator_runner.logs import logs_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.handles import Answer, Call

_CLD_EXITED = 1
_NAMES = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}  # fmt: skip
_SIGNAL_HINTS = {
    9: "the code killed its process, or memory ran out; if it was memory, use less at once, or raise limits.memory_mb",
    11: "a native extension crashed, recursion went too deep for the stack, or memory ran out (raise limits.memory_mb)",
    25: "a file grew beyond limits.disk_mb; write less, or raise limits.disk_mb",
    31: "the code made a system call that the sandbox does not allow",
}
_SIGXFSZ = 25
_NO_LOGS = ((b"", False), (b"", False))


def error_body(code: str, message: str, hint: str | None = None) -> bytes:
    """Return the body of a `failed` or `load_failed` frame."""
    empty = dict.fromkeys(("type", "line", "column", "traceback"))
    return jsontext.encode({"error": {"code": code, "message": message, **empty, "hint": hint}}).encode()


def answer_header(call: Call, answer: Answer, *, failed: bool, logs: Any = _NO_LOGS) -> str:
    """Return the header of a `result` or `failed` frame for the answer of a row process."""
    kind = "failed" if failed else "result"
    return (
        f'{{"type":"{kind}","id":{jsontext.quote(call.id)},"run_ms":{answer.run_ms},'
        f'"peak_memory_kb":{answer.peak_kb},"logs":{logs_json(*logs)}}}'
    )


def failed_header(call: Call, *, run_ms: float = 0.0, peak_kb: int | None = None, logs: Any = _NO_LOGS) -> str:
    """Return the header of a `failed` frame for a call that got no answer from a row process."""
    peak = "null" if peak_kb is None else str(peak_kb)
    return (
        f'{{"type":"failed","id":{jsontext.quote(call.id)},"run_ms":{run_ms:.3f},'
        f'"peak_memory_kb":{peak},"logs":{logs_json(*logs)}}}'
    )


def load_header(kind: str, load_id: str, description: dict[str, Any], *, load_ms: float, logs: Any) -> str:
    """Return the header of a `loaded` or `load_failed` frame."""
    fields = "".join([f",{jsontext.quote(name)}:{jsontext.encode(value)}" for name, value in description.items()])
    return (
        f'{{"type":"{kind}","id":{jsontext.quote(load_id)}{fields},"load_ms":{load_ms:.3f},"logs":{logs_json(*logs)}}}'
    )


def death(code: int, status: int, *, while_: str) -> tuple[str, str, str | None]:
    """Return the error code, message and hint for a process that ended by itself.

    `code` and `status` are its `si_code` and `si_status`. `while_` says in the message what the process was doing.
    """
    if code == 0:
        return "crashed", f"the evaluator's process ended {while_}", None
    if code == _CLD_EXITED:
        hint = "return a score instead of exiting"
        return "crashed", f"the evaluator's process exited with status {status} {while_}", hint
    name = _NAMES.get(status, f"signal {status}")
    message = f"the evaluator's process was killed by {name} {while_}"
    return "disk_limit" if status == _SIGXFSZ else "crashed", message, _SIGNAL_HINTS.get(status)


def death_by_wait(status: int, *, while_: str) -> tuple[str, str, str | None]:
    """Return the error code, message and hint for a process that ended with this wait status."""
    signal = status & 0x7F
    return death(2, signal, while_=while_) if signal else death(_CLD_EXITED, status >> 8, while_=while_)


def timeout(seconds: float, *, what: str) -> tuple[str, str, str]:
    """Return the error code, message and hint for a step (`what`) that took too long."""
    return "timeout", f"{what} did not finish within {seconds:g} s", "make it faster, or raise limits.timeout_s"


def load_timeout(seconds: float, *, what: str) -> tuple[str, str, str]:
    """Return the error code, message and hint for a load that took too long. The hint is advice to the author."""
    return "timeout", f"{what} did not finish within {seconds:g} s", "do less at module level, outside the function"

"""Controls the preimport process from the supervisor: its time limit, its answer, and the load that uses it.

If in doubt, the supervisor ends the process, and the load starts as if nothing had been imported.
"""

from __future__ import annotations

import time

from evaluator_runner import jsontext, kernel, preimport, zygote
from evaluator_runner.handles import Lost, ZygoteHandle, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.logs import Logs
    from evaluator_runner.supervisor import Supervisor

_REASON_CHARS = 300
_MEMORY_SHARE = 0.5  # share of the memory limit for imports; the rest is left for the evaluator
_DECIDES_IMPORTS = (  # words in code that may have to run before its packages are imported
    *(b"environ", b"putenv", b"sys.path", b"sys.modules", b"meta_path", b"path_hooks", b"__import__"),
)


class Preparing:
    """A process that imports packages, or has imported them and waits for a load."""

    def __init__(self, supervisor: Supervisor, header: dict[str, Any], *, home: str, logs: Logs) -> None:
        self._supervisor = supervisor
        self._id: str = header["id"]
        self._timeout_s = float(header["timeout_s"])
        self._order = order = preimport.Order(header, options=supervisor.options, home=home, logs=logs)
        self._started = time.monotonic()
        self._answered = False
        try:
            self._zygote = supervisor.zygote = ZygoteHandle(lambda control: preimport.run(order, control))
        except OSError as error:
            raise refused(error, "a process could not be started") from error
        supervisor.watch(self._zygote.fd, self._on_report)

    @property
    def imported(self) -> bool:
        """Return whether the process imported packages, which the load might not need."""
        return bool(self._order.modules)

    def patience_s(self) -> float | None:
        """Return the seconds for which the main loop may sleep before `check_time` must run; None after the imports."""
        return None if self._answered else self._started + self._timeout_s - time.monotonic()

    def check_time(self) -> None:
        """End the process if it is over its time limit."""
        patience_s = self.patience_s()
        if patience_s is not None and patience_s <= 0:
            self._give_up(f"importing took longer than {self._timeout_s:g} s")

    def take(self, header: dict[str, Any], body: bytes) -> ZygoteHandle | None:
        """Start a load in this process; return its zygote, or None if the load should use a new process."""
        if not self._answered:
            self._give_up("the evaluator came before the packages were imported")
        if self._supervisor.zygote is None:
            return None
        self._supervisor.logs.discard()  # only the output of the load is meant for the author
        if not self._suits(header, body) or not self._zygote.send(preimport.job_bytes(header, body)):
            self._drop()
            return None
        self._supervisor.forget(self._zygote.fd)
        return self._zygote

    def _suits(self, header: dict[str, Any], body: bytes) -> bool:
        """Return whether the evaluator will behave in this process exactly as it would in a new process."""
        limits = header["limits"]
        if any(int(limits[name]) != self._order.limits[name] for name in preimport.LIMITS):
            return False
        if not self.imported:
            return True
        if header["policy"] != "none" or header.get("check") or header.get("environment") or header.get("secrets"):
            return False  # an imported package may have read the environment before these variables were set
        if any(word in body for word in _DECIDES_IMPORTS):
            return False
        return any(module.partition(".")[0].encode() in body for module in self._order.modules)

    def _on_report(self) -> None:
        try:
            report = self._zygote.report()
            if report is None:
                return
            kind, description, _ = report
            if self._answered or kind != zygote.PREPARED:
                raise Lost("the process that imports packages sent an answer without a request")
            odd = jsontext.decode(description.decode())["odd"]
        except Lost:
            self._ended()
        except (ValueError, RecursionError, KeyError, TypeError):
            self._give_up("an imported package wrote to the connection between the sandbox and the host")
        else:
            self._judge(str(odd) if odd is not None else None)

    def _ended(self) -> None:
        if self._answered:
            self._drop()  # the load will use a new process
        else:
            self._give_up("importing ended the process")

    def _judge(self, odd: str | None) -> None:
        left = self._supervisor.left_at_load()
        memory_kb = kernel.private_memory_kb(self._zygote.pid)
        if odd is None and left is not None:
            odd = f"importing left {left} behind"
        if odd is None and memory_kb > self._order.limits["memory_mb"] * 1024 * _MEMORY_SHARE:
            odd = f"the packages take {memory_kb // 1024} MB"
        if odd is not None:
            self._give_up(odd)
        else:
            self._answer(None)

    def _give_up(self, reason: str) -> None:
        self._drop()
        self._answer(reason)

    def _answer(self, reason: str | None) -> None:
        self._answered = True
        self._supervisor.channel.send(
            jsontext.encode(
                {
                    "type": "prepared",
                    "id": self._id,
                    "ready": reason is None,
                    "reason": reason and reason[:_REASON_CHARS],
                    "prepare_ms": (time.monotonic() - self._started) * 1000,
                }
            )
        )

    def _drop(self) -> None:
        """End the process and its children, and remove their files and output."""
        supervisor = self._supervisor
        supervisor.forget(self._zygote.fd)
        self._zygote.end()
        self._zygote.close()
        supervisor.zygote = None
        supervisor.clean(keep=())
        supervisor.logs.discard()

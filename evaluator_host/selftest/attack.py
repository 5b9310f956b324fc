"""The format of an attack: its program, the outcomes that count as stopped, and the protections that stop it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from evaluator_host.types.evaluator import Isolation, Language, Limits
from evaluator_host.types.outcome import ErrorCode, Status

CALM_SCORE: Final = 0.25
"""The score that an attack's program gives a harmless row (`inputs["calm"]` is true), before and after the attack."""

SMALL: Final = Limits(timeout_s=20.0, memory_mb=128, processes=32, disk_mb=16)
"""Limits of an attack that names none. Sandboxes with equal limits can be used for any attack with these limits, so a
run is short if most attacks have the same limits."""


class Group(StrEnum):
    """The part of the system that an attack targets."""

    NETWORK = "network"
    FILES = "files"
    PROCESSES = "processes"
    MEMORY = "memory"
    OUTPUT = "output"
    CHANNEL = "channel"
    VALUES = "values"
    KERNEL = "kernel"
    CPU = "cpu"
    SOURCE = "source"
    NEIGHBOURS = "neighbours"
    GATEWAY = "gateway"  # the models that an evaluator was granted
    ESCAPE = "escape"  # escapes from the isolation that the language itself provides: contexts of V8
    HOST = "host"  # attacks that send requests to the host's API (`host.py`)


class Guard(StrEnum):
    """A protection by the sandbox, the runner or the host. `tests/attacks/weakened.py` can switch off each of them."""

    NETWORK = "network"  # an empty network namespace
    ROOT = "root"  # a root folder that has only the runtime, and no files of the host
    READ_ONLY = "read-only"  # a root folder that cannot be written to
    SCRATCH = "scratch"  # its own /tmp
    PROC = "proc"  # a process namespace, whose /proc shows no other processes
    IPC = "ipc"  # its own IPC namespace
    SECCOMP = "seccomp"
    # no capabilities, an unprivileged user, no new privileges, no further user namespaces
    CAPABILITIES = "capabilities"
    ENVIRONMENT = "environment"  # an environment without the host's variables
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"  # a /tmp of limited size
    TIMEOUT = "timeout"
    LOGS = "logs"  # the runner keeps at most `log_kb` of each stream
    RESULT = "result"  # the runner sends at most `result_kb` of a result
    ROWS = "rows"  # each row has its own process (Python) or context (JavaScript)
    CLEANING = "cleaning"  # the runner removes processes and files between rows
    CHANNEL = "channel"  # a row cannot reach the runner's descriptors and memory
    PRISTINE = "pristine"  # the runner does not use names that user code can replace
    ENCODING = "encoding"  # the runner encodes a returned value without trusting the value's own methods
    VERDICT = "verdict"  # a row that ends without an answer counts as failed
    STREAMS = "streams"  # the runner keeps reading a row's output, and trusts none of its streams
    ANSWERS = "answers"  # the runner checks the form of each answer that a row's process sends
    SOURCE = "source"  # the host cleans pasted code
    GATE = "gate"  # the host serves granted models only to the row that runs, within its budget, and keeps their keys
    HOST = "host"  # the host treats all that a sandbox sends as data, and the sandbox's end or silence as a failure


@dataclass(frozen=True, slots=True)
class Expected:
    """One outcome that means that the attack was stopped. If the outcome depends on the machine, an attack has several.

    Attributes:
      status: Status of the result. None if the host refuses the evaluator with InvalidRequest, before a sandbox starts.
      score: Exact score of a result with status `scored`; ignored for other statuses.
      codes: Error codes. A failed result must have one of these codes; if the tuple is empty, any code is accepted.
      mentions: Text that the error's message contains. `{load_timeout_s}` stands for the host's setting.
      truncated: Whether the logs were truncated. None if this does not matter.
      log: Exact standard output. None if it does not matter.
    """

    status: Status | None
    score: float | None = None
    codes: tuple[ErrorCode, ...] = ()
    mentions: str = ""
    truncated: bool | None = None
    log: str | None = None


NOTHING: Final = Expected(Status.SCORED, 0.0)
"""The program ran to its end, and reached nothing that it should not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A hostile evaluator. `attacks/README.md` says how to write one.

    Attributes:
      name: Unique name: lower-case words joined by hyphens. The name begins with `javascript-` if the language is not
        Python.
      group: The part of the system that the attack targets.
      code: The whole program.
      why: A sentence about the guard that stops the attack.
      expected: Outcomes, each of which means that the attack was stopped.
      without: Guards that stop the attack: it gets through if all of them are switched off. Empty if no guard can be
        switched off alone; then `seen` says how somebody saw the attack get through.
      seen: How somebody saw the attack get through, if `without` is empty.
      like: Numbers of known flaws in other sandboxes (`CVE-…`). The attack tests whether this host has these flaws.
      witness: A program of another workspace that runs while this attack's sandbox still exists. It looks for traces of
        the attack, and must find none.
      calm: Whether the program scores `CALM_SCORE` for a harmless row, which it gets after the attack. False for code
        that fails to load. The hostile row then runs a second time, and must have the same outcome.
      data: Paths of data files of the attack and its witness; each file contains `inputs["mark"]`.
      isolation: `batch` sends the hostile row and then a harmless row to the same process.
      safe: Whether `selftest` runs the attack. False for an attack that is costly and proves nothing about a
        deployment.
    """

    name: str
    group: Group
    code: str
    why: str
    language: Language = Language.PYTHON
    expected: tuple[Expected, ...] = (NOTHING,)
    limits: Limits = SMALL
    without: frozenset[Guard] = frozenset()
    seen: str = ""
    like: tuple[str, ...] = ()
    witness: str | None = None
    calm: bool = True
    data: tuple[str, ...] = ()
    isolation: Isolation = Isolation.ROW
    safe: bool = True

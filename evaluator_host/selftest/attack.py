"""The format of an attack: program, exact outcome, and the guards without which it gets through."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from evaluator_host.model.evaluator import Contract, Isolation, Json, Language, Limits
from evaluator_host.model.outcome import ErrorCode, Status

CALM_SCORE: Final = 0.25
"""What an attack's program scores for a calm row (`inputs["calm"]` is true), before and after its attack."""

SMALL: Final = Limits(timeout_s=20.0, memory_mb=128, processes=32, disk_mb=16)
"""Limits of most attacks: sandboxes of equal limits are interchangeable, so that few sorts keep a run short."""
BRIEF: Final = Limits(timeout_s=0.5, memory_mb=128, processes=32, disk_mb=16)
"""For those that hang until they are ended."""

_PYTHON_TAIL: Final = """

def evaluate(inputs, outputs, trace):
    if inputs["calm"]:
        return 1.0 if globals().get("left", lambda inputs: None)(inputs) else 0.25
    got = attack(inputs)
    return {"score": 1.0 if got else 0.0, "reason": str(got)[:400]}
"""

_JAVASCRIPT_TAIL: Final = """

async function evaluate(inputs, outputs, trace) {
  if (inputs.calm) return typeof left === "function" && (await left(inputs)) ? 1 : 0.25;
  const got = await attack(inputs);
  return { score: got ? 1 : 0, reason: String(got).slice(0, 400) };
}
"""


class Group(StrEnum):
    """What an attack goes for."""

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
    ESCAPE = "escape"  # from a language's own confinement: contexts of V8


class Guard(StrEnum):
    """One measure of the sandbox, named by what stops an attack; `tests/attacks/weakened.py` can take each away."""

    NETWORK = "network"  # a network namespace with nothing in it
    ROOT = "root"  # a root that holds the runtime only, nothing of the host's files
    READ_ONLY = "read-only"  # and cannot be written to
    SCRATCH = "scratch"  # a /tmp of its own
    PROC = "proc"  # a process namespace, and no other's /proc
    IPC = "ipc"
    SECCOMP = "seccomp"
    CAPABILITIES = "capabilities"  # none, an unprivileged user, no new privileges, no further user namespace
    ENVIRONMENT = "environment"  # a cleared environment
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"  # a /tmp of limited size
    TIMEOUT = "timeout"
    LOGS = "logs"  # the runner keeps `log_kb` of a stream
    RESULT = "result"  # the runner sends `result_kb` of a result
    ROWS = "rows"  # a process (Python) or context (JavaScript) for each row
    CLEANING = "cleaning"  # of processes and files between rows, by the runner
    CHANNEL = "channel"  # the runner's descriptors and memory are out of a row's reach
    PRISTINE = "pristine"  # the runner uses no name that user code can replace
    ENCODING = "encoding"  # the runner reads a returned value without believing it
    VERDICT = "verdict"  # the runner takes a row that ends without an answer for a failed one
    STREAMS = "streams"  # the runner reads a row's output all the time, and trusts none of its streams
    ANSWERS = "answers"  # the runner checks the form of what a row's process sends it
    SOURCE = "source"  # the host cleans pasted code
    HOST = "host"  # the host takes what a sandbox sends for data, and its end or silence for a failure


@dataclass(frozen=True, slots=True)
class Expected:
    """One outcome that counts as stopped; an attack may name several where the machine decides which.

    Attributes:
      status: Of the result; None: there is none, the host refused the evaluator.
      score: Exact score when scored; not looked at otherwise.
      codes: Any of these, when failed.
      mentions: What the error's message must contain.
      truncated: Whether the logs were cut; None: not looked at.
      log: What standard output must be, exactly; None: not looked at.
    """

    status: Status | None
    score: float | None = None
    codes: tuple[ErrorCode, ...] = ()
    mentions: str = ""
    truncated: bool | None = None
    log: str | None = None


def scores(score: float, **details: Any) -> Expected:
    """It came back as a result of exactly this score."""
    return Expected(Status.SCORED, score, **details)


def fails(*codes: ErrorCode, **details: Any) -> Expected:
    """It failed, by any of these codes."""
    return Expected(Status.FAILED, codes=codes, **details)


NOTHING: Final = scores(0.0)
"""It ran to its end and got hold of nothing."""
HANGS: Final = fails(ErrorCode.TIMEOUT, mentions="within 0.5 s")
"""It was ended at the limit of `BRIEF`."""
LOAD_HANGS: Final = fails(ErrorCode.TIMEOUT, mentions="within {load_timeout_s} s")
"""Loading was ended at the host's limit; the trial fills it in."""
REFUSED: Final = Expected(None)
"""The host does not take it: InvalidRequest, before any sandbox."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A hostile evaluator.

    Attributes:
      name: Unique; lower-case words joined by hyphens, begins with the language for languages other than Python.
      group: What it goes for.
      code: The whole program.
      expected: Any of these outcomes means that it was stopped.
      why: One sentence: the guard that stops it.
      without: With all of these guards gone it gets through; empty where none can be taken away on its own, and then
        `seen` says how it was seen failing.
      seen: See `without`.
      witness: A program of another workspace that runs while this one's sandbox still lives, and looks for what it left
        or holds; must get hold of nothing.
      calm: The program answers `CALM_SCORE` to a calm row. False for code that fails to load or has no tail: then it is
        run again instead, and must have the same outcome again.
      inputs: Beside those that the bait gives (see `bait.py`).
      isolation: `batch` sends the hostile row and then a calm one to the same process.
      safe: `selftest` runs it in production. False for what is costly and proves nothing of a deployment.
    """

    name: str
    group: Group
    code: str
    expected: tuple[Expected, ...]
    why: str
    language: Language = Language.PYTHON
    contract: Contract = Contract.AUTO
    limits: Limits = SMALL
    without: frozenset[Guard] = frozenset()
    seen: str = ""
    witness: str | None = None
    calm: bool = True
    inputs: dict[str, Json] = field(default_factory=dict)
    isolation: Isolation = Isolation.ROW
    safe: bool = True


def program_of(language: Language, body: str) -> str:
    """Return a whole program from one that defines `attack(inputs)`."""
    tail = _PYTHON_TAIL if language is Language.PYTHON else _JAVASCRIPT_TAIL
    return body.strip("\n") + "\n" + tail


def _details(details: dict[str, Any]) -> dict[str, Any]:
    made = dict(details)
    guards = made.get("without", ())
    made["without"] = frozenset((guards,) if isinstance(guards, Guard) else guards)
    if made.get("witness"):
        made["witness"] = program_of(made.get("language", Language.PYTHON), made["witness"])
    return made


def python(name: str, group: Group, program: str, *expected: Expected, why: str, **details: Any) -> Attack:
    """Return the attack of a Python program that defines `attack(inputs)`; nothing expected means `NOTHING`."""
    code = program_of(Language.PYTHON, program)
    return Attack(name, group, code, expected or (NOTHING,), why, **_details(details))


def javascript(name: str, group: Group, program: str, *expected: Expected, why: str, **details: Any) -> Attack:
    """Return the attack of a JavaScript program that defines `attack(inputs)`, which may be asynchronous."""
    code = program_of(Language.JAVASCRIPT, program)
    details = _details({"language": Language.JAVASCRIPT, **details})
    return Attack(name, group, code, expected or (NOTHING,), why, **details)


def whole(name: str, group: Group, code: str, *expected: Expected, why: str, **details: Any) -> Attack:
    """Return the attack of a program that is taken as it stands, without a tail, and is run twice to the same end."""
    return Attack(name, group, code, expected, why, **_details({"calm": False, **details}))

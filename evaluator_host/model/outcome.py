"""Frozen types of what came of an evaluation: the outcome, the error, the result. No I/O, no policy."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from evaluator_host.model.evaluator import Contract, Json, Language, Package, Row


class Status(StrEnum):
    """What became of one row."""

    SCORED = "scored"
    SKIPPED = "skipped"
    FAILED = "failed"


class ErrorCode(StrEnum):
    """Why a row failed. Only `sandbox_lost` is the host's fault, and retryable; `target_failed` is a model's."""

    SYNTAX_ERROR = "syntax_error"
    LOAD_ERROR = "load_error"
    ENTRY_NOT_FOUND = "entry_not_found"
    ENTRY_AMBIGUOUS = "entry_ambiguous"
    BINDING_ERROR = "binding_error"
    MISSING_INPUT = "missing_input"
    USER_EXCEPTION = "user_exception"
    INVALID_RESULT = "invalid_result"
    NON_FINITE = "non_finite"
    RESULT_TOO_LARGE = "result_too_large"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    PROCESS_LIMIT = "process_limit"
    DISK_LIMIT = "disk_limit"
    CRASHED = "crashed"
    POLICY_VIOLATION = "policy_violation"
    SANDBOX_LOST = "sandbox_lost"
    TARGET_FAILED = "target_failed"


class Kind(StrEnum):
    """What sort of value the guest returned, so that the host normalises without guessing."""

    NUMBER = "number"
    BOOL = "bool"
    STRING = "string"
    NULL = "null"
    MISSING = "missing"
    OBJECT = "object"
    ARRAY = "array"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Note:
    """Something a user should know though nothing failed: a coercion, an out-of-range score, a converted trace."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Logs:
    """What the guest printed, each stream cut at its limit (`log_kb`)."""

    stdout: str = ""
    stderr: str = ""
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class EvaluationError:
    """Why a row failed: `message` says what happened, `hint` what to do; lines and columns are the user's, from 1."""

    code: ErrorCode
    message: str
    type: str | None = None
    line: int | None = None
    column: int | None = None
    traceback: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluatorClass:
    """What an evaluator class says of itself in a check, in dialects whose evaluators are classes that can be listed.

    Attributes:
      line: Where it is defined.
      docstring: As it is in the class.
      id: What `get_evaluator_id()` returns.
      abstract: Methods that it lacks.
      error: Why it cannot be used.
      types: `{"evaluatorTypeId", "evaluatorConfigSchema", "evaluationCriteriaSchema", "justificationSchema"}`.
      config: Its configuration by default, keys in camelCase; null when there is a key without a default.
    """

    name: str
    line: int | None = None
    docstring: str | None = None
    id: str | None = None
    abstract: tuple[str, ...] = ()
    error: EvaluationError | None = None
    types: dict[str, Json] | None = None
    config: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a runner found in an evaluator: the contract that applies, why, the entry's parameters, what was printed.

    Attributes:
      together: It also scores all rows together.
      classes: Its evaluator classes; of a load that was asked to check.
    """

    contract: Contract
    contract_source: str
    reason: str
    entry: str
    parameters: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    load_ms: float = 0.0
    imports: tuple["MissingImport", ...] = ()
    bundle: Json = None
    logs: Logs = Logs()
    together: bool = False
    classes: tuple[EvaluatorClass, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingImport:
    """An import that neither a pin nor the standard library provides; `pin` is what it probably needs."""

    module: str
    line: int
    pin: str | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """A call that returned. `unsupported` names the type of a value with no JSON form and its path (`$.a[0]`)."""

    kind: Kind
    value: Json
    nonfinite: tuple[str, ...] = ()
    unsupported: tuple[str, str] | None = None
    notes: tuple[Note, ...] = ()
    logs: Logs = Logs()
    run_ms: float = 0.0
    peak_memory_kb: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A call or a load that did not return, and why. `imports` and `classes`: of a load that was asked to check."""

    error: EvaluationError
    logs: Logs = Logs()
    run_ms: float = 0.0
    peak_memory_kb: int | None = None
    imports: tuple[MissingImport, ...] = ()
    classes: tuple[EvaluatorClass, ...] = ()


Outcome: TypeAlias = Returned | Failed


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that an evaluator is not asked about, and why; no code runs for it."""

    note: Note


Given: TypeAlias = Row | EvaluationError | Skipped
"""A row to evaluate, or what stands in its place: why it could not be made, or why nobody is asked."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds spent waiting for a sandbox, preparing packages, loading the code, running it, and in all."""

    queue: float = 0.0
    environment: float = 0.0
    load: float = 0.0
    run: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class EvaluatorInfo:
    """Which evaluator scored, and by which contract (`contract_source`: declared or inferred)."""

    name: str | None
    version: int | None
    digest: str
    language: Language
    contract: Contract | None
    contract_source: str | None


@dataclass(frozen=True, slots=True)
class EnvironmentInfo:
    """On what it ran: runtime and every installed package."""

    digest: str
    runtime: str
    packages: tuple[Package, ...]


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """Where it ran; `warm` when the evaluator was loaded already. `peak_memory_kb` is the row's own peak."""

    backend: str
    warm: bool
    peak_memory_kb: int | None = None


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The one normalised result of a row, as `POST /v1/evaluate` answers it (docs/api.md)."""

    status: Status
    score: float | int | None
    passed: bool | None
    label: str | None
    reason: str | None
    metrics: dict[str, float | int]
    value: Json
    warnings: tuple[Note, ...]
    error: EvaluationError | None
    logs: Logs
    timing_ms: Timing
    evaluator: EvaluatorInfo
    environment: EnvironmentInfo
    sandbox: SandboxInfo

"""Frozen types of the outcome of an evaluation: the returned value, the error, the result. No I/O, no policy."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from evaluator_host.model.evaluator import Contract, EncodedRow, Json, Language, Package, Row


class Status(StrEnum):
    """The status of one row's result."""

    SCORED = "scored"
    SKIPPED = "skipped"
    FAILED = "failed"


class ErrorCode(StrEnum):
    """Why a row failed. The codes in `HOST_FAULTS` are worth a retry; `target_failed` is a model's fault."""

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
    HOST_BUSY = "host_busy"
    TARGET_FAILED = "target_failed"
    BUDGET_EXCEEDED = "budget_exceeded"


HOST_FAULTS: Final = frozenset({ErrorCode.SANDBOX_LOST, ErrorCode.HOST_BUSY})
"""Errors of rows that say nothing about the code: the host could not do its part."""


class Kind(StrEnum):
    """The type of the value that an evaluator returned, so that the host need not guess it from JSON."""

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
    """A warning about a row that did not fail: a coercion, an out-of-range score, a converted trace.

    Attributes:
      code: Stable, for programs.
      message: Message for people.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Logs:
    """The output that an evaluator printed.

    Attributes:
      stdout: Standard output, cut at the limit `log_kb`.
      stderr: Standard error, cut at the limit `log_kb`.
      truncated: Whether either was cut.
    """

    stdout: str = ""
    stderr: str = ""
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class FixCandidate:
    """Code as it may have been meant, and its unified diff to the pasted code without fences and the like."""

    code: str
    diff: str


@dataclass(frozen=True, slots=True)
class Fix:
    """How code that does not parse was probably meant.

    Attributes:
      unique: Only one text fits, and `code` and `diff` have it; otherwise both are None.
      candidates: If it is not unique, one or two texts that fit.
    """

    code: str | None
    diff: str | None
    unique: bool
    candidates: tuple[FixCandidate, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationError:
    """Why a row failed: a code, a message, and the place in the user's code.

    Attributes:
      code: Stable, for programs.
      message: What happened.
      type: Type of the user's exception, `ValueError`; None without one.
      line: Line of the user's code, from 1; None without one.
      column: Column of the user's code, from 1; None without one.
      traceback: Of the user's exception, without frames of the host; None without one.
      hint: What to do; None where nothing is known to help.
      fix: Of a `syntax_error`: the code as it was probably meant.
    """

    code: ErrorCode
    message: str
    type: str | None = None
    line: int | None = None
    column: int | None = None
    traceback: str | None = None
    hint: str | None = None
    fix: Fix | None = None

    @property
    def typed_message(self) -> str:
        """The message after the type of the user's exception: `ValueError: too long`."""
        return f"{self.type}: {self.message}" if self.type else self.message


@dataclass(frozen=True, slots=True)
class EvaluatorClass:
    """An evaluator class found by a check, in dialects whose evaluators are classes.

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
    """Facts about a loaded evaluator: the contract and why it applies, the function's parameters, printed output.

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
    """An import that neither a pin nor the standard library provides.

    Attributes:
      module: As imported; a module of one's own by its whole name, or relative path.
      line: Of the import, from 1.
      pin: The package that probably provides it; None when none does.
      file: Path of the evaluator's file that has the import; None for its code.
      path: Path under which the module would be found among the evaluator's `files`, when it is probably one's own.
    """

    module: str
    line: int
    pin: str | None = None
    file: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The value that a call returned. `unsupported` names type and path (`$.a[0]`) of a value without JSON form.

    `size_bytes` is about how much memory it takes.
    """

    kind: Kind
    value: Json
    nonfinite: tuple[str, ...] = ()
    unsupported: tuple[str, str] | None = None
    notes: tuple[Note, ...] = ()
    logs: Logs = Logs()
    run_ms: float = 0.0
    peak_memory_kb: int | None = None
    size_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a call or a load failed. `imports` and `classes` are set when the load was a check."""

    error: EvaluationError
    logs: Logs = Logs()
    run_ms: float = 0.0
    peak_memory_kb: int | None = None
    imports: tuple[MissingImport, ...] = ()
    classes: tuple[EvaluatorClass, ...] = ()
    size_bytes: int = field(default=0, compare=False)


Outcome: TypeAlias = Returned | Failed


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row for which an evaluator is not called, and why."""

    note: Note


Given: TypeAlias = Row | EncodedRow | EvaluationError | Skipped
"""A row to evaluate, or what stands in its place: why it could not be made, or why nobody is asked."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds that one row took, by phase.

    Attributes:
      queue: Waiting for a sandbox.
      environment: Preparing the packages.
      load: Loading the code; 0 in a warm sandbox.
      run: Running the code.
      total: From the call to the result.
    """

    queue: float = 0.0
    environment: float = 0.0
    load: float = 0.0
    run: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class EvaluatorInfo:
    """The evaluator, as shown in a result.

    Attributes:
      name: Of a stored evaluator; None for a pasted one.
      version: Of a stored evaluator; None for a pasted one.
      digest: `sha256:…` of its content.
      language: Language of its code.
      contract: The contract that applied; None when the code did not load.
      contract_source: `declared` or `inferred`; None when the code did not load.
      grants: Models, hosts and secrets that it was granted, as `Evaluator.grants`.
    """

    name: str | None
    version: int | None
    digest: str
    language: Language
    contract: Contract | None
    contract_source: str | None
    grants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvironmentInfo:
    """The environment, as shown in a result.

    Attributes:
      digest: `sha256:…` of the installed packages.
      runtime: Such as `python 3.13.5`.
      packages: Every installed package, requested or not.
    """

    digest: str
    runtime: str
    packages: tuple[Package, ...]


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """The sandbox, as shown in a result.

    Attributes:
      backend: `bubblewrap`, `docker` or `unsandboxed`.
      warm: Whether the evaluator was loaded already.
      peak_memory_kb: Peak memory of the row in kilobytes; None where it is not measured.
    """

    backend: str
    warm: bool
    peak_memory_kb: int | None = None


_USAGE_COUNTS: Final = ("requests", "replayed", "input_tokens", "output_tokens", "connections", "network_bytes")


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Requests, tokens, cost and time of a row at the models that its evaluator was granted.

    Attributes:
      requests: Requests that models answered, or failed to answer.
      replayed: Requests that recorded answers answered.
      input_tokens: Tokens of the requests to models.
      output_tokens: Tokens of their answers.
      cost: By the models' prices; None when a model without a price was asked.
      wait_ms: Milliseconds in which the row waited for an answer.
      connections: To other hosts.
      network_bytes: That these carried, both ways.
    """

    requests: int = 0
    replayed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    wait_ms: float = 0.0
    connections: int = 0
    network_bytes: int = 0

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        """Return both together; the cost is None where one of them has none."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in _USAGE_COUNTS}
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return ModelUsage(**counts, cost=cost, wait_ms=self.wait_ms + other.wait_ms)

    def scaled(self, factor: float) -> "ModelUsage":
        """Return the usage of so many times as much work, in whole requests, tokens and bytes."""
        counts = {name: round(getattr(self, name) * factor) for name in _USAGE_COUNTS}
        cost = None if self.cost is None else round(self.cost * factor, 9)
        return ModelUsage(**counts, cost=cost, wait_ms=round(self.wait_ms * factor, 3))


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The normalised result of one row, the answer of `POST /v1/evaluate` (docs/api.md).

    Attributes:
      status: `scored`, `failed`, or `skipped`: nobody was asked, or the evaluator does not apply to the row.
      score: Usually 0 to 1, never clamped; None unless the row scored, and for a result that has no score.
      passed: As the evaluator says, else whether the score reaches its threshold; None without either.
      label: Category that the evaluator returned, or None.
      reason: Explanation that the evaluator returned, or None.
      metrics: Every numeric or boolean output by name, dotted where nested; empty unless scored.
      value: The returned value as JSON, unchanged.
      warnings: Coercions, out-of-range scores, converted traces.
      error: Why the row failed; None unless it did.
      logs: Output of the code for this row.
      timing_ms: Milliseconds by phase.
      evaluator: The evaluator and its contract.
      environment: Runtime and packages.
      sandbox: Backend and memory.
      native: What the platform of its dialect would store: one object per named score, with the platform's own keys;
        empty in dialects without scores of their own.
      requests: Of the evaluator to models, with their responses: `{"request": {…}, "response": {…}}`, 1 MB at most.
      usage: What the row used of granted models; None for an evaluator without a grant.
    """

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
    native: tuple[dict[str, Json], ...] = ()
    requests: tuple[Json, ...] = ()
    usage: ModelUsage | None = None

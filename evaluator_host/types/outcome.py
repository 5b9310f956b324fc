"""Frozen types for the outcome of an evaluation: the returned value, the error, the result."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from .doc import Doc
from .evaluator import Contract, EncodedRow, Json, Language, Package, Row


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
"""Errors of rows that failed because of the host, not because of the evaluator's code."""


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
    """A warning about a row that did not fail: a converted value, a score out of range, a converted trace."""

    code: Annotated[str, Doc("Stable code of the warning, for programs.")]
    message: Annotated[str, Doc("What happened.")]
    remedy: Annotated[str | None, Doc("What to do about it; None if nothing needs to be done.")] = None

    @property
    def text(self) -> str:
        """Return what happened, and what to do about it."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


@dataclass(frozen=True, slots=True)
class Logs:
    """The output that an evaluator printed."""

    stdout: Annotated[str, Doc("Standard output, truncated at the limit `log_kb`.")] = ""
    stderr: Annotated[str, Doc("Standard error, truncated at the limit `log_kb`.")] = ""
    truncated: Annotated[bool, Doc("Whether standard output or standard error was truncated.")] = False


@dataclass(frozen=True, slots=True)
class FixCandidate:
    """Code that the author may have meant, and the unified diff between it and the pasted code.

    The diff ignores code fences and other text around the pasted code.
    """

    code: str
    diff: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A guess at the intended code or language, for code that does not parse."""

    code: str | None
    diff: str | None
    unique: Annotated[
        bool, Doc("Whether exactly one correction fits. If so, it is in `code` and `diff`; otherwise these are None.")
    ]
    candidates: Annotated[tuple[FixCandidate, ...], Doc("One or two of the corrections, if several fit.")] = ()


@dataclass(frozen=True, slots=True)
class EvaluationError:
    """Why a row failed: a code, a message, and the place in the user's code."""

    code: Annotated[ErrorCode, Doc("Stable code of the error, for programs.")]
    message: Annotated[str, Doc("What happened.")]
    type: Annotated[str | None, Doc("Type of the user's exception, `ValueError`; None if there is no exception.")] = (
        None
    )
    line: Annotated[int | None, Doc("Line of the user's code, from 1; None if it is not known.")] = None
    column: Annotated[int | None, Doc("Column of the user's code, from 1; None if it is not known.")] = None
    traceback: Annotated[
        str | None, Doc("Traceback of the user's exception, without frames of the host; None if there is no exception.")
    ] = None
    hint: Annotated[str | None, Doc("What to do; None if nothing is known to help.")] = None
    fix: Annotated[Fix | None, Doc("For a `syntax_error`, the code as it was probably meant.")] = None

    @property
    def typed_message(self) -> str:
        """Return the message after the type of the user's exception: `ValueError: too long`."""
        return f"{self.type}: {self.message}" if self.type else self.message


@dataclass(frozen=True, slots=True)
class EvaluatorClass:
    """An evaluator class found by a check, in dialects whose evaluators are classes."""

    name: str
    line: Annotated[int | None, Doc("Line on which the class is defined.")] = None
    docstring: Annotated[str | None, Doc("Docstring of the class, unchanged.")] = None
    id: Annotated[str | None, Doc("What `get_evaluator_id()` returns.")] = None
    abstract: Annotated[tuple[str, ...], Doc("Methods that the class lacks.")] = ()
    error: Annotated[EvaluationError | None, Doc("Why the class cannot be used.")] = None
    types: Annotated[
        dict[str, Json] | None,
        Doc('`{"evaluatorTypeId", "evaluatorConfigSchema", "evaluationCriteriaSchema", "justificationSchema"}`.'),
    ] = None
    config: Annotated[
        dict[str, Json] | None,
        Doc("The class's default configuration, with keys in camelCase; null when there is a key without a default."),
    ] = None


@dataclass(frozen=True, slots=True)
class ParameterFacts:
    """How a function's code uses one of the function's parameters."""

    name: str
    read: Annotated[bool, Doc("Whether the code reads the parameter.")] = False
    tested: Annotated[bool, Doc("Whether the code tests whether the parameter has a value.")] = False
    keys: Annotated[tuple[str, ...], Doc("Keys and attributes that the code reads from the parameter.")] = ()
    compared: Annotated[tuple[str, ...], Doc("Other parameters with which the code compares the whole parameter.")] = ()


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """Facts about a function's code, which a parser found in the sandbox."""

    name: Annotated[str, Doc("Name of the function; a method has its class before it: `Judge.score`.")]
    line: Annotated[int | None, Doc("Line on which the function begins, from 1; None if that is not known.")] = None
    rest: Annotated[bool, Doc("Whether the function reads arguments for which it has no parameter.")] = False
    parameters: Annotated[
        tuple[ParameterFacts, ...],
        Doc("The function's parameters, except those such as `*args` that take any number of arguments."),
    ] = ()


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """A field that code reads by a constant name (an attribute or a key), or a parameter whose value it tests."""

    of: Annotated[
        str | None, Doc("Name of the value that has the field; empty for a value without a name; None for a parameter.")
    ]
    key: Annotated[str, Doc("The name.")]
    tested: Annotated[bool, Doc("Whether the code tests the field or, with `if`, the value that has the field.")]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Facts about a loaded evaluator: the contract and why it applies, the function's parameters, printed output."""

    contract: Contract
    contract_source: str
    reason: str
    entry: str
    parameters: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    load_ms: float = 0.0
    imports: tuple["MissingImport", ...] = ()
    bundle: Annotated[bytes | None, Doc("Compiled code as JSON, for the next load of the same code.")] = None
    logs: Logs = Logs()
    together: Annotated[bool, Doc("Whether the evaluator also scores all rows together.")] = False
    classes: Annotated[tuple[EvaluatorClass, ...], Doc("The code's evaluator classes, if the load was a check.")] = ()
    facts: Annotated[
        tuple[FunctionFacts, ...],
        Doc("Facts about the functions that are called for a row; empty if they are not known."),
    ] = ()
    reads: Annotated[
        tuple[ReadFacts, ...],
        Doc("The fields that the evaluator's code reads, without its further files; empty if they are not known."),
    ] = ()
    not_loaded: Annotated[
        tuple[str, ...], Doc("Missing modules that the evaluator works without, as in a result.")
    ] = ()


@dataclass(frozen=True, slots=True)
class MissingImport:
    """An imported module that is neither in the standard library nor in a pinned package."""

    module: Annotated[
        str,
        Doc(
            "Name of the module as it is imported; for one of the author's own modules, its whole name or "
            "relative path."
        ),
    ]
    line: Annotated[int, Doc("Line of the import, from 1.")]
    pin: Annotated[str | None, Doc("The package that probably provides the module; None if no package does.")] = None
    file: Annotated[
        str | None, Doc("Path of the evaluator's file that has the import; None if its code has the import.")
    ] = None
    path: Annotated[
        str | None,
        Doc(
            "Path at which the module would be found among the evaluator's `files`, if it is probably one of the "
            "author's files. If `pin` is also set, it may be a package instead."
        ),
    ] = None
    names: Annotated[tuple[str, ...], Doc("Names that the code reads from the module; empty if not known.")] = ()
    problem: Annotated[str | None, Doc("Why no package provides the module here; None if a package does.")] = None
    optional: Annotated[bool, Doc("Whether the code can continue without the module.")] = False
    hint: Annotated[str | None, Doc("What to do; None if nothing is known to help.")] = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The value that a call returned.

    If a part of the value has no JSON form, `unsupported` contains the type and the path (`$.a[0]`) of this part.

    `imports` are the failed imports that the code caught; `unset_params` are the keys of `app_params` that the code
    read although they were not given. `size_bytes` is about how much memory the value takes.
    """

    kind: Kind
    value: Json
    nonfinite: tuple[str, ...] = ()
    unsupported: tuple[str, str] | None = None
    notes: tuple[Note, ...] = ()
    logs: Logs = Logs()
    run_ms: float = 0.0
    peak_memory_kb: int | None = None
    imports: tuple[MissingImport, ...] = ()
    unset_params: tuple[str, ...] = ()
    size_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a call or a load failed.

    `imports` are the failed imports, or after a check all imports that would fail. `classes` are set if the load was a
    check. `unset_params` are as in `Returned`.
    """

    error: EvaluationError
    logs: Logs = Logs()
    run_ms: float = 0.0
    peak_memory_kb: int | None = None
    imports: tuple[MissingImport, ...] = ()
    classes: tuple[EvaluatorClass, ...] = ()
    unset_params: tuple[str, ...] = ()
    size_bytes: int = field(default=0, compare=False)


Outcome: TypeAlias = Returned | Failed


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row for which the evaluator is not called, and the reason."""

    note: Note


Given: TypeAlias = Row | EncodedRow | EvaluationError | Skipped
"""A row to evaluate, or the reason why there is none: it could not be made, or the evaluator does not apply to it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds that one row took, by phase.

    The first row of each sandbox also waits for the sandbox and loads the code.
    """

    queue: Annotated[float, Doc("Time in which the row waited for a sandbox.")] = 0.0
    environment: Annotated[float, Doc("Time in which the host prepared the packages.")] = 0.0
    load: Annotated[float, Doc("Time in which the sandbox started and loaded the code; 0 in a warm sandbox.")] = 0.0
    run: Annotated[float, Doc("Time in which the code ran.")] = 0.0
    total: Annotated[
        float,
        Doc("Time of the whole call, including time that no other field counts, such as waiting for models."),
    ] = 0.0


@dataclass(frozen=True, slots=True)
class EvaluatorInfo:
    """The evaluator, as shown in a result."""

    name: Annotated[str | None, Doc("Name of a stored evaluator; None for a pasted one.")]
    version: Annotated[int | None, Doc("Version of a stored evaluator; None for a pasted one.")]
    digest: Annotated[str, Doc("`sha256:…` of the evaluator's content.")]
    language: Annotated[Language, Doc("Language of the evaluator's code.")]
    contract: Annotated[Contract | None, Doc("The contract that applied; None when the code did not load.")]
    contract_source: Annotated[str | None, Doc("`declared` or `inferred`; None when the code did not load.")]
    grants: Annotated[
        tuple[str, ...], Doc("Models, hosts and secrets that the evaluator was granted, as in `Evaluator.grants`.")
    ] = ()


@dataclass(frozen=True, slots=True)
class EnvironmentInfo:
    """The environment, as shown in a result."""

    digest: Annotated[str, Doc("`sha256:…` of the installed packages.")]
    runtime: Annotated[str, Doc("Such as `python 3.13.5`.")]
    packages: Annotated[tuple[Package, ...], Doc("Every installed package, requested or not.")]


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """The sandbox, as shown in a result."""

    backend: Annotated[str, Doc("`bubblewrap`, `docker` or `none`.")]
    warm: Annotated[bool, Doc("Whether the evaluator was already loaded in the sandbox.")]
    peak_memory_kb: Annotated[int | None, Doc("Peak memory of the row in kilobytes; None if it is not measured.")] = (
        None
    )


_USAGE_COUNTS: Final = (
    *("requests", "replayed", "input_tokens", "output_tokens", "connections", "network_bytes"),
    *("replayed_input_tokens", "replayed_output_tokens", "estimated"),
)


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Requests of a row to the models that its evaluator was granted, with tokens, cost and time."""

    requests: Annotated[int, Doc("Number of requests that models answered, or failed to answer.")] = 0
    replayed: Annotated[int, Doc("Number of requests that recorded answers served.")] = 0
    input_tokens: Annotated[int, Doc("Number of tokens of the requests to models.")] = 0
    output_tokens: Annotated[int, Doc("Number of tokens of the models' answers.")] = 0
    cost: Annotated[
        float | None, Doc("Cost by the prices of the models; None if a model without a price was called.")
    ] = 0.0
    wait_ms: Annotated[float, Doc("Milliseconds for which the row waited for answers.")] = 0.0
    connections: Annotated[int, Doc("Number of connections to other hosts.")] = 0
    network_bytes: Annotated[int, Doc("Bytes that these connections carried, in both directions.")] = 0
    replayed_input_tokens: Annotated[
        int, Doc("Number of tokens that `replayed` requests would have sent to models.")
    ] = 0
    replayed_output_tokens: Annotated[
        int, Doc("Number of tokens of the recorded answers to the `replayed` requests.")
    ] = 0
    replayed_cost: Annotated[float | None, Doc("What the replayed requests would have cost; None without a price.")] = (
        0.0
    )
    estimated: Annotated[
        int,
        Doc(
            "Number of requests whose tokens were estimated (four characters each), because the provider reported none."
        ),
    ] = 0

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        """Return the sum of both; a cost is None if one of the two has no cost."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in _USAGE_COUNTS}
        cost, replayed = _sum(self.cost, other.cost), _sum(self.replayed_cost, other.replayed_cost)
        return ModelUsage(**counts, cost=cost, wait_ms=self.wait_ms + other.wait_ms, replayed_cost=replayed)

    def without_replay(self) -> "ModelUsage":
        """Return the usage as it would be if models had answered the replayed requests."""
        return replace(
            self,
            requests=self.requests + self.replayed,
            input_tokens=self.input_tokens + self.replayed_input_tokens,
            output_tokens=self.output_tokens + self.replayed_output_tokens,
            cost=_sum(self.cost, self.replayed_cost),
            **dict.fromkeys(("replayed", "replayed_input_tokens", "replayed_output_tokens", "replayed_cost"), 0),
        )

    def scaled(self, factor: float) -> "ModelUsage":
        """Return this usage multiplied by a factor, with whole numbers of requests, tokens and bytes."""
        counts = {name: round(getattr(self, name) * factor) for name in _USAGE_COUNTS}
        costs = [None if cost is None else round(cost * factor, 9) for cost in (self.cost, self.replayed_cost)]
        return ModelUsage(**counts, cost=costs[0], wait_ms=round(self.wait_ms * factor, 3), replayed_cost=costs[1])


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The normalised result of one row, the response to `POST /v1/evaluate` (docs/api.md)."""

    status: Annotated[
        Status,
        Doc("`scored`, `failed`, or `skipped`: the evaluator did not have to score the row, or does not apply to it."),
    ]
    score: Annotated[
        float | int | None,
        Doc(
            "Usually 0 to 1, but never clamped to this range. None if the row was not scored, or the result has no "
            "score."
        ),
    ]
    passed: Annotated[
        bool | None,
        Doc("The evaluator's own verdict, or else whether the score reaches its threshold; None if there is neither."),
    ]
    label: Annotated[str | None, Doc("Category that the evaluator returned, or None.")]
    reason: Annotated[str | None, Doc("Explanation that the evaluator returned, or None.")]
    metrics: Annotated[
        dict[str, float | int],
        Doc("Every numeric or boolean output by name (nested outputs have names with dots); empty if the row failed."),
    ]
    value: Annotated[Json, Doc("The returned value as JSON, unchanged.")]
    warnings: Annotated[tuple[Note, ...], Doc("Warnings, such as a converted value or a score out of range.")]
    error: Annotated[EvaluationError | None, Doc("Why the row failed; None if it did not fail.")]
    logs: Annotated[Logs, Doc("Output of the code for this row.")]
    timing_ms: Annotated[Timing, Doc("Milliseconds by phase.")]
    evaluator: Annotated[EvaluatorInfo, Doc("The evaluator and its contract.")]
    environment: Annotated[EnvironmentInfo, Doc("Runtime and packages.")]
    sandbox: Annotated[SandboxInfo, Doc("Backend and memory.")]
    native: Annotated[
        tuple[dict[str, Json], ...],
        Doc(
            "What the platform that the evaluator was written for would store: one object per named score, with that "
            "platform's keys. Usually empty for this host's own contracts."
        ),
    ] = ()
    requests: Annotated[
        tuple[Json, ...],
        Doc(
            'Requests of the evaluator to models, with their responses: `{"request": {…}, "response": {…}}`, '
            "1 MB at most."
        ),
    ] = ()
    usage: Annotated[
        ModelUsage | None, Doc("How much the row used granted models; None for an evaluator without a grant.")
    ] = None
    not_loaded: Annotated[
        tuple[str, ...],
        Doc(
            "Imported modules, and names in them, that no pin provides and that this evaluator does without; code that "
            "uses one of them fails. At most 50."
        ),
    ] = ()

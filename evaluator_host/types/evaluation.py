"""Responses of the evaluation routes, except single results: batches, checks and facts about the host."""

from dataclasses import dataclass, field
from typing import Annotated

from .doc import Doc
from .evaluator import Json, Limits, ModelBudget
from .outcome import (
    EnvironmentInfo,
    EvaluationError,
    EvaluationResult,
    EvaluatorClass,
    Logs,
    MissingImport,
    Note,
)
from .warnings import WarningCount


@dataclass(frozen=True, slots=True)
class CaseProblem:
    """A test case whose result is not the expected one: `score 0.5, not 1 ± 0.05`."""

    case: str
    problem: str


@dataclass(frozen=True, slots=True)
class Reads:
    """The parts of a row that the code reads, as far as a parser can find them."""

    outputs: Annotated[
        tuple[str, ...], Doc("Names by which the code reads the outputs; empty if it does not read them.")
    ] = ()
    inputs: Annotated[tuple[str, ...], Doc("Keys of the inputs, or of the variables, that the code reads.")] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of loading an evaluator in a sandbox and running its cases; the response to `POST /v1/check`."""

    ok: Annotated[bool, Doc("Whether the evaluator loads, no import that it needs is missing, and all cases pass.")]
    contract: Annotated[str | None, Doc("The contract that applies; None when the evaluator does not load.")]
    contract_source: Annotated[str | None, Doc("`declared` or `inferred`; None when the evaluator does not load.")]
    reason: Annotated[str | None, Doc("Why this contract applies.")]
    parameters: Annotated[tuple[str, ...], Doc("Names of the parameters of the function or class that is called.")]
    missing_imports: Annotated[
        tuple[MissingImport, ...],
        Doc("Imports that the evaluator needs, and that neither a pin nor the standard library provides."),
    ]
    problems: Annotated[tuple[EvaluationError, ...], Doc("Why the evaluator does not load; empty when it does.")]
    notes: Annotated[tuple[Note, ...], Doc("Warnings, such as a parameter that is always null.")]
    environment: Annotated[EnvironmentInfo, Doc("The runtime and packages of the sandbox.")]
    logs: Annotated[Logs, Doc("Output of the code at module level.")] = field(default_factory=Logs)
    classes: Annotated[
        tuple[EvaluatorClass, ...],
        Doc("Evaluator classes in the code, in order of definition, including those that cannot be used."),
    ] = ()
    not_loaded: Annotated[
        tuple[str, ...],
        Doc(
            "Imported modules, and names in them, that no pin provides and that the evaluator can do without. At "
            "most 50."
        ),
    ] = ()
    models: Annotated[tuple[str, ...], Doc("Registered models that the evaluator may call, as in its `models`.")] = ()
    network: Annotated[tuple[str, ...], Doc("Other hosts that the evaluator may reach.")] = ()
    secrets: Annotated[
        dict[str, str], Doc("Names of the secrets that the code may see, keyed by environment variable.")
    ] = field(default_factory=dict)
    failing_cases: Annotated[
        tuple[CaseProblem, ...], Doc("Cases that failed; empty for an evaluator that does not load.")
    ] = ()
    rewritten: Annotated[
        str | None,
        Doc("With the warning `suspicious_parameters`: the code as it was probably meant, if that is clear."),
    ] = None
    reads: Annotated[Reads, Doc("What the code reads from a row; empty if the code does not load.")] = Reads()


@dataclass(frozen=True, slots=True)
class EditorName:
    """A name that fits at the cursor; `kind` is `function`, `class`, `property`, …, or `name` for imported names."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class EditorSignature:
    """The signature of a function, and the parameter at the cursor, if there is one."""

    text: str
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class EditorProblem:
    """A probable mistake that does not prevent loading: an undefined name, an unused variable."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class EditorAnswer:
    """The response to `POST /v1/editor`.

    It contains what the request asked for; all other fields are empty.
    """

    completions: Annotated[tuple[EditorName, ...], Doc("At most 1000.")] = ()
    text: Annotated[str | None, Doc("Kind and documentation of the name at the cursor.")] = None
    signatures: Annotated[tuple[EditorSignature, ...], Doc("Signatures of the call around the cursor, at most 3.")] = ()
    problems: Annotated[tuple[EditorProblem, ...], Doc("At most 50.")] = ()
    error: Annotated[EvaluationError | None, Doc("Why there is no answer, such as a time limit.")] = None
    run_ms: Annotated[float, Doc("Milliseconds that the answer took in the sandbox.")] = 0.0
    peak_memory_mb: Annotated[float | None, Doc("Peak memory of the sandbox's process; None if it is not known.")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class HostInfo:
    """Facts about the host, the response to `GET /v1/info`."""

    version: Annotated[str, Doc("Version of Evaluator Host.")]
    backend: Annotated[str, Doc("`bubblewrap`, `docker` or `none`.")]
    languages: Annotated[tuple[str, ...], Doc("Languages in which evaluators may be written.")]
    contracts: Annotated[tuple[str, ...], Doc("Contracts that evaluators may have.")]
    sandboxes: Annotated[int, Doc("Number of sandboxes that run now.")]
    max_sandboxes: Annotated[int, Doc("Maximum number of sandboxes at a time.")]
    waiting: Annotated[int, Doc("Number of calls that wait for a sandbox.")]
    default_limits: Annotated[Limits, Doc("Limits of an evaluator that sets none.")]
    limit_ceilings: Annotated[Limits, Doc("Highest limits that an evaluator may set.")]
    runtimes: Annotated[dict[str, str], Doc('Version of each runtime: `{"python": "3.13", "node": "24"}`.')] = field(
        default_factory=dict
    )
    pythons: Annotated[tuple[str, ...], Doc("Further minor versions of Python that evaluators may request.")] = ()
    contract_fields: Annotated[
        dict[str, tuple[str, ...]],
        Doc("For each contract, the fields of settings and rows that only some contracts use."),
    ] = field(default_factory=dict)
    contract_rows: Annotated[
        dict[str, dict[str, Json]],
        Doc("For each contract, an example of its platform's own row; a row's `variables` may be such a row."),
    ] = field(default_factory=dict)
    model_requests: Annotated[int, Doc("Maximum number of requests that one row may send to granted models.")] = 0
    model_day: Annotated[
        ModelBudget | None, Doc("How much a workspace may use models per day (UTC); None if there is no limit.")
    ] = None
    resources: Annotated[
        tuple[str, ...], Doc("Kinds of objects that the host stores: `jobs`, `labels`, `alerts`.")
    ] = ()
    wires: Annotated[
        tuple[str, ...], Doc("Names of the wires (routes for other platforms) that `EVALUATOR_HOST_WIRES` can turn on.")
    ] = ()


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """Counts, mean score and times of a batch."""

    rows: Annotated[int, Doc("Number of rows.")]
    scored: Annotated[int, Doc("Number of rows that were scored; the score of some may be null.")]
    failed: Annotated[int, Doc("Number of rows that failed.")]
    skipped: Annotated[int, Doc("Number of rows that the evaluator did not have to score.")]
    mean: Annotated[
        float | None, Doc("Mean score of the rows with a score, without failed rows; None if there are none.")
    ]
    pass_rate: Annotated[
        float | None,
        Doc("Of the rows with a verdict (`passed`), the fraction that passed, 0 to 1; None if no row has a verdict."),
    ]
    errors: Annotated[dict[str, int], Doc("Number of failed rows for each error code.")]
    rows_per_s: Annotated[float, Doc("Rows per second, over the whole batch.")]
    warnings: Annotated[
        tuple[WarningCount, ...], Doc("Warnings of the rows; those that make a score doubtful come first.")
    ] = ()
    doubt: Annotated[
        str | None,
        Doc(
            "Why no score can be relied on: all rows failed, none has a score, each score is doubtful, or the score of "
            "all rows together failed. None if a score can be relied on."
        ),
    ] = None
    mean_rows: Annotated[int, Doc("Number of rows over which the mean is computed.")] = 0
    judged: Annotated[int, Doc("Number of rows over which the pass rate is computed.")] = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """The response to `POST /v1/evaluate/batch`."""

    results: Annotated[tuple[EvaluationResult, ...], Doc("Results in the order of the rows.")]
    summary: Annotated[BatchSummary, Doc("Counts, mean and times of the results.")]
    together: Annotated[
        EvaluationResult | None,
        Doc("The score that the evaluator computes over all scored rows together; None if it computes none."),
    ] = None

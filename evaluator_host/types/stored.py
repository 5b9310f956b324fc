"""Responses about stored resources: named evaluators, their traces, data sets, secrets."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from .doc import Doc
from .evaluation import CaseProblem
from .evaluator import Contract, Evaluator, Json
from .jobs import EvaluatorScore
from .outcome import EnvironmentInfo, EvaluationError
from .proof import Proof


@dataclass(frozen=True, slots=True)
class Origin:
    """The evaluator version that a migrated version was made from."""

    version: Annotated[int, Doc("The legacy version.")]
    proof: Annotated[Proof, Doc("The proof that both versions score alike; its `differences` is empty.")]


@dataclass(frozen=True, slots=True)
class EvaluatorReport:
    """A version of a named evaluator, the response to `GET /v1/evaluators/{name}`."""

    name: Annotated[str, Doc("Name, unique within the workspace.")]
    version: Annotated[int, Doc("This version, from 1.")]
    latest: Annotated[int, Doc("The newest version.")]
    description: Annotated[str, Doc("Description, shown to users; the same for all versions.")]
    sampling: Annotated[float, Doc("Fraction of live traces to score, 0 to 1; the same for all versions.")]
    digest: Annotated[str, Doc("`sha256:…` of the content.")]
    contract: Annotated[Contract | None, Doc("The contract that applies; None when the evaluator did not load.")]
    contract_source: Annotated[str | None, Doc("`declared` or `inferred`; None when the evaluator did not load.")]
    problem: Annotated[
        EvaluationError | None, Doc("Why the evaluator did not load, for a version stored with `force`.")
    ]
    environment: Annotated[
        EnvironmentInfo | None, Doc("Runtime and packages; None when the evaluator pins no packages.")
    ]
    evaluator: Annotated[Evaluator, Doc("Code, settings and pins.")]
    created_at: Annotated[datetime, Doc("In UTC.")]
    created_by: Annotated[str | None, Doc("Id of the key that created this version; None on a host without keys.")]
    origin: Annotated[
        Origin | None, Doc("The version from which a migrated version was made; None for other versions.")
    ] = None
    cases: Annotated[tuple[dict[str, Json], ...], Doc("Rows with their expected results, as they were given.")] = ()
    failing_cases: Annotated[
        tuple[CaseProblem, ...] | None,
        Doc("Cases that failed when this version was stored; None in responses to other requests."),
    ] = None
    tags: Annotated[tuple[str, ...], Doc("Tags, sorted; the same for all versions.")] = ()
    message: Annotated[str, Doc("Why this version was created.")] = ""
    author: Annotated[str | None, Doc("Name of the key that created this version; None on a host without keys.")] = None
    last_job: Annotated[
        EvaluatorScore | None,
        Doc("The newest job with any version of the evaluator; None if there is none. Only lists have this field."),
    ] = None


@dataclass(frozen=True, slots=True)
class ReadyJudge:
    """A ready-made judge, to which you only add a model."""

    name: Annotated[str, Doc("`faithfulness`.")]
    title: Annotated[str, Doc("For people.")]
    description: Annotated[str, Doc("What the judge checks.")]
    threshold: Annotated[float, Doc("Lowest score with which a row passes.")]
    judge: Annotated[dict[str, Json], Doc("The form of the judge, without `model`.")]
    cases: Annotated[
        list[dict[str, Json]],
        Doc("Rows (`inputs`, `outputs`) with the `label` and the `reason` that a good model gives."),
    ]


@dataclass(frozen=True, slots=True)
class TraceReport:
    """A scored trace of live traffic."""

    number: Annotated[int, Doc("A number that rises with each trace; also the cursor of the next page.")]
    evaluator: Annotated[str, Doc("The version that scored the trace, `latency@2`.")]
    trace_id: Annotated[str, Doc("In hex.")]
    received_at: Annotated[datetime, Doc("In UTC.")]
    result: Annotated[dict[str, Any], Doc("The result, as `POST /v1/evaluate` returns it.")]
    trace: Annotated[
        dict[str, Json], Doc('The spans as OTLP/JSON, `{"resourceSpans": […]}` (opentelemetry.io/docs/specs/otlp).')
    ]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of an uploaded file that is not a valid row."""

    line: Annotated[int, Doc("Number of the line, from 1; in JSON and Parquet, the number of the item.")]
    message: Annotated[str, Doc("Why the line is not a valid row.")]


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """Size, columns and bad lines of a stored file of rows."""

    format: Annotated[str, Doc("Format of the uploaded file.")]
    rows: Annotated[int, Doc("Number of rows.")]
    bad_rows: Annotated[int, Doc("Number of lines that are not rows; these are not stored.")]
    bad_lines: Annotated[tuple[BadLine, ...], Doc("The first lines that are not rows.")]
    columns: Annotated[tuple[str, ...], Doc("Column names in order of appearance.")]
    size_bytes: Annotated[int, Doc("Size of the rows as JSON lines, in bytes.")]
    digest: Annotated[str, Doc("`sha256:…` of the rows as JSON lines.")]
    notes: Annotated[
        tuple[str, ...],
        Doc("Notes on how the file was read, if it differs from its format: another encoding, separator or sheet."),
    ] = ()


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """A data set, the response to `GET /v1/datasets/{name}`."""

    name: Annotated[str, Doc("Name of the data set; its id if the rows came with a job.")]
    id: Annotated[str, Doc("`ds_` and 16 hex digits.")]
    format: Annotated[str, Doc("Format of the uploaded file: `jsonl`, `csv`, `tsv`, `json`, `parquet` or `xlsx`.")]
    rows: Annotated[int, Doc("Number of rows.")]
    bad_row_count: Annotated[int, Doc("Number of lines that are not rows.")]
    bad_rows: Annotated[tuple[BadLine, ...], Doc("The first 100 lines that are not rows.")]
    columns: Annotated[tuple[str, ...], Doc("Column names in order of appearance, at most 1,000.")]
    size_bytes: Annotated[int, Doc("Size of the rows as JSON lines, in bytes.")]
    digest: Annotated[str, Doc("`sha256:…` of the rows as JSON lines.")]
    created_at: Annotated[datetime, Doc("In UTC.")]
    notes: Annotated[
        tuple[str, ...],
        Doc("Notes on how the file was read, if it differs from its format: another encoding, separator or sheet."),
    ] = ()
    version: Annotated[
        int, Doc("A number that rises whenever the data set is replaced or edited; `qa@2` names version 2.")
    ] = 1
    outputs_column: Annotated[
        str | None, Doc("Column that seems to have the outputs, judged by its name; None if no column does.")
    ] = None
    expected_column: Annotated[
        str | None, Doc("Column that seems to have the expected outputs, judged by its name; None if no column does.")
    ] = None


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row of a data set. `index` is its number, from 0."""

    index: int
    row: dict[str, Json]


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows that a search found, the response to `GET /v1/datasets/{name}/search`. `total` counts all of them."""

    rows: tuple[FoundRow, ...]
    total: int


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that differs between two data sets."""

    kind: Annotated[str, Doc("`changed`, `added` or `removed`.")]
    index: Annotated[
        int, Doc("Number of the row in the later data set, from 0; for a removed row, its number in the earlier one.")
    ]
    before: Annotated[dict[str, Json] | None, Doc("The row in the earlier data set; None if the row was added.")]
    after: Annotated[dict[str, Json] | None, Doc("The row in the later data set; None if the row was removed.")]


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The response to `GET /v1/datasets/{name}/changes`: some rows that differ, and how many there are of each kind."""

    rows: tuple[RowChange, ...]
    changed: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class TopValue:
    """A frequent value of a column, as text of at most 200 characters."""

    value: str
    count: int


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Statistics of one column of a data set."""

    name: Annotated[str, Doc("Name of the column.")]
    present: Annotated[int, Doc("Number of rows with a value that is not null.")]
    missing: Annotated[int, Doc("Number of rows in which the value is null or missing.")]
    kinds: Annotated[dict[str, int], Doc("Rows by kind of value: `text`, `number`, `bool`, `list`, `object`, `null`.")]
    distinct: Annotated[int | None, Doc("Number of different values, compared as texts; None for over 10,000.")]
    top: Annotated[tuple[TopValue, ...], Doc("The five most frequent of the first 10,000 different values.")]
    min: Annotated[
        float | None,
        Doc("Lowest value; like `max` and `mean`, None unless all values are numbers, or texts that contain numbers."),
    ]
    max: Annotated[float | None, Doc("Highest value.")]
    mean: Annotated[float | None, Doc("Mean value.")]
    min_length: Annotated[int | None, Doc("Number of characters in the shortest text; None if there are no texts.")]
    max_length: Annotated[int | None, Doc("Number of characters in the longest text.")]
    empty: Annotated[
        int, Doc("Number of rows with an empty text, such as an empty cell in CSV; `present` counts them, too.")
    ] = 0


@dataclass(frozen=True, slots=True)
class SecretReport:
    """A secret of a workspace, without its value."""

    name: Annotated[str, Doc("Name, unique within the workspace.")]
    created_at: Annotated[datetime, Doc("In UTC.")]
    updated_at: Annotated[datetime, Doc("When the value was last set, in UTC.")]
    in_code: Annotated[
        bool,
        Doc(
            "Whether the operator lets evaluators' code see the secret if it is granted (EVALUATOR_HOST_CODE_SECRETS)."
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that evaluators of the workspace may read, the response to `POST /v1/data`."""

    digest: Annotated[
        str, Doc("Digest of the file, `sha256:` and 64 hex digits, by which an evaluator's `data` refers to it.")
    ]
    size_bytes: int
    created_at: Annotated[datetime, Doc("In UTC.")]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The storage of a workspace, the response to `GET /v1/usage`. Package sets are shared, and not counted."""

    workspace: Annotated[str, Doc("Name of the workspace.")]
    quota_bytes: Annotated[int, Doc("Bytes that the workspace may store; 0 for no limit.")]
    total_bytes: Annotated[int, Doc("Bytes that the workspace stores: the sum of the following fields.")] = 0
    datasets_bytes: Annotated[int, Doc("Bytes of the rows of data sets, including those that came with jobs.")] = 0
    files_bytes: Annotated[
        int, Doc("Bytes of files and other objects that were stored through routes for other platforms.")
    ] = 0
    evaluators_bytes: Annotated[
        int, Doc("Bytes of stored versions of evaluators, with the locks of their packages.")
    ] = 0
    jobs_bytes: Annotated[int, Doc("Bytes of jobs, with their evaluators, results and answers of models.")] = 0
    traces_bytes: Annotated[int, Doc("Bytes of scored traces of live traffic.")] = 0
    labels_bytes: Annotated[int, Doc("Bytes of label queues.")] = 0

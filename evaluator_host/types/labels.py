"""Responses about queues of rows that wait for people to label them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from .doc import Doc
from .evaluator import Json
from .results import JobRow


class LabelKind(StrEnum):
    """The labels that people give: whether a row passes, a score, or one of some choices."""

    PASSED = "passed"
    SCORE = "score"
    CHOICE = "choice"


class RowChoice(StrEnum):
    """Which rows of a job a label queue contains."""

    ALL = "all"
    SCORED = "scored"
    FAILED = "failed"
    PASSED = "passed"
    NOT_PASSED = "not_passed"


@dataclass(frozen=True, slots=True)
class LabelTask:
    """Task of the people who label the rows of a queue."""

    kind: Annotated[LabelKind, Doc("The kind of label to give.")] = LabelKind.PASSED
    choices: Annotated[tuple[str, ...], Doc("The labels of a queue of kind `choice`.")] = ()
    min: Annotated[float, Doc("The lowest score.")] = 0.0
    max: Annotated[float, Doc("The highest score.")] = 1.0
    instructions: Annotated[str, Doc("Instructions for the people who label.")] = ""
    show_results: Annotated[
        bool, Doc("Whether a waiting row shows the results of evaluators, which may influence people.")
    ] = False


@dataclass(frozen=True, slots=True)
class Labeller:
    """A person who labels rows of a queue, and how many rows this person has labelled and skipped.

    `name` is None if the person gave no name and the host has no keys.
    """

    name: str | None
    labelled: int
    skipped: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """A queue of rows, the response to `GET /v1/label-queues/{name}`."""

    name: Annotated[str, Doc("Name, unique within the workspace.")]
    job: Annotated[str | None, Doc("Id of the job that the rows come from; None for rows of a data set.")]
    dataset: Annotated[
        str | None, Doc("Name of the data set when the queue was created; None for rows that came with a job.")
    ]
    dataset_id: Annotated[
        str, Doc("Id of this version of the data set, which stays the same when the data set is edited.")
    ]
    task: Annotated[LabelTask, Doc("The task of the people who label.")]
    rows: Annotated[int, Doc("Number of rows.")]
    labelled: Annotated[int, Doc("Number of rows with a label.")]
    skipped: Annotated[int, Doc("Number of rows that people skipped.")]
    waiting: Annotated[int, Doc("Number of rows that wait for a label.")]
    people: Annotated[tuple[Labeller, ...], Doc("The people who label, and how many rows each has labelled.")]
    created_at: Annotated[datetime, Doc("In UTC.")]


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """A row of a queue without its data."""

    index: Annotated[int, Doc("Number of the row in the data set, from 0.")]
    state: Annotated[str, Doc("`waiting`, `labelled` or `skipped`.")]
    label: Annotated[Json, Doc("true or false, a number, or one of the choices; None if the row has no label.")]
    note: Annotated[str, Doc("Note that the person added to the label.")]
    by: Annotated[str | None, Doc("Name of the key, or the name that the person gave on a host without keys.")]
    at: Annotated[datetime | None, Doc("When the row was labelled or skipped, in UTC.")]


@dataclass(frozen=True, slots=True)
class LabelPage:
    """Rows of a queue. `next_after` is the `after` of the next page; None on the last page."""

    rows: tuple[LabelEntry, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True)
class LabelRow(LabelEntry):
    """A row of a queue with its data."""

    row: Annotated[dict[str, Json], Doc("The row of the data set.")]
    given: Annotated[
        dict[str, Json] | None,
        Doc("The row as evaluators get it, with the outputs of a job's model; None for a data set."),
    ]
    results: Annotated[
        tuple[JobRow, ...], Doc("Results of the job; empty for a waiting row, unless the queue shows results.")
    ]

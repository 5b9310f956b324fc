"""Responses about queues of rows that wait for labels of people."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from evaluator_host.model.evaluator import Json
from evaluator_host.schemas.results import JobRow


class LabelKind(StrEnum):
    """The labels that people give: whether a row passes, a score, or one of some choices."""

    PASSED = "passed"
    SCORE = "score"
    CHOICE = "choice"


class RowChoice(StrEnum):
    """The rows of a job that a queue takes."""

    ALL = "all"
    SCORED = "scored"
    FAILED = "failed"
    PASSED = "passed"
    NOT_PASSED = "not_passed"


@dataclass(frozen=True, slots=True)
class LabelTask:
    """Task of the people who label the rows of a queue.

    Attributes:
      kind: Kind of the labels.
      choices: The labels of a queue of kind `choice`.
      min: The least score.
      max: The greatest score.
      instructions: For the people.
      show_results: Whether a waiting row shows the results of evaluators, which sway people.
    """

    kind: LabelKind = LabelKind.PASSED
    choices: tuple[str, ...] = ()
    min: float = 0.0
    max: float = 1.0
    instructions: str = ""
    show_results: bool = False


@dataclass(frozen=True, slots=True)
class Labeller:
    """A person's part of a queue. `name` is None for those who gave no name on a host without keys."""

    name: str | None
    labelled: int
    skipped: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """A queue of rows, the answer of `GET /v1/label-queues/{name}`.

    Attributes:
      name: Unique within the workspace.
      job: Id of the job whose rows it has; None for a data set.
      dataset: Name of the data set when the queue was made; None for rows that came with a job.
      dataset_id: Its id, which stays when the data set is edited.
      task: What people are asked.
      rows: Number of rows.
      labelled: Rows with a label.
      skipped: Rows that people left out.
      waiting: Rows without either.
      people: Who labelled how much.
      created_at: In UTC.
    """

    name: str
    job: str | None
    dataset: str | None
    dataset_id: str
    task: LabelTask
    rows: int
    labelled: int
    skipped: int
    waiting: int
    people: tuple[Labeller, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """A row of a queue without its data.

    Attributes:
      index: Number of the row in the data set, from 0.
      state: `waiting`, `labelled` or `skipped`.
      label: true or false, a number, or one of the choices; None without a label.
      note: What the person added.
      by: Name of the key, or the name that the person gave on a host without keys.
      at: When it was labelled or skipped, in UTC.
    """

    index: int
    state: str
    label: Json
    note: str
    by: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class LabelPage:
    """Rows of a queue. `next_after` is the `after` of the next page; None on the last one."""

    rows: tuple[LabelEntry, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True)
class LabelRow(LabelEntry):
    """A row of a queue with its data.

    Attributes:
      row: The row of the data set.
      given: The row as evaluators get it, with the outputs of a job's model; None for a data set.
      results: Results of the job; none of a waiting row, unless the queue shows them.
    """

    row: dict[str, Json]
    given: dict[str, Json] | None
    results: tuple[JobRow, ...]

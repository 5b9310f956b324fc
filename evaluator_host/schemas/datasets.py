"""Answers of the routes of data sets."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of an uploaded file that is no row.

    Attributes:
      line: Its number, from 1; the number of the item in JSON and Parquet.
      message: Why it is no row.
    """

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """A data set, the answer of `GET /v1/datasets/{name}`.

    Attributes:
      name: Its name; its id for rows that came with a job.
      id: `ds_` and 16 hex digits.
      format: Format of the uploaded file: `jsonl`, `csv`, `tsv`, `json` or `parquet`.
      rows: Number of rows.
      bad_row_count: Number of lines that are no row.
      bad_rows: The first 100 of these lines.
      columns: Column names in order of appearance, at most 1,000.
      size_bytes: Size of the rows as JSON lines, in bytes.
      digest: `sha256:…` of the rows as JSON lines.
      created_at: In UTC.
    """

    name: str
    id: str
    format: str
    rows: int
    bad_row_count: int
    bad_rows: tuple[BadLine, ...]
    columns: tuple[str, ...]
    size_bytes: int
    digest: str
    created_at: datetime

"""Data sets, as a host shows them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of the file that is no row, and why."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """A data set, as the API shows it.

    Attributes:
      format: Of the file that was sent.
      bad_rows: The first lines that are no row, and why.
      bad_row_count: How many there are.
      columns: Names found in the rows.
      size_bytes: Of the rows as they are kept.
      digest: Of the same.
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

"""Defines the result of an evaluation: the rows with their outputs, and the statistics over all rows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from . import summaries
from .aggregates import (
    AggregatedMetricResult,
    AggregateRangeScore,
    AggregateRubricScore,
    AggregateScore,
    AggregateScoreBase,
    Histogram,
    HistogramBin,
    Percentiles,
    RubricScoreStat,
)
from .protocol import MetricDiagnostic, MetricOutput

__all__ = [
    "AggregateFieldName",
    "AggregateRangeScore",
    "AggregateRubricScore",
    "AggregateScore",
    "AggregateScoreBase",
    "AggregatedMetricResult",
    "BenchmarkEvaluationResult",
    "EvaluationResult",
    "Histogram",
    "HistogramBin",
    "Percentiles",
    "ResultView",
    "RowScore",
    "RubricScoreStat",
]

ResultView = Literal["rows", "aggregate"]
AggregateFieldName = Literal[
    *("nan_count", "sum", "mean", "min", "max", "std_dev", "variance", "score_type", "percentiles", "histogram"),
    *("rubric_distribution", "mode_category"),
]
_ROWS = 10
_ROWS_AS_TEXT = 5


class RowScore(BaseModel):
    """A row, the scored output, and the result of each metric."""

    model_config = ConfigDict(defer_build=True, extra="allow")

    row_index: int | None = Field(default=None, ge=0)
    item: dict[str, Any]
    sample: dict[str, Any]
    metrics: dict[str, list[MetricOutput]]
    requests: list[dict[str, Any]]
    metric_errors: dict[str, str] | None = None
    metric_diagnostics: dict[str, list[MetricDiagnostic]] | None = None

    @property
    def error(self) -> str | None:
        """The errors of all metrics in one string; None if no metric failed."""
        found = (self.metric_errors or {}).items()
        return "; ".join(f"{key}: {message}" for key, message in found) or None

    @property
    def status(self) -> str:
        """`error` if a metric failed, else `ok`."""
        return "error" if self.error else "ok"

    def position(self, index: int) -> int:
        """Return the row's own index if it has one, else `index`."""
        return index if self.row_index is None else self.row_index


class _Result(BaseModel):
    """The parts that the results of one metric and of several metrics share."""

    model_config = ConfigDict(defer_build=True)

    row_scores: list[RowScore]
    aggregate_scores: AggregatedMetricResult

    def to_records(self, view: ResultView = "rows") -> list[dict[str, Any]]:
        """Convert the rows or the statistics to flat records.

        Raises:
          ValueError: there is no such view.
        """
        if view == "aggregate":
            return [summaries.aggregate_record(score) for score in self.aggregate_scores.scores]
        if view != "rows":
            raise ValueError(f"Unsupported view {view!r}. Expected 'rows' or 'aggregate'.")
        return [
            {**summaries.row_record(row, index), **self._outputs(row), **summaries.diagnostics_record(row)}
            for index, row in enumerate(self.row_scores)
        ]

    def to_table(self, view: ResultView = "rows") -> Any:
        """Convert to a `pyarrow.Table`. The evaluator must pin pyarrow."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_records(view=view))

    def to_pandas(self, view: ResultView = "rows") -> Any:
        """Convert to a `pandas.DataFrame`. The evaluator must pin pandas."""
        import pandas as pd

        return pd.DataFrame.from_records(self.to_records(view=view))

    def format_summary(self, max_rows: int = _ROWS, *, max_error_rows: int | None = None) -> str:
        """Format the statistics, the first `max_rows` rows, and the errors of `max_error_rows` failed rows as text.

        If `max_error_rows` is None, `max_rows` applies to both.
        """
        scores = self.aggregate_scores.scores
        parts = [
            summaries.header(type(self).__name__, self.row_scores, len(scores)),
            *("", "Aggregate scores", summaries.table([summaries.score_record(score) for score in scores])),
            *self._previews(max_rows),
        ]
        at_most = max_rows if max_error_rows is None else max_error_rows
        several = isinstance(self, BenchmarkEvaluationResult)
        return "\n".join(parts + summaries.error_details(self.row_scores, at_most=at_most, labelled=several))

    def print_summary(self, max_rows: int = _ROWS, *, max_error_rows: int | None = None) -> None:
        """Print the text that `format_summary` returns."""
        print(self.format_summary(max_rows=max_rows, max_error_rows=max_error_rows))

    def _outputs(self, row: RowScore) -> dict[str, Any]:
        return _outputs(row, "output.{name}")

    def _previews(self, max_rows: int) -> list[str]:
        raise NotImplementedError


class EvaluationResult(_Result):
    """The result of one metric."""

    def __str__(self) -> str:
        return self.format_summary(max_rows=_ROWS_AS_TEXT)

    def _previews(self, max_rows: int) -> list[str]:
        return _preview(self.row_scores, max_rows, title="Row preview", column="output.{name}")


class BenchmarkEvaluationResult(_Result):
    """The results of several metrics over the same rows."""

    per_metric: dict[str, EvaluationResult]

    def metric_result(self, metric_key: str) -> EvaluationResult:
        """Return the result of one of the metrics."""
        return self.per_metric[metric_key]

    def _outputs(self, row: RowScore) -> dict[str, Any]:
        return _outputs(row, "output.{key}.{name}")

    def _previews(self, max_rows: int) -> list[str]:
        return [
            line
            for key, result in self.per_metric.items()
            for line in _preview(
                result.row_scores, max_rows, title=f"Row preview for metric '{key}'", column="score.{name}"
            )
        ]


def _outputs(row: RowScore, column: str) -> dict[str, Any]:
    return {
        column.format(key=key, name=output.name): summaries.plain(output.value)
        for key, outputs in row.metrics.items()
        for output in outputs
    }


def _preview(rows: list[RowScore], max_rows: int, *, title: str, column: str) -> list[str]:
    shown = rows[:max_rows]
    if not shown:
        return []
    records = [{**summaries.preview_record(row, index), **_outputs(row, column)} for index, row in enumerate(shown)]
    return ["", f"{title} (first {len(records)} of {len(rows)})", summaries.table(records)]

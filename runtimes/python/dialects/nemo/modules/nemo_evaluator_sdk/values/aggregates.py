"""Defines the aggregates of a score over all rows, such as the mean."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_serializer


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid")


class Percentiles(_Strict):
    """The values below which 10, 20, … per cent of all values lie."""

    p10: float
    p20: float
    p30: float
    p40: float
    p50: float
    p60: float
    p70: float
    p80: float
    p90: float
    p100: float


class HistogramBin(_Strict):
    """The number of values between two bounds; only the last bin includes its upper bound."""

    lower_bound: float
    upper_bound: float
    count: int


class Histogram(_Strict):
    """How values are spread."""

    bins: list[HistogramBin]


class AggregateScoreBase(_Strict):
    """Statistics of one score over all rows. `count` does not include NaN; the variance is the population variance."""

    name: str
    count: int
    nan_count: int
    sum: float | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    std_dev: float | None = None
    variance: float | None = None

    _shown: frozenset[str] | None = None

    def with_fields(self, fields: frozenset[str]) -> Self:
        """Return a copy that writes only these fields, besides name and count."""
        copy = self.model_copy()
        copy._shown = fields | {"name", "count"}  # noqa: SLF001 - a copy of this object
        return copy

    @model_serializer(mode="wrap")
    def _only_shown(self, handler: Any) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        return data if self._shown is None else {name: data[name] for name in data if name in self._shown}


class AggregateRangeScore(AggregateScoreBase):
    """Statistics of a score that is a number."""

    score_type: Literal["range"] = "range"
    percentiles: Percentiles | None = None
    histogram: Histogram | None = None


class RubricScoreStat(BaseModel):
    """A level of a rubric, and the number of rows that have this level."""

    model_config = ConfigDict(defer_build=True)

    label: str
    description: str | None = None
    value: float | int
    count: int = 0


class AggregateRubricScore(AggregateScoreBase):
    """Statistics of a rubric score. `mode_category` is the most frequent level; if several are, the first by name."""

    score_type: Literal["rubric"] = "rubric"
    rubric_distribution: list[RubricScoreStat]
    mode_category: str | None = None


AggregateScore = AggregateRangeScore | AggregateRubricScore


class AggregatedMetricResult(_Strict):
    """Statistics of every score, in the order in which the scores first appeared."""

    scores: list[AggregateScore]

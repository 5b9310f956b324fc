"""Figures of a job's metrics as NeMo has them: of a range, or of a judge's rubric."""

from dataclasses import asdict
from typing import Any, Final

from evaluator_host.dialects.nemo.host.built_in import levels_of
from evaluator_host.dialects.nemo.host.bundles import numeric_outputs
from evaluator_host.jobs.results.aggregate import aggregate, as_float
from evaluator_host.schemas.results import Aggregate, EvaluatorFigures

_PLAIN: Final = ("sum", "mean", "min", "max", "std_dev", "variance")

Levels = list[dict[str, Any]]


def scores_of(key: str, bundle: dict[str, Any], figures: EvaluatorFigures) -> list[dict[str, Any]]:
    """Return the figures of a metric: of every output that it declares, and of its scores over all rows."""
    found = {one.name: one for one in figures.metrics}
    declared = numeric_outputs(bundle)
    names = [*declared, *(name for name in found if name not in declared)]
    rubrics = levels_of(bundle["payload"].get("metric") or {})
    made = [
        figures_of(
            found.get(name) or Aggregate(name, 0, figures.scored),
            name=f"{key}.{name}",
            missing=figures.failed,
            levels=rubrics.get(name) or None,
        )
        for name in names
    ]
    together = {} if figures.together is None else figures.together.metrics
    corpus = [aggregate(name, [as_float(value)]) for name, value in together.items()]
    return [*made, *(figures_of(one, name=f"{key}.{one.name}") for one in corpus)]


def figures_of(one: Aggregate, *, name: str, missing: int = 0, levels: Levels | None = None) -> dict[str, Any]:
    """Return the figures of one output.

    Args:
      one: As the host has them.
      name: As they are to be called.
      missing: Rows that failed, which count with those that are not finite.
      levels: Of a rubric, as it is configured.
    """
    made = {"name": name, "count": one.count, "nan_count": one.nan_count + missing}
    made |= {field: getattr(one, field) for field in _PLAIN}
    if levels is not None:
        counts = {level.label: level.count for level in one.rubric_distribution or ()}
        spread = [{**_level(level), "count": counts.get(str(level.get("label")), 0)} for level in levels]
        return {**made, "score_type": "rubric", "rubric_distribution": spread, "mode_category": one.mode_category}
    percentiles = None if one.percentiles is None else {p: v for p, v in one.percentiles.items() if p != "p99"}
    bins = [asdict(bin_) for bin_ in one.histogram]
    return {**made, "score_type": "range", "percentiles": percentiles, "histogram": {"bins": bins}}


def _level(level: dict[str, Any]) -> dict[str, Any]:
    return {"label": level.get("label"), "description": level.get("description"), "value": level.get("value")}

"""How the levels of a judge's rubrics are spread over the rows of a job."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, TypeAlias

from evaluator_host.model.json_values import decode_json
from evaluator_host.schemas.results import Aggregate, LevelCount
from evaluator_host.store.job_queue import StoredResult

Rubrics: TypeAlias = dict[str, list[str]]
"""Labels of each score that is a rubric."""


async def with_rubrics(
    metrics: tuple[Aggregate, ...], rubrics: Rubrics, results: AsyncIterator[StoredResult]
) -> tuple[Aggregate, ...]:
    """Add to figures of rubrics how often each level was given. `results` are those of rows that scored."""
    labels: Counter[tuple[str, str]] = Counter()
    async for one in results:
        given = _value(one).get("labels")
        labels.update((name, str(label)) for name, label in (given if isinstance(given, dict) else {}).items())
    return tuple(_with_levels(metric, rubrics.get(metric.name), labels) for metric in metrics)


def rubrics_of(result: StoredResult) -> Rubrics:
    """Return the rubrics that a row's result names, as far as they are what they should be: a sandbox wrote them."""
    found = _value(result).get("rubrics")
    known = found.items() if isinstance(found, dict) else ()
    return {name: [str(label) for label in labels] for name, labels in known if isinstance(labels, list) and labels}


def _value(result: StoredResult) -> dict[str, Any]:
    value = decode_json(result.result.encode())["value"]
    return value if isinstance(value, dict) else {}


def _with_levels(metric: Aggregate, rubric: list[str] | None, labels: Counter[tuple[str, str]]) -> Aggregate:
    if rubric is None:
        return metric
    levels = tuple(LevelCount(label, labels[f"{metric.name}.label", label]) for label in rubric)
    most = max(level.count for level in levels)
    mode = min(level.label for level in levels if level.count == most)
    return replace(metric, rubric_distribution=levels, mode_category=mode)

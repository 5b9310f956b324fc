"""Renders a metric's templates with the values of a row. Errors name the value that the row lacks."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel

from ..templates import render_template
from ..values.protocol import CandidateOutput, MetricInput

_MISSING = re.compile(r"^'dict object' has no attribute '([^']+)'$|^'([^']+)' is undefined$")
_NO_ARGUMENTS = {"type", "description", "labels", "supported_job_types"}


def build_template_context(item: dict[str, Any], sample: CandidateOutput) -> dict[str, Any]:
    """Return the values that templates may use: `item`, `sample`, each column, and each part of the sample, by name."""
    seen = sample.as_sample()
    return {**item, **seen, "item": item, "sample": seen}


def render(metric: BaseModel, name: str, template: str, row: MetricInput) -> Any:
    """Render a metric's template with the values of a row.

    Raises:
      ValueError: the row lacks a value that the template uses.
    """
    from jinja2 import UndefinedError

    item, sample = row.row.data, row.candidate
    try:
        return render_template(template, build_template_context(item, sample))
    except UndefinedError as error:
        raise ValueError(_explanation(metric, name, str(error), row)) from error


def render_texts(metric: Any, row: MetricInput) -> tuple[str, str]:
    """Render a metric's reference and candidate as strings.

    Raises:
      ValueError: the row lacks the reference or the candidate.
      TypeError: the reference or the candidate is not a string.
    """
    reference = render(metric, "reference", metric.reference, row)
    candidate = render_candidate(metric, row)
    return as_text(reference, "reference"), as_text(candidate, "candidate")


def render_candidate(metric: Any, row: MetricInput) -> Any:
    """Return the candidate: the metric's rendered template, or else the output text.

    Raises:
      ValueError: there is neither a template nor an output text.
    """
    if metric.candidate:
        return render(metric, "candidate", metric.candidate, row)
    text = row.candidate.as_sample().get("output_text")
    if text is None:
        name = type(metric).__name__
        raise ValueError(
            f"{name} has missing `candidate` field.\n"
            f"For offline evaluation, `candidate=...` field is required when constructing {name}.\n"
            "For online evaluation, this usually means the evaluated model produced no output."
        )
    return text


def as_text(value: Any, what: str) -> str:
    """Return a value, which must be a string.

    Raises:
      TypeError: the value is not a string.
    """
    if not isinstance(value, str):
        raise TypeError(f"The {what} must be a string.")
    return value


def _explanation(metric: BaseModel, name: str, problem: str, row: MetricInput) -> str:
    arguments = metric.model_dump(exclude=_NO_ARGUMENTS)
    shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    found = _MISSING.match(problem)
    if found is None:
        detail = f"jinja_error={problem!r}."
    else:
        missing = found[1] or found[2]
        detail = f"Dataset item has missing_key='{missing}' but the '{name}' template references it."
    return (
        f"{type(metric).__name__}({shown}) could not render its '{name}' template for this row.\n"
        f"Available item keys={sorted(row.row.data)}. \n"
        f"Available sample keys={sorted(row.candidate.as_sample())}.\n"
        f"{detail}\n"
        "Ensure that the dataset provides the fields referenced by the templates."
    )

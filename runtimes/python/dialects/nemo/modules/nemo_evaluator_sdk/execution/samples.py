"""Makes the input of a metric from a row and the generated output."""

from __future__ import annotations

from typing import Any

from ..values.protocol import CandidateOutput, DatasetRow, MetricInput

_FIELDS = ("response", "trajectory", "evidence")


def build_offline_sample(row: dict[str, Any]) -> dict[str, Any]:
    """Make the sample of a row that already has an output: the row's column `output`, if it is a string."""
    output = row.get("output")
    return {"output_text": output} if isinstance(output, str) else {}


def sampled(response: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Add the model's response, and an agent's trajectory, to the fields of a sample."""
    found = {**given, "response": response} if response else given
    return {**found, "trajectory": response["trajectory"]} if "trajectory" in response else found


def build_metric_input(row: dict[str, Any], sample: dict[str, Any], index: int | None = None) -> MetricInput:
    """Make a metric's input from a row, its number and its sample; unknown fields of the sample become metadata."""
    text = sample.get("output_text")
    is_text = isinstance(text, str)
    own = {*_FIELDS, *(["output_text"] if is_text else [])}
    return MetricInput(
        row=DatasetRow(row_index=index, data=row),
        candidate=CandidateOutput(
            output_text=text if is_text else None,
            **{name: sample.get(name) for name in _FIELDS},
            metadata={name: value for name, value in sample.items() if name not in own},
        ),
    )

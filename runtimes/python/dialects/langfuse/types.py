"""Defines the classes that Langfuse's code evaluators use without importing them.

Source: langfuse/langfuse@62751446, scripts/code-eval-runners/python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ToolCall:
    """A tool call in the observed step. `arguments` is a string from the model, or the value decoded from it."""

    id: str | None = None
    name: str | None = None
    arguments: Any = None
    type: str | None = None
    index: int | None = None


@dataclass
class Observation:
    """The observed step: its traced input, output and metadata, and its tool calls."""

    input: Any = None
    output: Any = None
    metadata: Any = None
    tool_calls: list[ToolCall] = field(default_factory=list)


@dataclass
class Experiment:
    """The data set's item, if the observed step is part of an experiment."""

    item_expected_output: Any = None
    item_metadata: Any = None


@dataclass
class EvaluationContext:
    """The argument of `evaluate`; `experiment` is None outside experiments."""

    observation: Observation
    experiment: Experiment | None = None


@dataclass
class Score:
    """One named score; `data_type` is NUMERIC, BOOLEAN, CATEGORICAL, TEXT or None."""

    name: str
    value: Any
    data_type: str | None = None
    comment: str | None = None
    config_id: str | None = None
    metadata: Any = None


@dataclass
class EvaluationResult:
    """The return value of `evaluate`."""

    scores: list[Score]


def context(row: dict[str, Any]) -> EvaluationContext:
    """Make the context from a row in Langfuse's own form: `{"observation": {…}, "experiment": {…} | null}`."""
    observed, item = row.get("observation") or {}, row.get("experiment")
    names = ToolCall.__match_args__
    calls = [ToolCall(**{name: one.get(name) for name in names}) for one in observed.get("toolCalls") or ()]
    return EvaluationContext(
        Observation(observed.get("input"), observed.get("output"), observed.get("metadata"), calls),
        None if item is None else Experiment(item.get("itemExpectedOutput"), item.get("itemMetadata")),
    )

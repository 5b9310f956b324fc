"""Traces of live traffic, as a host shows them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluator_host.model.evaluator import Json


@dataclass(frozen=True, slots=True)
class TraceReport:
    """A trace that came in, as OTLP/JSON, with its result. `number` rises with each trace."""

    number: int
    evaluator: str
    trace_id: str
    received_at: datetime
    result: dict[str, Any]
    trace: dict[str, Json]

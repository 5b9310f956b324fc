"""Answers of the routes of live traffic."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluator_host.model.evaluator import Json


@dataclass(frozen=True, slots=True)
class TraceReport:
    """A scored trace of live traffic.

    Attributes:
      number: Rises with each trace; the cursor of the next page.
      evaluator: The version that scored it, `latency@2`.
      trace_id: In hex.
      received_at: In UTC.
      result: As `POST /v1/evaluate` answers it.
      trace: The spans as OTLP/JSON, `{"resourceSpans": […]}` (opentelemetry.io/docs/specs/otlp).
    """

    number: int
    evaluator: str
    trace_id: str
    received_at: datetime
    result: dict[str, Any]
    trace: dict[str, Json]

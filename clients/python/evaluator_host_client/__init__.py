"""Python client for an Evaluator Host: `Client` blocks until each response arrives, `AsyncClient` is awaited."""

from .client.calls import DEFAULT_URL
from .client.clients import AsyncClient, Client
from .types.errors import HostError, HostUnreachable
from .types.evaluation import Batch, BatchSummary
from .types.evaluator import Evaluator, EvaluatorSettings, Isolation, Language, Limits, Row
from .types.outcome import EvaluationResult

__all__ = [
    "DEFAULT_URL",
    "AsyncClient",
    "Batch",
    "BatchSummary",
    "Client",
    "EvaluationResult",
    "Evaluator",
    "EvaluatorSettings",
    "HostError",
    "HostUnreachable",
    "Isolation",
    "Language",
    "Limits",
    "Row",
]

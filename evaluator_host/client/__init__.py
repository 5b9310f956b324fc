"""Typed Python client of a running host: `Client` waits for each answer, `AsyncClient` is awaited."""

from evaluator_host.client.calls import DEFAULT_URL
from evaluator_host.client.clients import AsyncClient, Client
from evaluator_host.model.errors import HostUnreachable
from evaluator_host.schemas.evaluation import Batch, BatchSummary

__all__ = ["DEFAULT_URL", "AsyncClient", "Batch", "BatchSummary", "Client", "HostUnreachable"]

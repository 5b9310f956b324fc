"""Typed Python client of a running host: `Client` waits for each response, `AsyncClient` is awaited."""

from ..types.errors import HostUnreachable
from ..types.evaluation import Batch, BatchSummary
from .calls import DEFAULT_URL
from .clients import AsyncClient, Client

__all__ = ["DEFAULT_URL", "AsyncClient", "Batch", "BatchSummary", "Client", "HostUnreachable"]

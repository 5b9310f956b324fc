"""Every verb of the product: evaluate a row, evaluate many, check an evaluator, say how the host is."""

from evaluator_host.service.reports import Batch, BatchSummary, CheckReport, HostInfo, summarise
from evaluator_host.service.service import Service

__all__ = ["Batch", "BatchSummary", "CheckReport", "HostInfo", "Service", "summarise"]

"""Every verb of the product: evaluate a row, evaluate many, check an evaluator, say how the host is."""

from evaluator_host.service.reports import CheckReport, HostInfo
from evaluator_host.service.service import Service

__all__ = ["CheckReport", "HostInfo", "Service"]

"""Every verb of the product: evaluate a row, evaluate many, check an evaluator, say how the host is."""

from evaluator_host.service.reports import summarise
from evaluator_host.service.service import Service

__all__ = ["Service", "summarise"]

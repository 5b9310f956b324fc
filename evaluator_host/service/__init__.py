"""Every verb of the product: evaluate a row, evaluate many, check an evaluator, say how the host is."""

from evaluator_host.service.service import Service
from evaluator_host.service.summaries import summarise

__all__ = ["Service", "summarise"]

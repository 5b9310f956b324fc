"""The operations of the product: evaluate rows, check an evaluator, install a package set, describe the host."""

from evaluator_host.service.service import Service
from evaluator_host.service.summaries import summarise

__all__ = ["Service", "summarise"]

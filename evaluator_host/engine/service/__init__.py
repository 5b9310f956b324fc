"""The operations of a host: evaluate rows, check an evaluator, install a package set, describe the host."""

from evaluator_host.engine.service.service import Service
from evaluator_host.engine.service.summaries import summarise

__all__ = ["Service", "summarise"]

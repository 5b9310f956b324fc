"""Traces."""

from galileo_core.schemas.logging.trace import Trace

__all__ = ["Trace"]

"""Exports the class of traces under the path at which evaluators import it."""

from galileo_core.schemas.logging.trace import Trace

__all__ = ["Trace"]

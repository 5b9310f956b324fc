"""The class of traces."""

from galileo_core.schemas.logging.span import StepWithChildSpans
from galileo_core.schemas.logging.step import StepType


class Trace(StepWithChildSpans):
    """One request, with its spans."""

    type = StepType.trace

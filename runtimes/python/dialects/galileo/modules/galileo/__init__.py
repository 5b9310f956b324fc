"""Light modules that replace `galileo` (as in release 2.7.0): steps, messages and local metrics."""

from galileo_core.schemas.logging.llm import Message, MessageRole, ToolCall, ToolCallFunction
from galileo_core.schemas.logging.session import Session
from galileo_core.schemas.logging.span import (
    AgentSpan,
    LlmSpan,
    RetrieverSpan,
    Span,
    StepWithChildSpans,
    ToolSpan,
    WorkflowSpan,
)
from galileo_core.schemas.logging.step import StepType
from galileo_core.schemas.logging.trace import Trace
from galileo_core.schemas.shared.document import Document

from galileo.schema.metrics import LocalMetricConfig as _LocalMetricConfig

__pin__ = "galileo==2.7.0"
__version__ = "2.7.0"
__all__ = [
    "AgentSpan",
    "Document",
    "LlmSpan",
    "LocalMetric",
    "Message",
    "MessageRole",
    "RetrieverSpan",
    "Session",
    "Span",
    "StepType",
    "StepWithChildSpans",
    "ToolCall",
    "ToolCallFunction",
    "ToolSpan",
    "Trace",
    "WorkflowSpan",
]


class LocalMetric(_LocalMetricConfig):
    """A metric that a function computes."""

"""The kinds of spans; `Span` is the base class of all."""

from galileo_core.schemas.logging.llm import Message
from galileo_core.schemas.logging.step import BaseStep, StepType
from galileo_core.schemas.shared.document import Document


class BaseSpan(BaseStep):
    """A step within a trace."""

    step_number = None
    parent_id = None


Span = BaseSpan


class StepWithChildSpans(BaseSpan):
    """A step that has spans below it."""

    def __init__(self, *, spans=(), **fields):
        super().__init__(**fields)
        self.spans = [span_of(one) for one in spans]


class WorkflowSpan(StepWithChildSpans):
    """A step of a workflow."""

    type = StepType.workflow


class AgentSpan(StepWithChildSpans):
    """A step of an agent."""

    type = StepType.agent
    agent_type = "default"


class LlmSpan(BaseSpan):
    """A call to a model, with the messages that the model gets and the one that it returns."""

    type = StepType.llm
    tools = None
    events = None
    model = None
    temperature = None
    finish_reason = None

    def __init__(self, *, input=(), output="", **fields):  # noqa: A002 - the field's name
        messages = [input] if isinstance(input, str | dict | Message) else input
        super().__init__(
            input=[_message(one, "user") for one in messages], output=_message(output, "assistant"), **fields
        )


class RetrieverSpan(StepWithChildSpans):
    """A search for documents."""

    type = StepType.retriever

    def __init__(self, *, output=(), **fields):
        documents = [output] if isinstance(output, str) else output
        super().__init__(output=[_document(one) for one in documents], **fields)


class ToolSpan(StepWithChildSpans):
    """A call to a tool."""

    type = StepType.tool
    tool_call_id = None


KINDS = {kind.type: kind for kind in (WorkflowSpan, AgentSpan, LlmSpan, RetrieverSpan, ToolSpan)}


def span_of(fields):
    """Convert a dict to the kind of span that its `type` names; return a span unchanged."""
    if not isinstance(fields, dict):
        return fields
    return KINDS.get(fields.get("type"), WorkflowSpan)(**fields)


def _message(one, role):
    if isinstance(one, Message):
        return one
    if isinstance(one, dict):
        return Message(**one) if "content" in one or "tool_calls" in one else Message(content=str(one), role=role)
    return Message(content=one if isinstance(one, str) else str(one), role=role)


def _document(one):
    if isinstance(one, str):
        return Document(content=one)
    return Document(**one) if isinstance(one, dict) else one

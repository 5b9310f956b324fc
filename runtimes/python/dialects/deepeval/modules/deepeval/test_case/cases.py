"""Test cases, and what they contain. A field that is not given is None."""

_SHORT = {
    "actualOutput": "actual_output",
    "expectedOutput": "expected_output",
    "retrievalContext": "retrieval_context",
    "toolsCalled": "tools_called",
    "expectedTools": "expected_tools",
    "inputParameters": "input_parameters",
    "additional_metadata": "metadata",
    "additionalMetadata": "metadata",
}


class _Fields:
    _names = ()

    def __init__(self, *args, **fields):
        given = dict(zip(self._names, args))  # noqa: B905 - there may be fewer arguments than names
        given.update({_SHORT.get(name, name): value for name, value in fields.items()})
        unknown = set(given) - set(self._names)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {min(unknown)!r}")
        for name in self._names:
            setattr(self, name, given.get(name))

    @property
    def additional_metadata(self):
        """The older name of `metadata`."""
        return self.metadata

    @additional_metadata.setter
    def additional_metadata(self, value):
        self.metadata = value

    def __eq__(self, other):
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None

    def __repr__(self):
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"{type(self).__name__}({shown})"


class ToolCall(_Fields):
    """A tool call of the model."""

    _names = ("name", "description", "reasoning", "output", "input_parameters")


class Turn(_Fields):
    """A message of a conversation."""

    _names = ("role", "content", "user_id", "retrieval_context", "tools_called", "metadata")


class LLMTestCase(_Fields):
    """One answer of a model, and the expected answer."""

    _names = (
        "input", "actual_output", "expected_output", "context", "retrieval_context", "metadata", "tools_called",
        "comments", "expected_tools", "token_cost", "completion_time", "name", "tags", "custom_column_key_values",
    )  # fmt: skip


class ConversationalTestCase(_Fields):
    """A conversation."""

    _names = (
        "turns", "scenario", "context", "name", "user_description", "expected_outcome", "chatbot_role", "metadata",
        "comments", "tags",
    )  # fmt: skip


class LLMTestCaseParams:
    """The fields of a test case, which metrics use to name the fields that they need."""

    INPUT = "input"
    ACTUAL_OUTPUT = "actual_output"
    EXPECTED_OUTPUT = "expected_output"
    CONTEXT = "context"
    RETRIEVAL_CONTEXT = "retrieval_context"
    TOOLS_CALLED = "tools_called"
    EXPECTED_TOOLS = "expected_tools"


SingleTurnParams = LLMTestCaseParams

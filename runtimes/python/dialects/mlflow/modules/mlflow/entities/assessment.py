"""Feedback on one output, and the source of the feedback."""


class AssessmentSourceType:
    """Kinds of sources."""

    HUMAN = "HUMAN"
    LLM_JUDGE = "LLM_JUDGE"
    CODE = "CODE"


class AssessmentSource:
    """The source of feedback, such as code or a person."""

    def __init__(self, source_type=AssessmentSourceType.CODE, source_id="default"):
        self.source_type = source_type
        self.source_id = source_id


class AssessmentError:
    """Why there is no value."""

    def __init__(self, error_code, error_message=None, stack_trace=None):
        self.error_code = error_code
        self.error_message = error_message
        self.stack_trace = stack_trace


class Feedback:
    """A value with its rationale. The default name, `feedback`, stands for the scorer's name."""

    def __init__(self, name="feedback", value=None, error=None, source=None, trace_id=None, metadata=None, span_id=None,
                 rationale=None, **_other):  # fmt: skip
        if value is None and error is None:
            raise ValueError("Either `value` or `error` must be provided.")
        if isinstance(error, Exception):
            error = AssessmentError(type(error).__name__, str(error))
        self.name = name
        self.value = value
        self.error = error
        self.source = source or AssessmentSource()
        self.trace_id = trace_id
        self.span_id = span_id
        self.metadata = metadata
        self.rationale = rationale

    @property
    def feedback(self):
        """The value and the error in one object, as in the real package."""
        return self

"""The base class of traces, spans and sessions."""

from galileo_core.schemas.fields import Fields


class StepType(str):
    """The kind of a step: a string that also has the attribute `value`, like a member of an enumeration."""

    __slots__ = ()

    @property
    def value(self):
        """The string itself."""
        return str(self)


for _name in ("llm", "retriever", "tool", "workflow", "agent", "control", "trace", "session"):
    setattr(StepType, _name, StepType(_name))


class Metrics(Fields):
    """The metrics of a step, which can be read as attributes or by name."""

    _defaults = {"duration_ns": None}  # noqa: RUF012 - read only

    def __getitem__(self, name):
        return getattr(self, name)


class BaseStep(Fields):
    """A trace, a span or a session."""

    type = StepType("workflow")
    _defaults = {  # noqa: RUF012 - read only
        "input": "", "output": None, "name": "", "user_metadata": {}, "tags": [], "status_code": None,
        "external_id": None, "dataset_input": None, "dataset_output": None, "dataset_metadata": {}, "id": None,
        "session_id": None, "trace_id": None, "redacted_input": None, "redacted_output": None,
    }  # fmt: skip

    def __init__(self, *, metrics=None, type=None, **fields):  # noqa: A002 - the field's name
        super().__init__(**fields)
        self.type = StepType(type or self.type)
        self.metrics = metrics if isinstance(metrics, Metrics) else Metrics(**(metrics or {}))
        self.name = self.name or str(self.type)

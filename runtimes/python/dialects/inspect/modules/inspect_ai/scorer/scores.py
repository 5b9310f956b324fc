"""Scores, targets, the state of a task, and the decorator of scorers."""

CORRECT, INCORRECT, PARTIAL, NOANSWER = "C", "I", "P", "N"
_COROUTINE = 0x80


class ValidationError(ValueError):
    """A field has a value of the wrong type."""


ValidationError.__module__ = "pydantic_core._pydantic_core"


class Scorer:
    """The type of scorers, for annotations."""


class Score:
    """A score: a letter, number, string, bool, or a list or dict of these. NaN means that the sample is unscored.

    As in the real package, a dict may contain None, but no part of a list or dict is a list or dict.
    """

    def __init__(self, value, answer=None, explanation=None, metadata=None, reason=None, **_other):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
        for one in parts:
            if isinstance(one, dict | list | tuple | set | frozenset) or (one is None and not isinstance(value, dict)):
                raise ValidationError(f"Score: value is {value!r}; give a number, text or bool, or Score.unscored()")
        if not isinstance(explanation, str | None):
            raise ValidationError(f"Score: explanation is {explanation!r}; it must be text")
        self.value = value
        self.answer = answer
        self.explanation = explanation
        self.metadata = metadata
        self.reason = reason

    @classmethod
    def unscored(cls, explanation=None, metadata=None, reason=None):
        """Return a score of NaN, which metrics leave out."""
        return cls(float("nan"), explanation=explanation, metadata=metadata, reason=reason)

    @property
    def text(self):
        return str(self.value)

    def as_str(self):
        return str(self.value)

    def as_float(self):
        return float(self.value)


class Target:
    """One or several target strings; `text` joins them."""

    def __init__(self, target):
        self.target = [target] if isinstance(target, str) else list(target)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, index):
        return self.target[index]

    @property
    def text(self):
        return "".join(self.target)


class _Message:
    def __init__(self, role, content):
        self.role = role
        self.content = content

    @property
    def text(self):
        return self.content if isinstance(self.content, str) else str(self.content)


class _Output:
    def __init__(self, completion):
        self.completion = completion
        self.message = _Message("assistant", completion)


class TaskState:
    """The input of the model, and its answer."""

    def __init__(self, *, input, output, messages=None, metadata=None, choices=None, sample_id=1):  # noqa: A002
        self.input = input
        self.output = output
        self.messages = messages or []
        self.metadata = metadata or {}
        self.choices = choices or []
        self.sample_id = sample_id
        self.epoch = 1
        self.store = {}

    @property
    def input_text(self):
        """The input as text."""
        return self.input if isinstance(self.input, str) else str(self.input)

    @property
    def user_prompt(self):
        """The last message of the user."""
        return next((one for one in reversed(self.messages) if one.role == "user"), _Message("user", self.input_text))


def state_of(row):
    """Make the task state from a row `{"input", "completion", "messages", "metadata", "choices"}`."""
    messages = [_Message(one.get("role"), one.get("content")) for one in row.get("messages") or ()]
    return TaskState(
        input=row.get("input"), output=_Output(row.get("completion")), messages=messages,
        metadata=row.get("metadata"), choices=row.get("choices"), sample_id=row.get("sample_id", 1),
    )  # fmt: skip


def scorer(metrics=None, name=None, **_other):
    """Return a decorator for functions that make a scorer."""

    def decorate(factory):
        def made(*args, **kwargs):
            found = factory(*args, **kwargs)
            code = getattr(found, "__code__", None) or getattr(type(found).__call__, "__code__", None)
            # a placeholder of the runner, which stands for a scorer from a missing package
            is_absent = type(found).__module__ == "evaluator_runner.later"
            if not is_absent and (code is None or not code.co_flags & _COROUTINE):
                raise TypeError(f"'{name or factory.__name__}' is not declared as an async callable.")
            return found

        made.__name__ = factory.__name__
        made.__doc__ = factory.__doc__
        made.__module__ = factory.__module__
        made.__wrapped__ = factory
        made.__scorer__ = name or factory.__name__
        return made

    return decorate


class _Metric:
    """The name of a metric. These modules do not compute metrics, which need the scores of many samples."""


def accuracy(*_args, **_kwargs):
    """Return a placeholder for the metric, which is not computed here."""
    return _Metric()


mean = std = stderr = var = accuracy

"""The result of an evaluator. The class refuses the same verdicts and texts as the class in the real package."""

from enum import Enum

_VERDICTS = {
    **dict.fromkeys(("0", "off", "f", "false", "n", "no", 0), False),
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes", 1), True),
}


class ValidationError(ValueError):
    """A field has a value of the wrong type."""


ValidationError.__module__ = "pydantic_core._pydantic_core"


class EvaluationResult:
    """Score, verdict, text, explanation and metadata; each may be None."""

    def __init__(
        self,
        *,
        score=None,
        pass_=None,
        text_output=None,
        metadata=None,
        explanation=None,
        tags=None,
        dataset_id=None,
        dataset_sample_id=None,
        evaluation_duration=None,
        explanation_duration=None,
    ):
        self.score = None if score is None else float(score)
        self.pass_ = None if pass_ is None else _verdict(pass_)
        self.text_output = _text("text_output", text_output)
        self.metadata = metadata
        self.explanation = _text("explanation", explanation)
        self.tags = tags
        self.dataset_id = dataset_id
        self.dataset_sample_id = dataset_sample_id
        self.evaluation_duration = evaluation_duration
        self.explanation_duration = explanation_duration

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"EvaluationResult({given})"


def _verdict(value):
    try:
        text = value.decode() if isinstance(value, bytes) else value
        return _VERDICTS[text.lower() if isinstance(text, str) else float(text)]
    except Exception:  # noqa: BLE001 - the code's own classes define `__float__`
        raise ValidationError(f"EvaluationResult: pass_ is {value!r}; it must be a bool") from None


def _text(name, value):
    if isinstance(value, Enum):
        return str(value.value)
    if not isinstance(value, str | None):
        raise ValidationError(f"EvaluationResult: {name} is {value!r}; it must be text")
    return value

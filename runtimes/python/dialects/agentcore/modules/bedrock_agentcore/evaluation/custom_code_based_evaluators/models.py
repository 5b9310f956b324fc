"""The argument and the result of a code-based evaluator. Both refuse the same values as in the real package."""

_MISSING = object()


class ValidationError(ValueError):
    """A field is missing, or its value has the wrong type."""


ValidationError.__module__ = "pydantic_core._pydantic_core"


class _Model:
    """An object with fields. `_fields` maps each field to its default, and `_aliases` maps other names to fields."""

    _fields = ()
    _aliases = ()
    _extra = False

    def __init__(self, **given):
        aliases = dict(self._aliases)
        for name, default in self._fields:
            value = given.pop(aliases.get(name, name), _MISSING)
            if value is _MISSING:
                value = given.pop(name, _MISSING)
            if value is _MISSING:
                if default is _MISSING:
                    raise ValidationError(f"{type(self).__name__}: {name} is required")
                value = default() if callable(default) else default
            setattr(self, name, value)
        if self._extra:
            vars(self).update(given)

    def model_dump(self, **_options):
        return dict(vars(self))

    def __repr__(self):
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other):
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None


class ReferenceInput(_Model):
    """One entry of ground truth."""

    _fields = (("context", dict), ("expected_response", None), ("assertions", list), ("expected_trajectory", None))
    _aliases = (("expected_response", "expectedResponse"), ("expected_trajectory", "expectedTrajectory"))
    _extra = True

    @property
    def expected_response_text(self):
        """The text of the expected response, or None."""
        return (self.expected_response or {}).get("text")


class EvaluatorInput(_Model):
    """The event of a Lambda call, parsed."""

    _fields = (
        ("evaluation_level", _MISSING),
        ("session_spans", _MISSING),
        ("target_trace_id", None),
        ("target_span_id", None),
        ("schema_version", "1.0"),
        ("evaluator_id", None),
        ("evaluator_name", None),
        ("reference_inputs", list),
    )

    def __init__(self, **given):
        super().__init__(**given)
        self.reference_inputs = [
            one if isinstance(one, ReferenceInput) else ReferenceInput(**one) for one in self.reference_inputs
        ]


class EvaluatorOutput(_Model):
    """The result. A label is required unless there is an error code."""

    _fields = (("value", None), ("label", None), ("explanation", None), ("errorCode", None), ("errorMessage", None))

    def __init__(self, **given):
        super().__init__(**given)
        self.value = _number(self.value)
        for name in ("label", "explanation", "errorCode", "errorMessage"):
            if not isinstance(getattr(self, name), str | None):
                raise ValidationError(f"EvaluatorOutput: {name} is not text")
        if not self.errorCode and self.label is None:
            raise ValidationError("EvaluatorOutput: label is required unless errorCode is set")


def _number(value):
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValidationError("EvaluatorOutput: value is not a number") from None

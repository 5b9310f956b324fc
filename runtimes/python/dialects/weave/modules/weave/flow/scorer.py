"""The base class of scorers, and a result with a verdict."""

from weave.flow.obj import Object, ValidationError

_VERDICTS = {
    **dict.fromkeys(("0", "off", "f", "false", "n", "no", 0), False),
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes", 1), True),
}


class Scorer(Object):
    """The base class of scorers: subclasses define `score(self, output, …)`."""

    column_map: dict | None = None

    def __init__(self, **given):
        code = getattr(type(self).score, "__code__", None)
        names = () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if "output" in names and "model_output" in names:
            raise ValidationError(
                f"{type(self).__name__}: the scorer's signature includes both `output` and `model_output`; keep one"
            )
        super().__init__(**given)

    def score(self, *, output, **_columns):
        """Return the score; each scorer defines it."""
        raise NotImplementedError


class WeaveScorerResult(Object):
    """The result of a scorer: a verdict and metadata."""

    passed: bool
    metadata: dict = {}  # noqa: RUF012 - as in the real package

    def __init__(self, **given):
        super().__init__(**given)
        declared = [getattr(kind, "__annotations__", {}) for kind in type(self).__mro__]
        if next(fields["passed"] for fields in declared if "passed" in fields) in (bool, "bool"):
            self.passed = _verdict(self.passed)

    def model_dump(self):
        return {"passed": self.passed, "metadata": self.metadata}


def _verdict(value):
    """Return a verdict as a bool; like the real package, refuse values that mean neither true nor false."""
    try:
        text = value.decode() if isinstance(value, bytes) else value
        return _VERDICTS[text.lower() if isinstance(text, str) else float(text)]
    except Exception:  # noqa: BLE001 - the code's own classes define `__float__`
        raise ValidationError(f"WeaveScorerResult: passed is {value!r}; it must be a bool") from None

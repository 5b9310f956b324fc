"""The base class of scorers, and a result with a verdict."""

from weave.flow.obj import Object, ValidationError


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
    """A verdict and metadata."""

    passed: bool
    metadata: dict = {}  # noqa: RUF012 - as in the real package

    def model_dump(self):
        """Return the fields."""
        return {"passed": self.passed, "metadata": self.metadata}

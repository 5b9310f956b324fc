"""Results of evaluators."""

FIELDS = (
    "key", "score", "value", "comment", "correction", "metadata", "evaluator_info", "feedback_config", "extra",
    "source_run_id", "target_run_id",
)  # fmt: skip


class EvaluationResult:
    """One piece of feedback, with the fields in `FIELDS`; only `key` is required."""

    def __init__(self, **fields):
        unknown = [name for name in fields if name not in FIELDS]
        if unknown or "key" not in fields:
            raise ValueError(
                f"EvaluationResult: unknown fields {unknown}" if unknown else "EvaluationResult: key is required"
            )
        for name in FIELDS:
            setattr(self, name, fields.get(name))

    def __repr__(self):
        return f"EvaluationResult({', '.join(f'{name}={value!r}' for name, value in self.model_dump().items())})"

    def __eq__(self, other):
        return isinstance(other, EvaluationResult) and vars(self) == vars(other)

    __hash__ = None

    def model_dump(self, **_options):
        """Return the fields that are set."""
        return {name: value for name, value in vars(self).items() if value is not None}

    dict = model_dump


class EvaluationResults(dict):
    """Several pieces of feedback: `{"results": [...]}`."""


def run_evaluator(function):
    """Return the function unchanged."""
    return function

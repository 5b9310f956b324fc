"""The decorator of evaluators, and their base classes."""


def evaluator(_fn=None, **_settings):
    """Mark a function as an evaluator; with or without parentheses."""
    if _fn is None:
        return evaluator
    _fn.is_evaluator = True
    return _fn


class Evaluator:
    """A class with a method `evaluate`."""

    evaluator_id = None
    criteria = None

    def __init__(self, weight=None):
        self.weight = weight

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        cls.is_evaluator = True


class StructuredEvaluator(Evaluator):
    """A class whose `evaluate` takes the fields of a row by name."""


class AsyncEvaluator(Evaluator):
    """A class with an `evaluate` that is awaited."""


class AsyncStructuredEvaluator(AsyncEvaluator):
    """A class whose awaited `evaluate` takes the fields of a row by name."""

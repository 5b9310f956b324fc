"""The decorator of evaluators, and their base classes."""


def evaluator(_fn=None, **_settings):
    """Mark a function as an evaluator. The decorator can be used with or without parentheses."""
    if _fn is None:
        return evaluator
    _fn.is_evaluator = True
    return _fn


class Evaluator:
    """The base class of evaluators: subclasses define `evaluate`."""

    evaluator_id = None
    criteria = None

    def __init__(self, weight=None):
        self.weight = weight

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        cls.is_evaluator = True


class StructuredEvaluator(Evaluator):
    """The base class of evaluators whose `evaluate` gets the fields of a row by name."""


class AsyncEvaluator(Evaluator):
    """The base class of evaluators whose `evaluate` is async."""


class AsyncStructuredEvaluator(AsyncEvaluator):
    """The base class of evaluators whose `evaluate` is async and gets the fields of a row by name."""

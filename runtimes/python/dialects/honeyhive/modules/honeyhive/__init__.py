"""Light modules that replace `honeyhive` (as in release 1.7.0): the decorators for evaluators."""

__pin__ = "honeyhive==1.7.0"
__version__ = "1.7.0"


def evaluator(func=None, **_settings):
    """Mark a function as an evaluator. The decorator can be used with or without parentheses."""
    if func is None or isinstance(func, str):
        return evaluator
    func.is_evaluator = True
    return func


aevaluator = evaluator

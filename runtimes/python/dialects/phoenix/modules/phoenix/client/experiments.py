"""The decorator for evaluators of experiments, which get their arguments by name."""

from phoenix.evals.evaluators import FunctionEvaluator

__all__ = ["create_evaluator"]

_NAMES = ("input", "output", "expected", "reference", "metadata", "example")


class ExperimentEvaluator(FunctionEvaluator):
    """Calls a function. Each parameter gets the field with its name; parameters with other names get the output."""

    def _arguments(self, row, _mapping):
        code = self._fn.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if len(names) == 1 and names[0] not in (*_NAMES, *row):
            return {names[0]: row.get("output")}
        known = {name: row.get(name) for name in _NAMES if name in names}
        return {**known, **{name: row[name] for name in names if name in row}}


def create_evaluator(kind="CODE", name=None, scorer=None):
    """Return the decorator, which turns a function into an evaluator with a method `evaluate(row)`."""

    def decorate(fn):
        return ExperimentEvaluator(fn, name or fn.__name__, kind.lower(), "maximize")

    return decorate

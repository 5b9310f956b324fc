"""Finds the stored objects that an evaluator uses."""

from collections.abc import Callable

from evaluator_host.platform.users import UsedObject
from evaluator_host.types.evaluator import Evaluator


def code_use(used: UsedObject) -> Callable[[Evaluator], bool] | None:
    """Return a function that reports whether an evaluator uses this object.

    Return None if evaluators cannot use objects of this kind.
    """
    if used.kind == "secret":
        return lambda one: used.name in one.secrets.values()
    if used.kind == "data file":
        return lambda one: used.name in one.data.values()
    if used.kind == "model":
        return lambda one: used.name in map(_model_of, one.models)
    return None


def _model_of(entry: str) -> str:
    return entry.rpartition("=")[2]  # a grant is `name-in-the-code=registered-name`, or the registered name alone

"""Runs MLflow scorers (dialect `mlflow`): a function decorated with `scorer`, or an object of class `Scorer`.

This works with the package that the code has imported as `mlflow`: the runner's light modules, or the real package.
"""

from __future__ import annotations

import sys

from evaluator_runner import dialects, later
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.candidates import listed_in, meant_in, outline_of, several
from evaluator_runner.coerce import type_name
from evaluator_runner.entry import JUDGES, Entry, object_of
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "mlflow"
WORDS = ("mlflow",)
PREBOUND = False
MODULES = {"mlflow": "mlflow"}
IMPORTS = {
    "scorer": "mlflow.genai.scorers:scorer",
    "Scorer": "mlflow.genai.scorers:Scorer",
    "Feedback": "mlflow.entities:Feedback",
    "AssessmentSource": "mlflow.entities:AssessmentSource",
}
_DEFAULT = "feedback"
_FIELDS = ("inputs", "outputs", "expectations", "trace", "session")
_modules = sys.modules
JUDGES[CONTRACT] = ("mlflow.genai.judges", "mlflow.genai.scorers")


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function or class that is a scorer of the package `mlflow`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    function = outline.decorated_by("mlflow", "scorer")
    if function is not None:
        return dialects.DECORATED, f"function `{function.name}`, decorated with mlflow's `scorer`"
    kind = outline.subclass_of("mlflow", "Scorer")
    return None if kind is None else (dialects.DECORATED, f"class `{kind}`, a Scorer of mlflow")


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that calls the scorer `name`, or else the only one. A class gets `config` as its arguments.

    Raises:
      Failure: the code defines no scorer, or several.
    """
    base = getattr(_modules.get("mlflow.genai.scorers.base"), "Scorer", None)
    found: dict[str, Any] = {}
    if isinstance(base, type):
        found = {key: one for key, one in namespace.items() if isinstance(one, base)}
        made = {type(one) for one in found.values()}
        for key, one in list(namespace.items()):
            own = isinstance(one, type) and issubclass(one, base) and one.__module__ == "evaluator"
            if own and one not in made and (name == key or not found):
                found[key] = object_of(namespace, key, config)
    if not found or (name is not None and name not in found):
        what = f"`{name}` is not a scorer" if name is not None else "the code defines no scorer"
        raise Failure(
            "entry_not_found",
            what + (f"; it defines {', '.join(list(found)[:10])}" if found else ""),
            hint="write `@scorer` from mlflow.genai.scorers above a function of inputs, outputs, expectations",
        )
    names = meant_in(namespace, list(found)) if name is None else [name]
    if len(names) > 1:
        failure = several(outline_of(namespace), names, "scorers")
        failure.notes += tuple(_left_out(namespace))
        raise failure
    chosen = names[0]
    scorer = found[chosen]
    entry = Entry(chosen, getattr(scorer, "__wrapped__", None) or type(scorer).__call__)
    entry.call = scorer.run
    entry.bind = _fields
    entry.convert = _Reader(scorer.name).plain
    if name is None:
        entry.notes += _left_out(namespace)
    return entry


def _left_out(namespace: dict[str, Any]) -> list[dict[str, str]]:
    """Return a list with a warning if the code's list of scorers contains MLflow's own judges, which call a model.

    If there are no such judges, the list is empty.
    """
    lacking = later.lacking_of(*JUDGES[CONTRACT])
    judges = sorted(listed_in(namespace).intersection(lacking)) if lacking else []
    if not judges:
        return []
    message = f"{', '.join(judges)} of mlflow are in the list of scorers, but are not called, because they ask a model"
    return [{"code": "entry_left_out", "message": message}]


def _fields(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    given = {name: value for name, value in args[0].items() if name in _FIELDS}
    if isinstance(given.get("session"), list):
        given["session"] = _session(given["session"])
    return [], given


def _session(messages: list[Any]) -> Any:
    """Return a trace for each turn of a conversation: a question, and everything up to the next question.

    With the real package, return None, because its traces come from a tracking server.
    """
    make = getattr(getattr(_modules.get("mlflow.entities"), "Trace", None), "of_turn", None)
    if make is None:
        return None
    turns: list[list[Any]] = []
    for message in messages:
        if not turns or (message.get("role") == "user" and any(one.get("role") == "user" for one in turns[-1])):
            turns.append([])
        turns[-1].append(message)
    return [make(turn, number) for number, turn in enumerate(turns)]


class _Reader:
    """Reads the values that one scorer returns."""

    def __init__(self, name: str) -> None:
        self._name = name

    def plain(self, value: Any) -> Any:
        """Convert feedback, or a plain value, to plain feedback; for a value of another type, return the type."""
        kind = getattr(_modules.get("mlflow.entities"), "Feedback", ())
        if value is None:
            return {"feedbacks": []}
        if isinstance(value, bool | int | float | str):
            more = {"rationale": None, "error": None, "metadata": None}
            plain = _text(value)
            return {"feedbacks": [{"name": self._name, "value": plain, **more}]}
        found = value if isinstance(value, list) else [value]
        if not kind or not all(isinstance(one, kind) for one in found):
            return {"returned": type_name(type(value)), "name": self._name}
        return {"feedbacks": [self._feedback(one) for one in found]}

    def _feedback(self, one: Any) -> dict[str, Any]:
        error = getattr(one, "error", None)
        message = getattr(error, "error_message", None) or error
        return {
            "name": self._name if one.name == _DEFAULT else one.name,
            "value": _text(one.value),
            "rationale": one.rationale,
            "error": None if message is None else str(message),
            "metadata": one.metadata,
        }


def _text(value: Any) -> Any:
    """Return a text as plain text: for a member of an enumeration of texts its value, not its name."""
    return str.__str__(value) if isinstance(value, str) else value

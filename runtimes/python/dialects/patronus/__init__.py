"""Runs Patronus evaluators (dialect `patronus`): functions decorated with `evaluator`, and evaluator subclasses."""

from __future__ import annotations

from evaluator_runner import candidates, dialects, entry, jsontext
from evaluator_runner.binding import AttributeDict
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.coerce import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline
    from evaluator_runner.signature import Signature

CONTRACT = "patronus"
WORDS = ("patronus",)
PREBOUND = False
_BASES = ("Evaluator", "StructuredEvaluator", "AsyncEvaluator", "AsyncStructuredEvaluator")
_FIELDS = ("score", "pass_", "text_output", "metadata", "explanation", "tags", "dataset_id", "dataset_sample_id")
_GIVEN = {"actual": "task_output", "output": "task_output", "expected": "gold_answer", "input": "task_input"}
_decode = jsontext.decoder(AttributeDict)


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function that is decorated as an evaluator, or an evaluator class.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    decorated = outline.decorated_by("patronus", "evaluator", of=name)
    if decorated is not None:
        return dialects.DECORATED, f"`{decorated.name}` is decorated with patronus' `evaluator`"
    kind = outline.subclass_of("patronus", *_BASES)
    if kind is not None and (name is None or name in outline.classes):
        return dialects.DECORATED, f"class `{name or kind}`, an evaluator of patronus"
    return None


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the function, or a class's `evaluate`. Each parameter gets the field with its name.

    Raises:
      Failure: there is no evaluator, or there are several.
    """
    own = {key: one for key, one in namespace.items() if getattr(one, "__module__", None) == "evaluator"}
    marked = [key for key, one in own.items() if getattr(one, "is_evaluator", False)]
    chosen = name or (candidates.the_only(namespace, marked, "evaluators") if marked else "evaluate")
    if isinstance(own.get(chosen), type):
        found = entry.Entry(chosen, entry.object_of(namespace, chosen, config).evaluate)
    else:
        found = entry.find_function(namespace, chosen)
    found.decode = _decode
    found.bind = _binder(found.signature)
    found.convert = _plain
    return found


def _binder(parameters: Signature | None) -> Any:
    def bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        given = dict(args[0])
        row = given.get("row") or {}
        result = AttributeDict({"output": row.get("task_output")})
        every = {**row, "task_result": result, "parent": None, **given}
        if parameters is None:
            return [], every
        names = {*parameters.positional, *parameters.keyword_only}
        every.update({name: row[of] for name, of in _GIVEN.items() if name in names and of in row and name not in row})
        if parameters.var_keyword is not None and "row" in names:
            return [], {**{name: every[name] for name in names if name in every}, "task_result": result, "parent": None}
        return [], every if parameters.var_keyword is not None else {k: v for k, v in every.items() if k in names}

    return bind


def _plain(value: Any) -> Any:
    """Return the result that Patronus makes from a value, as a dict; for a refused value, return its type."""
    kind = type(value)
    if value is None:
        return {"result": None}
    if kind is bool:
        return {"result": {"score": float(value), "pass_": value}}
    if isinstance(value, int | float):
        return {"result": {"score": float(value)}}
    if isinstance(value, str):
        return {"result": {"text_output": value}}
    if kind.__name__ != "EvaluationResult":
        return {"returned": type_name(kind)}
    fields = {name: getattr(value, name, None) for name in _FIELDS}
    return {"result": {name: one for name, one in fields.items() if one is not None}}

"""Runs LangSmith evaluators (dialect `langsmith`): `perform_eval(run, example)`, or functions for LangSmith's SDK."""

from __future__ import annotations

import sys

from evaluator_runner import candidates, dialects, entry, jsontext
from evaluator_runner.binding import AttributeDict
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.coerce import type_name
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Function, Outline

CONTRACT = "langsmith"
WORDS = ("perform_eval", "outputs", "example", "run")
PREBOUND = False
IMPORTS = {
    "EvaluationResult": "langsmith.evaluation:EvaluationResult",
    "EvaluationResults": "langsmith.evaluation:EvaluationResults",
    "Run": "langsmith.schemas:Run",
    "Example": "langsmith.schemas:Example",
}
MODULES = {"np": "numpy", "pd": "pandas"}
_ROW = ("run", "example")
_UI = "perform_eval"
_SUPPORTED = ("run", "example", "inputs", "outputs", "reference_outputs", "attachments")
_OWN = {"run", "example", "reference_outputs"}
_SHARED = {"inputs", "outputs", "reference_outputs"}
_RUN = (
    "id", "name", "inputs", "outputs", "error", "start_time", "end_time", "run_type", "child_runs", "extra", "tags",
    "events", "metadata", "feedback_stats", "reference_example_id", "parent_run_id", "trace_id", "session_id",
    "attachments",
)  # fmt: skip
_EXAMPLE = ("id", "inputs", "outputs", "metadata", "attachments", "dataset_id", "created_at", "split")
_TIMES = ("start_time", "end_time", "created_at")
_modules = sys.modules
_decode = jsontext.decoder(AttributeDict)


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise the function `perform_eval`, or a function with the parameters of LangSmith's SDK.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    if name in {None, _UI} and _UI in outline.functions:
        return dialects.NAMED, f"function `{_UI}`"
    if name is not None:
        found = outline.functions.get(name)
        chosen = [] if found is None else [found]
    else:
        chosen = [one for one in outline.functions.values() if one.name != "main"]
    by_name = [one for one in chosen if _fits(one) and _OWN & set(one.parameters)]
    by_name.sort(key=lambda one: one.name != "evaluate")
    if by_name and (name is not None or not outline.has_own_entry or by_name[0].name == "evaluate"):
        return dialects.PARAMETERS, f"`{by_name[0].name}` has the parameters {', '.join(by_name[0].parameters)}"
    if outline.has_own_entry and name is None:
        return None
    typed = [one for one in chosen if _is_typed(one) or tuple(one.required) == ("root_run", "example")]
    if len(typed) == 1:
        return dialects.PARAMETERS, f"`{typed[0].name}` takes a run and an example: {', '.join(typed[0].parameters)}"
    shared = [
        one for one in chosen if one.parameters and set(one.parameters) <= _SHARED and "outputs" in one.parameters
    ]
    if len(shared) == 1 and shared[0].name not in {"evaluate", "main"}:
        return dialects.ANY_NAME, f"`{shared[0].name}` has the parameters {', '.join(shared[0].parameters)}"
    return None


def _is_typed(function: Function) -> bool:
    kinds = [one.rpartition(".")[2] for one in function.annotations[:2] if one.startswith("langsmith.")]
    return len(function.required) == 2 and kinds == ["Run", "Example"]


def _fits(function: Function) -> bool:
    return bool(function.required) and set(function.required) <= set(_SUPPORTED) and not function.positional_only


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the function; `_plain` converts the function's result.

    Raises:
      Failure: there is no such function, there are several, or its parameters are not those of an evaluator.
    """
    found = entry.find_function(namespace, name or _only(namespace))
    found.decode = _decode
    found.bind = _binder(found)
    found.convert = _plain
    return found


def _only(namespace: dict[str, Any]) -> str:
    own = [
        name
        for name, one in namespace.items()
        if entry.is_function(one) and getattr(one, "__module__", None) == "evaluator"
    ]
    if _UI in own or not own:
        return _UI
    fitting = [name for name in own if _is_bound_by_name(entry.Entry(name, namespace[name]))]
    return "evaluate" if "evaluate" in fitting else candidates.the_only(namespace, fitting or own, "evaluators")


def _is_bound_by_name(found: entry.Entry) -> bool:
    known = found.signature
    if known is None or known.positional_only or not known.names:
        return False
    required = known.positional[: known.required]
    required += [name for name, has_default in known.keyword_only.items() if not has_default]
    return set(required) <= set(_SUPPORTED) and bool({*known.positional, *known.keyword_only} & set(_SUPPORTED))


def _binder(found: entry.Entry) -> Any:
    known = found.signature
    if found.name == _UI:
        found.places = _ROW
        return _bind_one if known is not None and not known.fits(_ROW) else _bind_two
    if _is_bound_by_name(found) and known is not None:
        wanted = [name for name in (*known.positional, *known.keyword_only) if name in _SUPPORTED]
        return lambda args: ([], {name: value for name, value in _arguments(args[0]).items() if name in wanted})
    if known is not None and known.required == 2 and known.takes(2):
        return _bind_two
    names = ", ".join(known.names) if known is not None else ""
    raise Failure(
        "binding_error",
        f"`{found.name}` takes ({names}); LangSmith passes {', '.join(_SUPPORTED)} or run, example in order",
        hint=f"write `def {found.name}(inputs, outputs, reference_outputs)`; leave out what it does not need",
    )


def _bind_one(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    return [_arguments(args[0])["run"]], {}


def _bind_two(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    known = _arguments(args[0])
    return [known["run"], known["example"]], {}


def _arguments(row: dict[str, Any]) -> dict[str, Any]:
    run, example = _record(row.get("run") or {}, _RUN), row.get("example")
    example = None if example is None else _record(example, _EXAMPLE)
    of_example = example or {}
    return {
        "run": run,
        "example": example,
        "inputs": of_example.get("inputs") or {},
        "outputs": run.get("outputs") or {},
        "reference_outputs": of_example.get("outputs") or {},
        "attachments": of_example.get("attachments") or {},
    }


def _record(fields: dict[str, Any], known: tuple[str, ...]) -> AttributeDict:
    """Make an object whose attributes and keys are a row's fields; a `known` field that the row lacks is None."""
    record = AttributeDict({**dict.fromkeys(known), **fields})
    for name in _TIMES:
        if isinstance(record.get(name), str):
            from datetime import datetime

            record[name] = datetime.fromisoformat(record[name])
    return record


def _plain(value: Any) -> Any:
    """Return `{"value": …}` with results as dicts, or `{"refused": type}` for a type that LangSmith refuses."""
    if isinstance(value, list):
        return {"value": [_fields(one) for one in value]}
    value = _fields(value)
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        return {"value": {"results": [_fields(one) for one in value["results"]]}}
    if value is None or isinstance(value, bool | int | float | str | dict):
        return {"value": value}
    return {"refused": type_name(type(value))}


def _fields(value: Any) -> Any:
    kind = getattr(_modules.get("langsmith.evaluation.evaluator"), "EvaluationResult", None)
    if isinstance(kind, type) and isinstance(value, kind):
        return {name: one for name, one in value.model_dump().items() if one is not None}
    return value

"""Runs Phoenix evaluators (dialect `phoenix`): `evaluate` with Phoenix's parameters, or evaluators of phoenix.evals."""

from __future__ import annotations

from evaluator_runner import candidates, dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.coerce import type_name
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "phoenix"
WORDS = ("phoenix", "reference", "output")
PREBOUND = False
IMPORTS = {"create_evaluator": "phoenix.evals:create_evaluator", "Score": "phoenix.evals:Score"}
_NAMES = ("output", "reference", "input", "metadata")
_TELLING = {"output", "reference"}
_FIELDS = ("name", "score", "label", "explanation", "kind", "direction")


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function with the decorator, or a function `evaluate` with Phoenix's parameters.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    decorated = outline.decorated_by("phoenix", "create_evaluator", of=name)
    if decorated is not None:
        return dialects.DECORATED, f"`{decorated.name}` is decorated with `create_evaluator`"
    found = outline.functions.get(name or "evaluate")
    if found is None or found.variadic or not found.parameters or found.name != "evaluate":
        return None
    names = set(found.parameters)
    if names <= set(_NAMES) and names & _TELLING:
        return dialects.PARAMETERS, f"`evaluate` has the parameters {', '.join(found.parameters)}"
    return None


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the evaluator object or function with the row's values for its parameters.

    Raises:
      Failure: there is no evaluator, there are several, or Phoenix has no value for a parameter.
    """
    made = {key: one for key, one in namespace.items() if _is_evaluator(one)}
    chosen = name or (candidates.the_only(namespace, list(made), "evaluators") if made else "evaluate")
    if chosen in made:
        return _of_package(chosen, made[chosen])
    found = entry.find_function(namespace, chosen)
    names = found.signature.names if found.signature is not None else []
    if unknown := [one for one in names if one not in _NAMES]:
        raise Failure(
            "binding_error",
            f"`{chosen}` has the parameters {', '.join(unknown)}; Phoenix gives output, reference, input and metadata",
            hint=f"write `def {chosen}(output, reference=None, input=None, metadata=None)`",
        )
    found.bind = lambda args: ([], {key: args[0][key] for key in names if args[0].get(key) is not None})
    found.convert = _plain
    return found


def _is_evaluator(value: Any) -> bool:
    kind = type(value)
    return (
        not isinstance(value, type)
        and kind.__module__.startswith(("phoenix.evals", "phoenix.client"))
        and hasattr(value, "evaluate")
    )


def _of_package(name: str, made: Any) -> entry.Entry:
    found = entry.Entry(name, made.evaluate)
    function = getattr(made, "_fn", None) or getattr(made, "_original_func", None)
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x80:
        found.call = made.async_evaluate
    found.bind = lambda args: ([args[0]], {})
    found.convert = lambda scores: {"of_package": True, "scores": [_score(one) for one in scores]}
    return found


def _score(one: Any) -> dict[str, Any]:
    fields = {key: getattr(one, key, None) for key in _FIELDS}
    return {**fields, **({"from_bool": True} if getattr(one, "from_bool", False) else {})}


def _plain(value: Any) -> Any:
    """Return a value unchanged; raise an error for a tuple, because JSON would turn the tuple into a list."""
    if isinstance(value, tuple):
        raise TypeError(f"Phoenix accepts a number, a bool, a string or a dict, not {type_name(type(value))}")
    return value

"""Runs Weave scorers (dialect `weave`): a function decorated with `weave.op`, or a subclass of `weave.Scorer`.

This works with the package that the code has imported as `weave`: the runner's light modules, or the real package.
"""

from __future__ import annotations

from evaluator_runner import candidates, dialects, entry, signature
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline
    from evaluator_runner.signature import Signature

CONTRACT = "weave"
WORDS = ("weave",)
PREBOUND = False
MODULES = {"weave": "weave"}
_OUTPUTS = ("output", "model_output")


class OpCallError(Exception):
    """The row lacks a value that the scorer needs."""


OpCallError.__module__ = "weave.trace.op"


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a scorer class of the package `weave`, or a function with the decorator `weave.op`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    kind = outline.subclass_of("weave", "Scorer")
    if kind is not None and (name is None or name in outline.classes):
        return dialects.DECORATED, f"class `{name or kind}`, a Scorer of weave"
    found = outline.decorated_by("weave", "op", of=name)
    return None if found is None else (dialects.DECORATED, f"`{found.name}` is decorated with `weave.op`")


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the scorer with the output, and with the columns that its parameters name.

    Raises:
      Failure: there is no scorer, or there are several.
    """
    own = {key: one for key, one in namespace.items() if getattr(one, "__module__", None) == "evaluator"}
    kinds = [key for key, one in own.items() if isinstance(one, type) and _is_scorer(one)]
    ops = [key for key, one in own.items() if not isinstance(one, type) and _is_op(one)]
    names = kinds + [key for key in ops if _takes_output(own[key])] if kinds else ops
    chosen = name or (candidates.the_only(namespace, names, "scorers") if names else None)
    if chosen is None or chosen not in own:
        hint = "write `@weave.op` above a function of output and columns, or a class of `weave.Scorer`"
        what = f"`{chosen}` is not a scorer" if chosen else "the code defines no scorer"
        raise Failure("entry_not_found", what, hint=hint)
    scorer = entry.object_of(namespace, chosen, config) if chosen in kinds else None
    found = entry.Entry(chosen, own[chosen] if scorer is None else scorer.score)
    found.bind = _Binder(chosen, found.signature, getattr(scorer, "column_map", None) or {}).bind
    found.convert = lambda value: {"result": _plain(value)}
    return found


def _is_scorer(kind: type) -> bool:
    return any(one.__name__ == "Scorer" and one.__module__.partition(".")[0] == "weave" for one in kind.__mro__[1:])


def _is_op(value: Any) -> bool:
    return bool(getattr(value, "is_weave_op", False)) or hasattr(value, "resolve_fn")


def _takes_output(op: Any) -> bool:
    """Return whether an op takes a model's output, as scorers do. The op of the model itself takes only the input."""
    known = signature.read(op)
    return known is not None and any(one in known.names for one in _OUTPUTS)


class _Binder:
    """Makes a scorer's arguments from rows."""

    def __init__(self, name: str, parameters: Signature | None, columns: dict[str, str]) -> None:
        self._name = name
        self._columns = columns
        self._every = parameters is None or parameters.var_keyword is not None
        self._names: list[str] = []
        self._required: list[str] = []
        if parameters is not None:
            positional = [one for one in parameters.positional if one != "self"]
            self._names = [*positional, *parameters.keyword_only]
            self._required = positional[: parameters.required - (len(parameters.positional) - len(positional))]
            self._required += [one for one, has_default in parameters.keyword_only.items() if not has_default]

    def bind(self, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the scorer's arguments for `{"example": columns, "output": …}`."""
        example, output = args[0].get("example") or {}, args[0].get("output")
        if not any(name in self._names for name in _OUTPUTS) and not self._every:
            raise OpCallError(f"Scorer {self._name} must have an `output` or `model_output` argument")
        given = {name: output for name in _OUTPUTS if name in self._names} or {"output": output}
        if self._every:
            given = {**example, "inputs": example, **given}
        for name in self._names:
            column = self._columns.get(name, name)
            if name not in given and column in example:
                given[name] = example[column]
        if missing := [name for name in self._required if name not in given]:
            columns = ", ".join(map(str, example))
            raise OpCallError(f"Scorer {self._name} needs {', '.join(missing)}; the row has the columns {columns}")
        return [], given


def _plain(value: Any) -> Any:
    """Convert a result to plain values; an object with fields becomes a dict."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else value

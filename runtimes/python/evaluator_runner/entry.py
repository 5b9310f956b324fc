"""Owns which object of an evaluator is called and by which contract: the first rule that matches wins."""

from __future__ import annotations

from evaluator_runner import nemo, signature, uipath
from evaluator_runner.failures import Failure
from evaluator_runner.pristine import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ARGUMENTS = {
    "evaluate": ("inputs", "outputs", "trace"),
    "evaluate-v1": ("app_params", "inputs", "output", "correct_answer"),
}
_LEGACY_FIRST = "app_params"
_LEGACY_FOURTH = {"correct_answer", "datapoint"}
_EXPECTED = (
    "define `def evaluate(inputs, outputs, trace)`, the legacy `def evaluate(app_params, inputs, output, "
    "correct_answer)`, or `def main(...)` with the names of the variables it needs"
)


class Entry:
    """What is called for each row.

    Attributes:
      call: The user's function, or whatever is callable under its name.
      contract: `evaluate`, `evaluate-v1`, `main`, `nemo` or `uipath`.
      source: `declared` or `inferred`.
      reason: Why this contract applies, for people.
      name: Under which it was found.
      signature: Its parameters; None when the interpreter cannot tell.
      notes: What its author should know.
      together: Whether it may be called with rows, as `together`, for what they have together.
    """

    __slots__ = ("call", "contract", "name", "notes", "reason", "signature", "source", "together")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call
        self.signature = signature.read(call)
        self.together = False
        self.notes: list[dict[str, str]] = []
        self.contract = ""
        self.source = ""
        self.reason = ""


def find(namespace: dict[str, Any], *, contract: str, name: str | None, config: dict[str, Any] | None = None) -> Entry:
    """Return what to call; `config` holds the arguments of a class.

    Raises:
      Failure: nothing, or more than one thing, can be meant, or its parameters do not fit.
    """
    if contract == "nemo" or (contract == "auto" and nemo.applies(namespace, name)):
        return _metric(namespace, name, config or {}, inferred=contract == "auto")
    if contract == "uipath" or (contract == "auto" and uipath.applies(namespace, name)):
        return _evaluator(namespace, name, config or {}, inferred=contract == "auto")
    if contract != "auto":
        return _declared(namespace, contract, name or ("main" if contract == "main" else "evaluate"))
    if name is not None:
        return _inferred(_named(namespace, name))
    candidates = [n for n in ("evaluate", "main") if n in namespace and _is_entry(namespace[n])]
    if not candidates:
        raise _not_found(namespace, "evaluate")
    first = Entry(candidates[0], namespace[candidates[0]])
    if first.name == "evaluate" and len(candidates) == 2 and _evaluate_contract(first) is None:
        first = Entry("main", namespace["main"])
    return _inferred(first)


def _metric(namespace: dict[str, Any], name: str | None, config: dict[str, Any], *, inferred: bool) -> Entry:
    name, metric = nemo.find(namespace, name=name, config=config)
    entry = Entry(name, metric.score)
    entry.signature, entry.together = metric.signature, metric.together
    entry.contract, entry.source = "nemo", "inferred" if inferred else "declared"
    entry.reason = f"metric {metric.key} of {nemo.SDK}" if inferred else "contract nemo was declared"
    return entry


def _evaluator(namespace: dict[str, Any], name: str | None, config: dict[str, Any], *, inferred: bool) -> Entry:
    name, evaluator = uipath.find(namespace, name=name, config=config)
    entry = Entry(name, evaluator.evaluate)
    entry.signature, entry.notes = evaluator.signature, evaluator.notes
    entry.contract, entry.source = "uipath", "inferred" if inferred else "declared"
    entry.reason = f"{name}, a BaseEvaluator of uipath" if inferred else "contract uipath was declared"
    return entry


def _declared(namespace: dict[str, Any], contract: str, name: str) -> Entry:
    entry = _named(namespace, name)
    entry.contract, entry.source = contract, "declared"
    entry.reason = f"contract {contract} was declared"
    wanted = _ARGUMENTS.get(contract)
    if wanted is not None and entry.signature is not None and not entry.signature.takes(len(wanted)):
        raise _does_not_bind(entry, wanted)
    return entry


def _inferred(entry: Entry) -> Entry:
    entry.source = "inferred"
    contract = "main" if entry.name == "main" else _evaluate_contract(entry)
    if contract is None and entry.name == "evaluate":
        raise _does_not_bind(entry, _ARGUMENTS["evaluate"])
    entry.contract = contract or "main"
    if entry.signature is None:
        entry.reason = f"function {entry.name}"
    else:
        count = len(entry.signature.names)
        entry.reason = f"function {entry.name} with {count} parameter{'' if count == 1 else 's'}"
    return entry


def _evaluate_contract(entry: Entry) -> str | None:
    """Return which `evaluate` a function is by its parameters, or None.

    Raises:
      Failure: it takes anything, so both fit.
    """
    parameters = entry.signature
    if parameters is None or (parameters.var_positional is not None and not parameters.positional):
        raise Failure(
            "entry_ambiguous",
            f"`{entry.name}` takes any number of arguments, so it may be either of: evaluate (inputs, outputs, trace); "
            "evaluate-v1 (app_params, inputs, output, correct_answer)",
            hint="set `contract` to the one that is meant",
        )
    if parameters.takes(4) and _looks_legacy(parameters.positional):
        return "evaluate-v1"
    if parameters.takes(3):
        return "evaluate"
    return "evaluate-v1" if parameters.takes(4) else None


def _looks_legacy(names: list[str]) -> bool:
    return names[:1] == [_LEGACY_FIRST] or (len(names) > 3 and names[3] in _LEGACY_FOURTH)


def _named(namespace: dict[str, Any], name: str) -> Entry:
    if name not in namespace or not _is_entry(namespace[name]):
        raise _not_found(namespace, name)
    return Entry(name, namespace[name])


def _is_entry(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _does_not_bind(entry: Entry, wanted: tuple[str, ...]) -> Failure:
    names = entry.signature.names if entry.signature is not None else []
    count = f"{len(names)} parameter{'' if len(names) == 1 else 's'} ({', '.join(names)})" if names else "no parameters"
    return Failure(
        "binding_error",
        f"`{entry.name}` takes {count}, but it is called with {len(wanted)}: {', '.join(wanted)}",
        hint=f"write `def {entry.name}({', '.join(wanted)})`; the names are free, their number is not",
    )


def _not_found(namespace: dict[str, Any], wanted: str) -> Failure:
    own = {name: value for name, value in namespace.items() if not name.startswith("__")}
    functions = [name for name, value in own.items() if _is_entry(value) and _is_ours(value)]
    classes = [name for name, value in own.items() if isinstance(value, type) and _is_ours(value)]
    if wanted in own:
        kind = "a class" if isinstance(own[wanted], type) else f"of type {type(own[wanted]).__name__}"
        message = f"`{wanted}` is {kind}, not a function"
    else:
        names = "`evaluate` or `main`" if wanted == "evaluate" else f"`{wanted}`"
        message = f"the code defines no function named {names}"
        if functions:
            message += f"; it defines {', '.join(functions[:10])}"
        elif classes:
            message += f"; it defines only {', '.join(classes[:10])}"
    return Failure("entry_not_found", message, hint=_hint(wanted, functions, classes))


def _is_ours(value: Any) -> bool:
    try:
        return bool(value.__module__ == "evaluator")
    except Exception:  # noqa: BLE001 - an attribute of a user's object may do anything
        return False


def _hint(wanted: str, functions: list[str], classes: list[str]) -> str:
    import difflib

    spelled = {name.lower(): name for name in functions}
    names = ["evaluate", "main"] if wanted == "evaluate" else [wanted]
    close = [spelled[match] for name in names for match in difflib.get_close_matches(name.lower(), spelled, 1, 0.6)]
    if close:
        return f"did you mean `{close[0]}`? Rename it, or name it in `settings.entry`; otherwise {_EXPECTED}"
    if len(functions) == 1:
        return f"name `{functions[0]}` in `settings.entry`, or {_EXPECTED}"
    if classes and not functions:
        return (
            f"a class is not called: bind an instance that has `__call__`, `evaluate = {classes[0]}()`, or {_EXPECTED}"
        )
    return f'{_EXPECTED}; code under `if __name__ == "__main__"` does not run'

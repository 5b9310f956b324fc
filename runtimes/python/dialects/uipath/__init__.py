"""Runs UiPath evaluators (dialect `uipath`): finds and creates the evaluator, and describes its class for a check.

This works with the package that the code has imported as `uipath`: the runner's light modules, or the real package.
"""

from __future__ import annotations

import sys

from evaluator_runner import classes, failures, interpreter_hooks, jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.dialects.uipath.execution import Evaluator, explained, unknown
from evaluator_runner.encode import TooLarge, encode_result
from evaluator_runner.entry import Entry
from evaluator_runner.failures import Failure
from evaluator_runner.tracebacks import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTRACT = "uipath"
PREBOUND = True
SDK = "uipath.eval.evaluators.base_evaluator"
# keys of an evaluator's file besides its config
_WHOLE = ("id", "evaluatorTypeId", "version", "name", "description")
_MOST = 100
_SHOWN = 10
_DESCRIPTION_BYTES = 1 << 16
_TEXT_CHARS = 16_384
_ID_HINT = 'add to the class what the documentation shows: `@classmethod def get_evaluator_id(cls) -> str: return "…"`'
_modules = sys.modules


def applies(namespace: dict[str, Any], name: str | None) -> bool:
    """Return whether the code defines an evaluator of the SDK, and if `name` is set, that evaluator."""
    found = _classes(namespace)
    return bool(found) if name is None else _named(found, name) is not None


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that calls the evaluator whose name or id is `name`; if `name` is None, the only evaluator.

    Raises:
      Failure: no evaluator matches, `name` is None and there are several, or the class is invalid.
    """
    found = _classes(namespace)
    if not found:
        raise _none(namespace)
    kind = _only(found) if name is None else _named(found, name)
    if kind is None:
        raise Failure(
            "entry_not_found",
            f"`{name}` is neither an evaluator class nor an evaluator's id; the code defines {_names(found)}",
            hint="name one of them in `settings.entry`",
        )
    made = _made(kind, config)
    evaluator = Evaluator(made, ignored=unknown(type(made.evaluator_config), _own_config(config)))
    entry = Entry(kind.__name__, evaluator.evaluate)
    entry.signature, entry.notes = evaluator.signature, evaluator.notes
    entry.reason = f"{kind.__name__}, a BaseEvaluator of uipath"
    return entry


def describe(namespace: dict[str, Any], source: list[str]) -> list[dict[str, Any]]:
    """Return a description of each evaluator class, in the order of definition.

    `source` has the lines of the code, to say where an error is.
    """
    found = _classes(namespace)
    return [_description(kind, found[kind], source) for kind in list(found)[:_MOST]]


def _classes(namespace: dict[str, Any]) -> dict[Any, int | None]:
    base = getattr(_modules.get(SDK), "BaseEvaluator", None)
    if not isinstance(base, type):
        return {}
    own = [value for value in namespace.values() if isinstance(value, type) and _is_own(value, base)]
    if not own:
        return {}
    where = classes.lines(namespace)
    found = {kind: where.get(kind.__name__) for kind in own}
    return dict(sorted(found.items(), key=lambda item: item[1] or 0))


def _is_own(kind: Any, base: type) -> bool:
    """Return whether the code itself defines this class. Classes that `BaseEvaluator[…]` makes do not count."""
    generic = getattr(kind, "__pydantic_generic_metadata__", None) or {}
    return issubclass(kind, base) and kind.__module__ == "evaluator" and generic.get("origin") is None


def _lacks(kind: Any) -> list[str]:
    return sorted(kind.__abstractmethods__)


def _only(found: dict[Any, Any]) -> Any:
    """Return the only complete evaluator class that is not a base of another; the last class if none is complete.

    Raises:
      Failure: there are several such classes.
    """
    complete = [kind for kind in found if not _lacks(kind)]
    last = [kind for kind in complete if not any(kind in other.__mro__[1:] for other in complete)]
    if not last:
        return list(found)[-1]
    if len(last) > 1:
        raise Failure(
            "entry_ambiguous",
            f"the code defines {len(last)} evaluators: {_names(last)}",
            hint="name the one that you mean in `settings.entry`: its class, or its id",
        )
    return last[0]


def _named(found: dict[Any, Any], name: str) -> Any:
    for kind in found:
        if kind.__name__ == name:
            return kind
    for kind in found:
        try:
            if not _lacks(kind) and kind.get_evaluator_id() == name:
                return kind
        except Exception:  # noqa: BLE001, S112 - a user's method may raise anything
            continue
    return None


def _names(found: Any) -> str:
    return ", ".join([kind.__name__ for kind in found][:_SHOWN])


def _none(namespace: dict[str, Any]) -> Failure:
    own = [name for name, value in namespace.items() if isinstance(value, type) and value.__module__ == "evaluator"]
    message = "could not find a class inheriting from BaseEvaluator"
    if own:
        message += f"; the code defines {', '.join(own[:_SHOWN])}"
    return Failure(
        "entry_not_found",
        message,
        hint="write `class MyEvaluator(BaseEvaluator[MyCriteria, MyConfig, str])`, "
        "with BaseEvaluator from uipath.eval.evaluators",
    )


def _made(kind: Any, config: dict[str, Any]) -> Any:
    """Make and return an evaluator from its configuration, or from the whole content of an evaluator's JSON file.

    Raises:
      Failure: the class or the configuration is invalid.
    """
    identity = _identity(kind)
    own = dict(_own_config(config))
    values = {name: config[name] for name in _WHOLE if "evaluatorConfig" in config and config.get(name)}
    values = {"id": identity, **values, "evaluatorConfig": own, "config": own}
    try:
        return kind.model_validate(values)
    except Exception as error:  # noqa: BLE001 - a validator of the author's may raise anything
        raise _refused(kind, error) from None


def _own_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration. `config` may be the configuration, or the whole content of an evaluator's JSON file."""
    own = config.get("evaluatorConfig")
    return own if isinstance(own, dict) else config


def _identity(kind: Any) -> str:
    missing = _lacks(kind)
    if missing:
        what = " and ".join([f"`{name}`" for name in missing])
        prefix = "Error getting evaluator ID: " if "get_evaluator_id" in missing else ""
        hint = _ID_HINT if "get_evaluator_id" in missing else "write `async def evaluate(self, agent_execution, …)`"
        raise Failure("entry_not_found", f"{prefix}`{kind.__name__}` does not define {what}", hint=hint)
    try:
        identity = kind.get_evaluator_id()
    except Exception as error:  # noqa: BLE001 - a user's method may raise anything
        message = f"Error getting evaluator ID: `{kind.__name__}.get_evaluator_id()` raised {text_of(error)}"
        raise Failure("load_error", message, hint=_ID_HINT) from None
    if not isinstance(identity, str) or not identity:
        message = (
            f"Error getting evaluator ID: `{kind.__name__}.get_evaluator_id()` returned {identity!r:.60}, not a string"
        )
        raise Failure("load_error", message, hint=_ID_HINT)
    return str.__str__(identity)


def _refused(kind: Any, error: Exception) -> Failure:
    info = getattr(error, "error_info", None)
    cause = error.__cause__ if info is not None else error
    if hasattr(cause, "errors"):
        hint = f"`settings.config` is the evaluator's configuration; {_fields(kind)}"
        return Failure("binding_error", f"`{kind.__name__}` cannot be created: {explained(cause, 'config')}", hint=hint)
    if info is None:
        return Failure("load_error", f"`{kind.__name__}` cannot be created: {text_of(error)}")
    detail = info.detail.partition("\n\nTraceback")[0]
    return Failure("load_error", f"{info.title}. {detail}")


def _fields(kind: Any) -> str:
    try:
        config = kind.model_fields["config_type"].annotation.__args__[0].model_fields
        return "its keys are " + ", ".join([field.alias or name for name, field in config.items()])
    except (KeyError, AttributeError, IndexError):
        return "see its class for the keys"


def _description(kind: Any, line: int | None, source: list[str]) -> dict[str, Any]:
    doc = kind.__dict__.get("__doc__")
    known: dict[str, Any] = {
        "name": kind.__name__[:_TEXT_CHARS],
        "line": line,
        "docstring": doc[:_TEXT_CHARS] if isinstance(doc, str) else None,
        "id": None,
        "abstract": _lacks(kind),
        "error": None,
        "types": None,
        "config": None,
    }
    try:
        known["id"] = interpreter_hooks.call(_identity, (kind,))[:_TEXT_CHARS]
        known["types"] = _plain(interpreter_hooks.call(_types, (kind,)))
        known["config"] = _plain(interpreter_hooks.call(_config, (kind,)))
    except BaseException as raised:  # noqa: BLE001 - a user's class may do anything
        known["error"] = failures.from_exception(raised, source, general="load_error")
    return known


def _types(kind: Any) -> Any:
    try:
        return kind.generate_json_type()
    except Exception as error:
        if getattr(error, "error_info", None) is None:
            raise
        raise _refused(kind, error) from None


def _config(kind: Any) -> Any:
    return _made(kind, {}).evaluator_config.model_dump(mode="json", by_alias=True)


def _plain(value: Any) -> Any:
    try:
        read = jsontext.decode(encode_result(value, limit=_DESCRIPTION_BYTES).decode())
    except TooLarge:
        size_kb = _DESCRIPTION_BYTES >> 10
        raise Failure("load_error", f"the description of the class is larger than {size_kb} KB") from None
    if read["kind"] != "object" or read["unsupported"] is not None:
        raise Failure("load_error", f"the description of the class cannot be written as JSON: {read['unsupported']}")
    return read["value"]

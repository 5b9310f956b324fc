"""Converts a metric object to code for a sandbox: the object's class, and what the class needs.

The rest of the file (evaluations, prints, other classes) is left out, so that loading the code only defines a metric.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

ENTRY: Final = "submitted_metric"
"""Name of the metric in the generated code."""

_SDK: Final = "nemo_evaluator_sdk"
_OURS: Final = re.compile(r"\bevaluator_host\.sdk\b")
_BUILT_IN: Final = (
    f"import json\n\nfrom {_SDK} import {{name}}\n\n{ENTRY} = {{name}}.model_validate(json.loads({{state!r}}))\n"
)


class NoSource(TypeError):
    """A metric whose code cannot be sent to a sandbox or a host. The message says why, and what to do."""


def metric_code(metric: Any) -> str:
    """Return the source of a module that recreates the metric object.

    Args:
      metric: An instance of a built-in class, or of a class that the caller wrote.

    Raises:
      NoSource: the class is not defined in a file, or the metric's state cannot be written as JSON.
    """
    kind = type(metric)
    if kind.__module__.partition(".")[0] == _SDK or kind.__module__.startswith("evaluator_host.sdk."):
        return _BUILT_IN.format(name=kind.__name__, state=_state(metric))
    name = kind.__qualname__
    if not name.isidentifier():
        raise NoSource(f"the class {name} is defined inside a function or class; define it at the top of a module")
    code = _OURS.sub(_SDK, _needed(_module_source(kind), name))
    return f"{code}\n\nimport json as _json\n\n{_made(metric, name)}"


def _made(metric: Any, name: str) -> str:
    if isinstance(metric, BaseModel):
        return f"{ENTRY} = {name}.model_validate(_json.loads({_state(metric)!r}))\n"
    state = _state(metric)
    made = f"{ENTRY} = {name}.__new__({name})\n"
    return made if state == "{}" else f"{made}vars({ENTRY}).update(_json.loads({state!r}))\n"


def _state(metric: Any) -> str:
    if isinstance(metric, BaseModel):
        return metric.model_dump_json(exclude_unset=True)
    state = getattr(metric, "__dict__", {})
    try:
        text = json.dumps(state, allow_nan=False)
        same = json.loads(text) == state
    except (TypeError, ValueError):
        same, text = False, ""
    if not same:
        names = ", ".join(state)
        raise NoSource(
            f"the metric holds a value that cannot be written as JSON (its attributes are {names}); "
            "keep only plain values in it, and create the others while a row is scored"
        )
    return text


def _module_source(kind: type) -> str:
    try:
        module = inspect.getmodule(kind)
        if module is not None and getattr(module, "__file__", None):
            return inspect.getsource(module)
        return inspect.getsource(kind)
    except (OSError, TypeError) as error:
        raise NoSource(f"the source of {kind.__qualname__} cannot be found; define the metric in a file") from error


def _needed(source: str, name: str) -> str:
    """Return the source of the module's statements that a class needs, in their original order."""
    statements = ast.parse(source).body
    defined: dict[str, list[int]] = {}
    for at, statement in enumerate(statements):
        for one in _names_bound(statement):
            defined.setdefault(one, []).append(at)
    wanted: set[int] = {at for at, statement in enumerate(statements) if _always(statement)}
    found = [name]
    seen: set[str] = set()
    while found:
        one = found.pop()
        if one in seen:
            continue
        seen.add(one)
        for at in defined.get(one, ()):
            wanted.add(at)
            found.extend(_names_used(statements[at]))
    lines = source.splitlines()
    return "\n".join("\n".join(lines[_first(statements[at]) - 1 : statements[at].end_lineno]) for at in sorted(wanted))


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(one.lineno for one in decorators)) if decorators else statement.lineno


def _always(statement: ast.stmt) -> bool:
    """Return whether the generated code always needs a statement: `from __future__ import …`, or an import with `*`."""
    if not isinstance(statement, ast.ImportFrom):
        return False
    return statement.module == "__future__" or any(alias.name == "*" for alias in statement.names)


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield statement.name
        case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
            if not _is_main(statement):
                for inner in ast.iter_child_nodes(statement):
                    yield from _names_bound(inner) if isinstance(inner, ast.stmt) else _of_handler(inner)
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id
            yield from _names_changed(statement)


def _names_changed(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement changes without binding them: `TABLE["a"] = 1`, `words.append("a")`."""
    changed: list[ast.expr] = []
    match statement:
        case ast.Assign():
            changed = list(statement.targets)
        case ast.AugAssign():
            changed = [statement.target]
        case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):
            changed = [method]
        case _:
            pass
    for whole in changed:
        part = whole
        while isinstance(part, ast.Subscript | ast.Attribute):
            part = part.value
        if isinstance(part, ast.Name):
            yield part.id


def _of_handler(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ExceptHandler):
        for inner in node.body:
            yield from _names_bound(inner)


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in {
        node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)
    }


def _names_used(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value  # an annotation written as a string

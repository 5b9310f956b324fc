"""Reads facts of code from its syntax tree: of each function that a row calls, what it does with its arguments.

They are read once, at load. The host makes its warnings of them, and says what the names of parameters mean.
"""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from evaluator_runner.entry import Entry

_ONLY_AST = 0x400
_MOST_CHARS = 200_000  # characters of code that is read: a tree takes a hundred times as much memory
_MOST_FUNCTIONS = 100
_MOST_NAMES = 20
_CHARS = 80
_DEFINITIONS = ("FunctionDef", "AsyncFunctionDef", "Lambda")
_WRAPPINGS = 10  # decorators around a function that are looked through
_WHOLE = ("Eq", "NotEq", "In", "NotIn")
_GETTERS = ("get", "pop", "setdefault")
_BY_TEXT = ("eval", "exec")  # functions that run text, which may read any name
_SCOPES = ("locals", "vars")  # functions that give every name when they get no arguments


class _Bound:
    def method(self) -> None:
        """Do nothing: it only gives the type of bound methods."""


_FUNCTION = type(lambda: None)
_METHOD = type(_Bound().method)


class Uses:
    """What a function does with one of its parameters.

    Attributes:
      read: Whether it reads it.
      tested: Whether it asks if it is None, or true.
      keys: Constant keys and attributes that it reads of it.
      compared: Other parameters with which it is compared as a whole.
    """

    __slots__ = ("compared", "keys", "read", "tested")

    def __init__(self) -> None:
        self.read = self.tested = False
        self.keys: dict[str, None] = {}
        self.compared: dict[str, None] = {}

    def to_json(self, name: str) -> dict[str, Any]:
        """Return the facts of the parameter of this name."""
        return {
            "name": name[:_CHARS],
            "read": self.read,
            "tested": self.tested,
            "keys": [one[:_CHARS] for one in [*self.keys][:_MOST_NAMES]],
            "compared": [one[:_CHARS] for one in [*self.compared][:_MOST_NAMES]],
        }


def facts_of(code: str, entry: Entry) -> list[dict[str, Any]]:
    """Return the facts of the functions that a row calls (runtimes/PROTOCOL.md); none for code that cannot be read."""
    if len(code) > _MOST_CHARS:
        return []
    shown = entry.signature.names if entry.name == "*" and entry.signature is not None else [entry.name]
    try:
        defined = list(_defined(compile(code, FILENAME, "exec", _ONLY_AST, dont_inherit=True)))
        compiled = _own_code(entry.call)
        found = [] if compiled is None else [one for one in defined if _is_compiled_to(one[1], compiled)]
        found = found or [one for name in shown for one in _named(defined, name.partition("(")[0])]
        return [_facts(name, node) for name, node in found[:_MOST_FUNCTIONS]]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _defined(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield each function of the code with its name; the name of a method has its class before it."""
    left: list[tuple[str, Any]] = [("", tree)]
    while left:
        inside, node = left.pop()
        kind = type(node).__name__
        if kind in _DEFINITIONS:
            yield inside + getattr(node, "name", "<lambda>"), node
        elif kind == "Assign" and type(node.value).__name__ == "Lambda" and type(node.targets[0]).__name__ == "Name":
            yield inside + node.targets[0].id, node.value
        deeper = f"{inside}{node.name}." if kind == "ClassDef" else inside
        left.extend([(deeper, part) for part in _parts(node)][::-1])


def _named(defined: list[tuple[str, Any]], name: str) -> list[tuple[str, Any]]:
    """Return the last function of this name, or the methods of the class of this name."""
    functions = [one for one in defined if one[0] == name]
    methods = [one for one in defined if one[0].startswith(f"{name}.") and _is_called_by_name(one[0])]
    return [max(functions, key=lambda one: one[1].lineno)] if functions else methods


def _is_called_by_name(method: str) -> bool:
    last = method.rpartition(".")[2]
    return last == "__call__" or not last.startswith("__")


def _own_code(call: Any) -> Any:
    """Return the compiled function that a callable stands for; None if it is not of the evaluator's code."""
    for _ in range(_WRAPPINGS):
        kind = type(call)
        if kind is _METHOD:
            call = call.__func__
        elif kind is _FUNCTION and "__wrapped__" in call.__dict__:
            call = call.__dict__["__wrapped__"]
        elif kind is _FUNCTION:
            return call.__code__ if call.__code__.co_filename == FILENAME else None
        elif kind.__module__ == "functools" and kind.__name__ == "partial":
            call = call.func
        else:
            call = kind.__dict__.get("__call__")
    return None


def _is_compiled_to(node: Any, compiled: Any) -> bool:
    first = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
    if getattr(node, "name", "<lambda>") != compiled.co_name or first != compiled.co_firstlineno:
        return False
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return names == list(compiled.co_varnames[: len(names)])


def _facts(name: str, node: Any) -> dict[str, Any]:
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    if "." in name and names[:1] in (["self"], ["cls"]):
        del names[0]
    rest = [one.arg for one in (given.vararg, given.kwarg) if one is not None]
    uses = {one: Uses() for one in (*names[:_MOST_NAMES], *rest)}
    live = dict(uses)
    for statement in node.body if isinstance(node.body, list) else [node.body]:
        _note_uses(statement, live)
        live = {one: of for one, of in live.items() if not _assigns(statement, one)}
    return {
        "name": name[:_CHARS],
        "line": node.lineno,
        "rest": any(uses[one].read for one in rest),
        "parameters": [uses[one].to_json(one) for one in names[:_MOST_NAMES]],
    }


def _assigns(statement: Any, name: str) -> bool:
    """Return whether a statement gives a name another value."""
    kind = type(statement).__name__
    targets = statement.targets if kind == "Assign" else [statement.target] if kind == "AnnAssign" else []
    return any(getattr(one, "id", None) == name for one in targets) and statement.value is not None


def _note_uses(node: Any, live: dict[str, Uses]) -> None:
    """Note all that a statement does with parameters; `live` has those whose names still stand for them."""
    left = [(node, live)]
    while left:
        one, known = left.pop()
        kind = type(one).__name__
        if kind in _DEFINITIONS:
            own = one.args
            hidden = {a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg) if a}
            known = {name: of for name, of in known.items() if name not in hidden}
        elif hasattr(one, "generators"):
            left.append((one.generators[0].iter, known))
            hidden = {part.id for each in one.generators for part in _all(each.target) if hasattr(part, "id")}
            known = {name: of for name, of in known.items() if name not in hidden}
        note = _NOTES.get(kind)
        if note is not None:
            note(one, known)
        left.extend([(part, known) for part in _parts(one)][::-1])


def _note_name(node: Any, known: dict[str, Uses]) -> None:
    if node.id in known and type(node.ctx).__name__ == "Load":
        known[node.id].read = True


def _note_changed(node: Any, known: dict[str, Uses]) -> None:
    if (changed := _of(node.target, known)) is not None:
        changed.read = True


def _note_test(node: Any, known: dict[str, Uses]) -> None:
    _note_truth(node.test, known)


def _note_truth(node: Any, known: dict[str, Uses]) -> None:
    """Note the parameters that an expression asks whether they are true."""
    kind = type(node).__name__
    if (asked := _of(node, known)) is not None:
        asked.tested = True
    elif kind == "UnaryOp":
        _note_not(node, known)
    elif kind == "BoolOp":
        for one in node.values:
            _note_truth(one, known)


def _note_not(node: Any, known: dict[str, Uses]) -> None:
    if type(node.op).__name__ == "Not":
        _note_truth(node.operand, known)


def _note_either(node: Any, known: dict[str, Uses]) -> None:
    for one in node.values[:-1]:
        _note_truth(one, known)


def _note_filters(node: Any, known: dict[str, Uses]) -> None:
    for one in node.ifs:
        _note_truth(one, known)


def _note_match(node: Any, known: dict[str, Uses]) -> None:
    asked = _of(node.subject, known)
    if asked is not None and any(type(one).__name__ == "MatchSingleton" for case in node.cases for one in _all(case)):
        asked.tested = True


def _note_comparison(node: Any, known: dict[str, Uses]) -> None:
    operands = [node.left, *node.comparators]
    for one, sign, other in zip(operands, node.ops, operands[1:], strict=False):
        for this, that in ((one, other), (other, one)):
            used, against = _of(this, known), _of(that, known)
            if used is None:
                continue
            if type(that).__name__ == "Constant" and that.value is None:
                used.tested = True
            elif against is not None and type(sign).__name__ in _WHOLE:
                used.compared[that.id] = None


def _note_attribute(node: Any, known: dict[str, Uses]) -> None:
    if (of := _of(node.value, known)) is not None and node.attr not in _GETTERS:
        of.keys[node.attr] = None


def _note_key(node: Any, known: dict[str, Uses]) -> None:
    key = node.slice.value if type(node.slice).__name__ == "Index" else node.slice  # `Index` before Python 3.9
    _note_constant(_of(node.value, known), key)


def _note_call(node: Any, known: dict[str, Uses]) -> None:
    if getattr(node.func, "id", None) in (_BY_TEXT if node.args else _SCOPES):
        for uses in known.values():
            uses.read = True
    elif type(node.func).__name__ == "Attribute" and node.func.attr in _GETTERS and node.args:
        _note_constant(_of(node.func.value, known), node.args[0])


def _note_constant(of: Uses | None, key: Any) -> None:
    if of is not None and isinstance(getattr(key, "value", None), str):
        of.keys[key.value] = None


def _of(node: Any, known: dict[str, Uses]) -> Uses | None:
    """Return the uses of a parameter if the expression is just its name; None for any other expression."""
    return known.get(node.id) if type(node).__name__ == "Name" else None


_NOTES = {
    "Name": _note_name,
    "AugAssign": _note_changed,
    "If": _note_test,
    "IfExp": _note_test,
    "While": _note_test,
    "Assert": _note_test,
    "UnaryOp": _note_not,
    "BoolOp": _note_either,
    "comprehension": _note_filters,
    "Match": _note_match,
    "Compare": _note_comparison,
    "Attribute": _note_attribute,
    "Subscript": _note_key,
    "Call": _note_call,
}


def _all(node: Any) -> Iterator[Any]:
    left = [node]
    while left:
        one = left.pop()
        yield one
        left.extend(_parts(one))


def _parts(node: Any) -> Iterator[Any]:
    for name in node._fields:
        value = getattr(node, name, None)
        yield from (one for one in (value if isinstance(value, list) else [value]) if hasattr(one, "_fields"))

"""Reads facts about code from its syntax tree: what functions do with their arguments and the arguments' parts.

The facts are read once, when the code is loaded. The host derives its warnings from these facts; only the host knows
the meanings of names such as `outputs`.
"""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from evaluator_runner.entry import Entry

    Known = dict[str, list["Uses"]]

_ONLY_AST = 0x400
# read at most this many characters of code: a syntax tree takes a hundred times as much memory
_MOST_CHARS = 200_000
_MOST_FUNCTIONS = 100
_MOST_NAMES = 20
_MOST_READS = 500
_MOST_PARTS = 20  # maximum number of parts in a dotted name: `a.b.c` has three
_CHARS = 80
_DEFINITIONS = ("FunctionDef", "AsyncFunctionDef", "Lambda")
_WRAPPINGS = 10  # unwrap at most this many decorators of a function
_WHOLE = ("Eq", "NotEq", "In", "NotIn")
_GETTERS = ("get", "pop", "setdefault")
_OWN = ("self", "cls")  # parameters that get a method's own object, whose attributes do not come from a row
_SAME = ("strip", "lower", "upper", "casefold", "copy")  # methods that return the same value in another form
_BY_TEXT = ("eval", "exec")  # functions that run a string; the code in the string may read any name
_SCOPES = ("locals", "vars")  # functions that, called without arguments, give access to every name


class _Bound:
    def method(self) -> None:
        """Do nothing. This method exists only so that the runner can get the type of methods."""


_FUNCTION = type(lambda: None)
_METHOD = type(_Bound().method)


class Uses:
    """How the code uses one value: a parameter, or a field that the code reads by a constant name.

    Attributes:
      of: Name of the value from which the code reads the field; empty if that value has no name. None for a parameter.
      key: Name of the parameter or field.
      owner: Function that has the parameter.
      read: Whether the code reads the value.
      tested: Whether the code tests if the value is None or true, or gives it a default.
      asked: Whether the code tests if the value is None or true, without giving it a default.
      keys: Constant keys and attributes that the code reads from the value.
      compared: Other parameters with which the code compares the whole value.
    """

    __slots__ = ("asked", "compared", "key", "keys", "of", "owner", "read", "tested")

    def __init__(self, of: str | None, key: str, owner: Any = None) -> None:
        self.of = of
        self.key = key
        self.owner = owner
        self.read = self.tested = self.asked = False
        self.keys: dict[str, None] = {}
        self.compared: dict[str, None] = {}

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "name": self.key[:_CHARS],
            "read": self.read,
            "tested": self.tested,
            "keys": [one[:_CHARS] for one in [*self.keys][:_MOST_NAMES]],
            "compared": [one[:_CHARS] for one in [*self.compared][:_MOST_NAMES]],
        }


class _Function:
    """A function, and what it does with its parameters.

    The name of a method begins with the name of its class.
    """

    __slots__ = ("name", "node", "parameters", "rest")

    def __init__(self, name: str, node: Any) -> None:
        given = node.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        if "." in name and names[:1] in (["self"], ["cls"]):
            del names[0]
        self.name = name
        self.node = node
        self.parameters = [Uses(None, one, node) for one in names[:_MOST_NAMES]]
        self.rest = [Uses(None, one.arg, node) for one in (given.vararg, given.kwarg) if one is not None]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name[:_CHARS],
            "line": self.node.lineno,
            "rest": any(one.read for one in self.rest),
            "parameters": [one.to_json() for one in self.parameters],
        }


class _Scope:
    """The scope of a node.

    Attributes:
      known: The values that each name may have.
      inside: Names of the classes around the node, each with a dot after it.
      top: Whether the node is a statement directly in a function's body, not in a block of it.
      asks: Whether the node is part of the condition of an `if` statement.
    """

    __slots__ = ("asks", "inside", "known", "top")

    def __init__(self, known: Known, inside: str, *, top: bool = False, asks: bool = False) -> None:
        self.known = known
        self.inside = inside
        self.top = top
        self.asks = asks


def facts_of(code: str, entry: Entry) -> dict[str, Any]:
    """Return `facts` about the functions that are called for a row, and `reads` (see runtimes/PROTOCOL.md)."""
    if entry.facts is not None:
        return entry.facts
    nothing: dict[str, Any] = {"facts": [], "reads": []}
    if len(code) > _MOST_CHARS:
        return nothing
    shown = entry.signature.names if entry.name == "*" and entry.signature is not None else [entry.name]
    try:
        outline = Outline(compile(code, FILENAME, "exec", _ONLY_AST, dont_inherit=True))
        compiled = _own_code(entry.call)
        found = [] if compiled is None else [one for one in outline.functions if is_compiled_to(one.node, compiled)]
        found = found or [one for name in shown for one in _named(outline.functions, name.partition("(")[0])]
        return {"facts": [one.to_json() for one in found[:_MOST_FUNCTIONS]], "reads": outline.reads(found)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return nothing


def _named(defined: list[_Function], name: str) -> list[_Function]:
    """Return the last function with this name, or the methods of the last class with this name."""
    functions = [one for one in defined if one.name == name]
    methods = [one for one in defined if one.name.startswith(f"{name}.") and _is_called_by_name(one.name)]
    return [max(functions, key=lambda one: one.node.lineno)] if functions else methods


def _is_called_by_name(method: str) -> bool:
    last = method.rpartition(".")[2]
    return last == "__call__" or not last.startswith("__")


def _own_code(call: Any) -> Any:
    """Return the code object of the function that a callable calls, or None if other code defines the function."""
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


def is_compiled_to(node: Any, compiled: Any) -> bool:
    """Return whether a node is the function that has this code object."""
    if type(node).__name__ not in _DEFINITIONS:
        return False
    first = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
    if getattr(node, "name", "<lambda>") != compiled.co_name or first != compiled.co_firstlineno:
        return False
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return names == list(compiled.co_varnames[: len(names)])


class Outline:
    """The functions of code, and the values that the code reads by constant names."""

    def __init__(self, tree: Any) -> None:
        self.functions: list[_Function] = []
        self._used: dict[tuple[str, str], Uses] = {}
        self._asked: set[str] = set()  # names whose values `if` statements test
        self._hiding: set[int] = set()  # parameters of inner functions that have the name of an outer parameter
        self._called: set[int] = set()  # attributes that the code calls
        self._names: dict[int, str] = {}  # names of lambdas, by `id`
        left = [(tree, _Scope({}, ""), False)]
        while left:
            node, scope, is_read = left.pop()
            if is_read:
                self._bind(node, scope)
                continue
            kind = type(node).__name__
            if kind in _BINDINGS and node.value is not None:
                left.append((node, scope, True))
            note = _NOTES.get(kind)
            if note is not None:
                note(self, node, scope)
            below = _Scope(scope.known, scope.inside, asks=scope.asks) if scope.top else scope
            if kind in _SCOPED:
                left.extend([(part, within, False) for part, within in self._scoped(kind, node, below)][::-1])
            else:
                left.extend([(part, below, False) for part in _parts(node)][::-1])

    def reads(self, called: list[_Function]) -> list[dict[str, Any]]:
        """Return the fields that code reads by a literal name (`row["id"]`, `row.id`), and parameters that it tests.

        `called` has the functions that are called for a row.
        """
        own = {id(one) for function in called for one in function.parameters}
        every: dict[tuple[str | None, str], bool] = {
            (one.of, one.key): one.asked or one.of in self._asked for one in self._used.values()
        }
        for one in (one for function in self.functions for one in function.parameters if one.asked):
            if id(one) in own or id(one) not in self._hiding:
                every[None, one.key] = True
        return [
            {"of": None if of is None else of[:_CHARS], "key": key[:_CHARS], "tested": tested}
            for (of, key), tested in [*every.items()][:_MOST_READS]
        ]

    def asks(self, of: str, key: str) -> bool:
        """Return whether the code tests a field; `of` is the name of the value that has the field."""
        used = self._used.get((of, key))
        return key in self._asked or of in self._asked or (used is not None and used.asked)

    def _scoped(self, kind: str, node: Any, scope: _Scope) -> Iterator[tuple[Any, _Scope]]:
        """Yield the parts of a node, each with its scope, because names or conditions may differ between parts."""
        if kind in _DEFINITIONS:
            body = node.body if isinstance(node.body, list) else [node.body]
            yield from ((part, scope) for part in _parts(node) if part not in body)
            inner = self._enter(node, scope)
            yield from ((part, inner) for part in body)
            return
        if kind == "If":
            yield node.test, _Scope(scope.known, scope.inside, asks=True)
            yield from ((part, scope) for part in (*node.body, *node.orelse))
            return
        if kind == "ClassDef":
            below = _Scope(dict(scope.known), f"{scope.inside}{node.name}.")
        else:
            yield node.generators[0].iter, scope
            hidden = {part.id for each in node.generators for part in _all(each.target) if hasattr(part, "id")}
            known = {name: of for name, of in scope.known.items() if name not in hidden}
            below = _Scope(known, scope.inside, asks=scope.asks)
        yield from ((part, below) for part in _parts(node))

    def _enter(self, node: Any, scope: _Scope) -> _Scope:
        name = getattr(node, "name", None) or self._names.get(id(node), "<lambda>")
        function = _Function(scope.inside + name, node)
        self.functions.append(function)
        around = {name for name, ofs in scope.known.items() if any(one.of is None for one in ofs)}
        self._hiding.update(id(one) for one in function.parameters if one.key in around)
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        hidden = {one.arg for one in every if one is not None}
        known = {name: ofs for name, ofs in scope.known.items() if name not in hidden}
        known.update({one.key: [one] for one in (*function.parameters, *function.rest)})
        return _Scope(known, scope.inside, top=isinstance(node.body, list))

    def _bind(self, node: Any, scope: _Scope) -> None:
        """Record the new value of a name. Inside a block, the name may also still have its earlier value afterwards."""
        values, known = self._values(node.value, scope.known), scope.known
        for target in getattr(node, "targets", None) or [node.target]:
            name = getattr(target, "id", None)
            if name is not None and (values or name in known):
                known[name] = values if scope.top else [*known.get(name, ()), *values][-_MOST_NAMES:]

    def note_lambda(self, node: Any, _: _Scope) -> None:
        if type(node.value).__name__ == "Lambda" and type(node.targets[0]).__name__ == "Name":
            self._names[id(node.value)] = node.targets[0].id

    def note_name(self, node: Any, scope: _Scope) -> None:
        if type(node.ctx).__name__ == "Load":
            for one in scope.known.get(node.id, ()):
                one.read = True

    def note_changed(self, node: Any, scope: _Scope) -> None:
        for one in scope.known.get(getattr(node.target, "id", ""), ()):
            one.read = True
        found = read_of(node.target)
        if found is not None:
            self._note_key(*found, scope.known)

    def note_if(self, node: Any, scope: _Scope) -> None:
        self._ask(node.test, scope, by_statement=True)

    def note_test(self, node: Any, scope: _Scope) -> None:
        self._ask(node.test, scope)

    def note_not(self, node: Any, scope: _Scope) -> None:
        if type(node.op).__name__ == "Not":
            self._ask(node.operand, scope)

    def note_either(self, node: Any, scope: _Scope) -> None:
        """Record the left operands of `and` and `or`: those of `and` are tested, those of `or` get a default."""
        for one in node.values[:-1]:
            if type(node.op).__name__ == "And":
                self._ask(one, scope)
            self._note_tested(one, scope.known)

    def _note_tested(self, node: Any, known: Known) -> None:
        kind = type(node).__name__
        if kind == "BoolOp":
            for one in node.values:
                self._note_tested(one, known)
        elif kind == "Name":
            for value in known.get(node.id, ()):
                value.tested = True

    def note_filters(self, node: Any, scope: _Scope) -> None:
        for one in node.ifs:
            self._ask(one, scope)

    def note_match(self, node: Any, scope: _Scope) -> None:
        if any(type(one).__name__ == "MatchSingleton" for case in node.cases for one in _all(case)):
            self._ask(node.subject, scope)

    def note_comparison(self, node: Any, scope: _Scope) -> None:
        operands = [node.left, *node.comparators]
        for one, sign, other in zip(operands, node.ops, operands[1:], strict=False):
            sign_name = type(sign).__name__
            if sign_name in ("In", "NotIn") and isinstance(getattr(one, "value", None), str):
                self._use(other, one.value, scope.known).asked = True
            for this, that in ((one, other), (other, one)):
                if _has_nothing(that):
                    self._ask(this, scope)
                elif sign_name in _WHOLE:
                    self._note_whole(this, that, scope.known)

    def _note_whole(self, this: Any, that: Any, known: Known) -> None:
        others = [one for one in known.get(getattr(that, "id", ""), ()) if one.of is None]
        for one in known.get(getattr(this, "id", ""), ()):
            own = (other.key for other in others if other is not one and other.owner is one.owner)
            one.compared.update(dict.fromkeys(own))

    def note_read(self, node: Any, scope: _Scope) -> None:
        """Record an attribute or key that is read, not one that is set."""
        found = None if type(node.ctx).__name__ == "Store" else read_of(node)
        if found is not None:
            self._note_key(*found, scope.known, is_method=id(node) in self._called)

    def note_call(self, node: Any, scope: _Scope) -> None:
        if getattr(node.func, "id", None) in (_BY_TEXT if node.args else _SCOPES):
            for one in (one for ofs in scope.known.values() for one in ofs):
                one.read = True
        found = read_of(node)
        if found is not None:
            self._note_key(*found, scope.known)
            if getattr(node.func, "id", None) == "hasattr":
                self._use(*found, scope.known).asked = True
        self._called.add(id(node.func))

    def _note_key(self, of: Any, key: str, known: Known, *, is_method: bool = False) -> None:
        for one in self._values(of, known) if not is_method or key not in _GETTERS else ():
            one.keys[key] = None
        if not is_method:
            self._use(of, key, known)

    def _ask(self, node: Any, scope: _Scope, *, by_statement: bool = False) -> None:
        """Record the values that a condition tests. `by_statement` means that an `if` statement has this condition."""
        kind = type(node).__name__
        if kind == "UnaryOp" and type(node.op).__name__ == "Not":
            self._ask(node.operand, scope, by_statement=by_statement)
            return
        if kind == "BoolOp":
            for one in node.values:
                self._ask(one, scope, by_statement=by_statement)
            return
        self._note_tested(node, scope.known)
        asked = self._values(node, scope.known)
        if by_statement or scope.asks:
            self._asked.update(one.key for one in asked)
            self._asked.update([node.id] if kind == "Name" else ())
        whole: tuple[Any, str] | None = (node, "")
        for _ in range(_MOST_PARTS):
            if whole is None:
                break
            for one in self._values(whole[0], scope.known):
                one.asked = True
            whole = read_of(whole[0])

    def _values(self, node: Any, known: Known, parts: int = _MOST_PARTS) -> list[Uses]:
        """Return the parameters and fields whose value an expression may have."""
        kind = type(node).__name__
        if kind == "Name":
            return known.get(node.id, [])
        if kind not in _VALUES or not parts:
            return []
        found = read_of(node)
        if found is not None:
            return [self._use(*found, known, parts - 1)]
        return [one for part in _alternatives(kind, node) for one in self._values(part, known, parts - 1)]

    def _use(self, of: Any, key: str, known: Known, parts: int = _MOST_PARTS) -> Uses:
        """Return the `Uses` of the field `key`, which code reads from the value `of`."""
        name = self._name_of(of, known, parts)
        return Uses(name, key) if name in _OWN else self._used.setdefault((name, key), Uses(name, key))

    def _name_of(self, node: Any, known: Known, parts: int) -> str:
        """Return the name of the value from which something is read; for an item of a list, return the list's name."""
        while type(node).__name__ == "Subscript" and read_of(node) is None:
            node = node.value
        values = self._values(node, known, parts)
        return values[0].key if values else getattr(node, "id", "")


def read_of(node: Any) -> tuple[Any, str] | None:
    """Return the value from which an expression reads, and the constant name that the expression reads; else None."""
    kind = type(node).__name__
    if kind == "Attribute":
        return node.value, node.attr
    if kind == "Subscript":
        # before Python 3.9, a constant key is in an `Index` node
        key = node.slice.value if type(node.slice).__name__ == "Index" else node.slice
        of = node.value
    elif kind == "Call" and type(node.func).__name__ == "Attribute" and node.func.attr in _GETTERS and node.args:
        of, key = node.func.value, node.args[0]
    elif kind == "Call" and getattr(node.func, "id", None) in ("getattr", "hasattr") and len(node.args) > 1:
        of, key = node.args[:2]
    else:
        return None
    return (of, key.value) if isinstance(getattr(key, "value", None), str) else None


def _alternatives(kind: str, node: Any) -> list[Any]:
    """Return the expressions whose value an expression may have, perhaps in another form: `x` for `x.strip()`."""
    if kind == "BoolOp":
        return list(node.values)
    if kind == "IfExp":
        return [node.body, node.orelse]
    if kind == "Call":
        return [node.func.value] if getattr(node.func, "attr", None) in _SAME else []
    return [node.value] if kind in ("Await", "NamedExpr") else []


def _has_nothing(node: Any) -> bool:
    """Return whether an expression is the constant None, or a list or tuple that contains it."""
    parts = getattr(node, "elts", None)
    one_of = [node] if parts is None else parts
    return any(type(one).__name__ == "Constant" and one.value is None for one in one_of)


_VALUES = ("Attribute", "Subscript", "Call", "BoolOp", "IfExp", "Await", "NamedExpr")
_SCOPED = frozenset((*_DEFINITIONS, "If", "ClassDef", "ListComp", "SetComp", "DictComp", "GeneratorExp"))
_BINDINGS = ("Assign", "AnnAssign", "NamedExpr")
_NOTES = {
    "Assign": Outline.note_lambda,
    "Name": Outline.note_name,
    "AugAssign": Outline.note_changed,
    "If": Outline.note_if,
    "IfExp": Outline.note_test,
    "While": Outline.note_test,
    "Assert": Outline.note_test,
    "UnaryOp": Outline.note_not,
    "BoolOp": Outline.note_either,
    "comprehension": Outline.note_filters,
    "Match": Outline.note_match,
    "Compare": Outline.note_comparison,
    "Attribute": Outline.note_read,
    "Subscript": Outline.note_read,
    "Call": Outline.note_call,
}


def _all(node: Any) -> Iterator[Any]:
    left = [node]
    while left:
        one = left.pop()
        yield one
        left.extend(_parts(one))


def _parts(node: Any) -> list[Any]:
    parts = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            parts += [one for one in value if hasattr(one, "_fields")]
        elif hasattr(value, "_fields"):
            parts.append(value)
    return parts

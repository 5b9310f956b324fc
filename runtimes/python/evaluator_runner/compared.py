"""Warns if an evaluator compares a value that the row lacks.

`inputs.get("expcted") == outputs.get("anwser")` is true in every row that has neither. Only comparisons that every call
makes count, and only if the code neither tests nor changes the values. There is no warning if the row lacks only one of
the two values, and the code has another way to decide: it also compares the other value with a value in the row, or
goes on if the two values differ. The same rules apply to JavaScript.
"""

from __future__ import annotations

from evaluator_runner import absent, facts, imports, jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.roles import OUTPUT, role_of
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from evaluator_runner.entry import Entry

_ONLY_AST = 0x400
_MOST_CHARS = 200_000
_MOST_PAIRS = 20
_MOST_STEPS = 20  # maximum number of keys and attributes on the way to a value
_TEXT_CHARS = 80
_SAME = ("casefold", "lower", "lstrip", "rstrip", "strip", "upper")  # methods that return the same text in another form
_CONVERTING = ("dumps", "repr", "str")  # functions that return the value of their argument in another form
_COMPARING = ("compare", "equal", "match", "same")  # words in the names of functions that compare two values
_SIGNS = ("Eq", "NotEq", "Is", "IsNot", "In", "NotIn")
_TELLING = ("debug", "error", "info", "log", "print", "warning")  # functions that do not change their arguments
_LEAVING = ("Return", "Raise", "Break", "Continue")  # statements that may end a call before the next one
_REPEATING = ("For", "AsyncFor", "While", "Match")
_APART = ("FunctionDef", "AsyncFunctionDef", "ClassDef", "Lambda", "ListComp", "SetComp", "DictComp", "GeneratorExp")
_CHANGING = ("clear", "pop", "popitem", "setdefault", "update")  # methods that change an object
# the place of the output among the arguments, for contracts whose other arguments have the row's own columns
_PLACES_OF_OUTPUT = {"evaluate": 1, "evaluate-v1": 2, "main": -1}
_ANY = "*"
_LACKING = object()
_GET, _GET_OBJECT, _ITEM, _ATTRIBUTE = range(4)  # x.get("a"), x.get("a", {}), x["a"], x.a

told: dict[str, None] = {}
"""Messages about comparisons in the current row."""


class _Bound:
    def method(self) -> None:
        """Do nothing. This method exists only so that the runner can get the types of functions and methods."""


_METHOD, _FUNCTION = type(_Bound().method), type(_Bound.method)


class Part:
    """A value that a function takes out of one of its arguments.

    Attributes:
      at: Position of the argument; -1 if it is passed only by name.
      name: Name of the parameter that gets the argument.
      steps: How the code takes the value out of the argument: pairs of a kind, such as `_GET`, and a key.
      text: The value as it appears in code.
      may_lack: Whether the row need not have the value, because it is in the output, or in a platform's own row.
    """

    __slots__ = ("at", "may_lack", "name", "steps", "text")

    def __init__(self, at: int, name: str, steps: tuple[tuple[int, str], ...], text: str, *, may_lack: bool) -> None:
        self.at = at
        self.name = name
        self.steps = steps
        self.text = text
        self.may_lack = may_lack

    def within(self, kind: int, key: str) -> Part | None:
        """Return the part that code takes out of this part; None if there would be too many steps."""
        if len(self.steps) == _MOST_STEPS:
            return None
        forms = (f".get({key!r})", f".get({key!r}, {{}})", f"[{key!r}]", f".{key}")
        may_lack = self.may_lack or role_of(key) == OUTPUT
        return Part(self.at, self.name, (*self.steps, (kind, key)), self.text + forms[kind], may_lack=may_lack)

    def is_lacking(self, args: Any, named: dict[str, Any]) -> bool:
        """Return whether code gets None because the row lacks this part."""
        return self.value(args, named) is _LACKING

    def value(self, args: Any, named: dict[str, Any]) -> Any:
        """Return the value in these arguments, `_LACKING` if code gets None instead, None if the value is unknown."""
        value = args[self.at] if 0 <= self.at < len(args) else named.get(self.name)
        for kind, key in self.steps:
            if isinstance(value, dict):
                if dict.__contains__(value, key):
                    value = dict.__getitem__(value, key)
                elif kind == _GET_OBJECT:
                    value = {}
                else:
                    return _LACKING if kind == _GET else None
            else:
                fields = _fields_of(value) if kind == _ATTRIBUTE else {}
                if key not in fields:
                    return None
                value = fields[key]
        return value


class Pair:
    """Two values that every call compares.

    Attributes:
      sides: The two values.
      others: For each side, the further values that the code compares with it.
      is_optional: Whether the code decides by something else if the two values differ.
      is_membership: Whether the code looks for the first value in the second.
    """

    __slots__ = ("is_membership", "is_optional", "others", "sides")

    def __init__(self, sides: tuple[Part, Part], *, is_optional: bool, is_membership: bool) -> None:
        self.sides = sides
        self.others: tuple[list[Part], list[Part]] = ([], [])
        self.is_optional = is_optional
        self.is_membership = is_membership

    def why_doubtful(self, args: Any, named: dict[str, Any]) -> str | None:
        """Return what the row lacks if this makes the comparison doubtful, else None."""
        one, other = self.sides
        if self.is_membership and isinstance(other.value(args, named), dict):
            return None
        if one.is_lacking(args, named) and other.is_lacking(args, named):
            return "has neither, so that None is equal to None"
        for side, others in zip(self.sides, reversed(self.others), strict=True):
            if not side.may_lack and side.is_lacking(args, named):
                if self.is_optional or any(not each.is_lacking(args, named) for each in others):
                    return None
                return f"does not have {side.text[:_TEXT_CHARS]}, which is None"
        return None


def watch(source: str, entry: Entry) -> None:
    """Find the values that an entry, or each of the evaluators that it calls, compares in every call."""
    for one in entry.parts.values() if entry.parts else (entry,):
        one.compared = _pairs_of(source, one.call, one.contract)


def look(pairs: list[Pair], args: Any, named: dict[str, Any]) -> None:
    """Record a message if a call with these arguments compares a value that the row lacks."""
    for pair in pairs:
        why = pair.why_doubtful(args, named)
        if why is not None:
            one, other = (side.text[:_TEXT_CHARS] for side in pair.sides)
            told[f"the code compares {one} with {other}, but the row {why}"] = None
            return


def added_to(body: bytes) -> bytes:
    """Add a note on a comparison to a result's body."""
    return jsontext.with_note(body, "missing_column", next(iter(told)))


def _pairs_of(source: str, call: Any, contract: str) -> list[Pair]:
    bound = type(call) is _METHOD
    function = call.__func__ if bound else call
    if ".get(" not in source or len(source) > _MOST_CHARS or type(function) is not _FUNCTION:
        return []
    if function.__code__.co_filename != FILENAME or "__wrapped__" in function.__dict__:
        return []
    try:
        tree = compile(source, FILENAME, "exec", _ONLY_AST, dont_inherit=True)
        node = next((one for one in absent.all_nodes(tree) if facts.is_compiled_to(one, function.__code__)), None)
        return [] if node is None else _Comparisons(node, contract, bound=bound).pairs()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


class _Comparisons:
    """The comparisons in a function. A name stands for a part of an argument only if it gets one value."""

    def __init__(self, node: Any, contract: str, *, bound: bool) -> None:
        nodes = absent.all_nodes(node)
        self._nodes = nodes
        self._body = node.body if isinstance(node.body, list) else [node.body]
        self._outline = facts.Outline(node)
        given: dict[str, int] = {}
        for name in (name for one in nodes for name in _given_by(one)):
            given[name] = given.get(name, 0) + 1
        self._once = {name for name, count in given.items() if count == 1}
        self._parts: dict[str, Part] = {}
        positional = [one.arg for one in (*node.args.posonlyargs, *node.args.args)][bound:]
        by_name = [one.arg for one in node.args.kwonlyargs]
        place = _PLACES_OF_OUTPUT.get(contract)
        for at, name in [*enumerate(positional), *((-1, name) for name in by_name)]:
            may_lack = place is None or 0 <= place == at or role_of(name) == OUTPUT
            self._bind(name, Part(at, name, (), name, may_lack=may_lack))
        assigned = [one for one in nodes if type(one).__name__ in ("Assign", "AnnAssign", "NamedExpr") and one.value]
        for one in sorted(assigned, key=lambda one: (one.lineno, one.col_offset)):
            targets = getattr(one, "targets", None) or [one.target]
            for target, value in _assigned_by(targets[0], one.value) if len(targets) == 1 else ():
                self._bind(target.id, self._part_of(value))
        self._written = {key for one in nodes for key in self._written_by(one)}

    def pairs(self) -> list[Pair]:
        """Return the pairs of values that every call compares."""
        found: list[Pair] = []
        for node, has_rest in _certain_in(self._body):
            sides = self._parts_in(node)
            if sides is not None and not any(map(self._is_settled, sides)):
                is_optional = has_rest and not _is_negative(node)
                found.append(Pair(sides, is_optional=is_optional, is_membership=_is_membership(node)))
        del found[_MOST_PAIRS:]
        equal = [self._parts_in(one) for one in self._nodes if not _is_negative(one)] if found else []
        for one, other in filter(None, equal):
            for pair in found:
                for side, others in zip(pair.sides, pair.others, strict=True):
                    others.extend(b for a, b in ((one, other), (other, one)) if a.text == side.text)
        return found

    def _parts_in(self, node: Any) -> tuple[Part, Part] | None:
        """Return the two parts that an expression compares; None if it does not compare two parts."""
        known = [one for one in map(self._part_of, _sides_of(node)) if one is not None]
        return (known[0], known[1]) if len(known) == 2 and known[0].text != known[1].text else None

    def _written_by(self, node: Any) -> list[str]:
        """Return the keys that a node may change; `*` stands for any key."""
        kind = type(node).__name__
        if kind in ("Attribute", "Subscript") and type(node.ctx).__name__ != "Load":
            found = facts.read_of(node)
            return [_ANY if found is None else found[1]]
        if kind == "Call" and getattr(node.func, "attr", None) in _CHANGING:
            return [_ANY]
        # a function that is called only for its effects, such as `prepare(row)` or `await self.fill(row)`
        called: Any = node.value if kind == "Expr" else None
        called = called.value if type(called).__name__ == "Await" else called
        if type(called).__name__ != "Call" or _name_of(called) in _TELLING or _sides_of(called):
            return []
        given = (one.value if type(one).__name__ in ("Starred", "keyword") else one for one in imports.children(called))
        return [_ANY] if any(self._part_of(one) is not None for one in given) else []

    def _bind(self, name: str, part: Part | None) -> None:
        if part is not None and name in self._once:
            self._parts[name] = part

    def _is_settled(self, part: Part) -> bool:
        """Return whether the function tests the part, or may change it."""
        if _ANY in self._written:
            return True
        of = part.name
        for _, key in part.steps:
            if key in self._written or self._outline.asks(of, key):
                return True
            of = key
        return False

    def _part_of(self, node: Any) -> Part | None:
        """Return the part of an argument that an expression gives, perhaps in another form; None if it gives none."""
        kind = type(node).__name__
        if kind == "Name":
            return self._parts.get(node.id)
        if kind == "Await":
            return self._part_of(node.value)
        if kind == "JoinedStr":
            only: Any = node.values[0] if len(node.values) == 1 else None
            return self._part_of(only.value) if type(only).__name__ == "FormattedValue" else None
        if kind == "BoolOp":
            return self._or_object(node)
        if kind == "Call":
            return self._called(node)
        found = facts.read_of(node) if kind in ("Attribute", "Subscript") else None
        whole = None if found is None else self._part_of(found[0])
        if found is None or whole is None:
            return None
        return whole.within(_ATTRIBUTE if kind == "Attribute" else _ITEM, found[1])

    def _called(self, node: Any) -> Part | None:
        name = getattr(node.func, "attr", None)
        if name == "get" and not node.keywords and 1 <= len(node.args) <= 2:
            found, default = facts.read_of(node), node.args[1] if len(node.args) == 2 else None
            whole = None if found is None else self._part_of(found[0])
            if found is None or whole is None:
                return None
            if default is None or (type(default).__name__ == "Constant" and default.value is None):
                return whole.within(_GET, found[1])
            return whole.within(_GET_OBJECT, found[1]) if _is_empty_object(default) else None
        if name in _SAME:
            return self._part_of(node.func.value)
        if _name_of(node) in _CONVERTING and node.args:
            return self._part_of(node.args[0])
        return None

    def _or_object(self, node: Any) -> Part | None:
        """Return the part in an expression such as `(x.get("a") or {})`, whose value is never None."""
        if type(node.op).__name__ != "Or" or len(node.values) != 2 or not _is_empty_object(node.values[1]):
            return None
        part = self._part_of(node.values[0])
        if part is None or not part.steps or part.steps[-1][0] != _GET:
            return None
        steps = (*part.steps[:-1], (_GET_OBJECT, part.steps[-1][1]))
        return Part(part.at, part.name, steps, f"({part.text} or {{}})", may_lack=part.may_lack)


def _fields_of(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


def _is_empty_object(node: Any) -> bool:
    return type(node).__name__ == "Dict" and not node.keys


def _sides_of(node: Any) -> list[Any]:
    """Return the two expressions that an expression compares; an empty list if it does not compare."""
    kind = type(node).__name__
    if kind == "Compare":
        signs = [type(one).__name__ for one in node.ops]
        return [node.left, *node.comparators] if len(signs) == 1 and signs[0] in _SIGNS else []
    if kind != "Call":
        return []
    name = _name_of(node).lower()
    if not any(word in name for word in _COMPARING):
        return []
    if len(node.args) > 1:
        return list(node.args[:2])
    return [node.func.value, *node.args] if node.args and type(node.func).__name__ == "Attribute" else []


def _name_of(call: Any) -> str:
    return str(getattr(call.func, "attr", None) or getattr(call.func, "id", ""))


def _is_negative(node: Any) -> bool:
    return type(node).__name__ == "Compare" and type(node.ops[0]).__name__ in ("NotEq", "IsNot", "NotIn")


def _is_membership(node: Any) -> bool:
    return type(node).__name__ == "Compare" and type(node.ops[0]).__name__ in ("In", "NotIn")


def _assigned_by(target: Any, value: Any) -> list[tuple[Any, Any]]:
    """Return pairs of a name and the expression whose value it gets."""
    pairs = [(target, value)]
    if {type(target).__name__, type(value).__name__} == {"Tuple"} and len(target.elts) == len(value.elts):
        pairs = [*zip(target.elts, value.elts, strict=True)]
    return [pair for pair in pairs if type(pair[0]).__name__ == "Name"]


def _given_by(node: Any) -> list[str]:
    """Return the names to which a node gives values; a name twice if it may get any number of values."""
    kind = type(node).__name__
    if kind == "Name":
        return [] if type(node.ctx).__name__ == "Load" else [node.id]
    if kind == "arg":
        return [node.arg]
    if kind in ("Global", "Nonlocal"):
        return [*node.names, *node.names]
    named = (getattr(node, field, None) for field in ("name", "asname", "rest"))
    return [name for name in named if isinstance(name, str)]


def _certain_in(body: list[Any]) -> list[tuple[Any, bool]]:
    """Return what every call of a function with this body evaluates, up to the first statement that may end a call.

    With each node, return whether the code decides by something else if the node is false.
    """
    found: list[tuple[Any, bool]] = []
    left = [(one, False) for one in body[::-1]]
    while left:
        node, is_optional = left.pop()
        found.append((node, is_optional))
        kind = type(node).__name__
        if kind == "If":
            rest = [*node.orelse, *((one for one, _ in left) if _may_leave(node.body) else ())]
            if _may_leave((*node.body, *node.orelse)):
                left.clear()
            left.append((node.test, not all(map(_is_fixed, rest))))
        elif kind == "IfExp":
            left.append((node.test, not _is_fixed(node.orelse)))
        elif kind == "BoolOp":
            left.append((node.values[0], is_optional or type(node.op).__name__ == "Or"))
        elif kind in ("Try", "TryStar"):
            left = [(one, False) for one in node.body[::-1]]
        elif kind in _REPEATING:
            left.clear()
        elif kind not in _APART:
            if kind in _LEAVING:
                left.clear()
            left.extend([(one, False) for one in imports.children(node)][::-1])
    return found


def _may_leave(body: Iterable[Any]) -> bool:
    return any(type(one).__name__ in _LEAVING for part in body for one in absent.all_nodes(part))


def _is_fixed(node: Any) -> bool:
    """Return whether nothing in a node depends on a value, except texts such as `f"expected {wanted}"`."""
    kind = type(node).__name__
    if kind == "Name":
        return type(node.ctx).__name__ != "Load"
    return kind == "JoinedStr" or all(map(_is_fixed, imports.children(node)))

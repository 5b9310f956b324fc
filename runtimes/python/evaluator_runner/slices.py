"""Finds the statements that an entry needs (its slice), so that an absent package stops only code that uses it.

A slice consists of the entry, the top-level statements that it refers to, directly or through other statements, and the
statements that may change the objects that those statements define. Annotations of functions do not count, because they
are never used, except for clients of models, which the host makes.
"""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.dialects.clients import CLIENTS
from evaluator_runner.imports import children, is_type_checking
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

_ONLY_AST = 0x400
_DEFINITIONS = ("FunctionDef", "AsyncFunctionDef", "ClassDef")
_ANY_NAME = frozenset(("globals", "locals", "vars", "eval", "exec"))  # functions by which code may read or set any name
# functions that reach no name of the module if they get other names: `exec(code, {})`
_WITH_OWN_NAMES = frozenset(("eval", "exec"))
# attributes through which code may reach the module, as in `sys.modules`
_ANY_NAME_OF = frozenset(("__globals__", "modules"))
_SETTERS = frozenset(("setattr", "delattr"))
_CHANGES = ("add", "append", "disable", "enable", "install", "patch", "register", "seed", "set", "update")
"""Beginnings of the names of methods that may change what a module, function or class does."""


class Statement:
    """A top-level statement, or one name in a top-level import.

    Attributes:
      node: Its syntax tree.
      binds: Names that it defines.
      uses: Names that it reads.
      module: The module that it imports; empty for other statements.
      defines: Whether it is a function or class.
      mutable: Whether the objects that it defines can change: it is not an import, a constant or a plain function.
      runs: Whether it may change other objects when it runs. Every mutable statement may, except a plain list of
        functions.
      holds: Names in the plain list, tuple, set or dict that it makes; None for other statements.
      stores: Names of objects into which it stores attributes or items.
      calls: Names of objects whose methods it calls, each with the method.
    """

    __slots__ = ("binds", "calls", "defines", "holds", "module", "mutable", "node", "runs", "stores", "uses")

    def __init__(self, node: Any, binds: set[str], module: str = "") -> None:
        self.node = node
        self.binds = binds
        self.module = module
        self.defines = type(node).__name__ in _DEFINITIONS
        self.mutable = self.runs = False
        self.holds: set[str] | None = None
        self.uses: set[str] = set()
        self.stores: set[str] = set()
        self.calls: set[tuple[str, str]] = set()

    @property
    def lines(self) -> range:
        """The lines of the statement and of its decorators."""
        first = min(one.lineno for one in (self.node, *getattr(self.node, "decorator_list", ())))
        return range(first, (self.node.end_lineno or self.node.lineno) + 1)

    def imports(self, name: str) -> bool:
        """Return whether the statement may import a module: it is an import of that module, or a definition."""
        return not self.module or f"{self.module}.".startswith((f"{name}.", ".")) or name.startswith(f"{self.module}.")


class Slices:
    """The statements of a module.

    Args:
      tree: Syntax tree of the module.
    """

    def __init__(self, tree: Any) -> None:
        self.statements = [one for node in tree.body for one in _read(node)]
        self._binding: dict[str, list[int]] = {}
        self._using: dict[str, list[int]] = {}
        self._storing: dict[str, list[int]] = {}  # statements that change an attribute or item of a name, by the name
        self._of_module: dict[str, set[str]] = {}  # names that statements bind, by the package that these import
        for at, one in enumerate(self.statements):
            for name in one.binds:
                self._binding.setdefault(name, []).append(at)
            for name in one.uses:
                self._using.setdefault(name, []).append(at)
            for name in one.stores | {name for name, method in one.calls if method.startswith(_CHANGES)}:
                self._storing.setdefault(name, []).append(at)
            self._of_module.setdefault(_top(one.module), set()).update(one.binds)
        lists: set[str] = set()
        for one in self.statements:
            if one.holds is not None and all(name in lists or self._is_function(name) for name in one.holds):
                one.runs = False
                lists |= one.binds

    def _is_function(self, name: str) -> bool:
        bound = [self.statements[at] for at in self._binding.get(name, ())]
        return bool(bound) and all(one.defines for one in bound)

    def needed_by(self, names: Collection[str]) -> list[Statement]:
        """Return the statements needed to define these names, in order.

        If the module lacks one of the names, return all statements.
        """
        return [self.statements[at] for at in sorted(self._needed(names))]

    def needed_to_run(self, statement: Statement) -> list[Statement]:
        """Return the statements needed to run another statement."""
        found: set[int] = set()
        self._follow(statement.uses, found)
        return [self.statements[at] for at in found]

    def _needed(self, names: Collection[str]) -> set[int]:
        every = set(range(len(self.statements)))
        if not names or any(name not in self._binding for name in names) or self._binding.keys() & _WITH_OWN_NAMES:
            return every
        found: set[int] = set()
        left = self._follow(names, found)
        seen = _Seen()
        while left:
            one = self.statements[left.pop()]
            if one.uses & _ANY_NAME:
                return every
            for at in self._changing(one, seen):
                if at not in found and self.statements[at].runs:
                    found.add(at)
                    left += (at, *self._follow(self.statements[at].uses, found))
        return found

    def _follow(self, names: Collection[str], found: set[int]) -> list[int]:
        """Add the statements needed to define these names to `found`, and return those that were not in it."""
        added: list[int] = []
        left = list(names)
        while left:
            for at in self._binding.get(left.pop(), ()):
                if at not in found:
                    found.add(at)
                    added.append(at)
                    left.extend(self.statements[at].uses)
        return added

    def _changing(self, one: Statement, seen: _Seen) -> Iterator[int]:
        """Yield the statements that may change an object that `one` defines, if they run, except those in `seen`."""
        if one.mutable and not one.defines:
            yield from self._mentioning(one.binds, seen.of_data)
        names = set(one.binds) if one.defines or one.module else set()
        if one.module and (top := _top(one.module)) not in seen.modules:
            seen.modules.add(top)
            names |= self._of_module[top]
        names -= seen.fixed
        seen.fixed |= names
        for name in names:
            yield from self._storing.get(name, ())
        for at in self._mentioning(names, seen.of_fixed):
            if self.statements[at].uses & _SETTERS:
                yield at

    def _mentioning(self, names: Collection[str], seen: set[str]) -> Iterator[int]:
        """Yield the statements that read one of these names, themselves or in the module's functions and classes."""
        left = [name for name in names if name not in seen]
        while left:
            if (name := left.pop()) not in seen:
                seen.add(name)
                for at in self._using.get(name, ()):
                    yield at
                    if self.statements[at].defines:
                        left.extend(self.statements[at].binds)


class _Seen:
    """Names and modules whose statements are found already, so that no statement is searched for twice.

    Attributes:
      of_data: Names whose readers may change data.
      fixed: Names of functions, classes and imports.
      of_fixed: Names whose readers may set attributes of a function, class or module.
      modules: Packages that are imported.
    """

    __slots__ = ("fixed", "modules", "of_data", "of_fixed")

    def __init__(self) -> None:
        self.fixed: set[str] = set()
        self.modules: set[str] = set()
        self.of_data: set[str] = set()
        self.of_fixed: set[str] = set()


def slices_of(code: str) -> Slices | None:
    """Return the statements of code, or None if the code does not parse, or is nested too deeply."""
    try:
        return Slices(compile(code, FILENAME, "exec", _ONLY_AST, dont_inherit=True))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def needed_for_rows(source: str, names: list[str]) -> list[Statement] | None:
    """Return the statements that calls for a row need, or None if these statements cannot be determined.

    Args:
      source: The program.
      names: Names at module level that are called for a row; empty if they are not known.
    """
    slices = slices_of(source) if names else None
    return None if slices is None else slices.needed_by(names)


def _read(node: Any) -> Iterator[Statement]:
    kind = type(node).__name__
    if kind in {"Import", "ImportFrom"}:
        for alias in node.names:
            module = "." * node.level + (node.module or "") if kind == "ImportFrom" else alias.name
            name = alias.name if kind == "ImportFrom" else alias.name.partition(".")[0]
            yield Statement(node, {alias.asname or name}, module)
        return
    found = Statement(node, set(_bound(node)))
    found.uses = _free(node, found)
    plain = kind in {"FunctionDef", "AsyncFunctionDef"} and not node.decorator_list
    found.mutable = found.runs = not plain and not _is_constant(node)
    found.holds = _held_by(node)
    yield found


def _free(node: Any, into: Statement, *, in_class: bool = False) -> set[str]:
    """Return the names that a node reads but does not bind; add to `into` what it stores, calls and declares global."""
    kind = type(node).__name__
    _note(node, kind, into)
    if kind == "Name":
        return set() if type(node.ctx).__name__ == "Store" else {node.id}
    if kind in {"FunctionDef", "AsyncFunctionDef", "Lambda"}:
        return _free_in_function(node, into)
    inside = kind == "ClassDef" or (in_class and kind in {"If", "For", "With", "Try"})
    found: set[str] = {node.target.id} if kind == "AugAssign" and hasattr(node.target, "id") else set()
    if kind == "Attribute" and node.attr in _ANY_NAME_OF:
        found.add("globals")
    for part in _parts_that_run(node, kind, in_class=in_class):
        found |= _free(part, into, in_class=inside)
    if kind in {"ListComp", "SetComp", "DictComp", "GeneratorExp"}:
        found -= {name for one in node.generators for name in _bound(one.target)}
    return found


def _free_in_function(node: Any, into: Statement) -> set[str]:
    arguments, body = node.args, node.body if isinstance(node.body, list) else [node.body]
    inner: set[str] = set()
    for part in body:
        inner |= _free(part, into)
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    local = {one.arg for one in every if one is not None} | {name for part in body for name in _bound(part)}
    local -= {name for part in body for name in _declared_global(part)}
    found = inner - local
    for part in (*getattr(node, "decorator_list", ()), *arguments.defaults, *arguments.kw_defaults):
        if part is not None:
            found |= _free(part, into)
    return found | {_root(one.annotation) for one in every if one is not None and _is_client(one.annotation)}


def _is_client(annotation: Any) -> bool:
    name = getattr(annotation, "attr", None) or getattr(annotation, "id", None)
    return any(name in names for names in CLIENTS.values())


def _note(node: Any, kind: str, into: Statement) -> None:
    if kind == "Global":
        into.binds.update(node.names)
    elif kind in {"Attribute", "Subscript"} and type(node.ctx).__name__ in {"Store", "Del"}:
        into.stores.add(_root(node))
    elif kind == "Call" and type(node.func).__name__ == "Attribute":
        into.calls.add((_root(node.func), node.func.attr))


def _parts_that_run(node: Any, kind: str, *, in_class: bool) -> list[Any]:
    """Return a node's parts, except bodies that never run, annotations outside classes, and a name that is harmless.

    The harmless name is `exec` or `eval` if the call gives the code its own names.
    """
    if kind == "Call" and getattr(node.func, "id", "") in _WITH_OWN_NAMES and _gives_names(node.args):
        return [*node.args, *node.keywords]
    if kind == "AnnAssign" and not in_class:
        return [one for one in (node.target, node.value) if one is not None]
    if kind == "If" and (is_type_checking(node) or _is_main_guard(node)):
        return list(node.orelse)
    return list(children(node))


def _gives_names(arguments: list[Any]) -> bool:
    """Return whether arguments of `eval` or `exec` certainly contain the names that the code may use."""
    kinds = [type(one).__name__ for one in arguments]
    return len(kinds) > 1 and kinds[1] != "Constant" and "Starred" not in kinds


def _declared_global(node: Any) -> Iterator[str]:
    left = [node]
    while left:
        one = left.pop()
        if type(one).__name__ == "Global":
            yield from one.names
        left.extend(children(one))


def _top(module: str) -> str:
    return module.partition(".")[0]


def _root(node: Any) -> str:
    """Return the name with which a chain of attributes, items and calls begins."""
    while hasattr(node, "value") or hasattr(node, "func"):
        node = node.value if hasattr(node, "value") else node.func
    return str(getattr(node, "id", ""))


def _is_main_guard(node: Any) -> bool:
    compared = getattr(node, "test", None)
    return getattr(getattr(compared, "left", None), "id", None) == "__name__"


def _is_constant(node: Any) -> bool:
    """Return whether a statement binds a value that cannot change: a number, a string, a compiled pattern."""
    if type(node).__name__ not in {"Assign", "AnnAssign"} or any(
        type(target).__name__ != "Name" for target in getattr(node, "targets", [getattr(node, "target", None)])
    ):
        return False
    left = [node.value]
    while left:
        one = left.pop()
        kind = type(one).__name__
        if kind == "Call" and getattr(one.func, "attr", None) == "compile" and _root(one.func) == "re":
            continue
        if kind == "Tuple":
            left.extend(one.elts)
        elif kind in {"UnaryOp", "BinOp"}:
            left.extend([one.operand] if kind == "UnaryOp" else [one.left, one.right])
        elif kind not in {"Constant", "NoneType"}:
            return False
    return True


def _held_by(node: Any) -> set[str] | None:
    """Return the names in a list, tuple, set or dict that a statement binds without any call. Otherwise return None."""
    if type(node).__name__ not in {"Assign", "AnnAssign"} or node.value is None:
        return None
    if any(type(one).__name__ != "Name" for one in getattr(node, "targets", [getattr(node, "target", None)])):
        return None
    found: set[str] = set()
    left = [node.value]
    while left:
        one = left.pop()
        kind = type(one).__name__
        if kind == "Name":
            found.add(one.id)
        elif kind in {"List", "Tuple", "Set", "Dict"}:
            left.extend((*filter(None, one.keys), *one.values) if kind == "Dict" else one.elts)
        elif kind == "BinOp":
            left.extend((one.left, one.right))
        elif kind != "Constant":
            return None
    return found


def _bound(node: Any) -> Iterator[str]:
    left = [node]
    while left:
        one = left.pop()
        kind = type(one).__name__
        if kind in _DEFINITIONS:
            yield one.name
            continue
        if kind in {"Import", "ImportFrom"}:
            yield from (alias.asname or alias.name.partition(".")[0] for alias in one.names)
        elif kind == "Name" and type(one.ctx).__name__ == "Store":
            yield one.id
        elif kind in {"ExceptHandler", "MatchAs", "MatchStar"} and one.name:
            yield one.name
        if kind == "comprehension":
            left.extend((one.iter, *one.ifs))
        elif kind != "Lambda":
            left.extend(children(one))

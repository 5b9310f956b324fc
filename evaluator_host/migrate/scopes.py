"""Finds the variable for each name in a program, for all languages: scopes, uses and look-up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tree_sitter import Node


class NameAccess(StrEnum):
    """How one use of a name accesses its variable."""

    READ = "read"
    WRITE = "write"
    DECLARE = "declare"  # a declaration such as `global x` or `nonlocal x`


@dataclass(eq=False, slots=True)
class Scope:
    """A region of a program in which names are bound, such as a function.

    Attributes:
      kind: `module`, `function`, `class`, `comprehension` or `block`.
      bound: Names that this scope binds.
      elsewhere: Names that are declared `global` or `nonlocal` here, each with the keyword.
    """

    node: Node
    kind: str
    parent: "Scope | None"
    bound: set[str] = field(default_factory=set)
    elsewhere: dict[str, str] = field(default_factory=dict)

    def outwards(self) -> "Iterator[Scope]":
        """Yield this scope and the scopes around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def is_within(self, other: "Scope") -> bool:
        """Return whether this scope is the other scope, or is inside it."""
        return any(scope is other for scope in self.outwards())


@dataclass(eq=False, frozen=True, slots=True)
class Use:
    """One place in a program that uses a variable by its name."""

    node: Node
    name: str
    access: NameAccess
    scope: Scope

    @property
    def line(self) -> int:
        """Return the line number of the use, counted from 1."""
        return int(self.node.start_point[0]) + 1


class NameUses:
    """Every use of every name in a program."""

    def __init__(self, module: Scope) -> None:
        self.module = module
        self.uses: list[Use] = []
        self.scopes: dict[int, Scope] = {module.node.id: module}
        self.imports_all = False

    def add(self, node: Node, access: NameAccess, scope: Scope, *, binds: bool = True) -> None:
        """Record a use of a name. A write also binds the name in the scope, unless `binds` is false."""
        name = node.text.decode() if node.text else ""
        self.uses.append(Use(node, name, access, scope))
        if binds and access is NameAccess.WRITE and name not in scope.elsewhere:
            scope.bound.add(name)

    def open(self, node: Node, kind: str, parent: Scope) -> Scope:
        """Add a scope and return it."""
        self.scopes[node.id] = scope = Scope(node, kind, parent)
        return scope

    def owner(self, use: Use) -> Scope | None:
        """Return the scope that owns the variable of a use. None if the program never binds the name."""
        return self.lookup(use.name, use.scope)

    def lookup(self, name: str, start: Scope) -> Scope | None:
        """Return the scope that owns the variable of this name for a use in scope `start`; None if nothing binds it."""
        for scope in start.outwards():
            if scope.kind == "class" and scope is not start:
                continue
            where = scope.elsewhere.get(name)
            if where == "global":
                return self.module if name in self.module.bound else None
            if where != "nonlocal" and name in scope.bound:
                return scope
        return None

    def of(self, name: str, scope: Scope) -> list[Use]:
        """Return the uses of a scope's variable, including those in nested scopes."""
        return [use for use in self.uses if use.name == name and self.owner(use) is scope]

    def writes(self, name: str, scope: Scope) -> list[Use]:
        """Return the uses that set a scope's variable."""
        written = (use for use in self.uses if use.access is NameAccess.WRITE and use.name == name)
        return [use for use in written if self.owner(use) is scope]

    def within(self, scope: Scope) -> Iterator[Use]:
        """Yield the uses of names in a scope and in the scopes inside it."""
        return (use for use in self.uses if use.scope.is_within(scope))

    def is_hidden(self, name: str, use: Use, function: Scope) -> bool:
        """Return whether, at the place of a use, a name of a function's scope is bound to something else."""
        for scope in use.scope.outwards():
            if scope is function:
                return False
            if name in scope.bound:
                return True
        return False

    def clash(self, renamed: list[Use], name: str, function: Scope, *, leaving: set[int]) -> Use | None:
        """Return a use whose meaning changes if a function's variable gets a new name, or None if there is none.

        Args:
          renamed: The uses of the variable.
          name: The variable's new name.
          function: The scope of the variable.
          leaving: Ids of syntax nodes to ignore, because these nodes are being renamed too.
        """
        for use in self.within(function):
            if use.name != name or use.node.id in leaving:
                continue
            owner = self.owner(use)
            if owner is None or not owner.is_within(function) or owner is function:
                return use
        return next((use for use in renamed if self.is_hidden(name, use, function)), None)


class Reader:
    """Walks once through a syntax tree and records every use of a name. Each language adds handlers for its nodes."""

    def __init__(self, names: NameUses) -> None:
        self._names = names
        self._handlers: dict[str, Callable[[Node, Scope], None]] = {}

    def visit(self, node: Node, scope: Scope) -> None:
        """Record the uses of names in a syntax node of a scope."""
        handler = self._handlers.get(node.type)
        if handler is not None:
            handler(node, scope)
        else:
            self.visit_children(node, scope)

    def visit_children(self, node: Node, scope: Scope) -> None:
        """Record the uses of names in the children of a syntax node."""
        for one in node.named_children:
            self.visit(one, scope)

    def _maybe(self, node: Node | None, scope: Scope) -> None:
        if node is not None:
            self.visit(node, scope)

    def _read(self, node: Node, scope: Scope) -> None:
        self._names.add(node, NameAccess.READ, scope)

"""Finds the variable for each name in a Python program, by Python's scope rules."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.scopes import NameAccess, NameUses, Reader, Scope
from evaluator_host.migrate.syntax import child, code_children, fields, text

_COMPREHENSIONS: Final = (
    "list_comprehension",
    "set_comprehension",
    "dictionary_comprehension",
    "generator_expression",
)
_TARGETS: Final = frozenset(
    (
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "dictionary_splat_pattern",
        "as_pattern_target",
        "parenthesized_expression",
        "expression_list",
        "list_splat",
        "tuple",
        "list",
    )
)


def names_of(root: Node) -> NameUses:
    """Return every use of every name in a program."""
    names = NameUses(Scope(root, "module", None))
    _Reader(names).visit_children(root, names.module)
    return names


class _Reader(Reader):
    def __init__(self, names: NameUses) -> None:
        super().__init__(names)
        self._handlers = {
            "identifier": self._read,
            "function_definition": self._function,
            "lambda": self._lambda,
            "class_definition": self._class,
            "assignment": self._assignment,
            "augmented_assignment": self._assignment,
            "for_statement": self._for,
            "as_pattern": self._as_pattern,
            "named_expression": self._walrus,
            "delete_statement": self._delete,
            "import_statement": self._import,
            "import_from_statement": self._import_from,
            "future_import_statement": lambda _node, _scope: None,
            "global_statement": self._declaration,
            "nonlocal_statement": self._declaration,
            "attribute": self._attribute,
            "keyword_argument": self._keyword,
            "case_pattern": self._case,
            **dict.fromkeys(_COMPREHENSIONS, self._comprehension),
        }

    def _bind(self, node: Node | None, scope: Scope) -> None:
        """Record the names that an assignment target binds. Names inside an index or attribute are only read."""
        if node is None:
            return
        if node.type == "identifier":
            self._names.add(node, NameAccess.WRITE, scope)
        elif node.type in _TARGETS:
            for one in node.named_children:
                self._bind(one, scope)
        else:
            self.visit(node, scope)

    def _function(self, node: Node, scope: Scope) -> None:
        self._bind(child(node, "name"), scope)
        self._callable(node, scope)

    def _lambda(self, node: Node, scope: Scope) -> None:
        self._callable(node, scope)

    def _callable(self, node: Node, scope: Scope) -> None:
        inner = self._names.open(node, "function", scope)
        parameters = child(node, "parameters")
        for one in code_children(parameters) if parameters is not None else ():
            self._parameter(one, inner, scope)
        self._maybe(child(node, "type_parameters"), inner)
        self._maybe(child(node, "return_type"), scope)
        self._maybe(child(node, "body"), inner)

    def _parameter(self, node: Node, inner: Scope, scope: Scope) -> None:
        self._maybe(child(node, "type"), scope)
        self._maybe(child(node, "value"), scope)
        if node.type == "typed_parameter":
            self._bind(node.named_children[0], inner)
        elif node.type in ("default_parameter", "typed_default_parameter"):
            self._bind(child(node, "name"), inner)
        else:
            self._bind(node, inner)

    def _class(self, node: Node, scope: Scope) -> None:
        self._bind(child(node, "name"), scope)
        self._maybe(child(node, "superclasses"), scope)
        self._maybe(child(node, "body"), self._names.open(node, "class", scope))

    def _assignment(self, node: Node, scope: Scope) -> None:
        self._maybe(child(node, "right"), scope)
        self._maybe(child(node, "type"), scope)
        left = child(node, "left")
        if left is not None and node.type == "augmented_assignment" and left.type == "identifier":
            self._names.add(left, NameAccess.READ, scope)
        self._bind(left, scope)

    def _for(self, node: Node, scope: Scope) -> None:
        self._bind(child(node, "left"), scope)
        for name in ("right", "body", "alternative"):
            for one in fields(node, name):
                self.visit(one, scope)

    def _comprehension(self, node: Node, scope: Scope) -> None:
        inner = self._names.open(node, "comprehension", scope)
        first = True
        for one in node.named_children:
            if one.type != "for_in_clause":
                self.visit(one, inner)
                continue
            self._bind(child(one, "left"), inner)
            for right in fields(one, "right"):
                self.visit(right, scope if first else inner)
            first = False

    def _as_pattern(self, node: Node, scope: Scope) -> None:
        for one in node.named_children:
            if one.type == "as_pattern_target" or (one.type == "identifier" and one is not node.named_children[0]):
                self._bind(one, scope)
            else:
                self.visit(one, scope)

    def _walrus(self, node: Node, scope: Scope) -> None:
        target = next(one for one in scope.outwards() if one.kind != "comprehension")
        self._bind(child(node, "name"), target)
        self._maybe(child(node, "value"), scope)

    def _delete(self, node: Node, scope: Scope) -> None:
        for one in node.named_children:
            self._bind(one, scope)

    def _import(self, node: Node, scope: Scope) -> None:
        for one in fields(node, "name"):
            alias = child(one, "alias")
            dotted = one if alias is None else alias
            self._bind(dotted.named_children[0] if dotted.type == "dotted_name" else dotted, scope)

    def _import_from(self, node: Node, scope: Scope) -> None:
        self._import(node, scope)
        if any(one.type == "wildcard_import" for one in node.named_children):
            self._names.imports_all = True

    def _declaration(self, node: Node, scope: Scope) -> None:
        where = "global" if node.type == "global_statement" else "nonlocal"
        for one in node.named_children:
            scope.elsewhere[text(one)] = where
            self._names.add(one, NameAccess.DECLARE, scope)
            if where == "global":
                self._names.module.bound.add(text(one))
            scope.bound.discard(text(one))

    def _attribute(self, node: Node, scope: Scope) -> None:
        self._maybe(child(node, "object"), scope)

    def _keyword(self, node: Node, scope: Scope) -> None:
        self._maybe(child(node, "value"), scope)

    def _case(self, node: Node, scope: Scope) -> None:
        for one in node.named_children:
            self._pattern(one, scope)

    def _pattern(self, node: Node, scope: Scope) -> None:
        """Record the names that a `case` pattern binds. A dotted name in the pattern is only read."""
        inner = node.named_children
        match node.type:
            case "identifier":
                self._bind(node, scope)
                return
            case "dotted_name":
                self._dotted(node, scope)
                return
            case "class_pattern":
                self._read(inner[0].named_children[0], scope)
                inner = inner[1:]
            case "keyword_pattern":
                inner = inner[1:]
            case _:
                pass
        for one in inner:
            self._pattern(one, scope)

    def _dotted(self, node: Node, scope: Scope) -> None:
        if len(node.named_children) > 1:
            self._read(node.named_children[0], scope)
        elif text(node) != "_":
            self._bind(node.named_children[0], scope)

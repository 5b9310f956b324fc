"""Finds the variable for each name in a JavaScript or TypeScript program. Types use variables only in `typeof`."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.grammar import JAVASCRIPT
from evaluator_host.migrate.scopes import NameAccess, NameUses, Reader, Scope
from evaluator_host.migrate.syntax import child, descendants

FUNCTIONS: Final = JAVASCRIPT.functions
_TYPES: Final = (
    *("type_annotation", "type_arguments", "type_parameters", "interface_declaration", "type_alias_declaration"),
    *("function_type", "constructor_type", "object_type", "function_signature", "method_signature"),
    *("abstract_method_signature", "implements_clause", "asserts_annotation", "type_predicate_annotation"),
)
_BLOCKS: Final = ("statement_block", "for_statement", "switch_body")
_NAMES: Final = frozenset(("identifier", "type_identifier", "shorthand_property_identifier_pattern"))


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
            "shorthand_property_identifier": self._read,
            "variable_declaration": self._var,
            "lexical_declaration": self._let,
            "for_in_statement": self._for_in,
            "catch_clause": self._catch,
            "class_declaration": self._named,
            "abstract_class_declaration": self._named,
            "enum_declaration": self._named,
            "internal_module": self._named,
            "class": self._class,
            "class_static_block": self._static,
            "assignment_expression": self._assignment,
            "augmented_assignment_expression": self._assignment,
            "update_expression": self._update,
            "import_statement": self._import,
            "export_specifier": self._export,
            **dict.fromkeys(FUNCTIONS, self._function),
            **dict.fromkeys(_BLOCKS, self._block),
            **dict.fromkeys(_TYPES, self._types),
        }

    def _bind(self, node: Node | None, scope: Scope, home: Scope | None) -> None:
        """Record the names that a pattern writes.

        Args:
          node: The pattern.
          scope: The scope that evaluates its defaults and keys.
          home: The scope that owns the names. None if the variables already exist.
        """
        if node is None:
            return
        if node.type in _NAMES:
            self._names.add(node, NameAccess.WRITE, home or scope, binds=home is not None)
        elif node.type in ("assignment_pattern", "object_assignment_pattern"):
            self._bind(child(node, "left"), scope, home)
            self._maybe(child(node, "right"), scope)
        elif node.type == "pair_pattern":
            key = child(node, "key")
            if key is not None and key.type == "computed_property_name":
                self.visit(key, scope)
            self._bind(child(node, "value"), scope, home)
        elif node.type in ("object_pattern", "array_pattern", "rest_pattern"):
            for one in node.named_children:
                self._bind(one, scope, home)
        elif node.type != "this":
            self.visit(node, scope)

    def _function(self, node: Node, scope: Scope) -> None:
        inner = self._names.open(node, "function", scope)
        name = child(node, "name")
        if name is not None and name.type == "identifier":
            own = inner if node.type in ("function_expression", "generator_function") else scope
            self._bind(name, own, own)
        elif name is not None:
            self._maybe(name if name.type == "computed_property_name" else None, scope)
        single = child(node, "parameter")
        self._bind(single, inner, inner)
        parameters = child(node, "parameters")
        for one in parameters.named_children if parameters is not None else ():
            self._parameter(one, inner)
        self._maybe(child(node, "return_type"), inner)
        body = child(node, "body")
        if body is not None and body.type == "statement_block":
            self.visit_children(body, inner)
        else:
            self._maybe(body, inner)

    def _parameter(self, node: Node, inner: Scope) -> None:
        if node.type in ("required_parameter", "optional_parameter"):
            self._bind(child(node, "pattern"), inner, inner)
            self._maybe(child(node, "type"), inner)
            self._maybe(child(node, "value"), inner)
        elif node.type != "comment":
            self._bind(node, inner, inner)

    def _var(self, node: Node, scope: Scope) -> None:
        home = next(one for one in scope.outwards() if one.kind != "block")
        self._declarators(node, scope, home)

    def _let(self, node: Node, scope: Scope) -> None:
        self._declarators(node, scope, scope)

    def _declarators(self, node: Node, scope: Scope, home: Scope) -> None:
        for one in node.named_children:
            if one.type == "variable_declarator":
                self._bind(child(one, "name"), scope, home)
                self._maybe(child(one, "type"), scope)
                self._maybe(child(one, "value"), scope)

    def _for_in(self, node: Node, scope: Scope) -> None:
        inner = self._names.open(node, "block", scope)
        kind = child(node, "kind")
        home: Scope | None = inner
        if kind is None:
            home = None
        elif kind.type == "var":
            home = next(one for one in scope.outwards() if one.kind != "block")
        self._bind(child(node, "left"), inner, home)
        self._maybe(child(node, "right"), inner)  # the names in the loop's head exist already here, but have no value
        self._maybe(child(node, "body"), inner)

    def _catch(self, node: Node, scope: Scope) -> None:
        inner = self._names.open(node, "block", scope)
        self._bind(child(node, "parameter"), inner, inner)
        self._maybe(child(node, "body"), inner)

    def _block(self, node: Node, scope: Scope) -> None:
        self.visit_children(node, self._names.open(node, "block", scope))

    def _static(self, node: Node, scope: Scope) -> None:
        self.visit_children(node, self._names.open(node, "function", scope))

    def _named(self, node: Node, scope: Scope) -> None:
        name = child(node, "name")
        self._bind(name, scope, scope)
        for one in node.named_children:
            if one != name:
                self.visit(one, scope)

    def _class(self, node: Node, scope: Scope) -> None:
        inner = self._names.open(node, "block", scope)
        self._named(node, inner)

    def _assignment(self, node: Node, scope: Scope) -> None:
        left = child(node, "left")
        if left is not None and left.type == "identifier" and node.type.startswith("augmented"):
            self._names.add(left, NameAccess.READ, scope)
        self._bind(left, scope, None)
        self._maybe(child(node, "right"), scope)

    def _update(self, node: Node, scope: Scope) -> None:
        argument = child(node, "argument")
        if argument is not None and argument.type == "identifier":
            self._names.add(argument, NameAccess.READ, scope)
        self._bind(argument, scope, None)

    def _import(self, node: Node, scope: Scope) -> None:
        for one in descendants(node):
            if one.type == "import_specifier":
                self._bind(child(one, "alias") or child(one, "name"), scope, scope)
            elif one.type == "identifier" and one.parent is not None and one.parent.type != "import_specifier":
                self._bind(one, scope, scope)

    def _export(self, node: Node, scope: Scope) -> None:
        statement = node.parent.parent if node.parent is not None else None
        if statement is None or child(statement, "source") is None:
            self._maybe(child(node, "name"), scope)

    def _types(self, node: Node, scope: Scope) -> None:
        for one in descendants(node):
            if one.type == "identifier" and one.parent is not None and one.parent.type == "type_query":
                self._read(one, scope)

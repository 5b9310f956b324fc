"""Finds the legacy function of a JavaScript or TypeScript program, and its parameters."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft, refuse
from evaluator_host.migrate.function import LEGACY, Current, Legacy, Parameter, Spread
from evaluator_host.migrate.javascript.scopes import FUNCTIONS
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import Unreadable, child, code_children, text

_WRAPPERS: Final = frozenset(("parenthesized_expression", "as_expression", "satisfies_expression"))


def find(draft: Draft) -> Legacy:
    """Return the entry function of a program.

    Raises:
      Current: the function takes three arguments.
      Spread: the function takes its arguments as a rest parameter.
      Unreadable: the function cannot be rewritten; the message says why.
    """
    node, names = locate(draft, draft.wish.entry)
    return _legacy(draft, node, names)


def locate(draft: Draft, entry: str) -> tuple[Node, tuple[str, ...]]:
    """Return the entry function, and the names that it has in the module.

    Raises:
      Unreadable: there is no such function, or other code creates it.
    """
    exported = [value for value in map(_exported, _export_nodes(draft.root, entry)) if value is not None]
    names: list[str] = []
    value = exported[-1] if exported else _declared(draft, entry, names)
    seen: set[str] = set()
    while value is not None and value.type in ("identifier", "shorthand_property_identifier", *_WRAPPERS):
        if value.type in _WRAPPERS:
            value = value.named_children[0]
            continue
        name = text(value)
        value = None if name in seen else _declared(draft, name, names)
        seen.add(name)
    if value is None:
        raise Unreadable(f"the code defines no function {entry}", missing=True)
    if value.type not in FUNCTIONS:
        raise refuse(
            value, f"{entry} is created by other code, so its four parameters cannot be seen; rewrite it by hand"
        )
    return value, tuple(names)


def _export_nodes(root: Node, entry: str) -> list[tuple[Node, str]]:
    """Return the exports that may be the entry, each with its exported name."""
    found = []
    for statement in root.named_children:
        if statement.type == "export_statement":
            default = child(statement, "value") or child(statement, "declaration")
            if default is not None and any(one.type == "default" for one in statement.children):
                found.append((default, entry))
            found += [
                (one, entry)
                for clause in statement.named_children
                for one in clause.named_children
                if one.type == "export_specifier"
            ]
        elif statement.type == "expression_statement" and statement.named_children[0].type == "assignment_expression":
            left, right = child(statement.named_children[0], "left"), child(statement.named_children[0], "right")
            place = text(left).replace(" ", "") if left is not None else ""
            if right is not None and place in ("module.exports", *(f"{home}.{entry}" for home in _HOMES)):
                found.append((right, entry))
    return found


_HOMES: Final = ("exports", "module.exports", "globalThis")


def _exported(offer: tuple[Node, str]) -> Node | None:
    """Return the value that is exported as the entry, or None."""
    node, entry = offer
    if node.type == "export_specifier":
        name, alias = child(node, "name"), child(node, "alias")
        return name if text(alias or name or node) == entry and alias is not None else None
    if node.type != "object":
        return node if node.type in (*FUNCTIONS, "identifier", *_WRAPPERS) else None
    for one in node.named_children:
        if one.type == "pair" and text(child(one, "key") or one).strip("'\"") == entry:
            return child(one, "value")
        if one.type == "method_definition" and text(child(one, "name") or one) == entry:
            return one
        if one.type == "shorthand_property_identifier" and text(one) == entry:
            return one
    return None


def _declared(draft: Draft, name: str, names: list[str]) -> Node | None:
    """Return the value that the module declares under a name, or None."""
    writes = [one for one in draft.names.of(name, draft.names.module) if one.access is NameAccess.WRITE]
    if not writes:
        return None
    names.append(name)
    return _definition(writes[-1])


def _definition(use: Use) -> Node:
    around = use.node.parent
    if around is not None and around.type in FUNCTIONS:
        return around
    field = "value" if around is not None and around.type == "variable_declarator" else "right"
    value = child(around, field) if around is not None else None
    return value if value is not None else use.node.parent or use.node


def _legacy(draft: Draft, node: Node, names: tuple[str, ...]) -> Legacy:
    listing = child(node, "parameters")
    nodes = code_children(listing) if listing is not None else []
    rest = next((at for at, one in enumerate(nodes[:LEGACY]) if one.type == "rest_pattern" or _is_rest(one)), None)
    if rest is not None:
        before = tuple(map(parameter_of, nodes[:rest]))
        if len(before) == LEGACY - 1 and not before[0].is_named_first:
            raise Current
        raise Spread(Legacy(node, draft.names.scopes[node.id], before, names), nodes[rest])
    found = [parameter_of(one) for one in nodes]
    if len(found) < LEGACY:
        if child(node, "parameter") is not None or found:
            raise Current
        raise refuse(node, "the function takes no arguments")
    fourth = found[LEGACY - 1]
    optional = fourth.default is not None or fourth.node.type == "optional_parameter"
    if optional and not (found[0].is_named_first or fourth.is_named_fourth):
        raise Current  # the first three parameters are the new ones, the fourth is an option of the author
    return Legacy(node, draft.names.scopes[node.id], tuple(found[:LEGACY]), names)


def _is_rest(node: Node) -> bool:
    pattern = child(node, "pattern")
    return pattern is not None and pattern.type == "rest_pattern"


def parameter_of(node: Node) -> Parameter:
    """Return the `Parameter` for a syntax node in a function's parameter list."""
    if node.type in ("required_parameter", "optional_parameter"):
        return Parameter(node, child(node, "pattern") or node, child(node, "type"), child(node, "value"))
    if node.type == "assignment_pattern":
        return Parameter(node, child(node, "left") or node, None, child(node, "right"))
    return Parameter(node, node, None, None)

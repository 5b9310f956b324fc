"""What JavaScript code does with one of its arguments: where it stands, what surrounds it, how it is replaced."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migration.draft import Draft
from evaluator_host.migration.edits import Part
from evaluator_host.migration.javascript.entry import Legacy, Parameter
from evaluator_host.migration.javascript.scopes import FUNCTIONS
from evaluator_host.migration.scopes import Access, Use
from evaluator_host.migration.syntax import ancestors, child, text

_LOOPS: Final = frozenset(("for_statement", "for_in_statement", "while_statement", "do_statement", "class_body"))
_SHORTHANDS: Final = ("shorthand_property_identifier", "shorthand_property_identifier_pattern")


def uses_of(draft: Draft, legacy: Legacy, parameter: Parameter) -> list[Use]:
    """Return the uses of a parameter in the function, but for those that are gone already."""
    found = draft.names.of(parameter.name, legacy.scope) if parameter.is_plain else []
    return [use for use in found if use.node != parameter.pattern and not draft.is_gone(use.node)]


def replace_use(draft: Draft, use: Use, *parts: Part) -> None:
    """Put something in the place of a name; a shorthand property keeps its key."""
    if use.node.type in _SHORTHANDS:
        draft.edits.replace_node(use.node, f"{use.name}: ", *parts)
    else:
        draft.edits.replace_node(use.node, *parts)


def is_member(use: Use) -> bool:
    """Whether a name stands for an object whose member is meant."""
    around = use.node.parent
    if around is None or around.type not in ("member_expression", "subscript_expression"):
        return False
    return child(around, "object") == use.node


def member_name(member: Node) -> str | None:
    """Return the name of a member that is known; None for a computed one."""
    name = child(member, "property")
    if name is not None:
        return text(name)
    index = child(member, "index")
    if index is None or index.type != "string":
        return None
    return text(index)[1:-1]


def is_written(node: Node) -> bool:
    """Whether an expression is assigned to, counted up or deleted."""
    around = node.parent
    if around is None:
        return False
    if around.type in ("assignment_expression", "augmented_assignment_expression"):
        return child(around, "left") == node
    if around.type == "unary_expression":
        return text(around).startswith("delete")
    return around.type == "update_expression"


def is_called(node: Node) -> bool:
    """Whether an expression is called."""
    around = node.parent
    return around is not None and around.type == "call_expression" and child(around, "function") == node


def is_evaluated_once(use: Use, function: Node) -> bool:
    """Whether a use is evaluated at most once in a call of the function, before it returns."""
    for around in ancestors(use.node):
        if around == function:
            return True
        if around.type in FUNCTIONS or around.type in _LOOPS:
            return False
    return False


def only_looks(use: Use) -> bool:
    """Whether a use of the inputs leaves them, and the name, as they are."""
    around = use.node.parent
    if use.access is not Access.READ or around is None or not is_member(use):
        return False
    return not is_written(around) and not is_called(around)

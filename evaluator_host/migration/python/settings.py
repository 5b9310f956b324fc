"""What a Python evaluator does with the old first argument, the application's parameters, which were always empty."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migration.draft import Draft, refuse
from evaluator_host.migration.edits import Part, span
from evaluator_host.migration.python.entry import Legacy
from evaluator_host.migration.python.text import line_of
from evaluator_host.migration.scopes import Access, Use
from evaluator_host.migration.syntax import ancestors, child, code_children, text

_PLAIN: Final = frozenset(
    (
        *("integer", "float", "string", "true", "false", "none", "identifier"),
        *("list", "dictionary", "tuple", "set", "subscript", "attribute", "call"),
    )
)
_IN_BRACKETS: Final = ("unary_operator", "binary_operator", "conditional_expression", "boolean_operator")


def rewrite_settings(draft: Draft, legacy: Legacy, *, dynamic: bool) -> str | None:
    """Put in the place of each use what an empty dict gives there.

    Returns the statement that the function has to start with for the uses that stay, or None.
    """
    first = legacy.parameters[0]
    uses = [
        use
        for use in draft.names.of(first.name, legacy.scope)
        if use.node != first.name_node and not draft.is_gone(use.node)
    ]
    changed = any(use.access is not Access.READ or _is_changed(use.node) for use in uses)
    shared = sum(not _is_attribute(use.node) for use in uses) > 1  # one dict, wherever it goes
    staying = [use for use in uses if changed or dynamic or not _replaced(draft, use, shared=shared)]
    if legacy.is_lambda and (changed or (staying and shared)):
        what = "gets another value" if changed else "is used more than once"
        raise refuse(legacy.node, f"{first.name} {what} where there is no room for a statement")
    for use in staying[:1] if changed else staying:
        draft.left(use.node, _advice(use))
    if not staying:
        return None
    if legacy.is_lambda:
        for use in staying:
            braces = any(around.type == "interpolation" for around in ancestors(use.node))
            draft.edits.replace_node(use.node, "dict()" if braces else "{}")
        return None
    return f"{first.name} = {{}}"


def _advice(use: Use) -> str:
    around = use.node.parent
    if around is not None and around.type == "subscript":
        what = line_of(around)
        return f"{use.name} was always empty, so that {what} raises KeyError, as it did; take the value from the inputs"
    return f"{use.name} was always empty, and is an empty dict now; write what is meant in its place"


def _is_changed(node: Node) -> bool:
    around = node.parent
    outer = around.parent if around is not None else None
    if around is None or outer is None or around.type not in ("subscript", "attribute"):
        return False
    if around.type == "attribute":
        return text(around.named_children[-1]) != "get"
    return outer.type in ("assignment", "augmented_assignment") and child(outer, "left") == around


def _is_attribute(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "attribute"


def _replaced(draft: Draft, use: Use, *, shared: bool) -> bool:
    around = use.node.parent
    if around is None:
        return False
    if around.type in ("argument_list", "keyword_argument") and not shared:
        draft.edits.replace_node(use.node, "{}")
        draft.did(use.node, f"{use.name} was always empty: {{}} is passed in its place")
        return True
    call = around.parent
    if around.type != "attribute" or call is None or call.type != "call" or child(call, "function") != around:
        return False
    default = _default(call)
    if default is None:
        return False
    draft.edits.replace_node(call, *default)
    if default == ("None",):
        draft.drop(*span(call))
    draft.did(call, f"{line_of(call)} was always its default, for {use.name} was always empty")
    return True


def _default(call: Node) -> tuple[Part, ...] | None:
    """Return what `….get(…)` gives on an empty dict; None when that cannot be told or moved."""
    listing = child(call, "arguments")
    arguments = code_children(listing) if listing is not None else []
    if not arguments or arguments[0].type != "string" or _is_formatted(arguments[0]):
        return None
    if len(arguments) == 1:
        return ("None",)
    if len(arguments) != 2:
        return None
    value = arguments[1]
    if value.type in _PLAIN:
        return (span(value),)
    if value.type in _IN_BRACKETS:
        return ("(", span(value), ")")
    return None


def _is_formatted(string: Node) -> bool:
    return any(one.type == "interpolation" for one in string.children)

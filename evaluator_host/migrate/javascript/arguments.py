"""Replaces the first and the fourth argument of the old contract in a JavaScript evaluator."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import WIDTH, Draft, refuse, whole_row_remark
from evaluator_host.migrate.edits import Part, span
from evaluator_host.migrate.function import Legacy
from evaluator_host.migrate.javascript.scopes import FUNCTIONS
from evaluator_host.migrate.javascript.text import line_of, member
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import ancestors, child, text
from evaluator_host.migrate.uses import replace_use, require_seen, uses_of

ROW_NAMES: Final = frozenset(("datapoint", "row", "record", "testsetrow", "testcase", "testcaserow"))
_INLINE: Final = 2
_OWN: Final = frozenset(
    (
        *("toString", "valueOf", "hasOwnProperty", "constructor", "isPrototypeOf", "propertyIsEnumerable"),
        *("toLocaleString", "__proto__"),
    )
)
_SIMPLE: Final = frozenset(
    ("number", "string", "true", "false", "null", "undefined", "identifier", "array", "object", "template_string")
)
_LOOPS: Final = frozenset(("for_statement", "for_in_statement", "while_statement", "do_statement", "class_body"))


def is_member(use: Use) -> bool:
    """Return whether a name is used as the object of a member access, `name.property`."""
    around = use.node.parent
    if around is None or around.type not in ("member_expression", "subscript_expression"):
        return False
    return child(around, "object") == use.node


def member_name(member: Node) -> str | None:
    """Return the property name of a member access, or None if the name is computed."""
    name = child(member, "property")
    if name is not None:
        return text(name)
    index = child(member, "index")
    if index is None or index.type != "string":
        return None
    return text(index)[1:-1]


def is_written(node: Node) -> bool:
    """Return whether an expression is assigned, incremented or deleted."""
    around = node.parent
    if around is None:
        return False
    if around.type in ("assignment_expression", "augmented_assignment_expression"):
        return child(around, "left") == node
    if around.type == "unary_expression":
        return text(around).startswith("delete")
    return around.type == "update_expression"


def is_called(node: Node) -> bool:
    """Return whether an expression is called."""
    around = node.parent
    return around is not None and around.type == "call_expression" and child(around, "function") == node


def is_evaluated_once(use: Use, function: Node) -> bool:
    """Return whether a call to the function evaluates a use at most once, and before the function returns."""
    for around in ancestors(use.node):
        if around == function:
            return True
        if around.type in FUNCTIONS or around.type in _LOOPS:
            return False
    return False


def only_looks(use: Use) -> bool:
    """Return whether a use of the inputs only reads one of their properties."""
    around = use.node.parent
    if use.access is not NameAccess.READ or around is None or not is_member(use):
        return False
    return not is_written(around) and not is_called(around)


def reads_whole_row(draft: Draft, legacy: Legacy) -> bool:
    """Return whether the code expects the whole row as its fourth argument, as early versions of Agenta passed it."""
    fourth = legacy.parameters[3]
    uses = uses_of(draft, legacy, fourth)
    named = fourth.name.replace("_", "").lower() in ROW_NAMES
    return (
        draft.wish.whole_row
        and named
        and bool(uses)
        and all(use.access is NameAccess.READ and is_member(use) for use in uses)
    )


def rewrite_truth(draft: Draft, legacy: Legacy, inputs: str, *, dynamic: bool) -> str | None:
    """Make the function read the ground truth from the inputs. Return the statement to insert at its start, or None.

    `dynamic` says whether the function may read variables by name (`eval`).
    """
    fourth = legacy.parameters[3]
    access = inputs if draft.whole_row else member(draft, inputs, draft.wish.key)
    if not fourth.is_plain:
        draft.did(fourth.node, f"{fourth.name} is taken from {access} at the start")
        return f"const {fourth.name} = {access}"
    uses = uses_of(draft, legacy, fourth)
    if not uses and not (dynamic and legacy.has_statements):
        return None
    if draft.whole_row:
        draft.left(fourth.node, whole_row_remark(fourth.name, inputs, draft.wish.key))
    if draft.whole_row or not legacy.has_statements or _inline(draft, legacy, uses, access, dynamic=dynamic):
        for use in uses:
            require_seen(draft, legacy, use, inputs)
            replace_use(draft, use, access)
            draft.did(use.node, f"{fourth.name} is read as {access}")
        return None
    draft.did(legacy.node, f"{fourth.name} is read from {inputs} at the start")
    word = "let" if any(use.access is not NameAccess.READ for use in uses) else "const"
    return f"{word} {fourth.name} = {access}"


def _inline(draft: Draft, legacy: Legacy, uses: list[Use], access: str, *, dynamic: bool) -> bool:
    if dynamic or len(uses) > _INLINE:
        return False
    second = legacy.parameters[1]
    if not second.is_plain or not all(only_looks(use) for use in uses_of(draft, legacy, second)):
        return False
    inputs = access.partition(".")[0].partition("[")[0]
    seen = not any(draft.names.is_hidden(inputs, use, legacy.scope) for use in uses)
    return seen and all(_fits(draft, legacy, use, access) for use in uses)


def _fits(draft: Draft, legacy: Legacy, use: Use, access: str) -> bool:
    if use.access is not NameAccess.READ or not is_evaluated_once(use, legacy.node):
        return False
    width, more = draft.line_width(use.node), len(access) - len(use.name)
    return width + more <= WIDTH or width > WIDTH


def rewrite_settings(draft: Draft, legacy: Legacy, *, dynamic: bool) -> str | None:
    """Replace each use of the first argument with its value, since that argument is always an empty object.

    `dynamic` says whether the function may read variables by name (`eval`). If some uses stay, return the statement to
    insert at the start of the function, else None.
    """
    first = legacy.parameters[0]
    if not first.is_plain:
        draft.left(
            first.node,
            f"{first.name} is always read from an empty object; write the values that you mean instead",
        )
        return f"const {first.name} = {{}}"
    uses = uses_of(draft, legacy, first)
    changed = any(use.access is not NameAccess.READ or _is_changed(use) for use in uses)
    shared = sum(not is_member(use) for use in uses) > 1  # whether several uses must get the same object
    staying = [use for use in uses if changed or dynamic or not _replaced(draft, use, shared=shared)]
    if not legacy.has_statements and (changed or (staying and shared)):
        what = "is assigned" if changed else "is used more than once"
        where = "an arrow function without braces, which cannot contain statements"
        raise refuse(legacy.node, f"{first.name} {what} in {where}; rewrite it by hand")
    for use in staying[:1] if changed else staying:
        draft.left(
            use.node, f"{use.name} was always empty, so it is an empty object now; replace it with the value you mean"
        )
    if not staying and not (dynamic and legacy.has_statements):
        return None
    if not legacy.has_statements:
        for use in staying:
            replace_use(draft, use, "({})")
        return None
    word = "let" if any(use.access is not NameAccess.READ for use in uses) else "const"
    return f"{word} {first.name} = {{}}"


def _is_changed(use: Use) -> bool:
    around = use.node.parent
    if around is None or not is_member(use):
        return False
    return is_written(around) or (is_called(around) and member_name(around) not in _OWN)


def _replaced(draft: Draft, use: Use, *, shared: bool) -> bool:
    around = use.node.parent
    if around is None:
        return False
    if around.type == "arguments" and not shared:
        draft.edits.replace_node(use.node, "{}")
        draft.did(use.node, f"{use.name} was always empty: {{}} is passed instead")
        return True
    name = member_name(around) if is_member(use) else None
    if name is None or name in _OWN or is_called(around):
        return False
    outer = around.parent
    while outer is not None and outer.type in ("as_expression", "non_null_expression"):
        around, outer = outer, outer.parent
    if outer is not None and _is_object_of(around, outer):
        return False
    if outer is not None and outer.type == "binary_expression" and child(outer, "left") == around:
        right, operator = child(outer, "right"), child(outer, "operator")
        if right is not None and operator is not None and text(operator) in ("??", "||"):
            bare = right.type in _SIMPLE or (outer.parent is not None and outer.parent.type in _ENDS)
            parts: tuple[Part, ...] = (span(right),) if bare else ("(", span(right), ")")
            draft.edits.replace_node(outer, *parts)
            draft.did(
                outer,
                f"{line_of(outer)} always gave the value on the right of {text(operator)}, because {use.name} was "
                "always empty",
            )
            return True
    draft.edits.replace_node(around, "undefined")
    draft.did(around, f"{line_of(around)} was always undefined, because {use.name} was always empty")
    return True


_ENDS: Final = ("variable_declarator", "return_statement", "arguments", "parenthesized_expression", "pair")


def _is_object_of(node: Node, outer: Node) -> bool:
    """Return whether `outer` reads a member of `node`, which fails if `node` is `undefined`."""
    return outer.type in ("member_expression", "subscript_expression") and child(outer, "object") == node

"""Replaces the first and the fourth argument of the old contract in a Python evaluator."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import WIDTH, Draft, refuse, whole_row_remark
from evaluator_host.migrate.edits import Part, span
from evaluator_host.migrate.function import Legacy, Parameter
from evaluator_host.migrate.python.text import line_of, quoted
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import ancestors, child, code_children, text
from evaluator_host.migrate.uses import require_seen, uses_of

ROW_NAMES: Final = frozenset(
    (
        *("datapoint", "data_point", "row", "record", "testset_row", "test_case", "testcase", "testcase_row"),
        *("dataPoint", "testCase", "testsetRow"),
    )
)
_ROW_METHODS: Final = frozenset(("get", "items", "keys", "values"))
_CHANGES: Final = ("assignment", "augmented_assignment", "delete_statement")
# maximum number of uses that are replaced in place; for more uses, a statement at the start sets the old variable
_INLINE: Final = 2
_PLAIN: Final = frozenset(
    (
        *("integer", "float", "string", "true", "false", "none", "identifier"),
        *("list", "dictionary", "tuple", "set", "subscript", "attribute", "call"),
    )
)
_IN_BRACKETS: Final = ("unary_operator", "binary_operator", "conditional_expression", "boolean_operator")


def reads_whole_row(draft: Draft, legacy: Legacy) -> bool:
    """Return whether the code expects the whole row as its fourth argument, as early versions of Agenta passed it."""
    fourth = legacy.parameters[3]
    uses = uses_of(draft, legacy, fourth)
    return draft.wish.whole_row and fourth.name in ROW_NAMES and bool(uses) and all(_is_of_mapping(use) for use in uses)


def _is_of_mapping(use: Use) -> bool:
    around = use.node.parent
    if use.access is not NameAccess.READ or around is None:
        return False
    if around.type == "attribute":
        return text(around.named_children[-1]) in _ROW_METHODS
    if around.type == "comparison_operator":
        return around.named_children[-1] == use.node and any(one.type in ("in", "not in") for one in around.children)
    return around.type == "subscript" and child(around, "value") == use.node


def rewrite_truth(draft: Draft, legacy: Legacy, inputs: str, *, dynamic: bool, every: bool) -> str | None:
    """Make the function read the ground truth from the inputs: at each use, or once at the start.

    With `every`, the ground truth is read even if the function does not use it.

    `dynamic` says whether the function may read variables by name (`locals()`). Returns the statement to insert at the
    start of the function, or None.
    """
    fourth = legacy.parameters[3]
    uses = uses_of(draft, legacy, fourth)
    if draft.whole_row:
        for use in uses:
            _require_seen(draft, legacy, use, inputs)
            draft.edits.replace_node(use.node, inputs)
        draft.left(fourth.node, whole_row_remark(fourth.name, inputs, draft.wish.key))
        return None
    if not uses and (not every or not legacy.has_statements):
        return None
    access = _access(draft, fourth, uses, inputs)
    looks = all(_only_looks(use) for use in uses_of(draft, legacy, legacy.parameters[1]))
    return read_column(draft, legacy, fourth, access=access, in_place=looks and not dynamic)


def read_column(draft: Draft, legacy: Legacy, parameter: Parameter, *, access: str, in_place: bool) -> str | None:
    """Replace an old parameter with a value from the inputs: at each use if that is safe, or once at the start.

    `access` is the expression that reads the value; `in_place` allows a replacement at each use. Returns the statement
    to insert at the start of the function, or None.
    """
    uses = uses_of(draft, legacy, parameter)
    if in_place and len(uses) <= _INLINE and all(_fits(draft, legacy, use, access) for use in uses):
        for use in uses:
            draft.edits.replace_node(use.node, access)
            draft.did(use.node, f"{parameter.name} is read as {access}")
        return None
    inputs = access.partition("[")[0].partition(".")[0]
    if not legacy.has_statements:
        for use in uses:
            _require_seen(draft, legacy, use, inputs)
            draft.edits.replace_node(use.node, access)
        draft.did(legacy.node, f"{parameter.name} is read as {access}")
        return None
    draft.did(legacy.node, f"{parameter.name} is read from {inputs} at the start")
    return f"{parameter.name} = {access}"


def _access(draft: Draft, fourth: Parameter, uses: list[Use], inputs: str) -> str:
    key = quoted(draft, draft.wish.key)
    tolerant = text(fourth.default) == "None" if fourth.default is not None else False
    rewritten = any(use.access is not NameAccess.READ for use in uses)
    if tolerant or (not rewritten and any(_tolerates_none(use.node) for use in uses)):
        draft.did(fourth.node, f"for a row without {draft.wish.key!r}, the code now gets None")
        return f"{inputs}.get({key})"
    return f"{inputs}[{key}]"


def _tolerates_none(node: Node) -> bool:
    """Return whether the code around a use of the ground truth checks that there is a ground truth."""
    around = node.parent
    if around is None:
        return False
    if around.type == "comparison_operator":
        return any(one.type in ("none", "is", "is not") for one in around.children)
    if around.type == "conditional_expression":
        return around.named_children[1] == node
    if around.type == "boolean_operator":
        return around.named_children[0] == node
    return around.type in ("not_operator", "if_statement", "elif_clause")


def _require_seen(draft: Draft, legacy: Legacy, use: Use, inputs: str) -> None:
    if not legacy.has_statements and any(around.type == "interpolation" for around in ancestors(use.node)):
        raise refuse(use.node, f"{use.name} is used in an f-string of a lambda; turn the lambda into a function first")
    require_seen(draft, legacy, use, inputs)


def _fits(draft: Draft, legacy: Legacy, use: Use, access: str) -> bool:
    """Return whether an expression can replace a name: it runs only once there, and the line does not get too long."""
    if use.access is not NameAccess.READ or use.scope is not legacy.scope or _is_in_loop(use.node, legacy.node):
        return False
    for around in ancestors(use.node):
        if around == legacy.node:
            break
        if around.type in ("try_statement", "interpolation", "with_statement"):
            return False
    width, more = draft.line_width(use.node), len(access) - len(use.name)
    return not legacy.has_statements or width + more <= WIDTH or width > WIDTH


def _only_looks(use: Use) -> bool:
    """Return whether a use of the parameter for the inputs only reads from it."""
    around = use.node.parent
    if use.access is not NameAccess.READ or around is None:
        return False
    outer = around.parent
    if around.type == "attribute":
        return text(around.named_children[-1]) in _ROW_METHODS
    if around.type == "subscript" and child(around, "value") == use.node and outer is not None:
        return outer.type not in _CHANGES or child(outer, "right") == around
    return around.type == "comparison_operator"


def rewrite_settings(draft: Draft, legacy: Legacy, *, dynamic: bool, every: bool) -> str | None:
    """Replace each use of the first argument with its value, since that argument is always an empty dict.

    With `every`, also set the argument. `dynamic` says whether the function may read variables by name (`locals()`). If
    some uses stay, return the statement to insert at the start of the function, else None.
    """
    first = legacy.parameters[0]
    uses = uses_of(draft, legacy, first)
    changed = any(use.access is not NameAccess.READ or _is_changed(use.node) for use in uses)
    shared = sum(not _is_attribute(use.node) for use in uses) > 1  # whether several uses must get the same dict
    staying = [use for use in uses if changed or dynamic or not _replaced(draft, use, shared=shared)]
    if not legacy.has_statements and (changed or (staying and shared)):
        what = "is assigned" if changed else "is used more than once"
        raise refuse(
            legacy.node, f"{first.name} {what} in a lambda, which cannot contain statements; rewrite it by hand"
        )
    for use in staying[:1] if changed else staying:
        draft.left(use.node, _advice(use))
    if not staying and (not every or not legacy.has_statements):
        return None
    if not legacy.has_statements:
        for use in staying:
            braces = any(around.type == "interpolation" for around in ancestors(use.node))
            draft.edits.replace_node(use.node, "dict()" if braces else "{}")
        return None
    return f"{first.name} = {{}}"


def _advice(use: Use) -> str:
    around = use.node.parent
    if around is not None and around.type == "subscript":
        what = line_of(around)
        return f"{use.name} was always empty, so {what} raises KeyError, as before; read the value from the inputs"
    return f"{use.name} was always empty, so it is an empty dict now; replace it with the value you mean"


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
        draft.did(use.node, f"{use.name} was always empty: {{}} is passed instead")
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
    draft.did(call, f"{line_of(call)} always returned its default, because {use.name} was always empty")
    return True


def _default(call: Node) -> tuple[Part, ...] | None:
    """Return the source of what `….get(…)` returns for an empty dict; None if it is unknown or cannot be moved."""
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


def _is_in_loop(node: Node, function: Node) -> bool:
    """Return whether a call to `function` may evaluate `node` more than once, or after the function has returned."""
    for around in ancestors(node):
        if around == function:
            return False
        if around.type in ("for_statement", "while_statement", "lambda", "function_definition", "class_definition"):
            return True
    return False

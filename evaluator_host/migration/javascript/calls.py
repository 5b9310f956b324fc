"""Calls of the legacy function by the program itself, and what else is done with it."""

from tree_sitter import Node

from evaluator_host.migration.draft import Draft, NewNames, refuse
from evaluator_host.migration.edits import Part, span
from evaluator_host.migration.javascript.entry import LEGACY, Legacy
from evaluator_host.migration.javascript.text import property_key
from evaluator_host.migration.scopes import Access, Use
from evaluator_host.migration.syntax import child, code_children, text


def rewrite_calls(draft: Draft, legacy: Legacy, names: NewNames) -> None:
    """Give every call of the function its new arguments.

    Raises:
      Unreadable: the function is handed on as a value, or called with arguments that cannot be told apart.
    """
    for name in legacy.names:
        for use in draft.names.of(name, draft.names.module):
            if use.access is Access.READ and not _is_offered(use):
                _rewrite_use(draft, legacy, names, use)


def _is_offered(use: Use) -> bool:
    """Whether the module offers the function as its entry, or gives it another name."""
    around = use.node.parent
    if around is None or use.scope.kind != "module":
        return False
    if around.type in ("export_specifier", "export_statement", "variable_declarator", "member_expression"):
        return True
    if around.type == "assignment_expression":
        return child(around, "right") == use.node
    outer = around if around.type == "object" else around.parent
    above = outer.parent if outer is not None else None
    return outer is not None and outer.type == "object" and above is not None and above.type == "assignment_expression"


def _rewrite_use(draft: Draft, legacy: Legacy, names: NewNames, use: Use) -> None:
    around = use.node.parent
    if around is not None and around.type == "member_expression":
        return  # evaluate.name
    if around is None or around.type != "call_expression" or child(around, "function") != use.node:
        raise refuse(use.node, f"{use.name} is handed on as a value, to be called with four arguments elsewhere")
    listing = child(around, "arguments")
    arguments = code_children(listing) if listing is not None else []
    if listing is None or len(arguments) < LEGACY or any(one.type == "spread_element" for one in arguments):
        raise refuse(around, f"{use.name} is called with arguments that cannot be told apart")
    inside = use.scope.is_within(legacy.scope)
    truth = _inputs_with_truth(draft, legacy, arguments, inside=inside)
    trace = names.trace if inside else "null"
    parts: list[Part] = ["(", *truth, ", ", span(arguments[2]), f", {trace}"]
    for extra in arguments[LEGACY:]:
        parts += [", ", span(extra)]
    parts.append(")")
    for dropped in (arguments[0], arguments[3]):
        if span(dropped) not in truth:
            draft.drop(*span(dropped))
    draft.edits.replace_node(listing, *parts)
    draft.did(around, f"the call of {use.name} passes inputs, outputs and trace")


def _inputs_with_truth(draft: Draft, legacy: Legacy, arguments: list[Node], *, inside: bool) -> tuple[Part, ...]:
    """Return the inputs of a call with the ground truth that it passes in them."""
    inputs, truth = arguments[1], arguments[3]
    own = inside and _is_untouched(draft, legacy, 1, inputs) and _is_untouched(draft, legacy, 3, truth)
    if own or (draft.whole_row and text(inputs) == text(truth)):
        return (span(inputs),)
    if draft.whole_row:
        raise refuse(truth, "the call passes a row that is not its inputs")
    key = property_key(draft, draft.wish.key)
    if inputs.type != "object":
        return ("{ ...", span(inputs), f", {key}: ", span(truth), " }")
    pairs = code_children(inputs)
    if not pairs:
        return (f"{{ {key}: ", span(truth), " }")
    for pair in pairs:
        name, value = child(pair, "key"), child(pair, "value")
        same = name is not None and value is not None and text(value) == text(truth)
        if same and name is not None and text(name).strip("'\"") == draft.wish.key:
            return (span(inputs),)
    return ((inputs.start_byte, pairs[-1].end_byte), f", {key}: ", span(truth), (pairs[-1].end_byte, inputs.end_byte))


def _is_untouched(draft: Draft, legacy: Legacy, index: int, node: Node) -> bool:
    """Whether an argument is a parameter of the function itself that never gets another value."""
    parameter = legacy.parameters[index]
    uses = draft.names.of(parameter.name, legacy.scope) if parameter.is_plain else []
    written = any(use.access is not Access.READ and use.node != parameter.pattern for use in uses)
    return not written and any(use.node == node for use in uses)

"""Rewrites a program's own calls to its legacy function: in recursion, in wrappers, in a test in the file."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft, NewNames, refuse
from evaluator_host.migrate.edits import Part, span
from evaluator_host.migrate.function import LEGACY, Legacy
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import child, code_children, text

_SPREADS: Final = ("list_splat", "dictionary_splat", "spread_element")


def rewrite_calls(draft: Draft, legacy: Legacy, names: NewNames, *, uses: Iterable[Use], key: str) -> None:
    """Change the arguments of every call to the function to the new ones.

    Args:
      draft: The rewrite in progress.
      legacy: The legacy function. The old arguments match its parameters.
      names: Names of the new parameters. Calls inside the function pass them on.
      uses: Uses of the function's names. All of them must be calls.
      key: The key of the ground truth, as it is written in source code of this language.

    Raises:
      Unreadable: the function is passed as a value, or called with arguments that cannot be matched to its parameters.
    """
    for use in uses:
        if use.access is NameAccess.READ and not draft.is_gone(use.node):
            _rewrite_use(draft, legacy, names, use, key)


def _rewrite_use(draft: Draft, legacy: Legacy, names: NewNames, use: Use, key: str) -> None:
    grammar, around = draft.grammar, use.node.parent
    if around is None or around.type != grammar.call or child(around, "function") != use.node:
        raise refuse(use.node, f"{use.name} is passed as a value, so other code may call it; rewrite it by hand")
    listing = child(around, "arguments")
    arguments = _arguments(legacy, listing) if listing is not None and listing.type == grammar.arguments else None
    if listing is None or arguments is None:
        raise refuse(around, f"the arguments of a call to {use.name} do not match its parameters; rewrite the call")
    inside = use.scope.is_within(legacy.scope)
    truth = _inputs_with_truth(draft, legacy, arguments, key, inside=inside)
    trace = names.trace if inside else grammar.null
    keyword = arguments[2].keyword
    parts: list[Part] = ["("]
    parts += [f"{names.inputs}=" if keyword else "", *truth, ", "]
    parts += [f"{names.outputs}=" if keyword else "", span(arguments[2].value), ", "]
    parts.append(f"{names.trace}={trace}" if keyword else trace)
    for extra in arguments[LEGACY:]:
        parts += [", ", span(extra.node)]
    parts.append(")")
    for dropped in (arguments[0], arguments[3]):
        if span(dropped.value) not in truth:
            draft.drop(*span(dropped.node))
    draft.edits.replace_node(listing, *parts)
    draft.did(around, f"the call to {use.name} passes inputs, outputs and trace")


@dataclass(frozen=True, slots=True)
class _Argument:
    node: Node
    value: Node
    keyword: bool


def _arguments(legacy: Legacy, listing: Node) -> list[_Argument] | None:
    """Return a call's arguments: the four legacy ones in order, then any others. None if they do not match."""
    found: dict[int | str, _Argument] = {}
    places = {one.name: at for at, one in enumerate(legacy.parameters)}
    for at, node in enumerate(code_children(listing)):
        if node.type in _SPREADS:
            return None
        if node.type == "keyword_argument":
            name, value = child(node, "name"), child(node, "value")
            if name is None or value is None:
                return None
            found[places.get(text(name), text(name))] = _Argument(node, value, keyword=True)
        else:
            found[at] = _Argument(node, node, keyword=False)
    if any(at not in found for at in range(LEGACY)):
        return None
    return [*(found.pop(at) for at in range(LEGACY)), *found.values()]


def _inputs_with_truth(
    draft: Draft, legacy: Legacy, arguments: list[_Argument], key: str, *, inside: bool
) -> tuple[Part, ...]:
    """Return the source of a call's inputs, to which the ground truth is added.

    `inside` says whether the call is inside the function, where the inputs may contain the ground truth already.
    """
    inputs, truth = arguments[1].value, arguments[3].value
    own = inside and _is_untouched(draft, legacy, 1, inputs) and _is_untouched(draft, legacy, 3, truth)
    if own or (draft.whole_row and text(inputs) == text(truth)):
        return (span(inputs),)
    if draft.whole_row:
        raise refuse(truth, "the call passes inputs and a row that are not the same object; rewrite the call")
    opening, spread, closing = draft.grammar.table
    if inputs.type not in draft.grammar.table_literals:
        return (f"{opening}{spread}", span(inputs), f", {key}: ", span(truth), closing)
    pairs = code_children(inputs)
    if not pairs:
        return (f"{opening}{key}: ", span(truth), closing)
    for pair in pairs:
        name, value = child(pair, "key"), child(pair, "value")
        if name is not None and value is not None and text(value) == text(truth) and _is_key(draft, name):
            return (span(inputs),)
    return ((inputs.start_byte, pairs[-1].end_byte), f", {key}: ", span(truth), (pairs[-1].end_byte, inputs.end_byte))


def _is_key(draft: Draft, name: Node) -> bool:
    key = draft.wish.key
    return text(name) in (f'"{key}"', f"'{key}'") or (name.type == "property_identifier" and text(name) == key)


def _is_untouched(draft: Draft, legacy: Legacy, index: int, node: Node) -> bool:
    """Return whether an argument is the function's own parameter at this index, and is never reassigned."""
    parameter = legacy.parameters[index]
    uses = draft.names.of(parameter.name, legacy.scope) if parameter.is_plain else []
    written = any(use.access is not NameAccess.READ and use.node != parameter.pattern for use in uses)
    return not written and any(use.node == node for use in uses)

"""Rewrites JavaScript functions that take the four arguments as a rest parameter, or read them from `arguments`."""

from dataclasses import replace
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft, guessed_parameters, refuse
from evaluator_host.migrate.function import Legacy, Parameter, Spread
from evaluator_host.migrate.javascript.arguments import is_member, is_written, member_name
from evaluator_host.migrate.javascript.scopes import FUNCTIONS
from evaluator_host.migrate.javascript.text import insert_first, member
from evaluator_host.migrate.returned_text import convert_returned_text
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import ancestors, child, text

_ANY: Final = ("Record<string, any>", "any", "any")


def rewrite_spread(draft: Draft, spread: Spread) -> None:
    """Give a function with a rest parameter the new parameters, and insert statements that set its old parameters.

    Raises:
      Unreadable: the function has no block of statements, or the program uses the function itself.
    """
    function = spread.function
    node, scope = function.node, function.scope
    if not function.has_statements:
        raise refuse(
            node,
            f"a function takes its arguments as {text(spread.rest)[:40]}, and its body is not in braces; "
            "write the body as { return … }",
        )
    for name in function.names:
        for use in draft.names.of(name, draft.names.module):
            around = use.node.parent
            called = around is not None and around.type in ("call_expression", "arguments", "spread_element")
            if use.access is NameAccess.READ and called:
                raise refuse(
                    use.node,
                    f"{name} takes its arguments as {text(spread.rest)[:40]}, and other parts of the code use it; "
                    "give it named parameters first",
                )
    own = {use.name for use in draft.names.within(scope)}
    names = [
        _free(name, own, function.parameters, index) for index, name in enumerate(("inputs", "outputs", "trace"), 1)
    ]
    values = ["{}", names[0], names[1], member(draft, names[0], draft.wish.key)]
    lines = [
        f"{'let' if _is_set(draft, spread, one) else 'const'} {one.name} = {value}"
        for one, value in zip(function.parameters, values, strict=False)
        if one.name != value and (not one.is_plain or len(draft.names.of(one.name, scope)) > 1)
    ]
    lines.append(f"const {text(_pattern(spread.rest))} = [{', '.join(values[len(function.parameters) :])}]")
    typed = spread.rest.type == "required_parameter" and child(spread.rest, "type") is not None
    shown = [f"{name}: {type_}" if typed else name for name, type_ in zip(names, _ANY, strict=True)]
    listing = child(node, "parameters")
    if listing is not None:
        draft.edits.replace_node(listing, f"({', '.join(shown)})")
    draft.did(node, f"the parameters became ({', '.join(names)}); the old ones are set at the start")
    draft.parameters = guessed_parameters(draft.source.decode())
    convert_returned_text(draft, replace(function, parameters=()))
    insert_first(draft, node, lines)


def old_arguments(draft: Draft, legacy: Legacy, inputs: str, outputs: str) -> str | None:
    """Replace `arguments` with an array of the old arguments.

    Return the statement that creates the array, or None if the function does not read `arguments`.

    Raises:
      Unreadable: the code changes the arguments, or the function is an arrow function, which has no `arguments`.
    """
    uses = [use for use in draft.names.within(legacy.scope) if _is_own_arguments(draft, legacy, use)]
    if not uses:
        return None
    for use in uses:
        around = use.node.parent
        changed = around is not None and is_member(use) and (is_written(around) or member_name(around) == "callee")
        if changed or use.access is not NameAccess.READ or not legacy.has_statements:
            raise refuse(use.node, "the function changes its arguments by position; name them first")
    taken = {use.name for use in draft.names.uses}
    name = next(one for one in ("args", "oldArguments", "_oldArguments", "__oldArguments") if one not in taken)
    for use in uses:
        draft.edits.replace_node(use.node, name)
        draft.did(use.node, f"arguments now has only three values, so {name}, which has the old four, replaces it")
    return f"const {name} = [{{}}, {inputs}, {outputs}, {member(draft, inputs, draft.wish.key)}]"


def _is_own_arguments(draft: Draft, legacy: Legacy, use: Use) -> bool:
    if use.name != "arguments" or draft.names.owner(use) is not None:
        return False
    for around in ancestors(use.node):
        if around.type in FUNCTIONS and around.type != "arrow_function":
            return around == legacy.node
    return True


def _pattern(rest: Node) -> Node:
    inner = child(rest, "pattern") if rest.type == "required_parameter" else rest
    return inner.named_children[0] if inner is not None and inner.named_children else rest


def _is_set(draft: Draft, spread: Spread, parameter: Parameter) -> bool:
    uses = draft.names.of(parameter.name, spread.function.scope)
    return any(use.access is not NameAccess.READ and use.node != parameter.pattern for use in uses)


def _free(name: str, own: set[str], parameters: tuple[Parameter, ...], index: int) -> str:
    """Return a name for a new parameter: the plain name, or one with a leading `_` if the function already uses it."""
    same = index < len(parameters) and parameters[index].name == name and name == "inputs"
    return name if same or name not in own else f"_{name}"

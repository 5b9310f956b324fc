"""Rewrites Python functions that take the four arguments as `*args`, or that `functools.partial` makes."""

from dataclasses import replace
from typing import Final

from evaluator_host.migrate.draft import Draft, guessed_parameters, refuse
from evaluator_host.migrate.function import Spread
from evaluator_host.migrate.python.text import insert_first, quoted
from evaluator_host.migrate.returned_text import convert_returned_text
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import child, code_children, text

_PARTIAL: Final = ("partial", "functools.partial")
_CONSTANT: Final = ("integer", "float", "string", "true", "false", "none", "unary_operator", "identifier")


def rewrite_spread(draft: Draft, spread: Spread) -> None:
    """Give a function that takes `*args` the new parameters, and insert statements that set its old parameters.

    Raises:
      Unreadable: the function is a lambda, or the program itself uses it.
    """
    function = spread.function
    if not function.has_statements:
        raise refuse(
            function.node, f"a lambda takes its arguments as {text(spread.rest)}; give it named parameters first"
        )
    name = text(child(function.node, "name") or function.node)
    for use in draft.names.of(name, draft.names.module):
        around = use.node.parent
        if use.access is NameAccess.READ and (around is None or around.type != "attribute"):
            raise refuse(
                use.node,
                f"{name} takes its arguments as {text(spread.rest)}, and other parts of the code use it; "
                "give it named parameters first",
            )
    inputs, outputs, trace = (_free(draft, spread, name) for name in ("inputs", "outputs", "trace"))
    values = ("{}", inputs, outputs, f"{inputs}[{quoted(draft, draft.wish.key)}]")
    named = [one.name for one in function.parameters]
    used = [len(draft.names.of(old, function.scope)) > 1 for old in named]
    lines = [f"{old} = {new}" for old, new, is_used in zip(named, values, used, strict=False) if is_used and old != new]
    rest = values[len(named) :]
    lines.insert(0, f"{_rest_name(spread)} = ({', '.join(rest)}{',' if len(rest) == 1 else ''})")
    listing = child(function.node, "parameters")
    if listing is None:
        return
    after = [one for one in code_children(listing) if one.start_byte > spread.rest.start_byte]
    options = [text(one) for one in after]
    if options and not options[0].startswith("**"):
        options.insert(0, "*")
    draft.edits.replace_node(listing, f"({', '.join((inputs, outputs, trace, *options))})")
    draft.did(function.node, f"the parameters became ({inputs}, {outputs}, {trace}); the old ones are set at the start")
    draft.parameters = guessed_parameters(draft.source.decode())
    convert_returned_text(draft, replace(function, parameters=()))
    insert_first(draft, function.node, lines)


def rewrite_partial(draft: Draft, use: Use) -> bool:
    """Rewrite `evaluate = partial(function, …)` as a function that makes the same call. Return False for other code."""
    assignment = use.node.parent
    call = child(assignment, "right") if assignment is not None and assignment.type == "assignment" else None
    function = child(call, "function") if call is not None and call.type == "call" else None
    listing = child(call, "arguments") if call is not None else None
    if function is None or listing is None or text(function) not in _PARTIAL or listing.type != "argument_list":
        return False
    given = code_children(listing)
    values = [child(one, "value") if one.type == "keyword_argument" else one for one in given]
    if not given or any(one is None or one.type not in _CONSTANT for one in values):
        return False
    if assignment is None or _is_used(draft, use):
        return False
    plain = [text(one) for one in given[1:] if one.type != "keyword_argument"]
    options = [text(one) for one in given if one.type == "keyword_argument"]
    old = ("{}", "inputs", "outputs", f"inputs[{quoted(draft, draft.wish.key)}]")
    arguments = ", ".join((*plain, *old, *options))
    head = f"def {use.name}(inputs, outputs, trace):"
    draft.edits.replace_node(assignment, f"{head}\n    return {text(given[0])}({arguments})")
    draft.did(assignment, f"{use.name} became a function that calls {text(given[0])}")
    draft.parameters = guessed_parameters(draft.source.decode())
    return True


def _is_used(draft: Draft, use: Use) -> bool:
    uses = draft.names.of(use.name, draft.names.module)
    return use.scope is not draft.names.module or len(uses) != 1


def _rest_name(spread: Spread) -> str:
    """Return the name of the `*args` parameter, without its star and annotation."""
    return text(spread.rest).partition(":")[0].strip(" *")


def _free(draft: Draft, spread: Spread, name: str) -> str:
    """Return a name for a new parameter: the plain name, or one with a leading `_` if the function already uses it."""
    scope = spread.function.scope
    parameters = [one.name for one in spread.function.parameters]
    used = [use for use in draft.names.within(scope) if use.name == name]
    other = name in parameters and (name != "inputs" or parameters.index(name) != 1)
    other = other or any(draft.names.owner(use) is not scope for use in used)
    return f"_{name}" if other or name == _rest_name(spread) else name

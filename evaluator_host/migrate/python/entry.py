"""Finds the legacy function of a Python program, and its parameters."""

from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft, refuse
from evaluator_host.migrate.function import LEGACY, Current, Legacy, Parameter, Spread
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import Unreadable, child, code_children, descendants, text

_SEPARATORS: Final = ("positional_separator", "keyword_separator")


def find(draft: Draft) -> list[Legacy]:
    """Return the definitions of the entry function. There are several if the program chooses between them.

    Raises:
      Current: the function takes three arguments.
      Spread: the function takes arguments as `*args`.
      Unreadable: the function cannot be rewritten; the message says why.
    """
    writes = entry_uses(draft)
    chosen = writes if any(_is_conditional(one) for one in writes) else writes[-1:]
    return [_legacy(draft, one) for one in chosen]


def entry_uses(draft: Draft) -> list[Use]:
    """Return the uses that bind the name of the entry function. If the entry is an alias, use the original name.

    Raises:
      Unreadable: the program does not bind the name.
    """
    name, seen = draft.wish.entry, set[str]()
    while True:
        seen.add(name)
        writes = [one for one in draft.names.of(name, draft.names.module) if one.access is NameAccess.WRITE]
        if not writes:
            raise Unreadable(f"the code defines no function {draft.wish.entry}", missing=True)
        alias = _alias(writes[-1])
        if alias is None or alias in seen:
            return writes
        name = alias


def _alias(use: Use) -> str | None:
    """Return the name that a program assigns to its entry, as in `evaluate = name`, or None."""
    around = use.node.parent
    if around is None or around.type != "assignment":
        return None
    right = child(around, "right")
    return text(right) if right is not None and right.type == "identifier" else None


def _is_conditional(use: Use) -> bool:
    node: Node | None = use.node
    while node is not None and node.parent is not None:
        if node.parent.type in ("if_statement", "try_statement", "else_clause", "elif_clause", "except_clause"):
            return True
        node = node.parent
    return False


def _legacy(draft: Draft, use: Use) -> Legacy:
    definition = _definition(use)
    listing = child(definition, "parameters")
    nodes = code_children(listing) if listing is not None else []
    positional: list[Parameter] = []
    more: list[Node] = []
    for node in nodes:
        if node.type in _SEPARATORS:
            if node.type == "keyword_separator" or more:
                more.append(node)
        elif (parameter := parameter_of(node)) is None or more or len(positional) == LEGACY:
            more.append(node)
        else:
            positional.append(parameter)
    legacy = Legacy(definition, draft.names.scopes[definition.id], tuple(positional))
    _require_four(legacy, more)
    return legacy


def _definition(use: Use) -> Node:
    around = use.node.parent
    if around is not None and around.type == "function_definition":
        return around
    if around is not None and around.type == "assignment":
        right = child(around, "right")
        if right is not None and right.type == "lambda":
            return right
    is_class = around is not None and around.type == "class_definition"
    kind = "a class" if is_class else "created by other code, so its four parameters cannot be seen"
    raise refuse(use.node, f"{use.name} is {kind}; rewrite it by hand")


def parameter_of(node: Node) -> Parameter | None:
    """Return a parameter that can be passed by position, or None for `*` and `**` parameters."""
    if node.type == "identifier":
        return Parameter(node, node, None, None)
    if node.type == "typed_parameter":
        name = node.named_children[0]
        return Parameter(node, name, child(node, "type"), None) if name.type == "identifier" else None
    pattern = child(node, "name")
    if node.type in ("default_parameter", "typed_default_parameter") and pattern is not None:
        return Parameter(node, pattern, child(node, "type"), child(node, "value"))
    return None


def _require_four(legacy: Legacy, more: list[Node]) -> None:
    positional = legacy.parameters
    stars = [node for node in more if node.type in ("list_splat_pattern", "typed_parameter")]
    if len(positional) < LEGACY:
        if stars and len(positional) == LEGACY - 1 and not positional[0].is_named_first:
            raise Current
        if stars:
            raise Spread(legacy, stars[0])
        if len(positional) > 0:
            raise Current
        raise refuse(legacy.node, "the function takes no arguments")
    named = positional[0].is_named_first or positional[3].is_named_fourth
    if positional[3].default is not None and not named:
        raise Current  # the first three parameters are the new ones, the fourth is an option of the author


def wrappers(draft: Draft, definition: Node) -> list[tuple[Node, Legacy]]:
    """Return the functions with the four legacy parameters that a function's decorators contain.

    Raises:
      Unreadable: a decorator with such a function is used elsewhere too, or is a class.
    """
    around = definition.parent
    if around is None or around.type != "decorated_definition":
        return []
    found = []
    for decorator in (one for one in around.children if one.type == "decorator"):
        used = {text(one) for one in descendants(decorator) if one.type == "identifier"}
        own = [one for name in used for one in _own_decorator(draft, name)]
        inner = [(decorator, legacy) for one in own for legacy in _with_four(draft, one)]
        if inner and _is_used_elsewhere(draft, used, decorator):
            raise refuse(
                decorator,
                f"{text(decorator)} contains a function with four parameters, but decorates other functions too",
            )
        found += inner
        if not inner and _passes_all_on(own):
            draft.did(decorator, f"{text(decorator)} passes on all arguments, so it stays unchanged")
        elif not inner:
            draft.left(
                decorator,
                f"{text(decorator)} wraps the function; check that it does not depend on the number of arguments",
            )
    return found


def _own_decorator(draft: Draft, name: str) -> list[Node]:
    uses = draft.names.of(name, draft.names.module)
    places = [use.node.parent for use in uses if use.access is NameAccess.WRITE]
    return [one for one in places if one is not None and one.type in ("function_definition", "class_definition")]


def _is_used_elsewhere(draft: Draft, names: set[str], decorator: Node) -> bool:
    """Return whether a decorator that the program defines also decorates another function."""
    for name in names:
        for use in draft.names.of(name, draft.names.module):
            inside = decorator.start_byte <= use.node.start_byte < decorator.end_byte
            if use.access is NameAccess.READ and not inside and _own_decorator(draft, name):
                return True
    return False


def _with_four(draft: Draft, decorator: Node) -> list[Legacy]:
    """Return the functions and lambdas inside a decorator that have the four parameters of a legacy evaluator."""
    found = []
    for node in descendants(decorator):
        if node.type in ("function_definition", "lambda") and node is not decorator:
            listing = child(node, "parameters")
            nodes = code_children(listing) if listing is not None else []
            parameters = [one for one in map(parameter_of, nodes) if one is not None]
            if len(parameters) < LEGACY:
                continue
            if decorator.type == "class_definition" or len(nodes) > LEGACY:
                name = text(child(decorator, "name") or decorator)
                what = (
                    "is a class" if decorator.type == "class_definition" else "has a function with over four parameters"
                )
                raise refuse(node, f"the decorator {name} {what}; rewrite it by hand")
            found.append(Legacy(node, draft.names.scopes[node.id], tuple(parameters)))
    return found


def _passes_all_on(decorators: list[Node]) -> bool:
    """Return whether each decorator returns the function itself, or passes on all arguments and does not read them."""
    if not decorators:
        return False
    for one in decorators:
        stars = {text(node).lstrip("*") for node in descendants(one) if node.type == "list_splat_pattern"}
        for node in descendants(one):
            reads = node.type == "identifier" and text(node) in stars and node.parent is not None
            if reads and node.parent is not None and node.parent.type not in ("list_splat", "list_splat_pattern"):
                return False
    return True

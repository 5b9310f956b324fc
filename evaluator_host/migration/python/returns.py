"""What a Python evaluator returns: the legacy contract read text as a number, the new one wants the number."""

from collections.abc import Iterator

from tree_sitter import Node

from evaluator_host.migration.draft import Draft
from evaluator_host.migration.edits import span
from evaluator_host.migration.python.entry import Legacy
from evaluator_host.migration.syntax import child, text


def mend_returns(draft: Draft, legacy: Legacy) -> None:
    """Write `float(…)` around text that is returned as the score."""
    for value in _returned(legacy):
        if _is_text(draft, legacy, value) and not _shadowed(draft, legacy, "float"):
            draft.edits.replace_node(value, "float(", span(value), ")")
            draft.did(value, "text is returned as a number: the legacy contract read it as one")


def _returned(legacy: Legacy) -> Iterator[Node]:
    body = child(legacy.node, "body")
    if body is None:
        return
    if legacy.is_lambda:
        yield body
        return
    left = [body]
    while left:
        node = left.pop()
        if node.type in ("function_definition", "lambda", "class_definition"):
            continue
        if node.type == "return_statement" and node.named_children and node.named_children[0].type != "comment":
            yield node.named_children[0]
        left.extend(node.named_children)


def _is_text(draft: Draft, legacy: Legacy, value: Node) -> bool:
    if value.type == "string":
        return not text(value).lower().startswith(("b", "rb", "br"))
    function = child(value, "function") if value.type == "call" else None
    if function is None:
        return False
    if text(function) == "str":
        return not _shadowed(draft, legacy, "str")
    return function.type == "attribute" and child(function, "object") is not None and _is_format(function)


def _is_format(function: Node) -> bool:
    owner = child(function, "object")
    return text(function.named_children[-1]) == "format" and owner is not None and owner.type == "string"


def _shadowed(draft: Draft, legacy: Legacy, name: str) -> bool:
    return draft.names.lookup(name, legacy.scope) is not None

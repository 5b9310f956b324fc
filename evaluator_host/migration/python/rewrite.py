"""Python: rewrites the legacy signature to `evaluate(inputs, outputs, trace)`, and all code that depends on it."""

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from evaluator_host.migration.draft import Draft, NewNames, Rewritten, Wish
from evaluator_host.migration.edits import span
from evaluator_host.migration.python.arguments import reads_whole_row, rewrite_settings, rewrite_truth
from evaluator_host.migration.python.calls import rewrite_calls
from evaluator_host.migration.python.entry import Current, Legacy, Parameter, find
from evaluator_host.migration.python.imports import add_imports
from evaluator_host.migration.python.main import from_main, to_main
from evaluator_host.migration.python.scopes import names_of
from evaluator_host.migration.python.text import docstring, insert_first
from evaluator_host.migration.syntax import Unreadable, child, descendants, parse, text
from evaluator_host.model.evaluator import Language

_SEES_NAMES: Final = frozenset(("locals", "vars", "eval", "exec", "dir"))
_TRACE_NAMES: Final = ("trace", "_trace", "trace_", "_trace_")
_COMMA: Final = re.compile(rb"\s*,(?:\s*/\s*,)?[ \t]*(?:#[^\n]*)?(?:\n[ \t]*)?")
_MAPPING: Final = re.compile(r"(typing\.|t\.)?(Dict|dict|Mapping)\b")


def rewrite(code: str, wish: Wish) -> Rewritten:
    """Return a Python program with the new signature.

    Raises:
      Unreadable: it cannot be rewritten safely; the text says why.
    """
    source = code.encode()
    root = parse(source, Language.PYTHON)
    draft = Draft(source, root, names_of(root), wish)
    if wish.to == "main":
        return to_main(draft)
    try:
        found = find(draft)
    except Current:
        return Rewritten(None, current=True)
    except Unreadable as error:
        if error.missing and "main" in draft.names.module.bound:
            return from_main(draft)
        raise
    draft.whole_row = reads_whole_row(draft, found[0])
    draft.parameters = tuple(one.name for one in found[0].parameters)
    for legacy in found:
        _rewrite_function(draft, legacy)
    add_imports(draft)
    return draft.finish()


def _rewrite_function(draft: Draft, legacy: Legacy) -> None:
    dynamic = _dynamic(draft, legacy)
    if dynamic is not None:
        draft.left(dynamic, f"{text(dynamic)[:40]} can see variable names, so inputs and outputs keep their old names")
    names = _new_names(draft, legacy, dynamic=dynamic is not None)
    _docstring(draft, legacy)
    rewrite_signature(draft, legacy, names)
    rewrite_calls(draft, legacy, names, callable_names=_names_of_function(draft, legacy))
    first = [
        rewrite_settings(draft, legacy, dynamic=dynamic is not None),
        rewrite_truth(draft, legacy, names.inputs, dynamic=dynamic is not None),
    ]
    convert_returned_text(draft, legacy)
    insert_first(draft, legacy.node, [line for line in first if line is not None])


def _names_of_function(draft: Draft, legacy: Legacy) -> list[str]:
    own = child(legacy.node, "name")
    return list(dict.fromkeys((draft.wish.entry, *((text(own),) if own is not None else ()))))


def _dynamic(draft: Draft, legacy: Legacy) -> Node | None:
    """Return the node in a function that can see variable names (`locals()`, `{x=}`), or None."""
    for use in draft.names.within(legacy.scope):
        around = use.node.parent
        called = around is not None and around.type == "call" and child(around, "function") == use.node
        if use.name in _SEES_NAMES and called and draft.names.owner(use) is None:
            return around
    own = {one.name for one in legacy.parameters}
    for node in descendants(legacy.node):
        shows_names = node.type == "interpolation" and any(one.type == "=" for one in node.children)
        if shows_names and own & {text(one) for one in descendants(node) if one.type == "identifier"}:
            return node
    return None


def _new_names(draft: Draft, legacy: Legacy, *, dynamic: bool) -> NewNames:
    """Return the names of the new parameters: the names of the contract, unless they are already used."""
    second, third = legacy.parameters[1], legacy.parameters[2]
    wanted = {second.name: "inputs", third.name: "outputs"}
    if dynamic:
        wanted = {second.name: second.name, third.name: third.name}
    while clashing := _clashing(draft, legacy, wanted):
        wanted[clashing] = clashing
    taken = {use.name for use in draft.names.within(legacy.scope)} - {legacy.parameters[3].name} | set(wanted.values())
    taken |= {legacy.parameters[3].name} if len(draft.names.of(legacy.parameters[3].name, legacy.scope)) > 1 else set()
    trace = next((name for name in _TRACE_NAMES if name not in taken), "_unused_trace")
    for old, new in wanted.items():
        for use in draft.names.of(old, legacy.scope):
            if old != new and not _is_parameter(legacy, use.node):
                draft.edits.replace_node(use.node, new)
    return NewNames(wanted[second.name], wanted[third.name], trace)


def _clashing(draft: Draft, legacy: Legacy, wanted: dict[str, str]) -> str | None:
    leaving = {use.node.id for old in wanted if wanted[old] != old for use in draft.names.of(old, legacy.scope)}
    for old, new in wanted.items():
        if old == new:
            continue
        clash = draft.names.clash(draft.names.of(old, legacy.scope), new, legacy.scope, leaving=leaving)
        if clash is not None:
            draft.did(clash.node, f"the parameter {old} keeps its name: {new} means something else here")
            return old
    return None


def _is_parameter(legacy: Legacy, node: Node) -> bool:
    return any(one.name_node == node for one in legacy.parameters)


def _docstring(draft: Draft, legacy: Legacy) -> None:
    body = child(legacy.node, "body")
    doc = docstring(body) if body is not None and not legacy.is_lambda else None
    if doc is None:
        return
    gone = [legacy.parameters[0].name, legacy.parameters[3].name]
    named = [name for name in gone if re.search(rf"\b{re.escape(name)}\b", text(doc))]
    if named:
        draft.left(doc, f"the docstring still mentions {' and '.join(named)}")


def rewrite_signature(draft: Draft, legacy: Legacy, names: NewNames) -> None:
    """Replace the parameters of the function by the new ones, keeping the layout of the source."""
    first, second, third, fourth = legacy.parameters
    comma = _COMMA.match(draft.source, first.node.end_byte)
    end = comma.end() if comma is not None else second.node.start_byte
    draft.edits.replace(first.node.start_byte, min(end, second.node.start_byte))
    for parameter, name in ((second, names.inputs), (third, names.outputs)):
        if parameter.name != name:
            draft.edits.replace_node(parameter.name_node, name)
    draft.edits.replace_node(fourth.node, names.trace + _annotation(draft, legacy) + _default(second, third, fourth))
    draft.drop_comment_behind(fourth.node)
    old = ", ".join(one.name for one in legacy.parameters)
    draft.did(legacy.node, f"({old}) became ({names.inputs}, {names.outputs}, {names.trace})")


def _annotation(draft: Draft, legacy: Legacy) -> str:
    """Return the annotation of the trace; empty if the function has no annotations."""
    second = legacy.parameters[1].annotation
    if all(one.annotation is None for one in legacy.parameters):
        return ""
    if second is not None and _MAPPING.match(text(second)):
        name = text(second).partition("[")[0]
        return f": {name}[str, Any]" if _has(draft, "Any") and "[" in text(second) else f": {name}"
    if _has(draft, "Dict") and _has(draft, "Any"):
        return ": Dict[str, Any]"
    return ": dict[str, Any]" if _has(draft, "Any") else ": dict"


def _has(draft: Draft, name: str) -> bool:
    return name in draft.names.module.bound


def _default(second: Parameter, third: Parameter, fourth: Parameter) -> str:
    if second.default is None and third.default is None:
        return ""
    annotated = any(one.annotation is not None for one in (second, third, fourth))
    return " = None" if annotated else "=None"


def convert_returned_text(draft: Draft, legacy: Legacy) -> None:
    """Wrap returned text that is used as the score in `float(…)`."""
    for value in _returned(legacy):
        if _is_text(draft, legacy, value) and not _shadowed(draft, legacy, "float"):
            draft.edits.replace_node(value, "float(", span(value), ")")
            draft.did(value, "text is now converted to a number; the legacy contract did that itself")


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

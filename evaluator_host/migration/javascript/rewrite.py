"""JavaScript and TypeScript: the legacy signature becomes `evaluate(inputs, outputs, trace)`."""

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from evaluator_host.migration.draft import Draft, NewNames, Rewritten, Wish, refuse
from evaluator_host.migration.edits import span
from evaluator_host.migration.javascript.calls import rewrite_calls
from evaluator_host.migration.javascript.entry import Current, Legacy, find
from evaluator_host.migration.javascript.main import from_main, to_main
from evaluator_host.migration.javascript.scopes import FUNCTIONS, names_of
from evaluator_host.migration.javascript.signature import rewrite_signature
from evaluator_host.migration.javascript.text import insert_first
from evaluator_host.migration.javascript.uses import replace_use
from evaluator_host.migration.javascript.values import reads_whole_row, rewrite_settings, rewrite_truth
from evaluator_host.migration.syntax import Unreadable, child, parse, text
from evaluator_host.model.evaluator import Language

_TRACE_NAMES: Final = ("trace", "_trace", "trace_", "_trace_")
_TEXT_METHODS: Final = ("toFixed", "toPrecision", "toString")


def rewrite_javascript(code: str, wish: Wish) -> Rewritten:
    """Return a JavaScript program with the new signature.

    Raises:
      Unreadable: it cannot be rewritten safely; the text says why.
    """
    return _rewrite(code, wish, Language.JAVASCRIPT)


def rewrite_typescript(code: str, wish: Wish) -> Rewritten:
    """Return a TypeScript program with the new signature.

    Raises:
      Unreadable: it cannot be rewritten safely; the text says why.
    """
    return _rewrite(code, wish, Language.TYPESCRIPT)


def _rewrite(code: str, wish: Wish, language: Language) -> Rewritten:
    source = code.encode()
    root = parse(source, language)
    draft = Draft(source, root, names_of(root), wish)
    if wish.to == "main":
        return to_main(draft)
    try:
        legacy = find(draft)
    except Current:
        return Rewritten(None, current=True)
    except Unreadable as error:
        if error.missing:
            return from_main(draft)
        raise
    draft.parameters = tuple(one.name for one in legacy.parameters)
    draft.whole_row = reads_whole_row(draft, legacy)
    dynamic = _dynamic(draft, legacy)
    if dynamic:
        draft.left(legacy.node, "eval sees names: inputs and outputs keep theirs")
    names = _new_names(draft, legacy, dynamic=dynamic)
    _jsdoc(draft, legacy)
    taken_apart = rewrite_signature(draft, legacy, names)
    rewrite_calls(draft, legacy, names)
    first = [
        rewrite_settings(draft, legacy, dynamic=dynamic),
        *taken_apart,
        rewrite_truth(draft, legacy, names.inputs, dynamic=dynamic),
    ]
    lines = [line for line in first if line is not None]
    if lines and not legacy.has_statements:
        raise refuse(legacy.node, "its parameters are taken apart by a function without statements; give it a body")
    _mend_returns(draft, legacy)
    insert_first(draft, legacy.node, lines)
    return draft.finish()


def _dynamic(draft: Draft, legacy: Legacy) -> bool:
    """Whether the function sees the names of its variables.

    Raises:
      Unreadable: it counts its arguments.
    """
    for use in draft.names.within(legacy.scope):
        if draft.names.owner(use) is not None:
            continue
        if use.name == "arguments":
            raise refuse(use.node, "it reads its arguments by number; name the four of them first")
        around = use.node.parent
        if use.name == "eval" and around is not None and around.type == "call_expression":
            return True
    return False


def _new_names(draft: Draft, legacy: Legacy, *, dynamic: bool) -> NewNames:
    """Return how the new parameters are called: by the names of the contract, where nothing else has them."""
    second, third, fourth = legacy.parameters[1:]
    wanted = {second.name: "inputs"} if second.is_plain else {}
    wanted |= {third.name: "outputs"} if third.is_plain else {}
    if dynamic:
        wanted = {name: name for name in wanted}
    while clashing := _clashing(draft, legacy, wanted):
        wanted[clashing] = clashing
    taken = {use.name for use in draft.names.within(legacy.scope)} | set(wanted.values())
    if len(draft.names.of(fourth.name, legacy.scope)) <= 1:
        taken -= {fourth.name}
    trace = next((name for name in _TRACE_NAMES if name not in taken), "_unusedTrace")
    own = [one.pattern for one in legacy.parameters]
    for old, new in wanted.items():
        for use in draft.names.of(old, legacy.scope):
            if old != new and use.node not in own:
                replace_use(draft, use, new)
    inputs = wanted.get(second.name) or next(
        (name for name in ("inputs", "_inputs", "inputs_") if name not in taken), "_allInputs"
    )
    needs_inputs = second.is_plain or not fourth.is_plain or len(draft.names.of(fourth.name, legacy.scope)) > 1
    return NewNames(inputs if needs_inputs else second.name, wanted.get(third.name, third.name), trace)


def _clashing(draft: Draft, legacy: Legacy, wanted: dict[str, str]) -> str | None:
    leaving = {use.node.id for old in wanted if wanted[old] != old for use in draft.names.of(old, legacy.scope)}
    for old, new in wanted.items():
        clash = None
        if old != new:
            clash = draft.names.clash(draft.names.of(old, legacy.scope), new, legacy.scope, leaving=leaving)
        if clash is not None:
            draft.did(clash.node, f"the parameter {old} keeps its name: {new} means something else here")
            return old
    return None


def _jsdoc(draft: Draft, legacy: Legacy) -> None:
    """Say when the comment above the function speaks of parameters that are gone."""
    node = legacy.node
    while node.parent is not None and node.parent.type not in ("program", "object", "class_body"):
        node = node.parent
    above = node.prev_named_sibling
    if above is None or above.type != "comment":
        return
    gone = [legacy.parameters[0].name, legacy.parameters[3].name]
    named = [name for name in gone if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text(above))]
    if named:
        draft.left(above, f"the comment still speaks of {' and '.join(named)}")


def _mend_returns(draft: Draft, legacy: Legacy) -> None:
    """Write `Number(…)` around text that is returned as the score: the legacy contract read it as a number."""
    if draft.names.lookup("Number", legacy.scope) is not None:
        return
    for value in _returned(legacy):
        if _is_text(value):
            draft.edits.replace_node(value, "Number(", span(value), ")")
            draft.did(value, "text is returned as a number: the legacy contract read it as one")


def _returned(legacy: Legacy) -> Iterator[Node]:
    body = child(legacy.node, "body")
    if body is None:
        return
    if not legacy.has_statements:
        yield body
        return
    left = [body]
    while left:
        node = left.pop()
        if node.type in FUNCTIONS or node.type in ("class_declaration", "class"):
            continue
        if node.type == "return_statement" and node.named_children and node.named_children[0].type != "comment":
            yield node.named_children[0]
        left.extend(node.named_children)


def _is_text(value: Node) -> bool:
    if value.type in ("string", "template_string"):
        return True
    function = child(value, "function") if value.type == "call_expression" else None
    if function is None:
        return False
    name = child(function, "property") if function.type == "member_expression" else None
    return text(function) == "String" or (name is not None and text(name) in _TEXT_METHODS)

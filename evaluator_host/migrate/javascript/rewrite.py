"""Rewrites a JavaScript or TypeScript evaluator's legacy signature to `evaluate(inputs, outputs, trace)`."""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_host.migrate.calls import rewrite_calls
from evaluator_host.migrate.draft import Draft, NewNames, Rewritten, Wish, refuse
from evaluator_host.migrate.function import Current, Legacy, Parameter, Spread
from evaluator_host.migrate.grammar import JAVASCRIPT
from evaluator_host.migrate.javascript.arguments import (
    member_name,
    reads_whole_row,
    rewrite_settings,
    rewrite_truth,
)
from evaluator_host.migrate.javascript.entry import find
from evaluator_host.migrate.javascript.main import from_main, to_main
from evaluator_host.migrate.javascript.scopes import names_of
from evaluator_host.migrate.javascript.spread import old_arguments, rewrite_spread
from evaluator_host.migrate.javascript.text import insert_first, property_key
from evaluator_host.migrate.returned_text import convert_returned_text
from evaluator_host.migrate.scopes import Use
from evaluator_host.migrate.syntax import Unreadable, child, code_children, parse, text
from evaluator_host.migrate.uses import rename_parameters
from evaluator_host.types.evaluator import Language

_TRACE_NAMES: Final = ("trace", "_trace", "trace_", "_trace_")
_CALLERS: Final = ("bind", "call", "apply")
_COMMA: Final = re.compile(rb"\s*,[ \t]*(?://[^\n]*|/\*[^\n]*?\*/[ \t]*)?(?:\n[ \t]*)?")
_RECORD: Final = re.compile(r"Record<\s*string\s*,\s*(.*)>", re.DOTALL)
_ANY: Final = "Record<string, any>"


def rewrite_javascript(code: str, wish: Wish) -> Rewritten:
    """Rewrite a JavaScript program to the new signature.

    Raises:
      Unreadable: the program cannot be rewritten safely; the message says why.
    """
    return _rewrite(code, wish, Language.JAVASCRIPT)


def rewrite_typescript(code: str, wish: Wish) -> Rewritten:
    """Rewrite a TypeScript program to the new signature.

    Raises:
      Unreadable: the program cannot be rewritten safely; the message says why.
    """
    return _rewrite(code, wish, Language.TYPESCRIPT)


def _rewrite(code: str, wish: Wish, language: Language) -> Rewritten:
    source = code.encode()
    root = parse(source, language)
    draft = Draft(source, root, names_of(root), wish, JAVASCRIPT)
    if wish.to == "main":
        return to_main(draft)
    try:
        legacy = find(draft)
    except Current:
        return Rewritten(None, current=True)
    except Spread as spread:
        rewrite_spread(draft, spread)
        return draft.finish()
    except Unreadable as error:
        if error.missing:
            return from_main(draft)
        raise
    draft.parameters = tuple(one.name for one in legacy.parameters)
    draft.whole_row = reads_whole_row(draft, legacy)
    dynamic = _dynamic(draft, legacy)
    if dynamic:
        draft.did(legacy.node, "eval can see variable names, so inputs and outputs keep their old names")
    names = _new_names(draft, legacy, dynamic=dynamic)
    _jsdoc(draft, legacy)
    taken_apart = rewrite_signature(draft, legacy, names)
    key = property_key(draft, draft.wish.key)
    rewrite_calls(draft, legacy, names, uses=_calls(draft, legacy), key=key)
    first = [
        old_arguments(draft, legacy, names.inputs, names.outputs),
        rewrite_settings(draft, legacy, dynamic=dynamic),
        *taken_apart,
        rewrite_truth(draft, legacy, names.inputs, dynamic=dynamic),
    ]
    lines = [line for line in first if line is not None]
    if lines and not legacy.has_statements:
        raise refuse(legacy.node, "the function destructures its parameters and has no body; give it a body in braces")
    convert_returned_text(draft, legacy)
    insert_first(draft, legacy.node, lines)
    return draft.finish()


def _dynamic(draft: Draft, legacy: Legacy) -> bool:
    """Return whether the function can read variables by name (`eval`)."""
    for use in draft.names.within(legacy.scope):
        around = use.node.parent
        if use.name != "eval" or draft.names.owner(use) is not None:
            continue
        if around is not None and around.type == "call_expression":
            return True
    return False


def _new_names(draft: Draft, legacy: Legacy, *, dynamic: bool) -> NewNames:
    """Return the new parameters' names: those of the contract, changed where the code already uses them."""
    second, third, fourth = legacy.parameters[1:]
    wanted = {second.name: "inputs"} if second.is_plain else {}
    wanted |= {third.name: "outputs"} if third.is_plain else {}
    if dynamic:
        wanted = {name: name for name in wanted}
    wanted = rename_parameters(draft, legacy, wanted)
    taken = {use.name for use in draft.names.within(legacy.scope)} | set(wanted.values())
    if len(draft.names.of(fourth.name, legacy.scope)) <= 1:
        taken -= {fourth.name}
    trace = next((name for name in _TRACE_NAMES if name not in taken), "_unusedTrace")
    inputs = wanted.get(second.name) or next(
        (name for name in ("inputs", "_inputs", "inputs_") if name not in taken), "_allInputs"
    )
    reads_all = any(use.name == "arguments" for use in draft.names.within(legacy.scope))
    needs_inputs = (
        reads_all or second.is_plain or not fourth.is_plain or len(draft.names.of(fourth.name, legacy.scope)) > 1
    )
    return NewNames(inputs if needs_inputs else second.name, wanted.get(third.name, third.name), trace)


def _jsdoc(draft: Draft, legacy: Legacy) -> None:
    """Add a remark if the comment above the function mentions removed parameters."""
    node = legacy.node
    while node.parent is not None and node.parent.type not in ("program", "object", "class_body"):
        node = node.parent
    above = node.prev_named_sibling
    if above is None or above.type != "comment":
        return
    gone = [legacy.parameters[0].name, legacy.parameters[3].name]
    named = [name for name in gone if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text(above))]
    if named:
        draft.left(above, f"the comment still mentions {' and '.join(named)}")


def rewrite_signature(draft: Draft, legacy: Legacy, names: NewNames) -> list[str]:
    """Give the function the new parameters. Return statements that destructure the inputs as the old parameter did."""
    first, second, third, fourth = legacy.parameters
    comma = _COMMA.match(draft.source, first.node.end_byte)
    end = comma.end() if comma is not None else second.node.start_byte
    draft.edits.replace(first.node.start_byte, min(end, second.node.start_byte))
    if third.is_plain and third.name != names.outputs:
        draft.edits.replace_node(third.pattern, names.outputs)
    needed = fourth.is_plain is False or bool(len(draft.names.of(fourth.name, legacy.scope)) > 1)
    taken_apart: list[str] = []
    if second.name != names.inputs:
        draft.edits.replace_node(second.pattern, names.inputs)
        if not second.is_plain:
            taken_apart.append(f"const {second.name} = {names.inputs}")
    if needed and not draft.whole_row:
        _widen(draft, second, fourth)
    draft.edits.replace_node(fourth.node, names.trace + _annotation(legacy))
    draft.drop_comment_behind(fourth.node)
    _remark_type(draft, legacy)
    old = ", ".join(one.name for one in legacy.parameters)
    draft.did(legacy.node, f"({old}) became ({names.inputs}, {names.outputs}, {names.trace})")
    return taken_apart


def _annotation(legacy: Legacy) -> str:
    second, third = legacy.parameters[1:3]
    optional = any(one.node.type == "optional_parameter" for one in (second, third))
    typed = any(one.annotation is not None for one in legacy.parameters)
    return ("?" if optional and typed else "") + (f": {_ANY}" if typed else "")


def _widen(draft: Draft, second: Parameter, fourth: Parameter) -> None:
    """Add the ground truth to the type of the inputs."""
    if second.annotation is None:
        return
    node = second.annotation.named_children[0]
    type_, wanted = text(node), _type(fourth)
    if type_ in ("any", _ANY):
        return
    record = _RECORD.fullmatch(type_)
    if record is not None or type_ in ("unknown", "object", "{}"):
        if record is None or record[1].strip() not in (wanted, "any"):
            draft.edits.replace_node(node, _ANY)
        return
    key = property_key(draft, draft.wish.key)
    members = code_children(node)
    if node.type != "object_type":
        draft.edits.replace_node(node, f"{type_} & {{ {key}: {wanted} }}")
    elif not any(text(child(one, "name") or one).strip("'\"") == draft.wish.key for one in members):
        mark = "," if text(node).count(",") > text(node).count(";") else ";"
        draft.edits.insert(members[-1].end_byte, f"{mark} {key}: {wanted}")


def _type(parameter: Parameter) -> str:
    return text(parameter.annotation.named_children[0]) if parameter.annotation is not None else "any"


def _remark_type(draft: Draft, legacy: Legacy) -> None:
    around = legacy.node.parent
    declared = child(around, "type") if around is not None and around.type == "variable_declarator" else None
    if declared is not None:
        draft.left(declared, f"{text(declared).lstrip(': ')[:60]} still describes the four parameters")


def _calls(draft: Draft, legacy: Legacy) -> Iterator[Use]:
    """Yield the uses of the function's names. All of them must be calls."""
    for name in legacy.names:
        for use in draft.names.of(name, draft.names.module):
            around = use.node.parent
            member = around is not None and around.type == "member_expression" and member_name(around) not in _CALLERS
            if not member and not _is_offered(use):  # a read such as `evaluate.name` is not a call
                yield use


def _is_offered(use: Use) -> bool:
    """Return whether the module exports the function as its entry, or under another name."""
    around = use.node.parent
    if around is None or use.scope.kind != "module":
        return False
    if around.type in ("export_specifier", "export_statement", "variable_declarator"):
        return True
    if around.type == "assignment_expression":
        return child(around, "right") == use.node
    outer = around if around.type == "object" else around.parent
    above = outer.parent if outer is not None else None
    return outer is not None and outer.type == "object" and above is not None and above.type == "assignment_expression"

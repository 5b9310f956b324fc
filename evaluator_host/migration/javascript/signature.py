"""The parameter list of a JavaScript or TypeScript evaluator, and the types in it."""

import re
from typing import Final

from evaluator_host.migration.draft import Draft, NewNames
from evaluator_host.migration.javascript.entry import Legacy, Parameter
from evaluator_host.migration.javascript.text import property_key
from evaluator_host.migration.syntax import child, code_children, text

_COMMA: Final = re.compile(rb"\s*,[ \t]*(?://[^\n]*|/\*[^\n]*?\*/[ \t]*)?(?:\n[ \t]*)?")
_RECORD: Final = re.compile(r"Record<\s*string\s*,\s*(.*)>", re.DOTALL)
_ANY: Final = "Record<string, any>"


def rewrite_signature(draft: Draft, legacy: Legacy, names: NewNames) -> list[str]:
    """Give the function the new parameters; returns statements for a pattern that the inputs were taken apart by."""
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
    """Let the type of the inputs have the ground truth."""
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

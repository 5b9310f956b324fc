"""The parameter list of a Python evaluator: the first goes, two take their new names, the fourth becomes the trace."""

import re
from typing import Final

from evaluator_host.migration.draft import Draft, NewNames
from evaluator_host.migration.python.entry import Legacy, Parameter
from evaluator_host.migration.syntax import text

_COMMA: Final = re.compile(rb"\s*,(?:\s*/\s*,)?[ \t]*(?:#[^\n]*)?(?:\n[ \t]*)?")
_MAPPING: Final = re.compile(r"(typing\.|t\.)?(Dict|dict|Mapping)\b")


def rewrite_signature(draft: Draft, legacy: Legacy, names: NewNames) -> None:
    """Give the function the new parameters, in the layout that it has."""
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
    """Return the trace's annotation, for a function that has any."""
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

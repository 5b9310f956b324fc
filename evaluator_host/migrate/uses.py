"""Finds and renames the uses of the legacy function's parameters, for all languages."""

from collections.abc import Mapping
from typing import Final

from evaluator_host.migrate.draft import Draft, refuse
from evaluator_host.migrate.edits import Part
from evaluator_host.migrate.function import Legacy, Parameter
from evaluator_host.migrate.scopes import NameAccess, Use

_SHORTHANDS: Final = ("shorthand_property_identifier", "shorthand_property_identifier_pattern")


def uses_of(draft: Draft, legacy: Legacy, parameter: Parameter) -> list[Use]:
    """Return the uses of a parameter in the function, except in code that has already been removed."""
    found = draft.names.of(parameter.name, legacy.scope) if parameter.is_plain else []
    return [use for use in found if use.node != parameter.pattern and not draft.is_gone(use.node)]


def replace_use(draft: Draft, use: Use, *parts: Part) -> None:
    """Replace one use of a name. In a shorthand property, keep the key."""
    key = (f"{use.name}: ",) if use.node.type in _SHORTHANDS else ()
    draft.edits.replace_node(use.node, *key, *parts)


def rename_parameters(draft: Draft, legacy: Legacy, wanted: Mapping[str, str]) -> dict[str, str]:
    """Rename parameters where they are used. Return the resulting names.

    A parameter keeps its name if the new name means something else in the function.
    """
    names = dict(wanted)
    while (clashing := _clashing(draft, legacy, names)) is not None:
        names[clashing] = clashing
    own = [one.pattern for one in legacy.parameters]
    for old, new in names.items():
        for use in draft.names.of(old, legacy.scope) if old != new else ():
            if use.node not in own:
                replace_use(draft, use, new)
    return names


def _clashing(draft: Draft, legacy: Legacy, wanted: Mapping[str, str]) -> str | None:
    leaving = {use.node.id for old in wanted if wanted[old] != old for use in draft.names.of(old, legacy.scope)}
    for old, new in wanted.items():
        if old == new:
            continue
        clash = draft.names.clash(draft.names.of(old, legacy.scope), new, legacy.scope, leaving=leaving)
        if clash is not None:
            draft.did(clash.node, f"the parameter {old} keeps its name: {new} means something else here")
            return old
    return None


def require_seen(draft: Draft, legacy: Legacy, use: Use, inputs: str) -> None:
    """Check that a use can be replaced with a read of the inputs.

    Raises:
      Unreadable: the name of the inputs means something else at this place, or the use is an assignment.
    """
    if draft.names.is_hidden(inputs, use, legacy.scope):
        raise refuse(use.node, f"{use.name} is used where {inputs} is another variable; rename {inputs} there first")
    if use.access is not NameAccess.READ:
        raise refuse(use.node, f"{use.name} is assigned, so a read of {inputs} cannot replace it; rewrite it by hand")

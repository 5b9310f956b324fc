"""Rewrites JavaScript and TypeScript from `main(variables)` to `evaluate(inputs, outputs, trace)`, and back."""

from typing import Final

from evaluator_host.migrate.draft import Draft, Rewritten, refuse
from evaluator_host.migrate.edits import span
from evaluator_host.migrate.function import Legacy, Parameter
from evaluator_host.migrate.javascript.arguments import (
    is_called,
    is_member,
    is_written,
    member_name,
)
from evaluator_host.migrate.javascript.entry import locate, parameter_of
from evaluator_host.migrate.javascript.text import insert_first
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import Unreadable, child, code_children, text
from evaluator_host.migrate.uses import replace_use, uses_of

_OUTPUTS: Final = ("completion", "output", "outputs")
_ANY: Final = "Record<string, any>"
_IN_PLACE: Final = 2


def from_main(draft: Draft) -> Rewritten:
    """Rewrite a program's `main` as `evaluate`.

    Raises:
      Unreadable: the program cannot be rewritten safely; the message says why.
    """
    try:
        function = _function(draft, "main", others=("evaluate",))
    except Unreadable as error:
        missing = error.missing
        raise Unreadable(
            "the code defines no function evaluate" if missing else error.reason, error.line, missing=missing
        ) from error
    if len(function.parameters) != 1:
        raise refuse(
            function.node, "main must have one parameter, an object with the variables; give it this parameter first"
        )
    variables = function.parameters[0]
    for name in ("inputs", "outputs", "trace"):
        taken = [use for use in draft.names.within(function.scope) if use.name == name]
        if taken and variables.name != name:
            raise refuse(taken[0].node, f"the code itself uses the name {name}; rename it first")
    if not variables.is_plain:
        raise refuse(
            variables.node, "main destructures its parameter in the parameter list; give the parameter a name first"
        )
    columns: dict[str, None] = {}
    for use in uses_of(draft, function, variables):
        _from_variables(draft, use, columns)
    _set_parameters(draft, function, ["inputs", "outputs", "trace"], typed=variables.annotation is not None)
    _rename_function(draft, function, "main", "evaluate")
    draft.did(function.node, f"main({variables.name}) became evaluate(inputs, outputs, trace)")
    draft.origin, draft.columns = "main", tuple(columns)
    draft.parameters = ("", "", "completion", next(iter(columns), draft.wish.key))
    return draft.finish()


def to_main(draft: Draft) -> Rewritten:
    """Rewrite a program's `evaluate` as `main`.

    Raises:
      Unreadable: the program cannot be rewritten safely; the message says why.
    """
    try:
        function = _function(draft, "evaluate", others=("main",))
    except Unreadable as error:
        if error.missing and "main" in draft.names.module.bound:
            return Rewritten(None, current=True)
        raise
    if len(function.parameters) != 3 or not all(one.is_plain for one in function.parameters):
        raise refuse(
            function.node, "only evaluate(inputs, outputs, trace) can become main(); migrate the code to evaluate first"
        )
    inputs, outputs, trace = function.parameters
    for use in uses_of(draft, function, trace):
        raise refuse(use.node, f"main gets no trace, but {trace.name} is used here")
    for use in draft.names.within(function.scope):
        if use.name == "variables":
            raise refuse(use.node, "the code itself uses the name variables; rename it first")
    columns: dict[str, None] = {}
    for use in uses_of(draft, function, inputs):
        name = _member_read(use)
        if name is None or name in _OUTPUTS:
            raise refuse(use.node, "main gets columns by name, but this code does not read a column by its name")
        columns[name] = None
        draft.edits.replace_node(use.node, "variables")
    _read_completion(draft, function, outputs)
    typed = any(one.annotation is not None for one in function.parameters)
    _set_parameters(draft, function, ["variables"], typed=typed)
    _rename_function(draft, function, "evaluate", "main")
    draft.did(function.node, "evaluate(inputs, outputs, trace) became main(variables)")
    draft.origin, draft.columns = "evaluate", tuple(columns)
    draft.parameters = ("", inputs.name, outputs.name, draft.wish.key)
    return draft.finish()


def _read_completion(draft: Draft, function: Legacy, outputs: Parameter) -> None:
    """Make the function read the outputs from the variables: at each use, or once at the start."""
    uses = uses_of(draft, function, outputs)
    written = any(use.access is not NameAccess.READ for use in uses)
    if len(uses) <= _IN_PLACE and not written:
        for use in uses:
            replace_use(draft, use, "variables.completion")
        return
    if not function.has_statements:
        raise refuse(function.node, "the outputs are used more than once; give the function a body in braces")
    insert_first(draft, function.node, [f"{'let' if written else 'const'} {outputs.name} = variables.completion"])


def _function(draft: Draft, entry: str, *, others: tuple[str, ...]) -> Legacy:
    node, names = locate(draft, entry)
    if names != (entry,):
        raise refuse(node, f"the code declares {entry} under another name; rewrite it by hand")
    for other in others:
        if other in draft.names.module.bound:
            raise refuse(node, f"the code defines {other} too; rename or remove one of them")
    for use in draft.names.within(draft.names.scopes[node.id]):
        if use.name == "arguments" and draft.names.owner(use) is None:
            raise refuse(use.node, "the function reads its arguments by position; name them first")
    listing = child(node, "parameters")
    single = child(node, "parameter")
    found = [parameter_of(one) for one in code_children(listing)] if listing is not None else []
    if single is not None:
        found = [Parameter(single, single, None, None)]
    return Legacy(node, draft.names.scopes[node.id], tuple(found), names)


def _from_variables(draft: Draft, use: Use, columns: dict[str, None]) -> None:
    """Replace a variable with the outputs or with a column of the inputs."""
    name = _member_read(use)
    if name is not None and use.node.parent is not None:
        if name in _OUTPUTS:
            draft.edits.replace_node(use.node.parent, "outputs")
        else:
            columns[name] = None
            draft.edits.replace_node(use.node, "inputs")
        return
    declarator = use.node.parent
    pattern = child(declarator, "name") if declarator is not None and declarator.type == "variable_declarator" else None
    if declarator is None or pattern is None or pattern.type != "object_pattern":
        raise refuse(use.node, f"{use.name} is used as a whole; read each variable from it by name instead")
    said, kept = [], []
    for one in code_children(pattern):
        key, value = child(one, "key"), child(one, "value")
        if one.type == "shorthand_property_identifier_pattern":
            key = value = one
        if key is None or value is None or one.type == "rest_pattern":
            left = child(one, "left")
            if left is None:
                raise refuse(one, f"{use.name} is destructured with a rest pattern; name each variable instead")
            key = value = left
        if text(key) in _OUTPUTS:
            said.append(f"{text(value)} = outputs")
        else:
            columns[text(key)] = None
            kept.append(one)
    inner = ", ".join(text(one) for one in kept)
    parts = [*said, *([f"{{ {inner} }} = inputs"] if kept else [])]
    draft.edits.replace_node(declarator, ", ".join(parts))


def _member_read(use: Use) -> str | None:
    around = use.node.parent
    if use.access is not NameAccess.READ or around is None or not is_member(use):
        return None
    return None if is_written(around) or is_called(around) else member_name(around)


def _set_parameters(draft: Draft, function: Legacy, names: list[str], *, typed: bool) -> None:
    types = {"inputs": _ANY, "outputs": "any", "trace": _ANY, "variables": _ANY} if typed else {}
    if typed and names == ["inputs", "outputs", "trace"]:
        types |= _split_type(function.parameters[0])
    shown = ", ".join(f"{name}: {types[name]}" if name in types else name for name in names)
    listing = child(function.node, "parameters")
    if listing is not None:
        draft.edits.replace_node(listing, f"({shown})")
    else:
        single = function.parameters[0].node
        draft.edits.replace(*span(single), f"({shown})" if len(names) > 1 else shown)


def _split_type(variables: Parameter) -> dict[str, str]:
    """Split the object type of the `variables` parameter into types for `inputs` and `outputs`.

    Return {} if the parameter has no object type.
    """
    node = variables.annotation.named_children[0] if variables.annotation is not None else None
    if node is None or node.type != "object_type":
        return {}
    said, kept = "any", []
    for one in code_children(node):
        name, type_ = child(one, "name"), child(one, "type")
        if name is not None and text(name) in _OUTPUTS and type_ is not None:
            said = text(type_.named_children[0])
        else:
            kept.append(text(one))
    return {"outputs": said, **({"inputs": f"{{ {'; '.join(kept)} }}"} if kept else {})}


def _rename_function(draft: Draft, function: Legacy, old: str, new: str) -> None:
    """Rename the function, where it is declared and where it is exported.

    Raises:
      Unreadable: the program itself uses the function.
    """
    for use in draft.names.of(old, draft.names.module):
        around = use.node.parent
        kind = around.type if around is not None else ""
        declared = use.access is NameAccess.WRITE and kind in (function.node.type, "variable_declarator")
        offered = kind in ("export_specifier", "export_statement") or use.node.type == "shorthand_property_identifier"
        assigned = around is not None and kind == "assignment_expression" and child(around, "right") == use.node
        if not declared and not (use.scope.kind == "module" and (offered or assigned)):
            raise refuse(use.node, f"the code itself uses {old}; rewrite these uses by hand")
        if around is not None and kind == "export_specifier" and child(around, "alias") is not None:
            raise refuse(use.node, f"{old} is exported under another name; rewrite it by hand")
        draft.edits.replace_node(use.node, new)
        if assigned and around is not None:
            left = child(around, "left")
            member = child(left, "property") if left is not None and left.type == "member_expression" else None
            if member is not None and text(member) == old:
                draft.edits.replace_node(member, new)

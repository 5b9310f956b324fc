"""Rewrites Python from `main(completion, target)` to `evaluate(inputs, outputs, trace)`, and back."""

import keyword
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft, Rewritten, refuse
from evaluator_host.migrate.function import Legacy, Parameter
from evaluator_host.migrate.python.arguments import read_column
from evaluator_host.migrate.python.entry import parameter_of
from evaluator_host.migrate.python.imports import add_imports
from evaluator_host.migrate.python.text import insert_first, quoted
from evaluator_host.migrate.scopes import NameAccess, Use
from evaluator_host.migrate.syntax import Unreadable, child, code_children, text

_OUTPUTS: Final = ("completion", "output", "outputs")
_CONSTANTS: Final = frozenset(
    ("integer", "float", "string", "true", "false", "none", "unary_operator", "list", "dictionary")
)
_CHANGES: Final = ("assignment", "augmented_assignment", "delete_statement")
_TRACES: Final = ("trace", "_trace", "trace_", "_trace_")
_INPUTS: Final = ("inputs", "_inputs", "inputs_", "_inputs_")


def from_main(draft: Draft) -> Rewritten:
    """Rewrite a program's `main` as `evaluate`.

    Raises:
      Unreadable: the program cannot be rewritten safely; the message says why.
    """
    function = _function(draft, "main")
    said = next((one for one in function.parameters if one.name in _OUTPUTS), None)
    columns = [one for one in function.parameters if one is not said]
    taken = {use.name for use in draft.names.within(function.scope)}
    inputs, trace = _free_name(_INPUTS, taken), _free_name(_TRACES, taken)
    outputs = said.name if said is not None else _free_name(("outputs", "_outputs"), taken)
    if said is not None and said.name != "outputs":
        outputs = _renamed(draft, function, said, "outputs")
    draft.edits.replace_node(child(function.node, "name") or function.node, "evaluate")
    _new_parameters(draft, function, said, names=(inputs, outputs, trace))
    lines = []
    for column in columns:
        access = _access(draft, column, inputs)
        lines.append(read_column(draft, function, column, access=access, in_place=True))
    insert_first(draft, function.node, [line for line in lines if line is not None])
    add_imports(draft)
    draft.origin, draft.columns = "main", tuple(one.name for one in columns)
    truth = columns[0].name if columns else draft.wish.key
    draft.parameters = ("", "", said.name if said is not None else "outputs", truth)
    return draft.finish()


def to_main(draft: Draft) -> Rewritten:
    """Rewrite a program's `evaluate` as `main`.

    Raises:
      Unreadable: the program cannot be rewritten safely; the message says why.
    """
    if "evaluate" not in draft.names.module.bound and "main" in draft.names.module.bound:
        return Rewritten(None, current=True)
    function = _function(draft, "evaluate")
    if len(function.parameters) != 3:
        raise refuse(
            function.node, "only evaluate(inputs, outputs, trace) can become main(); migrate the code to evaluate first"
        )
    inputs, outputs, trace = function.parameters
    for use in _uses(draft, function, trace):
        raise refuse(use.node, f"main gets no trace, but {trace.name} is used here")
    defaults: dict[str, str | None] = {}
    for use in _uses(draft, function, inputs):
        _read_by_name(draft, function, use, defaults)
    said = outputs.name if outputs.name in _OUTPUTS else "completion"
    if outputs.name != said or outputs.name != "completion":
        said = _renamed(draft, function, outputs, "completion")
    if said not in _OUTPUTS:
        raise refuse(
            function.node, f"{outputs.name} cannot be renamed to completion: that name means something else here"
        )
    required = [name for name, default in defaults.items() if default is None]
    optional = [f"{name}={default}" for name, default in defaults.items() if default is not None]
    listing = child(function.node, "parameters")
    if listing is not None:
        draft.edits.replace_node(listing, f"({', '.join((said, *required, *optional))})")
    draft.edits.replace_node(child(function.node, "name") or function.node, "main")
    draft.did(function.node, f"evaluate became main({', '.join((said, *defaults))})")
    draft.origin, draft.columns = "evaluate", tuple(defaults)
    draft.parameters = ("", inputs.name, outputs.name, draft.wish.key)
    return draft.finish()


def _function(draft: Draft, name: str) -> Legacy:
    """Return the entry function, which must be a plain function that the program itself does not use."""
    uses = draft.names.of(name, draft.names.module)
    writes = [use for use in uses if use.access is NameAccess.WRITE]
    if not writes:
        raise Unreadable(f"the code defines no function {name}", missing=True)
    other = "evaluate" if name == "main" else "main"
    if other in draft.names.module.bound:
        raise refuse(writes[-1].node, f"the code defines {other} too; rename or remove one of them")
    node = writes[-1].node.parent
    if len(writes) > 1 or node is None or node.type != "function_definition":
        raise refuse(writes[-1].node, f"{name} is not a plain function; rewrite it by hand")
    if node.parent is not None and node.parent.type == "decorated_definition":
        raise refuse(node, f"{name} is decorated; rewrite it by hand")
    for use in uses:
        if use.access is not NameAccess.WRITE:
            raise refuse(use.node, f"the code itself uses {name}; rewrite these uses by hand")
    listing = child(node, "parameters")
    found = []
    for one in code_children(listing) if listing is not None else []:
        parameter = parameter_of(one)
        if parameter is not None:
            found.append(parameter)
        elif one.type not in ("positional_separator", "keyword_separator"):
            raise refuse(one, f"{text(one)} accepts any arguments; name the parameters first")
    return Legacy(node, draft.names.scopes[node.id], tuple(found))


def _uses(draft: Draft, function: Legacy, parameter: Parameter) -> list[Use]:
    return [use for use in draft.names.of(parameter.name, function.scope) if use.node != parameter.pattern]


def _free_name(names: tuple[str, ...], taken: set[str]) -> str:
    return next((name for name in names if name not in taken), names[-1] + "_")


def _renamed(draft: Draft, function: Legacy, parameter: Parameter, name: str) -> str:
    """Rename a parameter if the new name is free. Return the parameter's name afterwards."""
    uses = draft.names.of(parameter.name, function.scope)
    if draft.names.clash(uses, name, function.scope, leaving=set()) is not None:
        return parameter.name
    for use in uses:
        if use.node != parameter.pattern:
            draft.edits.replace_node(use.node, name)
    return name


def _access(draft: Draft, column: Parameter, inputs: str) -> str:
    key = quoted(draft, column.name)
    if column.default is None:
        return f"{inputs}[{key}]"
    if column.default.type not in _CONSTANTS:
        raise refuse(column.default, f"the default of {column.name} is computed; move it into the function first")
    value = text(column.default)
    return f"{inputs}.get({key})" if value == "None" else f"{inputs}.get({key}, {value})"


def _new_parameters(draft: Draft, function: Legacy, said: Parameter | None, *, names: tuple[str, str, str]) -> None:
    """Replace the parameters of a function with those of `evaluate`. Keep the layout of the source."""
    listing = child(function.node, "parameters")
    if listing is None:
        return
    annotated = any(one.annotation is not None for one in function.parameters)
    mapping = ": dict[str, Any]" if "Any" in draft.names.module.bound else ": dict"
    own = f": {text(said.annotation)}" if said is not None and said.annotation is not None else ""
    types = (mapping, own, mapping) if annotated else ("", "", "")
    found = [f"{name}{type_}" for name, type_ in zip(names, types, strict=True)]
    if listing.start_point[0] == listing.end_point[0]:
        draft.edits.replace_node(listing, f"({', '.join(found)})")
    else:
        first = function.parameters[0].node
        indent = draft.source[draft.source.rfind(b"\n", 0, first.start_byte) + 1 : first.start_byte].decode()
        end = draft.source[draft.source.rfind(b"\n", 0, listing.end_byte) + 1 : listing.end_byte - 1].decode()
        draft.edits.replace_node(listing, "(\n" + "".join(f"{indent}{one},\n" for one in found) + f"{end})")
    old = ", ".join(one.name for one in function.parameters)
    draft.did(function.node, f"main({old}) became evaluate({', '.join(names)})")


def _read_by_name(draft: Draft, function: Legacy, use: Use, defaults: dict[str, str | None]) -> None:
    """Replace one use of the inputs with a parameter of `main`.

    Raises:
      Unreadable: `use` reads no column, or the column's name or default does not fit a parameter.
    """
    read, key, default = _column(use)
    if key is None or read is None or not key.isidentifier() or keyword.iskeyword(key) or key in _OUTPUTS:
        raise refuse(
            use.node,
            "main gets columns as named parameters, but this code does not read a column whose name can be a parameter",
        )
    if key in defaults and defaults[key] != default:
        raise refuse(
            use.node, f"{key} is read with two different defaults, but a parameter of main has only one default"
        )
    own = _own_statement(read, key)
    others = [one for one in draft.names.within(function.scope) if one.name == key]
    if own is None and others:
        raise refuse(
            others[0].node,
            f"the code itself uses the name {key}, and in main it would mean the column; rename it first",
        )
    if own is not None:
        if len([one for one in others if one.access is not NameAccess.READ]) > 1:
            raise refuse(use.node, f"{key} is assigned other values too; use another name for them first")
        draft.edits.replace(*_whole_line(draft, own))
    else:
        draft.edits.replace_node(read, key)
    defaults[key] = default


def _column(use: Use) -> tuple[Node | None, str | None, str | None]:
    """Return the expression that reads a column, the column's name, and the source of its default; each may be None."""
    around = use.node.parent
    if around is None or use.access is not NameAccess.READ:
        return None, None, None
    if around.type == "subscript" and child(around, "value") == use.node:
        index, outer = child(around, "subscript"), around.parent
        changed = outer is not None and outer.type in _CHANGES and child(outer, "right") != around
        plain = index is not None and index.type == "string" and not changed
        return around, text(index)[1:-1] if plain and index is not None else None, None
    call = around.parent
    if around.type != "attribute" or text(around.named_children[-1]) != "get" or call is None or call.type != "call":
        return None, None, None
    listing = child(call, "arguments")
    arguments = code_children(listing) if listing is not None else []
    if not arguments or arguments[0].type != "string" or len(arguments) > 2:
        return None, None, None
    if len(arguments) == 2 and arguments[1].type not in _CONSTANTS - {"list", "dictionary"}:
        return None, None, None
    return call, text(arguments[0])[1:-1], text(arguments[1]) if len(arguments) == 2 else "None"


def _own_statement(read: Node, key: str) -> Node | None:
    """Return the statement `key = inputs["key"]` that contains this read at the function's top level.

    Return None if there is no such statement, or if the function has no other.
    """
    assignment = read.parent
    if assignment is None or assignment.type != "assignment" or child(assignment, "right") != read:
        return None
    left, statement = child(assignment, "left"), assignment.parent
    if left is None or text(left) != key or child(assignment, "type") is not None or statement is None:
        return None
    block = statement.parent
    function = block.parent if block is not None and block.type == "block" else None
    has_others = block is not None and len(code_children(block)) > 1
    return statement if has_others and function is not None and function.type == "function_definition" else None


def _whole_line(draft: Draft, statement: Node) -> tuple[int, int]:
    start = draft.source.rfind(b"\n", 0, statement.start_byte) + 1
    end = draft.source.find(b"\n", statement.end_byte)
    return start, len(draft.source) if end < 0 else end + 1

"""Finds a file's entries (evaluators), each with all that it needs, so that an import can store them one by one.

A slice is one entry, with all top-level statements that it refers to, directly or through other statements, in their
order. Only the names in the code decide this; nothing is run.
"""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evaluator_host.engine.packages.scripts import nodes_below, syntax_tree
from evaluator_host.types.evaluator import Language

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_ENTRIES: Final = 200  # maximum number of entries (evaluators) in a file that become slices
_SLICE_CHARACTERS: Final = 64 << 10
_LISTS: Final = frozenset({"evaluators", "scorers", "scores"})  # keyword arguments that list evaluators
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str  # source of the statement
    binds: frozenset[str]  # names that the statement defines
    uses: frozenset[str]  # names that occur in the statement
    entry: str = ""  # name of the function or class that the statement defines; empty for other statements
    imports: bool = False  # whether the statement is an import
    always: bool = False  # whether every slice contains the statement


def find_slices(code: str, language: str, most: int) -> list[dict[str, str]]:
    """Return `{"entry": name, "code"}` for each function or class.

    An entry that another entry calls is part of that entry, and is not returned itself.

    Args:
      code: The evaluator's source.
      language: `python`, `javascript` or `typescript`.
      most: Maximum number of slices to return.
    """
    python = language == Language.PYTHON
    statements = _python(code) if python else _scripts(code)
    binding = _bindings(statements)
    entries = [one for one, found in enumerate(statements) if found.entry and not found.entry.startswith("_")]
    closures = {statements[one].entry: _closure(one, statements, binding) for one in entries[:_MOST_ENTRIES]}
    parts = {
        name for name in closures for other, closure in closures.items() if other != name and binding[name] & closure
    }
    found = ({"entry": name, "code": _text(statements, closures[name])} for name in closures if name not in parts)
    return [one for one in found if len(one["code"]) <= _SLICE_CHARACTERS][:most]


def listed_elsewhere(code: str, language: str) -> list[str]:
    """Return the source of each listed evaluator that the code does not define, because it is imported or has no name.

    If this holds for all listed evaluators, return an empty list.
    """
    python = language == Language.PYTHON
    statements = _python(code) if python else _scripts(code)
    imported = {name for one in statements if one.imports for name in one.binds}
    listed = _python_lists(code) if python else _script_lists(code)
    found = [(text, name) for text, name in listed if name is None or name in imported]
    return list(dict.fromkeys(text for text, _ in found)) if len(found) < len(listed) else []


def _bindings(statements: list[_Statement]) -> dict[str, set[int]]:
    binding: dict[str, set[int]] = {}
    for one, statement in enumerate(statements):
        for name in statement.binds:
            binding.setdefault(name, set()).add(one)
    return binding


def _closure(first: int, statements: list[_Statement], binding: dict[str, set[int]]) -> set[int]:
    """Return the indexes of a statement and of the statements that it needs."""
    found: set[int] = set()
    left = [first]
    while left:
        one = left.pop()
        if one in found:
            continue
        found.add(one)
        for name in statements[one].uses:
            left.extend(binding.get(name, ()))
    more = (one for one, other in enumerate(statements) if other.always or _changes(other, found, binding))
    return found | set(more)


def _changes(statement: _Statement, found: set[int], binding: dict[str, set[int]]) -> bool:
    """Return whether a statement may change the slice's values: it uses only names of the slice, and defines none."""
    if statement.binds or not statement.uses:
        return False
    needed = [binding[name] for name in statement.uses if name in binding]
    return bool(needed) and all(positions <= found for positions in needed)


def _text(statements: list[_Statement], chosen: set[int]) -> str:
    text = ""
    before: _Statement | None = None
    for one in (statements[position] for position in sorted(chosen)):
        if before is not None:
            text += "\n\n" if before.entry or one.entry else "" if before.imports == one.imports else "\n"
        text += f"{one.text}\n"
        before = one
    return text


def _python_lists(code: str) -> list[tuple[str, str | None]]:
    """Return `(source, first name in it)` for each evaluator in a list; in `rules.exact()`, that name is `rules`."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lists = [one.value for one in nodes if isinstance(one, ast.keyword) and one.arg in _LISTS]
    elements = [one for found in lists if isinstance(found, ast.List) for one in found.elts]
    kept = (ast.Name, ast.Attribute, ast.Call, ast.Lambda)
    return [(ast.unparse(one), _first_name(one)) for one in elements if isinstance(one, kept)]


def _first_name(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


# Python


def _python(code: str) -> list[_Statement]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [_python_statement(node, lines) for node in tree.body if not _is_text(node)]


def _python_statement(node: ast.stmt, lines: list[str]) -> _Statement:
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
    last = node.end_lineno or node.lineno
    binds, uses = set[str](), set[str]()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            uses.add(inner.id)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
            uses.add(inner.value)  # an annotation in a string, or a name that is looked up in globals()
    for name in _bound(node):
        binds.add(name)
    return _Statement(
        "\n".join(lines[first - 1 : last]),
        frozenset(binds),
        frozenset(uses - binds) | frozenset(_updated(node)),
        entry=node.name if isinstance(node, _DEFINITIONS) else "",
        imports=isinstance(node, ast.Import | ast.ImportFrom),
        always=isinstance(node, ast.ImportFrom) and node.module == "__future__",
    )


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITIONS):
        yield node.name
        return
    left: list[ast.AST] = [node]
    while left:
        inner = left.pop()
        if isinstance(inner, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in inner.names)
        elif isinstance(inner, _DEFINITIONS):
            yield inner.name
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, ast.ExceptHandler) and inner.name:
            yield inner.name
        if not isinstance(inner, (*_DEFINITIONS, ast.Lambda)):
            left.extend(ast.iter_child_nodes(inner))


def _updated(node: ast.stmt) -> Iterator[str]:
    """Yield the names that an augmented assignment reads and binds."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


# JavaScript and TypeScript

_NAMES: Final = frozenset(
    {"identifier", "shorthand_property_identifier", "type_identifier", "shorthand_property_identifier_pattern"}
)
_FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "generator_function"})
_ENTRIES: Final = frozenset(
    {"function_declaration", "generator_function_declaration", "class_declaration", "abstract_class_declaration"}
)
_VARIABLES: Final = frozenset({"lexical_declaration", "variable_declaration"})
_DECLARED: Final = _ENTRIES | {"interface_declaration", "type_alias_declaration", "enum_declaration"}


def _scripts(code: str) -> list[_Statement]:
    root = syntax_tree(code).root_node
    return [] if root.has_error else [_script(node) for node in root.named_children if node.type != "comment"]


def _script_lists(code: str) -> list[tuple[str, str | None]]:
    """Return `(source, first name in it)` for each evaluator in a list; in `rules.exact()`, that name is `rules`."""
    found: list[tuple[str, str | None]] = []
    for pair in nodes_below(syntax_tree(code).root_node):
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if pair.type != "pair" or key is None or value is None or value.type != "array":
            continue
        if (key.text or b"").decode("utf-8", "replace").strip("\"'") in _LISTS:
            kept = {"identifier", "member_expression", "call_expression", *_FUNCTIONS}
            found += [(_node_text(one), _script_name(one)) for one in value.named_children if one.type in kept]
    return found


def _script_name(node: "Node") -> str | None:
    while node.type in {"member_expression", "call_expression"}:
        inner = node.child_by_field_name("object" if node.type == "member_expression" else "function")
        if inner is None:
            return None
        node = inner
    return _node_text(node) if node.type == "identifier" else None


def _node_text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "surrogatepass")


def _script(node: "Node") -> _Statement:
    declared = node
    if node.type == "export_statement":
        declared = node.child_by_field_name("declaration") or node
    binds = frozenset(_declared_names(declared))
    entry = next(iter(binds)) if len(binds) == 1 and _is_entry(declared) else ""
    return _Statement(
        (node.text or b"").decode("utf-8", "surrogatepass"),
        binds,
        frozenset(_names_in(node)) - binds,
        entry=entry,
        imports=node.type == "import_statement",
    )


def _declared_names(node: "Node") -> Iterator[str]:
    if node.type in _DECLARED:
        places = [node.child_by_field_name("name")]
    elif node.type in _VARIABLES:
        places = [one.child_by_field_name("name") for one in node.named_children if one.type == "variable_declarator"]
    elif node.type == "import_statement":
        places = [one for one in node.named_children if one.type == "import_clause"]
    else:
        return
    for place in places:
        if place is not None:
            yield from _names_in(place)


def _is_entry(node: "Node") -> bool:
    if node.type in _ENTRIES:
        return True
    if node.type not in _VARIABLES:
        return False
    values = (one.child_by_field_name("value") for one in node.named_children if one.type == "variable_declarator")
    return any(value is not None and value.type in _FUNCTIONS for value in values)


def _names_in(node: "Node") -> Iterator[str]:
    return ((one.text or b"").decode("utf-8", "surrogatepass") for one in nodes_below(node) if one.type in _NAMES)

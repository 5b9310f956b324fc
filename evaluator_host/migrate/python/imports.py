"""Adds imports of modules that the legacy contract let code use without an import."""

from collections.abc import Iterable
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft
from evaluator_host.migrate.python.text import docstring
from evaluator_host.migrate.scopes import NameAccess
from evaluator_host.migrate.syntax import text

PREBOUND: Final = frozenset(
    ("json", "re", "math", "random", "datetime", "statistics", "string", "collections", "itertools", "functools")
)
_IMPORTS: Final = ("import_statement", "import_from_statement")


def add_imports(draft: Draft, more: Iterable[str] = ()) -> None:
    """Import the modules in `more`, and the modules that the program uses and that the legacy contract provides."""
    missing: dict[str, Node | None] = {name: None for name in more if name not in draft.names.module.bound}
    for use in draft.names.uses:
        free = use.access is NameAccess.READ and draft.names.owner(use) is None and not draft.is_gone(use.node)
        if free and use.name in PREBOUND:
            missing.setdefault(use.name, use.node)
    if not missing:
        return
    for name in sorted(missing):
        why = "" if missing[name] is None else ": the old contract needed no import for it"
        draft.did(missing[name], f"import {name} was added{why}")
    statements = [one for one in draft.root.children if one.type in _IMPORTS]
    if statements:
        _among(draft, statements, sorted(missing))
    else:
        _at_top(draft, sorted(missing))


def _among(draft: Draft, statements: list[Node], names: list[str]) -> None:
    """Add imports among the existing ones, in alphabetical order, with plain imports first."""
    plain = [one for one in statements if one.type == "import_statement"]
    for name in names:
        after = next((one for one in plain if text(one).removeprefix("import ") > name), None)
        if after is None and plain:
            draft.edits.insert(plain[-1].end_byte, f"\nimport {name}")
        else:
            draft.edits.insert((after or statements[0]).start_byte, f"import {name}\n")


def _at_top(draft: Draft, names: list[str]) -> None:
    """Add imports after the module's first comments, its docstring and `from __future__`."""
    head: Node | None = None
    for one in draft.root.children:
        if one.type == "comment" or one.type == "future_import_statement" or _is_docstring(draft.root, one):
            head = one
        else:
            break
    lines = "".join(f"import {name}\n" for name in names)
    rest = next((one for one in draft.root.children if head is None or one.start_byte > head.start_byte), None)
    if rest is None:
        return
    if head is None or (head.type == "comment" and rest.start_point[0] == head.end_point[0] + 1):
        # a comment directly above the first statement belongs to that statement
        at = _comment_start(draft.root, rest)
        draft.edits.insert(at, f"{lines}{_gap(rest)}")
    else:
        draft.edits.insert(head.end_byte, f"\n\n{lines.rstrip()}")
        if rest.start_point[0] - head.end_point[0] < 2:
            draft.edits.insert(head.end_byte, "\n")


def _comment_start(root: Node, rest: Node) -> int:
    """Return where the comments directly above a statement begin."""
    start, row = rest.start_byte, rest.start_point[0]
    for one in reversed([one for one in root.children if one.end_byte <= rest.start_byte]):
        shebang = text(one).startswith("#!")
        if one.type != "comment" or one.end_point[0] != row - 1 or shebang or _is_script_block(one):
            break
        start, row = one.start_byte, one.start_point[0]
    return start


def _is_script_block(comment: Node) -> bool:
    return text(comment) == "# ///"


def _gap(rest: Node) -> str:
    return "\n\n" if rest.type in ("function_definition", "decorated_definition", "class_definition") else "\n"


def _is_docstring(root: Node, node: Node) -> bool:
    doc = docstring(root)
    return doc is not None and doc == node

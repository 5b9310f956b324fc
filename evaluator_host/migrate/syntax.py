"""Parses a program into a syntax tree. Refuses programs whose size or nesting could crash the parser."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import tree_sitter
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_typescript
from tree_sitter import Node

from evaluator_host.types.evaluator import Language

SOURCE_BYTES: Final = 256 * 1024  # maximum size of a source in bytes; a long evaluator has 20 KB
_TITLES: Final = {
    Language.PYTHON: "Python",
    Language.JAVASCRIPT: "JavaScript",
    Language.TYPESCRIPT: "TypeScript",
}
# maximum number of levels in a syntax tree; an expression that adds five hundred strings still fits
DEPTH: Final = 1000


class Unreadable(Exception):
    """The program cannot be parsed or rewritten; the message says why.

    Attributes:
      reason: Why the program cannot be parsed or rewritten.
      line: Line of the cause, from 1; None for the whole program.
      missing: Whether the program defines no function of that name, so that it may not be an evaluator.
    """

    def __init__(self, reason: str, line: int | None = None, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.missing = missing


def parse(source: bytes, language: Language) -> Node:
    """Return the root of a program's syntax tree.

    Raises:
      Unreadable: the program is too large, nested too deeply, or not valid in that language.
    """
    if len(source) > SOURCE_BYTES:
        raise Unreadable(f"the code is {len(source) >> 10} KB long; at most {SOURCE_BYTES >> 10} KB can be rewritten")
    root = tree_sitter.Parser(_grammar(language)).parse(source).root_node
    for node, depth in _outline(root):
        if depth > DEPTH:
            raise Unreadable(f"the code is nested more than {DEPTH} levels deep", _line(node))
        if node.is_error or node.is_missing:
            raise Unreadable(f"the code is not valid {_TITLES[language]}", _line(node))
    return root


def text(node: Node) -> str:
    """Return the source text of a syntax node."""
    return node.text.decode() if node.text else ""


def fields(node: Node, name: str) -> list[Node]:
    """Return the children of a syntax node under a field name."""
    return node.children_by_field_name(name)


def child(node: Node, name: str) -> Node | None:
    """Return the only child of a syntax node under a field name, or None."""
    return node.child_by_field_name(name)


def code_children(node: Node) -> list[Node]:
    """Return the named children of a syntax node, without comments."""
    return [one for one in node.named_children if one.type != "comment"]


def ancestors(node: Node) -> Iterator[Node]:
    """Yield the syntax nodes around a node, the nearest first."""
    around = node.parent
    while around is not None:
        yield around
        around = around.parent


def descendants(node: Node) -> Iterator[Node]:
    """Yield a syntax node and every node inside it, in source order."""
    left = [node]
    while left:
        one = left.pop()
        yield one
        left.extend(reversed(one.children))


def _line(node: Node) -> int:
    return int(node.start_point[0]) + 1


def _outline(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node and its depth, without recursion."""
    left = [(root, 0)]
    while left:
        node, depth = left.pop()
        yield node, depth
        left.extend((one, depth + 1) for one in reversed(node.children))


@lru_cache
def _grammar(language: Language) -> tree_sitter.Language:
    match language:
        case Language.PYTHON:
            return tree_sitter.Language(tree_sitter_python.language())
        case Language.JAVASCRIPT:
            return tree_sitter.Language(tree_sitter_javascript.language())
        case Language.TYPESCRIPT:
            return tree_sitter.Language(tree_sitter_typescript.language_typescript())


def returned_values(body: Node, inner: tuple[str, ...]) -> Iterator[Node]:
    """Yield the expressions that a function's body returns.

    Args:
      body: Syntax node of the function's body.
      inner: Types of syntax nodes to skip, because their returns do not belong to the function: functions and classes.
    """
    left = [body]
    while left:
        node = left.pop()
        if node.type in inner:
            continue
        if node.type == "return_statement" and node.named_children and node.named_children[0].type != "comment":
            yield node.named_children[0]
        left.extend(node.named_children)

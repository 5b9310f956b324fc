"""Writes JavaScript in the author's style: quotes, semicolons, statements at the start of a function."""

import json
import re
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.draft import Draft
from evaluator_host.migrate.syntax import child, code_children, text

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*")


def property_key(draft: Draft, key: str) -> str:
    """Format a property name as a key of an object literal, quoted if necessary."""
    return key if _IDENTIFIER.fullmatch(key) else quoted(draft, key)


def member(draft: Draft, owner: str, key: str) -> str:
    """Return the expression that reads a property of an object."""
    return f"{owner}.{key}" if _IDENTIFIER.fullmatch(key) else f"{owner}[{quoted(draft, key)}]"


def quoted(draft: Draft, value: str) -> str:
    """Return a string literal with the quotes that the author uses."""
    double = json.dumps(value, ensure_ascii=False)
    plain = value.isprintable() and not set(value) & {"'", '"', "\\"}
    return f"'{value}'" if plain and draft.source.count(b"'") > draft.source.count(b'"') else double


def semicolon(draft: Draft) -> str:
    """Return a semicolon if the author ends statements with one, else an empty string."""
    lines = [line.rstrip() for line in draft.source.splitlines()]
    ended = sum(line.endswith(b";") for line in lines)
    bare = sum(line.endswith((b")", b"'", b'"', b"]")) or line[-1:].isalnum() for line in lines)
    return ";" if ended >= bare else ""


def insert_first(draft: Draft, function: Node, lines: list[str]) -> None:
    """Insert statements at the start of a function's block, after its directives."""
    body = child(function, "body")
    if body is None or not lines:
        return
    end = semicolon(draft)
    statements = code_children(body)
    directives = [
        one for one in statements if one.type == "expression_statement" and one.named_children[0].type == "string"
    ]
    after = [one for one in statements if one not in directives]
    if not after:
        return
    start = directives[-1].end_byte if directives else body.start_byte + 1
    line_end = draft.source.find(b"\n", start)
    if line_end < 0 or line_end > after[0].start_byte:
        draft.edits.insert(after[0].start_byte, "".join(f"{line}; " for line in lines))
        return
    first = after[0].start_byte
    line_start = draft.source.rfind(b"\n", 0, first) + 1
    indent = draft.source[line_start:first].decode()
    indent = indent[: len(indent) - len(indent.lstrip())]
    at = line_end + 1
    while not draft.source[at : draft.source.find(b"\n", at)].strip():
        at = draft.source.find(b"\n", at) + 1
    draft.edits.insert(at, "".join(f"{indent}{line}{end}\n" for line in lines))


def line_of(node: Node) -> str:
    """Return the source text of a syntax node on one line, for messages."""
    return " ".join(text(node).split())[:60]

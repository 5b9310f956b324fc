"""Reads code whose indentation is lost as a list of statements, and finds the names that each binds and uses."""

from __future__ import annotations

import ast
import io
import re
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_CHARS = 32_768
_MOST = 2000
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_KEYWORD = re.compile(r"[A-Za-z_]\w*")
_KINDS = {
    "if": "if", "for": "loop", "while": "loop", "try": "try", "with": "with", "def": "def", "class": "class",
    "match": "match", "elif": "elif", "else": "else", "except": "except", "finally": "finally", "case": "case",
}  # fmt: skip
CLAUSES = frozenset({"elif", "else", "except", "finally"})
_BEFORE = {
    "elif": "if 0:\n pass\n", "else": "if 0:\n pass\n", "except": "try:\n pass\n", "finally": "try:\n pass\n",
    "case": "match 0:\n ",
}  # fmt: skip


class NotRead(Exception):
    """The code is not a list of unindented statements: a statement is indented, or cannot be parsed on its own."""


class Statement:
    """A statement, or the first line of a compound statement.

    Decorators belong to the function or class that they decorate.

    Attributes:
      first: Index of its first line, from 0.
      last: Index of its last line.
      kind: `simple`, or for a compound statement `if`, `loop`, `try`, `with`, `def`, `class`, `match`, `elif`, `else`,
        `except`, `finally`, `case`.
      opens: Whether a block has to follow.
      node: Its syntax tree; for a clause such as `else`, the tree of a whole statement around it.
      loads: Names that it uses when it is executed.
      stores: Names that it binds.
      parameters: For a function, the names of its parameters.
      end: `return`, `raise`, `continue` or `break` if nothing can follow the statement in its block; for a compound
        statement in one line, this tells how its body ends.
      returns_value: Whether it returns a value.
      returns: Whether it has a `return`.
      yields: Whether it makes its function a generator.
      awaits: Whether it is only allowed in an async function.
      endless: Whether it is a `while True`, a `with` that may swallow exceptions, or a `case` that matches everything.
    """

    def __init__(self, first: int, last: int, text: str, head: str, *, opens: bool) -> None:
        self.first, self.last, self.opens = first, last, opens
        word = _KEYWORD.match(head)
        keyword = word[0] if word else ""
        if keyword == "async":
            keyword = head.split()[1] if len(head.split()) > 1 else ""
        self.kind = _KINDS.get(keyword, "simple")
        if self.kind in ("match", "case") and not opens and not _inline(text, self.kind):
            self.kind = "simple"
        nodes = _parsed(text, self.kind, opens=opens)
        self.node: ast.AST = nodes[0]
        own = [] if opens or self.kind in ("def", "class") else _own_body(nodes, self.kind)
        last_one = own[-1] if own else None
        self.end = type(last_one).__name__.lower() if isinstance(last_one, _ENDS) else None
        returned = [one for one in own if isinstance(one, ast.Return)]
        self.returns = bool(returned)
        self.returns_value = any(one.value is not None for one in returned)
        self.endless = opens and _is_endless(self.node)
        names = _Names()
        for node in nodes:
            names.visit(node)
        self.loads = frozenset(names.loads - names.inner)
        self.stores = frozenset(names.stores)
        self.parameters = frozenset(names.parameters)
        self.yields, self.awaits = names.yields, names.awaits

    @property
    def is_docstring(self) -> bool:
        """Return whether the statement is only a string."""
        node = self.node
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

    @property
    def is_method(self) -> bool:
        """Return whether the statement is a function that only makes sense in a class."""
        if not isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        first = [*self.node.args.posonlyargs, *self.node.args.args][:1]
        decorators = {one.id for one in self.node.decorator_list if isinstance(one, ast.Name)}
        return any(one.arg in ("self", "cls", "mcs") for one in first) or "staticmethod" in decorators


def _is_endless(node: ast.AST) -> bool:
    match node:
        case ast.While(test=ast.Constant(value=value)):
            return bool(value)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return any(word in ast.unparse(items[0].context_expr).lower() for word in ("suppress", "raises"))
        case ast.Match(cases=[case]):
            return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
        case _:
            return False


class _Names(ast.NodeVisitor):
    """Collects the names that a statement uses and binds, except those inside its lambdas and comprehensions."""

    def __init__(self) -> None:
        self.loads: set[str] = set()
        self.stores: set[str] = set()
        self.inner: set[str] = set()
        self.parameters: set[str] = set()
        self.yields = self.awaits = False

    def visit_Name(self, node: ast.Name) -> None:
        (self.loads if isinstance(node.ctx, ast.Load) else self.stores).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.loads.add(node.target.id)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        self.yields = True
        self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self.yields = True
        self.generic_visit(node)

    def visit_Await(self, node: ast.Await) -> None:
        self.awaits = True
        self.generic_visit(node)

    def visit_AsyncFor(self, node: ast.AsyncFor | ast.AsyncWith) -> None:
        self.awaits = True
        self.generic_visit(node)

    visit_AsyncWith = visit_AsyncFor  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.inner.update(arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.inner.update(name.id for name in ast.walk(node.target) if isinstance(name, ast.Name))
        self.visit(node.iter)
        for test in node.ifs:
            self.visit(test)

    def visit_alias(self, node: ast.alias) -> None:
        self.stores.add((node.asname or node.name).partition(".")[0])

    def visit_Global(self, node: ast.Global) -> None:
        self.stores.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.stores.update(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.stores.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.stores.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.stores.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.stores.add(node.rest)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.stores.add(node.name)
        self.parameters.update(arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg))
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        inside = _Names()
        for one in node.body:
            inside.visit(one)
        self.inner |= inside.stores
        self.loads |= inside.loads

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.stores.add(node.name)
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.visit(part)


def read_statements(code: str) -> list[Statement]:
    """Return the statements of code in which no statement is indented.

    Raises:
      NotRead: a statement is indented, or does not parse alone.
    """
    if len(code) > MOST_CHARS:
        raise NotRead
    lines = code.split("\n")
    try:
        spans = list(_joined(_spans(code)))
        if len(spans) > _MOST:
            raise NotRead
        return [
            Statement(first, last, "\n".join(lines[first : last + 1]), head, opens=opens)
            for first, last, head, opens in spans
        ]
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError) as error:
        raise NotRead from error


def _spans(code: str) -> Iterator[tuple[int, int, str, bool]]:
    """For each logical line, yield its first and last line number, its first line, and whether it ends in a colon."""
    first: int | None = None
    last, head, before = 0, "", ""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER):
            continue
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            raise NotRead
        if token.type == tokenize.NEWLINE:
            if first is not None:
                yield first, last, head, before == ":"
            first = None
            continue
        if first is None:
            first, head = token.start[0] - 1, token.line
            if token.start[1] != 0:
                raise NotRead
        last, before = token.end[0] - 1, token.string


def _joined(spans: Iterable[tuple[int, int, str, bool]]) -> Iterator[tuple[int, int, str, bool]]:
    """Join decorators with the functions and classes that they decorate."""
    start: int | None = None
    for first, last, head, opens in spans:
        if head.startswith("@"):
            start = first if start is None else start
            continue
        yield (first if start is None else start), last, head, opens
        start = None
    if start is not None:
        raise NotRead


def _inline(text: str, kind: str) -> bool:
    if kind == "match":
        return False
    try:
        ast.parse(_BEFORE["case"] + text)
    except SyntaxError:
        return False
    return True


def _parsed(text: str, kind: str, *, opens: bool) -> list[ast.stmt]:
    if opens and kind == "simple":
        raise NotRead
    before = _BEFORE.get(kind, "")
    body = "\n  pass" if opens else ""
    if kind == "match":
        body = "\n case 0:\n  pass"
    if kind == "try":
        body += "\nfinally:\n pass"
    nodes = ast.parse(before + text + body).body
    if not nodes:
        raise NotRead
    return nodes


def _own_body(nodes: list[ast.stmt], kind: str) -> list[ast.stmt]:
    """Return the statements that a statement's own line executes: the statement itself, or the body after the colon."""
    match nodes[0], kind:
        case _, "simple":
            return nodes
        case ast.If(orelse=[ast.If(body=body)]), "elif":
            return body
        case ast.If(orelse=body), "else":
            return body
        case ast.Try(handlers=[ast.ExceptHandler(body=body)]) | ast.TryStar(
            handlers=[ast.ExceptHandler(body=body)]
        ), "except":
            return body
        case ast.Try(finalbody=body), "finally":
            return body
        case ast.Match(cases=[case]), _:
            return case.body
        case _:
            return list(getattr(nodes[0], "body", ()))

"""Compiles code under the restricted policy.

This module extends RestrictedPython to the syntax of ordinary evaluators.
"""

from __future__ import annotations

import ast

from RestrictedPython.transformer import ALLOWED_FUNC_NAMES, RestrictingNodeTransformer

from evaluator_runner import guards
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_METHODS = ALLOWED_FUNC_NAMES | {
    *("__abs__", "__add__", "__bool__", "__call__", "__enter__", "__exit__", "__float__", "__getitem__", "__hash__"),
    *("__int__", "__iter__", "__len__", "__mul__", "__neg__", "__next__", "__post_init__", "__repr__", "__setitem__"),
    *("__str__", "__sub__", "__truediv__"),
}
_BUILTIN_PATTERNS = frozenset(
    ("bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple")
)


def compile_code(code: str, packages: list[str]) -> tuple[CodeType, dict[str, Any]]:
    """Compile code under the policy; return the compiled code and the globals that it needs.

    Raises:
      Failure: the code does something that the policy forbids.
      SyntaxError: the code is not Python.
    """
    tree = ast.parse(code, FILENAME)
    policy = _Policy(tree)
    policy.visit(tree)
    if policy.found:
        line, column, message = min(policy.found)
        raise Failure(
            "policy_violation",
            message,
            line=line or None,
            column=column or None,
            hint="write the evaluator without it, or set policy to none",
        )
    ast.fix_missing_locations(tree)
    return compile(tree, FILENAME, "exec", dont_inherit=True), guards.namespace(packages)


class _Policy(RestrictingNodeTransformer):
    """RestrictedPython's transformer, changed to allow more syntax. For this syntax, it is enough to check names."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__()
        self._bound = _bound_names(tree)
        self._own_classes = _own_classes(tree, self._bound)
        self.found: list[tuple[int, int, str]] = []

    def error(self, node: ast.AST, info: str) -> None:
        self.found.append((getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1, info))

    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:  # noqa: FBT001, FBT002
        if allow_magic_methods and name in _METHODS and node.col_offset != 0:
            return
        super().check_name(node, name, allow_magic_methods)

    def visit_Name(self, node: ast.Name) -> Any:  # noqa: N802
        if node.id == "print" and isinstance(node.ctx, ast.Load):
            return node  # `print` is not rewritten: output goes to the log, as for any other evaluator
        if node.id == "__name__" and isinstance(node.ctx, ast.Load):
            return node
        return super().visit_Name(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802
        if node.attr in _METHODS and _is_super(node.value):
            return self.node_contents_visit(node)
        return super().visit_Attribute(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:  # noqa: N802
        self.check_name(node, node.name)
        if any(keyword.arg == "metaclass" for keyword in node.keywords):
            self.error(node, "a metaclass is not allowed")
        return self.node_contents_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:  # noqa: N802
        if isinstance(node.target, ast.Name):
            return super().visit_AugAssign(node)
        return self.node_contents_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:  # noqa: N802
        self.check_name(node, node.name, allow_magic_methods=True)
        self.check_function_argument_names(node)
        return self.node_contents_visit(node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:  # noqa: N802
        return self._checked(node, *node.names)

    def visit_MatchAs(self, node: ast.MatchAs) -> Any:  # noqa: N802
        return self._checked(node, node.name)

    def visit_MatchStar(self, node: ast.MatchStar) -> Any:  # noqa: N802
        return self._checked(node, node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Any:  # noqa: N802
        return self._checked(node, node.rest)

    def visit_MatchClass(self, node: ast.MatchClass) -> Any:  # noqa: N802
        """Check a class pattern.

        Such a pattern reads attributes without guards, so the code itself must define the class.
        """
        for name in node.kwd_attrs:
            if name.startswith("_") or name in guards.INSPECTED:
                self.error(node, f'"{name}" is an attribute that the policy does not allow')
        matched = node.cls.id if isinstance(node.cls, ast.Name) else ""
        captures = matched in _BUILTIN_PATTERNS and matched not in self._bound and len(node.patterns) == 1
        plain = captures and not node.kwd_attrs
        if (node.patterns or node.kwd_attrs) and not plain and matched not in self._own_classes:
            self.error(node, "a class pattern with attributes needs a class of this code; read the attributes instead")
        return self.node_contents_visit(node)

    def _checked(self, node: Any, *names: str | None) -> Any:
        for name in names:
            self.check_name(node, name)
        return self.node_contents_visit(node)

    def _plain(self, node: ast.AST) -> Any:
        return self.node_contents_visit(node)

    visit_AnnAssign = _plain  # noqa: N815
    visit_Await = _plain  # noqa: N815
    visit_AsyncFor = _plain  # noqa: N815
    visit_AsyncWith = _plain  # noqa: N815
    visit_Match = _plain  # noqa: N815
    visit_match_case = _plain
    visit_MatchValue = _plain  # noqa: N815
    visit_MatchSingleton = _plain  # noqa: N815
    visit_MatchSequence = _plain  # noqa: N815
    visit_MatchOr = _plain  # noqa: N815


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args


def _bound_names(tree: ast.Module) -> dict[str, int]:
    """Return how often code binds each name."""
    bound: dict[str, int] = {}
    for node in ast.walk(tree):
        name: str | None = None
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name) | ast.MatchMapping(rest=name):
                pass
            case ast.alias():
                name = node.asname or node.name.partition(".")[0]
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.ExceptHandler(name=name)
                | ast.MatchAs(name=name)
                | ast.MatchStar(name=name)
            ):
                pass
            case _:
                pass
        if name is not None:
            bound[name] = bound.get(name, 0) + 1
    return bound


def _own_classes(tree: ast.Module, bound: dict[str, int]) -> set[str]:
    """Return the names of the code's plain classes: neither a module nor a class can be an instance of these.

    A plain class is bound once, and has no base class and no decorator except `dataclass`.
    """
    own = {"object"} - bound.keys()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and bound[node.name] == 1 and not node.keywords:
            bases = all(isinstance(base, ast.Name) and base.id in own for base in node.bases)
            if bases and all(_is_dataclass(decorator, tree, bound) for decorator in node.decorator_list):
                own.add(node.name)
    return own - {"object"}


def _is_dataclass(decorator: ast.expr, tree: ast.Module, bound: dict[str, int]) -> bool:
    called = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
    imported = {
        "dataclass" if isinstance(node, ast.ImportFrom) else "dataclasses.dataclass"
        for node in ast.walk(tree)
        for alias in getattr(node, "names", ())
        if (isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and _plain(alias) == "dataclass")
        or (isinstance(node, ast.Import) and _plain(alias) == "dataclasses")
    }
    return called in imported and bound[called.partition(".")[0]] == 1


def _plain(alias: ast.alias | str) -> str:
    return alias.name if isinstance(alias, ast.alias) and alias.asname is None else ""

"""Runs a file statement by statement if it imports well-known packages that are not installed (see `later`)."""

from __future__ import annotations

import sys

from evaluator_runner import absent, imports, interpreter_hooks, later
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.slices import Slices
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.slices import Statement

# the interpreter's message for a relative import in code that is in no package
_PLACELESS = "attempted relative import with no known parent package"
_FUTURE = 0x1FE0000  # flags of `__future__` imports


def whole_of(code: str, flags: int, known: dict[str, str]) -> Whole | None:
    """Return the code as a file to run statement by statement, or None if no well-known package is missing.

    Args:
      code: The source.
      flags: Flags of the compiler.
      known: Distributions of well-known packages, by module.
    """
    tree = later.parsed(code)
    try:
        modules = {module for module, _, _ in imports.imports_in(tree, "")}
        packages = later.Known(known)
        wanted = [one for one in modules if packages.may_stand_in(one)]
        is_relative = any(getattr(node, "level", 0) for node in getattr(tree, "body", ()))
        return Whole(tree, flags) if is_relative or not all(imports.is_provided(one) for one in wanted) else None
    except RecursionError:
        return None


class Whole:
    """A file whose statements run one by one, because it imports well-known packages that are not installed.

    If a statement fails because such a package is missing, the other statements still run. The names that the failed
    statement defines are then missing.

    Args:
      tree: The file's syntax tree.
      flags: Flags of the compiler, from the `__future__` imports in the file.
    """

    def __init__(self, tree: Any, flags: int) -> None:
        self._tree = tree
        self._slices = Slices(tree)
        self._flags = flags
        self._stopped: dict[int, BaseException] = {}  # error of each failed statement, by the statement's position

    def run(self, namespace: dict[str, Any]) -> None:
        """Run the statements in the namespace."""
        for at, node in enumerate(self._tree.body):
            if at and type(node).__name__ == "Expr" and type(node.value).__name__ == "Constant":
                # skip strings: a string that runs as a statement of its own would become the module's docstring
                continue
            try:
                interpreter_hooks.call(exec, (self._compiled(node), namespace))
            except Exception as raised:
                if _is_placeless(node, raised):
                    namespace.update(later.stand_in_relative(node))
                    continue
                if type(node).__name__ in {"Import", "ImportFrom"} or not self._needs_absent(node):
                    raise
                self._stopped[id(node)] = raised
                absent.forget(node)

    def require(self, names: list[str], namespace: dict[str, Any]) -> None:
        """Raise the error of a failed import or statement that one of these names needs.

        Errors about missing files of the author come first, because no pin can provide such files. All these files are
        recorded, so that the author can send them together.
        """
        needed = list(self._slices.needed_by(names))
        for one in sorted(needed, key=lambda one: not (_is_absent(one) and later.is_own(one.module))):
            if id(one.node) in self._stopped:
                raise self._stopped[id(one.node)]
            if self._stops_load(one):
                for other in needed:
                    if other.node.lineno and self._stops_load(other) and later.is_own(other.module):
                        absent.record_own(other.module, other.node.lineno)
                later.stop()
                interpreter_hooks.call(exec, (self._compiled(one.node), namespace))
                raise ImportError(f"No module named {one.module!r}", name=one.module)

    def lacks(self, name: str) -> str | None:
        """Return why the entry with this name cannot be called, as text for people, or None if it can be called."""
        for one in self._slices.needed_by([name]):
            if id(one.node) in self._stopped:
                return str(self._stopped[id(one.node)])
            if self._stops_load(one):
                return f"No module named {one.module!r}"
        return None

    def require_hidden(self, namespace: dict[str, Any]) -> None:
        """Raise the import error of an absent decorator that has replaced a function or class of the code."""
        for one in self._slices.statements:
            stopped = id(one.node) in self._stopped or any(
                later.is_placeholder(namespace.get(name)) for name in one.binds
            )
            if one.defines and stopped:
                self.require(list(one.binds), namespace)

    def _stops_load(self, one: Statement) -> bool:
        """Return whether a statement is an import of an absent module without which the code cannot run."""
        if not _is_absent(one) or later.is_client(one.module) or not later.is_well_known(one.module):
            return False
        return not later.is_own(one.module) or not self._only_registers(one)

    def _only_registers(self, one: Statement) -> bool:
        """Return whether the code uses what an import binds only in decorators that register a function."""
        left = [(node, False) for node in self._tree.body if node is not one.node]
        count = 0
        while left:
            node, registering = left.pop()
            if type(node).__name__ == "Name" and node.id in one.binds:
                count += 1
                if not registering:
                    return False
            decorators = [id(part) for part in getattr(node, "decorator_list", ()) if _registers(part)]
            left += [(part, registering or id(part) in decorators) for part in imports.children(node)]
        return count > 0

    def _compiled(self, node: Any) -> Any:
        return compile(type(self._tree)([node], []), FILENAME, "exec", self._flags & _FUTURE, dont_inherit=True)

    def _needs_absent(self, node: Any) -> bool:
        own = [one for one in self._slices.statements if one.node is node]
        return any(_is_absent(one) for top in own for one in self._slices.needed_to_run(top))


def _is_placeless(node: Any, raised: BaseException) -> bool:
    """Return whether a statement failed because of a relative import in code that is in no package."""
    is_relative = type(node).__name__ == "ImportFrom" and node.level and node.names[0].name != "*"
    return is_relative and type(raised) is ImportError and raised.args[:1] == (_PLACELESS,)


def _is_absent(one: Statement) -> bool:
    """Return whether a statement imports a module that is absent and was replaced with a placeholder."""
    return bool(one.module) and later.is_stand_in(sys.modules.get(one.module))


def _registers(decorator: Any) -> bool:
    named = getattr(decorator, "func", decorator)
    return later.registers(str(getattr(named, "attr", "") or getattr(named, "id", "")))

"""Records an evaluator's failed imports, including those that the code catches, so that the host learns of them.

A last import finder gets every import that no other finder resolves. This finder records only imports in the
evaluator's own code, not those in packages, and skips an import if the code binds another module to the same name.
"""

from __future__ import annotations

import sys

from evaluator_runner import imports, jsontext, tracebacks
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_ONLY_AST = 0x400
_MOST = 20
_RECORDED = 200
_FRAMES = 50
_NAME_CHARS = 200
_LOADING = ("create_module", "exec_module")
_IMPORTING = {"__import__", "find_spec", "import_module"}
_frame = sys._getframe  # noqa: SLF001 - the public functions make a list of all frames
_standard = sys.stdlib_module_names

_own: dict[str, str] = {}
_packages: dict[str, str] = {}


class Asked:
    """Where and how the evaluator's own code needed an absent module.

    Attributes:
      looked_for: Whether the code looked for the module. If false, the code used the placeholder for the module.
      lines: File and line of each frame in the evaluator's own code, innermost first.
      is_own: Whether the module is one of the author's files.
    """

    __slots__ = ("is_own", "lines", "looked_for")

    def __init__(self, *, looked_for: bool, lines: list[tuple[str, int]], is_own: bool = False) -> None:
        self.looked_for = looked_for
        self.lines = lines
        self.is_own = is_own


failed_imports: dict[tuple[str, str, int], Asked] = {}
"""The failed imports since the last `take`, by name, file and line."""


class Finder:
    """The last import finder: finds nothing, and records the modules that no other finder has found."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> None:
        """Record a module that no other finder has found, if the evaluator's own code imports it."""
        record(name, looked_for=True)


def install(code: str, package: str) -> None:
    """Record the failed imports in `code`, and in the files that came with it, from now on.

    Relative imports in `code` begin in `package`.
    """
    _own[tracebacks.FILENAME] = code
    _packages[tracebacks.FILENAME] = package
    sys.meta_path.append(Finder())


def record(name: str, *, looked_for: bool = False) -> None:
    """Record an absent module, if the evaluator's own code looks for it (`looked_for`) or uses its placeholder."""
    frame: FrameType | None = _frame(1)
    while frame is not None and _is_passing(frame.f_code.co_filename):
        if frame.f_code.co_name in _LOADING and frame.f_code.co_filename.startswith("<frozen"):
            return  # an extension module imports something while it is loaded; it has no frame of its own
        frame = frame.f_back
    if frame is None or len(failed_imports) >= _RECORDED:
        return
    file = frame.f_code.co_filename
    if file == tracebacks.FILENAME or file in tracebacks.OTHERS:
        asked = Asked(looked_for=looked_for, lines=_own_lines(frame))
        failed_imports[name[:_NAME_CHARS], file, frame.f_lineno] = asked


def record_own(module: str, line: int) -> None:
    """Record that a line of the evaluator imports a missing file of the author."""
    place = (tracebacks.FILENAME, line)
    asked = Asked(looked_for=True, lines=[place], is_own=True)
    failed_imports.setdefault((module[:_NAME_CHARS], *place), asked)


def _own_lines(frame: FrameType | None) -> list[tuple[str, int]]:
    """Return the file and line of each frame in the evaluator's own code, from the given frame outwards."""
    found: list[tuple[str, int]] = []
    while frame is not None and len(found) < _FRAMES:
        file = frame.f_code.co_filename
        if file == tracebacks.FILENAME or file in tracebacks.OTHERS:
            found.append((file, frame.f_lineno))
        frame = frame.f_back
    return found


def _is_passing(file: str) -> bool:
    return file.startswith("<frozen importlib") or file.endswith(
        ("/importlib/__init__.py", "/importlib/util.py", "/evaluator_runner/absent.py", "/evaluator_runner/later.py")
    )


def forget(node: Any) -> None:
    """Forget the failed imports that were recorded for a statement of the evaluator."""
    for found in [
        one for one in failed_imports if one[1] == tracebacks.FILENAME and node.lineno <= one[2] <= node.end_lineno
    ]:
        del failed_imports[found]


def take() -> list[dict[str, Any]]:
    """Return `{"module", "line"}` of each recorded import, and forget the imports.

    An import in another file of the evaluator also has `file`. `optional` is set if the line imports nothing itself,
    but calls an extension that looks for the absent module.
    """
    if not failed_imports:
        return []
    recorded = dict(failed_imports)
    failed_imports.clear()
    try:
        return _told(recorded)
    except Exception:  # noqa: BLE001 - user code may have changed the objects that this reads
        return []


def added_to(body: bytes) -> bytes:
    """Add the imports recorded since the last `take` to an answer's body (a JSON object), and return the body."""
    found = take()
    return body[:-1] + jsontext.to_bytes(f',"missing_imports":{jsontext.encode(found)}}}') if found else body


def _told(recorded: dict[tuple[str, str, int], Asked]) -> list[dict[str, Any]]:
    sources: dict[str, _Source] = {}
    told: dict[str, dict[str, Any]] = {}
    for (name, file, line), asked in recorded.items():
        if len(told) == _MOST:
            break
        if file not in sources:
            sources[file] = _Source(file)
        source = sources[file]
        whole, imported = source.as_written(name, line)
        module = imports.own_name(whole)
        if module.partition(".")[0] in _standard or imports.is_provided(module) or source.has_other(line):
            continue
        place = {} if file == tracebacks.FILENAME else {"file": file}
        names = source.names_read.get(module)
        more: dict[str, Any] = {
            **imports.deeper_path(module, whole, imported),
            **place,
            **({"names": names} if names else {}),
        }
        if asked.looked_for and line not in source.looking:
            more["optional"] = True
        key = more.get("path", module) if asked.is_own else module
        told.setdefault(key, {"module": module, "line": line, **more})
    return list(told.values())


class _Source:
    """What the evaluator, or one of its files, imports and where; its syntax tree is read only once.

    Attributes:
      names_read: The names that it reads from each module.
      looking: Lines on which it imports a module, or checks whether a module can be imported.
    """

    def __init__(self, file: str) -> None:
        tree = parsed(file)
        self._package = _packages.get(file, file.rpartition("/")[0].replace("/", "."))
        self._imported: dict[int, list[tuple[str, str]]] = {}
        for module, line, name in imports.imports_in(tree, self._package):
            self._imported.setdefault(line, []).append((module, name))
        self.names_read = imports.names_read(tree, self._package)
        nodes = all_nodes(tree)
        self.looking = {line for one in nodes if _looks(one) for line in _lines(one)}
        self._choosing = [one for one in nodes if type(one).__name__ in {"Try", "TryStar", "If"}]

    def as_written(self, name: str, line: int) -> tuple[str, str]:
        """Return the full name of the module that a line imports, and one name that the line imports from it."""
        written = self._imported.get(line, ())
        return next((one for one in written if one[0] == name or one[0].startswith(f"{name}.")), (name, ""))

    def has_other(self, line: int) -> bool:
        """Return whether the code imports another, installed module if the import on this line fails."""
        for node in self._choosing:
            is_if = type(node).__name__ == "If"
            if not covers([node.test] if is_if else node.body, line):
                continue
            tried = [*node.body, *node.orelse] if is_if else node.body
            others = tried if is_if else node.handlers
            wanted = {name for name, _ in _bound(tried, self._package)} if is_if else _bound_at(tried, line)
            if any(name in wanted and imports.is_provided(module) for name, module in _bound(others, self._package)):
                return True
        return False


def _looks(node: Any) -> bool:
    """Return whether a node imports a module, or names a function that finds one."""
    name = getattr(node, "attr", None) or getattr(node, "id", None)
    return type(node).__name__ in {"Import", "ImportFrom"} or name in _IMPORTING


def parsed(file: str) -> Any:
    """Return the syntax tree of the evaluator, or of one of its files; an empty tree if the file does not parse."""
    text = _own.get(file)
    text = "\n".join(tracebacks.OTHERS[file]) if text is None else text
    try:
        return compile(text, file, "exec", _ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return compile("", file, "exec", _ONLY_AST, dont_inherit=True)


def covers(nodes: list[Any], line: int) -> bool:
    """Return whether a line belongs to any of these statements."""
    return any(line in _lines(one) for one in nodes)


def _lines(node: Any) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _bound_at(nodes: list[Any], line: int) -> set[str]:
    inside = [one for top in nodes for one in all_nodes(top) if getattr(one, "lineno", None) == line]
    names = {name for one in inside for name, _ in _names_of(one, "")}
    for one in inside:
        if type(one).__name__ == "Assign":  # an assignment such as json = importlib.import_module("ujson")
            names.update(target.id for target in one.targets if hasattr(target, "id"))
    return names


def _bound(nodes: list[Any], package: str) -> list[tuple[str, str]]:
    return [pair for top in nodes for one in all_nodes(top) for pair in _names_of(one, package)]


def _names_of(node: Any, package: str) -> list[tuple[str, str]]:
    """Return the names that an import binds, each with the package from which it comes."""
    kind = type(node).__name__
    if kind == "Import":
        return [(one.asname or one.name.partition(".")[0], imports.own_name(one.name)) for one in node.names]
    if kind != "ImportFrom":
        return []
    module = imports.own_name(node.module or "") if not node.level else package.partition(".")[0]
    return [(one.asname or one.name, module) for one in node.names]


def all_nodes(tree: Any) -> list[Any]:
    """Return a node and all nodes below it."""
    left, found = [tree], []
    while left:
        node = left.pop()
        found.append(node)
        left.extend(imports.children(node))
    return found

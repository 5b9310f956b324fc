"""Reads an evaluator's syntax tree, and finds the imports that are not installed. The code is not run."""

from __future__ import annotations

import sys

from evaluator_runner import later
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from evaluator_runner.slices import Statement

_ONLY_AST = 0x400
_MOST = 100
_NAMES = 20  # maximum number of names to list for one module
_NAME_CHARS = 100
# namespaces that many packages share
_NAMESPACES = frozenset({"azure", "backports", "google", "google.cloud", "jaraco", "ruamel", "zope"})

_FOLDERS = frozenset({"src"})  # names of folders that contain modules, but are never modules themselves


def missing_imports(
    code: str,
    filename: str,
    *,
    package: str = "",
    files: dict[str, str] | None = None,
    kept: list[Statement] | None = None,
    known: dict[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return `{"module", "line"}` of every imported module that cannot be found, each module once.

    `module` is the top-level name of a package, or one level more in a namespace that many packages share; for a module
    among the evaluator's files, it is the whole name. An import in one of `files` also has `file`, the path of that
    file. `names` are the names that the file reads from the module, if any. `optional` is set if the code has a
    substitute for the imported names. If the imported module is below `module`, there is also `path`: the path
    that its file has if the author wrote the module.

    Args:
      code: The evaluator's own code.
      filename: Name of the code in syntax trees.
      package: Package in which relative imports of the code begin.
      files: Contents of the files that came with the code, by path.
      kept: The statements that rows need; None if they are not known, so that every import counts.
      known: Distributions of well-known packages, by module; an import of such a package counts only if rows need it.
    """
    files = files or {}
    found: dict[str, dict[str, Any]] = {}
    texts = {path: text for path, text in files.items() if path.endswith(".py")}
    own = {path.partition("/")[0].removesuffix(".py") for path in texts} | {package.partition(".")[0]}
    packages = later.Known(known or {})
    by_line: dict[int, list[Statement]] = {}
    for part in kept or ():
        for line in part.lines:
            by_line.setdefault(line, []).append(part)
    for one in _missing_in(code, filename, package, own, texts):
        if one["module"] not in found and (
            kept is None
            or not packages.may_stand_in(one["module"])
            or any(part.imports(one["module"]) for part in by_line.get(one["line"], ()))
        ):
            found[one["module"]] = one
            if len(found) == _MOST:
                return list(found.values())
    for path, text in texts.items():
        above = path.rpartition("/")[0].replace("/", ".")
        for one in _missing_in(text, path, above, own, texts):
            found.setdefault(one["module"], {**one, "file": path})
    return list(found.values())[:_MOST]


def lacking(kept: list[Statement]) -> list[dict[str, Any]]:
    """Return `{"module", "line", "names"}` for each light module that lacks names which the statements need.

    A light module replaces a package that is not pinned. The program must have been loaded.
    """
    light = [part for part in kept if part.module and later.is_light(part.module)]
    reading = [part.node for part in kept if light and not part.module]
    read = list(dict.fromkeys(whole for node in reading for whole in _attributes(node)))
    found: dict[str, dict[str, Any]] = {}
    for part in light:
        top, _, inner = part.module.partition(".")
        for name in _taken(part, read):
            if later.lacks(part.module, name):
                one = found.setdefault(top, {"module": top, "line": part.node.lineno, "names": {}})
                one["names"][f"{inner}.{name}" if inner else name] = None
    return [{**one, "names": list(one["names"])[:_NAMES]} for one in found.values()]


def _taken(part: Statement, read: list[str]) -> list[str]:
    """Return the names that an import takes from its module. For `import x`, search `read`, a list of dotted names."""
    if hasattr(part.node, "module"):
        return [one.name for one in part.node.names if (one.asname or one.name) in part.binds]
    heads = [f"{head}." for head in {*part.binds, part.module}]
    return [whole.removeprefix(head).partition(".")[0] for head in heads for whole in read if whole.startswith(head)]


def _missing_in(
    code: str, filename: str, package: str, own: set[str], texts: dict[str, str]
) -> Iterator[dict[str, Any]]:
    try:
        tree = compile(code, filename, "exec", _ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    names, optional = names_read(tree, package), _lines_with_others(tree)
    for module, line, name in imports_in(tree, package):
        top = own_name(module)
        if top in own:
            inner = f"{module}.{name}" if name and _is_empty_of(name, module, texts) else module
            missing = next((one for one in (module, inner) if not is_provided(one)), "")
        else:
            missing = "" if not top or is_provided(top) else top
        if missing:
            read = {"names": names[missing]} if missing in names else {}
            more = {
                **read,
                **deeper_path(missing, module, name),
                **({"optional": True} if line in optional else {}),
            }
            yield {"module": missing, "line": line, **more}


def names_read(tree: Any, package: str) -> dict[str, list[str]]:
    """Return the names that code reads from each module, by the module's `own_name`: imported names, and attributes."""
    found: dict[str, dict[str, None]] = {}

    def add(whole: str) -> None:
        module = own_name(whole)
        name = whole[len(module) + 1 : len(module) + 1 + _NAME_CHARS]
        if name and len(names := found.setdefault(module, {})) < _NAMES:
            names[name] = None

    for module, _, name in imports_in(tree, package):
        add(f"{module}.{name}" if name else module)
    bound = dict(_modules(tree))
    for whole in _attributes(tree):
        name, _, rest = whole.partition(".")
        if name in bound:
            add(f"{bound[name]}.{rest}")
    return {module: list(names) for module, names in found.items()}


def _modules(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield each name that code binds to a module, together with the module."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if type(node).__name__ == "Import":
            for one in node.names:
                top = own_name(one.name)
                yield (one.asname, one.name) if one.asname else (top, top)
        nodes.extend(children(node))


def _attributes(tree: Any) -> Iterator[str]:
    """Yield the dotted names that code reads, such as `np.linalg.norm`."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        parts: list[str] = []
        while type(node).__name__ == "Attribute":
            parts.append(node.attr)
            node = node.value
        if parts and type(node).__name__ == "Name":
            yield ".".join([node.id, *reversed(parts)])
        nodes.extend(reversed(list(children(node))))


def _lines_with_others(tree: Any) -> set[int]:
    """Return the lines of imports that may fail, because the code then gives the imported names other values."""
    lines: set[int] = set()
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if type(node).__name__ in {"Try", "TryStar"}:
            others = {name for handler in node.handlers for one in handler.body for name, _ in _bound(one)}
            imports = ((name, line) for one in node.body for name, line in _bound(one) if line) if others else ()
            lines.update(line for name, line in imports if name in others)
        nodes.extend(children(node))
    return lines


def _bound(tree: Any) -> Iterator[tuple[str, int]]:
    """Yield the names that a statement binds, each with the line of its import; 0 for other names."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        kind = type(node).__name__
        if kind in {"Import", "ImportFrom"}:
            yield from ((one.asname or one.name.partition(".")[0], node.lineno) for one in node.names)
        elif kind == "Name" and type(node.ctx).__name__ == "Store":
            yield node.id, 0
        nodes.extend(children(node))


def deeper_path(missing: str, whole: str, name: str) -> dict[str, str]:
    """Return `{"path": file}` if the imported module `whole` is below `missing`, else an empty dict.

    The path is that of the module's file if the author wrote the module. `name` is the name that the import takes from
    `whole`.
    """
    whole = f"{whole}.{name}" if name and whole in _FOLDERS else whole
    return {"path": f"{whole.replace('.', '/')}.py"} if whole.startswith(f"{missing}.") else {}


def _is_empty_of(name: str, package: str, texts: dict[str, str]) -> bool:
    """Return whether `name` can only be a module of `package`, because no code of the package contains the name."""
    path = package.replace(".", "/")
    return f"{path}.py" not in texts and name not in texts.get(f"{path}/__init__.py", "")


def imports_in(tree: Any, package: str) -> Iterator[tuple[str, int, str]]:
    """Yield the module, line and imported name of each import; the name is empty for `import x` and `import *`."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        kind = type(node).__name__
        if kind == "Import":
            yield from ((alias.name, node.lineno, "") for alias in node.names)
        elif kind == "ImportFrom":
            yield from _imported_from(node, package)
        elif kind == "If" and is_type_checking(node):
            nodes.extend(reversed(node.orelse))
        else:
            nodes.extend(reversed(list(children(node))))


def _imported_from(node: Any, package: str) -> Iterator[tuple[str, int, str]]:
    module = node.module or ""
    if node.level:
        above = package.split(".") if package else []
        if node.level > len(above):
            return  # the interpreter itself reports this error
        module = ".".join([*above[: len(above) - node.level + 1], *([module] if module else [])])
    if module in _NAMESPACES:
        yield from ((f"{module}.{alias.name}", node.lineno, "") for alias in node.names)
    else:
        yield from ((module, node.lineno, "" if alias.name == "*" else alias.name) for alias in node.names)


def children(node: Any) -> Iterator[Any]:
    """Yield the child nodes of a node in a syntax tree."""
    for name in node._fields:
        value = getattr(node, name, None)
        for item in value if isinstance(value, list) else [value]:
            if hasattr(item, "_fields"):
                yield item


def is_type_checking(node: Any) -> bool:
    """Return whether a statement is an `if` whose body only type checkers read."""
    return "TYPE_CHECKING" in {getattr(node.test, "id", None), getattr(node.test, "attr", None)}


def own_name(module: str) -> str:
    """Return the shortest beginning of a module's name that belongs to a single package."""
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        if name not in _NAMESPACES:
            break
    return name


def is_provided(module: str) -> bool:
    """Return whether a module is installed. A placeholder for a package that is not pinned does not count."""
    if module in sys.modules:
        return not later.is_stand_in(sys.modules[module])
    above = module.rpartition(".")[0]
    path = _folders(above) if above else None
    return (not above or path is not None) and _spec(module, path) is not None


def _folders(namespace: str) -> Any:
    """Return the folders of a namespace package, or None if the package is not installed."""
    if namespace in sys.modules:
        return getattr(sys.modules[namespace], "__path__", None)
    above = namespace.rpartition(".")[0]
    path = _folders(above) if above else None
    spec = _spec(namespace, path) if not above or path is not None else None
    return None if spec is None else spec.submodule_search_locations


def _spec(module: str, path: Any) -> Any:
    for finder in sys.meta_path:
        if isinstance(finder, later.Finder):
            continue
        try:
            spec = finder.find_spec(module, path)
        except Exception:  # noqa: BLE001, S112 - a finder of a package may raise anything
            continue
        if spec is not None:
            return spec
    return None

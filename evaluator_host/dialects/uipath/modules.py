"""Finds the project's own modules that an evaluator imports, by parsing, and adds them to its code.

They are looked for as UiPath's command line does while it runs an eval set, in the project's root, and as it does while
it registers, beside the evaluator too. They follow the evaluator's code as comments that its runner reads
(`evaluator_runner/modules.py`), so that the stored, compared and executed text is one, and its line numbers stay.
"""

import ast
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import decode_source
from pathlib import Path
from typing import Final

from evaluator_host.dialects.uipath.packing import MOST_FILES, PACKED_BYTES, is_packed, over_packed
from evaluator_host.dialects.uipath.project import EVAL_SETS, FOLDERS, Layout, read_text
from evaluator_host.model.errors import InvalidRequest
from evaluator_host.model.outcome import EvaluationError

_MODULE_BYTES: Final = 1 << 20
_OWN: Final = "evaluator"  # the name of the evaluator's module in the sandbox
_NEVER: Final = frozenset({"uipath", "__future__", "__main__"})  # there before the project is looked at


def with_modules(code: str, file: Path, layout: Layout) -> str:
    """Return an evaluator's code bundled with the project's modules that it imports, directly or not.

    Code that imports none of them stays as it is.

    Args:
      code: What is in the file.
      file: Of the evaluator.
      layout: Of its project.

    Raises:
      InvalidRequest: a module leads out of the project or cannot be sent, or there are too many or too large ones.
    """
    project = _Project(layout.root.resolve(), file.parent.resolve())
    project.follow(code)
    if not project.texts:
        return code
    blocks = [f"# /// module {name} {path}\n{_commented(text)}" for name, (path, text) in project.texts.items()]
    whole = "\n".join([code.removesuffix("\n"), *blocks, ""])
    size = len(whole.encode("utf-8", "replace"))
    if size > PACKED_BYTES:
        sizes = {path: len(text) for path, text in project.texts.values()}
        raise InvalidRequest(over_packed(layout.root, "its evaluator", size, sizes))
    return whole


def with_project_modules(code: str, file: Path) -> str:
    """Return an evaluator's code bundled with modules of its project; outside a project, the code unchanged.

    Raises:
      InvalidRequest: as `with_modules`.
    """
    layout = layout_of_code(file)
    return code if layout is None else with_modules(code, file, layout)


def layout_of_code(file: Path) -> Layout | None:
    """Return the project layout around an evaluator's file, `<root>/<folder>/evaluators/…`; None outside one."""
    for folder in file.absolute().parents:
        if folder.name == "evaluators" and folder.parent.name in FOLDERS:
            return Layout(folder.parent.parent, folder.parent.name)
    return None


def explained(error: EvaluationError, file: Path, layout: Layout) -> EvaluationError:
    """Return the error; for a missing module, add where it was looked for and what to do."""
    if error.type != "ModuleNotFoundError" or "'" not in error.message:
        return error
    name = error.message.split("'")[1]
    if not all(part.isidentifier() for part in name.split(".")):
        return error  # a sandbox may say anything
    path = name.replace(".", "/")
    places = [*dict.fromkeys([layout.root.resolve(), file.parent.resolve()])]
    there = [place / end for place in places for end in (f"{path}.py", f"{path}/__init__.py") if _is_file(place / end)]
    if there:
        hint = (
            f"{there[0]} did not go along: import it by a statement in the code; what is hidden, in a virtual "
            "environment, in build, in dist or among the eval sets stays"
        )
    else:
        looked = " and in ".join(str(place) for place in places)
        hint = (
            f"neither Python nor a pinned package has {name}, and there is no module {path}.py and no package {path}/ "
            f"in {looked}; put it there, or pin its package: --package NAME==VERSION"
        )
    return replace(error, hint=hint)


class _Project:
    """Where modules are looked for, and those that were found.

    Attributes:
      texts: Path, from the root on, and text, by the name that an import says.
    """

    def __init__(self, root: Path, beside: Path) -> None:
        self._root = root
        self._beside = beside if beside.is_relative_to(root) else root
        self._folders: dict[str, Path] = {}
        self._looked: set[str] = set()
        self._left: list[tuple[str, str]] = []
        self._size = 0
        self.texts: dict[str, tuple[str, str]] = {}

    def follow(self, code: str) -> None:
        """Find every module that a program imports, directly or through other modules."""
        self._left.append((code, ""))
        while self._left:
            text, package = self._left.pop()
            for name in _imports(text, package):
                self._find(name)

    def _find(self, name: str) -> None:
        """Look for a module and for the packages above it."""
        parts = name.split(".")
        above = ""
        for part in parts:
            whole = f"{above}.{part}" if above else part
            if whole not in self._looked:
                self._looked.add(whole)
                self._look(whole, part, self._bases(part) if not above else [self._folders[above]])
            if whole not in self._folders:
                return
            above = whole

    def _bases(self, top: str) -> list[Path]:
        if top in _NEVER:
            return []
        return [self._root] if top in sys.stdlib_module_names else [*dict.fromkeys([self._root, self._beside])]

    def _look(self, name: str, part: str, bases: list[Path]) -> None:
        """Take a package or a module from the first folder that has it; else a folder of that name is a package."""
        bases = [base for base in bases if base == self._root or self._may_hold(base)]
        for base in bases:
            for path in (base / part / "__init__.py", base / f"{part}.py"):
                if _is_file(path) and self._may_hold(path.parent):
                    self._take(name, path)
                    if path.name == "__init__.py":
                        self._folders[name] = path.parent
                    return
        for base in bases:
            if _is_folder(base / part) and self._may_hold(base / part):
                self._folders[name] = base / part
                return

    def _may_hold(self, folder: Path) -> bool:
        """Whether modules of a folder go along; those of the eval sets do not."""
        parts = folder.relative_to(self._root).parts
        if len(parts) > 1 and parts[0] in FOLDERS and parts[1] in EVAL_SETS:
            return False
        return all(is_packed(self._root.joinpath(*parts[: count + 1])) for count in range(len(parts)))

    def _take(self, name: str, path: Path) -> None:
        shown = path.relative_to(self._root).as_posix()
        self._require_sendable(name, path, shown)
        raw = read_text(path, _MODULE_BYTES, instead=f"; an evaluator imports it, and takes {PACKED_BYTES >> 10} KB")
        self._size += len(raw)
        if len(self.texts) == MOST_FILES or self._size > 4 * PACKED_BYTES:
            raise InvalidRequest(
                f"the project {self._root} has more than {MOST_FILES} modules or {4 * PACKED_BYTES >> 10} KB of them "
                "for its evaluator; import fewer"
            )
        text = _decoded(raw, shown)
        self.texts[name] = shown, text
        self._left.append((text, name if path.name == "__init__.py" else name.rpartition(".")[0]))

    def _require_sendable(self, name: str, path: Path, shown: str) -> None:
        real = path.resolve()
        if not real.is_relative_to(self._root):
            raise InvalidRequest(
                f"{shown} leads out of the project {self._root}, to {real}; put the module itself there"
            )
        if real.suffix != ".py" or not self._may_hold(real.parent):
            raise InvalidRequest(
                f"{shown} leads to {real}, which is no module that goes along; put the module itself there"
            )
        if name == _OWN:
            raise InvalidRequest(f"{shown} has the name of the evaluator's own module, {_OWN}; give it another")
        if not shown.isprintable():
            raise InvalidRequest(f"{shown!r} has a character that cannot be shown; give it another name")


def _imports(text: str, package: str) -> Iterator[str]:
    """Yield the names that may be modules of every import, but for those that only type checkers follow."""
    nodes: list[ast.AST] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes.append(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # the sandbox says why, if it ever imports it
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _names(node, package)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            nodes.extend(node.orelse)
        else:
            nodes.extend(ast.iter_child_nodes(node))


def _names(node: ast.ImportFrom, package: str) -> Iterator[str]:
    above = package.split(".") if package else []
    if node.level > len(above):
        return  # beyond its package, or of the evaluator, which is in none
    base = ".".join([*above[: len(above) - node.level + 1], *([node.module] if node.module else [])])
    base = base if node.level else str(node.module)
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", None) == "TYPE_CHECKING" or getattr(test, "attr", None) == "TYPE_CHECKING"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _decoded(raw: bytes, shown: str) -> str:
    try:
        text = decode_source(raw)
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise InvalidRequest(f"{shown} is not UTF-8, nor what it says it is; save it as UTF-8 ({error})") from error
    if "\0" in text:
        raise InvalidRequest(f"{shown} holds a null byte, so that it is no program; an evaluator imports it")
    return text


def _commented(text: str) -> str:
    return "\n".join(f"#|{line}" for line in text.split("\n"))

"""Collects the files that an evaluator imports from its own project.

It only parses files, and runs none of them.

Python modules are looked for in these places, in this order: the root of the project, its folder `src`, and the
evaluator's folder; the folders between evaluator and root, and those above, up to the root of the checkout; the rest of
the checkout, if it has only one module of this name. JavaScript and TypeScript files are found by their relative paths,
and by the aliases in the project's configuration (`path_aliases`).
Files in hidden folders, virtual environments and build output are not sent. Links that point outside the project are
not sent either.
"""

import ast
import os.path
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.util import decode_source
from pathlib import Path
from typing import Final

from evaluator_host.engine.packages.path_aliases import Aliases, aliases_for
from evaluator_host.engine.packages.scripts import module_specifiers
from evaluator_host.engine.packages.suggest import is_known, pin_for
from evaluator_host.engine.system.files import reading
from evaluator_host.engine.system.tree import walk
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.outcome import EvaluationError

MOST_BYTES: Final = 900_000
"""Size limit of an evaluator with its files: less than the 1 MB of code that a host accepts by default."""
MOST_FILES: Final = 500
_FILE_BYTES: Final = 1 << 20
_MOST_OTHERS: Final = 20_000
_LEFT_OUT: Final = frozenset({"node_modules", "__pycache__", "site-packages", "dist", "build"})
_ROOT_MARKS: Final = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "tsconfig.json", ".git")
_OWN: Final = "evaluator"  # the name of the evaluator's module in the sandbox
_NEVER: Final = frozenset({_OWN, "__future__", "__main__"})
_SCRIPTS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json")
_TEXTS: Final = (
    *(".txt", ".md", ".csv", ".tsv", ".yaml", ".html", ".xml", ".sql", ".jsonl", ".prompt"),
    *(".jinja", ".j2", ".tmpl"),
)  # endings of files that a bundler imports as strings
_CHECKOUT: Final = ".git"
_WRITTEN_AS: Final = {".js": (".ts", ".tsx"), ".mjs": (".mts",), ".cjs": (".cts",), ".jsx": (".tsx",)}


@dataclass(frozen=True, slots=True)
class Project:
    """The folder of a project, from which an evaluator's own files come."""

    root: Path  # root of the project; paths are shown and sent relative to it
    # whether files in a folder, given by its path from the root, must not be sent
    closed: Callable[[tuple[str, ...]], bool] = lambda _parts: False
    unknown: frozenset[str] = frozenset()  # names of modules that are never looked for in the project
    checkout: Path | None = None  # the checkout around the project, which may have modules that the project lacks
    packages: bool = True  # whether the checkout may also provide a module that has the name of a well-known package

    def holds(self, path: Path) -> bool:
        """Return whether a path is in the project, or in the checkout around it."""
        return path.is_relative_to(self.root) or (self.checkout is not None and path.is_relative_to(self.checkout))

    def shown(self, path: Path) -> str:
        """Return a path for messages: relative to the root of the project or of the checkout."""
        return path.relative_to(self._above(path)).as_posix()

    def may_hold(self, folder: Path) -> bool:
        """Return whether files of a folder below the root may be sent."""
        above = self._above(folder)
        parts = folder.relative_to(above).parts
        if above == self.root and self.closed(parts):
            return False
        return all(is_sent(above.joinpath(*parts[: count + 1])) for count in range(len(parts)))

    def rooted(self, folder: Path) -> "Project":
        """Return the same project with the root `folder`; the same files are excluded."""

        def closed(parts: tuple[str, ...]) -> bool:
            path = folder.joinpath(*parts)
            return path.is_relative_to(self.root) and self.closed(path.relative_to(self.root).parts)

        return replace(self, root=folder, closed=closed)

    def _above(self, path: Path) -> Path:
        return self.root if self.checkout is None or path.is_relative_to(self.root) else self.checkout


def is_sent(folder: Path) -> bool:
    """Return whether files of a folder may be sent.

    Hidden folders, virtual environments and build output are not sent.
    """
    name = folder.name
    return not (name.startswith(".") or name in _LEFT_OUT or (folder / "pyvenv.cfg").exists())


def find_project(file: Path) -> Project:
    """Return the project of a file. Its root is the nearest folder above the file that has pyproject.toml or .git.

    If there is no such folder, the root is the current folder, or the file's own folder if that is elsewhere.
    """
    folder = file.resolve().parent
    around = (folder, *folder.parents)
    checkout = next((above for above in around if (above / _CHECKOUT).exists()), None)
    for above in around:
        if any((above / mark).exists() for mark in _ROOT_MARKS):
            return Project(above, checkout=checkout)
    here = Path.cwd()
    return Project(here if folder.is_relative_to(here) else folder)


def texts_below(folder: Path, project: Project) -> tuple[list[Path], list[Path]]:
    """Return two lists of files below a folder: the files that may be sent, and the files that cannot be sent.

    A file cannot be sent if it is not text, or is a link that points outside the folder. Hidden files, and files in
    folders from which nothing is sent, are in neither list.

    Raises:
      InvalidRequest: the path is not a folder in the project, or the folder has too many files.
    """
    top, root = folder.resolve(), project.root.resolve()
    if not top.is_dir():
        raise InvalidRequest(f"{folder} is not a folder; to send a single file, use --file")
    if not top.is_relative_to(root):
        raise InvalidRequest(
            f"{folder} is not in the project {root}; name a folder of the project, or one that contains the evaluator"
        )
    texts: list[Path] = []
    others: list[Path] = []
    for path in _files_below(top, project):
        if path.name.startswith("."):
            continue
        (texts if _is_sendable(path, top) else others).append(path)
        if len(texts) > MOST_FILES or len(others) > _MOST_OTHERS:
            raise InvalidRequest(f"{folder} has more than {MOST_FILES} files; name a smaller folder")
    return sorted(texts), sorted(others)


def _files_below(top: Path, project: Project) -> Iterator[Path]:
    with closing(walk(top, strict=False)) as entries:
        for entry in entries:
            path = top / entry.path
            if entry.is_folder:
                entry.enter = project.may_hold(path)
            elif not _is_folder(path):  # `_is_folder` is false for a link to a folder
                yield path


def _is_sendable(path: Path, top: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(top) and bool([_text(path, path.name)])
    except (InvalidRequest, OSError):
        return False


def with_files(evaluator: Evaluator, file: Path, project: Project, *, extra: Sequence[Path] = ()) -> Evaluator:
    """Return an evaluator with the files of its project that its code imports, directly or through other files.

    An evaluator that does not import files of its project stays as it is.

    Args:
      evaluator: The evaluator whose code is in the file.
      file: Path of the file.
      project: The project that the file belongs to.
      extra: Further files to send, such as data that the code reads.

    Raises:
      InvalidRequest: a file is outside the project or cannot be sent, or there are too many files, or they are too
      large.
    """
    around = replace(project, root=project.root.resolve())
    try:
        return _with_files(evaluator, file.resolve(), around, extra)
    except _TooLargeError:  # the checkout may contain sources of well-known packages: try again without these
        return _with_files(evaluator, file.resolve(), replace(around, packages=False), extra)


def _with_files(evaluator: Evaluator, own: Path, project: Project, extra: Sequence[Path]) -> Evaluator:
    try:
        found = _imported(evaluator, own, project)
    except _BeyondRootError:
        project = replace(project, root=project.checkout or project.root)
        found = _imported(evaluator, own, project)
    for path in extra:
        found.send_data(path)
    found.texts.pop(found.path, None)
    if not found.texts:
        return evaluator
    size = sum(len(text.encode("utf-8", "replace")) for text in (evaluator.code, *found.texts.values()))
    if size > MOST_BYTES:
        sizes = {path: len(text) for path, text in found.texts.items()}
        raise _TooLargeError(over_size(project.root, "its evaluator", size, sizes))
    return replace(evaluator, files=dict(sorted(found.texts.items())), path=found.path or None)


def _imported(evaluator: Evaluator, own: Path, project: Project) -> "_Collected":
    root = project.root
    found = _Collected(project)
    if own.is_relative_to(root):
        found.path = own.relative_to(root).as_posix()
    kind: type[_Modules | _Scripts] = _Modules if evaluator.language is Language.PYTHON else _Scripts
    kind(found, own.parent if own.is_relative_to(root) else root).follow(evaluator.code, own)
    return found


def over_size(root: Path, what: str, size: int, files: dict[str, int]) -> str:
    """Return the error message for a project whose files are too large.

    Args:
      root: Root folder of the project.
      what: What the files belong to, in words for the message, such as `its agent`.
      size: Total size in bytes.
      files: Size of each file by its path.
    """
    largest = sorted(files, key=lambda name: files[name], reverse=True)[:3]
    return (
        f"the project {root} has {size >> 10} KB for {what}, over the limit of {MOST_BYTES >> 10} KB; "
        f"its largest files are {', '.join(largest)}"
    )


def explain_missing(error: EvaluationError, file: Path, root: Path) -> EvaluationError:
    """Return an error; if it is about a missing Python module, add where the module was looked for, and what to do."""
    if error.type != "ModuleNotFoundError" or "'" not in error.message:
        return error
    name = error.message.split("'")[1]
    if not all(part.isidentifier() for part in name.split(".")):
        return error  # the facts come from a sandbox, which may send anything
    path = name.replace(".", "/")
    places = [*dict.fromkeys([root.resolve(), file.parent.resolve()])]
    there = [place / end for place in places for end in (f"{path}.py", f"{path}/__init__.py") if _is_file(place / end)]
    if there:
        hint = (
            f"{there[0]} was not sent: the code must import it with an import statement; files that are hidden, in a "
            "virtual environment, in build, in dist or among the eval sets are never sent"
        )
    else:
        looked = " and in ".join(str(place) for place in places)
        hint = (
            f"neither Python nor a pinned package has {name}, and there is no module {path}.py and no package {path}/ "
            f"in {looked}; put it there, or pin its package: --package NAME==VERSION"
        )
    return replace(error, hint=hint)


@dataclass(slots=True)
class _Collected:
    """Collects the files to send, and checks each of them."""

    project: Project  # the project, with the real path of its root
    path: str = ""  # path of the evaluator from the root; empty if it is elsewhere
    texts: dict[str, str] = field(default_factory=dict)  # contents of the files, by the path from the root
    _bytes: int = 0

    def send(self, path: Path, suffixes: tuple[str, ...], *, base: Path | None = None) -> str:
        shown = self.project.shown(path)
        real = path.resolve()
        if not self.project.holds(real):
            raise InvalidRequest(
                f"the path {shown} resolves through a link to {real}, outside the project {self.project.root}; "
                "replace the link with the file itself"
            )
        if real.suffix not in suffixes or not self.project.may_hold(real.parent):
            raise InvalidRequest(
                f"the path {shown} resolves through a link to {real}, a file that may not be sent; replace the link "
                "with a copy of the file"
            )
        if not shown.isprintable():
            raise InvalidRequest(f"{shown!r} has a character that cannot be shown; give it another name")
        text = _text(path, shown)
        self.keep(path.relative_to(base or self.project.root).as_posix(), text)
        return text

    def send_data(self, path: Path) -> None:
        real, root = path.resolve(), self.project.root
        if not real.is_relative_to(root):
            raise InvalidRequest(f"{path} is not in the project {root}; copy it there, and name the copy")
        self.keep(real.relative_to(root).as_posix(), _text(real, str(path)))

    def keep(self, path: str, text: str) -> None:
        self._bytes += len(text)
        if len(self.texts) == MOST_FILES or self._bytes > 4 * MOST_BYTES:
            raise _TooLargeError(
                f"the evaluator needs more than {MOST_FILES} files or {4 * MOST_BYTES >> 10} KB of the project "
                f"{self.project.root}; import fewer files, or name a smaller folder"
            )
        self.texts[path] = text


class _TooLargeError(InvalidRequest):
    """The files that an evaluator imports are too many, or too large."""


class _BeyondRootError(Exception):
    """A script imports a file that is in the checkout, but outside the root of the project."""


class _Modules:
    """Finds the Python modules that an evaluator imports; `beside` is the evaluator's folder."""

    def __init__(self, found: _Collected, beside: Path) -> None:
        self._found = found
        self._root = found.project.root
        self._beside = beside
        self._folders: dict[str, tuple[Path, Path]] = {}
        self._looked: set[str] = set()
        self._folders_of: dict[str, list[Path]] | None = None  # folders of the checkout, by the module in them
        self._left: list[tuple[str, str]] = []

    def follow(self, code: str, file: Path) -> None:
        inside = file.parent.is_relative_to(self._root)
        package = ".".join(file.parent.relative_to(self._root).parts) if inside else ""
        self._left.append((code, package))
        while self._left:
            text, package = self._left.pop()
            for name in imported_names(text, package):
                self._find(name)

    def _find(self, name: str) -> None:
        above = ""
        for part in name.split("."):
            whole = f"{above}.{part}" if above else part
            if whole not in self._looked:
                self._looked.add(whole)
                if above:
                    self._look(whole, part, [self._folders[above]])
                elif not self._look(whole, part, self._bases(part)):
                    further = self._further(part)
                    if not self._look(whole, part, further):
                        self._look(whole, part, self._anywhere(part, further))
            if whole not in self._folders:
                return
            above = whole

    def _bases(self, top: str) -> list[tuple[Path, Path]]:
        """Return the folders in which to look first for a top-level module.

        Each folder comes with another folder, to which the paths of the found files are relative.
        """
        if top in _NEVER | self._found.project.unknown:
            return []
        if not self._found.project.packages and _is_package(top):
            return []
        root = self._root
        if top in sys.stdlib_module_names:
            return [(root, root)]
        return [*dict.fromkeys([*_with_source(root), (self._beside, root)])]

    def _further(self, top: str) -> list[tuple[Path, Path]]:
        """Return where to look next: between the evaluator and the root, and above the root in the checkout.

        If the top-level module has the name of a well-known package, return no folders: the code means the package.
        """
        project = self._found.project
        if top in _NEVER | project.unknown | sys.stdlib_module_names or _is_package(top):
            return []
        above = [*self._beside.parents, *self._root.parents]
        known = [folder for folder in dict.fromkeys(above) if project.holds(folder) and folder != self._root]
        return [base for folder in known for base in _with_source(folder)]

    def _anywhere(self, top: str, further: list[tuple[Path, Path]]) -> list[tuple[Path, Path]]:
        """Return where a top-level module is in the checkout, if only one module there has this name.

        Code may add such a folder to `sys.path`. If `further` is empty, return no folder.
        """
        checkout = self._found.project.checkout
        if checkout is None or not further:
            return []
        if self._folders_of is None:
            self._folders_of = _modules_below(checkout, self._found.project)
        places = self._folders_of.get(top, ())
        return [(folder, folder) for folder in places] if len(places) == 1 else []

    def _look(self, name: str, part: str, bases: list[tuple[Path, Path]]) -> bool:
        """Look for the module `name` in folders; return whether it was found.

        `part` is the last part of the module's name. A folder of this name is the module only if there is no file for
        it.
        """
        may_hold = self._found.project.may_hold
        bases = [(folder, base) for folder, base in bases if folder == self._root or may_hold(folder)]
        for folder, base in bases:
            for path in (folder / part / "__init__.py", folder / f"{part}.py"):
                if _is_file(path) and may_hold(path.parent):
                    self._take(name, path, base)
                    return True
        for folder, base in bases:
            if _is_folder(folder / part) and may_hold(folder / part):
                self._folders[name] = folder / part, base
                return True
        return False

    def _take(self, name: str, path: Path, base: Path) -> None:
        if path.name == "__init__.py":
            self._folders[name] = path.parent, base
        text = self._found.send(path, (".py",), base=base)
        self._left.append((text, name if path.name == "__init__.py" else name.rpartition(".")[0]))


def _is_package(top: str) -> bool:
    package = pin_for(top, Language.PYTHON)
    return package is not None and is_known(package, Language.PYTHON)


def _modules_below(checkout: Path, project: Project) -> dict[str, list[Path]]:
    """Map the name of each module in a checkout to its folders; return {} if the checkout has very many files."""
    found: dict[str, list[Path]] = {}
    for count, path in enumerate(_files_below(checkout, project)):
        if count > _MOST_OTHERS:
            return {}
        module = path.parent if path.name == "__init__.py" else path
        if path.suffix == ".py":
            found.setdefault(module.name.removesuffix(".py"), []).append(module.parent)
    return found


def _with_source(folder: Path) -> list[tuple[Path, Path]]:
    """Return the pair `(folder, folder)`, and the same pair for the subfolder `src`, unless `src` is a package."""
    source = folder / "src"
    return [(folder, folder)] + ([] if _is_file(source / "__init__.py") else [(source, source)])


class _Scripts:
    """Finds the JavaScript, TypeScript and JSON files that an evaluator imports; `beside` is the evaluator's folder."""

    def __init__(self, found: _Collected, beside: Path) -> None:
        self._found = found
        self._beside = beside
        self._seen: set[Path] = set()
        self._aliases: dict[Path, Aliases | None] = {}  # path aliases, by the folder to which they apply

    def follow(self, code: str, _file: Path) -> None:
        left = [(code, self._beside)]
        while left:
            text, folder = left.pop()
            for specifier in module_specifiers(text):
                path = self._find(folder, specifier.text)
                if path is not None and path not in self._seen:
                    self._seen.add(path)
                    text = self._found.send(path, (*_SCRIPTS, *_TEXTS))
                    left += [(text, path.parent)] if path.suffix in _SCRIPTS else []

    def _find(self, folder: Path, specifier: str) -> Path | None:
        if not specifier.startswith(("./", "../")) and specifier not in {".", ".."}:
            return self._find_aliased(folder, specifier)
        project = self._found.project
        path = next(filter(_is_file, _candidates(Path(os.path.normpath(folder / specifier)))), None)
        if path is None or path.suffix not in (*_SCRIPTS, *_TEXTS):
            return None
        if not path.is_relative_to(project.root) and project.holds(path) and project.may_hold(path.parent):
            raise _BeyondRootError
        if not path.is_relative_to(project.root):
            raise InvalidRequest(
                f"{specifier} resolves to {path}, outside the project {project.root}; put the file into the project"
            )
        return path if project.may_hold(path.parent) else None

    def _find_aliased(self, folder: Path, specifier: str) -> Path | None:
        """Return the file that an alias stands for, and send the configuration that defines this alias."""
        project = self._found.project
        if folder not in self._aliases:
            self._aliases[folder] = aliases_for(folder, project.holds)
        aliases = self._aliases[folder]
        wanted = () if aliases is None else aliases.candidates(specifier)
        path = next((path for one in wanted for path in _candidates(one) if _is_file(path)), None)
        if aliases is None or path is None or path.suffix not in (*_SCRIPTS, *_TEXTS):
            return None
        if not project.holds(path) or not project.may_hold(path.parent):
            return None
        if not path.is_relative_to(project.root) or not aliases.config.is_relative_to(project.root):
            raise _BeyondRootError
        config = aliases.config.relative_to(project.root).as_posix()
        if config not in self._found.texts:
            self._found.keep(config, aliases.text())
        return path


def _candidates(wanted: Path) -> Iterator[Path]:
    """Yield the paths of files that an import may mean, in the order in which bundlers try them."""
    yield wanted
    for suffix in _WRITTEN_AS.get(wanted.suffix, ()):
        yield wanted.with_suffix(suffix)
    for suffix in _SCRIPTS:
        yield wanted.with_name(wanted.name + suffix)
    for suffix in _SCRIPTS:
        yield wanted / f"index{suffix}"


def imported_names(text: str, package: str) -> Iterator[str]:
    """Yield the names of modules that a program may import, except under `if TYPE_CHECKING`.

    Args:
      text: The program.
      package: Dotted name of the program's package, for relative imports; empty if it is in no package.
    """
    nodes: list[ast.AST] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes.append(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a file with syntax errors; if the sandbox imports it, the user gets the error then
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
        return  # a relative import that goes above the package of the program
    base = ".".join([*above[: len(above) - node.level + 1], *([node.module] if node.module else [])])
    base = base if node.level else str(node.module)
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", None) == "TYPE_CHECKING" or getattr(test, "attr", None) == "TYPE_CHECKING"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name cannot belong to a file
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _text(path: Path, shown: str) -> str:
    with reading(shown), path.open("rb") as opened:
        raw = opened.read(_FILE_BYTES + 1)
    if len(raw) > _FILE_BYTES:
        raise InvalidRequest(
            f"{shown} is over {_FILE_BYTES >> 20} MB; an evaluator and its files may have at most {MOST_BYTES >> 10} KB"
        )
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        text = decode_source(raw) if path.suffix == ".py" else raw.decode()
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise InvalidRequest(
            f"{shown} is neither UTF-8 nor in the encoding that it declares ({error}); save it as UTF-8"
        ) from error
    if "\0" in text:
        raise InvalidRequest(
            f"{shown} contains a null byte, so it is not text, and files of an evaluator must be text; save it as UTF-8"
        )
    return text

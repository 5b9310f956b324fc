"""Finds a package's newest version that a runtime can load, and which imported names its wheel has.

This is a separate program, so that a slow index or a large file does not block a host. The program does not run code
from wheels.

The program's argument is a JSON file like that of `versions`, with two more keys: `range` (`<82`), and `wanted`, the
names that code reads from each module: `{"schema": ["Schema"]}`. The program prints `{"found", "version", "has",
"source_only"}`: whether the index has the package; the newest version, or null if no version has a wheel that fits; for
each module the names that the wheel has, or null if the wheel lacks the module; and whether no version has any wheel.
"""

import ast
import io
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from evaluator_host.engine.packages.pip.versions import File, fetched, limit_memory, newest_wheels, opened, with_wheels

_BLOCK: Final = 64 << 10
# maximum number of bytes to read from one wheel; its list of files and some modules take a hundredth of that
_READ_BYTES: Final = 48 << 20
_TEXT_BYTES: Final = 4 << 20  # maximum number of bytes to read from one module
# maximum number of modules to search for the names of one import: `from .core import *` makes it search others
_MODULES: Final = 400
_WHOLE_BYTES: Final = 8 << 20  # maximum size of a wheel that is fetched in one piece
_BINARY: Final = (".so", ".pyd")
_STAR: Final = re.compile(r"^\s*from\s+\S+\s+import\s+\*", re.MULTILINE)
_DYNAMIC: Final = re.compile(r"\b(?:__getattr__|globals|modules)\b")
"""Matches code by which a module may get names that do not occur in its text."""
_MODULE: Final = re.compile(r"(.+?)(?:/__init__)?(?:\.py|(?:\.[\w-]+)*\.(?:so|pyd))")


def main(given: Path) -> None:
    """Read the query from a JSON file; print the answer as JSON."""
    limit_memory()
    asked = json.loads(given.read_text("utf-8"))
    name = canonicalize_name(asked["name"])
    page = fetched(f"{asked['index'].rstrip('/')}/{name}/", asked)
    files = [] if page is None else list(page)
    allowed = SpecifierSet(asked.get("range", ""))
    wheels = newest_wheels(files, asked["runtime"], asked["machine"], asked["glibc"], allowed)
    version, has = None, {}
    if wheels is not None:
        version = str(wheels[0])
        if asked["wanted"]:
            has = _contents(wheels[1], asked)
    source_only = page is not None and not with_wheels(files)
    answer = {"found": page is not None, "version": version, "has": has, "source_only": source_only}
    sys.stdout.write(json.dumps(answer))


def _contents(file: File, asked: dict[str, Any]) -> dict[str, list[str] | None]:
    with zipfile.ZipFile(io.BufferedReader(_Remote(file.url, asked), _BLOCK)) as wheel:
        contents = Contents(wheel)
        return {module: contents.names(module, names) for module, names in asked["wanted"].items()}


class Contents:
    """The modules of a wheel."""

    def __init__(self, wheel: zipfile.ZipFile) -> None:
        self._wheel = wheel
        # the file of each module, by the module's path; None for a folder that has no `__init__` file
        self._files: dict[str, zipfile.ZipInfo | None] = {}
        self._stubs: dict[str, zipfile.ZipInfo] = {}
        self._texts: dict[str, str] = {}  # texts of modules, by file name
        self._binary: set[str] = set()  # folders with a module that is not Python
        for info in wheel.infolist():
            self._add(info, re.sub(r"^[^/]+\.data/(?:purelib|platlib)/", "", info.filename))

    def _add(self, info: zipfile.ZipInfo, path: str) -> None:
        if path.endswith(".pyi"):
            self._stubs[path.removesuffix(".pyi").removesuffix("/__init__")] = info
        found = _MODULE.fullmatch(path)
        if found is None:
            return
        above = found[1].rpartition("/")[0]
        if not path.endswith(".py"):
            self._binary.add(above)
        if path.endswith(".py") or self._files.get(found[1]) is None:
            self._files[found[1]] = info
        while above:
            self._files.setdefault(above)
            above = above.rpartition("/")[0]

    def names(self, module: str, wanted: list[str]) -> list[str] | None:
        """Return which of the wanted names a module has, or None if the wheel does not contain the module."""
        path = module.replace(".", "/")
        return [name for name in wanted if self._has(path, name)] if path in self._files else None

    def _has(self, path: str, name: str) -> bool:
        first, _, rest = name.partition(".")
        inner = f"{path}/{first}"
        if rest and inner in self._files:
            return self._has(inner, rest)
        return inner in self._files or path in self._binary or self._binds(path, first, set())

    def _binds(self, path: str, name: str, seen: set[str]) -> bool:
        info = self._files.get(path)
        if path in seen or len(seen) >= _MODULES or info is None:
            return False
        seen.add(path)
        if info.filename.endswith(_BINARY) or info.file_size > _TEXT_BYTES:
            return True  # only running the module would show its names
        text = self._text(info)
        word = re.compile(rf"\b{re.escape(name)}\b")
        if not (word.search(text) or _DYNAMIC.search(text) or _STAR.search(text)):
            return False  # this decides most modules; parsing them would take a hundred times as long
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        bound, stars = _bound(tree, path, is_package=info.filename.endswith("/__init__.py"))
        if name in bound or "sys.modules" in bound:
            return True
        if "__getattr__" in bound and word.search(text + self._stub(path)):
            return True
        if "globals" in bound and self._mentions(path.partition("/")[0], word):
            return True
        return any(self._binds(one, name, seen) for one in stars)

    def _mentions(self, top: str, word: re.Pattern[str]) -> bool:
        infos = [info for path, info in self._files.items() if path.partition("/")[0] == top and info is not None]
        sources = [one for one in infos if not one.filename.endswith(_BINARY) and one.file_size <= _TEXT_BYTES]
        return any(word.search(self._text(one)) for one in sources[:_MODULES])

    def _text(self, info: zipfile.ZipInfo) -> str:
        if info.filename not in self._texts:
            self._texts[info.filename] = self._wheel.read(info).decode("utf-8", "replace")
        return self._texts[info.filename]

    def _stub(self, path: str) -> str:
        """Return the text of a module's stub file, which also lists names that the module imports lazily."""
        info = self._stubs.get(path)
        return "" if info is None or info.file_size > _TEXT_BYTES else self._text(info)


def _bound(tree: ast.Module, path: str, *, is_package: bool) -> tuple[set[str], list[str]]:
    """Return the names that a module defines, and the paths of modules from which it imports `*`.

    If the module assigns to an item of `sys.modules`, the names include `sys.modules`. If the module calls
    `globals()`, the names include `globals`.
    """
    names, stars = set[str](), list[str]()
    left: list[ast.AST] = [*reversed(tree.body)]  # reversed, so that star imports keep their order
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names):
            stars.append(_from(node, path, is_package=is_package))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(one.asname or one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_modules(node.value):
            names.add("sys.modules")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "globals":
            names.add("globals")
        left.extend(reversed([*ast.iter_child_nodes(node)]))
    return names, stars


def _is_modules(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "modules"


def _from(node: ast.ImportFrom, path: str, *, is_package: bool) -> str:
    """Return the path of the module from which a statement imports; `path` is the importing module or package."""
    module = (node.module or "").replace(".", "/")
    if not node.level:
        return module
    above = path.split("/") if is_package else path.split("/")[:-1]
    return "/".join([*above[: len(above) - node.level + 1], *([module] if module else [])])


class _Remote(io.RawIOBase):
    """A file of the index.

    Only the parts that are read are downloaded, or the whole file if the index does not serve parts of files.
    """

    def __init__(self, url: str, asked: dict[str, Any]) -> None:
        self._url, self._asked = url, asked
        self._at, self._left = 0, _READ_BYTES
        self._whole: bytes | None = None
        self._size = 0
        self._end = self._part(f"-{_BLOCK}")
        if self._whole is None:
            self._ends_at = self._size - len(self._end)
            if self._ends_at > 0 and self._size <= _WHOLE_BYTES:
                self._whole = self._part(f"0-{self._size - 1}")

    def _part(self, span: str) -> bytes:
        with opened(self._url, self._asked, {"Range": f"bytes={span}"}) as answer:
            body: bytes = answer.read(self._left + 1)
            self._left -= len(body)
            if self._left < 0:
                raise OSError(
                    "the wheel is too large to examine, because the host would have to read over "
                    f"{_READ_BYTES >> 20} MB"
                )
            if answer.status == 206:
                self._size = int(str(answer.headers["Content-Range"]).rpartition("/")[2])
            else:
                self._whole, self._size = body, len(body)
            return body

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        if self._whole is not None:
            part = self._whole[self._at : self._at + wanted]
        elif self._at >= self._ends_at:
            part = self._end[self._at - self._ends_at :][:wanted]
        else:
            part = self._part(f"{self._at}-{self._at + wanted - 1}")[:wanted]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

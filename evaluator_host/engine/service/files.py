"""Checks the files of an evaluator: their paths, and whether they suit the language and fit into the sandbox."""

import re
from collections.abc import Iterator
from typing import Final

from evaluator_host.engine.packages.suggest import pin_for
from evaluator_host.types.errors import Problem
from evaluator_host.types.evaluator import Evaluator, Language, Policy
from evaluator_host.types.outcome import MissingImport

OWN_PATHS: Final = {
    Language.PYTHON: "evaluator.py",
    Language.JAVASCRIPT: "evaluator.js",
    Language.TYPESCRIPT: "evaluator.ts",
}
"""Default path of the code among its files, by language."""
SUFFIXES: Final = {
    Language.PYTHON: (".py",),
    Language.JAVASCRIPT: (".js", ".mjs", ".cjs", ".jsx"),
    Language.TYPESCRIPT: (".ts", ".mts", ".cts", ".tsx"),
}
_FOLDERS: Final = frozenset({"app", "apps", "lib", "packages", "server", "shared", "src", "utils"})
"""Folders from whose names scripts import files of their own, if the configuration says so; npm has packages of these
names, too, but these are hardly ever meant."""
_PATH_CHARACTERS: Final = 240
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_DEPTH: Final = 16
_INSTEAD: Final = "use a path from the common root of the files, with slashes: helpers/text.py"


def file_problems(evaluator: Evaluator) -> Iterator[Problem]:
    """Yield a problem for each reason why an evaluator's files cannot be used."""
    own = own_path(evaluator)
    if evaluator.path is not None:
        yield from _path_problems("evaluator.path", own)
        if not own.endswith(SUFFIXES[evaluator.language]):
            ends = ", ".join(SUFFIXES[evaluator.language])
            problem = f"{own} does not have the suffix of a file in {evaluator.language}"
            yield Problem("evaluator.path", problem, f"the path of the code must end in {ends}")
    yield from _data_problems(evaluator)
    if not evaluator.files:
        return
    if evaluator.policy is Policy.RESTRICTED:
        yield Problem(
            "evaluator.files",
            "code under the restricted policy cannot have further files",
            "set `policy` to none, or send only one file",
        )
    folders = {above for path in (*evaluator.files, own) for above in _above(path)}
    for path, text in evaluator.files.items():
        field = f"evaluator.files.{path[:_PATH_CHARACTERS]}"
        yield from _path_problems(field, path)
        if path == own:
            yield Problem(field, "this is the path of the code itself", "leave it out of the files, or set `path`")
        if path in folders or any(above in evaluator.data for above in _above(path)):
            yield Problem(field, "this path is both a file and the folder of another file", "rename one of them")
        if not is_text(text):
            yield Problem(
                field, "the text contains half of a surrogate pair, which is not a character", "send it as UTF-8"
            )
    yield from _size_problems(evaluator)


def _data_problems(evaluator: Evaluator) -> Iterator[Problem]:
    folders = {above for path in (*evaluator.data, *evaluator.files) for above in _above(path)}
    for path, digest in evaluator.data.items():
        field = f"evaluator.data.{path[:_PATH_CHARACTERS]}"
        yield from _path_problems(field, path)
        if path in evaluator.files or path in folders:
            yield Problem(field, "another file has this path, or is below it", "rename one of them")
        if any(above in evaluator.files or above in evaluator.data for above in _above(path)):
            yield Problem(field, "this path is below another file", "rename one of them")
        if _DIGEST.fullmatch(digest) is None:
            hint = "upload the file with POST /v1/data, and give the digest that it returns: sha256:9f86d0…"
            yield Problem(field, f"{digest[:80]!r} is not a digest", hint)


def own_path(evaluator: Evaluator) -> str:
    """Return the path of an evaluator's code among its files; by default `evaluator.py` (or `.js`, `.ts`)."""
    return OWN_PATHS[evaluator.language] if evaluator.path is None else evaluator.path


def path_of_module(evaluator: Evaluator, missing: MissingImport) -> str | None:
    """Return the path at which an evaluator's files would contain a missing module; None for a module of a package."""
    found = _path_of_module(evaluator, missing)
    return found if found is None or evaluator.language is Language.PYTHON else _with_suffix(found, evaluator.language)


def _path_of_module(evaluator: Evaluator, missing: MissingImport) -> str | None:
    module, importer = missing.module, missing.file or own_path(evaluator)
    if evaluator.language is not Language.PYTHON:
        if module.partition("/")[0] in _FOLDERS:
            return module
        relative = module.startswith(("./", "../")) or module in {".", ".."}
        return _from(importer, module) if relative else None
    top = module.partition(".")[0]
    own = {path.partition("/")[0].removesuffix(".py") for path in (*evaluator.files, own_path(evaluator))}
    return missing.path or module_path(module) if top in own or pin_for(module, Language.PYTHON) is None else None


def _with_suffix(path: str, language: Language) -> str:
    """Return the path of a module's source: TypeScript may import `own.ts` as `own` or `own.js`."""
    source = path.removesuffix(".js") if language is Language.TYPESCRIPT else path
    known = (*SUFFIXES[language], *SUFFIXES[Language.JAVASCRIPT], ".json")
    return source if source.endswith(known) else source + SUFFIXES[language][0]


def module_path(module: str) -> str:
    """Return the path at which an evaluator's files would contain a Python module."""
    return f"{module.replace('.', '/')}.py"


def _from(importer: str, specifier: str) -> str:
    """Convert a relative import in the file `importer` to a path from the root of the files."""
    parts = importer.split("/")[:-1]
    for part in specifier.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def _path_problems(field: str, path: str) -> Iterator[Problem]:
    parts = path.split("/")
    if len(path) > _PATH_CHARACTERS or len(parts) > _DEPTH:
        yield Problem(field, f"a path may have at most {_PATH_CHARACTERS} characters and {_DEPTH} parts", _INSTEAD)
    elif not path.isprintable() or "\\" in path or any(part in {"", ".", ".."} for part in parts):
        yield Problem(field, "this is not a relative path within the files", _INSTEAD)
    elif "node_modules" in parts:
        yield Problem(field, "installed packages are not sent with the code", "pin them in `packages`: lodash@4.17.21")


def _size_problems(evaluator: Evaluator) -> Iterator[Problem]:
    size = sum(len(text.encode("utf-8", "replace")) for text in evaluator.files.values())
    most = (evaluator.limits.disk_mb << 20) // 2
    if size > most:
        problem = f"the files take {size >> 10} KB, more than half of limits.disk_mb, the disk space of a row"
        yield Problem("evaluator.files", problem, "raise limits.disk_mb, or send fewer files")


def _above(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def is_text(text: str) -> bool:
    """Return whether a string can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

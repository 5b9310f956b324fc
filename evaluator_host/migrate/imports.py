"""Imports evaluators and rows from files of another platform, or from a module with several evaluators.

`read_import` finds the evaluators and rows; it runs in a limited process. `run_import` checks each evaluator in a
sandbox and stores it. Rows are stored as the limited process sends them, because decoding them would keep the event
loop busy.
"""

import asyncio
import posixpath
import re
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from evaluator_host.engine.contracts.imports import SUFFIXES, Found, FoundEvaluator, FreeNames, LeftOut, SentFiles, slug
from evaluator_host.engine.contracts.row_documents import CRITERIA
from evaluator_host.engine.contracts.yaml_documents import read_yaml
from evaluator_host.engine.packages.own_files import MOST_FILES, imported_names
from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.packages.scripts import module_specifiers, read_script
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.limited_process import CallLimits, LimitedProcesses
from evaluator_host.migrate.slices import find_slices, listed_elsewhere
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry, VersionWish
from evaluator_host.platform.evaluators.table import NameFacts
from evaluator_host.platform.plugins import plugins
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound, Problem
from evaluator_host.types.evaluator import AUTO_PACKAGES, Contract, Evaluator, EvaluatorSettings, Language
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import InvalidJson, decode_json, decode_large, encode_json
from evaluator_host.types.migrations import Import, ImportedDataset, ImportedEvaluator, ImportRemark

_LIMITS: Final = CallLimits(cpu_s=30, memory_mb=1024)
_MOST_EVALUATORS: Final = 200
_SHOWN_CHARS: Final = 80
_NOT_OF_FILE: Final = (
    "the file lists this evaluator but does not define it: write a function that calls it, or store the whole file"
)
_MOST_LEFT_OUT: Final = 1000  # maximum number of omitted parts that a report names
_MOST_COLUMNS: Final = 1000  # maximum number of columns of a data set that a report names
_DOCUMENTS: Final = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
_MODULES: Final = "module"
_SCRIPTS: Final = ("", ".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".cjs", ".json", "/index.ts", "/index.js")
_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ImportWish:
    """A request to import: the files, and how to read them.

    Attributes:
      path: The file to import, among those sent.
      name: Prefix for the names of the stored objects. None for the file's own name.
      platform: The platform from which the file comes. None to find out from the file.
      contract: Contract of the evaluators in a module.
      packages: Exact package versions that every evaluator gets. `auto` adds the packages that an evaluator imports.
      models: Registered models for evaluators that call models, such as `judge-small` or `embedding=embed-small`.
      replace: Whether to add versions to existing evaluators, and to replace an existing data set.
      force: Whether to store evaluators that do not load.
      dry_run: Whether to store nothing.
    """

    path: str
    name: str | None = None
    platform: str | None = None
    contract: Contract = Contract.AUTO
    packages: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    replace: bool = False
    force: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that an import has found.

    Attributes:
      count: Number of the rows.
      columns: Names of the rows' inputs.
      bytes: Length of the rows as lines of JSON.
    """

    name: str
    where: str
    count: int
    columns: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class _Read:
    """The result of `encoded_import`, decoded except for the rows."""

    found: Found
    files: list[dict[str, str]]
    missing: list[str]
    rows: list[_Rows]


_READ: Final = Adapter(_Read).read

# Reading


def read_import(texts: bytes, path: str, name: str | None, platform: str | None) -> dict[str, Any]:
    """Read a file. Return `{"found", "files", "missing"}`: a `Found`, each evaluator's files, the missing files' paths.

    Args:
      texts: JSON object with the contents of all files, keyed by path.
      path: The file to import.
      name: Prefix for the names of the evaluators and rows. None for the file's own name.
      platform: The platform from which the file comes. None to find out from the file.

    Raises:
      InvalidRequest: the file cannot be read, or comes from no known platform.
    """
    files: dict[str, str] = decode_json(texts)
    if path not in files:
        problem = Problem("path", "there is no such file")
        raise InvalidRequest(f"the import does not contain the file {path}", problems=(problem,))
    missing: set[str] = set()
    suffix = posixpath.splitext(path)[1]
    folder, named = posixpath.dirname(path), name or usual_name(path)
    if suffix.lower() in SUFFIXES:
        found = _read_module(files[path], path, named)
    elif suffix.lower() in _DOCUMENTS:
        document = _document(files[path], suffix.lower(), path)
        found = _format_of(document, platform, path).read(document, SentFiles(files, folder, missing), named)
    else:
        known = " ".join((*_DOCUMENTS, *SUFFIXES))
        raise InvalidRequest(f"cannot import {path}, because it ends in none of {known}; upload rows as a data set")
    own = [_own_files(one, files, missing) for one in found.evaluators]
    return {"found": asdict(found), "files": own, "missing": sorted(missing - files.keys())[:MOST_FILES]}


def usual_name(path: str) -> str:
    """Return the default name of an import: the file's name without suffix. For `….config`, use the folder's name."""
    stem, folder = posixpath.splitext(posixpath.basename(path))[0], posixpath.basename(posixpath.dirname(path))
    return (folder or stem) if stem.lower().endswith("config") else stem


def _document(text: str, suffix: str, path: str) -> Any:
    try:
        if suffix in (".jsonl", ".ndjson"):
            return [decode_json(line.encode()) for line in text.splitlines() if line.strip()]
        return decode_json(text.encode()) if suffix == ".json" else read_yaml(text)
    except InvalidJson as error:
        raise InvalidRequest(f"{path} is not valid JSON: {error}") from error
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.detail}") from error


def _format_of(document: Any, platform: str | None, path: str) -> Any:
    formats = {name: one.imports.load() for name, one in plugins().items() if one.imports is not None}
    if platform is not None:
        if platform not in formats:
            raise InvalidRequest(f"the host cannot import from {platform!r}; it can import from {', '.join(formats)}")
        return formats[platform]
    found = next((one for one in formats.values() if one.recognises(document)), None)
    if found is None:
        raise InvalidRequest(
            f"{path} is neither a configuration nor an export of {', '.join(formats)}; "
            "say which platform it comes from, or upload plain rows: evaluator-host datasets upload"
        )
    return found


def encoded_import(texts: bytes, path: str, name: str | None, platform: str | None) -> bytes:
    """Return the result of `read_import` as a line of JSON, and then the rows of each data set as lines of JSON.

    Raises:
      InvalidRequest: as in `read_import`, or there are too many evaluators.
    """
    read = read_import(texts, path, name, platform)
    found = read["found"]
    if len(found["evaluators"]) > _MOST_EVALUATORS:
        raise InvalidRequest(f"{path} has over {_MOST_EVALUATORS} evaluators; import them in parts")
    left = found["left_out"]
    if len(left) > _MOST_LEFT_OUT:
        more = LeftOut(path, f"{len(left) - _MOST_LEFT_OUT} more parts are not imported and not named in this report")
        found["left_out"] = [*left[:_MOST_LEFT_OUT], asdict(more)]
    lines, rows = [], []
    for one in found.pop("rows"):
        records = one["records"]
        lines.append(b"".join(encode_json(record) + b"\n" for record in records))
        columns = tuple(dict.fromkeys(name for record in records for name in record.get("inputs", {})))
        rows.append(_Rows(one["name"], one["where"], len(records), columns[:_MOST_COLUMNS], len(lines[-1])))
    return b"".join((encode_json({**read, "rows": rows}), b"\n", *lines))


def _read_module(code: str, path: str, name: str) -> Found:
    """Return the evaluators of a module.

    Each is a function or class that no other function or class uses, together with everything that it refers to.
    """
    language = SUFFIXES[posixpath.splitext(path)[1].lower()]
    script = read_script(code, language, parse=parse)
    pins = tuple(pin.text for pin in script.pins)
    slices = find_slices(script.source, language, _MOST_EVALUATORS)
    found, names = Found(_MODULES), FreeNames()
    if len(slices) < 2:
        found.evaluators.append(FoundEvaluator(slug(name), script.source, path, language, file=path, packages=pins))
    for one in slices if len(slices) > 1 else ():
        entry = one["entry"]
        if entry == "main" and "__main__" in code:
            found.leave_out(entry, "this function starts the program, and is not an evaluator", one["code"])
            continue
        made = FoundEvaluator(names.give(name, entry), one["code"], entry, language, file=path, entry=entry)
        found.evaluators.append(replace(made, packages=pins))
    for text in listed_elsewhere(script.source, language) if len(slices) > 1 else ():
        found.leave_out(text[:_SHOWN_CHARS], _NOT_OF_FILE, text)
    return found


def _own_files(one: FoundEvaluator, files: Mapping[str, str], missing: set[str]) -> dict[str, str]:
    """Return the sent files that an evaluator imports, directly or through other files.

    If an imported file was not sent, its possible paths are added to `missing`.
    """
    if one.file is None:
        return {}
    followed: dict[str, str] = {}
    left = [(one.file, one.code)]
    while left and len(followed) <= MOST_FILES:
        path, code = left.pop()
        candidates = _modules(path, code) if one.language is Language.PYTHON else _scripts(path, code)
        for choice in candidates:
            known = next((at for at in choice if at in files), None)
            if known is None:
                missing.update(choice)
            elif known not in followed and known != one.file:
                followed[known] = files[known]
                left.append((known, files[known]))
    return followed


def _modules(path: str, code: str) -> Iterable[list[str]]:
    """For each module that a Python program imports, and for each parent package, yield the possible paths."""
    folder = posixpath.dirname(path)
    for name in imported_names(code, folder.replace("/", ".")):
        parts = name.split(".")
        if parts[0] in sys.stdlib_module_names:
            continue
        for count in range(1, len(parts) + 1):
            below = "/".join(parts[:count])
            bases = dict.fromkeys(("", "src/", f"{folder}/" if folder else ""))
            yield [f"{base}{below}{end}" for base in bases for end in ("/__init__.py", ".py")]


def _scripts(path: str, code: str) -> Iterable[list[str]]:
    """For each relative import in a JavaScript or TypeScript program, yield the possible paths of the file."""
    for specifier in module_specifiers(code):
        if specifier.text.startswith("."):
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), specifier.text))
            if not wanted.startswith(".."):
                without = re.sub(r"\.(?:js|mjs|cjs)\Z", "", wanted)
                yield [*(f"{wanted}{end}" for end in _SCRIPTS), *(f"{without}{end}" for end in _SCRIPTS[1:4])]


# Storing


@dataclass(frozen=True, slots=True)
class ImportContext:
    """The services that an import uses, and the workspace and key for which it runs."""

    service: Service
    processes: LimitedProcesses
    evaluators: EvaluatorRegistry
    datasets: DatasetService
    workspace: str
    key_id: str | None = None


async def missing_files(
    processes: LimitedProcesses, workspace: str, texts: Mapping[str, str], wish: ImportWish
) -> list[str]:
    """Return the paths (or patterns) of further files that an import may need, besides those that were sent."""
    return (await _read(processes, workspace, texts, wish))[0].missing


async def _read(
    processes: LimitedProcesses, workspace: str, texts: Mapping[str, str], wish: ImportWish
) -> tuple[_Read, memoryview]:
    """Find evaluators and rows in a limited process. Return both, the rows as lines of JSON."""
    given = await asyncio.to_thread(encode_json, texts)
    body: bytes = await processes.call(
        workspace, encoded_import, given, wish.path, wish.name, wish.platform, limits=_LIMITS
    )
    end = body.index(b"\n")
    return _READ(await decode_large(body[:end])), memoryview(body)[end + 1 :]


async def run_import(context: ImportContext, texts: Mapping[str, str], wish: ImportWish) -> Import:
    """Read files, and store the evaluators and rows in them. An evaluator that does not load is left out.

    Raises:
      InvalidRequest: the file cannot be read, comes from no known platform, or has nothing to import.
      NameTaken: a name is in use, and `replace` is not set, so nothing is stored.
      HostError: something cannot be stored, see `EvaluatorRegistry.create_evaluator`, `DatasetService.add_dataset`.
    """
    read, lines = await _read(context.processes, context.workspace, texts, wish)
    found = read.found
    taken = await _taken(context, read)
    if taken and not wish.replace and not wish.dry_run:
        raise NameTaken(
            f"these names are taken: {', '.join(sorted(taken))}; import under another name, or replace what is there"
        )
    left = [ImportRemark(one.where, one.reason, one.value) for one in found.left_out]
    made: list[ImportedEvaluator] = []
    for one, files in zip(found.evaluators, read.files, strict=True):
        lacking = [name for name in one.asks if name not in _granted(wish)]
        if lacking:
            left.append(ImportRemark(one.where, _lacks(lacking), one.code))
            continue
        stored = await _store_evaluator(context, one, _evaluator(one, files, wish), wish)
        if isinstance(stored, ImportRemark):
            left.append(stored)
        else:
            made.append(stored)
    datasets = []
    omitted = {one.name for one in found.evaluators} - {one.name for one in made}
    for rows in read.rows:
        content, lines = lines[: rows.bytes], lines[rows.bytes :]
        if omitted:
            content = await asyncio.to_thread(_without_criteria, content, omitted)
        datasets.append(await _store_rows(context, rows, content, wish))
    return Import(found.platform, wish.dry_run, tuple(made), tuple(datasets), tuple(left))


async def _taken(context: ImportContext, read: _Read) -> set[str]:
    """Return which names in an import are already in use for evaluators or data sets."""
    evaluators = set(await context.evaluators.store.names(context.workspace))
    datasets = set(await context.datasets.store.names(context.workspace))
    return ({one.name for one in read.found.evaluators} & evaluators) | ({one.name for one in read.rows} & datasets)


def _granted(wish: ImportWish) -> dict[str, str]:
    """Return the registered model for each name that evaluators call; without `NAME=`, the name is `judge`."""
    named = (one if "=" in one else f"judge={one}" for one in wish.models)
    return {one.partition("=")[0]: one for one in named}


def _lacks(names: Sequence[str]) -> str:
    options = " and ".join("--model NAME" if one == "judge" else f"--model {one}=NAME" for one in names)
    return f"the evaluator calls a model: import it with the name of a registered model, {options} (`models` over HTTP)"


def _evaluator(one: FoundEvaluator, files: dict[str, str], wish: ImportWish) -> Evaluator:
    packages = dict.fromkeys((*one.packages, *wish.packages))
    auto = [AUTO_PACKAGES] if packages.pop(AUTO_PACKAGES, False) is None else []
    return Evaluator(
        one.code,
        language=one.language,
        contract=one.contract if one.contract is not Contract.AUTO else wish.contract,
        packages=(*auto, *sorted(pin.text for pin in parse(list(packages), one.language))),
        threshold=one.threshold,
        settings=EvaluatorSettings(entry=one.entry, config=one.config),
        models=tuple(_granted(wish)[name] for name in one.asks),
        files=files,
        path=one.file if files else None,
    )


async def _store_evaluator(
    context: ImportContext, one: FoundEvaluator, evaluator: Evaluator, wish: ImportWish
) -> ImportedEvaluator | ImportRemark:
    """Store an evaluator, or only check it. If it does not load, return why it is left out."""
    try:
        evaluator = await context.service.pinned(evaluator, caller=Caller(context.workspace))
        if wish.dry_run:
            report = await context.service.check(evaluator, caller=Caller(context.workspace))
            if report.problems and not wish.force:
                return ImportRemark(one.where, _why(one, report.problems[0].message), one.code)
            contract = None if report.contract is None else Contract(report.contract)
            return ImportedEvaluator(one.name, None, one.where, contract, _body(evaluator))
        version, contract = await _stored(context, one, evaluator, wish)
    except InvalidRequest as error:
        return ImportRemark(one.where, _why(one, error.detail), one.code)
    return ImportedEvaluator(one.name, version, one.where, contract, _body(evaluator))


def _body(evaluator: Evaluator) -> dict[str, Any]:
    return {name: one for name, one in asdict(evaluator).items() if name not in ("name", "version")}


def _why(one: FoundEvaluator, message: str) -> str:
    return f"{one.name}: {message.removeprefix('the evaluator does not load: ')}"


async def _stored(
    context: ImportContext, one: FoundEvaluator, evaluator: Evaluator, wish: ImportWish
) -> tuple[int, Contract | None]:
    registry, how = context.evaluators, VersionWish(force=wish.force, key_id=context.key_id)
    if wish.replace:
        about = NameFacts(sampling=one.sampling)
        try:
            report = await registry.update_evaluator(context.workspace, one.name, evaluator, replace(how, about=about))
        except NotFound:
            pass
        else:
            return report.version, report.contract
    about = NameFacts(one.description, one.sampling)
    report = await registry.create_evaluator(context.workspace, one.name, evaluator, replace(how, about=about))
    return report.version, report.contract


async def _store_rows(context: ImportContext, rows: _Rows, lines: memoryview, wish: ImportWish) -> ImportedDataset:
    if not wish.dry_run:
        await context.datasets.add_dataset(
            context.workspace, rows.name, _pieces(lines), Format.JSONL, replace=wish.replace
        )
    return ImportedDataset(rows.name, rows.count, rows.where, rows.columns)


def _without_criteria(lines: memoryview, omitted: AbstractSet[str]) -> memoryview:
    """From the rows, remove the criteria of evaluators that were not imported, because nothing reads these criteria."""
    made = bytearray()
    for line in bytes(lines).splitlines():
        record = decode_json(line)
        if isinstance(given := record.get(CRITERIA), dict):
            record[CRITERIA] = {name: one for name, one in given.items() if name not in omitted}
        made += encode_json(record) + b"\n"
    return memoryview(made)


async def _pieces(lines: memoryview) -> AsyncIterator[bytes]:
    for start in range(0, len(lines), _PIECE_BYTES):
        yield bytes(lines[start : start + _PIECE_BYTES])

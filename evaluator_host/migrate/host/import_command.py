"""`import`: stores evaluators and rows from a platform's configuration or export, or from a module with evaluators."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.packages.own_files import find_project, is_sent
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE
from evaluator_host.engine.system.files import read_utf8
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.migrate.imports import ImportContext, ImportWish, missing_files, run_import, usual_name
from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.datasets.table import Datasets
from evaluator_host.platform.evaluators.evaluation_service import open_evaluation_service
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry
from evaluator_host.platform.evaluators.table import Evaluators
from evaluator_host.platform.store.opening import open_store
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, out, plain, print_json, table
from evaluator_host.platform.terminal.remote_host import host
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract
from evaluator_host.types.migrations import Import

_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 24 << 20  # maximum total size of the files; a request may have 32 MB by default
_ROUNDS: Final = 20  # maximum number of searches for further files to which the files found so far refer


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A configuration or an export (.yaml .json .jsonl), or a module with evaluators."
        ),
    ],
    *,
    name: Annotated[
        str | None, typer.Option(help="Prefix of each stored name.", show_default="the name of the file or folder")
    ] = None,
    platform: Annotated[
        str | None, typer.Option("--from", help="Platform that the file comes from.", show_default="recognised")
    ] = None,
    contract: options.ContractOption = Contract.AUTO,
    package: options.PackageOption = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Registered model for judges, or embedding=NAME for embeddings. Repeatable."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Add versions to existing evaluators, and replace the existing data set.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Also store evaluators that do not load.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be stored; store nothing.")] = False,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Import evaluators and rows of another platform. Exit 1 when nothing was imported."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0)
    options.require_file(file)
    root = find_project(file).root.resolve()
    path = file.resolve().relative_to(root).as_posix()
    wish = ImportWish(
        path,
        name or usual_name(file.resolve().as_posix()),
        platform,
        contract,
        tuple(package or ()),
        tuple(model or ()),
        replace=replace,
        force=force,
        dry_run=dry_run,
    )
    found = run_async(lambda: _import(wish, root, settings, url))
    if as_json:
        print_json(found)
    else:
        _print(found)
    raise typer.Exit(0 if found.evaluators or found.datasets else 1)


async def _import(wish: ImportWish, root: Path, settings: Settings, url: str | None) -> Import:
    async with LimitedProcesses() as processes:
        texts = await _collected(processes, wish, root)
        if url is not None:
            return _remote(wish, texts, url)
        async with open_evaluation_service(settings, None) as service, open_store(settings) as store:
            if not isinstance(service, Service):
                raise TypeError("without a URL the service must run in this process")
            datasets = DatasetService(
                Datasets(store.database),
                RowsFolder(settings.data_dir / "datasets"),
                processes,
                store.usage,
                max_bytes=settings.datasets_mb << 20,
                max_row_bytes=settings.body_mb << 20,
            )
            registry = EvaluatorRegistry(service, Evaluators(store.database), store.usage)
            context = ImportContext(service, processes, registry, datasets, DEFAULT_WORKSPACE)
            return await run_import(context, texts, wish)


def _remote(wish: ImportWish, texts: dict[str, str], url: str) -> Import:
    given: dict[str, Any] = {
        "name": wish.name, "platform": wish.platform, "contract": wish.contract, "packages": wish.packages,
        "models": wish.models, "replace": wish.replace, "force": wish.force, "dry_run": wish.dry_run,
    }  # fmt: skip
    with host(url) as client:
        return client.import_files(texts, wish.path, **given)


async def _collected(processes: LimitedProcesses, wish: ImportWish, root: Path) -> dict[str, str]:
    """Return the contents of the file, and of all files in its project to which it refers, keyed by path."""
    texts = {wish.path: read_utf8(root / wish.path)}
    for _ in range(_ROUNDS):
        before = len(texts)
        for wanted in await missing_files(processes, DEFAULT_WORKSPACE, texts, wish):
            for path in _existing(root, wanted):
                texts.setdefault(path.relative_to(root).as_posix(), read_utf8(path))
                if len(texts) > _MOST_FILES or sum(map(len, texts.values())) > _MOST_BYTES:
                    raise InvalidRequest(
                        f"{wish.path} refers to more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MB; "
                        "split the file, and import the parts"
                    )
        if len(texts) == before:
            break
    return texts


def _existing(root: Path, wanted: str) -> Iterator[Path]:
    """Yield the files for a path, a pattern or a folder of tests. Files outside the project are left out."""
    if wanted.startswith(("/", "..")):
        return
    paths = root.glob(wanted) if "*" in wanted else [root / wanted]
    for path in islice(paths, _MOST_FILES):
        real = path.resolve()
        if path.is_file() and real.is_relative_to(root) and all(is_sent(root / one) for one in _folders(path, root)):
            yield path


def _folders(path: Path, root: Path) -> list[Path]:
    return [one for one in path.relative_to(root).parents if one != Path()]


def _print(found: Import) -> None:
    """Print the stored objects to standard output, and the parts that were left out to standard error."""
    header = ("EVALUATOR", "CONTRACT", "LANGUAGE", "FROM")
    rows = [
        (_label(one.name, one.version), one.contract, one.evaluator["language"], one.where) for one in found.evaluators
    ]
    if rows:
        out.print(table(header, rows))
    for data in found.datasets:
        out.print(plain(f"data set {data.name}: {data.rows} rows of {data.where}, inputs {', '.join(data.columns)}"))
    reasons: dict[str, list[str]] = {}
    for left in found.left_out:
        reasons.setdefault(left.reason, []).append(left.where)
    for reason, places in reasons.items():
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        err.print(plain(f"not imported: {', '.join(places[:5])}{more}: {reason}"))
    if found.dry_run:
        err.print(f"nothing was stored; this is what an import from {found.platform} would make")


def _label(name: str, version: int | None) -> str:
    return name if version is None else f"{name}@{version}"

"""`migrate`: rewrites the legacy evaluators in a file or folder, and proves that their scores stay the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.packages.scripts import read_script
from evaluator_host.engine.system.files import writing
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.migrate.migrate import MigrationContext
from evaluator_host.migrate.migrate import migrate as rewrite_and_prove
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.datasets.rows import RowFile
from evaluator_host.platform.evaluators.evaluation_service import evaluate_in_order, open_evaluation_service, prepare
from evaluator_host.platform.evaluators.evaluator_files import LoadedEvaluator, read_evaluator
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, out, plain, print_json, table
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, Row
from evaluator_host.types.migrations import Migration, MigrationStatus

_LEFT_OUT: Final = frozenset(("node_modules", "__pycache__", "venv", "dist", "build"))
_FOUND: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts")


class _Signature(StrEnum):
    EVALUATE = Contract.EVALUATE.value
    MAIN = Contract.MAIN.value


_PathArgument = Annotated[Path, typer.Argument(metavar="PATH", help="An evaluator, or a folder of evaluators.")]


@dataclass(frozen=True, slots=True)
class Migrated:
    """One file and the result of migrating its evaluator."""

    file: Path
    migration: Migration
    written: bool

    @property
    def is_fine(self) -> bool:
        """Return whether the file needs no manual work after the migration."""
        nothing = self.migration.status is MigrationStatus.NO_EVALUATOR
        return nothing or self.migration.is_done or self.migration.is_proven


@dataclass(frozen=True, slots=True)
class MigratePlan:
    """The options of one `migrate` command."""

    given: tuple[tuple[Path, LoadedEvaluator], ...]
    rows: tuple[Row, ...] | None
    write: bool
    force: bool
    shown: bool
    to: Contract
    adapt: bool


def migrate(
    path: _PathArgument,
    *,
    data: Annotated[
        Path | None, typer.Option(help="Rows on which to compare old and new code. Default: generated rows.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=COLUMN", help="Column to use for a field of the row. Repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows to read.")] = 1000,
    write: Annotated[
        bool, typer.Option("--write", help="Write the new code to the file, if it is proven to score the same.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --write: write the new code even without this proof.")
    ] = False,
    to: Annotated[_Signature, typer.Option(help="New signature.")] = _Signature.EVALUATE,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="Keep code that cannot be rewritten; add a function that calls it.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print the changes as a diff.")] = False,
    language: options.LanguageOption = None,
    entry: options.EntryOption = None,
    correct_answer_key: Annotated[str | None, typer.Option(help="Name of the input passed as correct_answer.")] = None,
    package: options.PackageOption = None,
    timeout_s: options.TimeoutOption = None,
    memory_mb: options.MemoryOption = None,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Rewrite legacy evaluators and main() to evaluate(inputs, outputs, trace). Exit 1 when one needs manual work."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0)
    files = list(_files(path))
    if adapt and to is _Signature.MAIN:
        raise InvalidRequest(
            "--adapt adds a function named evaluate, so it does not work with --to main; leave one of them out"
        )
    if force and not write:
        raise InvalidRequest("--force works only with --write; add --write, or leave out --force")
    fields: dict[str, Any] = {
        "alone": True,
        "packages": package,
        "entry": entry,
        "correct_answer_key": correct_answer_key,
        "timeout_s": timeout_s,
        "memory_mb": memory_mb,
    }
    plan = MigratePlan(
        given=tuple((file, read_evaluator(file, language, host=settings, **fields)) for file in files),
        rows=None if data is None else _rows(data, Mapping.parse(map_ or []), limit, settings),
        write=write,
        force=force,
        shown=not as_json,
        to=Contract(to),
        adapt=adapt,
    )
    found = run_async(lambda: _migrate(plan, settings, url))
    if as_json:
        print_json([{"file": str(one.file), "written": one.written, **_fields(one.migration)} for one in found])
    else:
        _print(found, diff=diff)
    raise typer.Exit(0 if all(one.is_fine for one in found) else 1)


def _files(path: Path) -> Iterator[Path]:
    """Yield the file at a path, or the Python, JavaScript and TypeScript files in the folder at the path.

    Raises:
      InvalidRequest: there is no such file, or the folder contains no file of these kinds.
    """
    if not path.is_dir():
        options.require_file(path)
        yield path
        return
    found = [one for one in sorted(path.rglob("*")) if one.suffix.lower() in _FOUND and _is_wanted(one, path)]
    if not found:
        raise InvalidRequest(f"there is no evaluator in {path}: no file ends in {' '.join(_FOUND)}")
    yield from found


def _is_wanted(file: Path, folder: Path) -> bool:
    parts = file.relative_to(folder).parts
    return file.is_file() and not any(part in _LEFT_OUT or part.startswith(".") for part in parts)


def _rows(data: Path, mapping: Mapping, limit: int, settings: Settings) -> tuple[Row, ...]:
    def report(line: int, message: str) -> None:
        err.print(plain(f"{data}:{line}: {message}; the line is left out"))

    rows = RowFile(data, mapping, max_row_bytes=settings.body_mb << 20, limit=limit, report=report)
    found = tuple(one.row for one in rows)
    if not found:
        raise InvalidRequest(f"there are no rows in {data}; give a file with at least one row")
    return found


async def _migrate(plan: MigratePlan, settings: Settings, url: str | None) -> list[Migrated]:
    found = []
    async with LimitedProcesses() as processes, open_evaluation_service(settings, url) as target:
        context = MigrationContext(partial(evaluate_in_order, target), processes)
        for file, given in plan.given:
            await prepare(target, given, shown=plan.shown)
            text = file.read_bytes().decode()
            evaluator = Evaluator(
                text, given.evaluator.language, packages=given.evaluator.packages,
                settings=given.evaluator.settings, limits=given.evaluator.limits,
            )  # fmt: skip
            migration = await rewrite_and_prove(
                evaluator, plan.rows, context=context, to=plan.to, adapt=plan.adapt,
                name=file.name, as_run=partial(_as_run, evaluator),
            )  # fmt: skip
            found.append(_written(Migrated(file, migration, written=False), plan))
    return found


def _as_run(evaluator: Evaluator, code: str) -> str:
    """Convert a file's code to code that runs here: remove `npm:` and versions from module names."""
    return read_script(code, evaluator.language).source


def _written(one: Migrated, plan: MigratePlan) -> Migrated:
    if not (plan.write and one.migration.has_new_code and (one.is_fine or plan.force)):
        return one
    with writing(one.file):
        one.file.write_bytes(one.migration.code.encode())
    return Migrated(one.file, one.migration, written=True)


def _print(found: list[Migrated], *, diff: bool) -> None:
    if diff:
        for one in found:
            typer.echo(plain(one.migration.diff), nl=False)
    header = ("FILE", "STATUS", "CHANGES", "TO LOOK AT", "PROOF")
    out.print(table(header, [_row(one) for one in found]))
    for one in found:
        if one.migration.status is MigrationStatus.NO_EVALUATOR:
            continue
        if (contract := one.migration.contract) is not None:
            err.print(plain(f"{one.file} runs as pasted, under the contract {contract}; there is nothing to migrate"))
        for remark in one.migration.unresolved:
            place = f"{one.file}:{remark.line}" if remark.line is not None else str(one.file)
            err.print(plain(f"{place}: {remark.message}"))


def _row(one: Migrated) -> tuple[object, ...]:
    migration = one.migration
    status = "written" if one.written else migration.status.value.replace("_", " ")
    proof = migration.proof.text if migration.proof is not None else None
    if not migration.has_new_code:
        return (one.file, status, None, None, proof)
    return (one.file, status, len(migration.changes), len(migration.unresolved) or None, proof)


def _fields(migration: Migration) -> dict[str, Any]:
    names = ("status", "language", "code", "diff", "changes", "unresolved", "proof", "contract")
    return {name: getattr(migration, name) for name in names}

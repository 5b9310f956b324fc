"""`packages`: build, list, show, verify, prune, remove, push and pull installed package sets."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from rich.text import Text

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.environments.record import EnvironmentReport
from evaluator_host.engine.environments.store import Environments
from evaluator_host.engine.opening import open_engine
from evaluator_host.platform.evaluators.evaluation_service import build as build_set
from evaluator_host.platform.evaluators.evaluator_files import read_set
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async
from evaluator_host.platform.terminal.console import err, facts, out, plain, print_found, print_json
from evaluator_host.platform.terminal.local_store import require_package_sets
from evaluator_host.platform.terminal.progress import BuildProgress
from evaluator_host.types.evaluator import Language
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import size_text

T = TypeVar("T")

app = typer.Typer(name="packages", no_args_is_help=True)

_DigestArgument = Annotated[str, typer.Argument(metavar="DIGEST", help="Digest or key of the package set.")]


@app.command()
def build(
    pins: Annotated[list[str], typer.Argument(metavar="PIN...", help="Exact pins: numpy==2.1.0, lodash@4.17.21")],
    *,
    language: Annotated[
        Language, typer.Option(help="python for pip packages, javascript for npm packages.")
    ] = Language.PYTHON,
    python: Annotated[str | None, typer.Option(help="Minor version of Python: 3.13.")] = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Install a package set in advance. Does nothing if the package set is already installed."""
    asked = read_set(pins, language, python)
    settings = load_settings(sandbox=sandbox, data_dir=data_dir)

    async def work(environments: Environments) -> EnvironmentReport:
        return await build_set(environments, tuple(pins), language, python=asked.python, shown=not as_json)

    print_found(_with_environments(settings, work), _table, as_json=as_json)


@app.command()
def versions(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the package: numpy, lodash, @types/node", show_default=False)
    ],
    *,
    language: Annotated[
        Language, typer.Option(help="python for pip packages, javascript for npm packages.")
    ] = Language.PYTHON,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of versions.")] = 20,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """List the versions of a package that can be pinned here, newest first."""
    settings = load_settings(data_dir=data_dir)
    found = _with_environments(settings, lambda environments: environments.queries.versions(name, language))
    if as_json:
        print_json(found)
    between = "==" if language is Language.PYTHON else "@"
    for version in () if as_json else found.versions[:limit]:
        out.print(plain(f"{found.name}{between}{version}"))


@app.command(name="list")
def list_(*, data_dir: options.DataDirOption = None, as_json: options.JsonOption = False) -> None:
    """List installed package sets, last used first."""
    reports = _with_sets(load_settings(data_dir=data_dir), Environments.reports)
    if as_json:
        print_json(reports)
    for report in () if as_json else reports:
        names = ", ".join(f"{package.name} {package.version}" for package in report.packages if package.requested)
        size = size_text(report.size_bytes)
        out.print(plain(f"{report.digest or report.key}  {report.runtime}  {size:>9}  {report.built_at}  {names}"))


@app.command()
def show(
    digest: _DigestArgument, *, data_dir: options.DataDirOption = None, as_json: options.JsonOption = False
) -> None:
    """Show a package set: its packages, import times and warnings."""
    report = _with_sets(load_settings(data_dir=data_dir), lambda environments: environments.find_report(digest))
    print_found(report, _table, as_json=as_json)


@app.command()
def verify(
    digest: Annotated[str | None, typer.Argument(metavar="DIGEST", help="Only this set.")] = None,
    *,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Check every installed file and repair changed ones. The exit code is 1 if a repair failed."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir)
    found = _with_sets(settings, lambda environments: environments.verify(digest))
    if as_json:
        print_json(found)
    for one in () if as_json else found:
        state = "ok" if not one.broken else "repaired" if one.mended else "broken"
        changed = f": {counted(len(one.broken), 'file')} changed ({one.broken[0]})" if one.broken else ""
        out.print(plain(f"{one.digest}  {state}{changed}{'; ' + one.error if one.error else ''}"))
    raise typer.Exit(1 if any(one.broken and not one.mended for one in found) else 0)


@app.command()
def prune(
    *,
    max_mb: Annotated[
        int | None,
        typer.Option(
            "--max-mb",
            min=0,
            help="Maximum size of all sets together, in MB.",
            show_default="EVALUATOR_HOST_ENVIRONMENTS_MB",
        ),
    ] = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Remove unused package sets, least recently used first, until the others fit the limit. Locks are kept."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir)
    removed = _with_sets(settings, lambda environments: environments.prune(ceiling_mb=max_mb))
    sizes = [{"digest": record.digest, "size_bytes": record.size_bytes} for record in removed]
    freed = size_text(sum(record.size_bytes for record in removed))
    print_found(sizes, lambda _: f"removed {counted(len(removed), 'set')}, {freed}", as_json=as_json)


@app.command()
def delete(
    digest: _DigestArgument, *, sandbox: options.SandboxOption = None, data_dir: options.DataDirOption = None
) -> None:
    """Delete a package set and its lock. The next build resolves its packages again."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir)
    _with_sets(settings, lambda environments: environments.delete(digest))
    err.print(plain(f"deleted {digest}"))


@app.command()
def push(
    digest: _DigestArgument,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="IMAGE", help="Image to push to: registry.example:5000/team/scoring:1", show_default=False
        ),
    ],
    *,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Push a package set to a container registry. Prints its permanent name."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir)

    async def work(environments: Environments) -> str:
        with BuildProgress(shown=not as_json) as progress:
            return await environments.transfer.push(digest, reference, progress=progress.tell)

    pinned = {"image": _with_sets(settings, work)}
    print_found(pinned, lambda made: plain(made["image"]), as_json=as_json)


@app.command()
def pull(
    reference: Annotated[
        str,
        typer.Argument(metavar="IMAGE", help="Image name that `packages push` printed, or a tag.", show_default=False),
    ],
    *,
    digest: Annotated[
        str | None, typer.Option(help="Digest that the package set must have.", show_default="any set")
    ] = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Install a package set from a registry. No package index is needed."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir)

    async def work(environments: Environments) -> EnvironmentReport:
        with BuildProgress(shown=not as_json) as progress:
            return await environments.transfer.pull(reference, digest=digest, progress=progress.tell)

    print_found(_with_environments(settings, work), _table, as_json=as_json)


def _with_environments(settings: Settings, work: Callable[[Environments], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_engine(settings) as service:
            return await work(service.environments)

    return run_async(run)


def _with_sets(settings: Settings, work: Callable[[Environments], Awaitable[T]]) -> T:
    """Run `work` with the installed package sets, and return its result. Raise an error if there are no sets."""
    require_package_sets(settings)
    return _with_environments(settings, work)


def _table(report: EnvironmentReport) -> Text:
    requested = [f"{package.name} {package.version}" for package in report.packages if package.requested]
    others = [f"{package.name} {package.version}" for package in report.packages if not package.requested]
    return facts(
        (
            ("digest", report.digest),
            ("key", report.key),
            ("status", report.status),
            ("runtime", report.runtime),
            ("packages", "\n".join(requested)),
            ("pulled in", "\n".join(others)),
            ("size", size_text(report.size_bytes)),
            ("built", f"{report.built_at}, in {report.build_s} s" if report.built_at else None),
            ("imports", "\n".join(f"{module}: {spent_ms:.0f} ms" for module, spent_ms in report.import_ms.items())),
            ("notes", "\n".join(report.notes)),
            ("error", report.error),
        )
    )

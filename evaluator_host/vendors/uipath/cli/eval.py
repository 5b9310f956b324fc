"""`uipath eval`: runs an eval set over recorded executions, or over an agent that runs in the sandbox."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from evaluator_host.engine.packages.own_files import explain_missing
from evaluator_host.engine.system.files import writing
from evaluator_host.platform.evaluators.evaluator_files import LoadedEvaluator, evaluator_of, read_evaluator
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, out, plain, print_json, table
from evaluator_host.platform.terminal.gates import why_under
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Limits
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.names import counted, nearest_name
from evaluator_host.types.numbers import rounded
from evaluator_host.types.outcome import Status
from evaluator_host.vendors.uipath.agent import AGENT_LIMITS, agent_program, find_entry_point
from evaluator_host.vendors.uipath.cli.run import Plan, run_plan
from evaluator_host.vendors.uipath.eval_set import EvalItem, EvalSet, parse_eval_set
from evaluator_host.vendors.uipath.evaluation import EvalRun, overall, scores
from evaluator_host.vendors.uipath.evaluators import ProjectEvaluator, find_evaluators
from evaluator_host.vendors.uipath.executions import Execution, read_executions
from evaluator_host.vendors.uipath.modules import project_of
from evaluator_host.vendors.uipath.output import as_report, as_uipath
from evaluator_host.vendors.uipath.project import (
    Layout,
    find_eval_set,
    find_layout,
    layout_of_eval_set,
    read_json,
)
from evaluator_host.vendors.uipath.records import matched

_SHOWN: Final = 8
_WARNING: Final = (
    "the agent has this machine's network: its code and its packages can connect to everything that this machine "
    "reaches, and send the test cases there"
)

ProjectOption = Annotated[Path, typer.Option(help="Folder of the project.", show_default="this folder")]
FolderOption = Annotated[
    str | None, typer.Option(help="Folder of the evaluators: evals or evaluations.", show_default="the one that exists")
]
_FAILED: Final = "failed"
_WARNINGS: Final = 20


def eval_table(run: EvalRun) -> Text:
    """Format a table with a line for each test case, a column for each evaluator, and their means."""
    found = scores(run)
    header = ("TEST CASE", *(one.name for one in run.evaluators))
    cells = [(item.name, *(_cell(run, item, one) for one in run.evaluators)) for item in run.eval_set.items]
    made = table(header, [*cells, ("mean", *(one.mean for one in found))])
    total = overall(found)
    rows = sum(one.rows for one in found)
    counts = {"failed": sum(one.failed for one in found), "were skipped": sum(one.skipped for one in found)}
    lost = [
        f", {count} of {rows} results {what} and are left out of the means" for what, count in counts.items() if count
    ]
    return made.append(f"\nscore {'none' if total is None else rounded(total)}{''.join(lost)}")


def failures(run: EvalRun) -> Iterator[str]:
    """Yield a message for each test case and evaluator that failed."""
    for item in run.eval_set.items:
        if (why := run.agent_error(item)) is not None:
            yield f"{item.name}: {why}"
            continue
        for one in run.asked(item):
            result = run.results.get((item.id, one.id))
            if result is not None and result.error is not None:
                at = f" (line {result.error.line})" if result.error.line is not None else ""
                hint = f"; {result.error.hint}" if result.error.hint else ""
                yield f"{item.name}, {one.name}: {result.error.code}: {result.error.message}{at}{hint}"


def warnings(run: EvalRun) -> list[str]:
    """Return the results' warnings without repetition: unknown keys in criteria, scores out of range."""
    found = [
        f"{one.name}: {note.text}"
        for one in run.evaluators
        for item in run.eval_set.items
        if (result := run.results.get((item.id, one.id))) is not None
        for note in result.warnings
    ]
    return list(dict.fromkeys(found))[:_WARNINGS]


def _cell(run: EvalRun, item: EvalItem, one: ProjectEvaluator) -> object:
    if one.id not in item.criteria:
        return None
    result = run.results.get((item.id, one.id))
    if result is None or result.error is not None:
        return _FAILED
    return result.status if result.status is Status.SKIPPED else result.score


def eval_(
    eval_set: Annotated[
        str, typer.Argument(metavar="EVAL_SET", help="File of the eval set, or its name in eval_sets.")
    ],
    *,
    project: ProjectOption = Path(),
    folder: FolderOption = None,
    executions: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="File of recorded executions. Repeatable. Without this option, the agent runs."
        ),
    ] = None,
    entrypoint: Annotated[
        str | None, typer.Option(help="Function in uipath.json to run, if there are several.")
    ] = None,
    item: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Id of a test case to run. Repeatable. Default: all test cases."),
    ] = None,
    package: options.PackageOption = None,
    agent_timeout_s: Annotated[float, typer.Option(help="Time limit of the agent for one test case.")] = 60.0,
    agent_memory_mb: Annotated[int, typer.Option(help="Memory limit of the agent's sandbox.")] = 512,
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help="Give the agent this machine's network. Evaluators have none.")
    ] = False,
    timeout_s: options.TimeoutOption = None,
    memory_mb: options.MemoryOption = None,
    parallelism: Annotated[
        int | None, typer.Option(min=1, help="Number of sandboxes that run at once.", show_default="cores")
    ] = None,
    output_file: Annotated[Path | None, typer.Option(help="File for the results, in UiPath's format.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Write the executions to --output-file too.")] = False,
    fail_under: Annotated[float | None, typer.Option(help="Exit 1 if the score of the set is below this.")] = None,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Score an eval set. Exit code: 0 scored, 1 failed or under --fail-under, 2 your mistake, 3 a fault of the host."""
    if allow_network:
        _require_own_agent(url, executions)
    settings = load_settings(sandbox=sandbox, data_dir=data_dir, idle_sandboxes=0)
    layout, found = _eval_set(project, folder, eval_set, item)
    read = partial(read_evaluator, language=None, host=settings, packages=package)
    read_in_project = partial(read, project=project_of(layout))
    evaluators = tuple(find_evaluators(layout, found.evaluators))
    limits = {"timeout_s": timeout_s, "memory_mb": memory_mb}
    agent = None
    recorded, notes = matched(found, read_executions(executions or []))
    if not executions:
        own = replace(AGENT_LIMITS, timeout_s=agent_timeout_s, memory_mb=agent_memory_mb)
        agent = _agent(layout, entrypoint, read, own)
    plan = Plan(
        eval_set=found,
        evaluators=evaluators,
        given=tuple(_given(one, read_in_project, package or [], limits) for one in evaluators),
        agent=agent,
        executions=recorded,
        notes=(*found.notes, *notes, *_unrecorded(recorded)),
        parallelism=parallelism,
        network=allow_network,
    )
    if allow_network:
        err.print(plain(f"warning: {_WARNING}"))
    run = _explained(run_plan(plan, settings, url, shown=not as_json), layout)
    if output_file is not None:
        _write(output_file, as_uipath(run, verbose=verbose))
    _print(run, as_json=as_json)
    raise typer.Exit(_exit_code(run, fail_under))


def _require_own_agent(url: str | None, executions: list[Path] | None) -> None:
    """Refuse --allow-network if no agent runs on this machine."""
    if url is not None:
        raise InvalidRequest(
            "--allow-network does not work with --url: there the agent runs on the host, whose sandboxes have no "
            "network; leave out --url, or run the agent yourself and give its executions with --executions FILE"
        )
    if executions:
        raise InvalidRequest(
            "--allow-network is for an agent that runs, but with --executions no agent runs; leave out one of them"
        )


def _eval_set(project: Path, folder: str | None, named: str, items: list[str] | None) -> tuple[Layout, EvalSet]:
    """Return the layout of an eval set's project, and the eval set.

    If there are `items`, the set has only these test cases.
    """
    path = Path(named)
    layout = layout_of_eval_set(path) if path.is_file() and folder is None and project == Path() else None
    layout = layout or find_layout(project, folder=folder)
    file = find_eval_set(layout, named)
    found = parse_eval_set(read_json(file), named=str(file))
    if not found.evaluators:
        raise InvalidRequest(
            f"{file} does not name an evaluator: evaluatorRefs is empty, and no test case has criteria; "
            "add evaluator ids to evaluatorRefs"
        )
    if not items:
        return layout, found
    known = [item.id for item in found.items]
    for one in items:
        if one not in known:
            meant = nearest_name(one, known)
            raise InvalidRequest(f"{file} has no test case {one!r}" + (f"; did you mean {meant}?" if meant else ""))
    return layout, replace(found, items=tuple(item for item in found.items if item.id in items))


def _unrecorded(executions: dict[str, Execution]) -> list[str]:
    without = [item for item, execution in executions.items() if not execution.has_output]
    if not without:
        return []
    return [f"no output was recorded for {', '.join(without[:_SHOWN])}: evaluators get an empty output"]


def _given(
    one: ProjectEvaluator, read: Callable[..., LoadedEvaluator], packages: list[str], limits: dict[str, Any]
) -> LoadedEvaluator:
    """Return the program of an evaluator.

    For UiPath's own evaluators, the caller must have pinned the package `uipath`.
    """
    if isinstance(one.code, str):
        if not any(pin.partition("==")[0].strip().lower() == "uipath" for pin in packages):
            raise InvalidRequest(
                f"{one.id} is one of UiPath's own evaluators; pin their package: --package uipath==2.14.44"
            )
        evaluator = evaluator_of(code=one.code, contract=Contract("uipath"), packages=packages, **limits)
        given = LoadedEvaluator(evaluator)
    else:
        given = read(one.code, contract=Contract("uipath"), **limits)
    evaluator = replace(given.evaluator, settings=EvaluatorSettings(entry=one.entry, config=one.config))
    return replace(given, evaluator=evaluator)


def _agent(layout: Layout, name: str | None, read: Callable[..., LoadedEvaluator], limits: Limits) -> LoadedEvaluator:
    """Return the agent's program and the packages that its file pins."""
    entry = find_entry_point(layout.root, name)
    own: LoadedEvaluator = read(layout.root / entry.file)
    program = agent_program(layout.root, entry, packages=own.evaluator.packages, limits=limits)
    return LoadedEvaluator(program, own.requires_python)


def _explained(run: EvalRun, layout: Layout) -> EvalRun:
    """Add to each error about a missing module the folders in which the host looked for the module."""
    results = dict(run.results)
    for one in run.evaluators:
        for key, result in run.results.items():
            if key[1] == one.id and result.error is not None and isinstance(one.code, Path):
                results[key] = replace(result, error=explain_missing(result.error, one.code, layout.root))
    return replace(run, results=results)


def _print(run: EvalRun, *, as_json: bool) -> None:
    if as_json:
        print_json(as_report(run))
        return
    for note in (*run.notes, *warnings(run)):
        err.print(plain(f"note: {note}"))
    for line in failures(run):
        err.print(plain(line))
    out.print(eval_table(run))
    if run.job is not None:
        err.print(plain(f"job {run.job}"))


def _exit_code(run: EvalRun, fail_under: float | None) -> int:
    """Return 1 if the set has no score, a result failed, or the score is below `fail_under`, and print why. Else 0."""
    found = scores(run)
    mean = overall(found)
    failed = sum(one.failed for one in found)
    unrun = sum(run.agent_error(item) is not None for item in run.eval_set.items)
    why = []
    if mean is None:
        why.append("the set has no score")
    elif under := why_under(mean, fail_under, fractions=False):
        why.append(under)
    if unrun:
        why.append(f"{counted(unrun, 'test case')} could not be scored")
    if failed:
        why.append(f"{counted(failed, 'result')} failed")
    if why:
        err.print(plain(f"{', '.join(why)}, so the exit code is 1"))
    return 1 if why else 0


def _write(file: Path, content: object) -> None:
    with writing(file):
        file.write_bytes(encode_json(content) + b"\n")

"""`jobs`: watch, inspect, compare and control jobs on a host."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator_host.platform.jobs.compared_rows import ids_of_rows, write_worse
from evaluator_host.platform.jobs.creation import create
from evaluator_host.platform.jobs.following import failed_rows, follow, print_failures
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, next_command, out, plain, print_found, print_json
from evaluator_host.platform.terminal.gates import FailUnderOption, why_dropped
from evaluator_host.platform.terminal.job_tables import (
    CHANGES_SHOWN,
    OwnedJob,
    agreement_tables,
    all_groups_table,
    compared_groups_tables,
    comparison_table,
    failures_table,
    job_facts,
    jobs_table,
    owned_jobs_table,
    rows_table,
    statistics_table,
)
from evaluator_host.platform.terminal.local_store import with_store
from evaluator_host.platform.terminal.remote_host import ClientOption, named_job
from evaluator_host.types.errors import HostUnreachable, InvalidRequest
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import rounded_beside
from evaluator_host.types.results import Comparison

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

app = typer.Typer(name="jobs", no_args_is_help=True)
app.command(
    "create",
    help="Queue a job. With --wait, the exit code is 1 if a row failed (or more than --max-failures), if a mean is "
    "below --fail-under, or if the job failed, was cancelled or has no reliable score.",
)(create)

_JobArgument = Annotated[
    str,
    typer.Argument(metavar="JOB", help="Id of the job, or `last` for the newest job, `last-1` for the job before it."),
]
_EvaluatorOption = Annotated[str | None, typer.Option(help="An evaluator of the job: exact-match, or exact-match@1.")]
_StatusOption = Annotated[str | None, typer.Option(help="Only rows with this status: scored, skipped or failed.")]
_PassedOption = Annotated[
    bool | None, typer.Option("--passed/--not-passed", help="Only rows that passed, or only rows that did not pass.")
]
_MinScoreOption = Annotated[float | None, typer.Option(help="Only rows with at least this score.")]
_MaxScoreOption = Annotated[float | None, typer.Option(help="Only rows with at most this score.")]
_TextOption = Annotated[str | None, typer.Option(help="Only rows in which a value contains this text.")]
_WhereOption = Annotated[
    list[str] | None,
    typer.Option(metavar="CONDITION", help="A condition: city=Rome, answer~paris, score>=0.5. Repeatable."),
]


@app.command(name="list")
def list_(
    *,
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs with this status.")] = None,
    search: Annotated[
        str | None, typer.Option(help="Only jobs with this text in their name, data set or evaluators.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of jobs.")] = 20,
    client: ClientOption,
    all_workspaces: options.AllWorkspacesOption = False,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """List jobs, newest first, with the scores of each evaluator, and the change since the job before."""
    if all_workspaces:
        settings = load_settings(data_dir=data_dir)
        owned = with_store(settings, partial(_jobs_of_all, limit=limit, status=status, search=search))
        print_found(owned, owned_jobs_table, as_json=as_json, none="no workspace has a job")
        return
    found = client.jobs.all(status=status, limit=limit, search=search)
    none = "there are no jobs; create one with evaluator-host jobs create"
    print_found(found, jobs_table, as_json=as_json, none=none)


async def _jobs_of_all(store: "Store", *, limit: int, **chosen: Any) -> list[OwnedJob]:
    from evaluator_host.platform.jobs.service import job_report  # noqa: PLC0415 - other commands need no database
    from evaluator_host.platform.jobs.table import Jobs  # noqa: PLC0415

    found = await Jobs(store.database).list_overviews(None, limit=limit, **chosen)
    owners = {one.job.workspace_id for one in found}
    names = {owner: await store.workspaces.name_of(owner) or owner for owner in owners}
    return [OwnedJob(names[one.job.workspace_id], job_report(one)) for one in found]


@app.command()
def show(job: _JobArgument, *, client: ClientOption, as_json: options.JsonOption = False) -> None:
    """Show a job and its progress."""
    found = named_job(client, job)
    print_found(found, job_facts, as_json=as_json)
    if not as_json:
        print_failures(client, found)


@app.command()
def rename(
    job: _JobArgument,
    name: Annotated[str, typer.Argument(help="The new name; an empty string removes the name.")],
    *,
    client: ClientOption,
) -> None:
    """Give a job another name."""
    found = client.jobs.rename(named_job(client, job).id, name or None)
    err.print(plain(f"{found.id} is named {found.name}" if found.name else f"{found.id} now has no name"))


@app.command()
def watch(
    job: _JobArgument,
    *,
    fail_under: FailUnderOption = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Show the progress of a job until it ends, then its results. The exit codes are those of `create --wait`."""
    follow(client, named_job(client, job), as_json=as_json, fail_under=fail_under)


@app.command()
def results(
    job: _JobArgument,
    *,
    by: options.ByOption = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Show the results of a job, for each evaluator and metric."""
    of = named_job(client, job).id
    if by is None:
        print_found(client.jobs.results(of), statistics_table, as_json=as_json)
    else:
        print_found(client.jobs.groups(of, by), partial(all_groups_table, column=by), as_json=as_json)


@app.command()
def rows(
    job: _JobArgument,
    *,
    evaluator: _EvaluatorOption = None,
    status: _StatusOption = None,
    passed: _PassedOption = None,
    min_score: _MinScoreOption = None,
    max_score: _MaxScoreOption = None,
    text: _TextOption = None,
    where: _WhereOption = None,
    sort: Annotated[
        str, typer.Option(help="How to sort: row, score, -score, run_ms, -run_ms, or status (failed rows first).")
    ] = "row",
    limit: Annotated[
        int, typer.Option(min=1, help="Maximum number of results; each row has one from each evaluator.")
    ] = 20,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Show rows of a job with their results."""
    filters = {
        "evaluator": evaluator, "status": status, "passed": passed, "min_score": min_score, "max_score": max_score,
        "text": text, "where": where,
    }  # fmt: skip
    of = named_job(client, job)
    found = client.jobs.first_rows(of.id, limit + (not as_json), **filters, sort=sort)
    more = len(found) > limit
    narrowed = any(value is not None for value in filters.values())
    none = "no row matches" if narrowed else "no row has a result yet"
    print_found(found[:limit], lambda rows: rows_table(rows, of.mapping), as_json=as_json, none=none)
    if as_json or not found or not (more or narrowed):
        return
    unit = of.unit if evaluator is None else "row"
    if not more:
        err.print(plain(f"{counted(len(found), unit)} {'matches' if len(found) == 1 else 'match'}"))
        return
    if text is not None or where is not None:  # to count them, the host would have to search the whole job
        told = f"more than {counted(limit, unit)} match, of which the first {limit} are shown"
    else:
        told = f"{limit} of {counted(client.jobs.count_rows(of.id, **filters), unit)}"
        told += " that match" if narrowed else ""
    download = next_command(f"jobs download {job} rows.csv{_as_options(filters)}")
    err.print(plain(f"{told}; --limit shows more, and {download} writes all"))


def _as_options(filters: dict[str, Any]) -> str:
    """Return filters of rows as options of a command, with a space before each; those that are None are left out."""
    given: list[str] = []
    for name, value in filters.items():
        if isinstance(value, bool):
            given.append("--passed" if value else "--not-passed")
        elif value is not None:
            values = value if isinstance(value, list) else [value]
            given += [f"--{name.replace('_', '-')} {quote(str(one))}" for one in values]
    return "".join(f" {one}" for one in given)


@app.command()
def row(
    job: _JobArgument,
    index: Annotated[int, typer.Argument(metavar="ROW", help="Number of the row, starting at 0.")],
    *,
    client: ClientOption,
) -> None:
    """Print a row as JSON: the input of its evaluators, and each result."""
    print_json(client.jobs.row(named_job(client, job).id, index))


@app.command()
def failures(
    job: _JobArgument,
    *,
    evaluator: _EvaluatorOption = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Group failed rows by error, with examples."""
    of = named_job(client, job)
    found = client.jobs.failures(of.id, evaluator=evaluator)
    print_found(found, failures_table, as_json=as_json, none="no row failed")
    if as_json:
        return
    chosen = "" if evaluator is None else f" --evaluator {quote(evaluator)}"
    results = client.jobs.results(of.id).evaluators
    counts = [one.not_passed or 0 for one in results if evaluator in (None, *_names(one.evaluator))]
    unit = "row" if len(counts) == 1 else of.unit
    if any(one.count > len(one.rows) for one in found):
        err.print(plain(f"every failed {unit}: {failed_rows(of.id, sum(one.count for one in found), chosen)}"))
    if not_passed := sum(counts):
        shown = next_command(f"jobs rows {of.id} --not-passed{chosen}")
        err.print(plain(f"{counted(not_passed, unit)} did not pass: {shown}"))


@app.command()
def agreement(
    job: _JobArgument,
    *,
    label: Annotated[str | None, typer.Option(help="Column of the data set with the labels that people gave.")] = None,
    queue: Annotated[str | None, typer.Option(help="Label queue. Default: all queues that apply to the job.")] = None,
    evaluator: _EvaluatorOption = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Compare each evaluator with the labels that people gave: accuracy, kappa, confusion matrix, 95 % intervals."""
    found = client.jobs.agreement(named_job(client, job).id, label=label, queue=queue, evaluator=evaluator)
    print_found(found, agreement_tables, as_json=as_json)


@app.command()
def download(
    job: _JobArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write, with the suffix .jsonl, .csv or .parquet.")
    ],
    *,
    evaluator: _EvaluatorOption = None,
    status: _StatusOption = None,
    passed: _PassedOption = None,
    min_score: _MinScoreOption = None,
    max_score: _MaxScoreOption = None,
    text: _TextOption = None,
    where: _WhereOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue FILE.part, which an interrupted download with the same options left behind."
        ),
    ] = False,
    client: ClientOption,
) -> None:
    """Write rows with their results to a file."""
    filters: dict[str, Any] = {
        "evaluator": evaluator, "status": status, "passed": passed, "min_score": min_score, "max_score": max_score,
        "text": text, "where": where,
    }  # fmt: skip
    try:
        written = client.jobs.download(named_job(client, job).id, file, resume=resume, **filters)
    except HostUnreachable as error:
        if not Path(f"{file}.part").exists():
            raise
        raise HostUnreachable(f"{error.detail}; `--resume` continues from {file}.part") from error
    err.print(plain(f"wrote {written} bytes to {file}"))


@app.command()
def compare(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The earlier job, such as `last-1`.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The later job, or `last`.")],
    *,
    evaluator: _EvaluatorOption = None,
    by_place: Annotated[
        bool,
        typer.Option(
            "--by-place",
            help="If the jobs have no evaluator in common, compare the first evaluators of both jobs, then the second "
            "ones, …",
        ),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print how the outputs and reasons of the listed rows differ.")
    ] = False,
    worse: Annotated[
        Path | None, typer.Option("--out", help="Write all rows that are worse to this file, .csv or .jsonl.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Show only the mean scores and their difference for each value of this column."
        ),
    ] = None,
    max_drop: Annotated[
        float | None, typer.Option(help="Exit 1 if the mean is lower than in JOB by more than this.")
    ] = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Compare two jobs over the same rows: paired differences, regressions, improvements."""
    if by is not None and (diff or worse is not None or max_drop is not None):
        raise InvalidRequest("--by shows only means of groups: leave out --diff, --out and --max-drop")
    if worse is not None and worse.suffix not in (".csv", ".jsonl"):
        raise InvalidRequest(f"--out writes CSV or JSON Lines: give {worse} the suffix .csv or .jsonl")
    jobs = named_job(client, job), named_job(client, other)
    ids = jobs[0].id, jobs[1].id
    if by is not None:
        groups = client.jobs.compare_groups(*ids, by, evaluator=evaluator, by_place=by_place)
        print_found(groups, partial(compared_groups_tables, column=by), as_json=as_json)
        return
    found = client.jobs.compare(*ids, evaluator=evaluator, by_place=by_place)
    if worse is not None:
        write_worse(client, jobs, found, worse, by_place=by_place)
    if as_json:
        print_json(found)
    for one in () if as_json else found:
        listed = (*one.regressions[:CHANGES_SHOWN], *one.improvements[:CHANGES_SHOWN])
        out.print(comparison_table(one, ids_of_rows(client, ids[1], one.after, [change.row for change in listed])))
        for change in listed if diff else ():
            differ = client.jobs.row_diff(*ids, change.row, evaluator=one.before, by_place=by_place)
            out.print(plain("\n".join((f"row {differ.row}", differ.outputs, differ.results))))
    _require_no_drop(found, max_drop)


def _require_no_drop(found: Sequence[Comparison], most: float | None) -> None:
    """Exit with 1 if the mean of an evaluator does not meet `--max-drop`, and print why."""
    dropped = [why for one in found if (why := _why_dropped(one, most)) is not None]
    for why in dropped:
        err.print(plain(f"{why}, so the exit code is 1"))
    if dropped:
        raise typer.Exit(1)


def _why_dropped(one: Comparison, most: float | None) -> str | None:
    """Return why an evaluator's mean does not meet `--max-drop`, over the rows with a score in both jobs, or None."""
    found = next((metric.difference for metric in one.metrics if metric.metric == "score"), None)
    drop = None if found is None else -found
    why = why_dropped(drop, most, unit="job")
    if why is None or most is None or drop is None:
        return why and f"{one.after}: {why}"
    return f"{one.after}: the mean is {rounded_beside(drop, most)} lower; {why}"


@app.command("cancel", help="Cancel a job. Its results so far are kept.")
@app.command("resume", help="Continue a paused or failed job; existing results are kept.")
@app.command("pause", help="Pause a job. Its results so far are kept.")
def control(context: typer.Context, job: _JobArgument, *, client: ClientOption) -> None:
    """Pause, resume or cancel a job."""
    verbs = {"pause": client.jobs.pause, "resume": client.jobs.resume, "cancel": client.jobs.cancel}
    found = verbs[str(context.info_name)](named_job(client, job).id)
    done = f"{found.progress.done} of {counted(found.progress.rows, found.unit)}"
    err.print(plain(f"{found.id}: {found.status}, {done}"))


@app.command()
def delete(job: _JobArgument, *, force: options.ForceOption = False, client: ClientOption) -> None:
    """Delete a job that has ended, and its results."""
    found = named_job(client, job)
    client.jobs.delete(found.id, force=force)
    err.print(plain(f"deleted {found.id}"))


def _names(label: str) -> tuple[str, str]:
    """Return the names of an evaluator in a job: with and without its version."""
    return label, label.partition("@")[0]

"""`jobs`: create, watch, inspect and compare jobs on a host."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evaluator_host.client import Client
from evaluator_host.engine.system.files import written_anew
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, next_command, out, plain, print_found, print_json
from evaluator_host.platform.terminal.job_tables import (
    CHANGES_SHOWN,
    OwnedJob,
    agreement_tables,
    all_groups_table,
    comparison_table,
    estimate_text,
    failures_table,
    job_facts,
    jobs_table,
    owned_jobs_table,
    rows_table,
    said,
    schedule_facts,
    statistics_table,
    why,
)
from evaluator_host.platform.terminal.local_store import with_store
from evaluator_host.platform.terminal.remote_host import ClientOption, named_job
from evaluator_host.types.bounds import difference
from evaluator_host.types.errors import HostUnreachable, InvalidRequest, NotFound, Problem
from evaluator_host.types.evaluator import Evaluator, Isolation, ModelBudget, Replay
from evaluator_host.types.jobs import Executor, Failures, JobReport, JobStatus, Target
from evaluator_host.types.json_values import InvalidJson, decode_json, encode_json
from evaluator_host.types.names import counted, id_of, usable_name
from evaluator_host.types.results import Change, Comparison

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

app = typer.Typer(name="jobs", no_args_is_help=True)

_JobArgument = Annotated[
    str,
    typer.Argument(metavar="JOB", help="Id of the job, or `last` for the newest job, `last-1` for the job before it."),
]
_GROUPS_SHOWN = 3
_ROWS_ASKED = 100  # maximum number of rows of a job in one request
_EvaluatorOption = Annotated[str | None, typer.Option(help="An evaluator of the job: exact-match, or exact-match@1.")]


@app.command(
    "create",
    help="Queue a job. With --wait, the exit code is 1 if a row failed (or more than --max-failures), or if the job "
    "failed, was cancelled or has no reliable score.",
)
def create(
    context: typer.Context,
    *,
    evaluator: Annotated[
        list[str],
        typer.Option(
            "--evaluator", "-e", metavar="NAME|FILE", help="A stored evaluator (exact-match@3) or a file. Repeatable."
        ),
    ],
    dataset: Annotated[str, typer.Option("--dataset", "-d", help="Name of a data set.")],
    data_file: options.FileOption = None,
    data_folder: options.FilesOption = None,
    package: options.PackageOption = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="FIELD=COLUMN", help="Column, or a template {{ … }}, for a field of the row. Repeatable."
        ),
    ] = None,
    target_url: Annotated[
        str | None,
        typer.Option("--target-url", help="OpenAI-compatible API that produces the outputs: https://host/v1"),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of the model at --target-url.")] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="Template of the user message: {{ question }}")] = None,
    system: Annotated[str | None, typer.Option("--system", help="Template of the system message.")] = None,
    api_key_secret: Annotated[
        str | None, typer.Option("--api-key-secret", help="Name of the secret with the API key for --target-url.")
    ] = None,
    inference: Annotated[
        list[str] | None,
        typer.Option(
            "--inference",
            metavar="NAME=VALUE",
            help="A parameter of the requests to the model: temperature=0. Repeatable.",
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=256, help="Number of requests to the model at once.")
    ] = 8,
    target_timeout_s: Annotated[
        float, typer.Option("--target-timeout-s", help="Seconds to wait for each answer from the model.")
    ] = 60.0,
    retries: Annotated[int, typer.Option("--retries", min=0, max=20, help="Retries after a failed request.")] = 4,
    parallelism: Annotated[
        int | None, typer.Option(min=1, help="Number of sandboxes that run rows at once.", show_default="the host's")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first N rows.")] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Score only the rows whose index modulo N is K.")
    ] = None,
    isolation: Annotated[
        Isolation,
        typer.Option(help="batch: rows may share a process, which is faster, but state can leak between rows."),
    ] = Isolation.ROW,
    executor: Annotated[
        Executor, typer.Option(help="ray: evaluate on the nodes of the host's Ray cluster.")
    ] = Executor.LOCAL,
    max_failures: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of results that may fail; if more fail, the job fails.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job or of the schedule.")] = None,
    cron: Annotated[
        str | None, typer.Option(help="With `schedule`: when to run, as in '0 7 * * 1' (Mondays at 7).")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Time zone of --cron: Europe/Berlin.")] = "UTC",
    failures: Annotated[
        Failures, typer.Option(help="exclude leaves failed rows out of the mean; zero counts them as 0.")
    ] = Failures.EXCLUDE,
    replay: options.ReplayOption = Replay.OFF,
    budget_requests: options.RequestsOption = None,
    budget_tokens: options.TokensOption = None,
    budget_cost: options.CostOption = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="If a request with this key is repeated, it returns the first job instead of a new one."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Score only a few rows, and estimate the whole job's use of models."),
    ] = False,
    sample: Annotated[int, typer.Option(min=1, max=100, help="Number of rows to score for --dry-run.")] = 3,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show the progress until the job ends, then the results.")
    ] = False,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Queue a job, or make a schedule of it (`schedules create`, and its alias `jobs schedule`)."""
    mapping = dict(Mapping.parse(map_ or []).sources)
    target = read_target(
        target_url, model, prompt, inference=inference, system=system, api_key=api_key_secret, concurrency=concurrency,
        timeout_s=target_timeout_s, retries=retries,
    )  # fmt: skip
    scheduled = context.command_path.endswith(("jobs schedule", "schedules create"))
    if scheduled:
        _require_name_and_cron(name, cron)
    elif cron is not None:
        raise InvalidRequest(
            "jobs create starts one job at once, and --cron is for schedules; "
            "give the same options to evaluator-host schedules create --name NAME"
        )
    described: dict[str, Any] = {
        "evaluators": _evaluators(
            client, evaluator, extra=data_file or (), folders=data_folder or (), packages=package
        ),
        "dataset": _dataset(client, dataset),
        "mapping": mapping,
        "target": target,
        "parallelism": parallelism,
        "limit_samples": limit,
        "shard": shard,
        "executor": executor,
        "isolation": isolation,
        "max_failures": max_failures,
        "failures": failures,
        "replay": replay,
        "budget": ModelBudget(budget_requests, budget_tokens, budget_cost),
    }
    if scheduled:
        made = client.schedules.create(str(name), str(cron), timezone=timezone, **described)
        print_found(made, schedule_facts, as_json=as_json)
        return
    if dry_run:
        of_a_run = ("parallelism", "executor", "max_failures", "failures")
        estimated = {field: value for field, value in described.items() if field not in of_a_run}
        estimate = client.jobs.estimate(**estimated, rows=sample)
        print_found(estimate, estimate_text, as_json=as_json)
        raise typer.Exit(1 if estimate.over else 0)
    job = client.jobs.create(**described, name=name, idempotency_key=idempotency_key)
    if wait:
        _follow(client, job, as_json=as_json)
    else:
        print_found(job, lambda one: one.id, as_json=as_json)


def _require_name_and_cron(name: str | None, cron: str | None) -> None:
    if name is None or cron is None:
        missing = "--name" if name is None else "--cron"
        raise InvalidRequest("a schedule needs --name and --cron", problems=(Problem(missing, "is missing"),))


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
        _print_failures(client, found)


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
def watch(job: _JobArgument, *, client: ClientOption, as_json: options.JsonOption = False) -> None:
    """Show the progress of a job until it ends, then its results. The exit codes are those of `create --wait`."""
    _follow(client, named_job(client, job), as_json=as_json)


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
    status: Annotated[str | None, typer.Option(help="Only rows with this status: scored, skipped or failed.")] = None,
    passed: Annotated[
        bool | None,
        typer.Option("--passed/--not-passed", help="Only rows that passed, or only rows that did not pass."),
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Only rows with at least this score.")] = None,
    max_score: Annotated[float | None, typer.Option(help="Only rows with at most this score.")] = None,
    text: Annotated[str | None, typer.Option(help="Only rows in which a value contains this text.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="A condition: city=Rome, answer~paris, score>=0.5. Repeatable."),
    ] = None,
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
        "evaluator": evaluator, "status": status, "passed": passed,
        "min_score": min_score, "max_score": max_score, "text": text, "where": where, "sort": sort,
    }  # fmt: skip
    of = named_job(client, job)
    found = client.jobs.first_rows(of.id, limit + (not as_json), **filters)
    more = len(found) > limit
    print_found(found[:limit], lambda rows: rows_table(rows, of.mapping), as_json=as_json)
    if more:
        chosen = any(value is not None for name, value in filters.items() if name != "sort")
        unit = of.unit if evaluator is None else "row"
        shown = f"{limit} of {counted(of.progress.done, unit)}" if not chosen else f"the first {limit} of these {unit}s"
        every = f"all {counted(of.progress.done, of.unit)} of the job" if chosen else "all"
        download = next_command(f"jobs download {job} rows.csv")
        err.print(plain(f"{shown}; --limit shows more, and {download} writes {every}"))


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
        err.print(plain(f"every failed {unit}: {_failed_rows(of.id, sum(one.count for one in found), chosen)}"))
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
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue FILE.part, which an interrupted download left behind.")
    ] = False,
    client: ClientOption,
) -> None:
    """Write all rows with their results to a file."""
    try:
        written = client.jobs.download(named_job(client, job).id, file, evaluator=evaluator, resume=resume)
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
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Compare two jobs over the same rows: paired differences, regressions, improvements."""
    if worse is not None and worse.suffix not in (".csv", ".jsonl"):
        raise InvalidRequest(f"--out writes CSV or JSON Lines: give {worse} the suffix .csv or .jsonl")
    jobs = named_job(client, job), named_job(client, other)
    ids = jobs[0].id, jobs[1].id
    found = client.jobs.compare(*ids, evaluator=evaluator, by_place=by_place)
    if worse is not None:
        _write_worse(client, jobs, found, worse, by_place=by_place)
    if as_json:
        print_json(found)
        return
    for one in found:
        listed = (*one.regressions[:CHANGES_SHOWN], *one.improvements[:CHANGES_SHOWN])
        out.print(comparison_table(one, _ids_of_rows(client, ids[1], one.after, [change.row for change in listed])))
        for change in listed if diff else ():
            differ = client.jobs.row_diff(*ids, change.row, evaluator=one.before, by_place=by_place)
            out.print(plain("\n".join((f"row {differ.row}", differ.outputs, differ.results))))


_WORSE: Final = (
    *("row", "id", "evaluator", "before", "after", "change"),
    *("passed_before", "passed_after", "why", "outputs_before", "outputs", "inputs"),
)


def _write_worse(
    client: Client, jobs: tuple[JobReport, JobReport], compared: Sequence[Comparison], file: Path, *, by_place: bool
) -> None:
    """Write a file of the rows whose score fell, or that fail in the later job, worst first, with both outputs."""
    from evaluator_host.platform.jobs.results.exports import csv_lines  # noqa: PLC0415 - few commands need it

    ids = jobs[0].id, jobs[1].id
    count = 0
    with written_anew(file) as opened:
        if file.suffix == ".csv":
            opened.write(csv_lines([_WORSE]))
        for one in compared:
            asked = client.jobs.changes(*ids, evaluator=one.before, better=False, by_place=by_place)
            changes = sorted(asked, key=_fall, reverse=True)
            for at in range(0, len(changes), _ROWS_ASKED):
                lines = _worse_lines(client, jobs, one, changes[at : at + _ROWS_ASKED])
                count += len(lines)
                if file.suffix == ".csv":
                    opened.write(csv_lines(lines))
                else:
                    named = (dict(zip(_WORSE, line, strict=True)) for line in lines)
                    opened.write(b"".join(encode_json(line) + b"\n" for line in named))
    err.print(plain(f"wrote {counted(count, 'row')} to {file}"))


def _fall(change: Change) -> float:
    """Return by how much a row's score fell; infinity if it has no score in one of the jobs."""
    return math.inf if change.before is None or change.after is None else difference(change.after, change.before)


def _worse_lines(
    client: Client, jobs: tuple[JobReport, JobReport], one: Comparison, changes: Sequence[Change]
) -> list[list[Any]]:
    """Return a line for each changed row, with a value for each column of `_WORSE`."""
    rows = [change.row for change in changes]
    earlier = {
        found.index: found for found in client.jobs.first_rows(jobs[0].id, _ROWS_ASKED, evaluator=one.before, row=rows)
    }
    later = {
        found.index: found for found in client.jobs.first_rows(jobs[1].id, _ROWS_ASKED, evaluator=one.after, row=rows)
    }
    lines: list[list[Any]] = []
    for row, before, after in ((change.row, change.before, change.after) for change in changes):
        was, now = earlier[row], later[row]
        outputs_before, _ = said(was, jobs[0].mapping.get("outputs"))
        outputs, inputs = said(now, jobs[1].mapping.get("outputs"))
        change = None if before is None or after is None else difference(before, after)
        verdicts = was.result["passed"], now.result["passed"]
        scores = (before, after, change, *verdicts)
        lines.append([row, id_of(now.row), one.after, *scores, why(now), outputs_before, outputs, inputs])
    return lines


def _ids_of_rows(client: Client, job: str, evaluator: str, rows: Sequence[int]) -> dict[int, str]:
    """Return the ids of these rows of a job, keyed by row number. Rows without an id are left out."""
    asked = (rows[at : at + _ROWS_ASKED] for at in range(0, len(rows), _ROWS_ASKED))
    found = (client.jobs.first_rows(job, _ROWS_ASKED, evaluator=evaluator, row=some, brief=True) for some in asked)
    return {one.index: name for page in found for one in page if (name := id_of(one.row)) is not None}


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


def _evaluators(client: Client, given: Sequence[str], **beside: Sequence[Any] | None) -> list[Evaluator | str]:
    """Return a job's evaluators: the names of stored evaluators, and the evaluators that are read from files.

    If an evaluator that is read from a file has data files, these are sent to the host.

    Raises:
      InvalidRequest: options for evaluators in files are given, but all evaluators are stored.
    """
    paths = {one: Path(one) for one in given if Path(one).suffix and Path(one).is_file()}
    if any(beside.values()) and not paths:
        raise InvalidRequest(
            "`--file`, `--files` and `--package` are for an evaluator in a file, and the job has only stored "
            "ones: give these options to `evaluators create` or `update`"
        )
    return [_read(client, paths[one], beside) if one in paths else one for one in given]


def _read(client: Client, path: Path, beside: dict[str, Any]) -> Evaluator:
    from evaluator_host.platform.evaluators.evaluator_files import read_evaluator, tell_files  # noqa: PLC0415 - few calls to a host need it

    found = read_evaluator(path, None, host=load_settings(), **beside)
    tell_files(found)
    for one in found.data.values():
        client.data.send(one)
    return found.evaluator


def _dataset(client: Client, given: str) -> str:
    """Return `given` if a data set may have this name.

    Raises:
      InvalidRequest: `given` is the path of a file, and no data set has that name.
    """
    file = Path(given)
    if file.suffix and file.is_file():
        try:
            client.datasets.get(given)
        except NotFound as error:
            name = usable_name(file.stem)
            raise InvalidRequest(
                f"{given} is a file, not a data set; upload it first: "
                f"{next_command(f'datasets upload {quote(given)} --name {name}')}; then --dataset {name}"
            ) from error
    return given


def _follow(client: Client, job: JobReport, *, as_json: bool) -> None:
    from evaluator_host.platform.terminal.progress import JobProgressBar  # noqa: PLC0415 - few calls to a host need it

    with JobProgressBar(shown=not as_json) as bar:
        ended = client.jobs.wait(job.id, on_progress=bar.show)
    print_found(ended, job_facts, as_json=as_json)
    if not as_json:
        out.print(statistics_table(client.jobs.results(job.id)))
        _print_failures(client, ended)
    failed = ended.progress.failed > (ended.config.max_failures or 0)
    if failed:
        err.print(f"{counted(ended.progress.failed, ended.unit)} failed, so the exit code is 1")
    raise typer.Exit(1 if failed or ended.status is not JobStatus.COMPLETED or ended.doubt is not None else 0)


def _print_failures(client: Client, job: JobReport) -> None:
    """Print the first groups of failed rows, and the commands that print all groups and all failed rows."""
    if not job.progress.failed:
        return
    groups = client.jobs.failures(job.id)
    out.print(failures_table(groups[:_GROUPS_SHOWN]))
    if len(groups) > _GROUPS_SHOWN:
        more = counted(len(groups) - _GROUPS_SHOWN, "more group")
        out.print(plain(f"{more}; to list all groups: {next_command(f'jobs failures {job.id}')}"))
    out.print(plain(f"every failed {job.unit}: {_failed_rows(job.id, job.progress.failed)}"))


def _names(label: str) -> tuple[str, str]:
    """Return the names of an evaluator in a job: with and without its version."""
    return label, label.partition("@")[0]


def _failed_rows(job_id: str, count: int, chosen: str = "") -> str:
    return next_command(f"jobs rows {job_id} --status failed --limit {count}{chosen}")


def read_target(
    url: str | None, model: str | None, prompt: str | None, *, inference: list[str] | None, **others: Any
) -> Target | None:
    """Return the model that produces the outputs, as the options describe it; None without the option `--target-url`.

    Raises:
      InvalidRequest: an option is missing, or a value cannot be read.
    """
    if url is None:
        if model or prompt or inference or others.get("api_key") or others.get("system"):
            raise InvalidRequest("--model, --prompt, --system, --inference and --api-key-secret need --target-url")
        return None
    if not model or not prompt:
        missing = "--model" if not model else "--prompt"
        raise InvalidRequest("--target-url needs --model and --prompt", problems=(Problem(missing, "is missing"),))
    return Target(url, model, prompt_template=prompt, inference=dict(map(_parameter, inference or ())), **others)


def _parameter(given: str) -> tuple[str, Any]:
    """Return the name and the value of a parameter. A value that is not JSON becomes a string."""
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise InvalidRequest(f"--inference {given!r} is not NAME=VALUE, as in temperature=0")
    try:
        return name, decode_json(value.encode())
    except InvalidJson:
        return name, value

"""`jobs`: create, watch, inspect and compare jobs on a host; jobs and their results as tables."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from evaluator_host.cli import options
from evaluator_host.cli.command import load_settings
from evaluator_host.cli.console import err, facts, format_time, out, plain, print_found, print_json, table
from evaluator_host.cli.progress import JobProgressBar
from evaluator_host.cli.remote_service import HostOption, host, named_job
from evaluator_host.cli.schedules import schedule_facts
from evaluator_host.cli.summary import corpus_scores_text, usage_text
from evaluator_host.cli.words import in_options
from evaluator_host.client import DEFAULT_URL, Client
from evaluator_host.datasets.mapping import Mapping
from evaluator_host.model.errors import InvalidRequest, Problem
from evaluator_host.model.evaluator import Evaluator, Isolation, ModelBudget, Replay
from evaluator_host.model.json_values import InvalidJson, decode_json
from evaluator_host.schemas.jobs import Executor, Failures, JobEstimate, JobNode, JobReport, JobScore, JobStatus, Target
from evaluator_host.schemas.results import (
    Agreement,
    Comparison,
    Difference,
    EvaluatorFigures,
    FailureGroup,
    JobFigures,
    JobRow,
)

app = typer.Typer(name="jobs", help="Score data sets with evaluators, on a host.", no_args_is_help=True)


_JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="Id of the job; or `last`, or `last-1` for the one before.")
]
_EvaluatorOption = Annotated[str | None, typer.Option(help="An evaluator of the job: exact-match@1, or its name.")]

_CHANGES_SHOWN = 10
SCORE_HEADER = ("SCORED", "FAILED", "MEAN", "PASSED", "CHANGE")
OWN_ROWS = "(own rows)"


@app.command("schedule", help="Make a job at each time of a cron expression: takes the options of `create`.")
@app.command("create", help="Queue a job. With --wait, exit 0: completed, 1: failed or cancelled.")
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
    map_: Annotated[
        list[str] | None, typer.Option("--map", metavar="FIELD=COLUMN", help="Or FIELD={{ template }}. Repeatable.")
    ] = None,
    target_url: Annotated[
        str | None,
        typer.Option("--target-url", help="OpenAI-compatible API that produces the outputs: https://host/v1"),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of its model.")] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="Template of the user message: {{ question }}")] = None,
    system: Annotated[str | None, typer.Option("--system", help="Template of the system message.")] = None,
    api_key_secret: Annotated[
        str | None, typer.Option("--api-key-secret", help="Name of the secret that holds its API key.")
    ] = None,
    inference: Annotated[
        list[str] | None,
        typer.Option(
            "--inference", metavar="NAME=VALUE", help="A parameter of the request: temperature=0. Repeatable."
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, max=256, help="Requests in parallel.")] = 8,
    target_timeout_s: Annotated[
        float, typer.Option("--target-timeout-s", help="Seconds to wait for one response.")
    ] = 60.0,
    retries: Annotated[int, typer.Option("--retries", min=0, max=20, help="Retries after a failed request.")] = 4,
    parallelism: Annotated[
        int | None, typer.Option(min=1, help="Sandboxes in parallel.", show_default="the host's")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first N rows.")] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Score only the rows whose index leaves K when divided by N.")
    ] = None,
    isolation: Annotated[
        Isolation, typer.Option(help="batch: rows may share a process (faster; state can leak).")
    ] = Isolation.ROW,
    executor: Annotated[
        Executor, typer.Option(help="ray: evaluate on the nodes of the host's Ray cluster.")
    ] = Executor.LOCAL,
    max_failures: Annotated[
        int | None, typer.Option(min=0, help="The job fails once more rows than this have failed.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job, for people; of the schedule.")] = None,
    cron: Annotated[str | None, typer.Option(help="Of schedule: when, as in '0 7 * * 1' (Mondays at 7).")] = None,
    timezone: Annotated[str, typer.Option(help="Time zone of --cron: Europe/Berlin.")] = "UTC",
    failures: Annotated[
        Failures, typer.Option(help="exclude: failed rows are not in the mean. zero: they count as 0.")
    ] = Failures.EXCLUDE,
    replay: options.ReplayOption = Replay.OFF,
    budget_requests: options.RequestsOption = None,
    budget_tokens: options.TokensOption = None,
    budget_cost: options.CostOption = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeating a request with this key returns the first job instead of a new one.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Score a few rows only, and tell what the job would use of models.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, max=100, help="Rows to score for --dry-run.")] = 3,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show the progress until the job ends, then its figures.")
    ] = False,
    url: HostOption = DEFAULT_URL,
    as_json: options.JsonOption = False,
) -> None:
    """Queue a job, or make a schedule of it."""
    mapping = dict(Mapping.parse(map_ or []).sources)
    target = read_target(
        target_url, model, prompt, inference=inference, system=system, api_key=api_key_secret, concurrency=concurrency,
        timeout_s=target_timeout_s, retries=retries,
    )  # fmt: skip
    scheduled = context.info_name == "schedule"
    if scheduled:
        _require_name_and_cron(name, cron)
    described: dict[str, Any] = {
        "evaluators": [_evaluator(one) for one in evaluator],
        "dataset": dataset,
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
    with host(url) as client:
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
        elif as_json:
            print_json(job)
        else:
            out.print(job.id)


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
    url: HostOption = DEFAULT_URL,
    as_json: options.JsonOption = False,
) -> None:
    """List jobs, newest first, with what each evaluator scored, and the change since the job before."""
    with host(url) as client:
        found = client.jobs.all(status=status, limit=limit, search=search)
    none = "there are no jobs; create one with evaluator-host jobs create"
    print_found(found, jobs_table, as_json=as_json, none=none)


@app.command()
def show(job: _JobArgument, *, url: HostOption = DEFAULT_URL, as_json: options.JsonOption = False) -> None:
    """Show a job and its progress."""
    with host(url) as client:
        found = named_job(client, job)
    print_found(found, job_facts, as_json=as_json)


@app.command()
def rename(
    job: _JobArgument,
    name: Annotated[str, typer.Argument(help="The new name; an empty text removes it.")],
    *,
    url: HostOption = DEFAULT_URL,
) -> None:
    """Give a job another name."""
    with host(url) as client:
        found = client.jobs.rename(named_job(client, job).id, name or None)
    err.print(plain(f"{found.id} is named {found.name}" if found.name else f"{found.id} has no name now"))


@app.command()
def watch(job: _JobArgument, *, url: HostOption = DEFAULT_URL, as_json: options.JsonOption = False) -> None:
    """Show the progress of a job until it ends, then its figures. Exit 0: completed, 1: failed or cancelled."""
    with host(url) as client:
        _follow(client, named_job(client, job), as_json=as_json)


@app.command()
def results(job: _JobArgument, *, url: HostOption = DEFAULT_URL, as_json: options.JsonOption = False) -> None:
    """Show the figures of a job, for each evaluator and metric."""
    with host(url) as client:
        found = client.jobs.results(named_job(client, job).id)
    print_found(found, figures_table, as_json=as_json)


@app.command()
def rows(
    job: _JobArgument,
    *,
    evaluator: _EvaluatorOption = None,
    status: Annotated[str | None, typer.Option(help="scored, skipped or failed.")] = None,
    passed: Annotated[
        bool | None, typer.Option("--passed/--not-passed", help="Only rows that passed, or did not.")
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Only rows with at least this score.")] = None,
    max_score: Annotated[float | None, typer.Option(help="Only rows with at most this score.")] = None,
    text: Annotated[str | None, typer.Option(help="Only rows with this text in a value.")] = None,
    sort: Annotated[str, typer.Option(help="row, score, -score, run_ms, -run_ms, or status (failed first).")] = "row",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows.")] = 20,
    url: HostOption = DEFAULT_URL,
    as_json: options.JsonOption = False,
) -> None:
    """Show rows of a job with their results."""
    filters = {
        "evaluator": evaluator, "status": status, "passed": None if passed is None else str(passed).lower(),
        "min_score": min_score, "max_score": max_score, "text": text, "sort": sort,
    }  # fmt: skip
    with host(url) as client:
        found = client.jobs.first_rows(named_job(client, job).id, limit, **filters)
    print_found(found, rows_table, as_json=as_json)


@app.command()
def row(
    job: _JobArgument,
    index: Annotated[int, typer.Argument(metavar="ROW", help="Number of the row, starting at 0.")],
    *,
    url: HostOption = DEFAULT_URL,
) -> None:
    """Print a row as JSON: the input of its evaluators, and each result."""
    with host(url) as client:
        print_json(client.jobs.row(named_job(client, job).id, index))


@app.command()
def failures(
    job: _JobArgument,
    *,
    evaluator: _EvaluatorOption = None,
    url: HostOption = DEFAULT_URL,
    as_json: options.JsonOption = False,
) -> None:
    """Show the failed rows, grouped by error."""
    with host(url) as client:
        found = client.jobs.failures(named_job(client, job).id, evaluator=evaluator)
    print_found(found, failures_table, as_json=as_json, none="no row failed")


@app.command()
def agreement(
    job: _JobArgument,
    *,
    label: Annotated[str | None, typer.Option(help="Column of the data set with the labels of people.")] = None,
    queue: Annotated[str | None, typer.Option(help="Label queue. Default: all that count for the job.")] = None,
    evaluator: _EvaluatorOption = None,
    url: HostOption = DEFAULT_URL,
    as_json: options.JsonOption = False,
) -> None:
    """Compare each evaluator with labels of people: accuracy, Cohen's kappa, confusion matrix, 95 % intervals."""
    with host(url) as client:
        found = client.jobs.agreement(named_job(client, job).id, label=label, queue=queue, evaluator=evaluator)
    print_found(found, agreement_tables, as_json=as_json)


@app.command()
def download(
    job: _JobArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to write; the suffix is .jsonl, .csv or .parquet")
    ],
    *,
    evaluator: _EvaluatorOption = None,
    url: HostOption = DEFAULT_URL,
) -> None:
    """Write all rows with their results to a file."""
    with host(url) as client:
        written = client.jobs.download(named_job(client, job).id, file, evaluator=evaluator)
    err.print(plain(f"wrote {written} bytes to {file}"))


@app.command()
def compare(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The earlier job, such as `last-1`.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The later one, or `last`.")],
    *,
    evaluator: _EvaluatorOption = None,
    diff: Annotated[bool, typer.Option("--diff", help="Print how outputs and reasons of these rows differ.")] = False,
    url: HostOption = DEFAULT_URL,
    as_json: options.JsonOption = False,
) -> None:
    """Compare two jobs over the same rows: paired differences, regressions, improvements."""
    with host(url) as client:
        ids = named_job(client, job).id, named_job(client, other).id
        found = client.jobs.compare(*ids, evaluator=evaluator)
        if as_json:
            print_json(found)
            return
        for one in found:
            out.print(comparison_table(one))
            for change in (*one.regressions[:_CHANGES_SHOWN], *one.improvements[:_CHANGES_SHOWN]) if diff else ():
                differ = client.jobs.row_diff(*ids, change.row, evaluator=one.before)
                out.print(plain("\n".join((f"row {differ.row}", differ.outputs, differ.results))))


@app.command()
def pause(job: _JobArgument, *, url: HostOption = DEFAULT_URL) -> None:
    """Pause a job. Its results so far are kept."""
    with host(url) as client:
        _print_state(client.jobs.pause(named_job(client, job).id), "pauses")


@app.command()
def resume(job: _JobArgument, *, url: HostOption = DEFAULT_URL) -> None:
    """Continue a paused job."""
    with host(url) as client:
        _print_state(client.jobs.resume(named_job(client, job).id), "goes on")


@app.command()
def cancel(job: _JobArgument, *, url: HostOption = DEFAULT_URL) -> None:
    """Cancel a job. Its results so far are kept."""
    with host(url) as client:
        _print_state(client.jobs.cancel(named_job(client, job).id), "stops")


@app.command()
def delete(job: _JobArgument, *, url: HostOption = DEFAULT_URL) -> None:
    """Delete a job that has ended, and its results."""
    with host(url) as client:
        found = named_job(client, job)
        client.jobs.delete(found.id)
    err.print(plain(f"removed {found.id}"))


def _evaluator(given: str) -> Evaluator | str:
    path = Path(given)
    if path.suffix and path.is_file():
        return options.read_evaluator(path, None, host=load_settings()).evaluator
    return given


def _print_state(job: JobReport, verb: str) -> None:
    err.print(plain(f"{job.id} {verb}: {job.status}, {job.progress.done} of {job.progress.rows}"))


def _follow(client: Client, job: JobReport, *, as_json: bool) -> None:
    with JobProgressBar(shown=not as_json) as bar:
        ended = client.jobs.wait(job.id, on_progress=bar.show)
    print_found(ended, job_facts, as_json=as_json)
    if not as_json:
        out.print(figures_table(client.jobs.results(job.id)))
    raise typer.Exit(0 if ended.status is JobStatus.COMPLETED else 1)


def read_target(
    url: str | None, model: str | None, prompt: str | None, *, inference: list[str] | None, **others: Any
) -> Target | None:
    """Return the target that the options describe, None without `--target-url`.

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
    """Return a parameter; a value that is not JSON is text."""
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise InvalidRequest(f"--inference {given!r} is not NAME=VALUE, as in temperature=0")
    try:
        return name, decode_json(value.encode())
    except InvalidJson:
        return name, value


def jobs_table(jobs: Sequence[JobReport]) -> Text:
    """Return a table of jobs."""
    header = ("JOB", "STATUS", "NAME", "DATA SET", "CREATED", "EVALUATOR", *SCORE_HEADER)
    return table(header, [row for job in jobs for row in _job_rows(job)])


def _job_rows(job: JobReport) -> Iterator[tuple[object, ...]]:
    """Yield a line for each evaluator of a job; only the first one names the job's data set and time."""
    about = job.name, job.dataset_name or OWN_ROWS, format_time(job.created_at)
    for score in job.scores:
        yield job.id, job.status, *about, score.evaluator, *score_cells(score)
        about = "", "", ""


def score_cells(score: JobScore) -> tuple[object, ...]:
    """Return the cells under `SCORE_HEADER`."""
    rate = None if score.pass_rate is None else f"{score.pass_rate:.0%}"
    change = None if score.change is None else f"{score.change:+.4g}"
    return f"{score.scored}/{score.rows}", score.failed, score.mean, rate, change


def job_facts(job: JobReport) -> Text:
    """Return a table with the status, times, counts and settings of one job."""
    progress = job.progress
    speed = f", {progress.rows_per_s:g} rows/s" if progress.rows_per_s else ""
    left = f", {progress.eta_s:.0f} s to go" if progress.eta_s else ""
    return facts(
        (
            ("job", job.id),
            ("name", job.name),
            ("status", job.status),
            ("error", f"{job.error.code}: {job.error.message}" if job.error else None),
            ("evaluators", ", ".join(job.evaluators)),
            ("data set", job.dataset_name or f"{job.dataset} (rows of the job)"),
            ("mapping", ", ".join(f"{field}={source}" for field, source in job.mapping.items())),
            ("model", _model(job)),
            ("done", f"{progress.done} of {progress.rows}{speed}{left}"),
            ("failed", progress.failed),
            ("nodes", "; ".join(_node(one) for one in job.nodes) or None),
            *((one.evaluator, _score_text(one)) for one in job.scores),
            ("created", format_time(job.created_at)),
            ("finished", format_time(job.finished_at) if job.finished_at else None),
        )
    )


def _score_text(score: JobScore) -> str | None:
    """Return the mean of an evaluator with the number of rows that it is over, which may be few of all."""
    if score.mean is None:
        return None
    rate = "" if score.pass_rate is None else f", {score.pass_rate:.1%} passed"
    change = "" if score.change is None else f", {score.change:+.4g} since {score.previous}"
    return f"mean {score.mean:.4g} over {score.scored} of {score.rows} rows{rate}{change}"


def _node(node: JobNode) -> str:
    reason = f" ({node.reason})" if node.reason else ""
    return f"{node.name} {node.state}{reason}, {node.rows} rows"


def _model(job: JobReport) -> str | None:
    if job.target is None:
        return None
    rows = job.progress.rows // max(len(job.evaluators), 1)
    return f"{job.target.model}, {job.progress.generated} of {rows} outputs"


def figures_table(figures: JobFigures) -> Text:
    """Return a table of a job's scores and other figures, for each evaluator."""
    return Text("\n\n").join(_evaluator_figures(one) for one in figures.evaluators)


def _evaluator_figures(one: EvaluatorFigures) -> Text:
    rate = "" if one.pass_rate is None else f", {one.pass_rate:.1%} passed"
    skipped = f", {one.skipped} skipped" if one.skipped else ""
    made = Text(plain(f"{one.evaluator}: {one.rows} rows, {one.scored} scored, {one.failed} failed{skipped}{rate}"))
    if one.metrics:
        header = ("METRIC", "COUNT", "NAN", "MEAN", "MIN", "P50", "P90", "P99", "MAX", "STD DEV")
        made.append("\n").append(table(header, [_metric(metric) for metric in one.metrics]))
    for metric in one.metrics:
        if metric.rubric_distribution is not None:
            levels = ", ".join(f"{level.label} {level.count}" for level in metric.rubric_distribution)
            made.append(plain(f"\n{metric.name}: {levels}"))
    if one.together is not None:
        made.append(plain(f"\ntogether: {corpus_scores_text(one.together)}"))
    if one.usage is not None:
        made.append(plain(f"\nmodels: {usage_text(one.usage)}"))
    for error in one.errors:
        made.append(plain(f"\n{error.code}: {error.count} rows, for example row {error.example_row}"))
    return made


def _metric(metric: Any) -> tuple[object, ...]:
    at = metric.percentiles or {}
    return (
        *(metric.name, metric.count, metric.nan_count, metric.mean, metric.min),
        *(at.get("p50"), at.get("p90"), at.get("p99"), metric.max, metric.std_dev),
    )


def rows_table(rows: Sequence[JobRow]) -> Text:
    """Return a table of rows."""
    return table(("ROW", "EVALUATOR", "STATUS", "SCORE", "PASSED", "WHY"), [_row(row) for row in rows])


def _row(row: JobRow) -> tuple[object, ...]:
    result = row.result
    why = result["reason"]
    if result["error"]:
        why = f"{result['error']['code']}: {result['error']['message']}"
    return row.index, row.evaluator, result["status"], result["score"], result["passed"], why


def failures_table(groups: Sequence[FailureGroup]) -> Text:
    """Return a table of the groups of failed rows."""
    return table(("EVALUATOR", "COUNT", "CODE", "LINE", "ROWS", "MESSAGE"), [_group(group) for group in groups])


def _group(group: FailureGroup) -> tuple[object, ...]:
    rows = ", ".join(map(str, group.rows)) + (", …" if group.count > len(group.rows) else "")
    hint = f"; {in_options(group.hint)}" if group.hint else ""
    return group.evaluator, group.count, group.code, group.line, rows, f"{in_options(group.message)}{hint}"


def estimate_text(one: JobEstimate) -> Text:
    """Return an estimate, and the budgets that the job would go over."""
    made = Text(plain(f"{one.rows} rows would use {usage_text(one.usage)}\n"))
    made.append(plain(f"estimated from {one.sampled} rows, of which {one.failed} failed: {usage_text(one.sample)}"))
    for why in one.over:
        made.append(plain(f"\nbudget_exceeded: {why}"))
    return made


def agreement_tables(found: Sequence[Agreement]) -> Text:
    """Return the agreement of evaluators with labels of people."""
    made = Text()
    for one in found:
        weighted = "" if one.weighted_kappa is None else f", weighted {one.weighted_kappa:.3f}"
        kappa = "none" if one.kappa is None else f"{one.kappa:.3f} ({_interval(one.kappa_interval)}){weighted}"
        accuracy = f"{one.accuracy:.3f} ({_interval(one.accuracy_interval)})"
        made.append(plain(f"{one.evaluator}: {one.rows} rows, accuracy {accuracy}, kappa {kappa}\n"))
        header = ("CLASS", "PEOPLE", "EVALUATOR", "RECALL", "", "PRECISION", "")
        rows = [
            (
                kind.name, kind.human, kind.judged, kind.recall, _interval(kind.recall_interval), kind.precision,
                _interval(kind.precision_interval),
            )
            for kind in one.classes
        ]  # fmt: skip
        made.append(table(header, rows))
        names = [kind.name for kind in one.classes]
        counts = {(cell.human, cell.judged): cell.rows for cell in one.confusion}
        made.append("\n")
        made.append(
            table(("PEOPLE \\ EVALUATOR", *names), [(a, *(counts.get((a, b), 0) for b in names)) for a in names])
        )
        made.append("\n")
    return made


def _interval(given: tuple[float, float] | None) -> str:
    return "" if given is None else f"{given[0]:.3f} to {given[1]:.3f}"


def comparison_table(one: Comparison) -> Text:
    """Return the comparison of an evaluator in two jobs."""
    made = Text(plain(f"{one.before} -> {one.after}: {one.improved} rows better, {one.regressed} worse\n"))
    header = ("METRIC", "N", "BEFORE", "AFTER", "DIFFERENCE", "95 % INTERVAL", "")
    made.append(table(header, [_difference(metric) for metric in one.metrics]))
    for name, changes in (("worse", one.regressions), ("better", one.improvements)):
        for change in changes[:_CHANGES_SHOWN]:
            made.append(plain(f"\n{name}: row {change.row}, {_score(change.before)} -> {_score(change.after)}"))
    return made


def _difference(metric: Difference) -> tuple[object, ...]:
    interval = None if metric.interval is None else f"{metric.interval[0]:.4g} to {metric.interval[1]:.4g}"
    mark = "significant" if metric.significant else ""
    return metric.metric, metric.n, metric.before, metric.after, metric.difference, interval, mark


def _score(value: float | None) -> str:
    return "no score" if value is None else f"{value:.4g}"

"""Shows the progress of a job until it ends, then its results and failures."""

import typer

from evaluator_host.client import Client
from evaluator_host.platform.terminal.console import err, next_command, out, plain, print_found
from evaluator_host.platform.terminal.gates import why_under
from evaluator_host.platform.terminal.job_tables import failures_table, job_facts, statistics_table
from evaluator_host.types.jobs import JobReport, JobStatus
from evaluator_host.types.names import counted
from evaluator_host.types.results import JobStatistics

_GROUPS_SHOWN = 3


def follow(client: Client, job: JobReport, *, as_json: bool, fail_under: float | None = None) -> None:
    """Show a job until it ends, then its results. Exit with 1 if it failed, or if a mean is below `fail_under`."""
    from evaluator_host.platform.terminal.progress import JobProgressBar  # noqa: PLC0415 - few calls to a host need it

    with JobProgressBar(shown=not as_json) as bar:
        ended = client.jobs.wait(job.id, on_progress=bar.show)
    print_found(ended, job_facts, as_json=as_json)
    under: list[str] = []
    if fail_under is not None or not as_json:
        results = client.jobs.results(job.id)
        under = _under(ended, results, fail_under)
        if not as_json:
            out.print(statistics_table(results))
            print_failures(client, ended)
    failed = ended.progress.failed > (ended.config.max_failures or 0)
    if failed:
        err.print(f"{counted(ended.progress.failed, ended.unit)} failed, so the exit code is 1")
    for why in under:
        err.print(plain(f"{why}, so the exit code is 1"))
    ok = ended.status is JobStatus.COMPLETED and ended.doubt is None and not (failed or under)
    raise typer.Exit(0 if ok else 1)


def _under(job: JobReport, results: JobStatistics, fail_under: float | None) -> list[str]:
    """Return why the means of a job's evaluators do not meet `--fail-under`, for each evaluator below it."""
    scores = ((one.evaluator, metric) for one in results.evaluators for metric in one.metrics if metric.name == "score")
    fractions = {name: (score.min or 0) >= 0 and (score.max or 0) <= 1 for name, score in scores}
    means = ((one.evaluator, one.mean) for one in job.scores)
    found = ((name, why_under(mean, fail_under, fractions=fractions.get(name, False))) for name, mean in means)
    return [f"{name}: {why}" for name, why in found if why is not None]


def print_failures(client: Client, job: JobReport) -> None:
    """Print the first groups of failed rows, and the commands that print all groups and all failed rows."""
    if not job.progress.failed:
        return
    groups = client.jobs.failures(job.id)
    out.print(failures_table(groups[:_GROUPS_SHOWN]))
    if len(groups) > _GROUPS_SHOWN:
        more = counted(len(groups) - _GROUPS_SHOWN, "more group")
        out.print(plain(f"{more}; to list all groups: {next_command(f'jobs failures {job.id}')}"))
    out.print(plain(f"every failed {job.unit}: {failed_rows(job.id, job.progress.failed)}"))


def failed_rows(job_id: str, count: int, chosen: str = "") -> str:
    return next_command(f"jobs rows {job_id} --status failed --limit {count}{chosen}")

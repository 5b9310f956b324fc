"""Shows the progress of a job until it ends, then its results and failures."""

import typer

from evaluator_host.client import Client
from evaluator_host.platform.terminal.console import err, next_command, out, plain, print_found
from evaluator_host.platform.terminal.job_tables import failures_table, job_facts, statistics_table
from evaluator_host.types.jobs import JobReport, JobStatus
from evaluator_host.types.names import counted

_GROUPS_SHOWN = 3


def follow(client: Client, job: JobReport, *, as_json: bool) -> None:
    from evaluator_host.platform.terminal.progress import JobProgressBar  # noqa: PLC0415 - few calls to a host need it

    with JobProgressBar(shown=not as_json) as bar:
        ended = client.jobs.wait(job.id, on_progress=bar.show)
    print_found(ended, job_facts, as_json=as_json)
    if not as_json:
        out.print(statistics_table(client.jobs.results(job.id)))
        print_failures(client, ended)
    failed = ended.progress.failed > (ended.config.max_failures or 0)
    if failed:
        err.print(f"{counted(ended.progress.failed, ended.unit)} failed, so the exit code is 1")
    raise typer.Exit(1 if failed or ended.status is not JobStatus.COMPLETED or ended.doubt is not None else 0)


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

"""`schedules`: jobs at fixed times."""

from typing import Annotated

import typer

from evaluator_host.platform.jobs.creation import create
from evaluator_host.platform.terminal.console import err, format_time, out, plain, print_found, table
from evaluator_host.platform.terminal.job_tables import schedule_facts
from evaluator_host.platform.terminal.options import ForceOption, JsonOption
from evaluator_host.platform.terminal.remote_host import ClientOption
from evaluator_host.types.alerts import ScheduleReport

app = typer.Typer(name="schedules", no_args_is_help=True)

_NameArgument = Annotated[str, typer.Argument(metavar="NAME")]

app.command("create", help="Create jobs on a cron schedule: takes the options of `jobs create`.")(create)


@app.command(name="list")
def list_schedules(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List schedules, sorted by name."""
    found = client.schedules.all()
    none = "there are no schedules; make one with evaluator-host schedules create"
    header = ("NAME", "CRON", "TIME ZONE", "NEXT RUN", "LAST JOB", "MISSED", "DATA SET", "EVALUATORS")
    print_found(found, lambda all_: table(header, list(map(_schedule_row, all_))), as_json=as_json, none=none)


@app.command(name="show")
def show_schedule(name: _NameArgument, *, client: ClientOption, as_json: JsonOption = False) -> None:
    """Show a schedule, and when it runs next."""
    found = client.schedules.get(name)
    print_found(found, schedule_facts, as_json=as_json)


@app.command("resume", help="Resume a paused schedule.")
@app.command("pause", help="Pause a schedule: it does not create jobs until it is resumed.")
def pause_schedule(context: typer.Context, name: _NameArgument, *, client: ClientOption) -> None:
    """Pause or resume a schedule."""
    found = client.schedules.update(name, paused=context.info_name == "pause")
    err.print(plain(f"{name}: next run {_next_run(found)}"))


@app.command(name="run")
def run_schedule(name: _NameArgument, *, client: ClientOption) -> None:
    """Create a job of a schedule now, and print the job's id."""
    out.print(client.schedules.run(name).id)


@app.command(name="delete")
def delete_schedule(name: _NameArgument, *, force: ForceOption = False, client: ClientOption) -> None:
    """Delete a schedule. Its jobs stay."""
    client.schedules.delete(name, force=force)
    err.print(plain(f"deleted {name}"))


def _schedule_row(one: ScheduleReport) -> tuple[object, ...]:
    last = one.last_job or one.last_error
    return (
        one.name,
        one.cron,
        one.timezone,
        _next_run(one),
        last,
        one.missed_text,
        one.dataset,
        ", ".join(one.evaluators),
    )


def _next_run(one: ScheduleReport) -> str:
    return format_time(one.next_runs[0]) if one.next_runs else "paused" if one.paused else "never"

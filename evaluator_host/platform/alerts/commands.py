"""The command `alerts`. An alert sends a message when a metric of jobs or of live traces goes out of bounds."""

from typing import Annotated

import typer

from evaluator_host.platform.terminal.console import err, facts, format_time, out, plain, print_found, table
from evaluator_host.platform.terminal.options import JsonOption
from evaluator_host.platform.terminal.remote_host import ClientOption, named_job
from evaluator_host.types.alerts import AlertReport, AlertRule, Metric
from evaluator_host.types.numbers import exact

app = typer.Typer(name="alerts", no_args_is_help=True)

_NameArgument = Annotated[str, typer.Argument(metavar="NAME")]


@app.command(name="create")
def create_alert(
    name: _NameArgument,
    *,
    webhook: Annotated[str | None, typer.Option(help="URL that receives a POST: https://hooks.example.com/…")] = None,
    schedule: Annotated[str | None, typer.Option(help="Watch the jobs of this schedule.")] = None,
    job: Annotated[str | None, typer.Option(help="Watch one job: its id, or `last`.")] = None,
    live: Annotated[str | None, typer.Option(help="Watch the live traces of this evaluator.")] = None,
    evaluator: Annotated[str | None, typer.Option(help="Watch only this evaluator of the job.")] = None,
    metric: Annotated[Metric, typer.Option(help="The metric to watch.")] = Metric.MEAN,
    below: Annotated[float | None, typer.Option(help="Fire when the metric is below this.")] = None,
    above: Annotated[float | None, typer.Option(help="Fire when the metric is above this.")] = None,
    window_minutes: Annotated[int, typer.Option(min=1, help="With --live: use the traces of the last N minutes.")] = 60,
    min_rows: Annotated[int, typer.Option(min=1, help="Fire only if the metric covers at least this many rows.")] = 1,
    secret: Annotated[str | None, typer.Option(help="Name of the secret that signs the messages.")] = None,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Create an alert that fires when a metric of a job, a schedule or live traces goes out of bounds."""
    rule = AlertRule(
        metric,
        webhook,
        job=None if job is None else named_job(client, job).id,
        schedule=schedule,
        live=live,
        evaluator=evaluator,
        below=below,
        above=above,
        window_minutes=window_minutes,
        min_rows=min_rows,
        secret=secret,
    )
    made = client.alerts.create(name, rule)
    print_found(made, alert_facts, as_json=as_json)


@app.command(name="list")
def list_alerts(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List alerts, sorted by name."""
    found = client.alerts.all()
    none = "there are no alerts; make one with evaluator-host alerts create"
    header = ("NAME", "WATCHES", "RULE", "STATE", "VALUE", "CHECKED", "LAST MESSAGE")
    print_found(found, lambda all_: table(header, list(map(_alert_row, all_))), as_json=as_json, none=none)


@app.command(name="show")
def show_alert(name: _NameArgument, *, client: ClientOption, as_json: JsonOption = False) -> None:
    """Show an alert and its last messages."""
    found = client.alerts.get(name)
    print_found(found, alert_facts, as_json=as_json)


@app.command("acknowledge", help="Mark an alert as seen: the workbench does not count it until its next message.")
@app.command("resume", help="Resume a paused alert. It watches jobs and traces that end from now on.")
@app.command("pause", help="Pause an alert: it watches nothing until it is resumed.")
def change_alert(context: typer.Context, name: _NameArgument, *, client: ClientOption) -> None:
    """Pause, resume or acknowledge an alert; the name of the command decides which."""
    seen = context.info_name == "acknowledge" or None
    paused = None if seen else context.info_name == "pause"
    found = client.alerts.update(name, paused=paused, acknowledged=seen)
    err.print(plain(f"{name}: {_state(found)}"))


@app.command(name="test")
def send_test(name: _NameArgument, *, client: ClientOption) -> None:
    """Send a test message. The exit code is 1 if the webhook did not accept the message."""
    sent = client.alerts.test(name).deliveries[0]
    out.print(plain(f"{sent.status}: {sent.error}" if sent.error else sent.status))
    raise typer.Exit(0 if sent.status in ("sent", "shown") else 1)


@app.command(name="delete")
def delete_alert(name: _NameArgument, *, client: ClientOption) -> None:
    """Delete an alert."""
    client.alerts.delete(name)
    err.print(plain(f"deleted {name}"))


def alert_facts(one: AlertReport) -> object:
    """Return a table with every field of an alert."""
    messages = [
        f"{format_time(sent.created_at)} {sent.status} {sent.text} {sent.error or ''}" for sent in one.deliveries
    ]
    return facts(
        (
            ("alert", one.name),
            ("watches", _watched(one.rule)),
            ("rule", _rule(one.rule)),
            ("state", _state(one)),
            ("value", one.value),
            ("checked", format_time(one.checked_at) if one.checked_at else None),
            ("webhook", one.rule.url),
            ("messages", "\n".join(messages)),
            ("dropped unsent", one.unsent or None),
        )
    )


def _alert_row(one: AlertReport) -> tuple[object, ...]:
    last = f"{one.deliveries[0].type} {one.deliveries[0].status}" if one.deliveries else None
    checked = format_time(one.checked_at) if one.checked_at else None
    return one.name, _watched(one.rule), _rule(one.rule), _state(one), one.value, checked, last


def _watched(rule: AlertRule) -> str:
    if rule.live is not None:
        return f"live traces of {rule.live}, {rule.window_minutes} min"
    return f"job {rule.job}" if rule.job is not None else f"schedule {rule.schedule}"


def _rule(rule: AlertRule) -> str:
    bound = f"< {exact(rule.below)}" if rule.below is not None else f"> {exact(rule.above or 0.0)}"
    return f"{rule.metric} {bound}" + (f" of {rule.evaluator}" if rule.evaluator else "")


def _state(one: AlertReport) -> str:
    firing = "acknowledged" if one.acknowledged else "firing"
    is_paused = one.paused and one.rule.job is None  # an alert on a single job stops by itself once that job has ended
    unfired = "ok" if one.checked_at else "not checked" if one.paused else "not checked yet"
    return ", ".join([firing] * one.firing + ["paused"] * is_paused) or unfired

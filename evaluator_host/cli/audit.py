"""`audit`: the log of the calls of a host."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from evaluator_host.cli import options
from evaluator_host.cli.command import load_settings
from evaluator_host.cli.console import err, format_time, out, plain, print_json
from evaluator_host.cli.keys import WorkspaceOption, with_store

if TYPE_CHECKING:
    from evaluator_host.store.audit import AuditLine


def audit(
    *,
    workspace: WorkspaceOption = None,
    key: Annotated[
        str | None, typer.Option(help="Only calls with this key, by id or name.", show_default=False)
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Only calls of the last 24h, 7d, …", show_default="all")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of calls.")] = 100,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show the audit log, newest first: key, workspace, verb, evaluator, rows, outcome, duration; never data."""
    settings = load_settings(data_dir=data_dir)
    start = datetime.now(UTC) - options.read_duration(since, "--since") if since is not None else None
    lines = with_store(
        settings, lambda store: store.audit.list_entries(limit=limit, workspace=workspace, key=key, since=start)
    )
    if as_json:
        print_json(lines)
        return
    for line in lines:
        out.print(plain(_text(line)))
    if not lines:
        err.print("the audit log has no such call")


def _text(line: "AuditLine") -> str:
    failed = f", {line.failed} failed" if line.failed else ""
    return (
        f"{format_time(line.at)}  {line.workspace:<16}  {line.key or '-':<16}  {line.verb:<18}  {line.outcome:<16}  "
        f"{line.rows} rows{failed}  {line.duration_ms:.1f} ms  {line.evaluator or ''}"
    )

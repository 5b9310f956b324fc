"""`keys` and `audit`: create, list and revoke the keys for calling a host over HTTP, and show the log of its calls."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, format_time, out, plain, print_found, print_json, table
from evaluator_host.platform.terminal.local_store import with_store
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.names import counted, what_was_meant

if TYPE_CHECKING:
    from rich.text import Text

    from evaluator_host.engine.config.settings import Settings
    from evaluator_host.platform.store.audit import AuditLine
    from evaluator_host.platform.store.keys import ApiKey
    from evaluator_host.platform.store.store import Store

T = TypeVar("T")

_SHOWN: Final = 10  # maximum number of workspaces that a message names

app = typer.Typer(name="keys", no_args_is_help=True)

WorkspaceOption = Annotated[str | None, typer.Option(help="Only this workspace.", show_default=False)]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for: ci, notebook, alice.")],
    *,
    workspace: Annotated[
        str, typer.Option(help="Workspace of the key; created if it does not exist.")
    ] = DEFAULT_WORKSPACE,
    expires: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Time until the key stops working: 90d, 12h, 2w.", show_default="never"),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation before the first key is created.")
    ] = False,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Create a key and print it, once. After the first key, every request to the host needs one."""
    settings = load_settings(data_dir=data_dir)
    expires_at = datetime.now(UTC) + options.read_duration(expires, "--expires") if expires is not None else None

    first = not with_store(settings, lambda store: store.keys.any_made(), may_be_new=True)
    if first and not yes and sys.stdin.isatty():
        question = (
            "Once the first key exists, every request to this host needs a key, even from the workbench. Create it?"
        )
        typer.confirm(question, abort=True, err=True)
    new, (key, token) = with_store(settings, lambda store: _create(store, name, workspace, expires_at))
    if as_json:
        print_json({"id": key.id, "name": key.name, "workspace": key.workspace, "key": token,
                    "created_at": key.created_at, "expires_at": key.expires_at})  # fmt: skip
    else:
        out.print(token)
        ends = f", until {format_time(key.expires_at)}" if key.expires_at else ""
        err.print(plain(f"key {key.name} ({key.id}) of workspace {key.workspace}{ends}; it will not be shown again"))
        if new is not None:
            err.print(plain(f"workspace {key.workspace} is new; {new}"))
        if first:
            err.print("from now on every request to a host with this database needs a key")
    _note(settings, "keys.create", key)


async def _create(
    store: "Store", name: str, workspace: str, expires_at: datetime | None
) -> tuple[str | None, tuple["ApiKey", str]]:
    """Create a key. Return the key with its text, after advice on the key's workspace (None if it is not new)."""
    new = None
    if workspace != DEFAULT_WORKSPACE and await store.workspaces.advice_on_unknown([workspace]):
        others = sorted({DEFAULT_WORKSPACE, *(key.workspace for key in await store.keys.list_keys())})
        new = what_was_meant(workspace, others, otherwise=f"existing workspaces: {', '.join(others[:_SHOWN])}")
    return new, await store.keys.create_key(name, workspace, expires_at=expires_at)


@app.command(name="list")
def list_(
    *, workspace: WorkspaceOption = None, data_dir: options.DataDirOption = None, as_json: options.JsonOption = False
) -> None:
    """List keys, newest first, without the keys themselves."""
    keys = with_store(load_settings(data_dir=data_dir), lambda store: store.keys.list_keys(workspace=workspace))
    now = datetime.now(UTC)
    if as_json:
        print_json([_as_json(key, now) for key in keys])
        return
    none = "there are no keys; create one with evaluator-host keys create NAME"
    print_found(keys, lambda found: _keys_table(found, now), as_json=False, none=none)


def _keys_table(keys: "list[ApiKey]", now: datetime) -> "Text":
    rows = [
        (
            key.id,
            _state(key, now),
            key.workspace,
            key.name,
            f"until {format_time(key.expires_at)}" if key.expires_at else "never expires",
            f"last used {format_time(key.last_used_at)}" if key.last_used_at else "never used",
        )
        for key in keys
    ]
    return table(("ID", "STATE", "WORKSPACE", "NAME", "EXPIRES", "USED"), rows)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Id or name of the key.")],
    *,
    workspace: WorkspaceOption = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Revoke a key. Running hosts refuse it within about a second; jobs that it started continue."""
    settings = load_settings(data_dir=data_dir)
    revoked = with_store(settings, lambda store: store.keys.revoke(key, workspace=workspace))
    if as_json:
        print_json(_as_json(revoked, datetime.now(UTC)))
    else:
        err.print(plain(f"revoked key {revoked.name} ({revoked.id}) of workspace {revoked.workspace}"))
    _note(settings, "keys.revoke", revoked)


def _note(settings: "Settings", verb: str, key: "ApiKey") -> None:
    """Write the audit entry. Call this only after the result is printed.

    If the entry came first and failed, a new key would never be shown.
    """
    subject = f"{key.name} ({key.id})"
    with_store(settings, lambda store: store.audit.note_command(verb, workspace=key.workspace, subject=subject))


@app.command()
def reset(
    *,
    open_: Annotated[
        bool, typer.Option("--open", help="Confirm that hosts with this database will need no key.")
    ] = False,
    data_dir: options.DataDirOption = None,
) -> None:
    """Delete every key, so that hosts with this database need none. Such hosts listen on loopback only.

    Secrets, evaluators, jobs and data of the workspace `default` can be reached without a key then; those of other
    workspaces wait until a key for their workspace is created. Running hosts ask for keys until they are restarted.
    """
    if not open_:
        raise InvalidRequest(
            "this deletes every key and lets everybody on this machine call the host: confirm this with `keys "
            "reset --open`"
        )
    settings = load_settings(data_dir=data_dir)
    gone = with_store(settings, lambda store: store.keys.delete_all())
    err.print(
        plain(
            f"deleted {counted(gone, 'key')}; after a restart, hosts with this database need no key, and only programs "
            "on the same machine can call them"
        )
    )
    with_store(settings, lambda store: store.audit.note_command("keys.reset", subject=f"{gone} keys"))


def _as_json(key: "ApiKey", now: datetime) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "workspace": key.workspace,
        "state": _state(key, now),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
    }


def _state(key: "ApiKey", now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "active" if key.usable(now) else "expired"


def audit(
    *,
    workspace: WorkspaceOption = None,
    key: Annotated[
        str | None, typer.Option(help="Only calls with this key, by id or name.", show_default=False)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Only calls in this last period: 24h, 7d, …", show_default="all"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of calls.")] = 100,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show who evaluated or changed what, newest first. Commands that change keys are included; row data is not."""
    settings = load_settings(data_dir=data_dir)
    start = datetime.now(UTC) - options.read_duration(since, "--since") if since is not None else None
    lines = with_store(
        settings, lambda store: store.audit.list_entries(limit=limit, workspace=workspace, key=key, since=start)
    )
    none = "no call in the audit log matches"
    print_found(lines, _audit_table, as_json=as_json, none=none)


def _audit_table(lines: "list[AuditLine]") -> "Text":
    header = ("TIME", "WORKSPACE", "KEY", "OPERATION", "OUTCOME", "ROWS", "FAILED", "MS", "OBJECT, EVALUATOR, GRANTS")
    rows = [
        (
            format_time(line.at),
            line.workspace,
            line.key,
            line.verb,
            line.outcome,
            line.rows,
            line.failed,
            f"{line.duration_ms:.1f}",
            "  ".join(part for part in (line.subject, line.evaluator, line.grants) if part),
        )
        for line in lines
    ]
    return table(header, rows)

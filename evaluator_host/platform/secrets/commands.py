"""`secrets`: API keys of models, stored encrypted on a host and used by name."""

import sys
from typing import Annotated

import typer

from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, format_time, plain, print_found, print_json, table
from evaluator_host.platform.terminal.options import DataDirOption, ForceOption, JsonOption
from evaluator_host.platform.terminal.remote_host import ClientOption
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.names import counted

app = typer.Typer(name="secrets", no_args_is_help=True)

_NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the secret: letters, digits, dots, dashes, underscores.")
]
_CHARS_READ = 64 << 10


@app.command(name="set")
def set_(name: _NameArgument, *, client: ClientOption, as_json: JsonOption = False) -> None:
    """Create a secret or replace its value. The value is prompted for, or read from standard input."""
    value = _value()
    kept = client.secrets.set(name, value)
    if as_json:
        print_json(kept)
    else:
        err.print(plain(f"secret {kept.name} is set; it will not be shown again"))


@app.command(name="list")
def list_(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List secrets by name, without their values."""
    found = client.secrets.all()
    rows = [(one.name, format_time(one.created_at), format_time(one.updated_at)) for one in found]
    none = "there are no secrets; create one with evaluator-host secrets set NAME"
    print_found(found, lambda _: table(("NAME", "CREATED", "SET"), rows), as_json=as_json, none=none)


@app.command()
def delete(name: _NameArgument, *, force: ForceOption = False, client: ClientOption) -> None:
    """Delete a secret. Jobs that still need it fail."""
    client.secrets.delete(name, force=force)
    err.print(plain(f"deleted {name}"))


@app.command()
def rotate(
    *,
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Remove old keys from the key file, and do not create a new one.")
    ] = False,
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Encrypt all secrets with a new key. The command opens the database itself; hosts may keep running.

    The new key is added to the file secrets.key. If the keys are in EVALUATOR_HOST_SECRETS_KEY, first add a new key at
    the beginning of this setting.
    """
    from evaluator_host.platform.terminal.local_store import with_store  # noqa: PLC0415 - the database, which the other commands do not need

    settings = load_settings(data_dir=data_dir)
    done = with_store(settings, lambda store: store.secrets.rotate_key(drop_old=drop_old))
    with_store(settings, lambda store: store.audit.note_command("secrets.rotate"))
    if as_json:
        print_json(done)
        return
    for name in done.closed:
        err.print(plain(f"{name} was not encrypted again: no key of this host can decrypt it; set it again"))
    again = "; the old keys stay, for backups: --drop-old removes them" if done.added else ""
    made = "a new key was made; " if done.added else ""
    dropped = f"; removed {counted(done.dropped, 'old key')}" if drop_old else ""
    err.print(plain(f"{made}encrypted {counted(done.resealed, 'secret')} with the newest key{dropped}{again}"))


def _value() -> str:
    """Ask for the value, or read it from standard input, so that other users and the shell history do not see it."""
    asked = sys.stdin.isatty()
    value = str(typer.prompt("Value", hide_input=True, err=True)) if asked else sys.stdin.read(_CHARS_READ)
    value = value.rstrip("\r\n")
    if not value:
        raise InvalidRequest(
            "the value is empty; type it at the prompt, or pipe it in: evaluator-host secrets set NAME < file"
        )
    return value

"""`secrets`: API keys of models, stored encrypted on a host and used by name."""

import sys
from typing import Annotated

import typer

from evaluator_host.cli.console import err, format_time, out, plain, print_json, table
from evaluator_host.cli.options import JsonOption
from evaluator_host.cli.remote_service import HostOption, host
from evaluator_host.client import DEFAULT_URL
from evaluator_host.model.errors import InvalidRequest

app = typer.Typer(name="secrets", help="API keys of models, stored encrypted on a host.", no_args_is_help=True)

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, dots, dashes, underscores.")]
_CHARS_READ = 64 << 10


@app.command(name="set")
def set_(name: _NameArgument, *, url: HostOption = DEFAULT_URL, as_json: JsonOption = False) -> None:
    """Create a secret or replace its value. The value is prompted for, or read from standard input."""
    value = _value()
    with host(url) as client:
        kept = client.secrets.set(name, value)
    if as_json:
        print_json(kept)
    else:
        err.print(plain(f"secret {kept.name} is set; it will not be shown again"))


@app.command(name="list")
def list_(*, url: HostOption = DEFAULT_URL, as_json: JsonOption = False) -> None:
    """List secrets by name, without their values."""
    with host(url) as client:
        found = client.secrets.all()
    if as_json:
        print_json(found)
    elif not found:
        err.print("there are no secrets; create one with evaluator-host secrets set NAME")
    else:
        rows = [(one.name, format_time(one.created_at), format_time(one.updated_at)) for one in found]
        out.print(table(("NAME", "CREATED", "SET"), rows))


@app.command()
def delete(name: _NameArgument, *, url: HostOption = DEFAULT_URL) -> None:
    """Delete a secret. Jobs that still need it fail."""
    with host(url) as client:
        client.secrets.delete(name)
    err.print(plain(f"removed {name}"))


def _value() -> str:
    """Read the value where neither other users nor the shell history see it."""
    asked = sys.stdin.isatty()
    value = str(typer.prompt("Value", hide_input=True, err=True)) if asked else sys.stdin.read(_CHARS_READ)
    value = value.rstrip("\r\n")
    if not value:
        raise InvalidRequest(
            "the value is empty; type it at the prompt, or pipe it in: evaluator-host secrets set NAME < file"
        )
    return value

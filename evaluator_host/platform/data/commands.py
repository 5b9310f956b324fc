"""`data`: files that evaluators read, stored on a host by digest."""

from pathlib import Path
from typing import Annotated

import typer

from evaluator_host.platform.terminal.console import err, format_time, out, plain, print_found, print_json, table
from evaluator_host.platform.terminal.options import ForceOption, JsonOption, require_file
from evaluator_host.platform.terminal.remote_host import ClientOption

app = typer.Typer(name="data", no_args_is_help=True)

_FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A file of any kind.")]
_DigestArgument = Annotated[
    str, typer.Argument(metavar="DIGEST", help="Digest of the file, as `data list` shows it: sha256:…")
]


@app.command()
def send(file: _FileArgument, *, client: ClientOption, as_json: JsonOption = False) -> None:
    """Store a file and print its digest. The option `--file` of `run` and `evaluators` stores files too."""
    require_file(file)
    sent = client.data.send(file)
    if as_json:
        print_json(sent)
    else:
        out.print(plain(sent.digest))


@app.command(name="list")
def list_(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List data files, the newest first."""
    found = client.data.all()
    rows = [(one.digest, f"{one.size_bytes}", format_time(one.created_at)) for one in found]
    none = "there are no data files; `evaluators create NAME FILE --file DATA` stores one with an evaluator"
    print_found(found, lambda _: table(("DIGEST", "BYTES", "CREATED"), rows), as_json=as_json, none=none)


@app.command()
def delete(digest: _DigestArgument, *, force: ForceOption = False, client: ClientOption) -> None:
    """Delete a data file. Jobs that still need it fail."""
    client.data.delete(digest, force=force)
    err.print(plain(f"deleted {digest}"))

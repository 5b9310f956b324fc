"""`datasets`: rows stored on a host, for jobs."""

import itertools
import sys
from pathlib import Path
from typing import Annotated

import typer

from evaluator_host.cli import options
from evaluator_host.cli.console import err, facts, format_time, out, plain, print_found, print_json, table
from evaluator_host.cli.remote_service import HostOption, host
from evaluator_host.client import DEFAULT_URL
from evaluator_host.model.json_values import encode_json
from evaluator_host.schemas.stored import DatasetReport

app = typer.Typer(name="datasets", help="Rows stored on a host, for jobs.", no_args_is_help=True)

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the data set.")]


@app.command()
def upload(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows: .jsonl .ndjson .csv .tsv .json .parquet .xlsx")],
    *,
    name: Annotated[str | None, typer.Option(help="Name of the data set.", show_default="the file's")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a data set of this name.")] = False,
    format_: options.FormatOption = None,
    url: HostOption = DEFAULT_URL,
    as_json: options.JsonOption = False,
) -> None:
    """Upload the rows of a file. Lines that are not rows are left out, and reported by number."""
    options.require_file(file)
    with host(url) as client:
        made = client.datasets.upload(name or file.stem, file, replace=replace, format=format_)
    if as_json:
        print_json(made)
        return
    out.print(plain(f"{made.name}: {made.rows} rows, columns {', '.join(made.columns)}"))
    for note in made.notes:
        err.print(plain(f"{file}: {note}"))
    for bad in made.bad_rows:
        err.print(plain(f"{file}:{bad.line}: {bad.message}; left out"))
    if made.bad_row_count > len(made.bad_rows):
        err.print(f"{made.bad_row_count - len(made.bad_rows)} more bad lines were left out")


@app.command(name="list")
def list_(*, url: HostOption = DEFAULT_URL, as_json: options.JsonOption = False) -> None:
    """List data sets, newest first."""
    with host(url) as client:
        found = client.datasets.all()
    header = ("NAME", "ROWS", "BAD", "FORMAT", "CREATED", "COLUMNS")
    none = "there are no data sets; upload one with evaluator-host datasets upload FILE"
    print_found(found, lambda reports: table(header, list(map(_row, reports))), as_json=as_json, none=none)


@app.command()
def show(name: _NameArgument, *, url: HostOption = DEFAULT_URL, as_json: options.JsonOption = False) -> None:
    """Show a data set: its columns, its size, its bad lines."""
    with host(url) as client:
        found = client.datasets.get(name)
    if as_json:
        print_json(found)
        return
    bad = "\n".join(f"line {one.line}: {one.message}" for one in found.bad_rows)
    out.print(
        facts(
            (
                ("name", found.name),
                ("id", found.id),
                ("format", found.format),
                ("rows", found.rows),
                ("columns", ", ".join(found.columns)),
                ("size", f"{found.size_bytes / 1e6:.1f} MB"),
                ("digest", found.digest),
                ("created", format_time(found.created_at)),
                ("bad lines", f"{found.bad_row_count}\n{bad}" if found.bad_row_count else None),
            )
        )
    )


@app.command()
def rows(
    name: _NameArgument,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of rows.", show_default="all")] = None,
    url: HostOption = DEFAULT_URL,
) -> None:
    """Print rows as JSON, one per line."""
    with host(url) as client:
        for row in itertools.islice(client.datasets.rows(name), limit):
            sys.stdout.buffer.write(encode_json(row) + b"\n")
    sys.stdout.flush()


@app.command()
def delete(name: _NameArgument, *, url: HostOption = DEFAULT_URL) -> None:
    """Delete a data set. Jobs that use its rows keep them."""
    with host(url) as client:
        client.datasets.delete(name)
    err.print(plain(f"removed {name}"))


def _row(one: DatasetReport) -> tuple[object, ...]:
    return one.name, one.rows, one.bad_row_count, one.format, format_time(one.created_at), ", ".join(one.columns)

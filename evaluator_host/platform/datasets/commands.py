"""`datasets`: rows stored on a host, for jobs."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.console import (
    err,
    facts,
    format_time,
    out,
    plain,
    print_found,
    print_json,
    print_json_lines,
    table,
)
from evaluator_host.platform.terminal.job_tables import history_table
from evaluator_host.platform.terminal.remote_host import ClientOption, named_job
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.names import counted, usable_name
from evaluator_host.types.numbers import size_text
from evaluator_host.types.stored import ColumnFacts, DatasetReport

app = typer.Typer(name="datasets", no_args_is_help=True)

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the data set.")]


@app.command()
def upload(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File of rows: .jsonl .ndjson .csv .tsv .json .parquet .xlsx")
    ],
    *,
    name: Annotated[str | None, typer.Option(help="Name of the data set.", show_default="the file's")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the data set that has this name.")] = False,
    format_: options.FormatOption = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Upload the rows of a file. Lines that are not rows are left out, and reported by number."""
    options.require_file(file)
    made = client.datasets.upload(name or usable_name(file.stem), file, replace=replace, format=format_)
    if as_json:
        print_json(made)
        return
    out.print(plain(f"{made.name}: {counted(made.rows, 'row')}, columns {', '.join(made.columns)}"))
    for note in made.notes:
        err.print(plain(f"{file}: {note}"))
    for bad in made.bad_rows:
        err.print(plain(f"{file}:{bad.line}: {bad.message}; the line is left out"))
    if made.bad_row_count > len(made.bad_rows):
        err.print(f"further bad lines that were left out: {made.bad_row_count - len(made.bad_rows)}")


@app.command(name="list")
def list_(*, client: ClientOption, as_json: options.JsonOption = False) -> None:
    """List data sets, newest first."""
    found = client.datasets.all()
    none = "there are no data sets; upload one with evaluator-host datasets upload FILE"
    print_found(found, _reports, as_json=as_json, none=none)


@app.command()
def show(name: _NameArgument, *, client: ClientOption, as_json: options.JsonOption = False) -> None:
    """Show a data set: its columns, its size, notes on its file, its bad lines."""
    found = client.datasets.get(name)
    bad = "\n".join(f"line {one.line}: {one.message}" for one in found.bad_rows)
    rows = (
        ("name", found.name),
        ("id", found.id),
        ("format", found.format),
        ("rows", found.rows),
        ("columns", ", ".join(found.columns)),
        ("size", f"{size_text(found.size_bytes)} as JSON lines"),
        ("digest", found.digest),
        ("created", format_time(found.created_at)),
        ("notes", "\n".join(found.notes) or None),
        ("bad lines", f"{found.bad_row_count}\n{bad}" if found.bad_row_count else None),
    )
    print_found(found, lambda _: facts(rows), as_json=as_json)


@app.command()
def rows(
    name: _NameArgument,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of rows.", show_default="all")] = None,
    client: ClientOption,
) -> None:
    """Print rows as JSON, one per line."""
    print_json_lines(itertools.islice(client.datasets.rows(name), limit))


@app.command()
def search(
    name: _NameArgument,
    text: Annotated[str, typer.Argument(help="Only rows that contain this text, in upper or lower case.")] = "",
    *,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="A condition: city=Rome, answer~paris, score>=0.5. Repeatable."),
    ] = None,
    sort: Annotated[str | None, typer.Option(help="Column to sort by; put `-` before it for descending order.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of rows.")] = 20,
    client: ClientOption,
) -> None:
    """Print the rows that contain TEXT and meet all conditions, one per line after its number."""
    found = client.datasets.search(name, text, where=where or (), sort=sort, limit=limit)
    for one in found.rows:
        print_json_lines([one.row], prefix=f"{one.index}\t")
    err.print(f"{len(found.rows)} of {counted(found.total, 'row')}")


@app.command()
def columns(name: _NameArgument, *, client: ClientOption, as_json: options.JsonOption = False) -> None:
    """Show what each column contains: kinds, missing and frequent values, ranges."""
    found = client.datasets.columns(name)
    header = ("COLUMN", "PRESENT", "MISSING", "EMPTY", "DISTINCT", "KINDS", "MIN", "MAX", "MEAN", "MOST FREQUENT")
    print_found(found, lambda all_: table(header, list(map(_column, all_))), as_json=as_json)


@app.command()
def scores(
    name: _NameArgument,
    *,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of jobs.")] = 20,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Show the scores of each stored evaluator in the newest jobs; if a score fell, say how to compare two jobs."""
    found = client.datasets.scores(name, limit=limit)
    if as_json or found.evaluators:
        print_found(found, history_table, as_json=as_json)
    else:
        err.print(plain(f"no completed job scored {name} with a stored evaluator"))


@app.command()
def compare(
    name: _NameArgument,
    to: Annotated[str, typer.Argument(metavar="OTHER", help="A later version, such as qa@3, or another data set.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of changed rows to print.")] = 100,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Print the rows that differ between two versions."""
    found = client.datasets.changes(name, to, limit=limit)
    if as_json:
        print_json(found)
        return
    for one in found.rows:
        for sign, row in (("-", one.before), ("+", one.after)):
            if row is not None:
                out.print(plain(f"{sign} {one.index}  {encode_json(row).decode()}"))
    err.print(f"{found.changed} changed, {found.added} added, {found.removed} removed")


@app.command()
def versions(name: _NameArgument, *, client: ClientOption, as_json: options.JsonOption = False) -> None:
    """List the kept versions, newest first."""
    found = client.datasets.versions(name)
    print_found(found, _reports, as_json=as_json)


@app.command()
def edit(
    name: _NameArgument,
    *,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NUMBER=ROW", help='Replace a row: 7={"question": "…"}. Repeatable.'),
    ] = None,
    remove: Annotated[
        list[int] | None, typer.Option(metavar="NUMBER", help="Remove a row by its number. Repeatable.")
    ] = None,
    add: Annotated[list[str] | None, typer.Option(metavar="ROW", help="Append a row, as JSON. Repeatable.")] = None,
    from_job: Annotated[str | None, typer.Option(help="Append rows of this job: its id, or `last`.")] = None,
    row: Annotated[
        list[int] | None,
        typer.Option(metavar="NUMBER", help="With --from-job: the number of a row to append. Repeatable."),
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create the data set if it does not exist.")] = False,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Change, remove and add rows; the result is the next version."""
    changed = dict(map(_changed_row, set_ or ()))
    rows_of = None if from_job is None else {"job": named_job(client, from_job).id, "rows": row or []}
    made = client.datasets.edit(
        name,
        set=changed,
        remove=remove or (),
        add=[options.json_option("--add", one) for one in add or ()],
        add_from=rows_of,
        create=create,
    )
    print_found(made, lambda one: plain(f"{one.name}@{one.version}: {counted(one.rows, 'row')}"), as_json=as_json)


def _changed_row(given: str) -> tuple[int, dict[str, Any]]:
    number, _, row = given.partition("=")
    if not number.strip().isdecimal():
        raise InvalidRequest(f'--set {given[:80]!r} is not NUMBER=ROW, as in 7={{"question": "…"}}')
    return int(number), options.json_option("--set", row)


def _column(one: ColumnFacts) -> tuple[object, ...]:
    kinds = ", ".join(f"{kind} {count}" for kind, count in one.kinds.items())
    top = ", ".join(f"{value.value[:20]} ({value.count})" for value in one.top[:3])
    distinct = "over 10000" if one.distinct is None else one.distinct
    return one.name, one.present, one.missing, one.empty, distinct, kinds, one.min, one.max, one.mean, top


@app.command()
def delete(name: _NameArgument, *, force: options.ForceOption = False, client: ClientOption) -> None:
    """Delete a data set. Jobs that use its rows keep them."""
    client.datasets.delete(name, force=force)
    err.print(plain(f"deleted {name}"))


def _reports(found: list[DatasetReport]) -> object:
    rows = [
        (one.name, one.rows, one.bad_row_count, one.format, format_time(one.created_at), ", ".join(one.columns))
        for one in found
    ]
    return table(("NAME", "ROWS", "BAD", "FORMAT", "CREATED", "COLUMNS"), rows)

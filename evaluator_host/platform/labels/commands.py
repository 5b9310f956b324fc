"""`labels`: queues of rows on a host that wait for people to label them."""

import json
from typing import Annotated, Final

import typer

from evaluator_host.client.clients import Client
from evaluator_host.platform.terminal.console import err, facts, format_time, out, plain, print_found, table
from evaluator_host.platform.terminal.options import JsonOption
from evaluator_host.platform.terminal.remote_host import ClientOption, named_job
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.labels import LabelEntry, LabelKind, LabelQueue, LabelRow, LabelTask, RowChoice

app = typer.Typer(name="labels", no_args_is_help=True)

_NameArgument = Annotated[str, typer.Argument(metavar="QUEUE")]
_RowArgument = Annotated[int, typer.Argument(metavar="ROW", min=0, help="Number of the row.")]
_ByOption = Annotated[
    str | None,
    typer.Option("--by", envvar="EVALUATOR_HOST_PERSON", help="Name of the person who labels, on a host without keys."),
]
_NoteOption = Annotated[str, typer.Option(help="Note on the label.")]
_YES: Final = ("yes", "y", "true", "passed")
_NO: Final = ("no", "n", "false", "failed")


@app.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="QUEUE", help="Name of the queue: letters, digits, dots, dashes, underscores.")
    ],
    *,
    job: Annotated[str | None, typer.Option(help="Label the rows of this job: its id, or `last`.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Label the rows of this data set.")] = None,
    kind: Annotated[LabelKind, typer.Option(help="Kind of the labels.")] = LabelKind.PASSED,
    choice: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="With --kind choice: one of the choices. Repeatable.")
    ] = None,
    min_: Annotated[float, typer.Option("--min", help="The lowest score.")] = 0.0,
    max_: Annotated[float, typer.Option("--max", help="The highest score.")] = 1.0,
    rows: Annotated[RowChoice, typer.Option(help="Which rows of the job to label.")] = RowChoice.ALL,
    evaluator: Annotated[str | None, typer.Option(help="Evaluator whose results decide which rows to label.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows, spread evenly.")] = 10_000,
    instructions: Annotated[str, typer.Option(help="Instructions for the people who label.")] = "",
    show_results: Annotated[
        bool, typer.Option("--show-results", help="Show results before a row has a label.")
    ] = False,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Create a queue of rows from a job or a data set."""
    task = {
        "kind": LabelKind.CHOICE if choice else kind, "choices": choice or [], "min": min_, "max": max_,
        "instructions": instructions, "show_results": show_results,
    }  # fmt: skip
    job_id = None if job is None else named_job(client, job).id
    chosen = {"job": job_id, "dataset": dataset, "rows": rows, "evaluator": evaluator, "limit": limit}
    made = client.labels.create(name, **chosen, **task)
    print_found(made, queue_facts, as_json=as_json)


@app.command(name="list")
def list_(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List label queues, newest first."""
    found = client.labels.all()
    none = "there are no label queues; make one with evaluator-host labels create QUEUE --job last"
    header = ("QUEUE", "ROWS", "LABELLED", "SKIPPED", "WAITING", "JOB", "DATA SET", "CREATED")
    print_found(found, lambda all_: table(header, list(map(_queue_row, all_))), as_json=as_json, none=none)


@app.command()
def show(name: _NameArgument, *, client: ClientOption, as_json: JsonOption = False) -> None:
    """Show a label queue, its progress and who labelled how much."""
    found = client.labels.get(name)
    print_found(found, queue_facts, as_json=as_json)


@app.command()
def rows(
    name: _NameArgument,
    *,
    state: Annotated[str | None, typer.Option(help="Only rows in this state: waiting, labelled or skipped.")] = None,
    after: Annotated[int, typer.Option(help="Begin after the row with this number.")] = -1,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of rows.")] = 100,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """List the rows of a queue with their labels."""
    found = client.labels.rows(name, state=state, after=after, limit=limit)
    header = ("ROW", "STATE", "LABEL", "BY", "AT", "NOTE")
    print_found(found, lambda page: table(header, list(map(_entry_row, page.rows))), as_json=as_json)


@app.command(name="next")
def next_(name: _NameArgument, *, by: _ByOption = None, client: ClientOption, as_json: JsonOption = False) -> None:
    """Print the next row to label; nobody else gets it for 10 minutes. The exit code is 1 if no row is left."""
    found = client.labels.next(name, by=by)
    if found is None:
        err.print("no row is waiting for a label")
        raise typer.Exit(1)
    print_found(found, _row_facts, as_json=as_json)


@app.command(name="set")
def set_(
    name: _NameArgument,
    row: _RowArgument,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="yes or no, a number, or a choice.")],
    *,
    note: _NoteOption = "",
    by: _ByOption = None,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Label a row."""
    task = client.labels.get(name).task
    _say(client.labels.set(name, row, _label(label, task), note=note, by=by), as_json=as_json)


@app.command()
def skip(
    name: _NameArgument,
    row: _RowArgument,
    *,
    note: _NoteOption = "",
    by: _ByOption = None,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Skip a row: it gets no label."""
    _say(client.labels.set(name, row, None, skip=True, note=note, by=by), as_json=as_json)


@app.command()
def clear(name: _NameArgument, row: _RowArgument, *, client: ClientOption, as_json: JsonOption = False) -> None:
    """Remove the label of a row. The row waits for a label again."""
    _say(client.labels.set(name, row, None), as_json=as_json)


@app.command()
def start(name: _NameArgument, *, by: _ByOption = None, client: ClientOption) -> None:
    """Label one row after the other; Enter skips a row, q quits."""
    queue = client.labels.get(name)
    if queue.task.instructions:
        err.print(plain(queue.task.instructions))
    while (found := client.labels.next(name, by=by)) is not None:
        out.print(_row_facts(found))
        queue = _ask(client, queue, found, by)
    err.print(plain(f"no row is waiting for a label: {queue.labelled} labelled, {queue.skipped} skipped"))


def _ask(client: Client, queue: LabelQueue, found: LabelRow, by: str | None) -> LabelQueue:
    while True:
        said = str(typer.prompt(_question(queue.task), default="", show_default=False, err=True)).strip()
        if said == "q":
            raise typer.Exit(0)
        try:
            label = None if not said else _label(said, queue.task)
            return client.labels.set(queue.name, found.index, label, skip=not said, by=by)
        except InvalidRequest as error:
            err.print(plain(error.detail))


def _question(task: LabelTask) -> str:
    match task.kind:
        case LabelKind.PASSED:
            return "passed? y/n"
        case LabelKind.SCORE:
            return f"score {task.min:g} to {task.max:g}"
        case LabelKind.CHOICE:
            return "  ".join(f"{place} {one}" for place, one in enumerate(task.choices, 1))


def _label(said: str, task: LabelTask) -> bool | float | str:
    """Return the label that was typed; a choice may be typed as its number."""
    if task.kind is LabelKind.PASSED:
        return True if said.lower() in _YES else False if said.lower() in _NO else said
    if task.kind is LabelKind.CHOICE:
        place = int(said) if said.isdecimal() and len(said) < 4 and said not in task.choices else 0
        return task.choices[place - 1] if 0 < place <= len(task.choices) else said
    try:
        return float(said)
    except ValueError:
        return said


@app.command()
def delete(name: _NameArgument, *, client: ClientOption) -> None:
    """Delete a queue and its labels."""
    client.labels.delete(name)
    err.print(plain(f"deleted {name}"))


def queue_facts(one: LabelQueue) -> object:
    """Return a table with every field of a label queue."""
    people = [
        f"{who.name or 'somebody'}: {who.labelled} labelled, {who.skipped} skipped"
        + (f", last at {format_time(who.last_at)}" if who.last_at else "")
        for who in one.people
    ]
    scores = f" from {one.task.min:g} to {one.task.max:g}" if one.task.kind is LabelKind.SCORE else ""
    return facts(
        (
            ("queue", one.name),
            ("rows", f"{one.rows}: {one.labelled} labelled, {one.skipped} skipped, {one.waiting} waiting"),
            ("job", one.job),
            ("data set", one.dataset),
            ("labels", ", ".join(one.task.choices) or f"{one.task.kind}{scores}"),
            ("instructions", one.task.instructions or None),
            ("people", "\n".join(people) or None),
            ("created", format_time(one.created_at)),
        )
    )


def _say(queue: LabelQueue, *, as_json: bool) -> None:
    said = plain(f"{queue.labelled} labelled, {queue.skipped} skipped, {queue.waiting} waiting")
    print_found(queue, lambda _: said, as_json=as_json)


def _queue_row(one: LabelQueue) -> tuple[object, ...]:
    return (
        *(one.name, one.rows, one.labelled, one.skipped, one.waiting),
        *(one.job, one.dataset, format_time(one.created_at)),
    )


def _entry_row(one: LabelEntry) -> tuple[object, ...]:
    label = None if one.label is None else json.dumps(one.label)
    return one.index, one.state, label, one.by, format_time(one.at) if one.at else None, one.note or None


def _row_facts(one: LabelRow) -> object:
    shown = one.given or one.row
    values = [(name, _text(value)) for name, value in shown.items() if value is not None]
    results = [(f"result of {each.evaluator}", _text(each.result["score"])) for each in one.results]
    return facts((("row", one.index), *values, *results, ("label", None if one.label is None else _text(one.label))))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

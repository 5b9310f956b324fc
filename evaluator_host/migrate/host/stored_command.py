"""`evaluators migrate`: moves the legacy evaluators that a host stores to the new signature."""

from typing import Annotated

import typer

from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.terminal.console import err, out, plain, print_json, table
from evaluator_host.platform.terminal.options import JsonOption
from evaluator_host.platform.terminal.remote_host import ClientOption, named_job
from evaluator_host.types.migrations import StoredMigration


def migrate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Evaluators to migrate. Default: every legacy evaluator."),
    ] = None,
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Create a new version of each evaluator that is proven to score the same.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --write: create new versions even without this proof.")
    ] = False,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="Keep code that cannot be rewritten; add a function that calls it.")
    ] = False,
    dataset: Annotated[
        str | None, typer.Option(help="Compare old and new code on this data set. Default: generated rows.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=COLUMN", help="Column to use for a field of the row. Repeatable."),
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="Compare old and new code on the rows of this job: its id, or `last`.")
    ] = None,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Move legacy evaluators to evaluate(inputs, outputs, trace). Exit 1 when one needs manual work."""
    mapping = dict(Mapping.parse(map_ or []).sources)
    job = named_job(client, job).id if job is not None else None
    found = client.evaluators.migrate(
        *(names or ()), dataset=dataset, mapping=mapping, job=job, dry_run=not write, force=force, adapt=adapt
    )
    if as_json:
        print_json(found)
    elif not found:
        err.print("there are no legacy evaluators")
    else:
        header = ("EVALUATOR", "STATUS", "MADE", "TO LOOK AT", "PROOF")
        out.print(table(header, [_migration_row(one) for one in found]))
        for one in found:
            for remark in one.migration.unresolved:
                place = one.name if remark.line is None else f"{one.name}:{remark.line}"
                err.print(plain(f"{place}: {remark.message}"))
    raise typer.Exit(0 if all(one.migration.is_proven or one.migration.is_done for one in found) else 1)


def _migration_row(one: StoredMigration) -> tuple[object, ...]:
    migration = one.migration
    made = f"{one.name}@{one.made}" if one.made is not None else None
    proof = migration.proof.text if migration.proof is not None else None
    return (f"{one.name}@{one.version}", migration.status.value, made, len(migration.unresolved) or None, proof)

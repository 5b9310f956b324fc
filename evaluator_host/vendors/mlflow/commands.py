"""`mlflow score`: scores an experiment's traces with its registered scorers, in a host's sandboxes."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from evaluator_host.client import Client
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.console import err, out, plain, print_json
from evaluator_host.platform.terminal.remote_host import ClientOption
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, Json
from evaluator_host.types.outcome import EvaluationResult, Status
from evaluator_host.vendors.mlflow.tracking import RegisteredScorer, Trace, TrackingServer

_AT_ONCE: Final = 100
_FAILED: Final = 1
app = typer.Typer(name="mlflow", no_args_is_help=True)


@app.callback()
def _mlflow() -> None:
    """Make typer treat `mlflow` as a group, although it has only one command."""


@app.command()
def score(
    *,
    tracking_uri: Annotated[str, typer.Option(envvar="MLFLOW_TRACKING_URI", help="URL of the tracking server.")],
    experiment: Annotated[str, typer.Option(help="Name or id of the experiment.")],
    scorer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE", help="Registered scorer to run, or a file with one. Repeatable."),
    ] = None,
    package: options.PackageOption = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of traces to score, beginning with the newest.")
    ] = 1000,
    again: Annotated[
        bool, typer.Option("--again", help="Also score traces that already have the scorer's feedback.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write no feedback.")] = False,
    token: Annotated[
        str | None, typer.Option(envvar="MLFLOW_TRACKING_TOKEN", help="Bearer token for the tracking server.")
    ] = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Score traces with registered scorers, and write the feedback to MLflow. Exit code 1: a row failed."""
    server = TrackingServer(tracking_uri, token)
    experiment_id = server.experiment_id(experiment)
    scorers = _chosen(server.scorers(experiment_id), scorer or [])
    traces = list(server.traces(experiment_id, limit + 1))
    if len(traces) > limit:
        del traces[limit:]
        err.print(f"the experiment has more traces: only the newest {limit} are read; --limit raises this number")
    told = []
    for one in scorers:
        new = [trace for trace in traces if again or one.source_id not in trace.sources]
        told.append(_score(client, server, one, new, tuple(package or ()), write=not dry_run))
    if as_json:
        print_json(told)
    for line in told if not as_json else []:
        out.print(
            plain(
                f"{line['scorer']}: {line['scored']} of {line['traces']} traces scored, {line['skipped']} skipped, "
                f"{line['failed']} failed"
            )
        )
    raise typer.Exit(_FAILED if any(line["failed"] for line in told) else 0)


def _chosen(registered: list[RegisteredScorer], wanted: list[str]) -> list[RegisteredScorer]:
    """Return the scorers to run: the named scorers, or all registered scorers that have code.

    Raises:
      InvalidRequest: a named scorer is neither registered nor a file.
    """
    by_name = {one.name: one for one in registered}
    if not wanted:
        for one in registered:
            if not one.code:
                err.print(
                    plain(f"{one.name} is left out, because it has no code (it is a judge, or built into MLflow)")
                )
        return [one for one in registered if one.code]
    return [by_name[name] if name in by_name else _of_file(name) for name in wanted]


def _of_file(name: str) -> RegisteredScorer:
    path = Path(name)
    if not path.is_file():
        raise InvalidRequest(f"{name[:80]!r} is neither a registered scorer of the experiment nor a file")
    code = path.read_text("utf-8")
    return RegisteredScorer(path.stem, hashlib.sha256(code.encode()).hexdigest()[:12], code)


def _score(
    client: Client,
    server: TrackingServer,
    scorer: RegisteredScorer,
    traces: list[Trace],
    packages: tuple[str, ...],
    *,
    write: bool,
) -> dict[str, Json]:
    evaluator = Evaluator(scorer.code, contract=Contract("mlflow"), packages=packages)
    statuses = Counter[Status]()
    outputs: Literal["none"] | None = "none" if any(one.row.outputs is not None for one in traces) else None
    for start in range(0, len(traces), _AT_ONCE):
        part = traces[start : start + _AT_ONCE]
        batch = client.evaluate_batch(evaluator, [one.row for one in part], outputs=outputs)
        for trace, result in zip(part, batch.results, strict=True):
            statuses[result.status] += 1
            for feedback in _feedback(scorer, result) if write else ():
                server.log_feedback(trace.trace_id, scorer, feedback)
    counts = {status.value: statuses[status] for status in (Status.SCORED, Status.SKIPPED, Status.FAILED)}
    return {"scorer": scorer.name, "version": scorer.version, "traces": len(traces), **counts}


def _feedback(scorer: RegisteredScorer, result: EvaluationResult) -> list[dict[str, Json]]:
    if result.native or result.error is None:
        return list(result.native)
    place = f" (line {result.error.line})" if result.error.line is not None else ""
    return [{"name": scorer.name, "error": f"{result.error.code}: {result.error.message}{place}"}]

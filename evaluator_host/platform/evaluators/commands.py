"""`evaluators`: evaluators stored on a host under a name, in versions that never change."""

from functools import partial
from typing import Annotated, Any, Final

import typer

from evaluator_host.client import Client
from evaluator_host.platform.evaluators.cases import case_text
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, facts, format_time, out, plain, print_found, print_json, table
from evaluator_host.platform.terminal.job_tables import OWN_ROWS, SCORE_HEADER, mean_cell, score_cells
from evaluator_host.platform.terminal.remote_host import ClientOption
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Contract, Evaluator, Policy
from evaluator_host.types.jobs import EvaluatorScore
from evaluator_host.types.names import what_was_meant
from evaluator_host.types.numbers import rounded
from evaluator_host.types.stored import EvaluatorReport, TraceReport
from evaluator_host.types.warnings import code_threshold_notes

app = typer.Typer(name="evaluators", no_args_is_help=True)

_MIGRATE: Final[EntryPoint[Any]] = EntryPoint("evaluator_host.migrate.host.stored_command:migrate")
_NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the evaluator: letters, digits, dots, dashes, underscores.")
]
_HEADER: Final = ("NAME", "VERSION", "LANGUAGE", "CONTRACT", "CREATED", "BY", "TAGS", "PACKAGES", "DESCRIPTION")
_LAST_JOB: Final = ("LAST JOB", "MEAN")
_DescriptionOption = Annotated[str | None, typer.Option(help="Description of the evaluator.")]
_SamplingOption = Annotated[float | None, typer.Option(min=0, max=1, help="Fraction of live traces to score.")]
_TagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        help="Tag of the evaluator. Repeatable; the given tags replace the present ones.",
    ),
]
_ReferenceArgument = Annotated[
    str, typer.Argument(metavar="NAME[@VERSION]", help="Evaluator to show. Default: its newest version.")
]


@app.command("update", help="Create a new version. If nothing changed, no version is created.")
@app.command("create", help="Store an evaluator under a name, if it loads.")
def store(
    context: typer.Context,
    name: _NameArgument,
    file: options.FileArgument,
    *,
    description: _DescriptionOption = None,
    sampling: _SamplingOption = None,
    tag: _TagOption = None,
    message: Annotated[str, typer.Option("--message", "-m", help="Reason for this version.")] = "",
    language: options.LanguageOption = None,
    contract: options.ContractOption = Contract.AUTO,
    entry: options.EntryOption = None,
    config: options.ConfigOption = None,
    integers: options.IntegersOption = None,
    threshold: Annotated[float | None, typer.Option(help="A row passes if score >= threshold.")] = None,
    package: options.PackageOption = None,
    policy: options.PolicyOption = Policy.NONE,
    timeout_s: options.TimeoutOption = None,
    memory_mb: options.MemoryOption = None,
    data_file: options.FileOption = None,
    data_folder: options.FilesOption = None,
    model: options.ModelOption = None,
    network: options.NetworkOption = None,
    secret: options.CodeSecretOption = None,
    budget_requests: options.RequestsOption = None,
    budget_tokens: options.TokensOption = None,
    budget_cost: options.CostOption = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="FILE describes a judge without code, in JSON or YAML.")
    ] = False,
    require_cases: Annotated[
        bool,
        typer.Option(
            "--require-cases", help="Store the evaluator only if the cases next to FILE (NAME.cases.jsonl) pass."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Store the evaluator even if it does not load.")] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="With `update`: do not keep pins, limits, grants and settings of the previous version."
        ),
    ] = False,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Store an evaluator: its first version for `create`, its next version for `update`."""
    from evaluator_host.platform.evaluators import evaluator_files  # noqa: PLC0415 - only these commands need it

    read = evaluator_files.read_judge if judge else evaluator_files.read_evaluator
    given = read(
        file, language, host=load_settings(), contract=contract, threshold=threshold, packages=package, policy=policy,
        entry=entry, config=config, integers=integers, timeout_s=timeout_s, memory_mb=memory_mb,
        extra=data_file or (), folders=data_folder or (), models=model, network=network, secrets=secret,
        requests=budget_requests, tokens=budget_tokens, cost=budget_cost,
    )  # fmt: skip
    if not as_json:
        evaluator_files.tell_files(given)
    for path in given.data.values():
        client.data.send(path)
    beside = evaluator_files.case_files(file)
    cases = [case for path in beside for case in evaluator_files.read_cases(path, load_settings())]
    how: dict[str, Any] = {
        "force": force,
        "cases": cases if beside else None,
        "require_cases": require_cases,
        "message": message,
    }
    if context.info_name == "update":
        how |= {"description": description, "sampling": sampling, "tags": tag}
        evaluator = given.evaluator if fresh else _with_what_it_had(client, name, given.evaluator)
        made = client.evaluators.update(name, evaluator, **how)
    else:
        how |= {"description": description or "", "sampling": 1.0 if sampling is None else sampling}
        made = client.evaluators.create(name, given.evaluator, tags=tag or (), **how)
    _say(made, as_json=as_json)


@app.command()
def judges(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Ready-made judge to print. Default: list all of them.")
    ] = None,
    *,
    model: Annotated[str, typer.Option(help="Registered model that the judge calls.")] = "judge",
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """List the ready-made judges, or print one as JSON, for `evaluators create NAME FILE --judge`."""
    found = client.evaluators.ready_judges()
    chosen = next((one for one in found if one.name == name), None)
    if chosen is not None:
        print_json({**chosen.judge, "model": model})
    elif name is not None:
        listed = "`evaluator-host evaluators judges` lists them"
        meant = what_was_meant(name, (one.name for one in found), otherwise=listed)
        raise NotFound(f"there is no ready-made judge {name[:80]!r}; {meant}")
    else:
        rows = [(one.name, one.description) for one in found]
        print_found(found, lambda _: table(("NAME", "JUDGES"), rows), as_json=as_json)


@app.command(name="list")
def list_(
    *,
    tag: Annotated[str | None, typer.Option(help="Only evaluators with this tag.")] = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """List the newest version of each evaluator and its last job, sorted by name."""
    found = client.evaluators.all(tag=tag)
    none = "there are no evaluators; create one with evaluator-host evaluators create NAME FILE"
    print_found(
        found,
        lambda reports: table((*_HEADER, *_LAST_JOB), [(*_row(one), *_last_job(one.last_job)) for one in reports]),
        as_json=as_json,
        none=none if tag is None else f"no evaluator has the tag {tag}",
    )


@app.command()
def describe(
    name: _NameArgument,
    *,
    description: _DescriptionOption = None,
    sampling: _SamplingOption = None,
    tag: _TagOption = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Remove all tags.")] = False,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Change description, sampling rate or tags of an evaluator. No version is created."""
    tags = [] if no_tags else tag
    if description is None and sampling is None and tags is None:
        raise InvalidRequest("nothing to change: give --description, --sampling, --tag or --no-tags")
    made = client.evaluators.describe(name, description=description, sampling=sampling, tags=tags)
    print_found(made, partial(_described, code=False), as_json=as_json)


@app.command()
def versions(name: _NameArgument, *, client: ClientOption, as_json: options.JsonOption = False) -> None:
    """List all versions of an evaluator, newest first."""
    found = client.evaluators.versions(name)
    print_found(found, lambda reports: table(_HEADER, list(map(_row, reports))), as_json=as_json)


@app.command()
def show(
    name: _ReferenceArgument,
    *,
    code: Annotated[bool, typer.Option("--code", help="Print only the code.")] = False,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Show a version of an evaluator."""
    wanted, _, version = name.partition("@")
    if version and not version.isdecimal():
        raise InvalidRequest(f"{name!r} is not a reference; write NAME or NAME@VERSION, as in exact-match@3")
    found = client.evaluators.get(wanted, int(version) if version else None)
    if as_json:
        print_json(found)
    elif code:
        typer.echo(found.evaluator.code, nl=not found.evaluator.code.endswith("\n"))
    else:
        out.print(_described(found))


@app.command()
def scores(
    name: _NameArgument,
    *,
    dataset: Annotated[str | None, typer.Option(help="Only jobs over this data set.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of jobs.")] = 20,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Show the scores of each version of an evaluator in completed jobs, newest first."""
    found = client.evaluators.scores(name, dataset=dataset, limit=limit)
    header = ("JOB", "NAME", "DATA SET", "FINISHED", "EVALUATOR", *SCORE_HEADER)
    none = f"no completed job has an evaluator named {name}"
    print_found(found, lambda all_: table(header, list(map(_scored_job, all_))), as_json=as_json, none=none)


def _scored_job(one: EvaluatorScore) -> tuple[object, ...]:
    finished = None if one.finished_at is None else format_time(one.finished_at)
    return one.job, one.name, one.dataset or OWN_ROWS, finished, one.score.evaluator, *score_cells(one.score)


@app.command()
def traces(
    name: _NameArgument,
    *,
    status: Annotated[str | None, typer.Option(help="Only traces with this status: scored, skipped or failed.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of traces.")] = 20,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Show scored traces of live traffic, newest first."""
    found = client.evaluators.traces(name, status=status, limit=limit)
    header = ("NUMBER", "TRACE", "RECEIVED", "EVALUATOR", "STATUS", "SCORE", "WHY")
    print_found(found, lambda traces: table(header, list(map(_trace_row, traces))), as_json=as_json)


app.command("migrate")(_MIGRATE.load())


@app.command()
def delete(name: _NameArgument, *, force: options.ForceOption = False, client: ClientOption) -> None:
    """Delete an evaluator and all its versions. Jobs keep their copies."""
    client.evaluators.delete(name, force=force)
    err.print(plain(f"deleted {name}"))


def _with_what_it_had(client: Client, name: str, evaluator: Evaluator) -> Evaluator:
    """Fill in missing settings from the newest version of `name`, and print these settings. Return the evaluator."""
    from evaluator_host.platform.evaluators import evaluator_files  # noqa: PLC0415 - as above

    before = client.evaluators.get(name)
    made, kept = evaluator_files.kept_from(before.evaluator, evaluator)
    if kept:
        what = ", ".join(kept)
        err.print(plain(f"kept from {name}@{before.version}: {what}; --fresh keeps none of them"))
    return made


def _say(made: EvaluatorReport, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    out.print(plain(f"{made.name}@{made.version}  {made.contract or 'does not load'}  {made.digest}"))
    if made.evaluator.packages:
        err.print(plain(f"its packages: {', '.join(made.evaluator.packages)}"))
    for note in code_threshold_notes(made.evaluator):
        err.print(plain(f"{note.message}; {note.remedy}"))
    if made.problem is not None:
        err.print(plain(f"it does not load: {made.problem.message}"))
    for one in made.failing_cases or ():
        err.print(plain(f"the case {one.case} failed: {one.problem}"))


def _trace_row(one: TraceReport) -> tuple[object, ...]:
    error = one.result["error"]
    why = f"{error['code']}: {error['message']}" if error else one.result["reason"]
    return (
        *(one.number, one.trace_id, format_time(one.received_at), one.evaluator),
        *(one.result["status"], one.result["score"], why),
    )


def _row(one: EvaluatorReport) -> tuple[object, ...]:
    return (
        *(one.name, one.version, one.evaluator.language, one.contract, format_time(one.created_at), one.author),
        *(", ".join(one.tags) or None, ", ".join(one.evaluator.packages) or None),
        one.message or one.description or None,
    )


def _last_job(last: EvaluatorScore | None) -> tuple[object, object]:
    if last is None:
        return None, None
    mean = last.score.mean
    shown = mean_cell(last.score) if last.finished_at is not None or mean is None else f"{rounded(mean)} so far"
    return format_time(last.created_at), shown


def _described(one: EvaluatorReport, *, code: bool = True) -> Any:
    packages = ", ".join(f"{package.name} {package.version}" for package in one.environment.packages) if one.environment else None  # fmt: skip # noqa: E501
    return facts(
        (
            ("evaluator", f"{one.name}@{one.version}" + ("" if one.version == one.latest else f" of {one.latest}")),
            ("description", one.description),
            ("tags", ", ".join(one.tags)),
            ("message", one.message),
            ("sampling", f"{one.sampling:g} of live traces" if one.sampling != 1 else None),
            ("language", one.evaluator.language),
            ("contract", f"{one.contract} ({one.contract_source})" if one.contract else "does not load"),
            ("problem", one.problem.message if one.problem else None),
            ("threshold", one.evaluator.threshold),
            ("packages", packages),
            ("migrated", f"from version {one.origin.version}: {one.origin.proof.text}" if one.origin else None),
            ("digest", one.digest),
            ("created", format_time(one.created_at)),
            ("by", one.author or one.created_by),
            ("cases", "\n".join(map(case_text, one.cases, range(len(one.cases))))),
            ("code", one.evaluator.code if code else None),
        )
    )

"""`jobs create` and `schedules create`: read the options that describe a job, and send it to the host."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from evaluator_host.client import Client
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.jobs.following import follow
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import next_command, print_found
from evaluator_host.platform.terminal.gates import FailUnderOption
from evaluator_host.platform.terminal.job_tables import estimate_text, schedule_facts
from evaluator_host.platform.terminal.remote_host import ClientOption
from evaluator_host.types.errors import InvalidRequest, NotFound, Problem
from evaluator_host.types.evaluator import Evaluator, Isolation, ModelBudget, Replay
from evaluator_host.types.jobs import Executor, Failures, Target
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.types.names import usable_name


def create(
    context: typer.Context,
    *,
    evaluator: Annotated[
        list[str],
        typer.Option(
            "--evaluator", "-e", metavar="NAME|FILE", help="A stored evaluator (exact-match@3) or a file. Repeatable."
        ),
    ],
    dataset: Annotated[str, typer.Option("--dataset", "-d", help="Name of a data set.")],
    data_file: options.FileOption = None,
    data_folder: options.FilesOption = None,
    package: options.PackageOption = None,
    threshold: Annotated[
        float | None, typer.Option(help="For evaluators in files: a row passes if score >= threshold.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="FIELD=COLUMN", help="Column, or a template {{ … }}, for a field of the row. Repeatable."
        ),
    ] = None,
    target_url: Annotated[
        str | None,
        typer.Option("--target-url", help="OpenAI-compatible API that produces the outputs: https://host/v1"),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of the model at --target-url.")] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="Template of the user message: {{ question }}")] = None,
    system: Annotated[str | None, typer.Option("--system", help="Template of the system message.")] = None,
    api_key_secret: Annotated[
        str | None, typer.Option("--api-key-secret", help="Name of the secret with the API key for --target-url.")
    ] = None,
    inference: Annotated[
        list[str] | None,
        typer.Option(
            "--inference",
            metavar="NAME=VALUE",
            help="A parameter of the requests to the model: temperature=0. Repeatable.",
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=256, help="Number of requests to the model at once.")
    ] = 8,
    target_timeout_s: Annotated[
        float, typer.Option("--target-timeout-s", help="Seconds to wait for each answer from the model.")
    ] = 60.0,
    retries: Annotated[int, typer.Option("--retries", min=0, max=20, help="Retries after a failed request.")] = 4,
    parallelism: Annotated[
        int | None, typer.Option(min=1, help="Number of sandboxes that run rows at once.", show_default="the host's")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first N rows.")] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Score only the rows whose index modulo N is K.")
    ] = None,
    isolation: Annotated[
        Isolation,
        typer.Option(help="batch: rows may share a process, which is faster, but state can leak between rows."),
    ] = Isolation.ROW,
    executor: Annotated[
        Executor, typer.Option(help="ray: evaluate on the nodes of the host's Ray cluster.")
    ] = Executor.LOCAL,
    max_failures: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of results that may fail; if more fail, the job fails.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job or of the schedule.")] = None,
    cron: Annotated[
        str | None, typer.Option(help="With `schedule`: when to run, as in '0 7 * * 1' (Mondays at 7).")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Time zone of --cron: Europe/Berlin.")] = "UTC",
    failures: Annotated[
        Failures, typer.Option(help="exclude leaves failed rows out of the mean; zero counts them as 0.")
    ] = Failures.EXCLUDE,
    replay: options.ReplayOption = Replay.OFF,
    budget_requests: options.RequestsOption = None,
    budget_tokens: options.TokensOption = None,
    budget_cost: options.CostOption = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="If a request with this key is repeated, it returns the first job instead of a new one."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Score only a few rows, and estimate the whole job's use of models."),
    ] = False,
    sample: Annotated[int, typer.Option(min=1, max=100, help="Number of rows to score for --dry-run.")] = 3,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show the progress until the job ends, then the results.")
    ] = False,
    fail_under: FailUnderOption = None,
    client: ClientOption,
    as_json: options.JsonOption = False,
) -> None:
    """Queue a job, or make a schedule of it (`schedules create`, and its alias `jobs schedule`)."""
    mapping = dict(Mapping.parse(map_ or []).sources)
    target = _read_target(
        target_url, model, prompt, inference=inference, system=system, api_key=api_key_secret, concurrency=concurrency,
        timeout_s=target_timeout_s, retries=retries,
    )  # fmt: skip
    scheduled = context.command_path.endswith(("jobs schedule", "schedules create"))
    if fail_under is not None and not wait:
        raise InvalidRequest("--fail-under needs --wait, because a job has no mean until it ends")
    if scheduled:
        _require_name_and_cron(name, cron)
        if wait or dry_run or idempotency_key is not None:
            raise InvalidRequest("--wait, --dry-run and --idempotency-key are for one job, not for a schedule")
    elif cron is not None:
        raise InvalidRequest(
            "jobs create starts one job at once, and --cron is for schedules; "
            "give the same options to evaluator-host schedules create --name NAME"
        )
    described: dict[str, Any] = {
        "evaluators": _evaluators(
            client, evaluator, extra=data_file or (), folders=data_folder or (), packages=package, threshold=threshold
        ),
        "dataset": _dataset(client, dataset),
        "mapping": mapping,
        "target": target,
        "parallelism": parallelism,
        "limit_samples": limit,
        "shard": shard,
        "executor": executor,
        "isolation": isolation,
        "max_failures": max_failures,
        "failures": failures,
        "replay": replay,
        "budget": ModelBudget(budget_requests, budget_tokens, budget_cost),
    }
    if scheduled:
        made = client.schedules.create(str(name), str(cron), timezone=timezone, **described)
        print_found(made, schedule_facts, as_json=as_json)
        return
    if dry_run:
        of_a_run = ("parallelism", "executor", "max_failures", "failures")
        estimated = {field: value for field, value in described.items() if field not in of_a_run}
        estimate = client.jobs.estimate(**estimated, rows=sample)
        print_found(estimate, estimate_text, as_json=as_json)
        raise typer.Exit(1 if estimate.over else 0)
    job = client.jobs.create(**described, name=name, idempotency_key=idempotency_key)
    if wait:
        follow(client, job, as_json=as_json, fail_under=fail_under)
    else:
        print_found(job, lambda one: one.id, as_json=as_json)


def _require_name_and_cron(name: str | None, cron: str | None) -> None:
    if name is None or cron is None:
        missing = "--name" if name is None else "--cron"
        raise InvalidRequest("a schedule needs --name and --cron", problems=(Problem(missing, "is missing"),))


def _evaluators(client: Client, given: Sequence[str], **beside: Any) -> list[Evaluator | str]:
    """Return a job's evaluators: the names of stored evaluators, and the evaluators that are read from files.

    If an evaluator that is read from a file has data files, these are sent to the host.

    Raises:
      InvalidRequest: options for evaluators in files are given, but all evaluators are stored; or a threshold is given,
        but at least one evaluator is stored.
    """
    paths = {one: Path(one) for one in given if Path(one).suffix and Path(one).is_file()}
    has_threshold = beside["threshold"] is not None
    if (has_threshold and len(paths) < len(given)) or (any(beside.values()) and not paths):
        raise InvalidRequest(
            "`--file`, `--files`, `--package` and `--threshold` are for evaluators in files, and the job has stored "
            "ones: give these options to `evaluators create` or `update`"
        )
    return [_read(client, paths[one], beside) if one in paths else one for one in given]


def _read(client: Client, path: Path, beside: dict[str, Any]) -> Evaluator:
    from evaluator_host.platform.evaluators.evaluator_files import read_evaluator, tell_files  # noqa: PLC0415 - few calls to a host need it

    found = read_evaluator(path, None, host=load_settings(), **beside)
    tell_files(found)
    for one in found.data.values():
        client.data.send(one)
    return found.evaluator


def _dataset(client: Client, given: str) -> str:
    """Return `given` if a data set may have this name.

    Raises:
      InvalidRequest: `given` is the path of a file, and no data set has that name.
    """
    file = Path(given)
    if file.suffix and file.is_file():
        try:
            client.datasets.get(given)
        except NotFound as error:
            name = usable_name(file.stem)
            raise InvalidRequest(
                f"{given} is a file, not a data set; upload it first: "
                f"{next_command(f'datasets upload {quote(given)} --name {name}')}; then --dataset {name}"
            ) from error
    return given


def _read_target(
    url: str | None, model: str | None, prompt: str | None, *, inference: list[str] | None, **others: Any
) -> Target | None:
    """Return the model that produces the outputs, as the options describe it; None without the option `--target-url`.

    Raises:
      InvalidRequest: an option is missing, or a value cannot be read.
    """
    if url is None:
        if model or prompt or inference or others.get("api_key") or others.get("system"):
            raise InvalidRequest("--model, --prompt, --system, --inference and --api-key-secret need --target-url")
        return None
    if not model or not prompt:
        missing = "--model" if not model else "--prompt"
        raise InvalidRequest("--target-url needs --model and --prompt", problems=(Problem(missing, "is missing"),))
    return Target(url, model, prompt_template=prompt, inference=dict(map(_parameter, inference or ())), **others)


def _parameter(given: str) -> tuple[str, Any]:
    """Return the name and the value of a parameter. A value that is not JSON becomes a string."""
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise InvalidRequest(f"--inference {given!r} is not NAME=VALUE, as in temperature=0")
    try:
        return name, decode_json(value.encode())
    except InvalidJson:
        return name, value

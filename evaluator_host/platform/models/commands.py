"""`models`: models that evaluators may be granted, their use, and their recorded answers."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evaluator_host.engine.system.files import reading
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import (
    err,
    facts,
    next_command,
    out,
    plain,
    print_found,
    print_json,
    print_json_lines,
    table,
)
from evaluator_host.platform.terminal.local_store import with_store
from evaluator_host.platform.terminal.options import AllWorkspacesOption, DataDirOption, ForceOption, JsonOption
from evaluator_host.platform.terminal.remote_host import ClientOption
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import ModelKind
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.types.models import DayUsage, RegisteredModel
from evaluator_host.types.names import counted

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

app = typer.Typer(name="models", no_args_is_help=True)

_USAGE_HEADER: Final = ("DAY", "MODEL", "REQUESTS", "REPLAYED", "TOKENS IN", "TOKENS OUT", "COST")
_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the model on this host.")]

_Url = typer.Option("--model-url", help="Base URL of the model's API: https://api.openai.com/v1")
_Kind = Annotated[
    ModelKind | None, typer.Option(help="Kind of API: openai (default; also for compatible APIs) or anthropic.")
]
_Model = Annotated[str | None, typer.Option(help="Name of the model at the provider. Default: NAME.")]
_Secret = Annotated[
    str | None, typer.Option(help="Name of the secret with its API key (`evaluator-host secrets set`).")
]
_AllowHost = Annotated[
    bool,
    typer.Option("--allow-host", help="On a host without keys: let evaluators call models at this URL's host."),
]
_InputPrice = Annotated[float | None, typer.Option(min=0, help="Price of a million tokens of requests.")]
_OutputPrice = Annotated[float | None, typer.Option(min=0, help="Price of a million tokens of answers.")]
_CachedPrice = Annotated[
    float | None,
    typer.Option(min=0, help="Price of a million cached tokens of requests. Default: --input-price."),
]
_Timeout = Annotated[float | None, typer.Option(help="Seconds to wait for an answer. Default: 60.")]
_Retries = Annotated[int | None, typer.Option(min=0, max=10, help="Retries after a failed request. Default: 2.")]


@dataclass(frozen=True, slots=True)
class OwnedUsage:
    """The use of a model on one day, with the name of the workspace that used it."""

    workspace: str
    usage: DayUsage


@app.command()
def create(
    name: _NameArgument,
    *,
    model_url: Annotated[str, _Url],
    kind: _Kind = None,
    model: _Model = None,
    secret: _Secret = None,
    input_price: _InputPrice = None,
    output_price: _OutputPrice = None,
    cached_price: _CachedPrice = None,
    timeout_s: _Timeout = None,
    retries: _Retries = None,
    allow_host: _AllowHost = False,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Register a model of the workspace. Its URL must be on a host that evaluators may call (`models hosts`)."""
    prices = _given(input_price=input_price, output_price=output_price, cached_price=cached_price)
    fields = _given(kind=kind, model=model, secret=secret, timeout_s=timeout_s, retries=retries, **prices)
    made = client.models.create(RegisteredModel(name, model_url, **fields), allow_host=allow_host)
    if as_json:
        print_json(made)
    else:
        err.print(plain(f"model {made.name} is registered; test it with {next_command(f'models test {made.name}')}"))


@app.command()
def update(
    name: _NameArgument,
    *,
    model_url: Annotated[str | None, _Url] = None,
    kind: _Kind = None,
    model: _Model = None,
    secret: _Secret = None,
    input_price: _InputPrice = None,
    output_price: _OutputPrice = None,
    cached_price: _CachedPrice = None,
    timeout_s: _Timeout = None,
    retries: _Retries = None,
    allow_host: _AllowHost = False,
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Field to reset to its default: secret, input-price, … Repeatable."),
    ] = None,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Change fields of a workspace's model.

    The changes apply from its next request. Past costs stay as they were counted.
    """
    prices = _given(input_price=input_price, output_price=output_price, cached_price=cached_price)
    fields = _given(url=model_url, kind=kind, model=model, secret=secret, timeout_s=timeout_s, retries=retries)
    changes = dict.fromkeys(one.replace("-", "_") for one in unset or ()) | fields | prices
    changes |= _given(allow_host=allow_host or None)
    if not changes:
        raise InvalidRequest("nothing to change was given; name a field: --input-price 0.1")
    changed = client.models.update(name, **changes)
    print_found(changed, lambda one: _models_table([one]), as_json=as_json)


@app.command(name="list")
def list_(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List the models that evaluators may be granted: those of the operator and of the workspace."""
    found = client.models.all()
    none = "there are no models; register one with evaluator-host models create NAME"
    if not found and not ((allowed := client.models.hosts()).may_allow or allowed.hosts):
        none = "there are no models; ask the operator for one"
    print_found(found, _models_table, as_json=as_json, none=none)


@app.command(name="test")
def ask(name: _NameArgument, *, client: ClientOption, as_json: JsonOption = False) -> None:
    """Ask a model one short question. The exit code is 1 if the model does not answer."""
    outcome = client.models.test(name)
    rows = (
        ("answers", "yes" if outcome.ok else "no"),
        ("output", outcome.output),
        ("error", outcome.error),
        ("tokens", f"{outcome.input_tokens} in, {outcome.output_tokens} out"),
        ("cost", None if outcome.cost is None else f"{outcome.cost:g}"),
        ("took", f"{outcome.latency_ms:.0f} ms"),
    )
    print_found(outcome, lambda _: facts(rows), as_json=as_json)
    raise typer.Exit(0 if outcome.ok else 1)


@app.command()
def delete(name: _NameArgument, *, force: ForceOption = False, client: ClientOption) -> None:
    """Delete a model of the workspace. Evaluators that were granted it are refused from then on."""
    client.models.delete(name, force=force)
    err.print(plain(f"deleted {name}"))


@app.command()
def hosts(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List the hosts on which evaluators may call models."""
    found = client.models.hosts()
    if as_json:
        print_json(found)
        return
    for host in found.hosts:
        out.print(plain(host))
    if found.may_allow:
        err.print("`models create --allow-host` allows a further host")
    else:
        err.print("the operator can allow others with EVALUATOR_HOST_JUDGE_HOSTS")


@app.command(name="forbid-host")
def forbid_host(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="Host to forbid, as `models hosts` prints it: api.openai.com:443.")
    ],
    *,
    client: ClientOption,
) -> None:
    """Forbid a host that was allowed with --allow-host or in the workbench."""
    client.models.forbid_host(host)
    err.print(plain(f"evaluators may no longer call models on {host}"))


@app.command()
def usage(
    *,
    days: Annotated[int, typer.Option(min=1, max=3660, help="How many days, today included.")] = 30,
    client: ClientOption,
    all_workspaces: AllWorkspacesOption = False,
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the workspace's use of each model by day (UTC)."""
    none = "no model was called on these days"
    if all_workspaces:
        owned = with_store(load_settings(data_dir=data_dir), partial(_usage_of_all, days=days))
        print_found(owned, _owned_usage_table, as_json=as_json, none=none)
    else:
        print_found(client.models.usage(days=days), _usage_table, as_json=as_json, none=none)


async def _usage_of_all(store: "Store", *, days: int) -> list[OwnedUsage]:
    from evaluator_host.platform.models.service import first_day  # noqa: PLC0415 - other commands need no database
    from evaluator_host.platform.models.table import ModelTable  # noqa: PLC0415 - as above

    found = await ModelTable(store.database).list_usage_of_all(since=first_day(days))
    names = {owner: await store.workspaces.name_of(owner) or owner for owner in {owner for owner, _ in found}}
    return [OwnedUsage(names[owner], used) for owner, used in found]


@app.command(name="export")
def export_answers(*, client: ClientOption) -> None:
    """Print the recorded answers of models as JSON, one per line."""
    print_json_lines(client.models.export_answers())


@app.command(name="import")
def import_answers(
    file: Annotated[Path, typer.Argument(help="File with the output of `models export`.")],
    *,
    client: ClientOption,
    as_json: JsonOption = False,
) -> None:
    """Import recorded answers from a file. Imported answers replace recorded answers to the same requests."""
    try:
        with reading(file), file.open("rb") as lines:
            kept = client.models.import_answers(decode_json(line) for line in lines if line.strip())
    except InvalidJson as error:
        raise InvalidRequest(f"{file} has a line that is {error}; import a file that `models export` wrote") from error
    if as_json:
        print_json(kept)
    else:
        err.print(plain(f"the workspace now has {counted(kept.answers, 'recorded answer')}"))


@app.command(name="forget")
def delete_answers(
    *,
    model: Annotated[str | None, typer.Option(help="Only recorded answers of this model.", show_default="all")] = None,
    client: ClientOption,
) -> None:
    """Delete the recorded answers of the workspace."""
    client.models.delete_answers(model=model)
    err.print("deleted")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _models_table(found: list[RegisteredModel]) -> object:
    rows = [
        (one.name, one.kind.value, one.model, one.url, one.secret or "", _price(one), "yes" if one.operator else "")
        for one in found
    ]
    return table(("NAME", "KIND", "MODEL", "URL", "SECRET", "PRICE IN/OUT", "OPERATOR'S"), rows)


def _price(one: RegisteredModel) -> str:
    if one.input_price is None or one.output_price is None:
        return ""
    return f"{one.input_price:g}/{one.output_price:g}"


def _usage_table(found: list[DayUsage]) -> object:
    return table(_USAGE_HEADER, list(map(_usage_cells, found)))


def _owned_usage_table(found: list[OwnedUsage]) -> object:
    return table(("WORKSPACE", *_USAGE_HEADER), [(one.workspace, *_usage_cells(one.usage)) for one in found])


def _usage_cells(one: DayUsage) -> tuple[object, ...]:
    return one.day, one.model, one.requests, one.replayed, one.input_tokens, one.output_tokens, cost_text(one)


def cost_text(one: DayUsage) -> str:
    """Format the cost of a day; `?` stands for the cost of requests to a model without a price."""
    known = f"{one.cost:.6g}"
    return known if not one.unpriced else f"{known} + ?" if one.cost else "?"

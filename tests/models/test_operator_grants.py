"""One workspace may use the operator's models, secrets and hosts, and another may not; both try each way to reach them."""

import ast
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from evaluator_host.engine.config.settings import ModelEndpoint
from evaluator_host.engine.contracts.model_requests import Ask
from evaluator_host.engine.service.model_grants import NO_TERMS
from evaluator_host.platform.models.judges import Judges, open_judges
from evaluator_host.platform.models.service import ModelService
from evaluator_host.platform.store.store import Store, open_store
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import Evaluator, ModelBudget
from evaluator_host.types.models import RegisteredModel
from evaluator_host.types.outcome import ErrorCode, EvaluationError
from evaluator_host.types.redaction import Redactor
from evaluator_host.vendors.nemo.entities import Entities, EntityKind, Order
from evaluator_host.vendors.nemo.models import NemoModels
from tests.conftest import settings
from tests.model_server import ModelServer

KEY = "sk-of-the-operator-31337"
SOURCES: Final = Path("evaluator_host")
NAME, HOUSE = "research/judge", "house"


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with ModelServer(key=KEY, plays_all=True) as server:
        yield server


class Doors:
    """A database with the workspaces alpha and beta, and each way to reach one of the operator's models."""

    def __init__(self, store: Store, judges: Judges, ids: dict[str, str]) -> None:
        self.judges, self.ids = judges, ids
        self.directory = judges.gateway.directory
        self.service = ModelService(judges.gateway.settings, store)
        entities = Entities(store.database, store.usage)
        self.nemo = NemoModels(entities, self.directory.operator)

    async def ask(self, workspace: str, name: str = NAME, **changes: Any) -> Any:
        """Return the host's answer to a judge that refers to a model by name."""
        request = {"messages": [{"role": "user", "content": f"asked by {workspace}"}]}
        fields = {"url": f"ref://{name}", "secret": None, "retries": 0, "timeout_s": 5.0, **changes}
        return await self.judges.answer(Ask("1", model=name, request=request, **fields), self.ids[workspace])

    def by_address(self, name: str) -> Awaitable[Any]:
        url = f"https://host.test/apis/inference-gateway/v2/workspaces/research/model/{name.partition('/')[2]}/-/v1"
        return self.ask("alpha", name, url=url)

    async def nemo_list(self, workspace: str) -> list[str]:
        found = await self.nemo.all(
            EntityKind.MODEL, self.ids[workspace], "research", number=1, size=10, order=Order.NAME
        )
        return [one["name"] for one in found["data"]]


@asynccontextmanager
async def doors(
    tmp_path: Path, url: str, *, of: dict[str, Any], name: str = NAME, **changes: Any
) -> AsyncIterator[Doors]:
    models = {name: {"base_url": url, "key": KEY, **of}}
    chosen = settings("bubblewrap", models=models, **changes)
    async with open_store(f"sqlite:///{tmp_path / 'host.db'}", tmp_path) as store, open_judges(chosen, store) as judges:
        made = {name: (await store.workspaces.ensure_workspace(name)).id for name in ("alpha", "beta")}
        yield Doors(store, judges, made)


CLOSED: dict[str, Callable[[Doors, str], Awaitable[Any]]] = {
    "a grant": lambda one, name: one.judges.grant(
        Evaluator("", models=(name,)), one.ids["alpha"], NO_TERMS, redactor=Redactor()
    ),
    "a grant under another name": lambda one, name: one.judges.grant(
        Evaluator("", models=(f"*={name}",)), one.ids["alpha"], NO_TERMS, redactor=Redactor()
    ),
    "a judge's reference": lambda one, name: one.ask("alpha", name),
    "a judge's address of a gateway": lambda one, name: one.by_address(name),
    "GET /v1/models/{name}": lambda one, name: one.service.get_model(one.ids["alpha"], name),
    "POST /v1/models/{name}/test": lambda one, name: one.service.test_model(one.ids["alpha"], name),
    "DELETE /v1/models/{name}": lambda one, name: one.directory.delete(one.ids["alpha"], name),
    "PATCH /v1/models/{name}": lambda one, name: one.directory.change(one.ids["alpha"], name, {"retries": 1}),
    "NeMo's model": lambda one, name: one.nemo.get(EntityKind.MODEL, one.ids["alpha"], *name.split("/")),
    "a target of NeMo's jobs": lambda one, name: one.nemo.resolve(one.ids["alpha"], *name.split("/")),
}


async def test_a_model_of_another_workspace_does_not_exist_at_any_door(provider: ModelServer, tmp_path: Path) -> None:
    async with doors(tmp_path, provider.url, of={"workspaces": ["beta"]}) as one:
        before = len(provider.asked)
        for door, opened in CLOSED.items():
            said = []
            for name in (NAME, "research/other"):
                with pytest.raises(HostError) as refused:
                    await opened(one, name)
                said.append(f"{type(refused.value)} {refused.value.detail}".replace(name, "NAME"))
            assert said[0] == said[1], door
        assert len(provider.asked) == before
        assert [await one.nemo_list(who) for who in ("alpha", "beta")] == [[], ["judge"]]
        assert [[m.name for m in await one.directory.list(one.ids[who])] for who in ("alpha", "beta")] == [[], [NAME]]
        assert "response" in await one.ask("beta")


async def test_the_name_of_a_model_of_another_workspace_is_free(provider: ModelServer, tmp_path: Path) -> None:
    own = RegisteredModel(HOUSE, provider.url, model="own")
    hosts, beta_only = ("127.0.0.1",), {"workspaces": ["beta"]}
    async with doors(tmp_path, provider.url, name=HOUSE, of=beta_only, judge_hosts=hosts) as one:
        alpha, beta = one.ids["alpha"], one.ids["beta"]
        assert (await one.directory.add(alpha, own)).operator is False
        assert (await one.directory.find(alpha, HOUSE)).key is None
        assert (await one.directory.change(alpha, HOUSE, {"retries": 1})).retries == 1
        with pytest.raises(HostError, match="the operator already has a model"):
            await one.directory.add(beta, own)
        found = [(m.name, m.operator) for m in await one.directory.list(alpha)]
        assert found == [(HOUSE, False)]
    async with doors(tmp_path, provider.url, name=HOUSE, of={}, judge_hosts=hosts) as one:
        found = [(m.name, m.operator) for m in await one.directory.list(one.ids["alpha"])]
        assert found == [(HOUSE, True)], (
            "the operator's model must take precedence once it is granted to all workspaces"
        )


async def _prices(one: Doors, provider: ModelServer) -> None:
    assert "response" in await one.ask("beta")
    (used,) = await _used(one, "beta")
    assert (used.model, used.requests) == (NAME, 1)
    assert used.cost == pytest.approx((used.input_tokens * 1e6 + used.output_tokens * 2e6) / 1e6)


async def _used(one: Doors, workspace: str) -> list[Any]:
    await one.judges.gateway.days.aclose()
    return await one.service.list_usage(one.ids[workspace], days=1)


async def _sends(one: Doors, provider: ModelServer) -> None:
    assert "response" in await one.ask("beta", secret="alpha-own")
    assert provider.headers[-1]["Authorization"] == f"Bearer {KEY}"
    assert provider.bodies[-1]["model"] == "real"


async def _speaks(one: Doors, provider: ModelServer) -> None:
    for door in (one.ask("beta"), one.nemo.resolve(one.ids["beta"], "research", "judge")):
        with pytest.raises(HostError, match="has an API of kind anthropic"):
            await door


async def _hidden(one: Doors, provider: ModelServer) -> None:
    with pytest.raises(HostError):
        await one.ask("alpha")


async def _secret(one: Doors, provider: ModelServer) -> None:
    with pytest.raises(HostError, match="house-key"):
        await one.ask("beta", secret="another")


async def _in_time(one: Doors, provider: ModelServer) -> None:
    provider.faults = lambda question, attempt: 0.5
    assert "no answer within 0.2 s" in (await one.ask("beta", timeout_s=60.0))["error"]


async def _tries(one: Doors, provider: ModelServer) -> None:
    provider.faults = lambda question, attempt: 503
    before = len(provider.asked)
    assert (await one.ask("beta", retries=5))["status"] == 503
    assert len(provider.asked) - before == 1


FIELDS: dict[str, tuple[dict[str, Any], Callable[[Doors, ModelServer], Awaitable[None]]]] = {
    "base_url": ({"model": "real"}, _sends),
    "model": ({"model": "real"}, _sends),
    "key": ({"model": "real"}, _sends),
    "secret": ({"secret": "house-key", "key": None}, _secret),
    "kind": ({"kind": "anthropic"}, _speaks),
    "input_price": ({"input_price": 1e6, "output_price": 2e6}, _prices),
    "output_price": ({"input_price": 1e6, "output_price": 2e6}, _prices),
    "cached_price": ({"input_price": 1e6, "output_price": 2e6, "cached_price": 1e5}, _prices),
    "timeout_s": ({"timeout_s": 0.2, "retries": 0}, _in_time),
    "retries": ({"retries": 0}, _tries),
    "workspaces": ({"workspaces": ["beta"]}, _hidden),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("field", ModelEndpoint.model_fields)
async def test_every_field_of_an_operators_model_holds_for_judges(field: str, tmp_path: Path) -> None:
    fields, holds = FIELDS[field]
    with ModelServer(key=KEY, plays_all=True) as server:
        async with doors(tmp_path, server.url, of=fields) as one:
            await holds(one, server)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("day", "says"), [({"requests": 2}, "may call models at most 2 times"), ({"tokens": 1}, "may use at most 1 tokens")]
)
async def test_requests_of_judges_count_in_the_budget_of_the_day(
    provider: ModelServer, tmp_path: Path, day: dict[str, int], says: str
) -> None:
    hosts = ("127.0.0.1",)
    async with doors(tmp_path, provider.url, of={}, model_day=ModelBudget(**day), judge_hosts=hosts) as one:
        before = len(provider.asked)
        found = [await one.ask("alpha") for _ in range(3)]
        most = 2 if "requests" in day else 1
        assert ["response" in one for one in found[:most] if isinstance(one, dict)] == [True] * most
        assert isinstance(found[2], EvaluationError)
        assert (found[2].code, says in found[2].message) == (ErrorCode.BUDGET_EXCEEDED, True)
        assert "operator's limit for a day" in (found[2].hint or "")
        assert "00:00 UTC" in (found[2].hint or "")
        assert isinstance(await one.ask("alpha", url=provider.url), EvaluationError), (
            "the same model must be refused by its address too"
        )
        assert "response" in await one.ask("beta"), "another workspace must have a budget of its own"
        assert len(provider.asked) - before == most + 1
        (used,) = await _used(one, "alpha")
        assert (used.model, used.requests, used.output_tokens > 0) == (NAME, most, True)


async def test_a_failed_request_of_a_judge_counts_too(tmp_path: Path) -> None:
    with ModelServer(key=KEY, faults=lambda question, attempt: 500) as server:
        async with doors(tmp_path, server.url, of={}, model_day=ModelBudget(requests=1)) as one:
            assert "error" in await one.ask("alpha")
            assert isinstance(await one.ask("alpha"), EvaluationError)
            assert [used.requests for used in await _used(one, "alpha")] == [1]


async def test_secrets_and_hosts_are_for_the_workspaces_that_the_operator_names(
    provider: ModelServer, tmp_path: Path
) -> None:
    granted = {"code_secrets": ("beta/crm", "all"), "network_hosts": ("beta/api.test", "open.test:443")}
    async with doors(tmp_path, provider.url, of={}, **granted) as one:
        operator = one.directory.operator
        seen = [await operator.code_secrets(one.ids[who]) for who in ("alpha", "beta")]
        assert seen == [{"all"}, {"all", "crm"}]
        assert [str(host) for host in await operator.hosts(one.ids["beta"], ["api.test"])] == ["api.test:443"]
        assert await operator.hosts(one.ids["alpha"], ["open.test"])
        with pytest.raises(HostError, match="may not reach"):
            await operator.hosts(one.ids["alpha"], ["api.test"])


def test_one_module_reads_what_the_operator_grants() -> None:
    """Only one module reads the settings that grant things to workspaces, because other code would not check which
    workspace may use them.
    """
    granting, doors = {"models", "code_secrets", "network_hosts"}, set()
    for file in SOURCES.rglob("*.py"):
        text = file.read_text()
        if not any(f"settings.{name}" in text for name in granting):
            continue  # a file without these names is not parsed, because parsing all files would take seconds
        for node in ast.walk(ast.parse(text)):
            of = node.value if isinstance(node, ast.Attribute) else None
            name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
            if isinstance(node, ast.Attribute) and node.attr in granting and name.lstrip("_") == "settings":
                doors.add(str(file.relative_to(SOURCES)))
    # the second module only checks whether any models are granted, so that the code that calls models is loaded only
    # then
    assert doors == {"platform/models/gateway/operator_grants.py", "platform/evaluators/evaluation_service.py"}

"""The hosts at which evaluators may call models: those in the operator's setting, and those that the machine's user has
allowed.
"""

from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.client import Client
from evaluator_host.platform.models.gateway.grants import ModelDirectory
from evaluator_host.platform.models.gateway.judge_hosts import JudgeHosts
from evaluator_host.platform.store.store import open_store
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.models import ModelHosts, RegisteredModel
from tests.conftest import settings
from tests.model_server import ModelServer
from tests.models.conftest import KEY
from tests.models.judges import ONE
from tests.models.test_host import command
from tests.server import Server, new_home

URL = "https://api.example.com/v1"


async def hint_of(asked: Awaitable[None]) -> str:
    """Await a request that must be refused, and return the hint in the error."""
    with pytest.raises(InvalidRequest, match=r"may not call models on api\.example\.com") as raised:
        await asked
    return str(raised.value.problems[0].hint)


async def hint_on_unknown(directory: ModelDirectory) -> str:
    """Return the hint in the error on a model that is not registered."""
    with pytest.raises(InvalidRequest, match="there is no model 'judge'") as raised:
        await directory.find("default", "judge")
    return str(raised.value.problems[0].hint)


class TestTheRule:
    async def test_the_person_at_the_machine_allows_a_host_until_there_is_a_key(self, tmp_path: Path) -> None:
        async with open_store(None, tmp_path) as store:
            hosts = JudgeHosts(settings("bubblewrap"), store)
            assert await hosts.show() == ModelHosts([], may_allow=True)
            assert "--allow-host" in await hint_of(hosts.require(URL, field="url"))
            await hosts.allow(URL)
            await hosts.allow(URL)
            assert await hosts.show() == ModelHosts(["api.example.com:443"], may_allow=True)
            await hosts.require(URL, field="url")
            for other in ("https://api.example.com:8443", "http://api.example.com", "https://example.com"):
                with pytest.raises(InvalidRequest, match="may not call models on"):
                    await hosts.require(other, field="url")
            directory = ModelDirectory(settings("bubblewrap"), store)
            assert "operator" not in await hint_on_unknown(directory)
            await store.keys.create_key("ci", "default")
            hint = await hint_on_unknown(directory)
            assert ("ask the operator" in hint, "models create" in hint) == (True, False)
            listed = ModelDirectory(settings("bubblewrap", judge_hosts=("api.example.com",)), store)
            assert "with `evaluator-host models create` on api.example.com" in await hint_on_unknown(listed)
            assert await hosts.show() == ModelHosts([], may_allow=False)
            for refused in (hosts.require(URL, field="url"), hosts.allow(URL)):
                assert "EVALUATOR_HOST_JUDGE_HOSTS" in await hint_of(refused)

    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param({"judge_hosts": ()}, id="closed"),
            pytest.param({"judge_hosts": ("other.example.com",)}, id="others"),
            pytest.param({"network_private": ("127.0.0.0/8",)}, id="code reaches this machine"),
            pytest.param({"backend": "none"}, id="no sandbox"),
        ],
    )
    async def test_nobody_allows_hosts_if_the_operator_has_listed_them(
        self, changes: dict[str, Any], tmp_path: Path
    ) -> None:
        async with open_store(None, tmp_path) as store:
            await JudgeHosts(settings("bubblewrap"), store).allow(URL)
            chosen = settings(**{"backend": "bubblewrap", **changes})
            hosts = JudgeHosts(chosen, store)
            assert await hosts.show() == ModelHosts(sorted(chosen.judge_hosts or ()), may_allow=False)
            for refused in (hosts.require(URL, field="url"), hosts.allow(URL)):
                assert "EVALUATOR_HOST_JUDGE_HOSTS" in await hint_of(refused)


@pytest.mark.engine
@pytest.mark.timeout(200)
class TestOnAFreshHost:
    @pytest.fixture
    def fresh(self, tmp_path: Path) -> Any:
        home = new_home(tmp_path)
        environment = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'evaluator-host.db'}"}
        with Server(data_dir=home, log=tmp_path / "log", environment=environment) as running:
            yield running

    def test_a_model_that_is_added_twice_at_once_keeps_its_key(self, fresh: Server, provider: ModelServer) -> None:
        body = {"name": "judge", "url": provider.url, "model": "real", "key": KEY}
        first = fresh.client.post("/v1/models", json={**body, "name": "first", "allow_host": True})
        assert first.status_code == 201

        def add(_: int) -> int:
            return httpx.post(f"{fresh.url}/v1/models", json=body, timeout=60).status_code

        with ThreadPoolExecutor(8) as threads:
            statuses = sorted(threads.map(add, range(8)))
        assert statuses[0] == 201
        assert set(statuses[1:]) <= {409, 422}
        assert [one["name"] for one in fresh.client.get("/v1/secrets").json()] == ["first", "judge"]

    def test_a_model_with_its_key_and_its_host_is_one_request(self, fresh: Server, provider: ModelServer) -> None:
        body = {"name": "judge", "url": provider.url, "model": "real", "key": KEY}
        refused = fresh.client.post("/v1/models", json=body)
        assert refused.status_code == 422
        assert "allow_host" in refused.json()["errors"][0]["hint"]
        assert fresh.client.get("/v1/secrets").json() == []  # a refused request must leave nothing behind
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{fresh.port + 1}"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        ):
            foreign = fresh.client.post("/v1/models", json={**body, "allow_host": True}, headers=headers)
            assert foreign.status_code == 403, headers
        assert fresh.client.get("/v1/model-hosts").json() == {"hosts": [], "may_allow": True}

        asks = {**body, "allow_host": True}
        refused_ones = (
            # this request is refused, because it has both a key and a secret
            fresh.client.post("/v1/models", json={**asks, "secret": "other"}),
            fresh.client.post("/v1/models", json={**asks, "key": None, "secret": "absent"}),
            fresh.client.patch("/v1/models/absent", json={"url": provider.url, "allow_host": True}),
        )
        assert [one.status_code for one in refused_ones] == [422, 404, 404]
        assert fresh.client.get("/v1/model-hosts").json()["hosts"] == []

        added = fresh.client.post("/v1/models", json=asks)
        assert (added.status_code, added.json()["secret"]) == (201, "judge")
        assert KEY not in added.text
        with Client(fresh.url) as client:
            assert client.models.test("judge").ok
            scored = client.evaluate(Evaluator(ONE, models=("judge",)), outputs="hello")
            assert scored.error is None, scored.error
            again = fresh.client.post("/v1/models", json={**asks, "model": "other"})
            assert again.json()["errors"][0]["message"] == "there is already a secret named judge"
            host = client.models.hosts().hosts[0]
            # the model's host was allowed before the refused request, so it must still be allowed
            assert host in command(fresh, "models", "hosts")
            client.models.forbid_host(host)
            with pytest.raises(NotFound, match="was not allowed"):
                client.models.forbid_host(host)
            with pytest.raises(InvalidRequest, match="may not call models on"):
                client.evaluate(Evaluator(ONE, models=("judge",)), outputs="hello")
            client.models.update("judge", allow_host=True)
            assert client.models.test("judge").ok
            client.models.forbid_host(host)
            client.models.create(RegisteredModel("second", provider.url, secret="judge"), allow_host=True)
            assert client.models.test("second").ok

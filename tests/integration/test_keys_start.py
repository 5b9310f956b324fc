"""A host requires keys once the first key is made. Without a key, it refuses to listen at addresses other than
loopback.
"""

from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import RateLimited, Unauthorized
from tests.databases import Databases
from tests.keyed import EXACT, bearer, command, eventually, is_problem, make_key, revoke_key
from tests.server import Server, free_port


@pytest.fixture
def url(databases: Databases) -> str:
    return databases.make("sqlite")


def test_the_first_key_closes_a_host_that_runs_and_revoking_it_does_not_open_it(url: str, tmp_path: Path) -> None:
    with Server(log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": url}) as server:
        assert server.client.get("/v1/info").status_code == 200
        assert server.client.get("/v1/info", headers=bearer("whatever")).status_code == 200
        key = make_key("ci", "acme", url=url)
        eventually(lambda: server.client.get("/v1/info").status_code == 401)
        assert server.client.get("/v1/info", headers=bearer(key)).status_code == 200
        revoke_key("ci", url=url)
        eventually(lambda: server.client.get("/v1/info", headers=bearer(key)).status_code == 401)
        assert server.client.get("/v1/info").status_code == 401
        assert server.client.get("/healthz").status_code == 200


def test_another_address_is_refused_without_a_key_and_served_with_one(url: str, tmp_path: Path) -> None:
    port = str(free_port())
    for address in ("0.0.0.0", "example.test"):
        refused = command("serve", "--host", address, "--port", port, "--data-dir", str(tmp_path), url=url)
        assert refused.returncode == 2, refused.stderr
        assert f"refusing to listen on {address}" in refused.stderr
        assert "keys create" in refused.stderr
    make_key("gone", "acme", url=url)
    revoke_key("gone", url=url)
    refused = command("serve", "--host", "0.0.0.0", "--port", port, "--data-dir", str(tmp_path), url=url)
    assert refused.returncode == 2, "a revoked key must not let the host listen"
    key = make_key("ci", "acme", url=url)
    environment = {"EVALUATOR_HOST_DATABASE_URL": url, "EVALUATOR_HOST_ALLOWED_HOSTS": '["evaluators.example"]'}
    with Server(log=tmp_path / "log", environment=environment, host="0.0.0.0") as server:
        named = {"Host": "evaluators.example"}
        assert server.client.get("/v1/info", headers=named).status_code == 401
        assert server.client.get("/v1/info", headers={**named, **bearer(key)}).status_code == 200
        assert is_problem(
            server.client.get("/v1/info", headers={"Host": "other.example", **bearer(key)}), 403, "refused"
        )


@pytest.mark.long
def test_metrics_are_open_when_the_operator_says_so(url: str, tmp_path: Path) -> None:
    make_key("ci", "acme", url=url)
    environment = {"EVALUATOR_HOST_DATABASE_URL": url, "EVALUATOR_HOST_OPEN_METRICS": "true"}
    with Server(log=tmp_path / "log", environment=environment) as server:
        assert "evaluator_host_audit_dropped 0.0" in server.client.get("/metrics").text
        assert server.client.get("/v1/info").status_code == 401


@pytest.mark.long
def test_a_key_that_asks_too_often_is_told_when_to_come_back(url: str, tmp_path: Path) -> None:
    eager, calm = make_key("eager", "acme", url=url), make_key("calm", "acme", url=url)
    environment = {
        "EVALUATOR_HOST_DATABASE_URL": url,
        "EVALUATOR_HOST_RATE_LIMIT_PER_S": "0.1",
        "EVALUATOR_HOST_RATE_LIMIT_BURST": "3",
    }
    with Server(log=tmp_path / "log", environment=environment) as server:
        answers = [server.client.get("/v1/info", headers=bearer(eager)) for _ in range(4)]
        assert [answer.status_code for answer in answers[:3]] == [200] * 3
        assert is_problem(answers[3], 429, "rate_limited")
        assert 1 <= int(answers[3].headers["retry-after"]) <= 10
        assert server.client.get("/v1/info", headers=bearer(calm)).status_code == 200, (
            "each key must have its own limit"
        )
        counted = server.client.get("/metrics", headers=bearer(calm)).text.splitlines()
        assert 'evaluator_host_refused_total{code="rate_limited"} 1.0' in counted
        assert 'evaluator_host_refused_total{code="busy"} 0.0' in counted
        assert server.client.get("/healthz").status_code == 200
        with Client(server.url, key=eager, retries=0) as client, pytest.raises(RateLimited):
            client.info()


@pytest.mark.long
def test_a_workspace_may_have_limits_of_its_own(url: str, tmp_path: Path) -> None:
    small, large = make_key("ci", "small", url=url), make_key("ci", "large", url=url)
    other = make_key("ci", "other", url=url)
    limits = tmp_path / "limits.json"
    limits.write_text(
        '{"small": {"rate_limit_burst": 2, "workspace_mb": 1}, "large": {"rate_limit_burst": 6, "model_day": {"requests": 7}}}'
    )
    environment = {
        "EVALUATOR_HOST_DATABASE_URL": url,
        "EVALUATOR_HOST_RATE_LIMIT_PER_S": "0.01",
        "EVALUATOR_HOST_RATE_LIMIT_BURST": "4",
        "EVALUATOR_HOST_WORKSPACE_MB": "50",
        "EVALUATOR_HOST_MODEL_DAY": '{"requests": 5}',
        "EVALUATOR_HOST_WORKSPACE_LIMITS": str(limits),
    }
    with Server(log=tmp_path / "log", environment=environment) as server:
        stored, models, admitted = [], [], []
        for key in (small, large, other):
            answers = [server.client.get("/v1/usage", headers=bearer(key))]
            answers += [server.client.get("/v1/info", headers=bearer(key)) for _ in range(7)]
            stored.append(answers[0].json()["quota_bytes"] >> 20)
            models.append(answers[1].json()["model_day"]["requests"])
            admitted.append(sum(answer.status_code == 200 for answer in answers))
        assert (stored, models, admitted) == ([1, 50, 50], [5, 7, 5], [2, 6, 4])
        assert "there is no workspace" not in server.log


@pytest.mark.long
def test_client_and_command_line_send_the_key(url: str, tmp_path: Path) -> None:
    key = make_key("ci", "acme", url=url)
    (tmp_path / "exact.py").write_text(EXACT)
    run = ("run", str(tmp_path / "exact.py"), "--inputs", '{"correct_answer": "Paris"}', "--outputs", "Paris", "--json")
    with Server(log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": url}) as server:
        with Client(server.url, key=key) as client:
            assert "python" in client.info().languages
        for wrong in (None, key[:-3] + "abc"):
            with Client(server.url, key=wrong) as client, pytest.raises(Unauthorized, match="key"):
                client.info()
        done = command(*run, "--url", server.url, url=url, EVALUATOR_HOST_KEY=key)
        assert done.returncode == 0, done.stderr
        assert '"score": 1.0' in done.stdout
        refused = command(*run, "--url", server.url, url=url)
        assert refused.returncode == 2
        assert "needs a key" in refused.stderr
        assert "keys reset --open" not in refused.stderr, "another team may have keys"
        assert key not in server.log
        assert "/v1/evaluate -H 'Authorization: Bearer KEY' -H 'Content-Type" in server.log, (
            "the example call must contain a key"
        )

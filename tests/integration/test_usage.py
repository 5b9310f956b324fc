"""A real host with a small quota refuses the right requests, tells users why, and does not affect other users."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.platform.models.table import ModelTable
from evaluator_host.platform.store.store import open_store
from evaluator_host.types.formats import Format
from tests.databases import Databases
from tests.keyed import BODY, bearer, command, eventually, make_key, shown
from tests.server import Server
from tests.unit.test_workbooks import packed, parts

ROWS = b"".join(b'{"outputs": "%s"}\n' % (b"x" * 1000) for _ in range(1030))
JSONL = {"content-type": "application/x-ndjson"}


@pytest.fixture
def url(databases: Databases) -> str:
    return databases.make("sqlite")


@pytest.mark.long("store/test_usage.py has quotas")
def test_a_workspace_over_its_quota_may_not_store_more_but_evaluate(url: str, tmp_path: Path) -> None:
    keys = {name: bearer(make_key(name, name, url=url)) for name in ("alpha", "beta")}
    environment = {"EVALUATOR_HOST_DATABASE_URL": url, "EVALUATOR_HOST_WORKSPACE_MB": "1"}
    with Server(log=tmp_path / "log", environment=environment, data_dir=tmp_path / "data") as server:
        client = server.client
        stored = client.post("/v1/datasets?name=first", content=ROWS, headers={**JSONL, **keys["alpha"]})
        assert stored.status_code == 201, stored.text
        told = client.get("/v1/usage", headers=keys["alpha"]).json()
        assert told["quota_bytes"] == 1 << 20
        assert told["total_bytes"] == told["datasets_bytes"] == stored.json()["size_bytes"] > 1_000_000
        assert client.get("/v1/usage", headers=keys["beta"]).json()["total_bytes"] == 0
        code = BODY["evaluator"]["code"] + "#" * 10_000
        given: dict[str, Any]
        for path, given in (
            ("/v1/datasets?name=second", {"content": ROWS[:10_170], "headers": JSONL}),
            ("/v1/evaluators", {"json": {"name": "exact", "code": code}, "headers": {}}),
        ):
            refused = client.post(path, **{**given, "headers": {**given["headers"], **keys["alpha"]}})
            assert (refused.status_code, refused.json()["code"]) == (507, "over_quota"), refused.text
            assert "EVALUATOR_HOST_WORKSPACE_MB" in refused.json()["detail"]
            taken = client.post(path, **{**given, "headers": {**given["headers"], **keys["beta"]}})
            assert taken.status_code == 201, taken.text
        assert client.post("/v1/evaluate", json=BODY, headers=keys["alpha"]).json()["score"] == 1
        assert [one["workspace"] for one in shown("usage", url=url)] == ["alpha", "beta"]
        assert "LIMIT" not in command("usage", url=url).stdout
        token = keys["alpha"]["Authorization"].removeprefix("Bearer ")
        mine = shown("usage", "--url", server.url, url=url, EVALUATOR_HOST_KEY=token)
        everyones = shown("usage", "--url", server.url, "--all-workspaces", url=url, EVALUATOR_HOST_KEY=token)
        assert [one["workspace"] for one in everyones] == ["alpha", "beta"]
        assert [(one["workspace"], one["total_bytes"]) for one in mine] == [("alpha", told["total_bytes"])]
        assert client.delete("/v1/datasets/first", headers=keys["alpha"]).status_code == 204
        time.sleep(0.6)  # for half a second, the host repeats a refusal without measuring again
        again = client.post("/v1/datasets?name=second", content=ROWS[:10_170], headers={**JSONL, **keys["alpha"]})
        assert again.status_code == 201, again.text


@pytest.mark.long
def test_a_small_workbook_with_large_rows_does_not_exceed_the_quota(url: str, tmp_path: Path) -> None:
    cells = '<c t="s"><v>0</v></c></row><row>' * 100
    content = packed(parts(cells, strings=f"<si><t>{'x' * (1 << 20)}</t></si>"))
    environment = {"EVALUATOR_HOST_DATABASE_URL": url, "EVALUATOR_HOST_WORKSPACE_MB": "10"}
    with Server(log=tmp_path / "log", environment=environment, data_dir=tmp_path / "data") as server:
        given = {"content": content, "headers": {"content-type": Format.XLSX.media_type}}
        refused = server.client.post("/v1/datasets?name=rows", **given)  # type: ignore[arg-type]
        assert (refused.status_code, refused.json()["code"]) == (507, "over_quota"), refused.text
        assert server.client.get("/v1/usage").json()["total_bytes"] == 0
        assert list((tmp_path / "data" / "datasets").iterdir()) == []


@pytest.mark.long
def test_the_operator_sees_what_each_workspace_does(url: str, tmp_path: Path) -> None:
    keys = {name: bearer(make_key(name, name, url=url)) for name in ("alpha", "beta")}
    jobs = {}
    environment = {"EVALUATOR_HOST_DATABASE_URL": url}
    with Server(log=tmp_path / "log", environment=environment, data_dir=tmp_path / "data") as server:
        for name, key in keys.items():
            new = {"evaluators": [BODY["evaluator"]], "dataset": {"rows": [{**BODY["inputs"], "outputs": "Paris"}]}}
            started = server.client.post("/v1/jobs", json={**new, "name": f"of {name}"}, headers=key)
            assert started.status_code == 202, started.text
            jobs[name] = started.json()["id"]
        assert server.client.get("/v1/jobs", headers=bearer("eh_guessed")).status_code == 401
        eventually(lambda: "not valid: 1 from 127.0.0.1" in (tmp_path / "log").read_text())
        everyones = shown("jobs", "list", "--all-workspaces", url=url)
        assert {one["workspace"]: one["job"]["id"] for one in everyones} == jobs
        assert [one["job"]["name"] for one in shown("jobs", "list", "--all-workspaces", "--limit", "1", url=url)] == [
            "of beta"
        ]
        eventually(lambda: len(shown("audit", url=url)) == 2)
        assert {one["workspace"]: one["subject"] for one in shown("audit", url=url)} == jobs
        assert jobs["alpha"] in command("audit", "--workspace", "alpha", url=url).stdout
        asyncio.run(_call_models({"alpha": 3, "beta": 4}, url))
        used = shown("models", "usage", "--all-workspaces", "--days", "1", url=url)
        assert [(one["workspace"], one["usage"]["model"], one["usage"]["requests"]) for one in used] in (
            [("alpha", "judge", 3), ("beta", "judge", 4)],
            [("beta", "judge", 4), ("alpha", "judge", 3)],
        )
        assert "alpha" in command("models", "usage", "--all-workspaces", url=url).stdout


async def _call_models(requests: dict[str, int], url: str) -> None:
    """Count calls of a model today for each workspace, as a host does."""
    async with open_store(url, Path()) as store:
        for name, count in requests.items():
            workspace = await store.workspaces.ensure_workspace(name)
            counts = dict.fromkeys(("replayed", "input_tokens", "output_tokens", "cost", "unpriced"), 0)
            today = datetime.now(UTC).date().isoformat()
            await ModelTable(store.database).add_usage(workspace.id, today, {"judge": {"requests": count, **counts}})

"""A host works after the folder of a resource is deleted: it starts, scores rows and jobs, and lacks only the
resource's routes.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DATA_DIR
from tests.keyed import eventually
from tests.resources.copies import copy_without
from tests.server import Server, new_home

pytestmark = pytest.mark.engine

PATHS = {
    "labels": "/v1/label-queues",
    "alerts": "/v1/alerts",
    "data": "/v1/data",
    "schedules": "/v1/schedules",
    "traces": "/v1/evaluators/{name}/traces",
    "secrets": "/v1/secrets",
    "usage": "/v1/usage",
    "packages": "/v1/environments",
}
CODE = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['correct_answer']\n"
ROW = {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}


@pytest.fixture(params=[pytest.param(one, marks=[] if one == "labels" else pytest.mark.long) for one in sorted(PATHS)])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tree(name: str, tmp_path: Path) -> Path:
    """A copy of the source tree without the folder of a resource."""
    return copy_without([f"platform/{name}"], tmp_path / "tree")


def test_a_host_works_without_the_resource(name: str, tree: Path, tmp_path: Path) -> None:
    with Server(
        data_dir=new_home(tmp_path), log=tmp_path / "log", environment={"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    ) as server:
        paths = server.client.get("/openapi.json").json()["paths"]
        assert {one for one, path in PATHS.items() if path in paths} == PATHS.keys() - {name}
        assert name not in server.client.get("/v1/info").json()["resources"]
        scored = server.client.post("/v1/evaluate", json={"evaluator": {"code": CODE}, **ROW})
        assert scored.json()["score"] == 1.0
        job = {"evaluators": [{"code": CODE}], "dataset": {"rows": [ROW, {**ROW, "outputs": "Rome"}]}}
        made = server.client.post("/v1/jobs", json=job).json()["id"]

        def report() -> dict[str, Any]:
            return dict(server.client.get(f"/v1/jobs/{made}").json())

        eventually(lambda: report()["status"] == "completed", within_s=60)
        assert report()["scores"][0]["mean"] == 0.5
        server.client.delete(f"/v1/jobs/{made}").raise_for_status()
        assert server.client.get("/v1/usage").status_code == (404 if name == "usage" else 200)


@pytest.mark.long
def test_commands_and_import_rules_work_without_the_resource(name: str, tree: Path) -> None:
    def ran(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tree, env={"PYTHONPATH": str(tree), "PATH": "/usr/bin:/bin", "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR)},
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    helped = ran(sys.executable, "-m", "evaluator_host", "--help")
    assert f"\n  {name} " not in helped
    assert "\n  jobs " in helped
    assert ran(sys.executable, "-m", "evaluator_host", "jobs", "--help")
    ran(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")

"""A client generated from the OpenAPI document has names for everything, and calls a running host."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server import Server

GENERATOR = "openapi-python-client==0.29.1"
PROGRAM = """
import sys
from evaluator_host_client import AuthenticatedClient
from evaluator_host_client.api.evaluate import evaluate
from evaluator_host_client.api.jobs import create_job, get_job, list_jobs
from evaluator_host_client.models import EvaluateIn, EvaluatorIn, InlineRowsIn, InlineRowsInRowsItem, JobIn

client = AuthenticatedClient(base_url=sys.argv[1], token="none")
code = "def evaluate(inputs, outputs, trace):\\n    return outputs == 1\\n"
scored = evaluate.sync(client=client, body=EvaluateIn(evaluator=EvaluatorIn(code=code), outputs=1))
assert scored.score == 1, scored
row = InlineRowsInRowsItem.from_dict({"outputs": 1})
made = create_job.sync(client=client, body=JobIn(evaluators=[EvaluatorIn(code=code)], dataset=InlineRowsIn(rows=[row])))
assert get_job.sync(made.id, client=client).id == made.id
assert made.id in [job.id for job in list_jobs.sync(client=client)]
print("ok")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    return server.client.get("/openapi.json").json()


def test_every_operation_has_a_name_a_key_and_its_errors(document: Any) -> None:
    operations = {path: methods for path, methods in document["paths"].items() if path.startswith("/v1/")}
    names = [one["operationId"] for methods in operations.values() for one in methods.values()]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name[0].islower() and not name.endswith("_") for name in names)
    assert {"createJob", "listJobs", "getJob", "pauseJob", "renameJob", "uploadDataset", "evaluate"} <= set(names)
    assert not [name for name in document["components"]["schemas"] if "__" in name]
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for methods in operations.values():
        for one in methods.values():
            assert {"401", "403", "429"} <= one["responses"].keys()


@pytest.mark.engine
def test_a_generated_client_calls_the_host(server: Server, document: Any, tmp_path: Path) -> None:
    """Only the routes of `/v1`: vendors' documents are their own."""
    document["paths"] = {path: one for path, one in document["paths"].items() if path.startswith("/v1/")}
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    uvx = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", GENERATOR, "generate"]
    arguments = ["--path", "openapi.json", "--output-path", "client", "--meta", "none"]
    (tmp_path / "config.yml").write_text("project_name_override: evaluator-host-client\nliteral_enums: true\n")
    made = subprocess.run(
        [*uvx, *arguments, "--config", "config.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (tmp_path / "client").rename(tmp_path / "evaluator_host_client")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, server.url], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "ok\n", done.stderr

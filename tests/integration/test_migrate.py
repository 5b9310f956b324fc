"""Migrates evaluators as users do: a folder on the command line, over the API, and with the client."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Row
from evaluator_host.types.migrations import MigrationStatus
from evaluator_host.types.proof import ProofVerdict
from tests import forked
from tests.conftest import DATA_DIR
from tests.server import Server

LEGACY = "def evaluate(app_params, inputs, output, correct_answer):\n    return float(output == correct_answer)\n"
MIGRATED = 'def evaluate(inputs, outputs, trace):\n    return float(outputs == inputs["correct_answer"])\n'
TEXT = (
    "def score():\n    return {1: str(0.5)}.get(1)\n\n\n"
    "def evaluate(app_params, inputs, output, correct_answer):\n    return score()\n"
)
STARS = "evaluate = (lambda: lambda *args: 1.0)()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "node_modules").mkdir(parents=True)
    (tmp_path / "exact.py").write_text(LEGACY)
    (tmp_path / "deep" / "text.py").write_text(TEXT)
    (tmp_path / "deep" / "shared.py").write_text("LIMIT = 3\n")
    (tmp_path / "deep" / "node_modules" / "not_mine.py").write_text(LEGACY)
    return tmp_path


def migrate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
    ran = forked.run(["migrate", *arguments], cwd=folder, env=environment, timeout=100)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


def test_a_folder_is_migrated_and_what_is_proven_is_written(folder: Path) -> None:
    (folder / "stars.py").write_text(STARS)
    ran = migrate(folder, ".", "--write")
    assert ran.returncode == 1
    rows = {line.split()[0]: line for line in ran.stdout.splitlines()[1:]}
    assert set(rows) == {"exact.py", "deep/text.py", "deep/shared.py", "stars.py"}
    assert rows["exact.py"].split() == ["exact.py", "written", "2", "-", "proven", "on", "48", "generated", "rows"]
    assert " migrated " in rows["deep/text.py"]
    assert "differs at row 0: old score 0.5, new failed" in rows["deep/text.py"]
    assert " refused " in rows["stars.py"]
    assert " no evaluator " in rows["deep/shared.py"]
    assert (
        "stars.py:1: evaluate is created by other code, so its four parameters cannot be seen; rewrite it by hand\n"
        in ran.stderr
    )
    assert (folder / "exact.py").read_text() == MIGRATED
    assert (folder / "deep" / "text.py").read_text() == TEXT
    assert (folder / "deep" / "node_modules" / "not_mine.py").read_text() == LEGACY


@pytest.mark.long
def test_code_that_is_not_rewritten_is_adapted_on_request(folder: Path) -> None:
    (folder / "stars.py").write_text(STARS)
    ran = migrate(folder, ".", "--adapt", "--write")
    assert ran.returncode == 0, ran.stderr
    assert (folder / "exact.py").read_text() == MIGRATED
    for file, code in ((folder / "stars.py", STARS), (folder / "deep" / "text.py", TEXT)):
        assert file.read_text().startswith(code.rpartition("def evaluate")[0] or code)
        assert "legacy_evaluate({}, inputs, outputs, inputs[" in file.read_text()
    assert migrate(folder, ".").returncode == 0  # now all evaluators have the new signature


@pytest.mark.long
def test_nothing_is_written_unasked_and_everything_when_forced(folder: Path) -> None:
    shown = migrate(folder, "exact.py", "--diff")
    assert shown.returncode == 0
    assert "+def evaluate(inputs, outputs, trace):\n" in shown.stdout
    assert (folder / "exact.py").read_text() == LEGACY
    forced = migrate(folder, "deep/text.py", "--write", "--force", "--json")
    (entry,) = json.loads(forced.stdout)
    assert (forced.returncode, entry["written"], entry["proof"]["verdict"]) == (1, True, "differs")
    assert entry["proof"]["differences"][0]["old"]["score"] == 0.5
    assert (folder / "deep" / "text.py").read_text() == entry["code"]


@pytest.mark.long
def test_rows_of_a_file_prove_it_on_a_host(folder: Path, server: Server) -> None:
    (folder / "rows.csv").write_text("gold,answer\nParis,Paris\nRome,Oslo\n")
    ran = migrate(
        folder, "exact.py", "--data", "rows.csv", "--map", "outputs=answer", "--correct-answer-key", "gold",
        "--url", server.url, "--json",
    )  # fmt: skip
    (entry,) = json.loads(ran.stdout)
    assert ran.returncode == 0, ran.stderr
    assert entry["code"] == MIGRATED.replace("correct_answer", "gold")
    assert entry["proof"] == {
        "verdict": "proven", "rows": 2, "scored": 2, "generated": False, "left_out": 0, "differing": 0,
        "differences": [], "why": None,
    }  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.py",), "there is no such file"),
        ((".", "--force"), "add --write"),
        ((".", "--adapt", "--to", "main"), "does not work with --to main"),
        ((".", "--to", "ragas"), "'evaluate', 'main'"),
        (("empty",), "there is no evaluator in empty"),
        (("exact.py", "--data", "none.jsonl"), "none.jsonl"),
    ],
)
def test_mistakes_are_reported(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "empty").mkdir()
    ran = migrate(folder, *arguments)
    assert ran.returncode == 2
    assert message in ran.stderr


@pytest.mark.long
def test_the_client_migrates_by_a_data_set(server: Server) -> None:
    with Client(server.url) as client:
        server.client.post(
            "/v1/datasets?name=gold&replace=true", json=[{"gold": "a", "said": "a"}, {"gold": "b", "said": "c"}]
        )
        evaluator = Evaluator(LEGACY, settings=EvaluatorSettings(correct_answer_key="gold"))
        migration = client.migrate(evaluator, dataset="gold", mapping={"outputs": "said"})
        assert migration.status is MigrationStatus.MIGRATED
        assert migration.code == MIGRATED.replace("correct_answer", "gold")
        assert migration.proof is not None
        assert (migration.proof.verdict, migration.proof.rows, migration.proof.scored) == (ProofVerdict.PROVEN, 2, 2)
        with pytest.raises(NotFound):
            client.migrate(evaluator, dataset="nothing")
        with pytest.raises(InvalidRequest, match="in several ways"):
            client.migrate(evaluator, [Row()], dataset="gold")
        job = client.jobs.create([evaluator], "gold", mapping={"outputs": "said"})
        with pytest.raises(InvalidRequest, match="in several ways"):
            client.migrate(evaluator, dataset="gold", job=job.id)
        proof = client.migrate(evaluator, job=job.id).proof
        assert proof is not None
        assert (proof.verdict, proof.rows, proof.scored, proof.generated) == (ProofVerdict.PROVEN, 2, 2, False)
        with pytest.raises(NotFound):
            client.migrate(evaluator, job="job_nothing")
        assert client.migrate(Evaluator(STARS)).status is MigrationStatus.REFUSED
        assert client.migrate(Evaluator(STARS), adapt=True).status is MigrationStatus.ADAPTED
        assert client.migrate(Evaluator(MIGRATED)).status is MigrationStatus.CURRENT
        assert client.migrate(Evaluator("X = 1\n")).status is MigrationStatus.NO_EVALUATOR


def test_a_loop_without_end_is_not_a_proof(server: Server) -> None:
    code = "def evaluate(app_params, inputs, output, correct_answer):\n    while True: pass\n"
    body = {"code": code, "limits": {"timeout_s": 0.2}, "rows": [{"inputs": {"correct_answer": 1}}]}
    answer = server.client.post("/v1/migrate", json=body).json()
    assert answer["proof"]["verdict"] == "not_comparable"
    assert answer["proof"]["why"].startswith("the old code scores none of the 1 rows: ")


@pytest.mark.long
def test_named_evaluators_move_to_a_version_that_keeps_the_proof(server: Server, folder: Path) -> None:
    names = ("moves-exact", "moves-text", "moves-new")
    with Client(server.url) as client:
        for name, code in zip(names, (LEGACY, TEXT, MIGRATED), strict=True):
            client.evaluators.create(name, Evaluator(code, contract=Contract.AUTO))
        planned = {one.name: one for one in client.evaluators.migrate() if one.name in names}
        assert set(planned) == {"moves-exact", "moves-text"}  # the third evaluator already has the new signature
        assert all(one.made is None for one in planned.values())
        assert client.evaluators.get("moves-exact").version == 1
        done = {one.name: one for one in client.evaluators.migrate(*names, dry_run=False)}
        assert {name: one.made for name, one in done.items()} == {
            "moves-exact": 2,
            "moves-text": None,
            "moves-new": None,
        }
        assert done["moves-new"].migration.status is MigrationStatus.CURRENT
        moved = client.evaluators.get("moves-exact")
        assert (moved.version, moved.contract, moved.evaluator.code) == (2, Contract.EVALUATE, MIGRATED)
        assert moved.origin is not None
        assert (moved.origin.version, moved.origin.proof.text) == (1, "proven on 48 generated rows")
        assert client.evaluators.get("moves-exact", 1).origin is None
        assert client.evaluate("moves-exact", inputs={"correct_answer": 1}, outputs=1).score == 1.0
        with pytest.raises(NotFound):
            client.evaluators.migrate("moves-nothing")
        listed = evaluators(folder, "migrate", "moves-text", "--write", "--force", "--url", server.url)
        assert listed.returncode == 1
        assert re.search(r"moves-text@1 +migrated +moves-text@2 +- +differs at row 0: ", listed.stdout)
        shown = evaluators(folder, "show", "moves-text", "--url", server.url)
        assert "from version 1: differs at 48 of 48 generated rows" in shown.stdout
        client.evaluators.create("moves-stars", Evaluator(STARS, contract=Contract.EVALUATE_V1))
        (adapted,) = client.evaluators.migrate("moves-stars", adapt=True, dry_run=False)
        assert (adapted.made, adapted.migration.status) == (2, MigrationStatus.ADAPTED)
        assert client.evaluate("moves-stars", inputs={"correct_answer": 1}, outputs=1).score == 1.0
        listed = evaluators(folder, "migrate", "moves-stars", "--adapt", "--url", server.url)
        assert (listed.returncode, " current " in listed.stdout) == (0, True)
        for name in (*names, "moves-stars"):
            client.evaluators.delete(name)


def evaluators(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run(["evaluators", *arguments], cwd=folder, timeout=100)

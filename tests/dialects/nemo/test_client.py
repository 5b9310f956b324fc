"""NVIDIA's own client works with a host: it reads the host's answers as it reads the answers of NVIDIA's platform."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dialects.nemo.client import ANSWERS, Expressions, session
from tests.dialects.nemo.metrics import RESULT, ROWS, SUMMARY
from tests.server import FORKED, Server

KEY = "arithmetic-expression-correctness"
pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("this installs a client; test_routes.py tests the same routes without it"),
    pytest.mark.timeout(600),  # seconds, because the first run on a machine installs the client
]


@pytest.fixture(scope="module")
def model() -> Iterator[Expressions]:
    with Expressions(completes=True) as running:
        yield running


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory, model: Expressions) -> tuple[str, dict[str, Any]]:
    """What a session with the client printed, and the findings that it wrote to a file."""
    folder = tmp_path_factory.mktemp("session")
    models = {"default/my-model": {"base_url": model.url, "model": "m-1"}}
    environment = {
        "EVALUATOR_HOST_MODELS": json.dumps(models),
        # a separate database, so that lists show only objects of this session
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder / 'host.db'}",
    }
    with Server(log=folder / "log", environment=FORKED | environment) as server:
        return session(server.url, model.url, folder, ROWS)


def test_the_client_prints_what_it_prints_of_a_run_of_its_own(day: tuple[str, dict[str, Any]]) -> None:
    stdout, found = day
    scores = RESULT["aggregate_scores"]["scores"]
    lines = [f"{one['name']}: mean={one['mean']}, count={one['count']}, nan_count={one['nan_count']}" for one in scores]
    for row in RESULT["row_scores"]:
        outputs = ", ".join(
            f"MetricOutput(name={one['name']!r}, value={one['value']!r})" for one in row["metrics"][KEY]
        )
        lines += [f"Model output: {row['sample']['output_text']}", f"Metric outputs: {{{KEY!r}: [{outputs}]}}"]
    assert stdout == SUMMARY + "".join(f"{line}\n" for line in lines)
    assert found["result"]["row_scores"] == RESULT["row_scores"]
    for score, golden in zip(found["result"]["aggregate_scores"]["scores"], scores, strict=True):
        assert score == {**golden, "histogram": score["histogram"]}
        assert [one["count"] for one in score["histogram"]["bins"]] == [
            one["count"] for one in golden["histogram"]["bins"]
        ]


def test_files_go_there_and_back(day: tuple[str, dict[str, Any]]) -> None:
    found = day[1]
    assert (found["workspace_conflicts"], found["fileset_conflicts"], found["same_file"]) == (True, True, True)
    assert found["fileset"] == ["sums", "problems", "word problems"]
    assert [path for path, _ in found["files"]] == ["2026/problems.jsonl"]


def test_models_are_asked_where_they_were_configured(day: tuple[str, dict[str, Any]], model: Expressions) -> None:
    found = day[1]
    assert found["asked"] == [[said, right] for said, right in zip(ANSWERS.values(), (True, False, True), strict=True)]
    assert found["asked_mine"] == [ANSWERS["pencils"]]
    keys = {(body["model"], sent.get("Authorization")) for body, sent in zip(model.bodies, model.headers, strict=True)}
    assert keys == {("m-1", None), ("mine", "Bearer sk-of-the-sums")}
    assert (found["secret_conflicts"], found["secrets"]) == (True, ["sums-key"])
    assert "sk-of-the-sums" not in str(found)
    assert sorted(body["model"] for body in model.bodies) == ["m-1"] * 3 + ["mine"]
    assert all(body["prompt"].endswith("Expression:") for body in model.bodies)
    assert {(body["temperature"], body["max_tokens"]) for body in model.bodies} == {(0.0, 32)}


def test_jobs_are_listed_cancelled_and_removed_and_say_why_they_failed(day: tuple[str, dict[str, Any]]) -> None:
    found = day[1]
    assert found["inline"] == [0.5]
    assert found["metrics"] == [["exact", "exact-match"]]
    assert "finished with status 'error'" in found["failure"]
    assert f"Evaluation failed during metric scoring for metric '{KEY}' on row 1: boom" in found["failure"]
    assert "looking at 1" in found["logs"]
    assert found["cancelled"] == "cancelled"
    assert found["jobs"] == ["cancelled", "error", *["completed"] * 4]
    assert found["again"] is True
    assert found["filtered"] == {
        "workspaces": ["sums"],
        "filesets": ["problems"],
        "no filesets": [],
        "models": ["mine"],
        "providers": ["here"],
        "metrics": ["exact"],
        "no metrics": [],
        "jobs": ["cancelled", "error"],
        "results": [found["name"]],
    }
    assert found["artifacts"] == ["aggregate-scores.json", "row-scores.jsonl"]
    assert len(found["records"]) == 4
    assert found["deleted"] == 404

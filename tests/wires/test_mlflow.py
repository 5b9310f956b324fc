"""`evaluator-host mlflow score` works with a real MLflow server, and with scorers that MLflow's own package registered."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.vendors.mlflow.tracking import TrackingServer
from tests import forked
from tests.answering import answering
from tests.differential.packages import real_python
from tests.server import Server, free_port
from tests.wires.real_clients import CLIENTS, run_python

pytestmark = [pytest.mark.engine, pytest.mark.differential, pytest.mark.timeout(600)]

SEED = """
import json, sys
import mlflow
from mlflow.genai.scorers import scorer
mlflow.set_tracking_uri(sys.argv[1])
experiment = mlflow.set_experiment("cities")

@mlflow.trace
def answer(question):
    return "Paris" if "France" in question else "Rome"

for question in ("capital of France?", "capital of Spain?"):
    answer(question)
mlflow.flush_trace_async_logging()
for trace in mlflow.search_traces(locations=[experiment.experiment_id], return_type="list"):
    right = "Paris" if "France" in str(trace.data.request) else "Madrid"
    mlflow.log_expectation(trace_id=trace.info.trace_id, name="expected_response", value=right)
    mlflow.log_expectation(trace_id=trace.info.trace_id, name="accepted", value=[right, {"also": right.upper()}])

@scorer
def right(outputs, expectations):
    first, other = expectations["accepted"]
    return outputs == expectations["expected_response"] == first == other["also"].title()

@scorer
def length(inputs, outputs):
    from mlflow.entities import Feedback
    if "Spain" in inputs["question"]:
        raise ValueError("not Spain")
    return Feedback(value=len(outputs), rationale="characters")

@scorer
def silent(outputs):
    return None

for one in (right, length, silent):
    one.register(name=one.name, experiment_id=experiment.experiment_id)
print("1")
"""
READ = """
import json, sys
import mlflow
mlflow.set_tracking_uri(sys.argv[1])
experiment = mlflow.get_experiment_by_name("cities")
found = {}
for trace in mlflow.search_traces(locations=[experiment.experiment_id], return_type="list"):
    feedback = [one for one in trace.info.assessments if one.feedback is not None]
    found[trace.data.response] = sorted([one.name, one.feedback.value, one.rationale, one.source.source_id, one.feedback.error is not None] for one in feedback)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an MLflow server with two traces and two scorers."""
    home, port = tmp_path_factory.mktemp("mlflow"), free_port()
    python = real_python(CLIENTS / "mlflow.txt")
    variables = {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HOME": str(home),
        "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # the server would otherwise start seven processes that score by themselves
    }
    store = ["--backend-store-uri", f"sqlite:///{home}/m.db", "--artifacts-destination", f"{home}/artifacts"]
    command = [
        str(python),
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
        *store,
    ]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log, cwd=home, start_new_session=True)
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + 240
    try:
        while True:
            assert process.poll() is None, (home / "log").read_text()[-2000:]
            assert time.monotonic() < until, (home / "log").read_text()[-2000:]
            try:
                if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.5)
        # the program is in a file, because MLflow registers a scorer with the source of its module
        (home / "seed.py").write_text(SEED)
        start = "import runpy, sys; runpy.run_path(sys.argv[2], run_name='__main__')"
        allowed = {"HOME": str(home), "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS": "true"}
        run_python("mlflow", start, url, str(home / "seed.py"), **allowed)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # this also kills the server's workers, which share its session
        process.wait(30)


def test_registered_scorers_score_and_their_feedback_is_read_by_mlflow(
    mlflow: str, host: Server, tmp_path: Path
) -> None:
    def score(*more: str) -> "subprocess.CompletedProcess[str]":
        asked = ("mlflow", "score", "--tracking-uri", mlflow, "--experiment", "cities", "--url", host.url, *more)
        return forked.run(asked, env={"PATH": "/usr/bin:/bin"}, timeout=120)

    dry = score("--dry-run", "--json")
    assert dry.returncode == 1, dry.stderr
    counts = ("traces", "scored", "skipped", "failed")
    told = {one["scorer"]: tuple(one[name] for name in counts) for one in json.loads(dry.stdout)}
    assert told == {"right": (2, 2, 0, 0), "length": (2, 1, 0, 1), "silent": (2, 0, 2, 0)}
    assert score().returncode == 1
    found = run_python("mlflow", READ, mlflow, HOME=str(tmp_path))
    by_source = {name.strip('"'): feedback for name, feedback in found.items()}
    assert by_source["Paris"] == [
        ["length", 5, "characters", "evaluator-host/length@1", False],
        ["right", True, None, "evaluator-host/right@1", False],
    ]
    assert by_source["Rome"][0][4] is True
    assert by_source["Rome"][1][1] is False
    again = score("--json")
    assert {one["scorer"]: one["traces"] for one in json.loads(again.stdout)} == {"right": 0, "length": 0, "silent": 2}
    assert score("--scorer", "none").returncode == 2


@pytest.mark.parametrize("page", [b"<!doctype html><p>Welcome", b"[]"])
def test_another_program_at_the_address_is_reported_as_such(page: bytes) -> None:
    said = "is not a tracking server of MLflow"
    with (
        answering(lambda path, credentials: (200, "text/html", page)) as url,
        pytest.raises(InvalidRequest, match=said),
    ):
        TrackingServer(url, None).experiment_id("cities")


def test_expectations_are_read_as_they_were_logged() -> None:
    def expectation(name: str, given: dict[str, object], *, valid: bool = True) -> dict[str, object]:
        return {"assessment_name": name, "expectation": given, "valid": valid}

    facts = {"serialized_value": {"serialization_format": "JSON_FORMAT", "value": '["a", {"b": 1}]'}}
    assessments = [
        expectation("text", {"value": '["not decoded"]'}),
        expectation("facts", facts),
        expectation("number", {"value": 0.5}),
        expectation("number", {"value": 9}, valid=False),
    ]
    whole = json.dumps({"trace": {"spans": [], "trace_info": {"assessments": assessments}}}).encode()
    with answering(lambda path, credentials: (200, "application/json", whole)) as url:
        row = TrackingServer(url, None)._trace({"trace_id": "t"}).row
    assert row.variables is not None
    assert row.variables["expectations"] == {"text": '["not decoded"]', "facts": ["a", {"b": 1}], "number": 0.5}

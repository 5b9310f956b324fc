"""Calls every operation of `/v1` with a client that openapi-python-client generated.

The program runs in a separate process. Its arguments are the host's URL, the URL of a model server, the URL of a
webhook, and a file to which requests and responses are written as JSON Lines. The program prints how many operations it
called. Each response is read into the generated class, so the document must describe the response.
"""

import importlib
import io
import json
import pkgutil
import sys
import time
import typing
from pathlib import Path
from typing import Any

import evaluator_host_client.api as api
from evaluator_host_client import AuthenticatedClient
from evaluator_host_client.models import ProblemBody
from evaluator_host_client.types import File

HOST, MODEL, WEBHOOK, RECORD = sys.argv[1:]
CODE = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs.get('answer', 1)\n"
OLD = "def evaluate(app_params, inputs, output, correct_answer):\n    return float(output == correct_answer)\n"
ROWS = [{"inputs": {"answer": n % 2}, "outputs": 1, "label": bool(n % 2)} for n in range(4)]
CLIENT = AuthenticatedClient(base_url=HOST, token="none", raise_on_unexpected_status=True)
BY_NAME = {
    found.name.rpartition(".")[2]: importlib.import_module(found.name)
    for found in pkgutil.walk_packages(api.__path__, f"{api.__name__}.")
    if not found.ispkg
}
called: list[str] = []
recorded: list[dict[str, Any]] = []


def ask(operation: str, *path: object, body: object = None, **query: object) -> Any:
    """Call an operation and return its answer as an object. A file is sent unchanged; any other body is made from an
    object of its generated class.
    """
    function = BY_NAME[operation].sync_detailed
    sent = {"operation": operation, "path": path, "query": dict(query), "body": body}
    if isinstance(body, bytes):
        query["body"] = File(payload=io.BytesIO(body))
    elif body is not None:
        wanted = typing.get_type_hints(function)["body"]
        kinds = [one for one in typing.get_args(wanted) or (wanted,) if hasattr(one, "from_dict")]
        query["body"] = kinds[0].from_dict(body)
    answer = function(*path, client=CLIENT, **query)
    assert 200 <= answer.status_code < 300, (operation, answer.status_code, answer.content[:600])
    assert not isinstance(answer.parsed, ProblemBody), (operation, answer.content)
    called.append(operation)
    if answer.content and answer.headers["content-type"] == "application/json":
        assert answer.parsed is not None, (operation, "its answer is not described")
        same(operation, answer.parsed, json.loads(answer.content))
        recorded.append({**sent, "answer": json.loads(answer.content)})
    return answer.parsed if answer.parsed is not None else answer.content


def same(operation: str, parsed: Any, sent: Any) -> None:
    """Check that the generated class keeps every field: its object, written as JSON again, must equal the JSON that was
    sent.
    """
    if isinstance(parsed, list):
        for one, other in zip(parsed, sent, strict=True):
            same(operation, one, other)
    else:
        again = parsed.to_dict()
        assert again.keys() >= sent.keys(), (operation, sent.keys() - again.keys())


def wait_for_job(job_id: str) -> Any:
    """Wait until a job has ended, and return its report."""
    for _ in range(300):
        report = ask("get_job", job_id)
        if report.status in ("completed", "failed", "cancelled"):
            return report
        time.sleep(0.1)
    raise AssertionError(f"job {job_id} does not end")


def walk_evaluation() -> None:
    """Score rows, check and migrate code, run a program, and call the routes for editors."""
    evaluator = {"code": CODE}
    assert ask("evaluate", body={"evaluator": evaluator, "outputs": 1}).score == 1
    assert len(ask("evaluate_batch", body={"evaluator": evaluator, "rows": [{"outputs": 1}] * 4}).results) == 4
    assert ask("check", body={"evaluator": evaluator}).ok
    ask("editor", body={"evaluator": evaluator, "line": 2, "column": 8, "what": "completions"})
    assert "def evaluate(inputs, outputs, trace)" in ask("migrate", body={"code": OLD}).code
    assert ask("run_program", body={"code": "print('hello')"}).stdout == "hello\n"
    assert ask("get_info").version
    ask("get_usage")


def walk_evaluators() -> None:
    """Store, change, read, import and migrate evaluators, and send traces to an evaluator."""
    ask("create_evaluator", body={"name": "same", "code": CODE})
    ask("update_evaluator", "same", body={"code": CODE + "# 2\n"})
    ask("describe_evaluator", "same", body={"tags": ["walk"]})
    ask("create_evaluator", body={"name": "old", "code": OLD})
    assert {one.name for one in ask("list_evaluators")} == {"same", "old"}
    assert ask("get_evaluator", "same").version == 2
    assert len(ask("list_evaluator_versions", "same")) == 2
    assert ask("get_evaluator_version", "same", 1).version == 1
    ask("migrate_evaluators", body={"names": ["old"]})
    ask("import_evaluators", body={"files": {"scorers.py": CODE}, "path": "scorers.py", "dry_run": True})
    ask("list_evaluator_scores", "same")
    ask("send_traces", "same", body={"resourceSpans": []})
    ask("list_evaluator_traces", "same")


def walk_datasets() -> None:
    """Upload, edit, search, compare and download rows."""
    lines = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()
    assert ask("upload_dataset", name="rows", body=lines).rows == 4
    ask("edit_dataset", "rows", body={"set": {"0": ROWS[1]}})
    assert [one.name for one in ask("list_datasets")] == ["rows"]
    assert ask("get_dataset", "rows").rows == 4
    assert len(ask("list_dataset_rows", "rows")) == 4
    assert len(ask("list_dataset_versions", "rows")) == 2
    ask("list_dataset_changes", "rows@1", to="rows")
    ask("list_dataset_columns", "rows")
    ask("list_dataset_scores", "rows")
    ask("search_dataset", "rows", text="1")
    assert ask("download_dataset", "rows").payload.read().count(b"\n") == 4


def walk_data() -> None:
    """Store a file, and delete it."""
    sent = ask("send_data_file", body=b"\x00\x01")
    assert [one.digest for one in ask("list_data_files")] == [ask("get_data_file", sent.digest).digest]
    ask("delete_data_file", sent.digest)


def walk_jobs() -> None:
    """Create two jobs, read everything about them, label rows, and end one of the jobs."""
    body = {"evaluators": ["same"], "dataset": "rows"}
    ask("estimate_job", body=body)
    ask("mapping_job", body=body)
    first, second = (ask("create_job", body=body).id for _ in range(2))
    assert wait_for_job(first).status == wait_for_job(second).status == "completed"
    ask("rename_job", first, body={"name": "first"})
    assert {one.id for one in ask("list_jobs")} == {first, second}
    for operation in ("get_job_results", "list_job_rows", "list_job_failures", "list_job_evaluators", "watch_job"):
        ask(operation, first)
    ask("get_job_row", first, 0)
    ask("get_job_agreement", first, label="label")
    ask("list_job_groups", first, by="label")
    assert ask("download_job_rows", first, "jsonl").payload.read().count(b"\n") == 4
    ask("compare_jobs", first, second)
    ask("pair_job_rows", first, second)
    ask("get_job_compare_row", first, second, 0)
    ask("list_job_compare_changes", first, second)
    ask("list_job_compare_groups", first, second, by="label")
    walk_labels(first)
    slow = {"code": "def evaluate(inputs, outputs, trace):\n    import time; time.sleep(0.5); return 1\n"}
    third = ask("create_job", body={"evaluators": [slow], "dataset": {"rows": ROWS * 50}}).id
    for operation in ("pause_job", "resume_job", "cancel_job"):
        ask(operation, third)
    wait_for_job(third)
    ask("delete_job", third)


def walk_labels(job: str) -> None:
    ask("create_label_queue", body={"name": "review", "job": job})
    ask("list_label_queues")
    ask("get_label_queue", "review")
    index = ask("take_label_row", "review", body={"by": "ann"}).index
    ask("update_label_queue_row", "review", index, body={"by": "ann", "label": True})
    ask("get_label_queue_row", "review", index)
    ask("list_label_queue_rows", "review")
    ask("delete_label_queue", "review")


def walk_schedules() -> None:
    """Make a schedule with an alert, then change and run both."""
    job = {"evaluators": ["same"], "dataset": "rows"}
    ask("create_schedule", body={"name": "weekly", "cron": "0 7 * * 1", "job": job})
    ask("create_alert", body={"name": "low", "metric": "mean", "schedule": "weekly", "below": 0.8, "url": WEBHOOK})
    ask("list_schedules")
    ask("get_schedule", "weekly")
    ask("change_schedule", "weekly", body={"timezone": "Europe/Berlin"})
    wait_for_job(ask("run_schedule", "weekly").id)
    ask("list_alerts")
    ask("get_alert", "low")
    ask("change_alert", "low", body={"paused": True})
    ask("test_alert", "low")
    ask("delete_alert", "low")
    ask("delete_schedule", "weekly")


def walk_models() -> None:
    """Register a model with a secret, call the model, and read its usage and recorded answers."""
    ask("set_secret", "provider", body={"value": "sk-1234567890"})
    ask("list_secrets")
    ask("get_secret", "provider")
    ask("add_model", body={"name": "judge", "url": MODEL, "model": "real", "secret": "provider", "allow_host": True})
    ask("list_models")
    ask("list_ready_judges")
    ask("get_model", "judge")
    ask("change_model", "judge", body={"input_price": 1})
    ask("test_model", "judge")
    ask("get_model_usage")
    ask("count_model_answers")
    ask("import_model_answers", body=ask("export_model_answers").payload.read())
    ask("delete_model_answers")
    ask("delete_model", "judge")
    ask("delete_model_host", ask("list_model_hosts").hosts[0])
    ask("delete_secret", "provider")


def walk_environments() -> None:
    """Build a package set, watch the build, and remove the set."""
    ask("list_package_versions", "python", "six")
    key = ask("build_environment", body={"packages": ["six==1.17.0"]}).key
    assert "ready" in str(ask("watch_environment", key))
    ask("list_environments")
    assert ask("get_environment", key).status == "ready"
    ask("delete_environment", key)


def remove() -> None:
    """Remove everything that was stored."""
    for name in ("same", "old"):
        ask("delete_evaluator", name)
    ask("delete_dataset", "rows")


for part in (
    walk_evaluation,
    walk_evaluators,
    walk_datasets,
    walk_data,
    walk_jobs,
    walk_schedules,
    walk_models,
    walk_environments,
    remove,
):
    part()
missing = BY_NAME.keys() - set(called)
assert not missing, f"operations that were not called: {sorted(missing)}"
Path(RECORD).write_text("".join(f"{json.dumps(one, default=lambda _: None)}\n" for one in recorded))
print(len(BY_NAME), "operations")

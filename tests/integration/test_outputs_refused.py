"""An evaluator reads outputs, but 500 rows have no column `outputs`: the host reports this, and does not show a mean of
0.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.scale.sandbox_pool import SandboxPool
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Row
from tests import forked
from tests.conftest import DATA_DIR
from tests.integration.test_mcp import refused, tools, used
from tests.integration.test_pytest_plugin import run as run_pytest
from tests.server import FORKED, Server, new_home
from tests.unit.test_workbooks import packed, parts

pytestmark = pytest.mark.engine

READS = {
    "python": "def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == inputs['expected'] else 0.0\n",
    "javascript": "function evaluate(inputs, outputs, trace) { return outputs === inputs.expected ? 1 : 0 }",
    "typescript": "export const evaluate = (i: any, o: string | null, t: any) => (o == null ? 0 : +(o === i.expected))",
}
MORE = {
    "asks for them": "def evaluate(inputs, outputs, trace):\n    return 0.0 if outputs is None else 1.0\n",
    "a function": "def score(output, expected):\n    return 1.0 if output == expected else 0.0\n",
    "main": "def main(completion, expected):\n    return {'score': 1.0 if completion == expected else 0.0}\n",
    "the legacy form": "def evaluate(app_params, inputs, output, correct_answer):\n    return float(output == 'a')\n",
    "decorated": "import functools\ndef d(f):\n    @functools.wraps(f)\n    def w(*a):\n        return f(*a)\n    return w\n"
    "@d\ndef evaluate(inputs, outputs, trace):\n    return float(outputs == 'a')\n",
}
FREE = {
    "reads no outputs": "def evaluate(inputs, outputs, trace):\n    return float(inputs['expected'] == inputs['reply'])\n",
    "gives them a value": "def evaluate(inputs, outputs, trace):\n    outputs = inputs['reply']\n    return float(outputs == inputs['expected'])\n",
    "takes the column": "def score(reply, expected):\n    return float(reply == expected)\n",
}
FEW = {"limit_samples": 2}
"""Configuration with few rows, for tests that only check whether a job is created."""
SUGGESTED = "no column is mapped to outputs; support has id, question, expected, reply; did you mean outputs=reply?"
ENVIRONMENT = {**os.environ, "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}


def records() -> list[dict[str, Any]]:
    return [{"id": n, "question": f"q{n}", "expected": f"a{n}", "reply": f"a{n % 250}"} for n in range(500)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    with Server(log=home / "log", data_dir=new_home(home), environment=FORKED) as running:
        with Client(running.url) as client:
            client.datasets.upload("support", records())
        stored = {"name": "exact", "code": READS["python"]}
        running.client.post("/v1/evaluators", json=stored).raise_for_status()
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "support.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records()))
    (tmp_path / "exact.py").write_text(READS["python"])
    return tmp_path


def problem(server: Server, path: str, **body: Any) -> tuple[int, str]:
    answer = server.client.post(path, json=body)
    return answer.status_code, answer.json().get("detail", "")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("code", [*READS.items(), *MORE.items()], ids=lambda code: code[0])
def test_a_job_is_refused_with_the_column_that_was_meant(server: Server, code: tuple[str, str]) -> None:
    evaluator = {"code": code[1], "language": code[0] if code[0] in READS else "python"}
    assert problem(server, "/v1/jobs", evaluators=[evaluator], dataset="support") == (422, SUGGESTED)
    made = {"evaluators": [evaluator], "dataset": "support", "mapping": {"outputs": "none"}, "config": FEW}
    assert problem(server, "/v1/jobs", **made)[0] == 202


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", FREE.values(), ids=FREE)
def test_code_that_reads_no_outputs_runs(server: Server, code: str) -> None:
    assert problem(server, "/v1/jobs", evaluators=[{"code": code}], dataset="support", config=FEW)[0] == 202


@pytest.mark.long
def test_estimates_schedules_and_rows_in_the_body_are_refused_too(server: Server) -> None:
    job = {"evaluators": ["exact"], "dataset": "support"}
    assert problem(server, "/v1/jobs/estimate", **job) == (422, SUGGESTED)
    assert problem(server, "/v1/schedules", name="weekly", cron="0 7 * * 1", job=job) == (422, SUGGESTED)
    inline = {"rows": records()}
    told = SUGGESTED.replace("support", "the data set")
    assert problem(server, "/v1/jobs", evaluators=["exact"], dataset=inline) == (422, told)
    inline["rows"][99]["outputs"] = "a"
    assert problem(server, "/v1/jobs", evaluators=["exact"], dataset=inline, config=FEW)[0] == 202


def test_a_column_that_is_not_there_is_answered_with_the_nearest(server: Server) -> None:
    job = {"evaluators": ["exact"], "dataset": "support"}
    for path, body in (
        ("/v1/jobs", job),
        ("/v1/jobs/estimate", job),
        ("/v1/schedules", {"name": "weekly", "cron": "0 7 * * 1", "job": {**job, "mapping": {"outputs": "repply"}}}),
    ):
        more = {} if "job" in body else {"mapping": {"outputs": "repply"}}
        found = problem(server, path, **body, **more)
        assert found == (422, "support has no column repply; did you mean reply?")


def test_the_host_suggests_the_whole_mapping(server: Server) -> None:
    code = (
        "def evaluate(inputs, outputs, trace):\n    return float(outputs == inputs['gold'] and inputs.get('id') == 1)\n"
    )
    answer = server.client.post(
        "/v1/jobs/mapping", json={"evaluators": [{"code": code}, "exact"], "dataset": "support"}
    )
    assert answer.json() == {
        "columns": ["id", "question", "expected", "reply"],
        "mapping": {"outputs": "reply", "inputs.gold": "expected"},
        "reads": [
            {"evaluator": "evaluator 1", "outputs": True, "inputs": ["gold", "id"]},
            {"evaluator": "exact@1", "outputs": True, "inputs": ["expected"]},
        ],
    }


def test_a_single_call_is_warned_about(server: Server) -> None:
    body = {"evaluator": {"code": READS["python"]}, "inputs": {"expected": "a"}}
    answer = server.client.post("/v1/evaluate", json=body).json()
    assert [one["code"] for one in answer["warnings"]] == ["missing_outputs"]


@pytest.mark.long
def test_a_column_of_outputs_that_is_empty_is_named_with_what_was_noted_of_its_file(
    folder: Path, server: Server
) -> None:
    book = packed(parts('<c r="A2"><v>1</v></c><c r="B2"><f>A2</f></c>'))
    (folder / "formula.xlsx").write_bytes(book)
    (folder / "empty.jsonl").write_text('{"expected": "a", "output": null}\n' * 2)
    for file, mapping, said in (
        ("formula.xlsx", ("--map", "outputs=b"), "the column b of formula.xlsx is empty in its row"),
        ("formula.xlsx", ("--map", "outputs=b"), "cell B2 has a formula whose value is not in the file"),
        ("empty.jsonl", (), "the column output of empty.jsonl is empty in all 2 rows"),
    ):
        ran = forked.run(("run", "exact.py", "--data", file, *mapping), cwd=folder, env=ENVIRONMENT, timeout=100)
        assert (ran.returncode, said in ran.stderr) == (2, True), ran.stderr
    with Client(server.url) as client:
        client.datasets.upload("formula", folder / "formula.xlsx")
    answer = server.client.post(
        "/v1/jobs", json={"evaluators": ["exact"], "dataset": "formula", "mapping": {"outputs": "b"}}
    ).json()
    assert answer["detail"] == "the column b of formula is empty in its row"
    assert "cell B2 has a formula" in answer["errors"][0]["hint"]


@pytest.mark.long
def test_commands_refuse_and_say_what_to_type(folder: Path, server: Server) -> None:
    def cli(*arguments: str) -> tuple[int, str]:
        ran = forked.run(arguments, cwd=folder, env=ENVIRONMENT, timeout=100)
        return ran.returncode, ran.stdout + ran.stderr

    for where in ((), ("--url", server.url)):
        code, printed = cli("run", "exact.py", "--data", "support.jsonl", *where)
        assert code == 2
        assert "support.jsonl has id, question, expected, reply; did you mean --map outputs=reply?" in printed
        assert "or, if the rows have no outputs, add --map outputs=none" in printed
    code, printed = cli("run", "exact.py", "--data", "support.jsonl", "--map", "outputs=reply", "--json")
    assert json.loads(printed)["mean"] == 0.5
    code, printed = cli("run", "exact.py", "--data", "support.jsonl", "--map", "outputs=repply")
    assert (code, "support.jsonl has no column repply; did you mean reply?" in printed) == (2, True)
    # the command fails, because the score is doubtful
    assert cli("run", "exact.py", "--data", "support.jsonl", "--map", "outputs=none", "--limit", "2")[0] == 1
    code, printed = cli("jobs", "create", "-e", "exact", "-d", "support", "--wait", "--url", server.url)
    assert (code, "did you mean outputs=reply?" in printed) == (2, True)
    assert "add --map outputs=reply, or --map outputs=none if the rows have no outputs" in printed
    mapped = ("--map", "outputs=reply")
    assert cli("jobs", "create", "-e", "exact", "-d", "support", "--wait", "--url", server.url, *mapped)[0] == 0


@pytest.mark.long
async def test_tools_of_agents_refuse(folder: Path) -> None:
    path = str(folder / "support.jsonl")
    async with tools() as client:
        assert "did you mean outputs=reply?" in await refused(client, "evaluate_file", code=READS["python"], path=path)
        mapping = {"outputs": "reply"}
        assert (await used(client, "evaluate_file", code=READS["python"], path=path, mapping=mapping))["mean"] == 1.0


BATCH = "the code reads outputs, but none of the 500 rows has outputs; the inputs have id, question, expected, reply; did you mean reply as outputs?"
ROWS = [{"inputs": one} for one in records()]
OBJECT = "export const exact = ({ output, expected }) => output === expected;"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("code", [*READS.items(), *MORE.items()], ids=lambda code: code[0])
def test_a_batch_is_refused_with_the_column_that_was_meant(server: Server, code: tuple[str, str]) -> None:
    evaluator = {"code": code[1], "language": code[0] if code[0] in READS else "python"}
    assert problem(server, "/v1/evaluate/batch", evaluator=evaluator, rows=ROWS) == (422, BATCH)
    for meant in ({"rows": ROWS[:2], "outputs": "none"}, {"rows": [*ROWS[:2], {"outputs": None}]}, {"rows": ROWS[:1]}):
        assert problem(server, "/v1/evaluate/batch", evaluator=evaluator, **meant)[0] == 200


@pytest.mark.long
def test_a_large_batch_is_refused_too(server: Server) -> None:
    rows = [{"inputs": {**one, "pad": "x" * 2000}} for one in records()]
    told = BATCH.replace("reply;", "reply, pad;")
    assert problem(server, "/v1/evaluate/batch", evaluator="exact", rows=rows) == (422, told)
    last = [*rows[:-1], {**rows[-1], "outputs": None}]
    assert problem(server, "/v1/evaluate/batch", evaluator="exact", rows=last)[0] == 200


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", FREE.values(), ids=FREE)
def test_a_batch_for_code_that_reads_no_outputs_runs(server: Server, code: str) -> None:
    assert problem(server, "/v1/evaluate/batch", evaluator={"code": code}, rows=ROWS[:2])[0] == 200


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "row"),
    [
        (MORE["main"], {"variables": {"completion": "a", "expected": "a"}}),
        (MORE["main"], {"inputs": {"completion": "a", "expected": "a"}}),
        (MORE["a function"], {"variables": {"output": "a", "expected": "a"}}),
        (READS["python"], {"messages": [{"role": "assistant", "content": "a"}], "inputs": {"expected": "a"}}),
        (OBJECT, {"inputs": {"input": "?", "output": "a", "expected": "a"}}),
    ],
)
def test_a_batch_whose_rows_have_the_outputs_elsewhere_runs(server: Server, code: str, row: dict[str, Any]) -> None:
    evaluator = {"code": code, "language": "javascript" if code is OBJECT else "python"}
    assert problem(server, "/v1/evaluate/batch", evaluator=evaluator, rows=[row, row])[0] == 200


def test_clients_and_pools_refuse_a_batch(server: Server) -> None:
    rows = [Row(one) for one in records()]
    with Client(server.url) as client, SandboxPool(max_sandboxes=1) as pool:
        for engine in (client, pool):
            with pytest.raises(InvalidRequest, match="did you mean reply as outputs"):
                engine.evaluate_batch(Evaluator(READS["python"]), rows)
            meant = engine.evaluate_batch(Evaluator(READS["python"]), rows[:2], outputs="none")
            assert (meant.summary.mean, meant.summary.doubt is None) == (0.0, False)


PYTEST = """
import json
from evaluator_host.integrations.pytest_plugin import evaluator_fixture
exact = evaluator_fixture("reads.py")
rows = [json.loads(line) for line in open("support.jsonl")]
def test_mean(exact): exact.assert_mean([{"inputs": row} for row in rows], at_least=0)
def test_mapped(exact): exact.assert_mean([{"inputs": row, "outputs": row["reply"]} for row in rows[:2]], at_least=1)
"""


@pytest.mark.long
def test_the_pytest_plugin_fails_the_test(folder: Path) -> None:
    (folder / "reads.py").write_text(READS["python"])
    code, printed = run_pytest(folder, test=PYTEST)
    assert code == 1
    assert (
        "none of the 500 rows has outputs; the inputs have id, question, expected, reply; did you mean reply as outputs?"
        in printed
    )
    assert "1 failed, 1 passed" in printed

"""A UiPath evaluator is stored on a host under a name, and used by jobs with criteria for each row and by the command
line.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language
from tests.dialects.uipath.evaluators import CUSTOM, PATTERN, PATTERN_SPAN, evaluator
from tests.integration.test_cli import inside
from tests.server import Server

pytestmark = pytest.mark.engine

LENGTHS = evaluator(
    """
    if not execution.agent_output:
        return ErrorEvaluationResult(error="no output")
    return BooleanEvaluationResult(score=len(execution.agent_output) >= len(criteria.text) + self.evaluator_config.more)
    """,
    config="more: int = 0",
)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as opened:
        yield opened


@pytest.mark.long
def test_a_kept_evaluator_scores_by_its_version_on_the_lock_it_was_kept_with(client: Client) -> None:
    made = client.evaluators.create("lengths", Evaluator(LENGTHS))
    assert (made.contract, made.evaluator.packages) == ("uipath", ())
    assert made.environment is not None
    assert {one.name for one in made.environment.packages if one.requested} == {"pydantic", "opentelemetry-sdk"}
    stricter = Evaluator(LENGTHS, settings=EvaluatorSettings(config={"more": 1}))
    assert client.evaluators.update("lengths", stricter).version == 2
    for name, passed in (("lengths@1", True), ("lengths", False)):
        result = client.evaluate(name, outputs="abc", criteria={"text": "abc"})
        assert (result.passed, result.environment.digest) == (passed, made.environment.digest)


@pytest.mark.long
def test_jobs_have_criteria_per_row_and_are_compared_like_any_other(client: Client) -> None:
    client.evaluators.create("compared", Evaluator(LENGTHS))
    client.evaluators.update("compared", Evaluator(LENGTHS, settings=EvaluatorSettings(config={"more": 1})))
    flat = [{"said": "abc", "wanted": {"text": text}} for text in ("ab", "abc", "abcd")]
    flat.append({"said": "", "wanted": {"text": ""}})
    mapping = {"outputs": "said", "criteria": "wanted"}
    client.datasets.upload("said", flat)
    first, second = (
        client.jobs.wait(client.jobs.create([f"compared@{version}"], "said", mapping=mapping).id) for version in (1, 2)
    )
    statistics = client.jobs.results(first.id).evaluators[0]
    assert (statistics.scored, statistics.failed, statistics.pass_rate) == (3, 1, pytest.approx(2 / 3))
    assert [(one.code, one.count) for one in statistics.errors] == [("user_exception", 1)]
    assert {row.index: row.result["score"] for row in client.jobs.rows(first.id)} == {0: 1.0, 1: 1.0, 2: 0.0, 3: None}
    (compared,) = client.jobs.compare(first.id, second.id)
    assert [change.row for change in compared.regressions] == [1]


@pytest.mark.long
def test_criteria_come_from_a_column_of_that_name(client: Client) -> None:
    rows = [{"outputs": "abc", "criteria": {"text": "ab"}}, {"outputs": "abc", "criteria": {"text": "abcd"}}]
    job = client.jobs.wait(client.jobs.create([Evaluator(LENGTHS)], rows).id)
    assert [row.result["passed"] for row in client.jobs.rows(job.id)] == [True, False]


def test_other_languages_have_no_such_contract(client: Client) -> None:
    code = "export function evaluate(inputs, outputs, trace) { return 1; }"
    with pytest.raises(InvalidRequest, match="is not valid") as refused:
        client.evaluate(Evaluator(code, language=Language.JAVASCRIPT, contract=Contract("uipath")))
    assert [problem.field for problem in refused.value.problems] == ["evaluator.contract"]


@pytest.mark.long
def test_the_command_line_takes_criteria_and_a_configuration(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "both.py").write_text(CUSTOM + PATTERN)
    (tmp_path / "config.json").write_text('{"caseSensitive": true}')

    def run(entry: str, *arguments: str) -> tuple[int, str, str]:
        options = ["--entry", entry, "--json", "--url", server.url, *arguments]
        return inside(tmp_path, ["run", "both.py", *options], monkeypatch, capsys)

    row = ("--outputs", '{"a": "One"}', "--criteria", '{"expectedValues": ["one"]}')
    told = [run("MyCustomEvaluator", "--config", config, *row)[1] for config in ("{}", "config.json")]
    assert [json.loads(text)["score"] for text in told] == [1.0, 0.0]
    pattern = (
        "--trace",
        json.dumps({"spans": [PATTERN_SPAN]}),
        "--criteria",
        '{"expectedOutput": ["alpha", "beta", "delta"]}',
    )
    assert json.loads(run("PatternComparisonEvaluator", *pattern)[1])["score"] == 0.5
    code, _, problem = run("MyCustomEvaluator", "--config", '{"a": ', *row)
    assert (code, "--config" in problem) == (2, True)


def test_check_tells_every_evaluator(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "both.py").write_text(CUSTOM + evaluator("return 1").replace("def get_evaluator_id", "def get_id"))
    _, told, _ = inside(tmp_path, ["check", "both.py", "--url", server.url], monkeypatch, capsys)
    assert "MyCustomEvaluator (MyCustomEvaluator)" in told
    assert "E: Error getting evaluator ID" in told


PYTEST = """
import pytest
from uipath.eval.models import AgentExecution
from mine import MyCustomEvaluator, MyEvaluationCriteria

@pytest.mark.asyncio
async def test_custom_evaluator() -> None:
    agent_execution = AgentExecution(agent_input={"query": "test"}, agent_output={"result": "Value1"}, agent_trace=[])
    config = {"name": "MyCustomEvaluator", "threshold": 0.8, "case_sensitive": False}
    evaluator = MyCustomEvaluator(id="test-evaluator", config=config)
    result = await evaluator.evaluate(agent_execution, MyEvaluationCriteria(expected_values=["value1"]))
    assert result.score == 1.0
    assert result.evaluation_time > 0
    assert (evaluator.id, evaluator.config["threshold"], evaluator.evaluator_type_id) == ("test-evaluator", 0.8, "MyCustomEvaluator")
    failed = await evaluator.evaluate(agent_execution, None)
    assert (failed.score, failed.score_type, failed.details.split(":")[0]) == (0.0, 2, "Exception thrown by evaluator")
"""


@pytest.mark.long
def test_evaluators_are_tested_in_ones_own_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CUSTOM)
    (tmp_path / "test_mine.py").write_text(PYTEST)
    plugins = [
        part for name in ("evaluator_host.vendors.uipath.local", "pytest_asyncio.plugin") for part in ("-p", name)
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr

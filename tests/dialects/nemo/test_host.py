"""A NeMo Evaluator metric is stored on a host under a name, and a job runs it over a data set. The rows and statistics
are the same as NeMo's.
"""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.platform.jobs.row_source import CHUNK_ROWS
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Isolation, Language, Row
from tests.dialects.nemo.metrics import EXPRESSIONS, RESULT, ROWS, returning
from tests.server import FORKED, Server

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    log: Path = tmp_path_factory.mktemp("server") / "log"
    with Server(log=log, environment=FORKED) as server, Client(server.url) as opened:
        yield opened


def test_a_kept_metric_remembers_the_lock_of_what_it_needs(client: Client) -> None:
    settings = EvaluatorSettings(score_output="correct_value")
    made = client.evaluators.create("expressions", Evaluator(EXPRESSIONS, settings=settings))
    assert (made.contract, made.evaluator.packages) == ("nemo", ())
    assert made.environment is not None
    assert {one.name for one in made.environment.packages if one.requested} == {"pydantic", "jinja2"}

    result = client.evaluate("expressions@1", inputs={"expected": 55}, outputs="(12 * 4) + 7")
    assert (result.score, result.passed) == (1.0, True)
    assert result.environment.digest == made.environment.digest
    assert result.evaluator.digest == made.digest


@pytest.mark.long
def test_rows_of_a_job_know_their_place_in_the_data_set(client: Client) -> None:
    code = returning("metric_input.row.row_index", 'MetricOutputSpec.discrete_score("p")')
    count = CHUNK_ROWS + 3
    rows, mapping = [{"n": n} for n in range(count)], {"outputs": "none"}
    job = client.jobs.create([Evaluator(code)], rows, mapping=mapping, isolation=Isolation.BATCH)
    client.jobs.wait(job.id)
    found = client.jobs.results(job.id).evaluators[0].metrics[0]
    assert (found.count, found.max, found.sum) == (count, count - 1, count * (count - 1) / 2)


def test_other_languages_have_no_such_contract(client: Client) -> None:
    code = "export function evaluate(inputs, outputs, trace) { return 1; }"
    with pytest.raises(InvalidRequest) as refused:
        client.evaluate(Evaluator(code, language=Language.JAVASCRIPT, contract=Contract("nemo")))
    assert [problem.field for problem in refused.value.problems] == ["evaluator.contract"]


def test_a_batch_says_what_its_rows_have_together(client: Client) -> None:
    code = 'from nemo_evaluator_sdk import BLEUMetric\nm = BLEUMetric(references=["{{r}}"])'
    batch = client.evaluate_batch(Evaluator(code), [Row({"r": text}, text) for text in ("a b c d e", "f g h i")])
    assert batch.together is not None
    assert batch.together.metrics == {"corpus": pytest.approx(100.0)}
    assert client.evaluate_batch(Evaluator(EXPRESSIONS), [Row({"expected": 1}, "1")]).together is None


def test_a_job_has_the_statistics_of_the_documented_evaluation(client: Client) -> None:
    job = client.jobs.create([Evaluator(EXPRESSIONS)], ROWS, mapping={"outputs": "model_expression"})
    job = client.jobs.wait(job.id)
    assert (job.progress.done, job.progress.failed) == (4, 0)

    statistics = {one.name: one for one in client.jobs.results(job.id).evaluators[0].metrics}
    for golden in RESULT["aggregate_scores"]["scores"]:
        found = asdict(statistics[golden["name"].partition(".")[2]])
        same = ("count", "nan_count", "sum", "mean", "min", "max", "std_dev", "variance")
        assert {name: found[name] for name in same} == pytest.approx({name: golden[name] for name in same})
        assert golden["percentiles"].items() <= found["percentiles"].items()
        assert [one["count"] for one in found["histogram"]] == [one["count"] for one in golden["histogram"]["bins"]]
    rows = {row.index: row.result["value"]["outputs"] for row in client.jobs.rows(job.id)}
    assert rows == {
        one["row_index"]: one["metrics"]["arithmetic-expression-correctness"] for one in RESULT["row_scores"]
    }

"""Judges without code are stored, versioned, run and counted like other evaluators. Their agreement with people and
their costs can be computed.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.platform.jobs.results.agreement import LabelledRows, agreement, judged_as
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, ModelBudget, Replay
from evaluator_host.types.groups import value_in
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.numbers import wilson
from evaluator_host.types.results import Agreement, AgreementCell
from tests.model_server import ModelServer
from tests.models.conftest import KEY
from tests.models.judges import ONE
from tests.models.test_host import command
from tests.server import Server, new_home

engine = [pytest.mark.engine, pytest.mark.timeout(200)]
FORM = {
    "model": "judge",
    "prompt": "Question: {{ inputs.question }}\nAnswer:\n{{ outputs }}",
    "system": "You are strict.",
    "labels": [
        {"label": "polite", "score": 1, "description": "kind words"},
        {"label": "rude", "score": 0},
    ],
    "examples": [
        {"inputs": {"question": "{{ 7 * 7 }}"}, "outputs": "Go away.", "answer": "rude", "reason": "an order"}
    ],
}
ROWS = [
    {"question": "hello", "answer": text, "human": human}
    for text, human in [
        ("polite a", "polite"),
        ("polite b", "rude"),
        ("rude c", "rude"),
        ("rude d", "rude"),
        ("polite e", "polite"),
    ]
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("judges"))


@pytest.fixture(scope="module")
def host(home: Path, provider: ModelServer) -> Iterator[Server]:
    models = {
        "judge": {"base_url": provider.url, "model": "real", "key": KEY, "input_price": 1000, "output_price": 2000},
        "claude": {"base_url": provider.url, "kind": "anthropic", "model": "real", "key": KEY},
    }
    environment = {
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'evaluator-host.db'}",
        "EVALUATOR_HOST_MODELS": json.dumps(models),
    }
    with Server(data_dir=home, log=home.parent / "log", environment=environment) as running:
        yield running


class TestOnAHost:
    pytestmark = engine

    def test_a_judge_is_stored_scored_and_compared_with_people(
        self, host: Server, provider: ModelServer, tmp_path: Path
    ) -> None:
        file = tmp_path / "polite.json"
        file.write_text(json.dumps(FORM))
        assert "polite" in command(host, "evaluators", "create", "polite", str(file), "--judge", "--threshold", "0.5")
        with Client(host.url) as client:
            kept = client.evaluators.get("polite")
            assert kept.contract is Contract.JUDGE
            assert kept.evaluator.judge is not None
            assert (kept.evaluator.models, kept.evaluator.judge["model"]) == (("judge",), "judge")
            result = client.evaluate("polite", inputs={"question": "hello"}, outputs="that is rude")
            assert (result.score, result.label, result.passed, result.reason) == (
                0,
                "rude",
                False,
                "said of that is rude",
            )
            assert result.usage is not None
            assert (result.usage.requests, result.usage.cost is not None) == (1, True)
            sent = provider.bodies[-1]
            roles = [one["role"] for one in sent["messages"]]
            assert roles == ["system", "user", "assistant", "user"]
            assert "You are strict." in sent["messages"][0]["content"]
            assert sent["messages"][1]["content"] == "Question: {{ 7 * 7 }}\nAnswer:\nGo away."
            assert json.loads(sent["messages"][2]["content"]) == {"reason": "an order", "score": "rude"}
            assert sent["messages"][3]["content"] == "Question: hello\nAnswer:\nthat is rude"
            assert (sent["model"], sent["temperature"]) == ("real", 0)
            assert sent["response_format"]["type"] == "json_schema"
            again = client.evaluators.update("polite", kept.evaluator)
            assert again.version == 1

            options = {"mapping": {"outputs": "answer"}, "replay": Replay.PREFER}
            estimate = client.jobs.estimate(["polite"], ROWS, budget=ModelBudget(requests=2), rows=2, **options)
            assert (estimate.rows, estimate.sampled, estimate.failed, estimate.usage.requests) == (5, 2, 0, 5)
            assert estimate.over == ("the job may call models 2 times, but would call them about 5 times",)
            part = client.jobs.estimate(["polite"], ROWS, rows=2, shard="1/2", **options)
            # the sample is taken from all rows, but the total counts only rows of the shard
            assert (part.rows, part.sampled) == (2, 2)
            again = client.jobs.estimate(["polite"], ROWS, rows=2, **options)
            assert (again.sample.requests, again.sample.replayed) == (0, 2)
            assert replace(again.usage, wait_ms=0) == replace(estimate.usage, wait_ms=0)
            assert again.usage.cost == pytest.approx(2.5 * (estimate.sample.cost or 0))
            assert client.jobs.all() == []
            job = client.jobs.wait(client.jobs.create(["polite"], ROWS, **options).id)
            assert job.status is JobStatus.COMPLETED
            usage = client.jobs.results(job.id).evaluators[0].usage
            assert usage is not None
            # three requests; the estimate had already recorded two of them
            assert (usage.requests, usage.replayed) == (3, 2)
            found = client.jobs.agreement(job.id, label="human")[0]
            assert (found.rows, found.unlabelled, found.accuracy) == (5, 0, 0.8)
            assert found.kappa == pytest.approx(0.6153846)
            assert [(one.human, one.judged, one.rows) for one in found.confusion] == [
                ("polite", "polite", 2), ("rude", "polite", 1), ("rude", "rude", 2)
            ]  # fmt: skip
            with pytest.raises(InvalidRequest, match="no row has both a label in"):
                client.jobs.agreement(job.id, label="nobody")
        shown = command(host, "jobs", "agreement", job.id, "--label", "human")
        assert "accuracy 0.800" in shown
        assert "kappa 0.615" in shown

    def test_a_judge_asks_on_a_scale_and_of_anthropic(self, host: Server, provider: ModelServer) -> None:
        with Client(host.url) as client:
            form = {"model": "judge", "prompt": "Rate:\n{{ outputs }}", "scale": {"min": 1, "max": 5}}
            judge = Evaluator("", judge=form)
            assert client.evaluate(judge, outputs="it is 4 of 5").score == 4
            outside = client.evaluate(judge, outputs="it is 9 of 5")
            assert outside.error is not None
            assert "no score (1 to 5)" in outside.error.message
            plain = Evaluator("", judge={**form, "model": "claude"})
            said = client.evaluate(plain, outputs="hello")  # this model answers in prose instead of JSON
            assert said.error is not None
            assert "answer to Rate" in said.error.message
            assert provider.bodies[-1]["max_tokens"] == 1024
            assert "JSON object of this schema" in provider.bodies[-1]["system"]
            over = Evaluator("", judge=form, budget=ModelBudget(requests=0))
            result = client.evaluate(over, outputs="it is 4 of 5")
            assert result.error is not None
            assert result.error.code == "budget_exceeded"
            for wrong in (
                {**form, "labels": FORM["labels"]},
                {**form, "scale": {"min": 2, "max": 1}},
                {"model": "judge"},
            ):
                with pytest.raises(InvalidRequest):
                    client.evaluate(Evaluator("", judge=wrong), outputs="x")

    @pytest.mark.long
    def test_a_job_with_code_is_estimated_on_the_command_line(self, host: Server, tmp_path: Path) -> None:
        with Client(host.url) as client:
            client.evaluators.create("asks", Evaluator(ONE, models=("judge",)))
            client.datasets.upload("texts", [{"answer": f"text {n}"} for n in range(40)])
        options = ("--map", "outputs=answer", "--dry-run", "--sample", "2")
        shown = command(host, "jobs", "create", "--dataset", "texts", "--evaluator", "asks", *options)
        assert "40 results would use 40 requests" in shown
        shown = command(
            host,
            "jobs",
            "create",
            "--dataset",
            "texts",
            "--evaluator",
            "asks",
            *options,
            "--budget-requests",
            "10",
            code=1,
        )
        assert "budget_exceeded: the job may call models 10 times" in shown


def test_whole_documents_are_not_labels() -> None:
    labelled, result = LabelledRows(), {"status": "scored", "label": "good", "score": 1.0, "passed": None}
    for row, (human, label) in enumerate(
        [("good", "good"), ("x" * 201, "good"), ("good", "x" * 201), ("x" * 201, None)]
    ):
        labelled.add(row, human, {**result, "label": label})
    assert (labelled.pairs, labelled.incomparable) == ({("good", "good"): 1}, 3)


def test_agreement_is_counted_by_class() -> None:
    # from Cohen 1960, table 1: kappa is .492 for 200 cases
    table = {("1", "1"): 88, ("1", "2"): 14, ("1", "3"): 18, ("2", "1"): 10, ("2", "2"): 40, ("2", "3"): 10}
    table |= {("3", "1"): 2, ("3", "2"): 6, ("3", "3"): 12}
    found = agreement("e", "human", LabelledRows(Counter(table), unlabelled=3))
    assert (found.rows, found.unlabelled, found.accuracy) == (200, 3, 0.7)
    assert found.kappa == pytest.approx(0.492, abs=5e-4)
    assert found.kappa_interval == pytest.approx((0.378, 0.592), abs=1e-3)
    assert found.weighted_kappa is not None
    assert [one.recall for one in found.classes] == pytest.approx([88 / 120, 40 / 60, 12 / 20])
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(0, 0) is None
    assert {(wilson(0, n) or ())[0] for n in range(1, 200)} == {0.0}
    assert {(wilson(n, n) or ())[1] for n in range(1, 200)} == {1.0}
    few = agreement("e", "h", LabelledRows(Counter({("1", "1"): 2, ("0", "0"): 1})))
    assert (few.kappa, few.accuracy_interval) == (1.0, pytest.approx((0.4385, 1.0), abs=1e-4))
    assert few.kappa_interval == pytest.approx((-0.2634, 1.0), abs=1e-4), "three rows tell little, even if all agree"
    for pairs, who in (
        ({("1", "1"): 5}, "the evaluator and people"),
        ({("1", "1"): 4, ("0", "1"): 1}, "the evaluator"),
        ({("1", "1"): 4, ("1", "0"): 1}, "people"),
    ):
        one = agreement("e", "h", LabelledRows(Counter(pairs)))
        assert (one.kappa, one.kappa_interval, one.weighted_kappa) == (None, None, None)
        assert one.note == f"{who} gave the same verdict on all rows, so there is no kappa"
    with pytest.raises(InvalidRequest, match="over 50 different labels"):
        agreement("e", "h", LabelledRows(Counter({(str(n), str(n)): 1 for n in range(60)})))


def test_each_row_that_agreement_leaves_out_has_a_reason() -> None:
    scored: dict[str, Any] = {"status": "scored", "score": 1.0, "label": None, "passed": None}
    rows = LabelledRows()
    for row, (human, result) in enumerate(
        (
            *((True, scored), (None, scored), ("", scored), (" ", None), (None, None)),
            *((True, {"status": "failed"}), (False, {"status": "skipped"}), (1, None), ("good", scored), ([1], scored)),
        )
    ):
        rows.add(row, human, result)
    found = agreement("e", "human", rows)
    assert (found.rows, found.accuracy) == (1, 1.0)
    assert found.left_out == (
        "4 rows without a label, 1 labelled row that failed, 1 labelled row that the evaluator skipped, "
        "1 labelled row without a result, 2 labelled rows with a result that cannot be compared with the label"
    )
    assert found.confusion == (AgreementCell("true", "true", 1, (0,)),)
    none = agreement("e", "human", LabelledRows())
    assert (none.rows, none.accuracy, none.kappa, none.weighted_kappa, none.left_out) == (0, None, None, None, "")


def test_labels_are_one_class_only_if_they_are_equal_numbers() -> None:
    rows = LabelledRows()
    for row, label in enumerate(("1_2", "12", "12.0", "1_2")):
        rows.add(row, label, {"status": "scored", "score": None, "label": "12", "passed": None})
    found = agreement("e", "human", rows)
    assert (found.rows, found.accuracy, [one.name for one in found.classes]) == (4, 0.5, ["12", "1_2"])


def test_the_first_rows_of_a_difference_are_named() -> None:
    rows = LabelledRows()
    for row in range(20):
        rows.add(row, row % 2 == 0, {"status": "scored", "score": 1.0, "label": None, "passed": True})
    assert agreement("e", "human", rows).confusion == (
        AgreementCell("false", "true", 10, (1, 3, 5, 7, 9)),
        AgreementCell("true", "true", 10, (0, 2, 4, 6, 8)),
    )


def test_rows_have_classes() -> None:
    assert value_in({"inputs": {"a": {"b": 1}}}, "a.b") == 1
    assert value_in({"a.b": 2, "a": {"b": 1}}, "a.b") == 2
    assert value_in(None, "a") is None
    result = {"score": 0.75, "label": None, "passed": None}
    assert judged_as(True, result) == ("true", "true")
    assert judged_as(True, {**result, "score": 0.7 - 0.2}) == ("true", "true")
    assert judged_as(1, result) == ("1", "0.75")
    assert judged_as("good", {**result, "label": "bad"}) == ("good", "bad")
    assert judged_as(None, result) is None
    assert judged_as("good", result) is None  # a score cannot be compared with a choice
    assert judged_as("1", result) == ("1", "0.75")


@pytest.mark.parametrize(
    ("human", "result", "classes"),
    [
        ("1.0", {"score": 1}, ("1", "1")),  # pandas writes integers in this form if a column has gaps
        ("01", {"score": 1.0}, ("1", "1")),
        ("1,0", {"score": 1}, None),
        ("nan", {"score": 1}, None),
        ("TRUE", {"score": 0.9}, ("true", "true")),
        ("no", {"score": 0.9, "passed": False}, ("false", "false")),
        ("Pass", {"score": None}, None),
        ("3.0", {"label": "3", "score": 0.5}, ("3", "3")),
        ("Good ", {"label": "good"}, ("good", "good")),
        ("re\u0301ussi", {"label": "r\xe9ussi"}, ("r\xe9ussi", "r\xe9ussi")),
        ("yes", {"label": "no", "passed": True}, ("yes", "no")),
    ],
)
def test_labels_that_mean_the_same_are_one_class(
    human: str, result: dict[str, Any], classes: tuple[str, str] | None
) -> None:
    labelled = LabelledRows()
    labelled.add(0, human, {"status": "scored", "score": None, **result})
    assert list(labelled.pairs) == ([classes] if classes else [])
    assert judged_as(3, {**result, "score": None}) is None


@pytest.mark.parametrize(("good", "bad"), [("Good", "Bad"), ("2.0", "3.0")])
def test_a_class_of_people_has_one_name_wherever_the_evaluator_disagrees(good: str, bad: str) -> None:
    labelled = LabelledRows()
    for row in range(20):
        human, other = (good, bad) if row < 10 else (bad, good)
        said = (human if row % 10 < 6 else other).lower().removesuffix(".0")
        labelled.add(row, human, {"status": "scored", "score": 1.0, "label": said})
    found = agreement("e", "human", labelled)
    assert (found.rows, found.accuracy, found.kappa) == (20, 0.6, pytest.approx(0.2))
    assert [(one.human, one.judged, one.recall) for one in found.classes] == [(10, 10, 0.6)] * 2


def test_labels_with_huge_numbers_are_compared_or_left_out() -> None:
    labelled = LabelledRows()
    for row, human in enumerate((1e200, -1e308, 1, 10**400, -(10**400), float("inf"), "1e400")):
        score = float(row % 2 == 0)
        labelled.add(row, human, {"status": "scored", "score": score, "label": None, "passed": None})
    found = agreement("e", "human", labelled)
    assert (found.rows, found.incomparable) == (3, 4)
    assert found.weighted_kappa == pytest.approx(0.0)


def of_pairs(*pairs: tuple[Any, Any], **more: Any) -> Agreement:
    labelled = LabelledRows()
    for row, (human, score) in enumerate(pairs):
        labelled.add(row, human, {"status": "scored", "score": score, **more})
    return agreement("e", "human", labelled)


def test_large_numbers_agree_only_if_all_their_digits_do() -> None:
    assert of_pairs((1000001, 1000002), (1000001, 1000001), (12345678.5, 12345678.5)).accuracy == pytest.approx(2 / 3)
    assert of_pairs((0.333333, 1 / 3)).accuracy == 1  # on the pages, people can choose a score with six digits


def test_labels_of_another_kind_than_the_results_are_reported() -> None:
    assert of_pairs((1, 0.9), ("0", 0.2), (1, 1)).note == (
        "people's labels are only 0 and 1, but 2 scores are neither 0 nor 1; to compare labels with the verdict, "
        "use labels such as yes and no"
    )
    assert of_pairs((1, 1), (0, 1), (0, 0)).note is None
    assert of_pairs((4, 0.8), (5, 1)).note == (
        "people's labels (4, 5) and the evaluator's (0.8, 1) have none in common, so no row can agree"
    )
    assert of_pairs(("pass", 1), ("fail", 1), label="ok", passed=True).note == (
        "people's labels (pass, fail) and the evaluator's (ok) have none in common, so no row can agree; "
        "the evaluator gave the same verdict on all rows, so there is no kappa"
    )


def test_a_score_that_decides_without_a_verdict_is_reported() -> None:
    labelled = LabelledRows()
    for row, (human, result) in enumerate(
        [("yes", {"score": 0.7}), ("no", {"score": 0.2}), ("yes", {"score": 1, "passed": True}), ("1", {"score": 1})]
    ):
        labelled.add(row, human, {"status": "scored", **result})
    found = agreement("fuzzy@1", "human", labelled)
    assert found.rows == 4
    assert found.note is not None
    assert found.note.startswith("2 rows have no verdict, so a score of at least 0.5 counts as passed")
    assert agreement("exact@1", "human", LabelledRows(labelled.pairs)).note is None


@pytest.mark.parametrize(
    ("given", "passing"),
    [
        ({}, 0.5),
        ({"threshold": 0.8}, 0.8),
        ({"judge": {"scale": {"min": 1, "max": 5}, "labels": []}}, 3),
        ({"judge": {"scale": None, "labels": [{"label": "bad", "score": 0}, {"label": "good", "score": 4}]}}, 2),
        ({"judge": {"scale": {"min": 1, "max": 5}}, "threshold": 4}, 4),
    ],
)
def test_without_a_verdict_scores_from_the_middle_of_the_scale_pass(given: dict[str, Any], passing: float) -> None:
    evaluator = Evaluator("", **given)
    assert evaluator.passing_score == passing
    labelled = LabelledRows(passing=evaluator.passing_score)
    labelled.add(0, "no", {"status": "scored", "score": passing - 0.1})
    labelled.add(1, "yes", {"status": "scored", "score": passing})
    found = agreement("judge@1", "human", labelled)
    assert (found.accuracy, f"a score of at least {passing:g} counts as passed" in str(found.note)) == (1, True)

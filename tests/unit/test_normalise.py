"""The host derives the right result from a runner's report, for each returned value and contract. No evaluator runs
here.
"""

import json
import time
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.engine.service.row_io import normalise
from evaluator_host.engine.service.source import clean
from evaluator_host.types.evaluator import Contract, Evaluator, Language
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Failed, Kind, Logs, Note, Returned, Status
from tests.unit.normalising import ALL, EVALUATE, MAIN, PY, V1, codes, info, refusal, result, returned


@pytest.mark.parametrize("value", [0.7, 1, 0, 1.0, 5e-324])
def test_number(value: float) -> None:
    for language, contract in product(Language, ALL):
        found = result(value, contract, language)
        assert (found.status, found.score, found.passed) == (Status.SCORED, value, None), (language, contract)
        assert found.metrics == {"score": value}
        assert found.value == value
        assert codes(found) == (["bare_score"] if contract is MAIN else [])


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ({"accuracy": 0.25, "result": {"success": True, "stdout": "x"}}, 0.25),
        ({"f1": 0.5, "evaluation": {"score": 5, "scale": 5}}, 0.5),
        ({"similarity": 0.8, "grade": {"pass": False}}, 0.8),
        ({"accuracy": 0.7, "result": {"status": "fail"}}, 0.7),
        ({"right": 7, "wrong": 3, "result": {"status": "pass"}}, None),
        ({"precision": 0.5, "recall": 0.25, "verdict": {"pass": True}}, None),
    ],
)
def test_a_result_inside_an_object_does_not_replace_its_numbers(value: dict[str, Any], score: float | None) -> None:
    assert result(value, Contract.FUNCTION).score == score


@pytest.mark.parametrize(
    ("value", "score", "metrics"),
    [
        ({"correct": True, "relevant": False, "grounded": True}, 1.0, {"score": 1.0, "relevant": 0.0, "grounded": 1.0}),
        ({"relevant": True, "faithful": False}, None, {"relevant": 1.0, "faithful": 0.0}),
        ({"relevant": True, "concise": False}, None, {"relevant": 1.0, "concise": 0.0}),
        ({"relevant": False, "why": "x"}, 0.0, {"score": 0.0}),
    ],
)
def test_one_of_several_bools_is_not_a_weak_verdict(
    value: dict[str, Any], score: float | None, metrics: dict[str, float]
) -> None:
    found = result(value)
    assert (found.score, found.metrics, "verdicts_disagree" in codes(found)) == (score, metrics, False)


@pytest.mark.parametrize("contract", ALL)
@pytest.mark.parametrize("value", [True, False])
def test_bool(value: bool, contract: Contract) -> None:
    found = result(value, contract, threshold=0.5)
    assert (found.score, found.passed) == (float(value), value)
    assert found.metrics == {"score": float(value)}
    assert found.value is value


@pytest.mark.parametrize("contract", ALL)
@pytest.mark.parametrize(("value", "score", "passed"), [([0.7, "close"], 0.7, None), ([True, "yes"], 1.0, True)])
def test_a_score_and_its_reason(value: list[Any], score: float, passed: bool | None, contract: Contract) -> None:
    found = result(value, contract)
    assert (found.status, found.score, found.passed, found.reason) == (Status.SCORED, score, passed, value[1])
    assert found.metrics == {"score": score}
    for other in (["close", 0.7], [0.7, 0.7], [0.7], [0.7, "a", "b"], [None, "a"], [[0.7, "a"]]):
        assert refusal(returned(other), contract).code is ErrorCode.INVALID_RESULT


@pytest.mark.parametrize("contract", ALL)
def test_object_with_score(contract: Contract) -> None:
    value = {
        "score": 0.7,
        "x": 1,
        "ok": True,
        "reason": "close",
        "m": {"a": 0.5, "deep": {"b": False}},
        "l": [9],
        "t": "text",
    }
    found = result(value, contract)
    assert (found.score, found.passed, found.reason, found.label) == (0.7, None, "close", None)
    assert found.metrics == {"score": 0.7, "x": 1, "ok": 1.0, "m.a": 0.5, "m.deep.b": 0.0}
    assert not isinstance(found.metrics["ok"], bool)
    assert found.value == value
    assert codes(found) == []


@pytest.mark.parametrize("contract", ALL)
def test_bool_and_text_scores(contract: Contract) -> None:
    found = result({"score": True}, contract)
    assert (found.score, found.passed) == (1.0, True)
    found = result({"score": " 0.7\n"}, contract)
    assert (found.score, found.passed, codes(found)) == (0.7, None, ["coerced"])


@pytest.mark.parametrize("key", ["passed", "success", "pass"])
def test_explicit_pass(key: str) -> None:
    assert result({"score": 0.9, key: False}, threshold=0.1).passed is False
    assert result({"score": True, key: False}).passed is False
    for contract in (EVALUATE, V1):
        found = result({key: True}, contract)
        assert (found.score, found.passed, found.metrics, codes(found)) == (1.0, True, {"score": 1.0}, [])
    assert refusal({key: True}, MAIN).code is ErrorCode.INVALID_RESULT
    found = result({key: 1})
    assert (found.score, found.passed, found.metrics, codes(found)) == (1.0, True, {"score": 1.0}, ["coerced"])


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (0, False), (1, True), (0.0, False), (1.0, True), ("false", False), ("FAILED", False), (" No ", False),
        ("0", False), ("n", False), ("True", True), ("yes", True), ("PASS", True), ("ok", True), ("1", True),
    ],
)  # fmt: skip
def test_a_verdict_that_is_not_a_bool_is_read_with_a_warning(given: Any, passed: bool) -> None:
    for key in ("passed", "success", "pass"):
        found = result({"score": 0.9 if not passed else 0.1, key: given, "a": 2}, threshold=0.5)
        assert (found.status, found.passed, codes(found)) == (Status.SCORED, passed, ["coerced"])
        assert found.metrics == {"score": found.score, "a": 2}
        assert found.warnings[0].message.startswith(f"`{key}` is ")
        assert found.value[key] == given


@pytest.mark.parametrize("given", ["maybe", "", "none", "x" * 5000, 2, -1, 0.83, [], [True], {}, {"a": True}])
def test_a_verdict_without_a_meaning_is_refused(given: Any) -> None:
    for language in Language:
        error = refusal({"score": 0.9, "passed": given}, EVALUATE, language)
        assert error.code is ErrorCode.INVALID_RESULT
        assert error.message.endswith("which means neither passed nor failed")
        assert ("True or False" if language is PY else "true or false") in str(error.hint)
        assert len(error.message) < 200


@pytest.mark.parametrize(
    ("value", "score", "passed"),
    [
        ({"passed": 2, "total": 3}, 2 / 3, None),
        ({"passed": 1, "total": 4, "failures": ["a"]}, 0.25, None),
        ({"passed": 0, "total": 4}, 0, None),
        ({"passed": 4, "total": 4}, 1, None),
        ({"passed": True, "total": 4}, 1, True),
        ({"passed": 1, "total": 4, "success": True}, 1, True),
        ({"passed": 1, "total": 4, "score": 0.5}, 0.5, None),
        ({"passed": 2, "total": 4, "score": 0.5}, 0.5, None),
        ({"passed": 1, "failed": 2}, 1 / 3, None),
        ({"passed": 5, "failed": 0}, 1, None),
        ({"passed": True, "failed": 2}, 1, True),
        ({"passed": 0, "failed": 0}, 0, False),
        ({"passed": 1, "total": 0}, 1, True),
        ({"passed": 1, "total": 4.5}, 1, True),
        ([{"name": "a", "passed": 1, "total": 4}, {"name": "b", "score": 1}], 0.625, None),
    ],
)
def test_counts_of_passed_checks_are_a_share(value: Any, score: float, passed: bool | None) -> None:
    found = result(value)
    assert (found.score, found.passed if passed is not None else None) == (score, passed)


def test_a_share_of_passed_checks_is_reported() -> None:
    assert [one.message for one in result({"passed": 1, "total": 4}).warnings] == [
        "the score is the fraction of the checks that passed: 1 of 4"
    ]
    assert refusal({"passed": 6, "total": 4}, EVALUATE, PY).message.startswith("`passed` is 6, which means neither")


@pytest.mark.parametrize("key", ["passed", "success", "ok", "correct"])
def test_beside_a_score_of_none_a_verdict_counts_as_alone(key: str) -> None:
    with_none, alone = result({key: True, "score": None}), result({key: True})
    assert (with_none.score, with_none.passed) == (alone.score, alone.passed) == (1.0, True)


def test_a_verdict_of_none_is_none() -> None:
    assert result({"score": 0.9, "passed": None}, threshold=0.5).passed is True
    found = result({"score": 0.9, "passed": None, "success": "no"}, threshold=0.5)
    assert (found.passed, codes(found)) == (False, ["coerced"])


def test_a_number_beside_a_clear_verdict_is_a_metric() -> None:
    found = result({"score": 0.9, "passed": True, "success": 0.83, "pass": 12})
    assert (found.passed, found.metrics, codes(found)) == (True, {"score": 0.9, "success": 0.83, "pass": 12}, [])


def test_the_first_explicit_pass_wins() -> None:
    assert result({"score": 1, "pass": False, "success": False, "passed": True}).passed is True


@pytest.mark.parametrize(
    ("value", "passed", "said"),
    [
        ({"score": 0.3, "passed": True, "success": False}, True, "`passed` is True and `success` is False"),
        ({"score": 0.3, "success": "no", "pass": 1}, False, "`success` is False and `pass` is True"),
        ({"score": True, "pass": False}, False, "`pass` is False and `score` is True"),
        ({"score": False, "passed": "yes"}, True, "`passed` is True and `score` is False"),
    ],
)
def test_two_verdicts_that_disagree_are_reported(value: dict[str, Any], passed: bool, said: str) -> None:
    found = result(value)
    (note,) = (one for one in found.warnings if one.code == "verdicts_disagree")
    assert (found.passed, said in note.message) == (passed, True)
    agreeing = {key: passed for key in value if key != "score"}
    assert codes(result({"score": passed, **agreeing})) == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["too short", "no source"], "too short; no source"),
        (["a", 1], '["a", 1]'),
        (3, "3"),
        (False, "false"),
        ({"why": ["é"]}, '{"why": ["é"]}'),
        ([{"a": 1}], '[{"a": 1}]'),
        ([], None),
        ({}, None),
        (None, None),
        ("", ""),
    ],
)
def test_a_reason_of_any_type_is_text(given: Any, reason: str | None) -> None:
    for key, contract in product(("reason", "explanation", "comment", "log"), ALL):
        found = result({"score": 0.2, key: given}, contract)
        assert (found.reason, found.metrics, codes(found)) == (reason, {"score": 0.2}, []), (key, contract)
        assert found.value == {"score": 0.2, key: given}


@pytest.mark.parametrize("contract", [EVALUATE, V1])
@pytest.mark.parametrize(("language", "null"), [(PY, "None"), (Language.TYPESCRIPT, "null")])
def test_a_score_of_none_skips_the_row(contract: Contract, language: Language, null: str) -> None:
    found = result({"score": None, "reason": "no gold"}, contract, language)
    assert (found.status, found.score, found.reason, codes(found)) == (Status.SKIPPED, None, "no gold", ["no_score"])
    assert found.warnings[0].message.startswith(f"the score is {null}, so the row is skipped")
    for more in ({"label": "good"}, {"precision": 0.5}):
        kept = result({"score": None, **more}, contract, language)
        assert (kept.status, kept.score, codes(kept)) == (Status.SCORED, None, ["no_score"])
        assert kept.warnings[0].text == f"the score is {null}; return a number, or a dict with `score`"
    assert result({"score": None, "passed": False}, contract, language).score == 0.0
    error = refusal({"score": None}, MAIN, language)
    assert error.message.startswith(f"the score is {null}; main must return")


@pytest.mark.parametrize("score", [1.0000000000000002, -4e-17, 1 + 1e-10, -1e-9])
def test_rounding_is_not_out_of_range(score: float) -> None:
    found = result(score, threshold=1.0)
    assert (found.score, codes(found), found.passed) == (score, [], score >= 1)


@pytest.mark.parametrize(("score", "meant"), [(85, True), (100, True), (7, False), (101, False), (-3, False)])
def test_a_percentage_is_told_how_to_become_a_score(score: float, meant: bool) -> None:
    assert ("divide it by 100" in (result(score).warnings[0].remedy or "")) is meant


@pytest.mark.parametrize("contract", [EVALUATE, V1])
@pytest.mark.parametrize("value", [{"a": 0.5, "b": True}, {"a": 0.5, "b": True, "score": None}])
def test_object_without_score(value: dict[str, Any], contract: Contract) -> None:
    found = result(value, contract, threshold=0.0)
    assert (found.status, found.score, found.passed) == (Status.SCORED, None, None)
    assert found.metrics == {"a": 0.5, "b": 1.0}
    assert codes(found) == ["no_score"]
    error = refusal(value, MAIN)
    assert error.code is ErrorCode.INVALID_RESULT
    assert "'a', 'b'" in str(error.hint)
    assert ("the score is None" if "score" in value else "has no score") in error.message


def test_empty_and_nested_objects() -> None:
    assert result({"m": {"a": 0.5}}).metrics == {"m.a": 0.5}
    assert (result({}).score, codes(result({}))) == (None, ["no_score"])
    assert "empty" in str(refusal({}, MAIN).hint)
    found = result({"a.b": 1, "a": {"b": 2}, "score": 1})
    assert (found.metrics, codes(found)) == ({"score": 1, "a.b": 1}, ["duplicate_metric"])


def test_reserved_keys() -> None:
    found = result({"score": 1, "label": "good", "log": "c", "comment": "b", "explanation": "a", "details": {"n": 3}})
    assert (found.label, found.reason, found.metrics) == ("good", "a", {"score": 1})
    assert found.value["details"] == {"n": 3}
    assert result({"score": 1, "label": 2}).label == "2"
    assert result({"score": 1, "reason": ["x"], "log": "y"}).reason == "y"
    assert result({"label": "bad"}).label == "bad"


def test_wide_integers() -> None:
    found = result(2**53 + 1)
    assert found.score == found.value == 2**53 + 1
    found = result({"score": 1, "wide": 2**70, "l": [10**400]})
    assert found.metrics["wide"] == float(2**70)
    assert isinstance(found.metrics["wide"], float)
    assert (found.value["wide"], found.value["l"]) == (2**70, [10**400])
    assert isinstance(result(-(2**80)).score, float)


@pytest.mark.parametrize(
    ("score", "threshold", "passed"),
    [
        (0.5, 0.5, True),
        (0.49, 0.5, False),
        (0.0, 0.0, True),
        (-0.1, 0.0, False),
        (0.5, None, None),
        (8, 0.5, True),
        (1, 2.0, False),
        (0.7 + 0.1, 0.8, True),
        (0.8 - 1e-8, 0.8, False),
    ],
)
def test_threshold(score: float, threshold: float | None, passed: bool | None) -> None:
    assert result(score, threshold=threshold).passed is passed
    assert result({"score": score}, threshold=threshold).passed is passed


def test_warnings_come_in_order() -> None:
    outcome = returned({"a": 2}, notes=(Note("coerced", "guest"),))
    assert codes(result(outcome, notes=(Note("trace_converted", "host"),))) == [
        "trace_converted",
        "coerced",
        "no_score",
    ]
    assert codes(result(returned(None, notes=(Note("coerced", "guest"),)))) == ["coerced"]


def test_a_failed_row_keeps_its_error_logs_and_position() -> None:
    source = clean("1 def f():\n2   return (", PY)
    error = EvaluationError(ErrorCode.SYNTAX_ERROR, "never closed", line=2, column=10)
    outcome = Failed(error, Logs("out", "err"))
    found = normalise(outcome, Evaluator(""), info=info(), notes=source.notes, source=source)
    assert (found.status, found.logs.stdout, codes(found)) == (Status.FAILED, "out", ["source_cleaned"])
    assert found.error is not None
    assert (found.error.line, found.error.column) == (2, 12)
    assert found.timing_ms.run == 1.5


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**400, "0.5", "nan"])
)
KEYS = st.sampled_from(["score", "passed", "success", "pass", "label", "reason", "log", "details", "a", "a.b", "b"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6))


@given(
    VALUES,
    st.sampled_from(Kind) | st.none(),
    st.sampled_from(ALL),
    st.sampled_from(Language),
    st.floats(-1, 2) | st.none(),
)
def test_every_value_has_one_meaning(
    value: Any, kind: Kind | None, contract: Contract, language: Language, threshold: float | None
) -> None:
    outcome = returned(value) if kind is None else Returned(kind, value)
    found = result(outcome, contract, language, threshold=threshold)
    if found.status is Status.FAILED:
        assert found.error is not None
        assert found.error.message
        assert found.metrics == {}
    else:
        assert found.error is None
        json.dumps([found.metrics, found.score], allow_nan=False)
        assert found.metrics.get("score") == found.score
        assert found.score is not None or "no_score" in codes(found)


def test_a_result_has_a_thousand_metrics_and_the_rest_in_its_value() -> None:
    value = {"score": 1, **{f"m{k}": k for k in range(5000)}}
    found = result(value, EVALUATE)
    assert (len(found.metrics), found.metrics["m998"], codes(found)) == (1000, 998, ["too_many_metrics"])
    assert found.value == value
    assert "4001 numbers can be found only in `value`" in found.warnings[0].message


def test_names_of_metrics_cannot_outgrow_the_result() -> None:
    """Names of metrics cannot make a result too large. A metric's name contains the keys of all objects around the
    value, so one long key would be repeated in each name.
    """
    long = result({"score": 1, "k" * 1000: {str(k): 1 for k in range(5)}, "a": {"b" * 400: 1, "c": 1}}, EVALUATE)
    assert (set(long.metrics), codes(long)) == ({"score", "a.c"}, ["too_many_metrics"])
    deep: dict[str, Any] = {"x" * 300: 1}
    for _ in range(60):
        deep = {"x" * 300: deep}
    assert set(result({"score": 1, "d": deep}, EVALUATE).metrics) == {"score"}
    same = result({"score": 1, **{f"a.{k}": 1 for k in range(90)}, "a": {str(k): 2 for k in range(90)}}, EVALUATE)
    assert codes(same) == ["duplicate_metric"] * 16


@pytest.mark.long
@pytest.mark.slow
def test_many_leaves_cost_processor_time_in_proportion() -> None:
    def cpu_s(count: int) -> float:
        value = {"score": 1, "in": {"a": {f"metric {k}": {"x": 1} for k in range(count)}}, "list": [{"y": 1.5}] * count}
        before = time.thread_time()
        assert result(value, EVALUATE).score == 1
        return time.thread_time() - before

    few = min(cpu_s(20_000) for _ in range(3))
    assert cpu_s(200_000) < 30 * few

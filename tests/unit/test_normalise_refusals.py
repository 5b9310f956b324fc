"""The host refuses returned values that have no meaning under a contract, reads values that are strings, and does not
trust false reports of runners.
"""

import math
from itertools import product
from typing import Any

import pytest

from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.types.evaluator import Contract, Json, Language
from evaluator_host.types.outcome import ErrorCode, Kind, Returned, Status
from tests.unit.normalising import ALL, JS, MAIN, PY, V1, codes, refusal, result, returned


@pytest.mark.parametrize("score", [[0.5], {"a": 1}, "good", "0x10", "1_0", ""])
@pytest.mark.parametrize("contract", ALL)
def test_a_score_of_another_type_is_refused(score: Any, contract: Contract) -> None:
    assert "the score is" in refusal({"score": score}, contract).message


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.7", 0.7), (" 1 ", 1.0), ("1e-1", 0.1), ("+.5", 0.5), ("-2.", -2.0), ("0.70\n", 0.7), ("1e400", None)]
    + [(word, None) for word in ("nan", "NaN", "inf", "-Infinity", " +inf ")],
)
def test_only_the_older_contract_reads_text_as_a_number(text: str, number: float | None) -> None:
    if number is None:
        assert refusal(text, V1).code is ErrorCode.NON_FINITE
        assert refusal({"score": text}).code is ErrorCode.NON_FINITE
    else:
        found = result(text, V1)
        assert (found.score, found.metrics) == (number, {"score": number})
        assert found.value == text
        assert "coerced" in codes(found)
        error = refusal(text)
        assert (error.code, error.hint) == (ErrorCode.INVALID_RESULT, "to use it as the score, return float(…)")
        assert "Number(…)" in str(refusal(text, language=JS).hint)
    assert refusal(text, MAIN).code is ErrorCode.INVALID_RESULT


@pytest.mark.parametrize(
    "text", ["good", "", "true", "0x10", "1_0", "٣", "1,5", "0.7 points", "nan", "--1", "1e", "{}"]
)
def test_other_text_is_a_label_or_refused(text: str) -> None:
    found = result(text, threshold=0.5)
    assert (found.status, found.score, found.passed, found.label) == (Status.SCORED, None, None, text)
    assert (found.metrics, codes(found)) == ({}, ["no_score"])
    if text != "nan":
        assert refusal(text, V1).code is ErrorCode.INVALID_RESULT
    assert refusal(text, MAIN).code is ErrorCode.INVALID_RESULT


def test_main_reads_text_that_holds_an_object() -> None:
    found = result(' {"score": 1, "reason": "r", "x": 2}', MAIN)
    assert (found.score, found.reason, found.metrics) == (1, "r", {"score": 1, "x": 2})
    assert codes(found) == ["coerced"]
    assert refusal('{"score": NaN}', MAIN).code is ErrorCode.NON_FINITE
    for text in (
        "[1]",
        '"x"',
        '{"a": 1}',
        '{"score": ',
        '{"a":' * 5000,
        "{" + '"a":[' * 3000,
        '{"score": ' + "1" * 5000 + "}",
    ):
        assert refusal(text, MAIN).code is ErrorCode.INVALID_RESULT


@pytest.mark.parametrize("contract", ALL)
def test_a_missing_value_is_refused(contract: Contract) -> None:
    assert "returned nothing (None); return" in refusal(None, contract, PY).message
    assert "returned nothing (null); return" in refusal(None, contract, JS).message
    missing = Returned(Kind.MISSING, None)
    assert "returned nothing (undefined); return" in refusal(missing, contract, Language.TYPESCRIPT).message
    for language, shape in ((PY, "{'score': …}"), (JS, "{ score: … }")):
        error = refusal(None, contract, language)
        assert error.code is ErrorCode.INVALID_RESULT
        assert shape in error.message


def test_valid_shapes_are_in_the_authors_language() -> None:
    assert refusal([1]).message == "the evaluator returned a list; return a number, a bool or {'score': …}"
    assert (
        refusal([1], language=JS).message
        == "the evaluator returned an array; return a number, a boolean or { score: … }"
    )
    assert refusal([1], MAIN).message == "the evaluator returned a list; return {'score': …} with a number"
    assert "the returned dict has no score" in refusal({}, MAIN).message
    assert "the returned object has no score" in refusal({}, MAIN, JS).message


@pytest.mark.parametrize("contract", ALL)
def test_values_that_are_not_finite(contract: Contract) -> None:
    error = refusal(Returned(Kind.NUMBER, None, nonfinite=("$",)), contract)
    assert (error.code, "the returned value" in error.message) == (ErrorCode.NON_FINITE, True)
    error = refusal(returned({"score": 1, "a": [None]}, nonfinite=("$.a[0]", "$.b")), contract)
    assert "$.a[0], $.b" in error.message
    for value, path in (
        (10**400, "the returned value"),
        ({"score": -(10**400)}, "$.score"),
        ({"score": 1, "m": {"a": 10**400}}, "$.m.a"),
    ):
        error = refusal(value, contract)
        assert error.code is ErrorCode.NON_FINITE
        assert f"{path} " in error.message


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        {"score": float("nan")},
        {"score": 1, "m": float("inf")},
        {"score": 1, "l": [{"a": float("nan")}]},
        {"score": 1, "details": {"x": float("inf")}},
        {"score": 1, "reason": [float("nan")]},
    ],
)
def test_a_runner_that_hides_them_is_not_believed(value: Any) -> None:
    assert refusal(value).code is ErrorCode.NON_FINITE


@pytest.mark.parametrize("score", [8.0, -0.2, 2, 1.0000001, {"score": 10}])
def test_nothing_is_clamped(score: Any) -> None:
    found = result(score)
    expected = score["score"] if isinstance(score, dict) else score
    assert found.score == expected
    assert codes(found) == ["out_of_range"]
    assert found.warnings[0].message.startswith(f"score {expected} lies outside 0..1")


@pytest.mark.parametrize(
    ("score", "threshold", "remedy"),
    [
        (0.9, 80, "did you mean 0.8?"),
        (1, 100, "did you mean 1?"),
        (0, 4, "give a number from 0 to 1"),
        (0.5, -1, "give a number from 0 to 1"),
        (0.9, 1, None),
        (0.9, 0, None),
        (3, 4, None),
        (True, 80, None),
    ],
)
def test_a_threshold_outside_the_range_of_the_scores_is_reported(
    score: Any, threshold: float, remedy: str | None
) -> None:
    notes = [one for one in result(score, threshold=threshold).warnings if one.code == "threshold_out_of_range"]
    assert [one.remedy for one in notes] == ([] if remedy is None else [remedy])


@pytest.mark.parametrize(
    ("path", "kind", "expected"),
    [
        (
            "$",
            "generator",
            "the evaluator returned a value of type generator, which cannot be written as JSON; return a number",
        ),
        ("$.m", "set", "the value at $.m is a value of type set, which cannot be written as JSON; return a number"),
    ],
)
def test_values_without_a_json_form(path: str, kind: str, expected: str) -> None:
    sort = Kind.UNSUPPORTED if path == "$" else Kind.OBJECT
    error = refusal(Returned(sort, {"m": None} if path != "$" else None, unsupported=(path, kind)))
    assert error.code is ErrorCode.INVALID_RESULT
    assert error.message.startswith(expected)


@pytest.mark.parametrize(
    "forged",
    [
        Returned(Kind.NUMBER, "1"),
        Returned(Kind.NUMBER, True),
        Returned(Kind.NUMBER, None),
        Returned(Kind.BOOL, 1),
        Returned(Kind.OBJECT, [1]),
        Returned(Kind.STRING, 5),
    ],
)
@pytest.mark.parametrize("contract", ALL)
def test_a_kind_that_the_value_contradicts_is_a_crash(forged: Returned, contract: Contract) -> None:
    assert refusal(forged, contract).code is ErrorCode.CRASHED


def test_forged_nesting_is_a_crash_and_never_reaches_an_encoder() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = {"a": deep}
    for value in ({"score": 1, "m": deep}, {"score": 1, "details": [deep]}):
        found = result(value)
        assert found.error is not None
        assert (found.error.code, found.value) == (ErrorCode.CRASHED, None)
    found = result(Returned(Kind.ARRAY, [deep]))
    assert found.value is None


def test_a_refused_value_is_shown() -> None:
    assert result([1, 2]).value == [1, 2]
    assert result(Returned(Kind.MISSING, "forged")).value is None


@pytest.mark.parametrize("number", [10**400, -(10**400), 1.7e308], ids=["int", "negative int", "float"])
def test_no_number_is_too_large_for_a_dialect(number: float) -> None:
    """A dialect refuses or leaves out a number that no float can hold, and computes means of the largest floats."""
    rewards = [{"name": "r", "weight": 2, "values": [number, number, number]}]
    results: list[Json] = [
        *({"score": number}, {"value": number, "name": "n"}, {"result": number}, {"result": {"score": number}}),
        *({"scores": [{"name": one, "value": number} for one in "abc"]}, {"rewards": rewards}, {"a": number}),
        {"rewards": [{**one, "weight": 1} for one in rewards]},
        {"pass": True, "score": number, "reason": "r", "namedScores": {"n": number}},
        *({"score_type": 1, "score": number, "details": None}, {"type": "score", "score": number}),
    ]
    lists: list[Json] = [[number, "reason"], [{"key": one, "score": number} for one in "abc"]]
    values = [(Kind.NUMBER, number), *((Kind.OBJECT, one) for one in results), *((Kind.ARRAY, one) for one in lists)]
    for dialect, (kind, value) in product(all_dialects(), values):
        found = dialect.interpret(Returned(kind, value), Language.PYTHON)
        if isinstance(found, Scored):
            numbers = [found.score, *found.metrics.values()]
            assert all(one is None or math.isfinite(float(one)) for one in numbers), (dialect.contract, value)

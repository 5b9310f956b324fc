"""The host accepts `expect` in the forms that people write, and reports results that differ."""

from typing import Any

import pytest

from evaluator_host.platform.evaluators.cases import expect_text, read_expect, unmet
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Status
from tests.unit.results import result_of

FAILED = result_of(
    status=Status.FAILED, score=None, error=EvaluationError(ErrorCode.USER_EXCEPTION, "no", type="KeyError")
)


@pytest.mark.parametrize(
    ("given", "meant", "text"),
    [
        ("1", {"score": 1}, "1"),
        (0.5, {"score": 0.5}, "0.5"),
        ("= 0.5 +- .05", {"score": 0.5, "tolerance": 0.05}, "0.5 ± 0.05"),
        ("0.4..0.6", {"min": 0.4, "max": 0.6}, ">= 0.4; <= 0.6"),
        ("> 0.5", {"above": 0.5}, "> 0.5"),
        ("≤ -1e3", {"max": -1000}, "<= -1000"),
        ("Passes", {"passed": True}, "passed"),
        ("✗", {"passed": False}, "not passed"),
        ("error", {"error": True}, "fails"),
        ("fails timeout", {"error": "timeout"}, "fails timeout"),
        ("label good", {"label": "good"}, "label good"),
        (">= 0.5; passed; label good", {"min": 0.5, "passed": True, "label": "good"}, ">= 0.5; passed; label good"),
        ({"score": None}, {"score": None}, "no score"),
    ],
)
def test_an_expectation_is_read_and_written(given: Any, meant: dict[str, Any], text: str) -> None:
    assert (read_expect(given), expect_text(given)) == (meant, text)


@pytest.mark.parametrize("given", ["", "about half", {}, {"scores": 1}, None, True, {"score": "1"}, [1], "label"])
def test_an_invalid_expectation_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"0\.4\.\.0\.6|must be a number"):
        read_expect(given)


@pytest.mark.parametrize(
    ("expect", "result", "problem"),
    [
        ("0.3", result_of(score=0.1 + 0.2), None),
        ("0.5 ± 0.05", result_of(score=0.56), "score 0.56, not 0.5 ± 0.05"),
        ("> 0.5", result_of(score=0.5), "score 0.5, not > 0.5"),
        ("1", result_of(score=0.9999996), "score 0.9999996, not 1"),
        (">= 0.8", result_of(score=0.7 + 0.1), None),
        ("0.1..0.3", result_of(score=0.1 + 0.2), None),
        ("> 0.3", result_of(score=0.1 + 0.2), "score 0.3, not > 0.3"),
        ("< 0.8", result_of(score=0.7 + 0.1), "score 0.8, not < 0.8"),
        (">= 0.5", result_of(score=None), "no score, not >= 0.5"),
        ("passed", result_of(score=1.0, passed=None), "passed None, not True"),
        ("label good", result_of(label="bad"), "label bad, not good"),
        ("1; label good", result_of(score=1.0, label="good"), None),
        ("1", FAILED, "user_exception: KeyError: no"),
        ("fails", FAILED, None),
        ("fails KeyError", FAILED, None),
        ("fails timeout", FAILED, "user_exception, not timeout"),
        ("fails", result_of(score=1.0), "score 1, not a failure"),
        ({"score": None}, result_of(score=None), None),
    ],
)
def test_a_result_against_an_expectation(expect: Any, result: Any, problem: str | None) -> None:
    assert unmet(read_expect(expect), result) == problem

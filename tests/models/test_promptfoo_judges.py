"""promptfoo's assertions that call a model are imported, get a granted model, and score by promptfoo's rules."""

import json
from dataclasses import replace
from typing import Any

import pytest

from evaluator_host.engine.contracts.imports import FoundEvaluator, SentFiles
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Row
from evaluator_host.types.outcome import ErrorCode
from evaluator_host.vendors.promptfoo.config import CONFIGURATIONS
from evaluator_host.vendors.promptfoo.judged import judge_program, models_of
from tests.models.conftest import Granting

INPUTS = {"query": "Capital of France?", "context": "Paris is the capital of France."}
# the model answers with the text that it gets, so the output or the value of the assert is the JSON object of the
# answer
CASES: dict[str, tuple[dict[str, Any], Any, float, bool]] = {
    "llm-rubric": ({"value": "polite"}, {"pass": True, "score": 0.75, "reason": "kind"}, 0.75, True),
    "llm-rubric, threshold": ({"value": "polite", "threshold": 0.8}, {"pass": True, "score": 0.75}, 0.75, False),
    "llm-rubric, a word": ({"value": "polite"}, {"pass": "no"}, 0, False),
    "not-llm-rubric": ({"value": "rude"}, {"pass": False, "score": 0.25}, 0.75, True),
    "g-eval": ({"value": "coherent"}, {"score": 8, "reason": "clear"}, 0.8, True),
    "g-eval, low": ({"value": "coherent"}, {"score": 6}, 0.6, False),
    "factuality": ({"value": "Paris"}, {"category": "B", "reason": "more"}, 1, True),
    "factuality, another": ({"value": "Paris"}, {"category": "D"}, 0, False),
    "model-graded-closedqa": ({"value": "names a city"}, {"meets": True}, 1, True),
    "similar": ({"value": "Paris"}, "Paris", 1, True),
    "not-similar": ({"value": "Paris"}, "Paris", 0, False),
    "answer-relevance": ({}, {"questions": ["a?", "b?"]}, 1, True),
    "context-recall": (
        {"value": json.dumps({"sentences": [{"supported": True}, {"supported": False}]})},
        "said",
        0.5,
        True,
    ),
    "context-relevance": ({"threshold": 0.9}, None, 0.5, False),
    "context-faithfulness": ({}, {"claims": [{"follows": True}, {"follows": "no"}, {"follows": "yes"}]}, 2 / 3, True),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES)
async def test_a_judge_scores_by_promptfoos_rule(granted: Granting, case: str) -> None:
    config, output, score, passed = CASES[case]
    type_ = case.partition(",")[0]
    inputs = dict(INPUTS)
    if output is None:
        inputs["context"] = json.dumps({"sentences": [{"needed": True}, {"needed": False}]})
    found = read(type_, config)
    assert found.asks == models_of(type_)
    result = await granted.service.evaluate(granted_to(found), Row(inputs, text(output)))
    assert result.error is None, result.error
    assert (result.score, result.passed) == (pytest.approx(score), passed), result


async def test_an_answer_without_an_object_fails_the_row(granted: Granting) -> None:
    result = await granted.service.evaluate(granted_to(read("llm-rubric", {"value": "polite"})), Row(INPUTS, "thanks"))
    assert result.error is not None
    assert (result.error.code, result.error.message.partition(":")[0]) == (
        ErrorCode.USER_EXCEPTION,
        "the judge answered without a JSON object that has pass or score",
    )


async def test_points_outside_the_range_fail_the_row(granted: Granting) -> None:
    judge = granted_to(read("g-eval", {"value": "coherent"}))
    for points in (-1, 11):
        result = await granted.service.evaluate(judge, Row(INPUTS, text({"score": points})))
        assert result.error is not None
        assert "outside 0..10" in result.error.message


def test_types_without_a_rule_have_no_program() -> None:
    assert judge_program("moderation") is None
    assert judge_program("select-best") is None


def read(type_: str, config: dict[str, Any]) -> FoundEvaluator:
    """Import a configuration with one assertion, and return its evaluator."""
    document = {"prompts": ["x"], "tests": [{"vars": INPUTS, "assert": [{"type": type_, **config}]}]}
    [made] = CONFIGURATIONS.read(document, SentFiles({}, "", set()), "c").evaluators
    return made


def granted_to(found: FoundEvaluator) -> Evaluator:
    """Return the evaluator with a granted model for each model name that its code uses."""
    made = Evaluator(found.code, contract=Contract("promptfoo"), settings=EvaluatorSettings(config=found.config))
    return replace(made, models=tuple(f"{one}=judge" if one != "judge" else one for one in found.asks))


def text(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output)

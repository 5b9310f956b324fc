"""Eval sets: both formats give the same test cases, and every fault is reported with its JSON path."""

import copy
from typing import Any

import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.vendors.uipath.eval_set import EvalItem, is_eval_set, parse_eval_set
from tests.dialects.uipath.eval_sets import DOCUMENTED, REAL


def changed(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of an eval set with one value replaced; if the new value is None, the field is removed."""
    made = copy.deepcopy(base)
    *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place: Any = made
    for part in way:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return made


def faults(value: Any) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        parse_eval_set(value)
    return {problem.field: problem.message for problem in caught.value.problems}


def test_the_documented_dialect() -> None:
    found = parse_eval_set(DOCUMENTED)
    criteria = {"MyCustomEvaluator": {"expectedValues": ["value1", "value2"]}}
    assert found.items == (EvalItem("test-1", "test-1", {"query": "Process data"}, criteria),)
    assert (found.id, found.name, found.evaluators) == ("my-eval-set", "my-eval-set", ("MyCustomEvaluator",))
    assert (found.weights, found.notes) == ({}, ())


def test_the_dialect_of_uipaths_own_command_line() -> None:
    found = parse_eval_set(REAL)
    assert [item.name for item in found.items] == ["Test 1", "Test 2"]
    assert found.items[0].criteria == {
        "PatternComparisonEvaluator": {"expectedOutput": ["alpha"]},
        "OtherEvaluator": None,
    }
    assert found.items[0].expected_agent_behavior == "It greets."
    assert found.items[1].criteria == {"PatternComparisonEvaluator": {}}
    assert found.evaluators == ("PatternComparisonEvaluator", "OtherEvaluator")
    assert found.weights == {"PatternComparisonEvaluator": 2.0}


def test_snake_case_is_taken_too() -> None:
    snake = {
        "evaluator_refs": ["E"],
        "evaluations": [{"id": "a", "agent_input": {"x": 1}, "evaluation_criterias": {"E": None}}],
    }
    assert parse_eval_set(snake).items == (EvalItem("a", "a", {"x": 1}, {"E": None}),)


def test_without_references_the_criteria_say_who_scores() -> None:
    assert parse_eval_set(changed(DOCUMENTED, "evaluatorRefs", None)).evaluators == ("MyCustomEvaluator",)


def test_unused_criteria_and_evaluators_are_noted() -> None:
    odd = changed(REAL, "evaluatorConfigs", ["PatternComparisonEvaluators", "Third"])
    odd["evaluations"][0]["mockingStrategy"] = {"type": "llm"}
    notes = " | ".join(parse_eval_set(odd).notes)
    assert "criteria for PatternComparisonEvaluator are not used" in notes
    assert "did you mean PatternComparisonEvaluators?" in notes
    assert "the evaluator Third scores nothing: no test case has criteria for it" in notes
    assert "$.evaluations[0].mockingStrategy asks a model" in notes


@pytest.mark.parametrize(
    ("base", "path", "value", "where", "message"),
    [
        (DOCUMENTED, "version", "2.0", "$.version", "version '2.0' is not supported"),
        (DOCUMENTED, "evaluationItems", None, "$", "no test cases"),
        (DOCUMENTED, "evaluationItems", [], "$.evaluationItems", "the eval set has no test case"),
        (DOCUMENTED, "evaluationItems", {}, "$.evaluationItems", "must be a list, not an object"),
        (DOCUMENTED, "evaluationItems/0", 3, "$.evaluationItems[0]", "an object, not a number"),
        (DOCUMENTED, "evaluationItems/0/id", None, "$.evaluationItems[0].id", "needs an id"),
        (DOCUMENTED, "evaluationItems/0/id", 7, "$.evaluationItems[0].id", "must be a string, not a number"),
        (DOCUMENTED, "evaluationItems/0/agentInput", None, "$.evaluationItems[0]", "the agent's input is missing"),
        (DOCUMENTED, "evaluationItems/0/agentInput", "x", "$.evaluationItems[0].agentInput", "an object, not a string"),
        (DOCUMENTED, "evaluationItems/0/evaluations", None, "$.evaluationItems[0]", "the criteria are missing"),
        (DOCUMENTED, "evaluationItems/0/evaluations/0", {}, "$.evaluationItems[0].evaluations[0]", "evaluatorId"),
        (
            DOCUMENTED, "evaluationItems/0/evaluations/0/evaluationCriteria", [],
            "$.evaluationItems[0].evaluations[0].evaluationCriteria", "not a list",
        ),
        (REAL, "evaluations/1/id", "test-1", "$.evaluations[1].id", "$.evaluations[0] already has the id"),
        (REAL, "evaluations/0/evaluationCriterias", [], "$.evaluations[0].evaluationCriterias", "not a list"),
        (
            REAL, "evaluations/0/evaluationCriterias/OtherEvaluator", True,
            "$.evaluations[0].evaluationCriterias.OtherEvaluator", "not true or false",
        ),
        (REAL, "evaluatorConfigs/0", {"weight": 1}, "$.evaluatorConfigs[0]", "an evaluator must be an id"),
        (REAL, "evaluatorConfigs/0/weight", 10**400, "$.evaluatorConfigs[0].weight", "of 0 or more, not 1"),
        (REAL, "evaluatorConfigs/0/weight", -1, "$.evaluatorConfigs[0].weight", "of 0 or more, not -1"),
    ],
)  # fmt: skip
def test_a_fault_is_named_by_its_path(base: dict[str, Any], path: str, value: Any, where: str, message: str) -> None:
    found = faults(changed(base, path, value))
    assert message in found[where]


OLDER: dict[str, Any] = {
    "id": "old",
    "fileName": "old.json",
    "evaluatorRefs": ["exact", "tone"],
    "evaluations": [
        {
            "id": "a",
            "name": "A",
            "inputs": {"q": 1},
            "expectedOutput": {"x": 1},
            "expectedAgentBehavior": "It adds.",
            "simulateTools": True,
        },
        {"id": "b", "name": "B", "inputs": {}, "expected_output": {}},
    ],
    "name": "Old",
    "batchSize": 10,
    "createdAt": "2025-01-01",
    "updatedAt": "2025-01-01",
}


def test_an_eval_set_of_before_1_0_is_converted_as_uipaths_command_line_does() -> None:
    found = parse_eval_set(OLDER)
    assert (found.evaluators, [item.id for item in found.items]) == (("exact", "tone"), ["a", "b"])
    criteria = {"expectedOutput": {"x": 1}, "expectedAgentBehavior": "It adds."}
    assert found.items[0].criteria == {"exact": criteria, "tone": criteria}
    assert found.items[1].criteria["tone"] == {"expectedOutput": {}, "expectedAgentBehavior": ""}
    [note] = found.notes
    assert note.startswith("$.evaluations[0].simulateTools asks a model to simulate tools or users")


def test_parts_that_cannot_be_converted_are_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_eval_set({**OLDER, "version": "1.0"})
    assert "leave out the version" in str(caught.value.problems[0].hint)
    assert faults({**OLDER, "evaluatorRefs": []})["$.evaluations[0]"].endswith("the set names none")
    odd = [{"id": "a", "inputs": {}, "expectedOutput": "x"}]
    assert "not a string" in faults({**OLDER, "evaluations": odd})["$.evaluations[0].expectedOutput"]


def test_faults_beyond_the_shown_are_counted() -> None:
    many = {"evaluations": [{} for _ in range(40)]}
    with pytest.raises(InvalidRequest, match="100 more faults are not shown") as caught:
        parse_eval_set(many)
    assert len(caught.value.problems) == 20


def test_values_that_are_not_eval_sets() -> None:
    assert is_eval_set(REAL)
    assert is_eval_set(DOCUMENTED)
    assert not any(is_eval_set(value) for value in ([], {"rows": []}, {"evaluations": "x"}, None))
    assert faults([1]) == {"$": "an eval set must be an object, not a list"}

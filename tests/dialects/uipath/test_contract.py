"""Evaluators for UiPath are pasted unchanged: every backend finds, creates and calls them, and returns their scores."""

import json
from textwrap import indent
from typing import Any

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Isolation, Policy, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult, Status
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.uipath.evaluators import CUSTOM, FIXTURES, GOLDEN, PATTERN, PATTERN_SPAN, evaluator

CRITERIA = {"text": "x"}


async def evaluated(service: Service, code: str, row: Row | None = None, **fields: Any) -> EvaluationResult:
    return await service.evaluate(Evaluator(code, **fields), row or Row(criteria=CRITERIA))


async def refused(service: Service, code: str, row: Row | None = None, **fields: Any) -> EvaluationError:
    result = await evaluated(service, code, row, **fields)
    assert (result.status, result.score) == (Status.FAILED, None)
    assert result.error is not None
    return result.error


async def test_the_documented_evaluator_scores_the_golden_and_names_what_it_ran_on(service: Service) -> None:
    given = {
        "two_of_three": Row(trace={"spans": [PATTERN_SPAN]}, criteria={"expectedOutput": ["alpha", "beta", "delta"]}),
        "exact": Row(trace={"spans": [PATTERN_SPAN]}, criteria={"expected_output": ["alpha", "beta", "gamma"]}),
        "both_empty": Row(criteria={"expected_output": []}),
        "no_trace": Row(criteria={"expectedOutput": ["alpha"]}),
        "extra_criteria_ignored": Row(
            trace={"spans": [PATTERN_SPAN]}, criteria={"expectedOutput": ["alpha"], "unknown": 1}
        ),
    }
    results = await service.evaluate_batch(Evaluator(PATTERN), list(given.values()))
    for result, name in zip(results, given, strict=True):
        golden = GOLDEN["cases"][name]
        assert (result.status, result.score, result.passed) == (Status.SCORED, golden["score"], None)
        assert (result.reason, result.value["details"]) == (golden["details"], golden["details"])
        assert (result.value["score"], result.value["score_type"]) == (golden["score"], golden["score_type"])
    assert [note.message for note in results[-1].warnings] == ["the evaluator's criteria have no unknown"]
    assert not any(result.warnings for result in results[:-1])
    assert (results[0].evaluator.contract, results[0].evaluator.contract_source) == (Contract("uipath"), "inferred")
    requested = {package.name for package in results[0].environment.packages if package.requested}
    assert requested == {"pydantic", "opentelemetry-sdk"}


@pytest.mark.long
@ON_BUBBLEWRAP
async def test_a_configuration_is_taken_in_both_spellings_or_as_the_whole_file(service: Service) -> None:
    row = Row(outputs={"a": "One", "b": "two"}, criteria={"expectedValues": ["one"]})
    whole = json.loads((FIXTURES / "my-custom-evaluator.json").read_text("utf-8"))
    whole["evaluatorConfig"].update({"caseSensitive": True, "name": "Ours"})
    told = []
    for config in ({}, {"caseSensitive": True, "unknown": 1}, {"case_sensitive": True, "name": "My"}, whole):
        result = await evaluated(service, CUSTOM, row, settings=EvaluatorSettings(config=config))
        told.append((result.score, json.loads(result.value["details"])["name"]))
    names = ("MyCustomEvaluator", "MyCustomEvaluator", "My", "Ours")
    assert told == list(zip((1.0, 0.0, 0.0, 0.0), names, strict=True))
    misspelt = await evaluated(service, CUSTOM, row, settings=EvaluatorSettings(config={"treshold": 1}))
    assert [(note.code, "treshold" in note.message, "threshold" in note.message) for note in misspelt.warnings] == [
        ("ignored", True, True)
    ]
    error = await refused(service, CUSTOM, row, settings=EvaluatorSettings(config={"threshold": "high"}))
    assert error.code is ErrorCode.BINDING_ERROR
    assert "config.threshold: Input should be a valid number" in error.message


async def batch(service: Service, bodies: list[str]) -> list[EvaluationResult]:
    """Evaluate several bodies with one evaluator; each row's criteria choose a body."""
    cases = [f"if criteria.text == '{at}':\n{indent(body, '    ')}\n" for at, body in enumerate(bodies)]
    rows = [Row(criteria={"text": str(at)}) for at in range(len(bodies))]
    return await service.evaluate_batch(Evaluator(evaluator("".join(cases))), rows)


@ON_BUBBLEWRAP
async def test_results_come_to_one_scale_and_are_kept_as_they_were(service: Service) -> None:
    expected: dict[str, tuple[float, bool | None, object, str | None]] = {
        "return NumericEvaluationResult(score=7.5)": (7.5, None, 7.5, None),
        "return BooleanEvaluationResult(score=True, details='why')": (1.0, True, True, "why"),
        "return BooleanEvaluationResult(score=False)": (0.0, False, False, None),
        "return NumericEvaluationResult(score=1, details={'a': [1]})": (1.0, None, 1.0, '{"a": [1]}'),
        "return NumericEvaluationResult(score=0.5, details=criteria)": (0.5, None, 0.5, '{"text": "4"}'),
    }
    results = await batch(service, list(expected))
    for result, (score, passed, value, reason) in zip(results, expected.values(), strict=True):
        assert (result.score, result.passed, result.value["score"], result.reason) == (score, passed, value, reason)
        assert result.metrics == {"score": score}
        assert result.value["evaluation_time"] > 0
    assert [note.code for note in results[0].warnings] == ["out_of_range"]


@ON_BUBBLEWRAP
async def test_a_value_that_is_not_a_score_fails_the_row_and_says_why(service: Service) -> None:
    expected = {
        "return ErrorEvaluationResult(error='no data')": ("user_exception", "no data", "ErrorEvaluationResult"),
        "return ErrorEvaluationResult(details='none')": ("user_exception", "none", "ErrorEvaluationResult"),
        "raise ValueError('boom')": ("user_exception", "boom", "ValueError"),
        "return 0.5": ("invalid_result", "evaluate returned a value of type float", None),
        "pass": ("invalid_result", "evaluate returned nothing", None),
        "return NumericEvaluationResult(score=float('nan'))": (
            "non_finite",
            "the value at $.score is nan or inf",
            None,
        ),
    }
    results = await batch(service, list(expected))
    errors = [result.error for result in results if result.error is not None]
    assert [(error.code, error.message, error.type) for error in errors] == list(expected.values())
    assert [(result.status, result.score) for result in results] == [(Status.FAILED, None)] * len(expected)
    assert results[0].value["score_type"] == 2
    assert errors[2].line is not None
    assert "raise ValueError('boom')" in (errors[2].traceback or "")


@ON_BUBBLEWRAP
async def test_a_failing_row_does_not_affect_other_rows(service: Service) -> None:
    code = evaluator("return BooleanEvaluationResult(score=1 / len(execution.agent_output) >= 1)")
    results = await service.evaluate_batch(Evaluator(code), [Row({}, out, criteria=CRITERIA) for out in ("a", "", "b")])
    assert [result.score for result in results] == [1.0, None, 1.0]


@ON_BUBBLEWRAP
async def test_criteria_that_are_missing_or_do_not_fit_are_named(service: Service) -> None:
    missing = "No evaluation criteria provided and no default evaluation criteria configured"
    given: list[tuple[object, ErrorCode, str]] = [
        (None, ErrorCode.MISSING_INPUT, missing),
        ({}, ErrorCode.MISSING_INPUT, missing),
        ({"text": 1}, ErrorCode.BINDING_ERROR, "criteria.text: Input should be a valid string, not 1"),
        ([1], ErrorCode.BINDING_ERROR, "the criteria do not fit ECriteria"),
    ]
    code = evaluator("return NumericEvaluationResult(score=1)")
    results = await service.evaluate_batch(Evaluator(code), [Row(criteria=criteria) for criteria, _, _ in given])
    for result, (_, expected, message) in zip(results, given, strict=True):
        assert result.error is not None
        assert (result.error.code, message in result.error.message) == (expected, True)
        assert "text (optional)" in (result.error.hint or "")


@ON_BUBBLEWRAP
async def test_rows_without_criteria_have_those_of_the_configuration(service: Service) -> None:
    code = evaluator("return NumericEvaluationResult(score=len(criteria.text))")
    default = EvaluatorSettings(config={"defaultEvaluationCriteria": {"text": "abc"}})
    for criteria, score in ((None, 3), ({}, 3), ({"text": "ab"}, 2)):
        assert (await evaluated(service, code, Row(criteria=criteria), settings=default)).score == score


@ON_BUBBLEWRAP
async def test_an_execution_has_every_field_under_both_names(service: Service) -> None:
    code = evaluator(
        """
        same = (execution.agent_output is execution.workload_output, execution.agent_trace is execution.workload_trace)
        also = AgentExecution(agent_input=None, agent_output="o", agent_trace=execution.agent_trace)
        span = execution.agent_trace[0]
        return NumericEvaluationResult(score=1, details=repr((
            execution.agent_input, execution.agent_output, same, also.workload_output, also.agent_trace[0].name,
            execution.expected_agent_behavior, execution.simulation_instructions,
            type(span).__name__, span.context.span_id, span.parent.span_id, span.status.status_code.name,
        )))
        """
    )
    span = {"name": "s", "spanId": "00000000000000ff", "parentSpanId": "00000000000000fe", "status": {"code": 2}}
    row = Row(
        {"query": "q"},
        None,
        {"spans": [span]},
        {"expectedAgentBehavior": "be", "simulation_instructions": "go"},
        CRITERIA,
    )
    assert (await evaluated(service, code, row)).reason == repr(
        ({"query": "q"}, {}, (True, True), "o", "s", "be", "go", "ReadableSpan", 255, 254, "ERROR")
    )


@ON_BUBBLEWRAP
async def test_rows_that_are_not_executions_name_the_field(service: Service) -> None:
    given = {
        "outputs is [1]; the output of an agent must be an object or a string": Row(outputs=[1]),
        "trace.spans[0] is an int, not a span": Row(trace={"spans": [3]}),
        "variables.expected is not a part of an execution": Row(variables={"expected": "x"}),
    }
    results = await service.evaluate_batch(Evaluator(PATTERN), list(given.values()))
    errors = [result.error for result in results if result.error is not None]
    assert [(error.code, error.message) for error in errors] == [(ErrorCode.BINDING_ERROR, told) for told in given]


@ON_BUBBLEWRAP
async def test_rows_begin_alike_unless_they_share_a_process(service: Service) -> None:
    code = evaluator("seen.append(1)\nreturn NumericEvaluationResult(score=len(seen))") + "\nseen = []\n"
    rows = [Row(criteria=CRITERIA)] * 3
    alone = await service.evaluate_batch(Evaluator(code), rows)
    together = await service.evaluate_batch(Evaluator(code), rows, isolation=Isolation.BATCH)
    assert [result.score for result in alone] == [1, 1, 1]
    assert [result.score for result in together] == [1, 2, 3]


@ON_BUBBLEWRAP
async def test_the_restricted_policy_lets_evaluators_be_written(service: Service) -> None:
    allowed = evaluator("return NumericEvaluationResult(score=len(execution.agent_output))")
    row = Row(outputs="abc", criteria=CRITERIA)
    assert (await evaluated(service, allowed, row, policy=Policy.RESTRICTED)).score == 3
    opened = allowed.replace("len(execution.agent_output)", "len(open('/etc/passwd').read())")
    assert (await refused(service, opened, row, policy=Policy.RESTRICTED)).code is ErrorCode.POLICY_VIOLATION

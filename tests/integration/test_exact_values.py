"""Integers that are too large for JavaScript arrive exactly if a setting requests that; otherwise a warning names their
paths.
"""

from dataclasses import replace
from typing import Any, Literal

import pytest

from evaluator_host.engine.service.service import Service
from evaluator_host.types.evaluator import Evaluator, EvaluatorSettings, Isolation, Json, Language, Row
from evaluator_host.types.outcome import EvaluationResult

BEYOND = 9007199254740993
EQUAL = "export const evaluate = (inputs, outputs, trace) => outputs === inputs.correct_answer;\n"


def with_integers(evaluator: Evaluator, integers: Literal["bigint", "text"]) -> Evaluator:
    return replace(evaluator, settings=EvaluatorSettings(integers=integers))


def codes(result: EvaluationResult) -> list[str]:
    return [note.code for note in result.warnings]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("inputs", "outputs", "path"),
    [
        ({"correct_answer": BEYOND}, BEYOND - 1, "$.inputs.correct_answer"),
        ({"correct_answer": -1}, -BEYOND, "$.outputs"),
        ({"a": [{"id": 2**64 + 1}]}, "x", "$.inputs.a[0].id"),
        ({"a": 10**400}, "x", "$.inputs.a"),
        ({"filler": "x" * (300 << 10), "id": BEYOND}, "x", "$.inputs.id"),
    ],
)
async def test_javascript_says_what_it_rounds(service: Service, inputs: Json, outputs: Json, path: str) -> None:
    result = await service.evaluate(Evaluator(EQUAL, Language.JAVASCRIPT), Row(inputs, outputs))
    (note,) = [note for note in result.warnings if note.code == "rounded_integer"]
    assert f" at {path}," in note.message
    assert "settings.integers" in note.text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("value", [2**53 - 1, -(2**53), 2**60, "9007199254740993", 1e22, 0.1234567890123456789, -0.0])
async def test_javascript_says_nothing_of_what_it_holds(service: Service, value: Json) -> None:
    result = await service.evaluate(Evaluator(EQUAL, Language.JAVASCRIPT), Row({"correct_answer": value}, value))
    assert (result.score, codes(result)) == (1.0, [])


READS_TRACE = "export const evaluate = (inputs, outputs, trace) => (trace.name === outputs ? 1 : 0);\n"
NANOSECONDS = 1_753_000_000_123_456_789
TIMES = {"startTimeUnixNano": NANOSECONDS, "end_time": NANOSECONDS, "attributes": {"sent_ns": NANOSECONDS}}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("code", "row", "path"),
    [
        (READS_TRACE, Row({}, "x", {"name": "x", **TIMES}), None),
        (READS_TRACE, Row({}, "x", {"name": "x", "children": [{**TIMES, "id": BEYOND}]}), "$.trace.children[0].id"),
        (READS_TRACE, Row({"start_time": NANOSECONDS}, "x", {"name": "x"}), None),
        (READS_TRACE, Row({}, BEYOND, {"name": "x"}), "$.outputs"),
        (EQUAL, Row({"correct_answer": 1}, 1, {"id": BEYOND}), None),
        (EQUAL, Row({"correct_answer": 1}, 1, {"id": BEYOND, "filler": "x" * (300 << 10)}), None),
        (EQUAL, Row({"sent_at": BEYOND}, 1), "$.inputs.sent_at"),
        ("exports.evaluate = (inputs, outputs) => inputs.a;\n", Row({"a": 1}, BEYOND, {"id": BEYOND}), None),
        ("exports.evaluate = function () { return arguments[1] > 0 };\n", Row({"a": 1}, BEYOND), "$.outputs"),
        (
            "export function scorer({ output }) { return output > 0 }\n",
            Row({"a": 1}, BEYOND, {"id": BEYOND}),
            "$.outputs",
        ),
    ],
)
async def test_nothing_is_reported_of_integers_that_the_code_does_not_read(
    service: Service, code: str, row: Row, path: str | None
) -> None:
    result = await service.evaluate(Evaluator(code, Language.JAVASCRIPT), row)
    assert result.error is None
    notes = [note.message for note in result.warnings if note.code == "rounded_integer"]
    assert [f" at {path}," in message for message in notes] == ([] if path is None else [True]), notes


@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", [Language.JAVASCRIPT, Language.TYPESCRIPT])
@pytest.mark.parametrize(("integers", "shown"), [("bigint", "bigint"), ("text", "string")])
async def test_javascript_gets_integers_exactly(
    service: Service, language: Language, integers: Any, shown: str
) -> None:
    code = (
        "export const evaluate = (inputs, outputs, trace) =>"
        f" typeof inputs.id === '{shown}' && String(inputs.id) === '{BEYOND}' && inputs.small === 7 && outputs === 1e22;\n"
    )
    evaluator = with_integers(Evaluator(code, language), integers)
    for filler in ("", "x" * (300 << 10)):
        result = await service.evaluate(evaluator, Row({"id": BEYOND, "small": 7, "filler": filler}, 1e22))
        assert (result.score, codes(result)) == (1.0, []), result.error


KEYS = """
export const evaluate = (inputs, outputs, trace) => ({ score: 1, keys: inputs.map((one) => Object.keys(one)), first: inputs[0] });
"""
ESCAPED = ("\\", '"', "\n", "\\n", "a\\", 'a"', "\u0000", "\\u0022", "plain", "é", "__proto__", "\\\\", "0")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", [Language.JAVASCRIPT, Language.TYPESCRIPT])
@pytest.mark.parametrize("isolation", Isolation)
async def test_keys_that_json_escapes_arrive_as_they_are(
    service: Service, language: Language, isolation: Isolation
) -> None:
    pairs = [[{"h": [], one: {"c": 0}}, {"h": 1, other: 2}] for one in ESCAPED for other in ESCAPED]
    rows = [Row(pair) for pair in pairs] + [Row([pair[1]]) for pair in pairs]
    results = await service.evaluate_batch(Evaluator(KEYS, language), rows, isolation=isolation)
    for row, result in zip(rows, results, strict=True):
        assert isinstance(row.inputs, list)
        assert result.error is None, result.error
        assert isinstance(result.value, dict)
        assert [sorted(keys) for keys in result.value["keys"]] == [sorted(one) for one in row.inputs]
        assert result.value["first"] == row.inputs[0]


@pytest.mark.parametrize("inputs", [{"filler": "x\n" * (200 << 10)}, {"id": BEYOND}])
async def test_escaped_keys_of_large_rows_and_beside_bigints_arrive(service: Service, inputs: dict[str, Json]) -> None:
    code = "export const evaluate = (inputs, outputs, trace) => inputs['\\\\'] === 1 && inputs['\"'] === 2 && outputs['\\n'] === 3;\n"
    evaluator = with_integers(Evaluator(code, Language.JAVASCRIPT), "bigint")
    result = await service.evaluate(evaluator, Row({**inputs, "\\": 1, '"': 2}, {"\\": 0, "\n": 3}, {"\\": 0}))
    assert (result.score, result.error) == (1.0, None)

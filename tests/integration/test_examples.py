"""The workbench's examples of evaluators give the right scores, in every language, on a real host."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evaluator_host
from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.types.evaluator import EvaluatorSettings, Row
from evaluator_host.types.outcome import EvaluationError
from tests.server import Server

FOLDER = Path(evaluator_host.__file__).parent / "web" / "ui" / "src" / "examples"
NAMES = json.loads((FOLDER / "order.json").read_text())
EXAMPLES = {name: json.loads((FOLDER / name / "example.json").read_text()) for name in NAMES}
SUFFIXES = {"python": "py", "javascript": "js", "typescript": "ts"}

Case = tuple[dict[str, Any], float | str]  # a row, with its score or the text of its error
MISSING: Case = ({"inputs": {}, "outputs": "Paris"}, "no correct_answer")


def answer(expected: Any, found: Any, score: float | str) -> Case:
    return ({"inputs": {"correct_answer": expected}, "outputs": found}, score)


def traced(score: float | str, *units: dict[str, Any], **inputs: float) -> Case:
    """Return a case with a trace: the root span has the first of these units, and each child span has another."""
    spans = [{"name": "s", "attributes": {"ag": {"metrics": {"unit": unit}}}, "children": []} for unit in units]
    root = {"a1": {**spans[0], "children": spans[1:]}}
    return ({"inputs": inputs, "outputs": "x", "trace": {"spans": root}}, score)


NO_TRACE: Case = ({"inputs": {}, "outputs": "x"}, "no trace with")
CALL = {"name": "f", "arguments": {"a": 1, "b": [2]}}
AS_TEXT = {"function": {"name": "f", "arguments": '{"b": [2], "a": 1}'}}

EDGES: dict[str, list[Case]] = {
    "first-steps": [answer("Paris", "Rome", 0), answer("", "", 1)],
    "contains": [MISSING, answer("Paris", "in PARIS now", 1), answer("Paris", None, 0), answer(4, 42, 1)],
    "number-tolerance": [
        MISSING,
        answer(10, "none", 0),
        answer(1000, "1,005 or so", 1),
        answer(1000, "1,020", 0),
        answer(-2, "it is -2", 1),
        answer(3, None, 0),
        answer("0", "0", 1),
        answer("1e-7", 1e-7, 1),
        answer(" +1.5e3 ", "1,500.", 1),
        *(answer(wrong, "0", "correct_answer is not a number") for wrong in ("about 3", "", None)),
        *(
            answer(odd, "16", "correct_answer is not a number")
            for odd in ("0x10", "1_6", "nan", "Infinity", True, [16])
        ),
        *(
            ({"inputs": {"correct_answer": 16, "tolerance": odd}, "outputs": "99"}, "tolerance is not a number")
            for odd in (None, "", "5 %", "1e999")
        ),
    ],
    "length-limit": [
        ({"inputs": {}, "outputs": None}, 1),
        ({"inputs": {"max_words": 2}, "outputs": "one two three four"}, 0.5),
    ],
    "personal-data": [
        ({"inputs": {}, "outputs": "ask ann@example.com"}, 0),
        ({"inputs": {}, "outputs": "call +44 20 7946 0958"}, 0),
        ({"inputs": {}, "outputs": None}, 1),
        ({"inputs": {}, "outputs": "in 2024 there were 12345"}, 1),
    ],
    "json-fields": [
        ({"inputs": {}, "outputs": "{}"}, "no expected_fields"),
        ({"inputs": {"expected_fields": {"a": 1, "b": 2}}, "outputs": {"a": 1}}, 0.5),
        ({"inputs": {"expected_fields": {"a": 1}}, "outputs": "not JSON"}, 0),
        ({"inputs": {"expected_fields": {"a": 1}}, "outputs": None}, 0),
        ({"inputs": {"expected_fields": {}}, "outputs": "{}"}, 1),
        ({"inputs": {"expected_fields": {"a": 1, "b": True}}, "outputs": '{"a": 1.0, "b": 1}'}, 0.5),
        ({"inputs": {"expected_fields": {"a": {"x": [1], "y": 2}}}, "outputs": '{"a": {"y": 2, "x": [1]}}'}, 1),
        ({"inputs": {"expected_fields": {"a": [1, 2]}}, "outputs": {"a": [1]}}, 0),
    ],
    "exact-match": [MISSING, answer("", "", 1), answer("Paris", None, 0), answer(1, True, 0), answer(42, 42, 1)],
    "ignore-whitespace": [MISSING, answer("a b", " A\u00a0\tb\n", 1), answer("ab", "a b", 0), answer("x", None, 0)],
    "json-equality": [
        MISSING,
        answer({"a": 1}, '{"a": tru', 0),
        answer({"a": 1}, '{"a": true}', 0),
        answer([1, 2], [1, 2, 3], 0),
        answer({"a": None}, {}, 0),
        answer({"0": 1}, [1], 0),
        answer("null", None, 1),
        answer("Infinity", "Infinity", 0),
    ],
    "json-schema": [
        ({"inputs": {}, "outputs": "{}"}, "no schema"),
        ({"inputs": {"schema": {"type": "nothing"}}, "outputs": "{}"}, "schema"),
        ({"inputs": {"schema": {"type": "object"}}, "outputs": "not JSON"}, 0),
        ({"inputs": {"schema": {"type": "object"}}, "outputs": '{"a": NaN}'}, 0),
        ({"inputs": {"schema": {"required": ["a", "b"]}}, "outputs": {}}, 0),
        ({"inputs": {"schema": False}, "outputs": 1}, 0),
    ],
    "regex": [
        ({"inputs": {}, "outputs": "x"}, "no pattern"),
        ({"inputs": {"pattern": "("}, "outputs": "x"}, "nterminated"),
        ({"inputs": {"pattern": "^4"}, "outputs": 42}, 1),
        ({"inputs": {"pattern": "x"}, "outputs": None}, 0),
    ],
    "jaccard": [MISSING, answer("...", "x", "no correct_answer"), answer("a b", "", 0), answer("Été", "été!", 1)],
    "edit-distance": [
        MISSING,
        answer("", "", 1),
        answer("abc", None, 0),
        answer("👍a", "👍", 0.5),
        answer("42", 42, 1),
    ],
    "rouge-overlap": [MISSING, answer("a b c", "c b a", 1 / 3), answer("a", None, 0), answer("a", "a a a", 0.5)],
    "tool-calls": [
        ({"inputs": {}, "outputs": None}, "no expected_tool_calls"),
        ({"inputs": {"expected_tool_calls": []}, "outputs": "just text"}, 1),
        ({"inputs": {"expected_tool_calls": [CALL]}, "outputs": "just text"}, 0),
        ({"inputs": {"expected_tool_calls": [CALL]}, "outputs": {"tool_calls": [AS_TEXT]}}, 1),
        ({"inputs": {"expected_tool_calls": [CALL]}, "outputs": [CALL, CALL]}, 2 / 3),
        ({"inputs": {"expected_tool_calls": [CALL]}, "outputs": [{"name": "f", "arguments": "{"}]}, 0),
    ],
    "latency-budget": [
        NO_TRACE,
        traced(0.5, {"duration": {"total": 4.0}}, {"duration": {"total": 3.0}}),
        traced(1, {"duration": {"total": 3.0}}, max_seconds=3),
        traced("no trace with durations", {}),
    ],
    "token-budget": [
        NO_TRACE,
        traced(0.5, {}, {"tokens": {"total": 1500}}, {"tokens": {"total": 500}}),
        traced(1, {"tokens": {"total": 400}}, {"tokens": {"total": 400}}, max_tokens=400),
        traced("no trace with token counts", {"tokens": {}}, {}),
    ],
    "cost": [NO_TRACE, traced(1, {"costs": {"total": 0}}), traced(0.25, {}, {"costs": {"total": 0.04}}, {})],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as started:
        yield started


def test_every_example_is_in_the_menu() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(NAMES)
    assert set(EDGES) == {name for name in NAMES if "contract" not in EXAMPLES[name]}


def test_every_platform_has_an_example_in_each_of_its_languages() -> None:
    shown: dict[str, set[str]] = {}
    for name, example in EXAMPLES.items():
        languages = {one for one, suffix in SUFFIXES.items() if (FOLDER / name / f"evaluator.{suffix}").exists()}
        shown.setdefault(example.get("contract", ""), set()).update(languages)
    platforms = [dialect for dialect in all_dialects() if dialect.native_row]
    assert {one.contract.value for one in platforms} == shown.keys() - {""}
    for dialect in platforms:
        assert {str(one) for one in dialect.languages} - {"typescript"} == shown[dialect.contract] - {"typescript"}


@pytest.mark.parametrize("dialect", [one for one in all_dialects() if one.native_row], ids=lambda one: one.contract)
def test_the_row_that_a_platform_shows_is_taken_as_its_own(dialect: Dialect) -> None:
    assert not isinstance(dialect.bind(Row(variables=dict(dialect.native_row)), EvaluatorSettings()), EvaluationError)


WRITTEN = [
    (name, language)
    for name in NAMES
    for language, suffix in SUFFIXES.items()
    if "contract" not in EXAMPLES[name] or (FOLDER / name / f"evaluator.{suffix}").exists()
]


@pytest.mark.sampled(92)
@pytest.mark.parametrize(("name", "language"), WRITTEN)
def test_an_example_scores_as_it_says(server: Server, name: str, language: str) -> None:
    example = EXAMPLES[name]
    evaluator = {
        "code": (FOLDER / name / f"evaluator.{SUFFIXES[language]}").read_text(),
        "language": language,
        "packages": example["packages"].get(language, []),
    }
    cases: list[Case] = [(example["row"], example["score"]), *EDGES.get(name, [])]
    body = {"evaluator": evaluator, "rows": [row for row, _ in cases], "isolation": "batch"}
    answered = server.client.post("/v1/evaluate/batch", json=body)
    assert answered.status_code == 200, answered.text
    for (row, expected), result in zip(cases, answered.json()["results"], strict=True):
        if isinstance(expected, str):
            assert expected in (result["error"] or {"message": "it scored"})["message"], (row, result)
        else:
            assert result["score"] == pytest.approx(expected), (row, result)
            expectable = {"prebound"} | ({"missing_outputs"} if row.get("outputs") is None else set())
            expectable |= {"empty_expected"} if (row.get("inputs") or {}).get("correct_answer") == "" else set()
            assert [one for one in result["warnings"] if one["code"] not in expectable] == []
            assert result["evaluator"]["contract"] == example.get("contract", "evaluate")

"""Pasted code with classes: the host finds and describes the evaluator, and says why other classes cannot be used."""

import json
import re

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings
from evaluator_host.types.outcome import ErrorCode
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.uipath.evaluators import CUSTOM, FIXTURES, IMPORTS, PATTERN, evaluator
from tests.dialects.uipath.test_contract import evaluated, refused

pytestmark = ON_BUBBLEWRAP


async def test_every_sort_of_justification_is_taken(service: Service) -> None:
    why = "from uipath.eval.evaluators import BaseEvaluatorJustification\nclass Why(BaseEvaluatorJustification):\n    pass\n"
    body = "return NumericEvaluationResult(score=1, details=Why(expected='a', actual='b'))"
    kinds = {"A": "str", "B": "type(None)", "C": "None", "D": "Why"}
    code = why + "".join(evaluator(body, justification=kind, name=name) for name, kind in kinds.items())
    report = await service.check(Evaluator(code))
    schemas = [found.types["justificationSchema"] for found in report.classes if found.types is not None]
    assert [schema.get("title", schema) for schema in schemas] == [{"type": "string"}, {}, {}, "Why"]
    result = await evaluated(service, code, settings=EvaluatorSettings(entry="C"))
    assert result.value["details"] == {"expected": "a", "actual": "b"}


@pytest.mark.long
async def test_of_several_evaluators_one_is_named_by_class_or_by_id(service: Service) -> None:
    two = evaluator("return NumericEvaluationResult(score=1)") + evaluator(
        "return NumericEvaluationResult(score=2)", name="F"
    )
    error = await refused(service, two)
    assert (error.code, error.message) == (ErrorCode.ENTRY_AMBIGUOUS, "the code defines 2 evaluators: E, F")
    for entry, score in (("E", 1), ("e-id", 1), ("f-id", 2)):
        assert (await evaluated(service, two, settings=EvaluatorSettings(entry=entry))).score == score
    missing = await refused(service, two, settings=EvaluatorSettings(entry="G"), contract=Contract("uipath"))
    assert "the code defines E, F" in missing.message
    derived = f"{evaluator('return NumericEvaluationResult(score=1)')}\nclass Own(E):\n    pass\n"
    assert (await service.check(Evaluator(derived))).reason == "Own, a BaseEvaluator of uipath"


FAULTS = (
    ("def get_evaluator_id", "def get_id", "entry_not_found", "Error getting evaluator ID: `E` does not define"),
    ("return 'e-id'", "return 1 / 0", "load_error", "Error getting evaluator ID: `E.get_evaluator_id()` raised"),
    ("return 'e-id'", "return None", "load_error", "Error getting evaluator ID: `E.get_evaluator_id()` returned None"),
    ("    @classmethod\n", "", "load_error", "Error getting evaluator ID: `E.get_evaluator_id()` raised"),
    ("def evaluate", "def evaluates", "entry_not_found", "`E` does not define `evaluate`"),
    ("Config[ECriteria]", "Config[Other]", "load_error", "Type inconsistency in E: Config EConfig expects criteria type Other"),
    ("[ECriteria, EConfig, str]", "[ECriteria, EConfig, int]", "load_error", "Invalid justification type"),
    ("[ECriteria, EConfig, str]", "", "load_error", "No config type given in E"),
    ("    name: str = 'E'\n", "    size: int\n", "binding_error", "config.name: Field required; config.size: Field required"),
)  # fmt: skip


async def test_classes_that_do_not_hold_together_are_refused_in_the_documented_words(service: Service) -> None:
    code = f"{IMPORTS}\nclass Other(BaseEvaluationCriteria):\n    pass\n"
    source = evaluator("return NumericEvaluationResult(score=1)")
    for at, (was, becomes, _, _) in enumerate(FAULTS):
        assert was in source
        named = re.sub(r"\bE(?=Criteria|Config|\b)", f"E{at}", source.replace(was, becomes))
        code += named.removeprefix(IMPORTS)
    report = await service.check(Evaluator(code))
    for found, (at, (_, _, expected, message)) in zip(report.classes, enumerate(FAULTS), strict=True):
        assert found.error is not None
        assert found.error.code == expected, message
        assert message in re.sub(rf"\bE{at}(?=Criteria|Config|\b)", "E", found.error.message)
    alone = await refused(service, source.replace("Config[ECriteria]", "Config[BaseEvaluationCriteria]"))
    assert alone.message.startswith("Type inconsistency in E")


@pytest.mark.parametrize(
    ("was", "becomes", "code", "message"),
    [
        ("async def evaluate", "def evaluate", "invalid_result", "can't be used in 'await' expression"),
        ("(BaseEvaluator[ECriteria, EConfig, str])", "", "entry_not_found", "could not find a class inheriting from"),
    ],
)
async def test_a_class_that_is_not_an_evaluator_is_refused(
    service: Service, was: str, becomes: str, code: str, message: str
) -> None:
    source = evaluator("return NumericEvaluationResult(score=1)")
    error = await refused(service, source.replace(was, becomes), contract=Contract("uipath"))
    assert (error.code, message in error.message) == (code, True)


async def test_check_describes_every_class_the_faulty_ones_too(service: Service) -> None:
    faulty = evaluator("return 1", name="F").replace("def get_evaluator_id", "def get_id")
    report = await service.check(Evaluator(CUSTOM + PATTERN + faulty))
    assert [problem.code for problem in report.problems] == [ErrorCode.ENTRY_AMBIGUOUS]
    custom, pattern, last = report.classes
    for found, name in ((custom, "my-custom-evaluator"), (pattern, "pattern-comparison-evaluator")):
        golden = json.loads((FIXTURES / f"{name}.json").read_text("utf-8"))
        assert found.types == json.loads((FIXTURES / f"{name}-types.json").read_text("utf-8"))
        assert (found.id, found.docstring, found.config) == (
            golden["id"], golden["description"], golden["evaluatorConfig"]
        )  # fmt: skip
        assert (found.error, found.abstract) == (None, ())
    assert CUSTOM.splitlines()[(custom.line or 0) - 1].startswith("class MyCustomEvaluator")
    assert (last.name, last.abstract, last.types, last.config) == ("F", ("get_evaluator_id",), None, None)
    assert last.error is not None
    assert last.error.message == "Error getting evaluator ID: `F` does not define `get_evaluator_id`"
    assert (await service.check(Evaluator("def evaluate(inputs, outputs, trace): return 1.0"))).classes == ()

"""If an evaluator pins UiPath's package, it gets that package, not the host's small replacement. This file lists how
two releases of the package differ from the replacement.

Each package set has about 60 packages. The sets are installed once, into the data directory that all test runs share.
"""

import json
import re
from typing import Any, Final, cast

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.preparer import SdkNeeds, sdk_needs
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Limits, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.uipath.evaluators import CUSTOM, FIXTURES, PATTERN, PATTERN_ARGUMENTS, PATTERN_SPAN

pytestmark = [pytest.mark.differential, ON_BUBBLEWRAP]

SCENARIOS: Final = (FIXTURES / "scenarios.py").read_text("utf-8")
WHERE: Final = "import uipath.eval.models\nprint(uipath.eval.models.__file__)\n"
OLD, NEW = "uipath==2.7.0", "uipath==2.14.44"
TRACE: Final[dict[str, Any]] = {"spans": [PATTERN_SPAN]}
SHIPPED: Final = cast("SdkNeeds", sdk_needs(Evaluator("", contract=Contract("uipath"))))
# the same pins are used in every set
PYDANTIC: Final = [pin for pin in SHIPPED.pins if pin.startswith("pydantic==")]

NO_ERROR = {"ErrorEvaluationResult": {"details": None, "evaluation_time": None, "score": 0.0, "score_type": 2}}
NO_DETAILS = {"details": {"BaseModel": {}}, "evaluation_time": None, "score": 1.0, "score_type": 1}
INVALID = ["ValidationError", ""]
UNJUSTIFIED = [
    "UiPathEvaluationError",
    "Python.INVALID_JUSTIFICATION_TYPE: Invalid justification type <class 'NoneType'> in Unjustified",
]
LOST: Final = {"error by error=": NO_ERROR, "details of a dict": {"NumericEvaluationResult": NO_DETAILS}}


def no(what: str, name: str) -> list[str]:
    return ["AttributeError", f"{what} has no attribute '{name}'"]


def calls(kind: str, *held: dict[str, Any]) -> list[dict[str, Any]]:
    return [{kind: one} for one in held]


# for each release: results that differ from those of the host's small replacement
DIFFERENT: Final[dict[str, dict[str, Any]]] = {
    OLD: {
        **LOST,
        "new name written": ["KeyError", "'workload_output'"],
        "execution by new names": no("module 'uipath.eval.models'", "WorkloadExecution"),
        "made with evaluatorConfig": INVALID,
        "names on top": ["Shown", ""],
        "type id": no("'Base' object", "evaluator_type_id"),
        "justified by a number": INVALID,
        "tool call": {"ToolCall": {"args": {"a": 1}, "name": "n"}},
        "extract_tool_calls": calls(
            "ToolCall",
            *({"args": args, "name": name} for name, args in (("A", {}), ("B", {"x": None}), ("C", {}), ("again", {}))),
        ),
        "extract_tool_calls_names": ["A", "B", "C", "again"],
        "extract_tool_calls_outputs": calls(
            "ToolOutput",
            *({"name": name, "output": out} for name, out in (("A", "hi"), ("B", "plain"), ("C", ""), ("again", "5"))),
        ),
        "without arguments": ["TypeError", "extract_tool_calls() got an unexpected keyword argument 'include_args'"],
        "reduced": no("'Base' object", "reduce_scores"),
        "span as JSON": ["ModuleNotFoundError", "No module named 'uipath.eval.runtime'"],
        **{
            f"written {kind}": no("module 'uipath.eval.models'", "EvaluationResultDto")
            for kind in ("NUMERICAL", "BOOLEAN", "ERROR")
        },
    },
    NEW: {
        **LOST,
        "execution by old names": INVALID,
        "old name written": ["KeyError", "'agent_output'"],
        "made with config": INVALID,
        "types of Unjustified": UNJUSTIFIED,
        "no justification": UNJUSTIFIED,
    },
}


RELEASES: Final = "dialects/uipath.md#uipath-evaluators-and-projects"
TRACES: Final = "dialects/uipath.md#rows"
EXPLAINED: Final = {  # for each pattern of names: the page that explains the difference
    r"(new|old) name written|execution by (new|old) names|made with (config|evaluatorConfig)|names on top|type id": RELEASES,
    r"error by error=|details of a dict|justified by a number|types of Unjustified|no justification|reduced|span as JSON|written .*": RELEASES,
    r"tool call|extract_tool_calls.*|without arguments": TRACES,
}


def test_each_difference_names_the_section_that_explains_it(service: Service) -> None:
    names = {name for different in DIFFERENT.values() for name in different}
    explained = {name: [one for one in EXPLAINED if re.fullmatch(one, name)] for name in names}
    assert [name for name, found in explained.items() if len(found) != 1] == []
    assert {one for found in explained.values() for one in found} == EXPLAINED.keys()


async def loaded(
    service: Service, code: str, *pins: str, entry: str | None = None, criteria: dict[str, Any]
) -> EvaluationResult:
    evaluator = Evaluator(
        code,
        packages=(*pins, *PYDANTIC) if pins else (),
        settings=EvaluatorSettings(entry=entry),
        limits=Limits(log_kb=256),
    )
    return await service.evaluate(evaluator, Row({"query": "q"}, {"answer": "a"}, TRACE, criteria=criteria))


def printed(result: EvaluationResult) -> dict[str, Any]:
    found = dict(line.split(" = ", 1) for line in result.logs.stdout.splitlines() if " = " in line)
    return {name: json.loads(told) for name, told in found.items()}


@pytest.mark.timeout(900)
async def test_evaluators_do_the_same_in_both_releases_but_for_what_is_documented(service: Service) -> None:
    criteria = {"expectedValues": ["DataProcessingTool"]}
    light = await loaded(service, WHERE + SCENARIOS, entry="last-id", criteria=criteria)
    assert light.logs.stdout.startswith("/opt/runner/dialects/uipath/modules/")
    expected = printed(light)
    assert len(expected) >= 70
    assert (light.score, light.passed) == (1.0, True)
    assert json.loads(light.reason or "") == [json.loads(PATTERN_ARGUMENTS), {"query": "q"}, "Shown", "last-id"]
    for release, different in DIFFERENT.items():
        real = await loaded(service, WHERE + SCENARIOS, release, entry="last-id", criteria=criteria)
        assert real.logs.stdout.startswith("/opt/packages/")
        found = printed(real)
        assert {name: found[name] for name in expected if found[name] != expected[name]} == different, release
        assert found.keys() == expected.keys()
        assert (real.score, real.passed, real.reason) == (light.score, light.passed, light.reason)
        assert "threads_at_load" not in {note.code for note in real.warnings}, (
            "the package must not start threads, because each row would then load it again"
        )


async def test_names_that_a_pinned_release_dropped_are_explained(service: Service) -> None:
    result = await loaded(service, PATTERN, NEW, criteria={"expectedOutput": ["alpha"]})
    assert result.error is not None
    assert result.error.message == "'WorkloadExecution' object has no attribute 'agent_trace'"
    assert "without a pin of uipath, both names work" in (result.error.traceback or "")


async def test_check_describes_the_classes_of_a_pinned_release(service: Service) -> None:
    report = await service.check(Evaluator(CUSTOM, packages=(NEW, *PYDANTIC)))
    golden = json.loads((FIXTURES / "my-custom-evaluator.json").read_text("utf-8"))
    (found,) = report.classes
    assert found.types == json.loads((FIXTURES / "my-custom-evaluator-types.json").read_text("utf-8"))
    assert (found.error, found.id, found.config) == (None, golden["id"], golden["evaluatorConfig"])

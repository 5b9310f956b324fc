"""Test cases may simulate an agent's functions: simulation by mockito works in a real sandbox, and simulation by a
model is refused.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.outcome import EvaluationResult
from evaluator_host.vendors.uipath.agent import AGENT_LIMITS, AgentFunction, agent_program
from evaluator_host.vendors.uipath.eval_set import parse_eval_set
from evaluator_host.vendors.uipath.evaluation import run_agent
from tests.conftest import ON_BUBBLEWRAP

AGENT = """
from uipath.eval.mocks import mockable


@mockable(name="rate")
def rate_of(currency: str, day: str = "today") -> float:
    return 9.0


@mockable()
async def fetch(url: str) -> str:
    return "real"


async def main(input):
    try:
        rates = [rate_of(one) for one in input["currencies"]]
    except Exception as error:
        return {"error": type(error).__name__ + ": " + str(error)}
    return {"rates": rates, "page": await fetch("https://x")}
"""


def case_of(name: str, currencies: list[str], strategy: object) -> dict[str, object]:
    return {
        "id": name,
        "inputs": {"currencies": currencies},
        "evaluationCriterias": {"E": None},
        "mockingStrategy": strategy,
    }


def mockito(*behaviors: object) -> dict[str, object]:
    return {"type": "mockito", "config": list(behaviors)}


ANY = {"function": "rate", "then": [{"type": "return", "value": 1}, {"type": "return", "value": 2}]}
EUR = {"function": "rate", "arguments": {"args": ["EUR"]}, "then": [{"type": "return", "value": 1.1}]}
MATCHER = {
    "function": "rate",
    "arguments": {"args": [{"_target_": "mockito.any_"}]},
    "then": [{"type": "return", "value": 7}],
}
RAISES = {"function": "rate", "then": [{"type": "raise", "value": {"_target_": "builtins.TimeoutError"}}]}
PAGE = {"function": "fetch", "then": [{"type": "return", "value": "simulated"}]}
CASES = [
    case_of("none", ["EUR"], None),
    case_of("in order", ["A", "B", "C", "EUR"], mockito(ANY, EUR)),
    case_of("a matcher", ["A"], mockito(MATCHER, PAGE)),
    case_of("no fit", ["USD"], mockito(EUR)),
    case_of("raises", ["USD"], mockito(RAISES)),
    case_of("llm", ["USD"], {"type": "llm", "prompt": "p", "toolsToSimulate": [{"name": "rate"}]}),
]


@pytest.mark.long
@ON_BUBBLEWRAP
async def test_a_test_case_sets_what_functions_answer(service: Service, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(AGENT)
    found = parse_eval_set({"version": "1.0", "evaluatorRefs": ["E"], "evaluations": CASES})
    program = agent_program(tmp_path, AgentFunction("main.py", "main"), packages=(), limits=AGENT_LIMITS)

    async def evaluate(evaluator: Evaluator, rows: Sequence[Row]) -> list[EvaluationResult]:
        return await asyncio.gather(*(service.evaluate(evaluator, row) for row in rows))

    ran = await run_agent(program, found.items, evaluate)
    outputs = {name: one.output for name, one in ran.items()}
    assert outputs["none"] == {"rates": [9.0], "page": "real"}, ran["none"].error
    assert outputs["in order"] == {"rates": [1.0, 2.0, 2.0, 1.1], "page": "real"}
    assert outputs["a matcher"] == {"rates": [7.0], "page": "simulated"}
    assert "not for these arguments" in outputs["no fit"]["error"]
    assert outputs["raises"]["error"].startswith("UiPathMockResponseGenerationError")
    assert "asks a model" in (ran["llm"].error or "")
    assert [note for note in found.notes if "mockingStrategy" in note] == [
        f"{ran['llm'].error}: run the agent elsewhere, and give the recorded execution (--executions)"
    ]


@pytest.mark.parametrize(
    "behavior", [{"then": []}, {"function": "f", "then": []}, {"function": "f", "then": [{"type": "x"}]}]
)
def test_a_behavior_that_cannot_be_read_is_named_by_its_path(behavior: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_eval_set({"version": "1.0", "evaluations": [case_of("a", [], mockito(ANY, behavior))]})
    assert refused.value.problems[0].field.startswith("$.evaluations[0].mockingStrategy.config[1]")

"""A project in UiPath's layout that tests register and run: an agent in three files, two evaluators, two eval sets."""

import json
from pathlib import Path
from typing import Any, Final

from tests.dialects.uipath.eval_sets import DOCUMENTED
from tests.dialects.uipath.evaluators import CUSTOM, FIXTURES, PATTERN, PATTERN_ARGUMENTS

AGENT: Final = """\
import asyncio
from dataclasses import dataclass

from tools import DataProcessingTool, described


@dataclass
class Input:
    query: str
    fails: bool = False


@dataclass
class Output:
    answer: str


async def main(input: Input) -> Output:
    await asyncio.sleep(0)
    DataProcessingTool(**ARGUMENTS)
    if input.fails:
        raise RuntimeError("agent boom")
    return Output(answer=described(input.query))


ARGUMENTS = %s
"""
TOOLS: Final = """\
from pathlib import Path

from uipath.tracing import traced


@traced(span_type="tool")
def DataProcessingTool(FileName, InputData):
    return {"content": "ok"}


def described(query):
    return Path("greeting.txt").read_text() + query
"""
PATTERNS: Final[dict[str, Any]] = {
    "version": "1.0",
    "id": "pattern-set",
    "name": "Pattern Set",
    "evaluatorConfigs": [{"ref": "PatternComparisonEvaluator", "weight": 3.0}, "MyCustomEvaluator"],
    "evaluations": [
        {
            "id": "test-1",
            "name": "Test 1",
            "inputs": {"query": "Rome"},
            "evaluationCriterias": {
                "PatternComparisonEvaluator": {"expectedOutput": ["alpha", "beta", "delta"]},
                "MyCustomEvaluator": {"expectedValues": ["hello rome"]},
            },
        },
        {
            "id": "test-2",
            "name": "Test 2",
            "inputs": {"query": "Oslo"},
            "evaluationCriterias": {
                "PatternComparisonEvaluator": {"expectedOutput": ["alpha", "beta", "gamma"], "expectedOuput": []}
            },
        },
        {
            "id": "test-3",
            "name": "Test 3",
            "inputs": {"query": "Lima", "fails": True},
            "evaluationCriterias": {"PatternComparisonEvaluator": {"expectedOutput": ["alpha"]}},
        },
    ],
}

SHARED: Final = '''\
"""How much of the expected words an answer has."""

from __future__ import annotations

from models import Answer
from %s.evaluators.custom.wording import words
from scoring import share
from uipath.eval.evaluators import BaseEvaluationCriteria, BaseEvaluator, BaseEvaluatorConfig
from uipath.eval.models import NumericEvaluationResult


class SharedCriteria(BaseEvaluationCriteria):
    expected: str = ""


class SharedConfig(BaseEvaluatorConfig[SharedCriteria]):
    name: str = "SharedEvaluator"


class SharedEvaluator(BaseEvaluator[SharedCriteria, SharedConfig, str]):
    async def evaluate(self, agent_execution, evaluation_criteria):
        answer = Answer.model_validate(agent_execution.agent_output)
        return NumericEvaluationResult(score=share(words(evaluation_criteria.expected), words(answer.answer)))

    @classmethod
    def get_evaluator_id(cls) -> str:
        return "SharedEvaluator"
'''
SHARED_MODULES: Final = {
    "models.py": "from pydantic import BaseModel\n\nclass Answer(BaseModel):\n    answer: str\n",
    "scoring/__init__.py": "from .shares import share\n",
    "scoring/shares.py": "def share(wanted, found):\n    return len(wanted & found) / len(wanted)\n",
}
WORDING: Final = "def words(text):\n    return set(text.lower().split())\n"
SHARED_SET: Final[dict[str, Any]] = {
    "version": "1.0",
    "id": "shared",
    "name": "Shared",
    "evaluatorRefs": ["SharedEvaluator"],
    "evaluations": [
        {
            "id": f"test-{expected}",
            "name": expected,
            "inputs": {"query": "Rome"},
            "evaluationCriterias": {"SharedEvaluator": {"expected": expected}},
        }
        for expected in ("hello rome", "hello oslo")
    ],
}


def make_project(root: Path, folder: str = "evals") -> Path:
    """Write the project with its evaluators registered, and return the project's folder."""
    arguments = repr(json.loads(PATTERN_ARGUMENTS))
    write(root / "uipath.json", json.dumps({"functions": {"main": "main.py:main"}}))
    write(root / "main.py", AGENT % arguments)
    write(root / "tools.py", TOOLS)
    write(root / "greeting.txt", "Hello ")
    evaluators = root / folder / "evaluators"
    write(evaluators / "custom" / "my_custom_evaluator.py", CUSTOM)
    write(evaluators / "custom" / "pattern_comparison_evaluator.py", PATTERN)
    for name in ("my-custom-evaluator.json", "pattern-comparison-evaluator.json"):
        write(evaluators / name, (FIXTURES / name).read_text("utf-8"))
    write(root / folder / "eval_sets" / "documented.json", json.dumps(DOCUMENTED))
    write(root / folder / "eval_sets" / "patterns.json", json.dumps(PATTERNS))
    return root


def make_shared(root: Path, folder: str = "evals") -> Path:
    """Write the project and an evaluator that imports the project's modules but is not registered; return its file."""
    make_project(root, folder)
    for name, text in SHARED_MODULES.items():
        write(root / name, text)
    custom = root / folder / "evaluators" / "custom"
    write(custom / "wording.py", WORDING)
    write(custom / "shared.py", SHARED % folder)
    write(root / folder / "eval_sets" / "shared.json", json.dumps(SHARED_SET))
    return custom / "shared.py"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")

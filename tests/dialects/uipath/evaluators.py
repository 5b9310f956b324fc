"""Evaluators for UiPath that tests paste: some like the evaluators in UiPath's documentation, and some small
evaluators.
"""

import json
from pathlib import Path
from textwrap import dedent, indent
from typing import Any, Final

FIXTURES: Final = Path(__file__).parent / "fixtures"
GOLDEN: Final[dict[str, Any]] = json.loads((FIXTURES / "golden_2.7.0.json").read_text("utf-8"))

IMPORTS: Final = """\
from uipath.eval.evaluators import BaseEvaluationCriteria, BaseEvaluator, BaseEvaluatorConfig
from uipath.eval.models import (
    AgentExecution, BooleanEvaluationResult, ErrorEvaluationResult, EvaluationResult, NumericEvaluationResult
)
"""

CUSTOM: Final = '''\
from pydantic import Field
from uipath.eval.evaluators import BaseEvaluationCriteria

class MyEvaluationCriteria(BaseEvaluationCriteria):
    """Criteria for my custom evaluator."""

    expected_values: list[str] = Field(default_factory=list)

from uipath.eval.evaluators import BaseEvaluatorConfig

class MyEvaluatorConfig(BaseEvaluatorConfig[MyEvaluationCriteria]):
    """Configuration for my custom evaluator."""

    name: str = "MyCustomEvaluator"
    threshold: float = 0.8
    case_sensitive: bool = False

from typing import List
from uipath.eval.evaluators import BaseEvaluator
from uipath.eval.models import AgentExecution, NumericEvaluationResult
import json

class MyCustomEvaluator(
    BaseEvaluator[MyEvaluationCriteria, MyEvaluatorConfig, str]
):
    """Custom evaluator with domain-specific logic.

    This evaluator performs custom validation on agent outputs
    by comparing extracted data against expected values.
    """

    async def evaluate(
        self,
        agent_execution: AgentExecution,
        evaluation_criteria: MyEvaluationCriteria
    ) -> NumericEvaluationResult:
        found, wanted = self._values(agent_execution), evaluation_criteria.expected_values
        if not self.evaluator_config.case_sensitive:
            found, wanted = ([value.lower() for value in values] for values in (found, wanted))
        share = len(set(found) & set(wanted)) / len(set(wanted)) if wanted else 1.0
        told = {"found": found, "passed": share >= self.evaluator_config.threshold, "name": self.name}
        return NumericEvaluationResult(score=share, details=json.dumps(told))

    def _values(self, agent_execution: AgentExecution) -> List[str]:
        output = agent_execution.agent_output
        return [str(value) for value in output.values()] if isinstance(output, dict) else [output]

    @classmethod
    def get_evaluator_id(cls) -> str:
        return "MyCustomEvaluator"
'''

PATTERN: Final = '''\
"""Custom evaluator for pattern comparison."""
import json
from typing import List

from pydantic import Field
from uipath.eval.evaluators import BaseEvaluator
from uipath.eval.evaluators.base_evaluator import (
    BaseEvaluationCriteria,
    BaseEvaluatorConfig,
)
from uipath.eval.models import EvaluationResult, NumericEvaluationResult
from uipath.eval.models import AgentExecution
from uipath.eval._helpers.evaluators_helpers import extract_tool_calls


class PatternEvaluatorCriteria(BaseEvaluationCriteria):
    """Evaluation criteria for pattern evaluator."""

    expected_output: List[str] = Field(default_factory=list)


class PatternEvaluatorConfig(BaseEvaluatorConfig[PatternEvaluatorCriteria]):
    """Configuration for pattern evaluator."""

    name: str = "PatternComparisonEvaluator"


class PatternComparisonEvaluator(
    BaseEvaluator[PatternEvaluatorCriteria, PatternEvaluatorConfig, str]
):
    """Custom evaluator for pattern comparison.

    Extends BaseEvaluator to extract data from specific tool calls and
    validates patterns found against expected patterns using Jaccard
    similarity (intersection over union).
    """

    async def evaluate(self, agent_execution: AgentExecution, evaluation_criteria: PatternEvaluatorCriteria) -> EvaluationResult:
        expected, actual = evaluation_criteria.expected_output, self._patterns(agent_execution)
        both, either = set(expected) & set(actual), set(expected) | set(actual)
        details = {
            "expected_patterns": expected, "actual_patterns": actual, "matching_count": len(both),
            "expected_count": len(expected), "actual_count": len(actual),
        }
        return NumericEvaluationResult(score=len(both) / len(either) if either else 1.0, details=json.dumps(details))

    def _patterns(self, agent_execution: AgentExecution) -> List[str]:
        for call in extract_tool_calls(agent_execution.agent_trace):
            if call.name == "DataProcessingTool" and str(call.args.get("FileName", "")).startswith("PatternData"):
                return [line.strip() for line in str(call.args["InputData"]).split("\\n")[1:] if line.strip()]
        return []

    @classmethod
    def get_evaluator_id(cls) -> str:
        return "PatternComparisonEvaluator"
'''

PATTERN_ARGUMENTS: Final = json.dumps({"FileName": "PatternData.csv", "InputData": "header\nalpha\n beta \n\ngamma"})
PATTERN_SPAN: Final = {
    "name": "call",
    "start_time": 1_700_000_000_000_000_000,
    "end_time": 1_700_000_001_000_000_000,
    "attributes": {
        "tool.name": "DataProcessingTool",
        "input.value": PATTERN_ARGUMENTS,
        "output.value": '{"content": "ok"}',
    },
}


def evaluator(body: str, *, config: str = "", criteria: str = "", justification: str = "str", name: str = "E") -> str:
    """Return the code of an evaluator `E` whose `evaluate` has this body, which can use `execution` and `criteria`."""
    return (
        f"{IMPORTS}\n"
        f"class {name}Criteria(BaseEvaluationCriteria):\n    text: str = ''\n{indent(dedent(criteria), '    ')}\n"
        f"class {name}Config(BaseEvaluatorConfig[{name}Criteria]):\n    name: str = '{name}'\n"
        f"{indent(dedent(config), '    ')}\n"
        f"class {name}(BaseEvaluator[{name}Criteria, {name}Config, {justification}]):\n"
        f"    async def evaluate(self, execution, criteria):\n{indent(dedent(body), '        ')}\n"
        f"    @classmethod\n    def get_evaluator_id(cls):\n        return '{name.lower()}-id'\n"
    )

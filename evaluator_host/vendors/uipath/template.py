"""The code that `uipath add` writes: an evaluator that works unchanged with every release of UiPath."""

import keyword
import re
from typing import Final

from evaluator_host.types.errors import InvalidRequest

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9 _-]{0,79}")

_TEMPLATE: Final = '''\
"""{class_name}: scores whether the agent said what was expected."""

import json
from typing import Any

from uipath.eval.evaluators import BaseEvaluationCriteria, BaseEvaluator, BaseEvaluatorConfig
from uipath.eval.models import EvaluationResult, NumericEvaluationResult


class {stem}Criteria(BaseEvaluationCriteria):
    """The values that differ from test case to test case; eval sets give them in camelCase: expectedText."""

    expected_text: str


class {stem}Config(BaseEvaluatorConfig[{stem}Criteria]):
    """The values that all test cases share; set them in the evaluator's JSON file."""

    name: str = "{class_name}"
    case_sensitive: bool = False


class {class_name}(BaseEvaluator[{stem}Criteria, {stem}Config, str]):
    """1.0 when the expected text is in the agent's output, else 0.0."""

    @classmethod
    def get_evaluator_id(cls) -> str:
        """Return the id by which eval sets name this evaluator."""
        return "{class_name}"

    async def evaluate(self, execution: Any, evaluation_criteria: {stem}Criteria) -> EvaluationResult:
        """Score one execution: execution.agent_input, output_of(execution), spans_of(execution)."""
        said = json.dumps(output_of(execution), ensure_ascii=False)
        expected = evaluation_criteria.expected_text
        if not self.evaluator_config.case_sensitive:
            said, expected = said.lower(), expected.lower()
        found = expected in said
        return NumericEvaluationResult(
            score=1.0 if found else 0.0,
            details=json.dumps({{"expected": expected, "found": found}}, ensure_ascii=False),
        )


def output_of(execution: Any) -> Any:
    """Return what the agent produced: agent_output until UiPath 2.11, workload_output since 2.12."""
    return execution.agent_output if hasattr(execution, "agent_output") else execution.workload_output


def spans_of(execution: Any) -> Any:
    """Return the spans of the run, for extract_tool_calls: agent_trace until UiPath 2.11, workload_trace since 2.12."""
    return execution.agent_trace if hasattr(execution, "agent_trace") else execution.workload_trace
'''


def class_name(name: str) -> str:
    """Make a class name from an evaluator's name: `my-custom-evaluator` and `my-custom` become `MyCustomEvaluator`.

    Raises:
      InvalidRequest: the name cannot become a Python class name.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"{name!r} is not a valid name for an evaluator; start with a letter, then use letters, digits, dashes or "
            "underscores, as in my-custom-evaluator"
        )
    named = "".join(word[0].upper() + word[1:] for word in _WORDS.findall(name))
    return named if named.endswith("Evaluator") else f"{named}Evaluator"


def file_name(name: str) -> str:
    """Make a file name from a class name: `MyCustomEvaluator` becomes `my_custom_evaluator.py`."""
    stem = "_".join(word.lower() for word in _WORDS.findall(name))
    return f"{stem}_.py" if keyword.iskeyword(stem) else f"{stem}.py"


def kebab(name: str) -> str:
    """Return UiPath's file name for a class. Every capital begins a word: `JSONEval` becomes `j-s-o-n-eval`."""
    return "".join(f"-{letter}" if at and letter.isupper() else letter for at, letter in enumerate(name)).lower()


def evaluator_code(name: str) -> str:
    """Return the code of a new evaluator.

    Raises:
      InvalidRequest: the name cannot become a Python class name.
    """
    named = class_name(name)
    return _TEMPLATE.format(class_name=named, stem=named.removesuffix("Evaluator") or named)

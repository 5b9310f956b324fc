"""Metrics for NeMo Evaluator that tests paste: a metric like the example in its documentation, and small metrics."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

GOLDEN: Final = Path(__file__).parent / "fixtures"
RESULT: Final[dict[str, Any]] = json.loads((GOLDEN / "result.json").read_text("utf-8"))
SUMMARY: Final = (GOLDEN / "summary.txt").read_text("utf-8")
ROWS: Final = [{name: one["item"][name] for name in one["item"] if name != "output"} for one in RESULT["row_scores"]]

REAL: Final = (
    *("nemo-platform==0.3.0", "cloudpickle==3.1.2"),
    # these are the packages that NeMo's SDK imports
    *("jinja2==3.1.6", "jsonpath-ng==1.7.0", "jsonschema==4.25.1", "openai==2.8.0"),
    *("pyarrow==22.0.0", "pydantic==2.12.4", "sacrebleu==2.5.1"),
)

IMPORTS: Final = "from nemo_evaluator_sdk import Metric, MetricInput, MetricOutput, MetricOutputSpec, MetricResult\n"

EXPRESSIONS: Final = f"""\
import ast
import math
import operator

{IMPORTS}

class ArithmeticExpressionCorrectnessMetric(Metric):
    type = "arithmetic-expression-correctness"

    def output_spec(self): ...

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult: ...


OPERATORS: dict[type, object] = {{
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.USub: operator.neg,
}}


def value_of(node: ast.AST) -> float:
    match node:
        case ast.Expression(body=body):
            return value_of(body)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)](value_of(left), value_of(right))
    raise ValueError(f"unsupported: {{type(node).__name__}}")


def outputs(valid: bool, correct: bool) -> MetricResult:
    found = {{"valid_expression": valid, "correct_value": correct}}
    return MetricResult(outputs=[MetricOutput(name=name, value=value) for name, value in found.items()])


class ArithmeticExpressionCorrectnessMetric(Metric):
    type = "arithmetic-expression-correctness"

    def output_spec(self) -> list[MetricOutputSpec]:
        return [MetricOutputSpec.boolean("valid_expression"), MetricOutputSpec.boolean("correct_value")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        data = metric_input.row.data
        try:
            value = value_of(ast.parse((metric_input.candidate.output_text or "").strip(), mode="eval"))
        except (SyntaxError, ValueError):
            return outputs(False, False)
        tolerance = float(data.get("tolerance", 1e-6))
        return outputs(True, math.isclose(value, float(data["expected"]), rel_tol=tolerance, abs_tol=tolerance))
"""

EVALUATION: Final = f"""\
{EXPRESSIONS}

from nemo_evaluator_sdk import Evaluator, FieldMapping, RunConfig

metric = ArithmeticExpressionCorrectnessMetric()
result = Evaluator().run_sync(
    metrics=metric,
    dataset={ROWS!r},
    config=RunConfig(parallelism=1),
    field_mapping=FieldMapping(output="model_expression"),
)
"""


def metric(body: str, spec: str = 'MetricOutputSpec.boolean("p")', *, before: str = "") -> str:
    """Return a module with one metric, `m`, whose `compute_scores` has this body. In the body, `text` and `data` are
    values of the row.
    """
    lines = dedent(body).strip().replace("\n", "\n        ")
    return f"""{before}{IMPORTS}

class M(Metric):
    type = "m"

    def output_spec(self):
        return [{spec}]

    async def compute_scores(self, metric_input):
        text, data = metric_input.candidate.output_text, metric_input.row.data
        {lines}
"""


def returning(value: str, spec: str = 'MetricOutputSpec.boolean("p")') -> str:
    """Return a module with a metric that has a single output, `p`, whose value is this expression."""
    return metric(f'return MetricResult(outputs=[MetricOutput(name="p", value={value})])', spec)


# program that pickles a metric as the SDK does in a bundle; the metric's only output is the minor version of its Python
PICKLER: Final = """
import base64, sys
import cloudpickle
import nemo_evaluator_sdk

CODE = '''
from nemo_evaluator_sdk import *
class Minor(Metric):
    type = "minor"
    def output_spec(self):
        return [MetricOutputSpec.discrete_score("p")]
    async def compute_scores(self, metric_input):
        import sys
        return MetricResult(outputs=[MetricOutput(name="p", value=sys.version_info[1])])
'''

def evaluate(inputs, outputs, trace):
    names = {"__name__": "__main__"}
    exec(CODE, names)
    return {"score": 1, "reason": base64.b64encode(cloudpickle.dumps(names["Minor"]())).decode()}
"""

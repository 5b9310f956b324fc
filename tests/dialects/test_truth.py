"""If a row has the expected answer in a column that the dialect does not read, the result has a warning, unless the
code gets the answer anyway.
"""

import textwrap

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import ON_BUBBLEWRAP

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
COMPARES: list[tuple[str, Language, str]] = [  # evaluators that score 1 if the output is the expected answer
    ("agentcore", PYTHON, """
        from bedrock_agentcore.evaluation.custom_code_based_evaluators import EvaluatorOutput, custom_code_based_evaluator

        @custom_code_based_evaluator()
        def handler(input, context):
            said = input.session_spans[0]["attributes"]["gen_ai.output"]
            wanted = [one.expected_response_text for one in input.reference_inputs]
            return EvaluatorOutput(value=float(said in wanted), label="exact")
    """),
    ("agentcore", PYTHON, """
        def lambda_handler(event, context):
            said = event["evaluationInput"]["sessionSpans"][0]["attributes"]["gen_ai.output"]
            wanted = [one["expectedResponse"]["text"] for one in event["evaluationReferenceInputs"]]
            return {"value": float(said in wanted), "label": "exact"}
    """),
    ("braintrust", PYTHON, """
        def handler(input, output, expected):
            return 1 if output == expected else 0
    """),
    ("braintrust", TYPESCRIPT, """
        export function handler({ output, expected }) { return output === expected ? 1 : 0 }
    """),
    ("coze", PYTHON, """
        def exec_evaluation(turn):
            fields = turn["evaluate_dataset_fields"]
            said = turn["evaluate_target_output_fields"]["actual_output"]["text"]
            return EvalOutput(float(said == fields.get("reference_output", {}).get("text", "")), "")
    """),
    ("coze", JAVASCRIPT, """
        function exec_evaluation(turn) {
          const said = turn.evaluate_target_output_fields.actual_output.text;
          const wanted = turn.evaluate_dataset_fields.reference_output?.text;
          return { score: said === wanted ? 1 : 0, reason: '' };
        }
    """),
    ("deepeval", PYTHON, """
        from deepeval.metrics import BaseMetric

        class Exact(BaseMetric):
            def __init__(self, threshold=0.5):
                self.threshold = threshold
            def measure(self, test_case):
                self.score = 1.0 if test_case.actual_output == test_case.expected_output else 0.0
                self.success = self.score >= self.threshold
                return self.score
            async def a_measure(self, test_case):
                return self.measure(test_case)
            def is_successful(self):
                return self.success
    """),
    ("galileo", PYTHON, """
        def scorer_fn(step_object, **kwargs):
            return 1.0 if step_object.output == step_object.dataset_output else 0.0
    """),
    ("galileo", PYTHON, """
        def scorer_fn(*, output, ground_truth, **kwargs):
            return 1.0 if output == ground_truth else 0.0
    """),
    ("honeyhive", PYTHON, """
        from honeyhive import evaluator

        @evaluator()
        def f(outputs, inputs, ground_truth=None):
            return 1.0 if outputs == ground_truth else 0.0
    """),
    ("inspect", PYTHON, """
        from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer

        @scorer(metrics=[accuracy()])
        def exact():
            async def score(state, target):
                return Score(value=CORRECT if state.output.completion == target.text else INCORRECT)
            return score
    """),
    ("langfuse", PYTHON, """
        def evaluate(ctx):
            expected = ctx.experiment.item_expected_output if ctx.experiment else None
            right = ctx.observation.output == expected
            return EvaluationResult(scores=[Score(name="exact", value=float(right), data_type="NUMERIC")])
    """),
    ("langfuse", TYPESCRIPT, """
        function evaluate(ctx: EvaluationContext): EvaluationResult {
          const expected = ctx.experiment?.itemExpectedOutput;
          const value = ctx.observation.output === expected ? 1 : 0;
          return { scores: [{ name: "exact", value, dataType: "NUMERIC" }] };
        }
    """),
    ("langsmith", PYTHON, """
        def exact(outputs: dict, reference_outputs: dict) -> bool:
            return outputs == reference_outputs
    """),
    ("langsmith", PYTHON, """
        def perform_eval(run, example):
            return {"same": run["outputs"] == example["outputs"]}
    """),
    ("langsmith", TYPESCRIPT, """
        export const evaluate = ({ outputs, referenceOutputs }) =>
          ({ key: "exact", score: outputs.output === referenceOutputs?.output });
    """),
    ("langsmith", JAVASCRIPT, """
        function performEval(run, example) { return { same: run.outputs.output === example.outputs?.output }; }
    """),
    ("maxim", PYTHON, """
        def validate(input, output, expected_output):
            return 1 if output == expected_output else 0
    """),
    ("maxim", JAVASCRIPT, """
        function validate(output, expectedOutput) { return output === expectedOutput; }
    """),
    ("mlflow", PYTHON, """
        from mlflow.genai import scorer

        @scorer
        def exact(outputs, expectations):
            return outputs == expectations.get("expected_response")
    """),
    ("openai-grader", PYTHON, """
        def grade(sample, item):
            return 1.0 if sample["output_text"] == item.get("reference") else 0.0
    """),
    ("opik", PYTHON, """
        from opik.evaluation.metrics import base_metric, score_result

        class Exact(base_metric.BaseMetric):
            def score(self, output, reference=None, **ignored):
                return score_result.ScoreResult(name="exact", value=float(output == reference))
    """),
    ("patronus", PYTHON, """
        from patronus import evaluator

        @evaluator()
        def exact(row, **kwargs):
            return row.task_output == row.gold_answer
    """),
    ("phoenix", PYTHON, """
        def evaluate(output, reference=None, input=None, metadata=None):
            return 1 if output == reference else 0
    """),
    ("phoenix", TYPESCRIPT, """
        export function evaluate({ output, reference }) { return output === reference ? 1 : 0 }
    """),
    ("promptfoo", PYTHON, """
        def get_assert(output, context):
            return output == context["vars"].get("expected")
    """),
    ("ragas", PYTHON, """
        from ragas.metrics import numeric_metric

        @numeric_metric(name="exact", allowed_values=(0, 1))
        def exact(response, reference):
            return float(response == reference)
    """),
    ("rewards", PYTHON, """
        def compute_score(data_source, solution_str, ground_truth, extra_info=None):
            return 1.0 if solution_str == ground_truth else 0.0
    """),
    ("rewards", PYTHON, """
        def compute_score(reward_input):
            return {"overall": float(reward_input["response"] == reward_input["ground_truth"])}
    """),
    ("rewards", PYTHON, """
        def reward(completions, answer=("?",), **kwargs):
            return [float(c == a) for c, a in zip(completions, answer)]
    """),
    ("rewards", PYTHON, """
        import verifiers as vf

        def exact(completion, answer, **kwargs):
            return 1.0 if completion[-1]["content"] == answer else 0.0
    """),
    ("vertex", PYTHON, """
        def evaluate(instance):
            return float(instance["response"]["text"] == instance.get("reference", {}).get("text", ""))
    """),
    ("weave", PYTHON, """
        import weave

        @weave.op
        def exact(output, target=None):
            return output == target
    """),
]  # fmt: skip
GETS_COLUMNS: list[tuple[str, str]] = [  # evaluators that get columns by name
    ("braintrust", """
        def handler(input, output, expected=None):
            return float(output == (expected or input["expected"]))
    """),
    ("coze", """
        def exec_evaluation(turn):
            fields = turn["evaluate_dataset_fields"]
            wanted = fields["expected"] if fields.get("expected") else fields["reference_output"]
            said = turn["evaluate_target_output_fields"]["actual_output"]
            return EvalOutput(float(said["text"] == wanted["text"]), "")
    """),
    ("langfuse", """
        def evaluate(ctx):
            wanted = ctx.experiment.item_expected_output if ctx.experiment else ctx.observation.input["expected"]
            right = ctx.observation.output == wanted
            return EvaluationResult(scores=[Score(name="exact", value=float(right), data_type="NUMERIC")])
    """),
    ("opik", """
        from opik.evaluation.metrics import base_metric, score_result

        class Exact(base_metric.BaseMetric):
            def score(self, output, expected, reference="", **ignored):
                return score_result.ScoreResult(name="exact", value=float(output in (expected, reference)))
    """),
    ("patronus", """
        from patronus import evaluator

        @evaluator()
        def exact(actual, expected):
            return actual == expected
    """),
    ("phoenix", """
        from phoenix.evals import create_evaluator

        @create_evaluator(name="exact")
        def exact(output, expected):
            return float(output == expected)
    """),
    ("promptfoo", """
        def get_assert(output, context):
            return output == context["vars"]["expected"]
    """),
    ("weave", """
        import weave

        @weave.op
        def exact(output, expected):
            return output == expected
    """),
]  # fmt: skip
NEEDS_NONE: list[tuple[str, str]] = [  # evaluators that test whether there is an expected answer, or do not read it
    ("braintrust", """
        def handler(input, output, expected=None):
            return 1 if expected is None else float(output == expected)
    """),
    ("braintrust", """
        def handler(input, output, expected=None):
            return len(output)
    """),
    ("deepeval", """
        from deepeval.metrics import BaseMetric

        class Exact(BaseMetric):
            async_mode = False
            def measure(self, test_case):
                wanted = test_case.expected_output
                if not wanted:
                    self.score = 1.0
                    return
                self.score = float(test_case.actual_output == wanted)
    """),
    ("langfuse", """
        def evaluate(ctx):
            if ctx.experiment is None:
                return EvaluationResult(scores=[Score(name="exact", value=1, data_type="NUMERIC")])
            right = ctx.observation.output == ctx.experiment.item_expected_output
            return EvaluationResult(scores=[Score(name="exact", value=float(right), data_type="NUMERIC")])
    """),
    ("mlflow", """
        from mlflow.genai import scorer

        @scorer
        def size(outputs, expectations):
            return len(outputs)
    """),
    ("openai-grader", """
        def grade(sample, item):
            return 1.0 if "reference" not in item else float(sample["output_text"] == item["reference"])
    """),
    ("vertex", """
        def evaluate(instance):
            return len(instance["response"]["text"])
    """),
]  # fmt: skip
ASKS: list[tuple[Language, str]] = [  # parts of the body of `grade(sample, item)`, in which `said` is the output
    (PYTHON, "if item.get('reference') is None: return 0"),
    (PYTHON, "x = item.get('reference')\nif not x:\n    return 1"),
    (PYTHON, "x: str = item['reference'] or ''\nif x == None: return 1"),
    (PYTHON, "if not item['reference']:\n    return 1"),
    (PYTHON, "if 'reference' not in item: return 1"),
    (PYTHON, "return float(said == item['reference']) if item['reference'] else None"),
    (PYTHON, "if item is None:\n    return 0\nreturn item['reference'] == said"),
    (PYTHON, "if said and item['reference']: return 1"),
    # this tests whether there is an answer, on several lines
    (PYTHON, "if (\n    said\n    and not item.get('reference')\n): return 0"),
    (PYTHON, "wanted = (item.get('reference') or '').strip()\nif not wanted: return 0"),
    (PYTHON, "if (wanted := item.get('reference')) is None: return 0"),
    (PYTHON, "if item.get('reference') in (None, ''): return 0"),
    (PYTHON, "return item.get('reference') and float(item['reference'] == said)"),
    (PYTHON, "row = item\nif row.get('reference') is None: return 0"),
    (PYTHON, "wanted = getattr(item, 'reference', None)\nif wanted is None: return 0"),
    (JAVASCRIPT, "const r = item.reference;\nif (!r) return 1"),
    (JAVASCRIPT, "return item.reference ? 1 : 0"),
    (JAVASCRIPT, "if (item.reference == null) return 0"),
    (JAVASCRIPT, "if (\n  said &&\n  !item.reference\n) return 0"),
    (JAVASCRIPT, "const { reference: wanted = '' } = item;\nif (!wanted) return 0"),
    (JAVASCRIPT, "const { reference } = item;\nif (typeof reference === 'undefined') return 0"),
    (JAVASCRIPT, "if (!('reference' in item)) return 0"),
    (JAVASCRIPT, "if (!Object.hasOwn(item, 'reference')) return 0"),
    (TYPESCRIPT, "const wanted: string | undefined = item.reference as string;\nif (!wanted) return 0"),
    (TYPESCRIPT, "if ((item as Item)?.reference! === null) return 0"),
]
ASKS_NOT: list[tuple[Language, str]] = [
    (PYTHON, "return said == item.get('reference')"),
    (PYTHON, "return 1 if said == item['reference'] else 0"),
    (PYTHON, "x = item['reference'] if item else None\nreturn x == said"),
    (PYTHON, "x = item['reference'] or ''\nreturn x == said"),
    (PYTHON, "if said == item['reference']:\n    return 1"),
    (PYTHON, "score = said == item['reference']\nif score: return 1"),
    (PYTHON, "if item['reference'] in said: return 1"),
    (PYTHON, "return said == getattr(item, 'reference', None)"),
    # the test for the answer is only in a comment
    (PYTHON, "# if not item['reference']:\nreturn said == item['reference']"),
    # the test for the answer is only in a string
    (PYTHON, '"""\nif not item.reference:\n"""\nreturn said == item["reference"]'),
    # this tests another column
    (PYTHON, "if item.get('strict'): said = said.strip()\nreturn said == item['reference']"),
    (PYTHON, "return said == item['reference'] or item['other'] is None"),
    (PYTHON, "if str(item['reference']).isdigit(): return 1"),  # this tests something else about the expected answer
    (PYTHON, "if item['reference'].isdigit(): return 1"),
    (PYTHON, "same = lambda item: item is None\nif same(said): return 0\nreturn said == item['reference']"),
    (JAVASCRIPT, "return said === item.reference ? 1 : 0"),
    (JAVASCRIPT, "if(said===item.reference){return 1}"),
    (JAVASCRIPT, "/* if (!item.reference) */ return said === item.reference"),
    (JAVASCRIPT, "const note = 'if (!item.reference)'; return said === item.reference"),
    (JAVASCRIPT, "const { reference } = item; return said === reference"),
    (JAVASCRIPT, "if (item.reference.isNumber()) return 1"),
    (JAVASCRIPT, "return said === same(item); function same(one) { return one['reference'] }"),
    (TYPESCRIPT, "const wanted: string | null = item.reference ?? null;\nreturn said === wanted"),
]
_TURN = "const item = turn.evaluate_dataset_fields, said = turn.evaluate_target_output_fields.actual_output;\n"
# contract, key of the expected answer, code before the tested lines and after them
AROUND: dict[Language, tuple[str, str, str, str]] = {
    PYTHON: ("openai-grader", "reference", "def grade(sample, item):\n    said = sample['output_text']\n", ""),
    JAVASCRIPT: ("coze", "reference_output", f"function exec_evaluation(turn) {{ {_TURN}", "}"),
    TYPESCRIPT: ("coze", "reference_output", f"type Item = any;\nfunction exec_evaluation(turn: any) {{ {_TURN}", "}"),
}
NOT_TOLD: list[tuple[str, str]] = [  # evaluators that do not read the expected answer
    ("openai-grader", """
        def grade(sample, item):
            "Compares with item['reference']."
            return len(sample["output_text"])  # not item["reference"]
    """),
    ("braintrust", """
        def handler(input, output):
            compared = "expected"
            return float(len(output) > 0)
    """),
]  # fmt: skip
# evaluators that read the expected answer in an inner function, or that test another value of the same name for None
TOLD: list[tuple[str, str]] = [
    ("braintrust", """
        def handler(input, output, expected=None):
            words = sorted([output], key=lambda expected: expected is None)
            return float(output == expected)
    """),
    ("openai-grader", """
        def same(said, row):
            return said == row["reference"]
        def grade(sample, item):
            return float(same(sample["output_text"], item))
    """),
]  # fmt: skip


def evaluator(contract: str, code: str, language: Language = PYTHON) -> Evaluator:
    return Evaluator(textwrap.dedent(code).strip() + "\n", language, Contract(contract))


def told(result: EvaluationResult) -> list[tuple[str, str | None]]:
    """Return a result's warnings about missing columns, with their remedies."""
    return [(note.message, note.remedy) for note in result.warnings if note.code == "missing_column"]


@pytest.mark.sampled(33)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(("contract", "language", "code"), COMPARES)
async def test_an_expected_answer_is_never_silently_absent(
    service: Service, contract: str, language: Language, code: str
) -> None:
    compares = evaluator(contract, code, language)
    lacking, *given, without = [
        await service.evaluate(compares, Row({"question": "q", column: "a"}, "a"))
        for column in ("label", "correct_answer", "expected", "Reference Answer", "ground_truth", "topic")
    ]
    if lacking.score != 1:
        [(message, remedy)] = told(lacking)
        assert message.endswith("which is the column `correct_answer`, but the row has only `label`")
        assert remedy == "map the column: correct_answer=label"
    assert [(one.score, told(one)) for one in given] == [(1, [])] * 4
    assert told(without) == []
    two = await service.evaluate(compares, Row({"question": "q", "expected answer": "a", "gold_answer": "b"}, "a"))
    assert two.score == 1 or told(two), "without a score, a warning must say which column is missing"


@pytest.mark.sampled(3)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(("contract", "code"), [*GETS_COLUMNS, *NEEDS_NONE])
async def test_an_expected_answer_that_is_not_missed_is_not_told(service: Service, contract: str, code: str) -> None:
    result = await service.evaluate(evaluator(contract, code), Row({"question": "q", "expected": "a"}, "a"))
    assert (result.score, told(result)) == (1, [])


@pytest.mark.sampled(48)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(("language", "code"), [*ASKS, *ASKS_NOT])
async def test_code_that_asks_for_the_expected_answer_is_not_told(
    service: Service, language: Language, code: str
) -> None:
    contract, key, before, after = AROUND[language]
    body = f"{code}\nreturn {{'score': 0}}".replace("reference", key)
    whole = before + (textwrap.indent(body, "    ") if language is PYTHON else body) + after
    asks = evaluator(contract, whole, language)
    missing = await service.evaluate(asks, Row({"label": "a"}, "a"))
    assert bool(told(missing)) is ((language, code) in ASKS_NOT)
    given = await service.evaluate(asks, Row({"label": "a", key: "a"}, "a"))
    assert told(given) == []


@pytest.mark.sampled(2)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(("contract", "code"), [*TOLD, *NOT_TOLD])
async def test_only_code_that_reads_the_expected_answer_is_reported(service: Service, contract: str, code: str) -> None:
    result = await service.evaluate(evaluator(contract, code), Row({"question": "q", "label": "a"}, "a"))
    assert bool(told(result)) is ((contract, code) in TOLD)


CONTAINS = "def evaluate(inputs, outputs, trace):\n    return float(inputs['expected'] in outputs)\n"
TESTS = CONTAINS.replace("return", "if not inputs['expected']:\n        return 0.0\n    return")
EQUALS = "def evaluate(inputs, outputs, trace):\n    return float(inputs['expected'] == outputs)\n"
GIVEN = "def handler(input, output, expected):\n    return float(expected in output)\n"


@pytest.mark.sampled(3)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("code", "expected", "told"),
    [
        (CONTAINS, "", True),
        (CONTAINS, " ", True),
        (CONTAINS, "Paris", False),
        (TESTS, "", False),
        (GIVEN, "", True),
        (EQUALS, None, True),
        (TESTS, None, False),
    ],
)
async def test_an_empty_expected_answer_is_reported(
    service: Service, code: str, expected: str | None, *, told: bool
) -> None:
    found = await service.evaluate(Evaluator(code), Row({"question": "?", "expected": expected}, "Paris"))
    assert found.error is None
    assert ("empty_expected" in [note.code for note in found.warnings]) is told

"""Functions of other platforms become `evaluate(inputs, outputs, trace)`, with the proof that they score the same."""

from textwrap import dedent

import pytest

from evaluator_host.migration.migrate import migrate, migration_context
from evaluator_host.model.evaluator import Contract, Evaluator, Row
from evaluator_host.schemas.migration import MigrationStatus, Verdict
from evaluator_host.service import Service

ROWS = [
    Row({"question": "Capital of France?", "correct_answer": "Paris"}, "Paris"),
    Row({"question": "Capital of Italy?", "correct_answer": "Rome"}, "Milan"),
]
BRAINTRUST = """
def handler(input, output, expected, metadata=None):
    if expected is None:
        return 0
    return 1 if output == expected else 0
"""
MIGRATED = {
    "braintrust": (
        BRAINTRUST,
        """
        def evaluate(inputs, outputs, trace):
            if inputs.get("correct_answer") is None:
                return 0
            return 1 if outputs == inputs.get("correct_answer") else 0
        """,
    ),
    "langsmith": (
        "def exact(outputs: dict, reference_outputs: dict) -> bool:\n    return outputs['output'] == reference_outputs['output']\n",
        None,
    ),
    "langsmith, its page": (
        "def perform_eval(run, example):\n    return {'score': int(run['outputs']['output'] == example['outputs']['output'])}\n",
        None,
    ),
    "openai-grader": (
        "def grade(sample, item):\n    return 1.0 if sample['output_text'] == item['reference'] else 0.2\n",
        None,
    ),
    "phoenix": ("def evaluate(output, reference):\n    return {'score': float(output == reference)}\n", None),
    "vertex": (
        "def evaluate(instance):\n    return float(instance['response']['text'] == instance['reference']['text'])\n",
        None,
    ),
    "promptfoo": (
        "def get_assert(output, context):\n    return output == context['vars']['expected']\n",
        None,
    ),
    "mlflow": (
        "from mlflow.genai.scorers import scorer\n\n@scorer\ndef same(outputs, expectations):\n    return outputs == expectations['expected_response']\n",
        None,
    ),
}


@pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize("case", MIGRATED)
async def test_a_function_of_a_platform_is_rewritten_and_proven(service: Service, case: str) -> None:
    code, expected = MIGRATED[case]
    made = await migrate(Evaluator(code), ROWS, context=migration_context(service, "default"))
    assert made.proof is not None, made.unresolved
    assert (made.status, made.proof.verdict) == (MigrationStatus.MIGRATED, Verdict.PROVEN), f"{made.code}\n{made.proof}"
    assert made.proof.scored == 2
    [result] = await service.evaluate_batch(Evaluator(made.code), ROWS[:1])
    assert result.evaluator.contract == Contract.EVALUATE, made.code
    assert result.score == 1
    if expected is not None:
        assert made.code.strip() == dedent(expected).strip()


@pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize(
    "code",
    [
        "def handler(output, expected):\n    return same(output, expected)\n\ndef same(a, b):\n    return float(a == b)\n\nCHECK = handler\n",
        "def get_assert(output, context):\n    return 0.4 if output == context['vars']['expected'] else 0\n",
    ],
)
async def test_a_function_that_is_not_rewritten_is_adapted(service: Service, code: str) -> None:
    context = migration_context(service, "default")
    plain = await migrate(Evaluator(code), ROWS, context=context)
    assert not plain.is_proven
    made = await migrate(Evaluator(code), ROWS, context=context, adapt=True)
    assert (made.status, made.is_proven) == (MigrationStatus.ADAPTED, True), f"{made.code}\n{made.proof}"
    assert "def platform_" in made.code


@pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
async def test_rows_are_generated_for_a_platform_too(service: Service) -> None:
    made = await migrate(Evaluator(BRAINTRUST), context=migration_context(service, "default"))
    assert made.is_proven, made.proof
    assert made.proof is not None
    assert made.proof.scored > 40


@pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
async def test_a_parameter_that_the_platform_does_not_pass_is_refused(service: Service) -> None:
    code = "def handler(output, expected, threshold):\n    return 1\n"
    made = await migrate(
        Evaluator(code, contract=Contract.BRAINTRUST), ROWS, context=migration_context(service, "default")
    )
    assert made.status is MigrationStatus.REFUSED
    assert "passes no threshold" in made.unresolved[0].message

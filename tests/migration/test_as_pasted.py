"""Code that another contract already accepts is not rewritten: it runs unchanged, and the answer names the contract."""

from textwrap import dedent

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.migrate.migrate import migrate, migration_context
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.migrations import MigrationStatus
from evaluator_host.types.proof import ProofVerdict

PYTHON, JAVASCRIPT, TYPESCRIPT = Language
ROWS = [
    Row({"question": "Capital of France?", "correct_answer": "Paris"}, "Paris"),
    Row({"question": "Capital of Italy?", "correct_answer": "Rome"}, "Milan"),
]
PASTED = {
    "a function": (
        Contract.BRAINTRUST,
        PYTHON,
        "def handler(input, output, expected, metadata=None):\n    return 1 if output == expected else 0\n",
    ),
    "a class": (
        Contract.OPIK,
        PYTHON,
        """
        from opik.evaluation.metrics import base_metric, score_result

        class Exact(base_metric.BaseMetric):
            def score(self, output, reference, **ignored):
                return score_result.ScoreResult(name=self.name, value=float(output == reference))
        """,
    ),
    "any names": (Contract.FUNCTION, PYTHON, "def same(output, expected):\n    return output == expected\n"),
    "JavaScript": (
        Contract.LANGFUSE,
        JAVASCRIPT,
        """
        function evaluate(ctx) {
          return { scores: [{ name: "exact", value: ctx.observation.output === ctx.experiment?.itemExpectedOutput ? 1 : 0 }] };
        }
        """,
    ),
    "TypeScript": (
        Contract.PHOENIX,
        TYPESCRIPT,
        """
        function evaluate({ output, reference }: { output: string; reference: string }) {
          return { score: output === reference ? 1 : 0, explanation: "compared" };
        }
        """,
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.engine
@pytest.mark.parametrize("case", PASTED)
async def test_it_stays_and_the_rows_of_the_caller_are_scored(host: Service, case: str) -> None:
    contract, language, code = PASTED[case]
    code = dedent(code).lstrip()
    context = migration_context(host, "default")
    for adapt in (False, True):
        found = await migrate(Evaluator(code, language), ROWS, context=context, adapt=adapt)
        assert (found.status, found.contract, found.code) == (MigrationStatus.AS_PASTED, contract, code)
        assert (found.changes, found.unresolved, found.is_done) == ((), (), True)
        assert found.proof is not None
        assert (found.proof.verdict, found.proof.rows, found.proof.scored) == (ProofVerdict.PROVEN, 2, 2)
    without = await migrate(Evaluator(code, language), context=context)
    assert (without.status, without.proof, without.is_done) == (MigrationStatus.AS_PASTED, None, True)


@pytest.mark.engine
async def test_code_that_scores_none_of_the_rows_is_not_done(host: Service) -> None:
    code = "def handler(output, expected, threshold):\n    return output.score > threshold\n"
    evaluator = Evaluator(code, contract=Contract.BRAINTRUST)
    found = await migrate(evaluator, ROWS, context=migration_context(host, "default"))
    assert (found.status, found.contract, found.is_done) == (MigrationStatus.AS_PASTED, Contract.BRAINTRUST, False)
    assert found.proof is not None
    assert found.proof.verdict is ProofVerdict.NOT_COMPARABLE
    assert (found.proof.why or "").startswith("the code scores none of the 2 rows: ")

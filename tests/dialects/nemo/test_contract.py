"""Metrics for NeMo Evaluator are pasted unchanged: every backend finds, calls and checks them, and returns their
scores.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Isolation, Policy, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationResult, Status
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.nemo.metrics import EVALUATION, EXPRESSIONS, IMPORTS, RESULT, ROWS, SUMMARY, metric, returning

TWO = metric(
    """
    return MetricResult(outputs=[MetricOutput(name="right", value=text == data["expected"]),
                                 MetricOutput(name="length", value=len(text) / 10)])
    """,
    'MetricOutputSpec.boolean("right"), MetricOutputSpec.continuous_score("length")',
)


async def evaluated(service: Service, code: str, row: Row | None = None, **fields: Any) -> EvaluationResult:
    return await service.evaluate(Evaluator(code, **fields), row or Row(outputs="x"))


def rows() -> list[Row]:
    return [Row(inputs=row, outputs=row["model_expression"]) for row in ROWS]


async def test_the_documented_metric_scores_rows_and_names_what_it_ran_on(service: Service) -> None:
    results = await service.evaluate_batch(Evaluator(EXPRESSIONS), rows())

    for result, golden in zip(results, RESULT["row_scores"], strict=True):
        outputs = golden["metrics"]["arithmetic-expression-correctness"]
        assert result.value["outputs"] == outputs
        assert result.metrics == {one["name"]: float(one["value"]) for one in outputs}
        assert (result.status, result.score, result.passed) == (Status.SCORED, None, None)
    assert (results[0].evaluator.contract, results[0].evaluator.contract_source) == (Contract("nemo"), "inferred")
    requested = {package.name for package in results[0].environment.packages if package.requested}
    assert requested == {"pydantic", "jinja2"}


async def test_an_evaluation_at_module_level_prints_what_the_documentation_shows(service: Service) -> None:
    code = EVALUATION + "\nresult.print_summary()\n"
    report = await service.check(Evaluator(code))
    result = await evaluated(service, code, rows()[0])

    assert result.logs.stdout == SUMMARY
    assert result.metrics == {"valid_expression": 1.0, "correct_value": 1.0}
    assert (report.ok, report.contract, report.missing_imports) == (True, "nemo", ())
    assert report.logs.stdout == SUMMARY


@ON_BUBBLEWRAP
async def test_the_result_of_an_evaluation_is_the_golden_one(service: Service) -> None:
    result = await evaluated(service, EVALUATION + "\nprint(result.model_dump_json())\n", rows()[0])
    assert json.loads(result.logs.stdout) == RESULT


@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("settings", "score", "passed"),
    [(EvaluatorSettings(score_output="right"), 1.0, True), (EvaluatorSettings(score_output="length"), 0.5, None)],
)
async def test_an_output_can_be_named_as_the_score(
    service: Service, settings: EvaluatorSettings, score: float, passed: bool | None
) -> None:
    row = Row(inputs={"expected": "Paris"}, outputs="Paris")
    result = await evaluated(service, TWO, row, settings=settings)
    assert (result.score, result.passed, result.metrics) == (score, passed, {"right": 1.0, "length": 0.5})
    named = await evaluated(service, TWO, row, settings=EvaluatorSettings(score_output="rigth"))
    assert named.error is not None
    assert "'right', 'length'" in named.error.message


@pytest.mark.sampled(2)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("", "Missing declared metric outputs: ['p']"),
        ('MetricOutput(name="p", value=True), MetricOutput(name="z", value=1)', "Undeclared metric outputs: ['z']"),
        (
            'MetricOutput(name="p", value=True), MetricOutput(name="p", value=1)',
            "Duplicate metric output names: ['p']",
        ),
        ('MetricOutput(name="p", value="maybe")', "1 validation error for BooleanValue"),
    ],
)
async def test_outputs_that_were_not_declared_so_are_refused_in_the_documented_words(
    service: Service, outputs: str, message: str
) -> None:
    result = await evaluated(service, metric(f"return MetricResult(outputs=[{outputs}])"))
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_RESULT
    start = f"Evaluation failed during metric scoring for metric 'm' on row 0: {message}"
    assert result.error.message.startswith(start)


@pytest.mark.sampled(4)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("value", "spec", "raw", "score"),
    [
        ("1", "boolean", 1, 1.0),
        ('"yes"', "boolean", "yes", 1.0),
        ('"0.5"', "continuous_score", "0.5", 0.5),
        ("True", "continuous_score", True, 1.0),
        ("3.0", "discrete_score", 3.0, 3),
        ('float("nan")', "continuous_score", "NaN", None),
        ('float("inf")', "continuous_score", None, None),
    ],
)
async def test_values_are_read_leniently_and_kept_as_they_were(
    service: Service, value: str, spec: str, raw: object, score: float | None
) -> None:
    result = await evaluated(service, returning(value, f'MetricOutputSpec.{spec}("p")'))
    assert result.error is None
    assert result.value["outputs"] == [{"name": "p", "value": raw}]
    assert (result.score, result.metrics) == (score, {} if score is None else {"p": score})
    assert ("non_finite" in {note.code for note in result.warnings}) is (score is None)


@ON_BUBBLEWRAP
async def test_labels_and_objects_are_kept_and_never_counted(service: Service) -> None:
    code = metric(
        """
        from nemo_evaluator_sdk import MetricDiagnostic
        found = [MetricOutput(name="tone", value="warm"), MetricOutput(name="parts", value=Parts(a=1)),
                 MetricOutput(name="p", value=True)]
        return MetricResult(outputs=found, diagnostics=[MetricDiagnostic(message="because", details={"k": [1]})])
        """,
        'MetricOutputSpec.label("tone"), MetricOutputSpec.model("parts", Parts), MetricOutputSpec.boolean("p")',
        before="from pydantic import BaseModel\nclass Parts(BaseModel):\n    a: int\n",
    )
    result = await evaluated(service, code)
    assert (result.label, result.reason, result.score, result.metrics) == ("warm", "because", 1.0, {"p": 1.0})
    assert result.value["outputs"][1] == {"name": "parts", "value": {"a": 1}}


@pytest.mark.sampled(2)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "'NoneType' object has no attribute 'outputs'"),
        ("raise KeyError('gold')", "'gold'"),
    ],
)
async def test_a_metric_that_fails_says_so(service: Service, body: str, message: str) -> None:
    result = await evaluated(service, metric(body))
    assert result.error is not None
    assert message in result.error.message
    assert result.error.line == (12 if "raise" in body else None)


@ON_BUBBLEWRAP
async def test_a_metric_that_is_not_async_is_told_how_to_become_it(service: Service) -> None:
    result = await evaluated(service, returning("True").replace("async def", "def"))
    assert result.error is not None
    assert "object MetricResult can't be used in 'await' expression" in result.error.message
    assert "async def compute_scores" in (result.error.hint or "")


@pytest.mark.long
@ON_BUBBLEWRAP
async def test_the_last_class_counts_unless_another_is_named(service: Service) -> None:
    first, second = returning("1", 'MetricOutputSpec.continuous_score("p")'), returning("0.25")
    second = second.replace("boolean", "continuous_score").replace("class M(", "class Other:  # (")
    redefined = first + second + first.removeprefix(IMPORTS)

    assert (await evaluated(service, first + second)).score == 0.25
    assert (await evaluated(service, redefined)).score == 1.0
    assert (await evaluated(service, redefined, settings=EvaluatorSettings(entry="Other"))).score == 0.25
    missing = await evaluated(
        service, redefined, settings=EvaluatorSettings(entry="Missing"), contract=Contract("nemo")
    )
    assert missing.error is not None
    assert "`Missing` is not a metric; it defines M, Other" in missing.error.message


@ON_BUBBLEWRAP
async def test_a_metric_with_arguments_takes_them_from_the_settings_or_from_the_code(service: Service) -> None:
    code = returning("self.least", 'MetricOutputSpec.continuous_score("p")').replace(
        '    type = "m"\n', '    type = "m"\n    def __init__(self, least): self.least = least\n'
    )
    configured = await evaluated(service, code, settings=EvaluatorSettings(config={"least": 0.75}))
    bound = await evaluated(service, f"{code}\nmetric = M(0.5)\n")
    neither = await evaluated(service, code)

    assert (configured.score, bound.score) == (0.75, 0.5)
    assert neither.error is not None
    assert neither.error.code is ErrorCode.BINDING_ERROR
    assert "least" in neither.error.message


@ON_BUBBLEWRAP
async def test_a_run_works_on_one_copy_of_the_metric(service: Service) -> None:
    code = returning("self.count()", 'MetricOutputSpec.continuous_score("p")') + (
        "    seen = []\n    def count(self):\n        self.own.append(1)\n        return len(self.own) + len(M.seen)\n"
        "\nmetric = M()\nmetric.own = M.seen\n"
    )
    code = code.replace('    type = "m"\n', '    type = "m"\n    def __init__(self, *given): self.own = []\n')
    evaluator = Evaluator(code, settings=EvaluatorSettings(entry="metric"))
    alone = await service.evaluate_batch(evaluator, [Row(), Row()])
    together = await service.evaluate_batch(evaluator, [Row(), Row(), Row()], isolation=Isolation.BATCH)

    assert [result.score for result in alone] == [1, 1]
    assert [result.score for result in together] == [1, 2, 3]


@ON_BUBBLEWRAP
async def test_a_metric_that_cannot_be_copied_is_refused(service: Service) -> None:
    before = "import threading\n"
    code = before + returning("True").replace(
        '    type = "m"\n', '    type = "m"\n    def __init__(self): self.lock = threading.Lock()\n'
    )
    result = await evaluated(service, code)
    assert result.error is not None
    assert "Cannot copy metric M; use a Pydantic model" in result.error.message


@ON_BUBBLEWRAP
async def test_a_metric_reads_secrets_and_prepares_before_the_first_row(service: Service) -> None:
    code = returning("self.ready") + (
        "    def secrets(self): return {}\n"
        "    async def resolve_secrets(self, resolver):\n"
        "        from nemo_evaluator_sdk import SecretRef\n"
        "        self.secret = await resolver.resolve_secret(SecretRef('my-key'))\n"
        "    async def preflight(self): self.ready = self.secret == 'of this sandbox'\n"
    )
    with_secret = f"import os\nos.environ['MY_KEY'] = 'of this sandbox'\n{code}"
    assert (await evaluated(service, with_secret)).passed is True
    assert (await evaluated(service, code)).passed is False


@ON_BUBBLEWRAP
async def test_rows_know_their_place_and_their_trace(service: Service) -> None:
    code = metric(
        """
        found = [metric_input.row.row_index, metric_input.candidate.trajectory, metric_input.candidate.response, text]
        return MetricResult(outputs=[MetricOutput(name="p", value=repr((found, data)))])
        """,
        'MetricOutputSpec.label("p")',
    )
    given = [
        Row({"a": 1}, "x"),
        Row({"output": "own"}),
        Row({}, {"b": 2}, trace={"spans": {}}),
        Row({"output": 3}, "y"),
    ]
    results = await service.evaluate_batch(Evaluator(code), given)
    assert [result.label for result in results] == [
        "([0, None, None, 'x'], {'a': 1, 'output': 'x'})",
        "([1, None, None, 'own'], {'output': 'own'})",
        "([2, {'spans': {}}, {'b': 2}, None], {'output': {'b': 2}})",
        "([3, None, None, 'y'], {'output': 3})",
    ]


@pytest.mark.long
@ON_BUBBLEWRAP
async def test_own_pins_are_kept_beside_what_the_modules_need(service: Service) -> None:
    result = await evaluated(service, returning("True"), packages=("jinja2==3.1.5",))
    assert {(one.name, one.version) for one in result.environment.packages} >= {("jinja2", "3.1.5")}
    assert result.passed is True
    with pytest.raises(PackagesFailed, match="jinja2"):
        await evaluated(service, returning("True"), packages=("jinja2==0.0.1",))


@ON_BUBBLEWRAP
async def test_the_restricted_policy_lets_metrics_be_written(service: Service) -> None:
    allowed = Evaluator(returning("True"), policy=Policy.RESTRICTED)
    assert (await service.evaluate(allowed, Row())).passed is True
    opened = replace(allowed, code=returning("open('/etc/passwd')"))
    refused = await service.evaluate(opened, Row())
    assert refused.error is not None
    assert refused.error.code is ErrorCode.POLICY_VIOLATION


@pytest.mark.long
@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    "imports",
    [
        IMPORTS.replace("nemo_evaluator_sdk", "nemo_evaluator.scoring"),
        IMPORTS.replace("nemo_evaluator_sdk", "nemo_evaluator.scoring") + "from nemo_evaluator.api import evaluate\n",
        "from nemo_evaluator import scoring\nMetric, MetricInput = scoring.Metric, scoring.MetricInput\n"
        + IMPORTS.replace("nemo_evaluator_sdk", "nemo_evaluator.scoring"),
    ],
)
async def test_metrics_are_imported_by_the_path_of_the_repository_too(service: Service, imports: str) -> None:
    result = await evaluated(service, EXPRESSIONS.replace(IMPORTS, imports), rows()[0])
    assert (result.evaluator.contract, result.metrics["correct_value"]) == (Contract("nemo"), 1.0), result.error

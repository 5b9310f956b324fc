"""Arguments and results of Opik's metrics (dialect `opik`): `BaseMetric.score` returns one or several `ScoreResult`s.

The runner sends `{"scores": [{"name", "value", "reason", "category_name", "metadata", "scoring_failed"}]}`, or
`{"returned": type}` for a value without a ScoreResult. Source of the rules: comet-ml/opik@02b630c0,
opik_backend/process_worker.py.
"""

from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    object_sent,
    scored,
    scoring_failed,
    shown,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Returned

_TRUTH: Final = ("reference", "expected_output", "expected", "expected_answer")
_JUDGES: Final = (
    *("AnswerRelevance", "ContextPrecision", "ContextRecall", "GEval", "Hallucination", "LLMJuriesJudge"),
    *("Moderation", "StructuredOutputCompliance", "TrajectoryAccuracy", "Usefulness", "llm_judges"),
)


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return Opik's row: the row's `variables`, or `data` (and further arguments as `more`) from its other fields."""
    return bind_native(row, settings, _data, needs="data", inner="data", beside=("type", "more"))


def _data(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    data: dict[str, Json] = {**inputs, "output": row.outputs}
    more: dict[str, Json] = {"input": inputs, "metadata": {}, "spans": (row.trace or {}).get("spans") or []}
    if inputs is not row.inputs:
        data["reference"] = truth
        more |= dict.fromkeys(_TRUTH, truth)
    if (messages := messages_of(row)) is not None:
        more["messages"] = messages
    return {"data": data, "more": more}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the `ScoreResult`s; the score is the mean of those that have a value and did not fail."""
    value = object_sent(returned)
    if isinstance(value, EvaluationError):
        return value
    if not isinstance(value.get("scores"), list):
        hint = "return score_result.ScoreResult(name=self.name, value=…)"
        return invalid(
            f"`score` returned {str(value.get('returned'))[:100]}; Opik takes a ScoreResult or a list of them", hint
        )
    native = [one for one in value["scores"] if isinstance(one, dict)]
    usable = [one for one in native if _is_usable(one)]
    for one in usable:
        if not isinstance(one["value"], bool | int | float):
            return invalid(f"the value of {shown(one.get('name'))} is {shown(one['value'])}, not a number")
    if not usable:
        names = ", ".join(shown(one.get("name")) for one in native)
        problem = invalid(f"no score is usable: {names[:200]} returned no value, or reported that scoring failed")
        return Scored(None, None, {}, native=tuple(native), error=problem)
    notes = scoring_failed(one for one in native if not _is_usable(one))
    return scored(map(_named, native), native, notes=notes, chosen=settings.score_output)


def _is_usable(one: dict[str, Json]) -> bool:
    return one.get("value") is not None and one.get("scoring_failed") is not True


def _named(one: dict[str, Json]) -> NamedScore:
    reason, value = one.get("reason"), one["value"] if _is_usable(one) else None
    return NamedScore(str(one.get("name")), value, reason if isinstance(reason, str) else None)


DIALECT: Final = Dialect(
    contract=Contract("opik"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    native_row={"data": {"output": "Paris", "reference": "Paris"}},
    takes=("correct_answer_key", "config", "messages", "score_output", "variables"),
    truth_or_column=_TRUTH,
    sdk=Sdk(
        module="opik",
        stand_in=StandIn("dialects/opik/modules", preimport="opik.evaluation.metrics"),
        real=frozenset({"opik"}),
        judges=("opik.evaluation.models", *(f"opik.evaluation.metrics.{name}" for name in _JUDGES)),
    ),
)

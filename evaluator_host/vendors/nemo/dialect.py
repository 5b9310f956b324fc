"""Arguments and results of NeMo Evaluator's metrics (dialect `nemo`): `compute_scores(MetricInput)`.

The runner turns a `MetricResult` into
`{"type", "outputs": [{"name", "value"}], "scores": {name: number | bool | "NaN" | null}, "labels": {name: text},
"diagnostics": [{"message", "details"}]}`. `outputs` has the values as the metric returned them. `scores` and
`labels` have the same values in their declared types; an infinity becomes null.
"""

from itertools import islice
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.metric_leaves import MOST_METRICS, NAME_CHARS, finite, too_many_metrics
from evaluator_host.engine.contracts.model_requests import asks_of
from evaluator_host.engine.contracts.trace_tree import convert
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Note, Returned
from evaluator_host.types.warnings import remedy_of

_SHOWN: Final = 8


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return a row's data, output, trace, position and model response, from which the runner makes a `MetricInput`."""
    trace, notes = convert(row.trace)
    args = [row.inputs, row.outputs, trace, row.index or 0]
    body: dict[str, Json] = {"args": args if row.response is None else [*args, row.response]}
    if row.answers:
        body["answers"] = row.answers
    return Binding(body, notes)


def bind_one_of_many(row: Row, settings: EvaluatorSettings) -> Binding:
    """Return the arguments for one of the rows that a metric scores together."""
    return Binding([row.inputs, row.outputs, convert(row.trace)[0], row.index, row.response])


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the metric's outputs. The score is the output that the settings name, otherwise the only output."""
    value = returned.value
    if asks_of(returned):
        return _invalid(
            "the metric calls a model to score all rows together; the host calls models only for single rows"
        )
    if returned.unsupported is not None:
        path, kind = returned.unsupported
        return _invalid(f"the value at {path} is of type {kind}, which cannot be written as JSON")
    if returned.kind is not Kind.OBJECT or not _is_result(value):
        return contradiction()
    scores: dict[str, Json] = value["scores"]
    notes: list[Note] = []
    name = _only(scores) if settings.score_output is None else settings.score_output
    named = (item for item in scores.items() if len(item[0]) <= NAME_CHARS)
    first = dict(islice(named, MOST_METRICS)) | {key: scores[key] for key in [name] if key in scores}
    metrics = {key: number for key, raw in first.items() if (number := _number(key, raw, notes)) is not None}
    if len(scores) > len(first):
        notes.append(too_many_metrics(len(scores) - len(first)))
    if name is None:
        notes.append(Note("no_score", _no_score(len(scores))))
    elif name not in scores:
        names = ", ".join(repr(one) for one in list(scores)[:_SHOWN]) or "none"
        return _invalid(f"settings.score_output is {name!r}; the metric's numeric and boolean outputs are: {names}")
    chosen = scores[name] if name is not None else None
    return Scored(
        score=metrics.get(name) if name is not None else None,
        passed=chosen if isinstance(chosen, bool) else None,
        metrics=metrics,
        label=next(iter(value["labels"].values()), None),
        reason="; ".join(_messages(value["diagnostics"])) or None,
        notes=tuple(notes),
    )


def _is_result(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("outputs"), list)
        and isinstance(value.get("diagnostics"), list)
        and isinstance(value.get("scores"), dict)
        and all(one is None or one == "NaN" or isinstance(one, bool | int | float) for one in value["scores"].values())
        and isinstance(value.get("labels"), dict)
        and all(isinstance(one, str) for one in value["labels"].values())
    )


def _number(name: str, raw: Json, notes: list[Note]) -> float | int | None:
    if isinstance(raw, bool):
        return float(raw)
    if raw is not None and raw != "NaN":
        number = finite(raw)
        if number is not None:
            return number
    what = "NaN" if raw == "NaN" else "infinite"
    notes.append(
        Note("non_finite", f"output {name[:60]!r} is {what}, so it is left out of the results", remedy_of("non_finite"))
    )
    return None


def _only(scores: dict[str, Json]) -> str | None:
    return next(iter(scores)) if len(scores) == 1 else None


def _no_score(count: int) -> str:
    if count:
        return f"the metric has {count} numeric or boolean outputs; choose the score with settings.score_output"
    return "the metric has no numeric or boolean output; score is null"


def _messages(diagnostics: list[Json]) -> list[str]:
    found = (one.get("message") for one in diagnostics if isinstance(one, dict))
    return [message for message in found if isinstance(message, str)]


def _invalid(message: str) -> EvaluationError:
    return EvaluationError(ErrorCode.INVALID_RESULT, message)


SDK: Final = Sdk(
    module="nemo_evaluator_sdk",
    stand_in=StandIn("dialects/nemo/modules", preimport="nemo_evaluator_sdk.exports"),
    lock="dialects/nemo/requirements.lock",
    real=frozenset({"nemo-platform", "nemo-evaluator-sdk", "nemo-evaluator"}),
    also=("nemo_evaluator",),
    needed=frozenset({"pydantic", "jinja2"}),
    needed_by={"BLEUMetric": "sacrebleu", "ROUGEMetric": "rouge-score", "cloudpickle": "cloudpickle"},
)

DIALECT: Final = Dialect(
    contract=Contract("nemo"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    takes=("config", "score_output"),
    asks_models=True,
    numbers_rows=True,
    bind_one_of_many=bind_one_of_many,
    sdk=SDK,
)

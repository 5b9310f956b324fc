"""Arguments and results of UiPath's evaluators (dialect `uipath`): `BaseEvaluator.evaluate(execution, criteria)`.

The runner turns a result into `{"score": number | bool, "score_type": 0 | 1 | 2, "details": string | object | null,
"evaluation_time": seconds}`. A boolean becomes 1 or 0 here, but 100 or 0 in UiPath; an error fails the row. `"ignored"`
lists criteria that the class does not have.
"""

import json
from collections.abc import Mapping
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import FINITE, Scored, contradiction
from evaluator_host.engine.contracts.metric_leaves import finite
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Note, Returned
from evaluator_host.vendors.uipath.spans import NotATrace, read_spans

_BOOLEAN, _NUMERIC, _ERROR = 0, 1, 2
_MORE: Final = {
    "expected_agent_behavior": "expected_agent_behavior",
    "expectedAgentBehavior": "expected_agent_behavior",
    "simulation_instructions": "simulation_instructions",
    "simulationInstructions": "simulation_instructions",
}


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return a row's input, output, spans and criteria, from which the runner makes UiPath's execution object."""
    output = {} if row.outputs is None else row.outputs
    if not isinstance(output, dict | str):
        return _unfit(f"outputs is {output!r:.60}; the output of an agent must be an object or a string")
    try:
        spans = read_spans(row.trace)
    except NotATrace as problem:
        return _unfit(str(problem), 'send OTLP/JSON, or {"spans": […]} with spans as OpenTelemetry writes them')
    more: dict[str, Json] = {}
    for name, value in (row.variables or {}).items():
        if name not in _MORE:
            return _unfit(f"variables.{name} is not a part of an execution", f"variables may have {', '.join(_MORE)}")
        if not isinstance(value, str | None):
            return _unfit(f"variables.{name} is {value!r:.60}, not a string")
        if value is not None:
            more[_MORE[name]] = value
    return Binding({"args": [row.inputs, output, spans, row.criteria, more]})


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read a numeric or boolean result. A boolean result also sets `passed`, and an error result fails the row."""
    value = returned.value
    if returned.unsupported is not None:
        path, kind = returned.unsupported
        message = f"the value at {path} is of type {kind}, which cannot be written as JSON"
        return EvaluationError(ErrorCode.INVALID_RESULT, message)
    if returned.kind is not Kind.OBJECT or not _is_result(value):
        return contradiction()
    reason = _reason(value["details"])
    if value["score_type"] == _ERROR:
        message = reason or "the evaluator returned an ErrorEvaluationResult without details"
        return EvaluationError(ErrorCode.USER_EXCEPTION, message, type="ErrorEvaluationResult")
    raw = value["score"]
    passed = bool(raw) if value["score_type"] == _BOOLEAN else None
    score = None if raw is None else finite(float(raw) if isinstance(raw, bool) else raw)
    if returned.nonfinite or score is None:
        where = ", ".join(returned.nonfinite) or "$.score"
        return EvaluationError(
            ErrorCode.NON_FINITE,
            f"the value at {where[:200]} is nan or inf",
            hint=FINITE,
        )
    ignored = value.get("ignored", ())
    notes = (Note("ignored", f"the evaluator's criteria have no {', '.join(ignored)[:200]}"),) if ignored else ()
    return Scored(score=score, passed=passed, metrics={"score": score}, reason=reason, notes=notes)


def name_in_config(config: Mapping[str, Json]) -> str | None:
    """Return the evaluator's id if its configuration is the content of its JSON file in a UiPath project."""
    name = config.get("id")
    return name if isinstance(name, str) and "evaluatorConfig" in config else None


def _is_result(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and value.get("score_type") in (_BOOLEAN, _NUMERIC, _ERROR)
        and isinstance(value.get("score"), bool | int | float | None)
        and "details" in value
        and isinstance(value.get("ignored", []), list)
        and all(isinstance(key, str) for key in value.get("ignored", ()))
    )


def _reason(details: Json) -> str | None:
    if details is None or isinstance(details, str):
        return details
    return json.dumps(details, ensure_ascii=False)


def _unfit(message: str, hint: str | None = None) -> EvaluationError:
    return EvaluationError(ErrorCode.BINDING_ERROR, message, hint=hint)


SDK: Final = Sdk(
    module="uipath.eval.evaluators",
    stand_in=StandIn("dialects/uipath/modules", preimport="uipath.eval.evaluators"),
    lock="dialects/uipath/requirements.lock",
    real=frozenset({"uipath", "uipath-langchain", "uipath-llamaindex", "uipath-mcp"}),
    needed=frozenset({"pydantic", "opentelemetry-sdk"}),
)

DIALECT: Final = Dialect(
    contract=Contract("uipath"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    takes=("config", "criteria"),
    sdk=SDK,
    name_in_config=name_in_config,
)

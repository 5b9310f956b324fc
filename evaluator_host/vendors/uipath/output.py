"""Converts the results of an eval set to UiPath's file (`--output-file`), and to the report that this host prints.

UiPath's format has one number per result: 100 or 0 for a boolean, 0 for an error, a number unchanged. This host's
format has a score from 0 to 1, or null, and also the raw value.
"""

from typing import Any

from evaluator_host.types.evaluator import Json
from evaluator_host.types.outcome import EvaluationError, EvaluationResult
from evaluator_host.vendors.uipath.eval_set import EvalItem
from evaluator_host.vendors.uipath.evaluation import EvalRun, overall, scores
from evaluator_host.vendors.uipath.evaluators import ProjectEvaluator
from evaluator_host.vendors.uipath.executions import Execution


def as_uipath(run: EvalRun, *, verbose: bool) -> dict[str, Json]:
    """Convert an eval set's results to UiPath's format; `verbose` adds the executions."""
    return {
        "evaluationSetName": run.eval_set.name,
        "evaluationSetResults": [
            {
                "evaluationName": item.name,
                "evaluationRunResults": [_dto(run, item, one) for one in run.asked(item)],
                "agentExecutionOutput": _agent(run.executions.get(item.id)) if verbose else None,
            }
            for item in run.eval_set.items
        ],
    }


def as_report(run: EvalRun) -> dict[str, Json]:
    """Convert an eval set's results to the form that this command line prints."""
    found = scores(run)
    return {
        "eval_set": {"id": run.eval_set.id, "name": run.eval_set.name},
        "score": overall(found),
        "evaluators": found,
        "items": [
            {
                "id": item.id,
                "name": item.name,
                "agent_error": run.agent_error(item),
                "results": {one.id: _ours(run.results.get((item.id, one.id))) for one in run.asked(item)},
            }
            for item in run.eval_set.items
        ],
        "notes": run.notes,
        "job": run.job,
    }


def _ours(result: EvaluationResult | None) -> dict[str, Json] | None:
    if result is None:
        return None
    return {
        "status": result.status,
        "score": result.score,
        "raw": result.value.get("score") if isinstance(result.value, dict) else None,
        "passed": result.passed,
        "reason": result.reason,
        "warnings": result.warnings,
        "error": None if result.error is None else _error(result.error),
    }


def _error(error: EvaluationError) -> dict[str, Json]:
    return {
        "code": error.code,
        "message": error.message,
        "line": error.line,
        "hint": error.hint,
        "traceback": error.traceback,
    }


def _dto(run: EvalRun, item: EvalItem, one: ProjectEvaluator) -> dict[str, Json]:
    result = run.results.get((item.id, one.id))
    told: dict[str, Json]
    if result is None:
        told = {"score": 0.0, "details": f"The agent failed: {run.agent_error(item)}", "evaluationTime": None}
    else:
        told = _result(result)
    return {"evaluatorName": one.name, "evaluatorId": one.id, "result": told, "isLineResult": False}


def _result(result: EvaluationResult) -> dict[str, Json]:
    value = result.value if isinstance(result.value, dict) else {}
    raw = value.get("score")
    seconds = value.get("evaluation_time", result.timing_ms.run / 1000)
    if result.error is not None:
        details = value.get("details") or f"Exception thrown by evaluator: {result.error.message}"
        return {"score": 0.0, "details": details, "evaluationTime": seconds}
    number = (100.0 if raw else 0.0) if isinstance(raw, bool) else raw if raw is not None else result.score
    told: dict[str, Json] = {"score": number}
    if value.get("details") is not None:
        told["details"] = value["details"]
    return {**told, "evaluationTime": seconds}


def _agent(execution: Execution | None) -> dict[str, Json] | None:
    if execution is None:
        return None
    error = None
    if execution.error is not None:
        error = {"code": "AGENT_FAILED", "title": "The agent failed", "detail": execution.error, "category": "User"}
    return {
        "execution_time": execution.seconds,
        "trace": {"spans": _spans((execution.trace or {}).get("spans"))},
        "result": {
            "output": execution.output,
            "status": "successful" if error is None else "faulted",
            "error": error,
        },
    }


def _spans(spans: Json) -> list[dict[str, Json]]:
    """Convert spans to the form of UiPath's output: without ids and times, but with the name of each span's parent."""
    flat = [span for span in spans if isinstance(span, dict)] if isinstance(spans, list) else []
    names = {str(span_id): span.get("name") for span in flat if (span_id := _context(span).get("span_id")) is not None}
    return [
        {
            "name": span.get("name"),
            "status": _status(span),
            "attributes": span.get("attributes") or {},
            "parent_name": span.get("parent_name", names.get(str(_parent(span)))),
            "events": span.get("events") or [],
        }
        for span in flat
    ]


def _context(span: dict[str, Any]) -> dict[str, Any]:
    context = span.get("context")
    return context if isinstance(context, dict) else {}


def _parent(span: dict[str, Any]) -> Json:
    parent = span.get("parent", span.get("parent_id"))
    return parent.get("span_id") if isinstance(parent, dict) else parent


def _status(span: dict[str, Any]) -> str:
    status = span.get("status", span.get("status_code"))
    status = status.get("status_code") if isinstance(status, dict) else status
    return {"0": "unset", "1": "ok", "2": "error"}.get(str(status), str(status).lower()) if status else "unset"

"""Runs a UiPath evaluator on a row: makes its execution object, and converts its result to plain values."""

from __future__ import annotations

import sys
import time

from evaluator_runner import signature
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODELS = "uipath.eval.models"
_NO_CRITERIA = "No evaluation criteria provided and no default evaluation criteria configured"
_RENAMED = (
    "uipath 2.12 renamed agent_output and agent_trace to workload_output and workload_trace; without a pin of "
    "uipath, both names work"
)
_SHOWN = 5
_modules, _clock = sys.modules, time.perf_counter


class Evaluator:
    """An evaluator that is called with each row.

    Attributes:
      notes: Remarks for the author.
    """

    def __init__(self, evaluator: Any, *, ignored: list[str]) -> None:
        self._evaluator = evaluator
        self._models = _modules[_MODELS]
        # With the default resource, each span would detect facts about the machine, which takes tens of milliseconds.
        self._resource = _modules["opentelemetry.sdk.resources"].Resource.get_empty()
        names = ", ".join(ignored)
        known = _fields(type(evaluator.evaluator_config))
        message = f"these keys of the configuration are ignored, because its class does not have them: {names}; {known}"
        self.notes = [{"code": "ignored", "message": message}] if ignored else []
        method: Any = type(evaluator).evaluate
        tracked = getattr(method, "_has_metrics_decorator", False) is True
        # call the author's method without its wrapper, which would drop tracebacks
        self._method = getattr(method, "__wrapped__", method) if tracked else method

    @property
    def signature(self) -> signature.Signature | None:
        """Return the parameters of the method that the author has written."""
        found = signature.read(self._method)
        return None if found is None else found.without_first()

    async def evaluate(self, agent_input: Any, output: Any, spans: Any, criteria: Any, more: dict[str, Any]) -> Any:
        """Score a row.

        Raises:
          Failure: the criteria do not fit the evaluator, or the returned value is not a result.
        """
        execution = self._execution(agent_input, output, spans, more)
        ignored = unknown(self._evaluator.evaluation_criteria_type, criteria)
        criteria = self._criteria(criteria)
        started = _clock()
        try:
            result = await self._pending(execution, criteria)
        except AttributeError as error:
            if getattr(error, "name", None) in {"agent_output", "agent_trace"} and error.obj is execution:
                error.add_note(_RENAMED)
            raise
        plain = self._plain(result, _clock() - started)
        return {**plain, "ignored": ignored} if ignored else plain

    def _execution(self, agent_input: Any, output: Any, spans: Any, more: dict[str, Any]) -> Any:
        """Return the execution object; its fields have the names that the installed release uses."""
        trace = [_span(span, self._resource) for span in spans]
        kind = vars(self._models).get("WorkloadExecution")
        if kind is None:
            return self._models.AgentExecution(agent_input=agent_input, agent_output=output, agent_trace=trace, **more)
        return kind(agent_input=agent_input, workload_output=output, workload_trace=trace, **more)

    def _criteria(self, given: Any) -> Any:
        """Convert the criteria to the evaluator's own type; as in UiPath, an empty object counts as no criteria."""
        evaluator = self._evaluator
        chosen = given or evaluator.evaluator_config.default_evaluation_criteria
        kind = evaluator.evaluation_criteria_type
        if chosen is None:
            raise Failure("missing_input", _NO_CRITERIA, hint=f"give the row `criteria`; {_fields(kind)}")
        try:
            return evaluator.validate_evaluation_criteria(chosen)
        except Exception as error:  # noqa: BLE001 - a validator of the author's may raise anything
            problems = explained(error.__cause__ or error, "criteria")
            message = f"the criteria do not fit {kind.__name__}: {problems}"
            raise Failure("binding_error", message, hint=_fields(kind)) from None

    def _pending(self, execution: Any, criteria: Any) -> Any:
        """Call `evaluate` and return its awaitable."""
        pending = self._method(self._evaluator, execution, criteria)
        if not hasattr(type(pending), "__await__"):
            problem = f"object {type(pending).__name__} can't be used in 'await' expression"
            hint = "write `async def evaluate(self, agent_execution, evaluation_criteria):`"
            raise Failure("invalid_result", f"Exception thrown by evaluator: {problem}", hint=hint)
        return pending

    def _plain(self, result: Any, seconds: float) -> dict[str, Any]:
        models = self._models
        kinds = (models.BooleanEvaluationResult, models.NumericEvaluationResult, models.ErrorEvaluationResult)
        if not isinstance(result, kinds):
            raise Failure(
                "invalid_result",
                f"evaluate returned {'nothing' if result is None else f'a value of type {type(result).__name__}'}",
                hint="return NumericEvaluationResult(score=…), BooleanEvaluationResult(score=…) or "
                "ErrorEvaluationResult(details=…)",
            )
        details = result.details
        if callable(getattr(details, "model_dump", None)):
            details = details.model_dump(mode="json")
        return {
            "score": result.score,
            "score_type": int(result.score_type),
            "details": details,
            "evaluation_time": round(seconds, 9),
        }


def explained(error: BaseException, what: str) -> str:
    """Format pydantic's errors; each field's path begins with `what`."""
    if not hasattr(error, "errors"):
        return str(error)
    found = error.errors(include_url=False)
    told = []
    for one in found[:_SHOWN]:
        where = ".".join([what, *(str(step) for step in one["loc"])])
        given = "" if one["type"] == "missing" else f", not {one['input']!r:.60}"
        told.append(f"{where}: {one['msg']}{given}")
    if len(found) > _SHOWN:
        told.append(f"and {len(found) - _SHOWN} more")
    return "; ".join(told)


def unknown(kind: Any, given: Any) -> list[str]:
    """Return the keys in `given` that the model `kind` lacks, or `[]` if the model does not ignore unknown keys."""
    if not isinstance(given, dict) or kind.model_config.get("extra", "ignore") != "ignore":
        return []
    known = {
        alias for name, field in kind.model_fields.items() for alias in (name, field.alias, field.validation_alias)
    }
    if not all(isinstance(alias, str | None) for alias in known):
        return []  # fields with several aliases are not supported here
    return [key for key in given if key not in known][:_SHOWN]


def _fields(kind: Any) -> str:
    fields = {field.alias or name: field.is_required() for name, field in kind.model_fields.items()}
    names = [f"{name}{'' if needed else ' (optional)'}" for name, needed in fields.items()]
    return f"the fields of {kind.__name__} are {', '.join(names)}" if names else f"{kind.__name__} has no fields"


def _span(held: dict[str, Any], resource: Any) -> Any:
    """Convert a span from the host (ids in hex, times in nanoseconds, numbers for kind and status) to the SDK's."""
    sdk, api = _modules["opentelemetry.sdk.trace"], _modules["opentelemetry.trace"]
    parent, status = held["parent_id"], api.StatusCode(held["status"])
    return sdk.ReadableSpan(
        name=held["name"],
        context=_context(api, held["trace_id"], held["span_id"]),
        parent=None if parent is None else _context(api, held["trace_id"], parent),
        attributes=held["attributes"],
        events=[sdk.Event(one["name"], one["attributes"], one["timestamp"]) for one in held["events"]],
        status=api.Status(status, held["status_message"] if status is api.StatusCode.ERROR else None),
        start_time=held["start_time"],
        end_time=held["end_time"],
        kind=api.SpanKind(held["kind"]),
        resource=resource,
    )


def _context(api: Any, trace_id: str, span_id: str) -> Any:
    return api.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=api.TraceFlags(1))

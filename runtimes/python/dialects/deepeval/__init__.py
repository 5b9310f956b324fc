"""Runs DeepEval metrics (dialect `deepeval`): subclasses of `BaseMetric` whose `measure` sets score and reason.

This works with the package that the code has imported as `deepeval`: the runner's light modules, or the real package.
"""

from __future__ import annotations

import sys

from evaluator_runner import dialects
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.candidates import meant_in, outline_of, several
from evaluator_runner.coerce import type_name
from evaluator_runner.entry import Entry, object_of
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "deepeval"
WORDS = ("deepeval",)
PREBOUND = False
IMPORTS = {
    "BaseMetric": "deepeval.metrics:BaseMetric",
    "LLMTestCase": "deepeval.test_case:LLMTestCase",
    "LLMTestCaseParams": "deepeval.test_case:LLMTestCaseParams",
    "ConversationalTestCase": "deepeval.test_case:ConversationalTestCase",
    "ToolCall": "deepeval.test_case:ToolCall",
    "Turn": "deepeval.test_case:Turn",
}
_BASES = ("BaseMetric", "BaseConversationalMetric")
_LISTS = ("tools_called", "expected_tools")
_TURN = ("role", "content", "user_id", "retrieval_context", "tools_called", "metadata")
_modules = sys.modules


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a metric class of the package `deepeval`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    found = outline.subclass_of("deepeval", *_BASES)
    if found is None or (name is not None and name not in outline.classes):
        return None
    return dialects.DECORATED, f"class `{name or found}`, a metric of deepeval"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that calls the metric `name`, or else the only metric that the code defines.

    Raises:
      Failure: the code defines no metric, or several.
    """
    module = _modules.get("deepeval.metrics.base_metric")
    bases = tuple(kind for kind in (getattr(module, one, None) for one in _BASES) if isinstance(kind, type))
    own = {key: one for key, one in namespace.items() if isinstance(one, type) and bases and issubclass(one, bases)}
    own = {key: one for key, one in own.items() if one.__module__ == "evaluator"}
    if not own or (name is not None and name not in own):
        what = f"`{name}` is not a metric" if name is not None else "the code defines no subclass of BaseMetric"
        raise Failure(
            "entry_not_found",
            what + (f"; it defines {', '.join(list(own)[:10])}" if own else ""),
            hint="write `class MyMetric(BaseMetric)`, with BaseMetric from deepeval.metrics",
        )
    names = meant_in(namespace, list(own)) if name is None else [name]
    if len(names) > 1:
        raise several(outline_of(namespace), names, "metrics")
    chosen = names[0]
    reads = _Reader(own[chosen], object_of(namespace, chosen, config))
    entry = Entry(chosen, own[chosen].measure)
    entry.call, entry.bind = reads.measure, reads.arguments
    if _measures_alone(own[chosen]):
        message = f"{chosen} has no `a_measure`, which DeepEval's evaluate() calls; the host calls `measure` instead"
        entry.notes.append({"code": "measure_called", "message": message})
    return entry


class _Reader:
    """Calls one metric with test cases, and reads the attributes that the metric sets."""

    def __init__(self, kind: Any, metric: Any) -> None:
        self._metric = metric
        conversational = getattr(_modules["deepeval.metrics.base_metric"], "BaseConversationalMetric", None)
        self._of_turns = isinstance(conversational, type) and issubclass(kind, conversational)

    def arguments(self, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Convert a row to the argument of `measure`: a test case."""
        import deepeval.test_case as kinds  # type: ignore[import-not-found]

        fields = dict(args[0].get("test_case") or {})
        turns = fields.pop("turns", None)
        if turns is not None and self._of_turns:
            names = ("scenario", "context", "name", "metadata")
            made = [_turn(kinds, one) if isinstance(one, dict) else one for one in turns]
            return [
                kinds.ConversationalTestCase(turns=made, **{one: fields[one] for one in names if one in fields})
            ], {}
        for name in _LISTS:
            if fields.get(name) is not None:
                fields[name] = [kinds.ToolCall(**one) if isinstance(one, dict) else one for one in fields[name]]
        return [kinds.LLMTestCase(**fields)], {}

    async def measure(self, case: Any) -> Any:
        """Call the metric; return the attributes that it set, and the error that it raised."""
        import copy

        metric = copy.copy(self._metric)
        raised = None
        try:
            await _measured(metric, case)
        except Exception as error:  # noqa: BLE001 - the platform stores the error
            metric.error, metric.score = str(error), None
            raised = {"type": type(error).__name__, "message": str(error), "line": _line_of(error)}
        success = False if raised else metric.is_successful()
        native = {
            "name": str(getattr(metric, "__name__", type(metric).__name__)),
            "score": metric.score,
            "threshold": metric.threshold,
            "success": success,
            "reason": metric.reason,
            "error": metric.error,
        }
        if not isinstance(metric.score, bool | int | float | None):
            native["score"], native["returned"] = None, type_name(type(metric.score))
        return {"metric": native, "raised": raised, "skipped": getattr(metric, "skipped", False) is True}


def _turn(kinds: Any, fields: dict[str, Any]) -> Any:
    given = {key: one for key, one in fields.items() if key in _TURN}
    if given.get("tools_called"):
        given["tools_called"] = [
            kinds.ToolCall(**one) if isinstance(one, dict) else one for one in given["tools_called"]
        ]
    return kinds.Turn(**given)


def _measures_alone(kind: Any) -> bool:
    """Return whether a metric defines `measure` but not `a_measure`, so that the inherited `a_measure` would fail."""
    owners = [one for one in kind.__mro__ if "a_measure" in vars(one)]
    return bool(owners) and owners[0].__name__ in _BASES and owners[0].__module__.startswith("deepeval.")


async def _measured(metric: Any, case: Any) -> None:
    if getattr(metric, "async_mode", True) is False or _measures_alone(type(metric)):
        metric.measure(case)
        return
    try:
        await metric.a_measure(case, _show_indicator=False, _in_component=False)
    except TypeError:
        await metric.a_measure(case)


def _line_of(error: BaseException) -> int | None:
    """Return the number of the last line of the user's code in an exception's traceback, or None if there is none."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "evaluator":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

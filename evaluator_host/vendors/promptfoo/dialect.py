"""Arguments and results of promptfoo's assertions in Python and JavaScript (dialect `promptfoo`).

An assertion gets `(output, context)`. Source of the rules: promptfoo 0.121.20, its assertions and python/wrapper.py.
After an exception promptfoo stores a failed result; `failed` and `failed_javascript` return it.
"""

import json
import math
import re
from dataclasses import replace
from typing import Any, Final

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.metric_leaves import finite
from evaluator_host.engine.contracts.native import invalid, is_number, unreadable, without_truth
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Returned

_PASSED: Final = "Assertion passed"
_FAILED: Final = {Language.PYTHON: "Python code returned false"}
_FAILED_JS: Final = "Custom function returned false"
_TAKES: Final = "a boolean, number, or {pass, score, reason} object"
_SNAKE: Final = {
    "pass_": "pass",
    "named_scores": "namedScores",
    "component_results": "componentResults",
    "tokens_used": "tokensUsed",
}
_NUMBER: Final = re.compile(r"\s*[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_HINT: Final = "return a bool, a number, or an object with all of pass, score and reason"


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return output and context.

    They come from the row's `variables` in promptfoo's form, or from the row's other fields.

    A row's criteria, such as `{"config": {"value": …}}`, are added to the context as further fields.
    """
    if row.variables is not None:
        if "output" not in row.variables:
            message = "variables must have the keys that promptfoo passes, 'output' and 'context'; 'output' is missing"
            return EvaluationError(ErrorCode.MISSING_INPUT, message, hint="add it, or send inputs and outputs instead")
        output, given = row.variables["output"], row.variables.get("context")
        context = given if isinstance(given, dict) else {}
    else:
        inputs, truth = without_truth(row, settings)
        variables = row.inputs if inputs is row.inputs else {"expected": truth, **row.inputs}
        output, context = row.outputs, {"vars": variables, "trace": row.trace}
    usual = {
        "prompt": None,
        "vars": {},
        "test": {"vars": context.get("vars") or {}},
        "logProbs": None,
        "config": settings.config,
        "provider": None,
        "providerResponse": {"output": output},
        "metadata": {},
    }
    own = row.criteria if isinstance(row.criteria, dict) else {}
    return Binding({"args": [output, {**usual, **context, **own}]})


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read a bool, number or result object by promptfoo's rules, before a threshold applies."""
    if (error := unreadable(returned)) is not None:
        return error
    value: Json = None if returned.kind is Kind.MISSING else returned.value
    if language is Language.PYTHON and isinstance(value, str):
        value = _from_text(value)
    if isinstance(value, dict):
        return _from_object({_SNAKE.get(str(key), str(key)): one for key, one in value.items()}, language)
    if isinstance(value, bool):
        return _plain(float(value), value, language)
    if is_number(value) and (score := finite(value)) is not None:
        return _plain(score, score > 0, language)
    return _refused(language, "Instead got")


def _from_text(text: str) -> Json:
    """Parse a string as promptfoo does: true, false, an object, or the number at its beginning. Other text is None."""
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    if text.strip().startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None
    found = _NUMBER.match(text)
    number = float(found[0]) if found else math.nan
    return number if math.isfinite(number) else None


def _from_object(value: dict[str, Any], language: Language) -> Scored | EvaluationError:
    passed, score, reason = value.get("pass"), value.get("score"), value.get("reason")
    if not isinstance(passed, bool) or not is_number(score) or not isinstance(reason, str):
        return _refused(language, "Got instead")
    number = finite(score)
    named = value.get("namedScores")
    metrics: dict[str, float | int] = {} if number is None else {"score": number}
    for name, one in (named if isinstance(named, dict) else {}).items():
        if is_number(one) and (found := finite(one)) is not None:
            metrics.setdefault(str(name), found)
    return Scored(number, passed, metrics, reason=reason, native=(value,))


def _plain(score: float, passed: bool, language: Language) -> Scored:  # noqa: FBT001 - a result of promptfoo has both
    reason = _PASSED if passed else _FAILED.get(language, _FAILED_JS)
    return Scored(score, passed, {"score": score}, native=({"pass": passed, "score": score, "reason": reason},))


def _refused(language: Language, got: str) -> Scored:
    python = language is Language.PYTHON
    message = f"{'Python assertion' if python else 'Custom function'} must return {_TAKES}"
    kind = "Python code execution failed: " if python else "Custom function threw error: "
    native = {"pass": False, "score": 0, "reason": f"{kind}{message}. {got}:"}
    return Scored(None, None, {}, native=(native,), error=invalid(message, _HINT))


def apply_threshold(scored: Scored, threshold: float | None, language: Language) -> Scored:
    """Set `pass` in a result by the threshold: for a number always, for an object only in Python.

    As in promptfoo, rounding errors matter: 0.7 + 0.1 does not reach 0.8.
    """
    [native] = scored.native
    if threshold is None or scored.score is None:
        return scored
    reason = native["reason"]
    plain = reason in (_PASSED, _FAILED.get(language, _FAILED_JS))
    if not plain and (language is not Language.PYTHON or scored.score >= threshold):
        return scored
    passed = scored.score >= threshold
    if plain:
        reason = _PASSED if passed else _FAILED.get(language, _FAILED_JS)
    else:
        reason = f"Python score {scored.score} is less than threshold {threshold}"
    return replace(scored, passed=passed, native=({**native, "pass": passed, "reason": reason},))


def failed(error: EvaluationError) -> tuple[dict[str, Json], ...]:
    """Return what promptfoo stores for a Python assertion that raised an exception."""
    return ({"pass": False, "score": 0, "reason": f"Python execution failed: {error.typed_message}"},)


def failed_javascript(error: EvaluationError) -> tuple[dict[str, Json], ...]:
    """Return what promptfoo stores for a JavaScript assertion that threw an exception."""
    return ({"pass": False, "score": 0, "reason": f"Custom function threw error: {error.message}"},)


DIALECT: Final = Dialect(
    contract=Contract("promptfoo"),
    bind=bind,
    interpret=interpret,
    failed=failed,
    failed_javascript=failed_javascript,
    apply_threshold=apply_threshold,
    positions=("output", "context"),
    native_row={"output": "Paris", "context": {"vars": {"expected": "Paris"}}},
    takes=("correct_answer_key", "config", "variables"),
    truth_or_column=("expected",),
)

"""Arguments and results of Inspect AI's scorers (dialect `inspect`): `score(state, target)` returns a `Score`.

The runner sends `{"name", "value", "answer", "explanation", "metadata"}`, or `{"returned": type}`. The value of an
unscored sample is None. Source of the rules: inspect_ai 0.3.285, scorer/_scorer.py, _metric.py, _target.py.
"""

import math
from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.metric_leaves import finite
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    object_sent,
    question,
    scored,
    scoring_failed,
    text_of,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Note, Returned

_LETTERS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return Inspect's sample: the row's `variables`, or a sample made from the row's other fields."""
    return bind_native(row, settings, _sample, needs="completion")


def _sample(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    if inputs is row.inputs:
        truth = row.inputs.get("target", "")
    target: Json = [text_of(one) for one in truth] if isinstance(truth, list) else text_of(truth)
    sample: dict[str, Json] = {"input": question(inputs), "completion": text_of(row.outputs), "metadata": inputs}
    if (messages := messages_of(row)) is not None:
        sample["messages"] = messages
    return {**sample, "target": target}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the score as Inspect's metrics do: C is 1, P is 0.5, I and N are 0; each key of a dict is a metric."""
    found = object_sent(returned)
    if isinstance(found, EvaluationError):
        return found
    if "name" not in found:
        return invalid(
            f"the scorer returned {str(found.get('returned'))[:100]}; Inspect takes a Score", "return Score(value=…)"
        )
    value, name = found.get("value"), str(found["name"])
    explanation = found.get("explanation")
    reason = explanation if isinstance(explanation, str) else None
    if value is None:
        native = (found,) if len(found) > 2 else ()
        return Scored(None, None, {}, reason=reason, skipped=True, native=native)
    if isinstance(value, dict | list):
        return _several(value, found, reason)
    number, verdict = _number(value)
    message = f"the value {text_of(value)[:60]!r} is neither a number nor one of C, P, I, N; Inspect counts it as 0"
    note = Note("no_score", message)
    if number is None:
        return Scored(None, None, {}, label=text_of(value), reason=reason, notes=(note,), native=(found,))
    read = scored([NamedScore(name, number, reason, verdict)], [found])
    return replace(read, label=value) if isinstance(read, Scored) and isinstance(value, str) else read


def _number(value: Json) -> tuple[float | None, bool | None]:
    """Return a sample's value as a number, and whether the sample passed; None means unknown."""
    if isinstance(value, bool):
        return float(value), value
    if isinstance(value, int | float):
        number = finite(value)
        return None if number is None else float(number), None
    text = str(value)
    if (number := _LETTERS.get(text, _WORDS.get(text.lower()))) is not None:
        return number, number == 1.0
    try:
        number = float(text)  # like Inspect, this accepts grouped digits (1_000) and digits of other scripts
    except ValueError:
        return None, None
    return (number if math.isfinite(number) else None), None


def _several(value: dict[str, Json] | list[Json], found: dict[str, Json], reason: str | None) -> Scored:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    metrics: dict[str, float | int] = {}
    lost: list[dict[str, Json]] = []
    for key, one in pairs:
        number, _ = _number(one)
        if number is not None and (plain := finite(number)) is not None:
            metrics[str(key)] = plain
        else:
            lost.append({"name": str(key)[:60]})
    note = Note("no_score", "the value has several parts; each becomes a metric, and score is null")
    notes = (*(() if "score" in metrics else (note,)), *scoring_failed(lost))
    return Scored(metrics.get("score"), None, metrics, reason=reason, notes=notes, native=(found,))


DIALECT: Final = Dialect(
    contract=Contract("inspect"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    native_row={"input": "What is the capital of France?", "completion": "Paris", "target": "Paris"},
    takes=("correct_answer_key", "config", "messages", "variables"),
    truth_or_column=("target",),
    sdk=Sdk(
        module="inspect_ai",
        stand_in=StandIn("dialects/inspect/modules", preimport="inspect_ai.scorer"),
        real=frozenset({"inspect-ai", "inspect_ai"}),
    ),
)

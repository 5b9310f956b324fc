"""Arguments and results of Phoenix's evaluators (dialect `phoenix`): `evaluate(output, …)`, and `create_evaluator`.

For `create_evaluator` the runner sends `{"scores": [{"name", "score", "label", "explanation", "kind", "direction"}]}`.
Source of the rules: Arize-ai/phoenix@9478f954, server/api/coerce_output.py; arize-phoenix-evals 3.9.4, evaluators.py.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    is_number,
    own_columns,
    scored,
    shown,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Returned

_KEYS: Final = frozenset({"label", "score", "explanation"})
_TRUTH: Final = frozenset({"reference", "expected"})
_OTHERS: Final = frozenset({"example", "id"})
_RANGE: Final = re.compile(r"continuous (-?[0-9.]{1,20})\.\.(-?[0-9.]{1,20})")


class _Refused(Exception):
    """Phoenix does not accept a value; the message says why."""


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return Phoenix's row: the row's `variables`, or an object made from the row's other fields."""
    return bind_native(row, settings, _fields, needs="")


def _fields(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    own = own_columns(row, settings, truth=_TRUTH, others=_OTHERS)
    known: dict[str, Json] = {"output": row.outputs, "input": inputs, "metadata": row.trace or {}}
    if own is not None:
        known |= {"input": own["input"], "metadata": own.get("metadata") or known["metadata"]}
    if inputs is not row.inputs:
        known |= {"reference": truth, "expected": truth}
    return {**inputs, **known}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the value by the output configuration (`settings.config`), or the scores that phoenix.evals returned."""
    if (error := unreadable(returned)) is not None:
        return error
    value = returned.value
    if isinstance(value, dict) and isinstance(value.get("scores"), list) and "of_package" in value:
        return _of_package([one for one in value["scores"] if isinstance(one, dict)], settings.score_output)
    several = settings.config.get("output_configs")
    try:
        if isinstance(several, dict) and len(several) > 1:
            return _routed(value, several, settings.score_output)
        config = next(iter(several.values())) if isinstance(several, dict) and several else None
        native = _coerce(value, _config(config or settings.config.get("output_config")))
    except _Refused as refused:
        return invalid(str(refused))
    return _one(native, verdict=value if isinstance(value, bool) else None)


def _of_package(found: list[dict[str, Json]], chosen: str | None) -> Scored | EvaluationError:
    """Read the scores that phoenix.evals returned.

    The first label among them becomes the label of the result. `chosen` names the score to use; if `chosen` is None,
    the score is the mean of all scores.
    """
    kept = [{name: one for name, one in score.items() if one is not None} for score in found]
    read = scored([_named(one) for one in found], kept, chosen=chosen)
    if isinstance(read, EvaluationError) or not found:
        return read
    label = next((one["label"] for one in found if isinstance(one.get("label"), str)), None)
    verdict = {"True": True, "False": False}.get(label or "") if found[0].get("from_bool") else None
    for one in kept:
        one.pop("from_bool", None)
    return replace(read, label=label, passed=verdict if len(found) == 1 else None)


def _named(one: Mapping[str, Json]) -> NamedScore:
    explanation = one.get("explanation")
    value = one["score"] if one.get("score") is not None else one.get("label")
    return NamedScore(str(one.get("name", "score")), value, explanation if isinstance(explanation, str) else None)


def _one(native: dict[str, Json], *, verdict: bool | None) -> Scored | EvaluationError:
    read = scored([_named({"name": "score", **native})], [native])
    return read if isinstance(read, EvaluationError) else replace(read, label=native["label"], passed=verdict)


def _routed(value: Json, configs: dict[str, Json], chosen: str | None) -> Scored | EvaluationError:
    """Read a returned dict that has a value for every configured output.

    `chosen` names the output that gives the score; if `chosen` is None, the score is the mean of all outputs.
    """
    if not isinstance(value, dict) or any(name not in value for name in configs):
        names = ", ".join(configs)[:200]
        raise _Refused(f"the evaluator has several outputs; return a dict with a value for each: {names}")
    native: list[dict[str, Json]] = []
    for name, config in configs.items():
        one = _coerce(value[name], _config(config))
        if one["explanation"] is None and isinstance(value.get("explanation"), str):
            one["explanation"] = value["explanation"]
        native.append({"name": name, **one})
    return scored([_named(one) for one in native], native, chosen=chosen)


def _config(given: Json) -> dict[str, Json]:
    """Parse an output configuration to `{"type", …}`; `given` may also be a string such as `continuous 0..1`."""
    if given is None or given == "none":
        return {"type": "none"}
    if isinstance(given, str):
        bounds = _RANGE.fullmatch(given)
        if bounds is not None:
            return {"type": "continuous", "lower_bound": float(bounds[1]), "upper_bound": float(bounds[2])}
        return {"type": given}
    if not isinstance(given, dict):
        raise _Refused(f"the output configuration is {shown(given)}, not an object")
    if "type" in given:
        return given
    return {"type": "categorical" if "values" in given else "continuous", **given}


def _coerce(value: Json, config: dict[str, Json]) -> dict[str, Json]:
    """Convert a returned value to label, score and explanation, as Phoenix does for this output configuration."""
    kind = config["type"]
    if kind not in {"none", "continuous", "categorical"}:
        raise _Refused(f"the output configuration {shown(kind)} is not one of none, continuous and categorical")
    if isinstance(value, dict):
        return _from_dict(value, config)
    if value is None and kind == "none":
        return {"label": None, "score": None, "explanation": None}
    if kind == "continuous":
        return {"label": None, "score": _bounded(value, config), "explanation": None}
    if kind == "categorical":
        label = str(value) if isinstance(value, bool) else value
        return {"label": label, "score": _of_label(label, config), "explanation": None}
    if isinstance(value, bool | str):
        return {"label": str(value), "score": None, "explanation": None}
    if is_number(value):
        return {"label": None, "score": float(value), "explanation": None}
    raise _Refused(f"Phoenix accepts a number, a bool, a string or a dict, not {shown(value)}")


def _from_dict(value: dict[str, Json], config: dict[str, Json]) -> dict[str, Json]:
    """Read a returned dict with label, score and explanation; refuse other keys, as Phoenix does."""
    if unknown := [key for key in value if key not in _KEYS]:
        raise _Refused(f"the dict has the keys {shown(unknown)}; Phoenix takes only label, score and explanation")
    label, score, explanation = (value.get(name) for name in ("label", "score", "explanation"))
    if explanation is not None and not isinstance(explanation, str):
        raise _Refused(f"explanation is {shown(explanation)}, not a string")
    if config["type"] == "continuous":
        return {"label": label, "score": _bounded(score, config), "explanation": explanation}
    if config["type"] == "categorical":
        known = _of_label(label, config)
        if score is not None and score != known:
            raise _Refused(
                f"score is {shown(score)}, but the label {shown(label)} is configured with the score {shown(known)}"
            )
        return {"label": label, "score": known, "explanation": explanation}
    if score is not None and not is_number(score):
        raise _Refused(f"score is {shown(score)}, not a number")
    if label is not None and not isinstance(label, str):
        raise _Refused(f"label is {shown(label)}, not a string")
    return {"label": label, "score": None if score is None else float(score), "explanation": explanation}


def _bounded(value: Json, config: dict[str, Json]) -> float:
    """Return the score of a continuous output; refuse a score outside the configured bounds."""
    if not is_number(value):
        raise _Refused(f"a continuous output needs a number, not {shown(value)}")
    low, high = config.get("lower_bound"), config.get("upper_bound")
    if is_number(low) and value < low:
        raise _Refused(f"score {shown(value)} is below the lower bound {low}")
    if is_number(high) and value > high:
        raise _Refused(f"score {shown(value)} is above the upper bound {high}")
    return float(value)


def _of_label(label: Json, config: dict[str, Json]) -> Json:
    """Return the score that is configured for a label; refuse a label that is not configured."""
    values = config.get("values")
    if isinstance(values, list):
        values = {one.get("label"): one.get("score") for one in values if isinstance(one, dict)}
    if not isinstance(label, str) or not isinstance(values, dict) or label not in values:
        names = ", ".join(values) if isinstance(values, dict) else "none is configured"
        raise _Refused(f"a categorical output needs one of its labels ({names[:200]}), not {shown(label)}")
    return values[label]


DIALECT: Final = Dialect(
    contract=Contract("phoenix"),
    bind=bind,
    interpret=interpret,
    native_row={"output": "Paris", "reference": "Paris", "input": "What is the capital of France?", "metadata": {}},
    takes=("correct_answer_key", "config", "score_output", "variables"),
    truth_or_column=("reference", "expected"),
    config_keys=frozenset({"output_config", "output_configs"}),
    sdk=Sdk(
        module="phoenix",
        stand_in=StandIn("dialects/phoenix/modules", preimport="phoenix.evals"),
        real=frozenset({"arize-phoenix-evals", "arize-phoenix"}),
    ),
)

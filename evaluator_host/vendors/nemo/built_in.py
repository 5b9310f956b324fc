"""NeMo's built-in metrics, by type, as code to run in a sandbox."""

import json
from typing import Any, Final

from evaluator_host.types.errors import InvalidRequest

CLASSES: Final = {
    "exact-match": "ExactMatchMetric",
    "f1": "F1Metric",
    "bleu": "BLEUMetric",
    "rouge": "ROUGEMetric",
    "string-check": "StringCheckMetric",
    "number-check": "NumberCheckMetric",
    "tool-calling": "ToolCallingMetric",
    "llm-judge": "LLMJudgeMetric",
}
_OUTPUTS: Final = {
    "bleu": ("sentence",),
    "rouge": ("rouge_1_score", "rouge_2_score", "rouge_3_score", "rouge_L_score"),
    "tool-calling": ("function_name_accuracy", "function_name_and_args_accuracy"),
}  # every other metric has a single output, whose name is the metric's type
_CODE: Final = """import json

from nemo_evaluator_sdk import {name}

metric = {name}.model_validate(json.loads({config!r}))
"""


def built_in_code(metric: dict[str, Any], *, field: str) -> str:
    """Return code that creates a built-in metric from its configuration; errors refer to the configuration as `field`.

    Raises:
      InvalidRequest: the type of the metric does not run here.
    """
    name = CLASSES.get(str(metric.get("type")))
    if name is None:
        message = f"metrics of type {str(metric.get('type'))[:60]!r} do not run here; these do: {', '.join(CLASSES)}"
        hint = "bundle the metric with CloudpickleMetricBundlePackager()"
        raise InvalidRequest.of(f"{field}.type", message, hint, what="metric")
    return _CODE.format(name=name, config=json.dumps(metric))


def bundle_of(metric: dict[str, Any], *, field: str) -> dict[str, Any]:
    """Make a metric bundle from the configuration of a built-in metric. Some clients send only this configuration.

    Raises:
      InvalidRequest: the type of the metric does not run here.
    """
    built_in_code(metric, field=field)
    kind = str(metric["type"])
    names = _OUTPUTS.get(kind, (kind,)) if kind != "llm-judge" else tuple(levels_of(metric))
    metadata = {"description": metric.get("description"), "labels": metric.get("labels") or {}}
    return {
        "bundle_kind": "metric-bundle",
        "bundle_format_version": "v1",
        "metric_type": kind,
        "metadata": metadata,
        "outputs": [{"name": name, "description": None, "value_json_schema": {"type": "number"}} for name in names],
        "secrets": {},
        "payload": {"kind": "inline", "metric": metric},
    }


def levels_of(metric: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the levels of each score's rubric in a judge metric, by the score's name; `[]` if there is no rubric."""
    scores = metric.get("scores")
    known = [one for one in scores if isinstance(one, dict)] if isinstance(scores, list) else []
    return {str(one.get("name")): list(one.get("rubric") or ()) for one in known}

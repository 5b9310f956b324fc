"""Judges without code: the metric that a form becomes."""

import json
from typing import Any


def judge_code(form: dict[str, Any]) -> str:
    """Return a metric of this dialect that judges by a form, `JudgeIn` as JSON."""
    text = json.dumps(form, ensure_ascii=False, sort_keys=True)
    return (
        "import json\n\nfrom nemo_evaluator_sdk.metrics.judge_form import judge\n\n"
        f"metric = judge(json.loads({text!r}))\n"
    )

"""Reads what Opik's API and SDK export: online evaluation rules, dataset items and traces.

Source of the fields: Opik's REST reference, AutomationRuleEvaluator, DatasetItem and Trace.
"""

from typing import Final

from evaluator_host.engine.contracts.imports import FoundEvaluator, FreeNames, LeftOut, PlatformExport, RowShape, shown
from evaluator_host.types.evaluator import Contract, Json


def _evaluator(item: dict[str, Json], names: FreeNames, where: str) -> list[FoundEvaluator | LeftOut] | None:
    rule = item.get("code")
    if not isinstance(rule, dict):
        return None
    name = str(item.get("name") or "metric")
    if not isinstance(rule.get("metric"), str):
        return [LeftOut(where, f"{name} asks a model and has no code", shown(item))]
    rate = item.get("sampling_rate", item.get("samplingRate"))
    sampling = float(rate) if isinstance(rate, int | float) and 0 <= rate <= 1 else None
    made: list[FoundEvaluator | LeftOut] = [
        FoundEvaluator(names.give(name), rule["metric"], where, contract=Contract("opik"), sampling=sampling)
    ]
    if rule.get("arguments"):
        reason = "the paths of arguments are not imported: `score` gets each argument from the row by its name"
        made.append(LeftOut(f"{where}.code.arguments", reason, shown(rule["arguments"])))
    if item.get("filters"):
        made.append(
            LeftOut(
                f"{where}.filters",
                "the filter is not imported: every row is scored; choose the rows in the job",
                item["filters"],
            )
        )
    return made


EXPORT: Final = PlatformExport(
    platform="opik",
    evaluator=_evaluator,
    rows=(
        RowShape(
            "dataset items",
            needs=(("data",), ("id", "source")),
            within="data",
            outputs=("output",),
            expected=("expected_output", "reference", "expected", "expected_answer"),
            kept=("id", "tags"),
        ),
        RowShape("traces", needs=(("input",), ("project_id", "project_name")), outputs=("output",)),
    ),
)

"""Reads what LangSmith's API and SDKs export: run rules with code evaluators, examples of data sets, and runs.

Source of the fields: langsmith 0.15.0, schemas Example and Run; LangSmith's API reference, RuleCodeEvaluator.
"""

from typing import Final

from evaluator_host.engine.contracts.imports import FoundEvaluator, FreeNames, LeftOut, PlatformExport, RowShape, shown
from evaluator_host.types.evaluator import Contract, Json, Language

_LANGUAGES: Final = {
    "python": Language.PYTHON,
    "javascript": Language.TYPESCRIPT,
    "typescript": Language.TYPESCRIPT,
    "js": Language.TYPESCRIPT,
    "ts": Language.TYPESCRIPT,
}


def _evaluator(item: dict[str, Json], names: FreeNames, where: str) -> list[FoundEvaluator | LeftOut] | None:
    if not any(isinstance(item.get(field), list) for field in ("code_evaluators", "evaluators")):
        return None
    name = str(item.get("display_name") or item.get("name") or "evaluator")
    rate = item.get("sampling_rate")
    sampling = float(rate) if isinstance(rate, int | float) and 0 <= rate <= 1 else None
    made: list[FoundEvaluator | LeftOut] = []
    for index, one in enumerate(item.get("code_evaluators") or ()):
        place = f"{where}.code_evaluators[{index}]"
        language = _LANGUAGES.get(str(one.get("language") or "python").lower()) if isinstance(one, dict) else None
        if language is None or not isinstance(one.get("code"), str):
            made.append(LeftOut(place, f"{name} has no code in Python or JavaScript", shown(one)))
            continue
        made.append(
            FoundEvaluator(names.give(name), one["code"], place, language, Contract("langsmith"), sampling=sampling)
        )
    for index, one in enumerate(item.get("evaluators") or ()):
        made.append(LeftOut(f"{where}.evaluators[{index}]", f"{name} asks a model and has no code", shown(one)))
    if item.get("filter"):
        made.append(
            LeftOut(
                f"{where}.filter",
                "the filter is not imported: every row is scored; choose the rows in the job",
                item["filter"],
            )
        )
    return made


EXPORT: Final = PlatformExport(
    platform="langsmith",
    evaluator=_evaluator,
    rows=(
        RowShape("runs", needs=(("inputs",), ("run_type",)), inputs=("inputs",), outputs=("outputs",)),
        RowShape(
            "examples",
            needs=(("inputs",), ("dataset_id", "source_run_id", "reference_outputs", "created_at")),
            inputs=("inputs",),
            expected=("outputs", "reference_outputs"),
        ),
    ),
)

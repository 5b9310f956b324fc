"""Reads what Langfuse's API and SDKs export: evaluators, dataset items, observations and traces.

Source of the fields: Langfuse's OpenAPI document, schemas CodeEvaluator, DatasetItem, Observation and Trace.
"""

from typing import Final

from evaluator_host.engine.contracts.imports import FoundEvaluator, FreeNames, LeftOut, PlatformExport, RowShape, shown
from evaluator_host.types.evaluator import Contract, Json, Language

_LANGUAGES: Final = {"PYTHON": Language.PYTHON, "TYPESCRIPT": Language.TYPESCRIPT}


def _evaluator(item: dict[str, Json], names: FreeNames, where: str) -> list[FoundEvaluator | LeftOut] | None:
    code = item.get("sourceCode", item.get("source_code"))
    name = str(item.get("name") or "evaluator")
    if not isinstance(code, str):
        is_judge = str(item.get("type", "")).lower() == "llm_as_judge" and "code" not in item
        return [LeftOut(where, f"{name} asks a model and has no code", shown(item))] if is_judge else None
    language = _LANGUAGES.get(str(item.get("sourceCodeLanguage", item.get("source_code_language", "PYTHON"))).upper())
    if language is None:
        return [LeftOut(where, f"{name} is in a language that this host does not run", shown(item))]
    return [FoundEvaluator(names.give(name), code, where, language, Contract("langfuse"))]


EXPORT: Final = PlatformExport(
    platform="langfuse",
    evaluator=_evaluator,
    rows=(
        RowShape(
            "dataset items",
            needs=(("input",), ("datasetId", "dataset_id", "datasetName", "dataset_name")),
            expected=("expectedOutput", "expected_output"),
            unless=("status", frozenset({"ARCHIVED"}), "the item is archived"),
        ),
        RowShape("observations", needs=(("input",), ("traceId", "trace_id"), ("type",)), outputs=("output",)),
        RowShape(
            "traces",
            needs=(("input",), ("timestamp",), ("environment", "public", "release", "sessionId", "session_id")),
            outputs=("output",),
        ),
    ),
)

"""Reads what Braintrust's API and SDKs export: functions, and rows of data sets, experiments and logs.

Source of the fields: Braintrust's API reference, Function (`function_data`) and the events of `fetch`.
"""

from typing import Final

from evaluator_host.engine.contracts.imports import FoundEvaluator, FreeNames, LeftOut, PlatformExport, RowShape, shown
from evaluator_host.types.evaluator import Contract, Json, Language

_LANGUAGES: Final = {"python": Language.PYTHON, "node": Language.TYPESCRIPT}
_NO_CODE: Final = {
    "prompt": "it is a prompt, which asks a model",
    "global": "it is a scorer of autoevals: call it from a `handler`, with autoevals pinned",
    "remote_eval": "it runs on another machine",
}


def _evaluator(item: dict[str, Json], names: FreeNames, where: str) -> list[FoundEvaluator | LeftOut] | None:
    function = item.get("function_data")
    if not isinstance(function, dict):
        return None
    name = str(item.get("slug") or item.get("name") or "scorer")
    if item.get("function_type", "scorer") not in (None, "scorer", "classifier"):
        return [LeftOut(where, f"{name} is not a scorer but a {item['function_type']}", shown(item))]
    data = function.get("data") if isinstance(function.get("data"), dict) else {}
    if function.get("type") != "code" or not isinstance(data, dict):
        why = _NO_CODE.get(str(function.get("type")), "it has no code")
        return [LeftOut(where, f"{name} is not imported: {why}", shown(item))]
    if not isinstance(data.get("code"), str):
        reason = f"{name} is not imported: the export does not contain its code; import the source file instead"
        return [LeftOut(where, reason, shown(item))]
    runtime = (data.get("runtime_context") or {}).get("runtime", "node")
    if runtime not in _LANGUAGES:
        return [LeftOut(where, f"{name} is not imported: this host does not have its runtime {runtime!r}", shown(item))]
    described = str(item.get("description") or "")
    return [
        FoundEvaluator(
            names.give(name), data["code"], where, _LANGUAGES[runtime], Contract("braintrust"), description=described
        )
    ]


EXPORT: Final = PlatformExport(
    platform="braintrust",
    evaluator=_evaluator,
    rows=(
        RowShape(
            "events",
            needs=(("input",), ("_xact_id", "root_span_id", "_pagination_key")),
            outputs=("output",),
            expected=("expected",),
        ),
    ),
)

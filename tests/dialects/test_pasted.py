"""Evaluators as people paste them, in real sandboxes: each scores as its author meant, or the result says why not."""

import asyncio

from evaluator_host.engine.service import Service
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.pasted import Pasted
from tests.dialects.pasted_javascript import IN_JAVASCRIPT
from tests.dialects.pasted_loaders import LOADERS
from tests.dialects.pasted_names import NAMES
from tests.dialects.pasted_values import VALUES

PASTED = [*LOADERS, *NAMES, *VALUES, *IN_JAVASCRIPT]


def differences(case: Pasted, result: EvaluationResult) -> list[str]:
    error = result.error
    found = error.code.value if error else "skipped" if result.status.value == "skipped" else result.score
    if found is None or (isinstance(case.expected, str) and case.expected == result.label):
        found = result.label
    said = f"{error.message} {error.hint or ''}" if error else ""
    notes = {note.code for note in result.warnings}
    return [
        f"{case.id}: {what}; error: {said}; warnings: {result.warnings}"
        for what, wrong in (
            (f"{found!r}, expected {case.expected!r}", found != case.expected),
            (f"contract {result.evaluator.contract}", error is None and result.evaluator.contract != case.contract),
            (f"{case.contains!r} is missing", case.contains not in said),
            (f"note {case.note!r} is missing", bool(case.note) and case.note not in notes),
            (
                f"metrics {result.metrics}",
                case.metrics is not None and not case.metrics.items() <= result.metrics.items(),
            ),
        )
        if wrong
    ]


@ON_BUBBLEWRAP
async def test_programs_as_people_paste_them(service: Service) -> None:
    results = await asyncio.gather(*(service.evaluate(case.evaluator, case.row) for case in PASTED))
    found = [one for case, result in zip(PASTED, results, strict=True) for one in differences(case, result)]
    assert not found, f"{len(found)} of {len(PASTED)}\n" + "\n".join(found)

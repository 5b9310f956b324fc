"""Judges run unchanged as people write them, each with its own client library and its own names for models."""

import asyncio
import json

import pytest

from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from tests.models import pasted_judges
from tests.models.conftest import Granting
from tests.models.judges import NODE_PACKAGES, PACKAGES

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("this runs thirty judges; test_judges_without_code.py runs a few others"),
    pytest.mark.timeout(600),
]

_LIMITS = Limits(timeout_s=60, memory_mb=768, processes=64)
_PINS = (*PACKAGES, "requests==2.34.2", "tenacity==9.2.1")
_MODELS = ("*=judge", "claude", "claude-sonnet-4-5=claude", "claude-haiku-4-5=claude")


# These judges run exactly as pasted, each in an evaluator of its own; tests/dialects tests what judges may return.
AS_THEY_ARE = ("anthropic async",)
# All other judges run in one process, each in its own namespace, because importing the clients takes seconds.
TOGETHER = """
import asyncio, inspect, json

def evaluate(inputs, outputs, trace):
    told = {}
    for name, code in inputs["codes"].items():
        own = {"__name__": "pasted"}
        try:
            exec(compile(code, name, "exec"), own)
            value = own["evaluate"](inputs, outputs, trace)
            value = asyncio.run(value) if inspect.isawaitable(value) else value
            told[name] = float(value["score"] if isinstance(value, dict) else value)
        except Exception as error:
            told[name] = repr(error)[:400]
    return {"score": len(told), "reason": json.dumps(told)}
"""


async def test_thirty_judges_run_as_pasted(granted: Granting) -> None:
    alone = [
        Evaluator(pasted_judges.PYTHON[name], packages=_PINS, limits=_LIMITS, models=_MODELS) for name in AS_THEY_ARE
    ] + [
        Evaluator(code, language=Language.JAVASCRIPT, packages=NODE_PACKAGES, limits=_LIMITS, models=_MODELS)
        for code in pasted_judges.NODE.values()
    ]
    turns = asyncio.Semaphore(2)

    async def score(evaluator: Evaluator) -> object:
        async with turns:
            result = await granted.score(evaluator, "it is 4 of 5")
            doubt = [note.message for note in result.warnings if note.code == "missing_key"]
            return str(result.error or doubt)[:400] if result.error or doubt else result.score

    names = [*AS_THEY_ARE, *pasted_judges.NODE]
    found = dict(zip(names, await asyncio.gather(*map(score, alone)), strict=True))
    codes = {name: code for name, code in pasted_judges.PYTHON.items() if name not in AS_THEY_ARE}
    limits = Limits(timeout_s=60, memory_mb=1536, processes=64)
    all_of_them = Evaluator(TOGETHER, packages=_PINS, limits=limits, models=_MODELS)
    result = await granted.service.evaluate(all_of_them, Row({"codes": codes}, "it is 4 of 5"))
    assert result.error is None, result.error
    found |= json.loads(result.reason or "")
    assert len(found) == 30
    assert found == dict.fromkeys(found, pytest.approx(1.0))

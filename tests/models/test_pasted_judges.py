"""Judges as people write them run as pasted: each with its own client, its own names of models."""

import asyncio

import pytest

from evaluator_host.model.evaluator import Evaluator, Language, Limits
from tests.models import pasted_judges
from tests.models.conftest import Granting
from tests.models.judges import NODE_PACKAGES, PACKAGES

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

_LIMITS = Limits(timeout_s=60, memory_mb=768, processes=64)
_PINS = (*PACKAGES, "requests==2.34.2", "tenacity==9.2.1")
_MODELS = ("*=judge", "claude", "claude-sonnet-4-5=claude", "claude-haiku-4-5=claude")


async def test_thirty_judges_run_as_pasted(granted: Granting) -> None:
    python = [Evaluator(code, packages=_PINS, limits=_LIMITS, models=_MODELS) for code in pasted_judges.PYTHON.values()]
    node = [
        Evaluator(code, language=Language.JAVASCRIPT, packages=NODE_PACKAGES, limits=_LIMITS, models=_MODELS)
        for code in pasted_judges.NODE.values()
    ]
    names, turns = [*pasted_judges.PYTHON, *pasted_judges.NODE], asyncio.Semaphore(2)

    async def score(evaluator: Evaluator) -> object:
        async with turns:
            result = await granted.score(evaluator, "it is 4 of 5")
            return result.score if result.error is None else str(result.error)[:400]

    found = await asyncio.gather(*map(score, [*python, *node]))
    assert len(names) == 30
    assert dict(zip(names, found, strict=True)) == dict.fromkeys(names, pytest.approx(1.0))

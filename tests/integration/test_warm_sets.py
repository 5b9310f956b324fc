"""If a package set is requested in advance, a sandbox with its packages imported waits for the first call."""

import asyncio
from pathlib import Path

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service.service import default_spec
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests.integration.test_environments import settings

PINS = ("rapidfuzz==3.13.0",)
CODE = """
import sys
AHEAD = "rapidfuzz" in vars(sys)["modules"]
from rapidfuzz import fuzz
def evaluate(inputs, outputs, trace):
    return {"score": fuzz.ratio("ab", "ab") / 100, "ahead": AHEAD}
"""


async def test_a_sandbox_waits_on_a_set_that_was_asked_for(tmp_path: Path) -> None:
    async with open_engine(settings(tmp_path, idle_sandboxes=1)) as service:
        report = await service.install(PINS, Language.PYTHON)
        await service.environments.built(report.key)
        known = await service.environments.require(PINS, Language.PYTHON)
        spec = default_spec(Language.PYTHON, service.settings, known.environment)
        async with asyncio.timeout(60):
            while not service.pool._prewarmed.may_take(spec):
                await asyncio.sleep(0.02)
        first = await service.evaluate(Evaluator(CODE, packages=PINS), Row())
        assert (first.score, first.metrics["ahead"], first.sandbox.warm) == (1, 1, False)


async def test_a_set_that_cannot_be_installed_leaves_none_waiting(tmp_path: Path) -> None:
    async with open_engine(settings(tmp_path, idle_sandboxes=1)) as service:
        report = await service.install(["six==1.16.0", "no-such-package-anywhere-at-all==1.0"], Language.PYTHON)
        async for _ in service.environments.events(report.key):
            pass
        await asyncio.sleep(0.1)
        assert service.pool.capacity.sandboxes == 0
        assert (await service.environments.find_report(report.key)).error is not None

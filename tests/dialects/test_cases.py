"""Runs every dialect's cases (`<dialect>/cases.py`) in real sandboxes. The host recognises the code and calls it as its
platform does, and the stored results are the same as on the platform.
"""

import asyncio
from importlib import import_module
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from tests.conftest import ON_BUBBLEWRAP

FOLDER = Path(__file__).parent
PARTS = 6
DIALECTS = sorted(path.parent.name for path in FOLDER.glob("*/cases.py"))


@pytest.mark.sampled(PARTS)
@ON_BUBBLEWRAP
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_case_ends_as_on_its_platform(service: Service, dialect: str, part: int) -> None:
    """Every dialect's cases have the same outcome here as on their platform. `make test` tries one case in six of each
    dialect.
    """
    all_cases = import_module(f"tests.dialects.{dialect}.cases").CASES
    assert len({case.id for case in all_cases}) == len(all_cases)
    cases = all_cases[part::PARTS]
    results = await asyncio.gather(*(service.evaluate(case.evaluator, case.row) for case in cases))
    differing = [one for case, result in zip(cases, results, strict=True) for one in case.mismatches(result)]
    assert not differing, "\n".join(differing)

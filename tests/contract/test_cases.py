"""The one table of cases - contracts, inference, source forms, normalisation - in every language, over every backend."""

import pytest

from evaluator_host.service import Service
from tests.contract.cases import CASES, Case

CORE = [case for case in CASES if case.core]
FURTHER = [case for case in CASES if not case.core]  # the same values under a further contract: the host's half


@pytest.mark.parametrize("case", CORE, ids=lambda case: case.id)
async def test_case(service: Service, case: Case) -> None:
    result = await service.evaluate(case.evaluator, case.row)
    assert not case.mismatches(result), result


@pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize("case", FURTHER, ids=lambda case: case.id)
async def test_case_under_a_further_contract(service: Service, case: Case) -> None:
    result = await service.evaluate(case.evaluator, case.row)
    assert not case.mismatches(result), result

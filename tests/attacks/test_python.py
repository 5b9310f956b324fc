"""Every Python attack of the catalogue over every deployment; one run each, of which each test reads its own part."""

from typing import Any

import pytest

from evaluator_host.model.evaluator import Language
from evaluator_host.selftest.attack import Attack
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_host_attacks
from tests.attacks.deployments import DEPLOYMENTS, report_of

pytestmark = pytest.mark.timeout(600)  # the first test of a deployment makes its report
PYTHON = [
    *(attack for attack in load_attacks() if attack.language is Language.PYTHON and attack.safe),
    *load_host_attacks(),
]


@pytest.fixture(scope="module", params=DEPLOYMENTS)
async def report(request: pytest.FixtureRequest) -> Any:
    return await report_of(request.param, Language.PYTHON)


def test_the_host_is_unharmed_and_nothing_is_left(report: Any) -> None:
    assert report["host"] == []
    assert [one["name"] for one in report["attacks"]] == [attack.name for attack in PYTHON]


@pytest.mark.parametrize("attack", PYTHON, ids=lambda attack: attack.name)
def test_stopped(report: Any, attack: Attack) -> None:
    told = next(one for one in report["attacks"] if one["name"] == attack.name)
    assert told["problems"] == []
    assert told["verdict"] == "stopped"

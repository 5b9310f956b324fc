"""Every JavaScript and TypeScript attack of the catalogue over every deployment; one run each, read by each test."""

from typing import Any

import pytest

from evaluator_host.model.evaluator import Language
from evaluator_host.selftest.attack import Attack
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.runner import attack_deployment
from tests.attacks.deployments import DEPLOYMENTS, ORDINARY_USER, report_of
from tests.conftest import settings

pytestmark = pytest.mark.timeout(600)  # the first test of a deployment makes its report
JAVASCRIPT = [attack for attack in load_attacks() if attack.language is not Language.PYTHON]


@pytest.fixture(scope="module", params=DEPLOYMENTS)
async def told(request: pytest.FixtureRequest) -> Any:
    """Problems of each attack by its name, and of the host by none."""
    if request.param == ORDINARY_USER:  # by the command, which leaves out what proves nothing of a deployment
        report = await report_of(request.param, Language.JAVASCRIPT)
        return {"": report["host"], **{one["name"]: (one["verdict"], one["problems"]) for one in report["attacks"]}}
    made = await attack_deployment(settings(request.param), JAVASCRIPT, at_once=4)
    return {"": list(made.host), **{one.attack.name: (one.verdict, list(one.problems)) for one in made.results}}


def test_the_host_is_unharmed_and_nothing_is_left(told: Any) -> None:
    assert told[""] == []


@pytest.mark.parametrize("attack", JAVASCRIPT, ids=lambda attack: attack.name)
def test_stopped(told: Any, attack: Attack) -> None:
    if attack.name in told:
        assert told[attack.name] == ("stopped", [])
    else:
        assert not attack.safe or attack.language is Language.TYPESCRIPT

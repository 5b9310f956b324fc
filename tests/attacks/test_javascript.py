"""Every JavaScript and TypeScript attack of the catalogue; one run for each deployment, read by each test.

Those that prove nothing of a deployment (`safe` is false: they end in the host or the runner) run over bubblewrap.
"""

from typing import Any

import pytest

from evaluator_host.model import Language
from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.selftest.campaign import attack_deployment
from evaluator_host.selftest.catalogue import ATTACKS
from tests.attacks.deployments import DEPLOYMENTS, ORDINARY_USER, report_of
from tests.conftest import settings

pytestmark = pytest.mark.timeout(600)  # the first test of a deployment makes its report
ELSEWHERE = [group for group in Group if group not in (Group.CPU, Group.OUTPUT, Group.ESCAPE)]
"""Attacks on what an ordinary user's sandbox has of its own; these three end in the runner, which is the same there."""
JAVASCRIPT = [attack for attack in ATTACKS if attack.language is not Language.PYTHON]


@pytest.fixture(scope="module", params=DEPLOYMENTS)
async def told(request: pytest.FixtureRequest) -> Any:
    """Problems of each attack by its name, and of the host by none."""
    if request.param == ORDINARY_USER:  # by the command, which leaves out what proves nothing of a deployment
        report = await report_of(request.param, Language.JAVASCRIPT, *ELSEWHERE)
        return {"": report["host"], **{one["name"]: (one["verdict"], one["problems"]) for one in report["attacks"]}}
    everywhere = [attack for attack in JAVASCRIPT if attack.safe or request.param == "bubblewrap"]
    made = await attack_deployment(settings(request.param), everywhere, at_once=4)
    return {"": list(made.host), **{one.attack.name: (one.verdict, list(one.problems)) for one in made.tried}}


def test_the_host_is_unharmed_and_nothing_is_left(told: Any) -> None:
    assert told[""] == []


@pytest.mark.parametrize("attack", JAVASCRIPT, ids=lambda attack: attack.name)
def test_stopped(told: Any, attack: Attack) -> None:
    if attack.name in told:
        assert told[attack.name] == ("stopped", [])
    else:
        assert not attack.safe or attack.language is Language.TYPESCRIPT or attack.group not in ELSEWHERE

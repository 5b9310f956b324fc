"""Every JavaScript and TypeScript attack of the catalogue; one run for each deployment, read by each test.

Those that prove nothing of a deployment (`safe` is false: they end in the host or the runner) run over bubblewrap.
"""

from typing import Any

import pytest

from evaluator_host.model.evaluator import Language
from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.runner import attack_deployment
from tests.attacks.deployments import DEPLOYMENTS, ORDINARY_USER, report_of
from tests.conftest import settings

pytestmark = pytest.mark.timeout(600)  # the first test of a deployment makes its report
WHERE_IT_DIFFERS = [group for group in Group if group not in (Group.CPU, Group.OUTPUT, Group.ESCAPE)]
"""Attacks on what an ordinary user's sandbox has of its own; the other three end in the runner, which is the same there."""


def chosen(deployment: str) -> list[Attack]:
    """Return the attacks that are tried over a deployment."""
    attacks = [attack for attack in load_attacks() if attack.language is not Language.PYTHON]
    if deployment == "bubblewrap":
        return attacks
    if deployment == "docker":
        return [attack for attack in attacks if attack.safe]
    own = [attack for attack in attacks if attack.group in WHERE_IT_DIFFERS]
    return [attack for attack in own if attack.safe and attack.language is Language.JAVASCRIPT]


CASES = [(deployment, attack) for deployment in DEPLOYMENTS for attack in chosen(deployment)]


@pytest.fixture(scope="module")
async def told(request: pytest.FixtureRequest) -> Any:
    """Problems of each attack by its name, and of the host by none."""
    if request.param == ORDINARY_USER:  # by the command, as an operator does it
        report = await report_of(request.param, Language.JAVASCRIPT, *WHERE_IT_DIFFERS)
        return {"": report["host"], **{one["name"]: (one["verdict"], one["problems"]) for one in report["attacks"]}}
    made = await attack_deployment(settings(request.param), chosen(request.param), at_once=4)
    return {"": list(made.host), **{one.attack.name: (one.verdict, list(one.problems)) for one in made.results}}


@pytest.mark.parametrize("told", DEPLOYMENTS, indirect=True)
def test_the_host_is_unharmed_and_nothing_is_left(told: Any) -> None:
    assert told[""] == []


@pytest.mark.parametrize(
    ("told", "attack"), CASES, ids=[f"{of}-{attack.name}" for of, attack in CASES], indirect=["told"]
)
def test_stopped(told: Any, attack: Attack) -> None:
    assert told[attack.name] == ("stopped", [])

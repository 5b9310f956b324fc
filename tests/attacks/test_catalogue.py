"""Every attack of the catalogue, in one campaign over each deployment, of which each test reads its own part.

Those that prove nothing of a deployment (`safe` is false: they end in the host or the runner) run over bubblewrap.
"""

from typing import Any

import pytest

from evaluator_host.model.evaluator import Language
from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_host_attacks
from evaluator_host.selftest.runner import attack_deployment
from tests.attacks.deployments import DEPLOYMENTS, ORDINARY_USER, report_as_ordinary_user, report_of
from tests.conftest import settings

pytestmark = pytest.mark.timeout(900)  # the first test of a deployment makes its report
ENDS_IN_THE_RUNNER = (Group.CPU, Group.OUTPUT, Group.ESCAPE)
"""Attacks in JavaScript on what an ordinary user's sandbox does not have of its own."""


def chosen(deployment: str) -> list[Attack]:
    """Return the attacks that are tried over a deployment."""
    on_api = () if deployment == ORDINARY_USER else load_host_attacks()  # which does not depend on the user
    attacks = [attack for attack in (*load_attacks(), *on_api) if attack.safe or deployment == "bubblewrap"]
    if deployment != ORDINARY_USER:
        return attacks
    differs = [attack for attack in attacks if attack.group not in ENDS_IN_THE_RUNNER]
    javascript = [attack for attack in differs if attack.language is Language.JAVASCRIPT]
    return [attack for attack in attacks if attack.language is Language.PYTHON or attack in javascript]


CASES = [(deployment, attack) for deployment in DEPLOYMENTS for attack in chosen(deployment)]


@pytest.fixture(scope="module")
async def told(request: pytest.FixtureRequest) -> Any:
    """Verdict and problems of each attack by its name, and the problems of the host by none."""
    attacks = chosen(request.param)
    if request.param == "bubblewrap":  # the command tries no attack that is not safe
        made = await attack_deployment(settings(request.param), attacks, at_once=4)
        return {"": list(made.host), **{one.attack.name: (one.verdict, list(one.problems)) for one in made.results}}
    if request.param == ORDINARY_USER:
        report = await report_as_ordinary_user([attack.name for attack in attacks])
    else:
        report = await report_of(request.param)
    return {"": report["host"], **{one["name"]: (one["verdict"], one["problems"]) for one in report["attacks"]}}


@pytest.mark.parametrize("told", DEPLOYMENTS, indirect=True)
def test_the_host_is_unharmed_and_nothing_is_left(told: Any, request: pytest.FixtureRequest) -> None:
    assert told.get("") == []
    deployment = request.node.callspec.params["told"]
    assert [name for name in told if name] == [attack.name for attack in chosen(deployment)]


@pytest.mark.parametrize(
    ("told", "attack"), CASES, ids=[f"{of}-{attack.name}" for of, attack in CASES], indirect=["told"]
)
def test_stopped(told: Any, attack: Attack) -> None:
    assert told[attack.name] == ("stopped", [])

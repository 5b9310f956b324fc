"""Every attack of the catalogue, in one campaign over each deployment, of which each test reads its own part.

Those that prove nothing of a deployment, since they end in the host or in the runner, run over bubblewrap alone.
"""

from typing import Any

import pytest

from evaluator_host.model.evaluator import Language
from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_host_attacks
from evaluator_host.selftest.runner import attack_deployment
from tests.attacks.deployments import DEPLOYMENTS, ORDINARY_USER, report_as_ordinary_user
from tests.conftest import settings

pytestmark = pytest.mark.timeout(900)  # the first test of a deployment makes its report
OF_EVERY_RUNNER = (Group.SOURCE, Group.VALUES)
"""Attacks on what a runner and the host read; one that also meets a sandbox's own guard is in another group."""
OF_THE_JAVASCRIPT_RUNNER = (*OF_EVERY_RUNNER, Group.CHANNEL, Group.CPU, Group.ESCAPE, Group.OUTPUT)
"""Those in Python prove the limits and the channel of each deployment; how Node's runner keeps its own does not depend on it."""


def chosen(deployment: str) -> list[Attack]:
    """Return the attacks that are tried over a deployment: all over bubblewrap, elsewhere those that meet its sandbox."""
    if deployment == "bubblewrap":
        return [*load_attacks(), *load_host_attacks()]
    elsewhere = [attack for attack in load_attacks() if attack.safe and not ends_in_the_runner(attack)]
    return [*elsewhere, *load_host_attacks()] if deployment == ORDINARY_USER else elsewhere


def ends_in_the_runner(attack: Attack) -> bool:
    """Whether an attack meets nothing that belongs to a deployment."""
    python = attack.language is Language.PYTHON
    return attack.group in (OF_EVERY_RUNNER if python else OF_THE_JAVASCRIPT_RUNNER)


CASES = [(deployment, attack) for deployment in DEPLOYMENTS for attack in chosen(deployment)]


@pytest.fixture(scope="module")
async def told(request: pytest.FixtureRequest) -> Any:
    """Verdict and problems of each attack by its name, and the problems of the host by none."""
    attacks = chosen(request.param)
    if request.param == ORDINARY_USER:
        report = await report_as_ordinary_user([attack.name for attack in attacks])
        return {"": report["host"], **{one["name"]: (one["verdict"], one["problems"]) for one in report["attacks"]}}
    made = await attack_deployment(settings(request.param), attacks, at_once=4)
    return {"": list(made.host), **{one.attack.name: (one.verdict, list(one.problems)) for one in made.results}}


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

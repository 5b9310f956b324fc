"""Tries every attack in the catalogue. All attacks on a deployment run together, and each test reads its own part of
the report.

On bubblewrap all attacks run; `make test` runs one of each kind. On the other deployments, fewer attacks run:

- all attacks that a guard of the deployment itself stops;
- one attack of each kind that the system call filter stops (test_syscalls.py tries every call on each deployment);
- one attack of each kind that the runner stops.

`EVALUATOR_HOST_WORKERS=2` attacks a host with two processes over HTTP, and `EVALUATOR_HOST_SANDBOX_START=template` a
host that forks its sandboxes; `test_processes.py` and `test_template.py` always attack such hosts with some attacks.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from evaluator_host.selftest.attack import Attack, Group, Guard
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_host_attacks
from evaluator_host.selftest.runner import attack_deployment
from evaluator_host.types.evaluator import Language
from tests.attacks.deployments import DEPLOYMENTS, ORDINARY_USER, report_as_ordinary_user
from tests.attacks.processes import attack_processes
from tests.attacks.shared_sandboxes import in_shared_sandboxes
from tests.attacks.weakened import LOAD_TIMEOUT_S
from tests.conftest import settings

pytestmark = pytest.mark.timeout(900)  # long, because the first test for a deployment runs all attacks on it
OF_EVERY_RUNNER = (Group.SOURCE, Group.VALUES)
"""Groups of attacks that use only text and values, which the runner and the host read; other groups also attack the
sandbox."""
OF_JAVASCRIPT = (Group.MEMORY, Group.PROCESSES)
"""Groups of attacks on limits that differ between Node's and Python's sandboxes. Mounts, network and system calls do
not differ."""
OF_A_DEPLOYMENT = {
    Guard.NETWORK, Guard.ROOT, Guard.READ_ONLY, Guard.SCRATCH, Guard.PROC, Guard.IPC, Guard.CAPABILITIES,
    Guard.ENVIRONMENT, Guard.MEMORY, Guard.PROCESSES, Guard.DISK,
}  # fmt: skip
"""Guards that each deployment implements in its own way. All deployments share the other guards: the filter, and code
of the runner and the host."""
OF_THE_HOST = {Guard.VERDICT, Guard.ANSWERS, Guard.HOST, Guard.PRISTINE, Guard.LOGS}
"""Guards in the code of the runner and the host, which are the same in every deployment."""


def chosen(deployment: str) -> list[Attack]:
    """Return the attacks that are tried on a deployment: on bubblewrap all attacks, on other deployments only attacks
    that test the deployment itself.
    """
    if deployment == "bubblewrap":
        return [*load_attacks(), *load_host_attacks()]
    kinds = by_kind(attack for attack in load_attacks() if attack.safe and not ends_in_the_runner(attack))
    chosen = {attack.name for kind in kinds for attack in (kind if each_counts(kind[0]) else kind[:1])}
    return [attack for attack in load_attacks() if attack.name in chosen]


def by_kind(attacks: Iterable[Attack]) -> list[list[Attack]]:
    """Group attacks by what they try, by language, and by the guards that stop them."""
    kinds: dict[tuple[object, ...], list[Attack]] = {}
    for attack in attacks:
        kinds.setdefault((attack.language, attack.group, attack.without), []).append(attack)
    return list(kinds.values())


def ends_in_the_runner(attack: Attack) -> bool:
    """Whether all guards that stop the attack belong to the runner or the host, and none of them to a deployment."""
    if attack.language is not Language.PYTHON:
        return attack.group not in OF_JAVASCRIPT or not meets_a_deployment(attack)
    return attack.group in OF_EVERY_RUNNER or (bool(attack.without) and attack.without <= OF_THE_HOST)


def each_counts(attack: Attack) -> bool:
    """Whether every attack of this kind must be tried on a deployment. For other kinds, a single attack shows that the
    guard works there.
    """
    return attack.language is Language.PYTHON and meets_a_deployment(attack)


def meets_a_deployment(attack: Attack) -> bool:
    """Whether the guard that stops an attack belongs to a deployment."""
    if Guard.SECCOMP in attack.without:
        return False
    return not attack.without or bool(attack.without & OF_A_DEPLOYMENT)


FIRST = {kind[0].name for kind in by_kind([*load_attacks(), *load_host_attacks()])}


def marked(deployment: str, *others: object, name: str, first: bool = True) -> object:
    """Return a test case, marked as long if it is not the first of its kind, or if the deployment is not bubblewrap."""
    short = deployment == "bubblewrap" and first
    return pytest.param(deployment, *others, id=name, marks=[] if short else [pytest.mark.long])


CASES = [
    marked(deployment, attack, name=f"{deployment}-{attack.name}", first=attack.name in FIRST)
    for deployment in DEPLOYMENTS
    for attack in chosen(deployment)
]


def to_run(request: pytest.FixtureRequest, deployment: str) -> list[Attack]:
    """Return the attacks for which this run has a test on a deployment."""
    cases = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    wanted = {case.params["attack"].name for case in cases if case and "attack" in case.params}
    return [attack for attack in chosen(deployment) if attack.name in wanted]


@pytest.fixture(scope="module")
async def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a dict from each attack's name to its verdict and problems. The host's own problems have the key ""."""
    attacks = to_run(request, request.param)
    if request.param == ORDINARY_USER:
        report = await report_as_ordinary_user([attack.name for attack in attacks])
        return {"": report["host"], **{one["name"]: (one["verdict"], one["problems"]) for one in report["attacks"]}}
    host = settings(request.param, load_timeout_s=LOAD_TIMEOUT_S)
    if host.workers > 1:
        made = await attack_processes(host, in_shared_sandboxes(attacks), tmp_path_factory.mktemp("host"), at_once=6)
    else:
        made = await attack_deployment(host, in_shared_sandboxes(attacks), at_once=6)
    return {"": list(made.host), **{one.attack.name: (one.verdict, list(one.problems)) for one in made.results}}


@pytest.mark.parametrize("told", [marked(one, name=one) for one in DEPLOYMENTS], indirect=True)
def test_the_host_is_unharmed_and_nothing_is_left(told: Any, request: pytest.FixtureRequest) -> None:
    assert told.get("") == []
    deployment = request.node.callspec.params["told"]
    assert [name for name in told if name] == [attack.name for attack in to_run(request, deployment)]


@pytest.mark.parametrize(("told", "attack"), CASES, indirect=["told"])
def test_stopped(told: Any, attack: Attack) -> None:
    assert told[attack.name] == ("stopped", [])

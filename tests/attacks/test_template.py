"""Sandboxes that are forked from a template stop attacks as other sandboxes do. One Python attack of each kind is
tried.

`tests/contract/test_cases.py` runs all Python cases in such sandboxes.
"""

import pytest

from evaluator_host.engine.config.settings import SandboxStart
from evaluator_host.selftest.attack import Attack
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.runner import attack_deployment
from evaluator_host.types.evaluator import Language
from tests.attacks.test_catalogue import ends_in_the_runner
from tests.attacks.weakened import LOAD_TIMEOUT_S
from tests.conftest import settings


def of_each_kind() -> list[Attack]:
    kinds: dict[tuple[object, ...], Attack] = {}
    for attack in load_attacks():
        if attack.language is Language.PYTHON and attack.safe and not ends_in_the_runner(attack):
            kinds.setdefault((attack.group, attack.without), attack)
    return list(kinds.values())


@pytest.mark.long("this repeats an attack of each kind; contract/test_template.py tests what a template could change")
async def test_attacks_of_every_kind_are_stopped(caplog):
    attacks = of_each_kind()
    host = settings("bubblewrap", load_timeout_s=LOAD_TIMEOUT_S, sandbox_start=SandboxStart.TEMPLATE)
    made = await attack_deployment(host, attacks, at_once=4)
    assert list(made.host) == []
    assert {one.attack.name: (one.verdict, *one.problems) for one in made.results} == {
        attack.name: ("stopped",) for attack in attacks
    }
    assert "starts without the template" not in caplog.text

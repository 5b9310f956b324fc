"""A host of two processes stops what a host of one stops: attacks on what passes through a host, and the cases of a link.

`EVALUATOR_HOST_WORKERS=2 make test ARGS='tests/attacks/test_catalogue.py tests/contract/test_conformance.py'` tries all of both.
"""

from pathlib import Path

import pytest

from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_host_attacks
from tests.attacks.processes import attack_processes
from tests.conftest import BACKENDS, settings
from tests.contract.test_cases import BY_ID, LINK
from tests.over_http import served

THROUGH = {
    "files-for-another-workspace", "row-before", "crash-of-a-batch",  # workspaces, rows of one evaluator, batches
    "model-key", "model-second-request", "model-after-the-row",  # grants, what is left of a budget
    "words-for-the-next-row", "huge-text", "endless-loop",  # limits of logs, results and time
}  # fmt: skip
"""Attacks on what passes through the processes between a caller and a sandbox."""
ON_THE_HOST = {"numbers-without-end"}


@pytest.mark.parametrize("backend", BACKENDS)
async def test_attacks_are_stopped(backend: str, tmp_path: Path) -> None:
    attacks = [attack for attack in load_attacks() if attack.name in THROUGH]
    if backend == "bubblewrap":
        attacks += [attack for attack in load_host_attacks() if attack.name in ON_THE_HOST]
    made = await attack_processes(settings(backend, workers=2), attacks, tmp_path, at_once=4)
    assert list(made.host) == []
    assert {one.attack.name: (one.verdict, *one.problems) for one in made.results} == {
        attack.name: ("stopped",) for attack in attacks
    }


async def test_the_cases_of_a_link_have_their_outcomes(tmp_path: Path) -> None:
    async with served("bubblewrap", tmp_path, sandbox_start="template") as host:
        for case in map(BY_ID.__getitem__, LINK):
            result = await host.evaluate(case.evaluator, case.row)
            assert not case.mismatches(result), result

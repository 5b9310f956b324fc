"""Every JavaScript attack that names guards succeeds if these guards are removed (on bubblewrap)."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from evaluator_host.selftest.attack import Attack, Guard
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.types.evaluator import Language
from tests.attacks.weakened import AttackedHost, attacked_host, to_be_seen
from tests.attacks.weakened_javascript import weakened_javascript

AT_ONCE: Final = 4


def cases() -> Iterator[object]:
    """Yield the guards to remove, and the attacks that these guards stop."""
    by_guards: dict[frozenset[Guard], list[Attack]] = {}
    for attack in load_attacks():
        if attack.without and attack.language is not Language.PYTHON:
            by_guards.setdefault(attack.without, []).append(attack)
    for guards, attacks in sorted(by_guards.items(), key=lambda case: sorted(case[0])):
        yield pytest.param(guards, to_be_seen(attacks), id="+".join(sorted(guards)))


@pytest.fixture(scope="module")
async def host() -> AsyncIterator[AttackedHost]:
    """A host. Tests weaken only its sandboxes."""
    async with attacked_host("bubblewrap") as running:
        yield running


@pytest.mark.sampled(5)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("guards", "attacks"), list(cases()))
async def test_gets_through_without_its_guards(
    host: AttackedHost, guards: frozenset[Guard], attacks: list[Attack], tmp_path: Path
) -> None:
    with weakened_javascript(guards, folder=tmp_path):
        assert await host.never_through(attacks, at_once=AT_ONCE) == []

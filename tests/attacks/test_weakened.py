"""Every attack succeeds if the guards that stop it are removed, which shows that each attack's test can fail.

If one limit stops several attacks with an error, only one of them is tried, because the error itself names the limit.

All these attacks run on bubblewrap. On Docker, only guards that have a different form in containers are removed, and
one attack is tried for each of them; `test_catalogue.py` checks that all attacks are stopped there.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from evaluator_host.selftest.attack import Attack, Guard
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.types.evaluator import Language
from tests.attacks.weakened import AttackedHost, attacked_host, to_be_seen, weakened

AT_ONCE: Final = 6
OF_A_BACKEND: Final = {
    Guard.NETWORK, Guard.ROOT, Guard.READ_ONLY, Guard.PROC, Guard.IPC, Guard.SECCOMP, Guard.CAPABILITIES, Guard.MEMORY,
    Guard.PROCESSES, Guard.DISK,
}  # fmt: skip

NEVER_SEEN: Final = {
    ("bubblewrap", "devices"): "no right inside a user namespace allows mknod",
    ("bubblewrap", "raise-limits"): "no right inside a user namespace raises a hard limit",
    ("bubblewrap", "administration"): "no right inside a user namespace administers the machine",
    ("docker", "name-resolution"): "the engine puts a resolv.conf of its own over the host's",
    ("bubblewrap", "signal-the-host"): "the pid namespace cannot be left out: the sandbox is ended by it",
}


def cases() -> Iterator[object]:
    """Yield the backend, the guards to remove, and the attacks that these guards stop."""
    for backend in ("bubblewrap", "docker"):
        by_guards: dict[frozenset[Guard], list[Attack]] = {}
        for attack in load_attacks():
            everywhere = backend == "bubblewrap" or attack.without <= OF_A_BACKEND
            seen = everywhere and (backend, attack.name) not in NEVER_SEEN
            if attack.without and seen and attack.language is Language.PYTHON:
                by_guards.setdefault(attack.without, []).append(attack)
        for guards, attacks in sorted(by_guards.items(), key=lambda case: sorted(case[0])):
            tried = to_be_seen(attacks) if backend == "bubblewrap" else attacks[:1]
            yield pytest.param(backend, guards, tried, id=f"{backend}-{'+'.join(sorted(guards))}")


@pytest.fixture(scope="module")
async def host(request: pytest.FixtureRequest) -> AsyncIterator[AttackedHost]:
    """A host on each backend. Tests weaken only the host's sandboxes."""
    async with attacked_host(request.param) as running:
        yield running


@pytest.mark.sampled(50)
@pytest.mark.parametrize(("host", "guards", "attacks"), list(cases()), indirect=["host"])
async def test_gets_through_without_its_guards(
    host: AttackedHost, guards: frozenset[Guard], attacks: list[Attack], tmp_path: Path
) -> None:
    with weakened(guards, folder=tmp_path):
        assert await host.never_through(attacks, at_once=AT_ONCE) == []


def test_every_attack_has_a_guard_or_says_how_it_was_seen() -> None:
    assert [attack.name for attack in load_attacks() if not (attack.without or attack.seen)] == []

"""A workspace learns nothing about package sets that others requested, not even from the amount of work that its own
request causes.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from evaluator_host.engine.environments.record import BuildStatus, EnvironmentReport
from evaluator_host.platform.http.auth.keyring import KeyHolder
from evaluator_host.platform.http.auth.package_visibility import PackageVisibility
from evaluator_host.platform.packages.routes import _seen
from evaluator_host.types.errors import NotFound
from evaluator_host.types.evaluator import Language

ALPHA, BETA, OPERATOR = KeyHolder("alpha", "k1"), KeyHolder("beta", "k2"), KeyHolder("default")


class Sets:
    """A stand-in for the package sets of a host; it records the names that are looked up."""

    def __init__(self, **keys: str) -> None:
        self.asked: list[str] = []
        self._all = [EnvironmentReport(key=key, digest=digest, **FACTS) for key, digest in keys.items()]

    async def find_report(self, name: str) -> EnvironmentReport:
        self.asked.append(name)
        for one in self._all:
            if name in (one.key, one.digest):
                return one
        raise NotFound(name)

    async def reports(self) -> list[EnvironmentReport]:
        self.asked.append("all")
        return self._all


class Uses:
    """A stand-in for the record of which names each workspace has requested."""

    def __init__(self, **names: set[str]) -> None:
        self._names = names

    async def names(self, workspace: str) -> set[str]:
        return self._names.get(workspace, set())


FACTS: dict[str, Any] = {
    "status": BuildStatus.READY,
    "language": Language.PYTHON,
    "runtime": "cpython-3.11",
    "packages": (),
}


async def looked_up(caller: KeyHolder, name: str) -> tuple[str | None, list[str]]:
    """Look up a name for a caller; return the key of the set that the caller sees, and the names that were looked up."""
    sets = Sets(of_alpha="a1", of_beta="b1")
    visibility = PackageVisibility(Uses(alpha={"of_alpha"}, beta={"of_beta", "b1"}))  # type: ignore[arg-type]
    access = SimpleNamespace(package_visibility=visibility)
    try:
        report = await _seen(sets, access, caller, name)  # type: ignore[arg-type]
    except NotFound:
        return None, sets.asked
    return report.key, sets.asked


@pytest.mark.parametrize("name", ["of_beta", "b1"])
async def test_a_set_of_others_causes_the_work_of_one_that_does_not_exist(name: str) -> None:
    assert await looked_up(ALPHA, name) == await looked_up(ALPHA, "no-such")


@pytest.mark.parametrize(
    ("caller", "name", "key"),
    [
        (ALPHA, "of_alpha", "of_alpha"),
        (ALPHA, "a1", "of_alpha"),  # the digest of this set was not known when the set was requested
        (BETA, "b1", "of_beta"),
        (OPERATOR, "b1", "of_beta"),
        (OPERATOR, "no-such", None),
    ],
)
async def test_a_set_is_seen_by_key_and_by_digest(caller: KeyHolder, name: str, key: str | None) -> None:
    assert (await looked_up(caller, name))[0] == key

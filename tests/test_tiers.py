"""`make test` runs a case of each kind, and the shards of `make test-all` together run every test exactly once."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from evaluator_host.platform.wires.table import wires
from evaluator_host.selftest.attack import Attack
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.types.evaluator import Contract
from tests.collected import HEAD, SHARDS, described
from tests.distribution import COLLECTED, LONG, seconds_of
from tests.ordinary_user import PROJECT

OWN: Final = {"auto", "evaluate", "evaluate-v1", "judge", "main"}  # contracts that belong to no vendor
UNEVEN: Final = 1.2  # maximum time of a shard, as a multiple of the mean


def kind_of(attack: Attack) -> tuple[object, ...]:
    """Return the kind of an attack: its group, its language, and the guards that stop it."""
    return attack.language, attack.group, attack.without


@dataclass(frozen=True, slots=True)
class Collected:
    """A test as pytest collects it."""

    name: str
    part: str
    explained: bool  # whether a mark says why all tests of the file are long
    engine: bool

    @property
    def long(self) -> bool:
        return self.part.endswith(LONG)

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]

    @property
    def cases(self) -> list[str]:
        """The names of the test's parameter sets."""
        return self.name.partition("[")[2].removesuffix("]").split("-")


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> dict[str, list[list[object]]]:
    if [Path(one) for one in request.config.args] == [Path("tests")]:  # this run has already collected all tests itself
        return described(request.session.stash[COLLECTED])
    told = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-qq",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.collected",
    ]
    done = subprocess.run(told, cwd=PROJECT, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(HEAD)]
    assert lines, done.stdout[-3000:] + done.stderr
    return json.loads(lines[0])


@pytest.fixture(scope="module")
def everything(collected: dict[str, list[list[object]]]) -> list[Collected]:
    return [Collected(*one) for one in collected["all"]]


@pytest.fixture(scope="module")
def here(everything: list[Collected]) -> list[Collected]:
    """The tests that `make test` runs."""
    return [one for one in everything if not one.long]


def test_each_test_is_in_one_shard(collected: dict[str, list[list[object]]], everything: list[Collected]) -> None:
    assert len(everything) > 5000
    assert Counter(name for shard in collected["shards"] for name in shard) == Counter(one.name for one in everything)


@pytest.mark.parametrize("long", [True, False], ids=["what make test leaves out", "the rest"])
def test_shards_take_about_as_long(
    collected: dict[str, list[list[object]]], everything: list[Collected], *, long: bool
) -> None:
    parts = {one.name: one.part for one in everything if one.long is long}
    shards = [{parts[str(name)] for name in shard if name in parts} for shard in collected["shards"]]
    seconds = [sum(map(seconds_of, shard)) for shard in shards]
    assert max(seconds) < UNEVEN * sum(seconds) / SHARDS, seconds


def test_every_file_has_a_case_in_make_test_or_says_why_not(everything: list[Collected]) -> None:
    with_case = {one.file for one in everything if not one.long or one.explained}
    assert sorted({one.file for one in everything} - with_case) == []


def test_every_kind_of_attack_on_sandboxes_is_tried_in_make_test(here: list[Collected]) -> None:
    tried = {one.name.partition("[bubblewrap-")[2] for one in here if one.file == "tests/attacks/test_catalogue.py"}
    kinds = dict.fromkeys(map(kind_of, load_attacks()), False)
    kinds |= {kind_of(one): True for one in load_attacks() if f"{one.name}]" in tried}
    assert [kind for kind, is_tried in kinds.items() if not is_tried] == []


@pytest.mark.parametrize("wire", list(wires()))
def test_every_wire_is_called_in_make_test(wire: str, here: list[Collected]) -> None:
    assert any("wires" in one.file and wire in one.cases and one.engine for one in here)


@pytest.mark.parametrize("vendor", sorted({one.value for one in Contract} - OWN))
def test_every_vendor_s_evaluators_run_in_a_sandbox_in_make_test(vendor: str, here: list[Collected]) -> None:
    name = vendor.replace("-", "_")
    assert any(name in one.cases or f"/{name}/" in one.file for one in here if one.engine and "dialects" in one.file)

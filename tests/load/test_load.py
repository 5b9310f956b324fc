"""Runs the load test for some seconds, with a thousand callers and a third of the calls hostile; `python -m tests.load`
runs it for minutes.

A short form of the soak test also runs here: one workspace does nothing but attack.
"""

from pathlib import Path

import pytest

from evaluator_host.engine.system.tree import temporary_folder
from tests.load.__main__ import load_environment, show
from tests.load.reproductions import reproduce
from tests.load.scenario import run_load
from tests.load.soak import soak, why

pytestmark = pytest.mark.long("this loads the whole machine; test_fairness.py and test_traffic.py use fewer callers")

_MOST_DRIFT_MB = 64


def test_every_answer_is_right_or_an_honest_refusal_and_nothing_is_left(tmp_path: Path) -> None:
    found = run_load(
        tmp_path, backend="bubblewrap", callers=1000, seconds=3, environment=load_environment("bubblewrap")
    )
    show(found)
    assert found.faults == []
    assert all(tally.answered for tally in found.tallies.values()), "every workspace must get answers"
    assert found.watch.grown_mb < _MOST_DRIFT_MB
    assert found.descriptors_after <= found.descriptors_before + 1, (
        "after the load, at most the connection of this check may be open in addition"
    )
    assert found.left_in_data == set()


def test_a_workspace_that_attacks_changes_no_answer_of_another() -> None:
    with temporary_folder(None, "soak-") as folder:  # a folder that every user can read
        found = soak(folder, minutes=0.1, ordinary=True)
    assert found["wrong"] == []
    assert why(found | {"p95_ratio": 5.1}) == ["the neighbour's p95 is 5.1 x its quiet one, over 5"]
    assert why(found | {"p95_ratio": 5.0, "wrong": ["ERROR no\nTraceback"]}) == ["ERROR no"]
    assert found["attacked"]["answers"]["right"] > 0
    assert sum(found["attacks"].values()) > 0


def test_reproduced_attacks_leave_the_neighbour_and_the_next_start_alone() -> None:
    """Attacks that were reproduced harm neither the neighbour nor the next start.

    The test tries a few attacks of `python -m tests.load.reproductions`; the selftest and other tests try most of them.
    """
    with temporary_folder(None, "reproductions-") as folder:
        found = reproduce(folder, ordinary=True, only=["odd-numbers", "lines-for-the-log", "package-of-nested-folders"])
    assert found["wrong"] == []
    assert len(found["attacks"]) == 3

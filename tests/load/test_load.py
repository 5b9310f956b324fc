"""Some seconds of what `python -m tests.load` does in five: a thousand callers at once, a third of their calls hostile."""

from pathlib import Path

from tests.load.__main__ import load_environment, show
from tests.load.scenario import run_load

_MOST_DRIFT_MB = 64


def test_every_answer_is_right_or_an_honest_refusal_and_nothing_is_left(tmp_path: Path) -> None:
    found = run_load(
        tmp_path, backend="bubblewrap", callers=1000, seconds=6, environment=load_environment("bubblewrap")
    )
    show(found)
    assert found.faults == []
    assert all(tally.answered for tally in found.tallies.values()), "every workspace had its turn"
    assert found.watch.grown_mb < _MOST_DRIFT_MB
    assert found.descriptors_after <= found.descriptors_before + 1, "but for the connection that asks"
    assert found.left_in_data == set()

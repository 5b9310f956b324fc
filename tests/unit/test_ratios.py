"""`make bench ARGS=--quick` compares the measured ratios with the stored ratios."""

import json
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import Settings
from tests.benchmarks import ratios


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, float]]:
    """Return a list to which the test adds ratios; each measurement takes the next ones from it. The stored ratios are
    2 for a row and 1 for a call.
    """
    runs: list[dict[str, float]] = []

    async def measure(_settings: Settings) -> dict[str, float]:
        return runs.pop(0)

    monkeypatch.setattr(ratios, "measure", measure)
    monkeypatch.setattr(ratios, "KEPT", tmp_path / "ratios.json")
    ratios.KEPT.write_text(json.dumps({"row": 2.0, "call": 1.0}))
    return runs


def test_a_ratio_that_fell_twice_is_reported(measured: list[dict[str, float]]) -> None:
    measured += [{"row": 1.5, "call": 0.9}, {"row": 1.0, "call": 0.7}]
    assert ratios.check(Settings()) == ["row takes 1.33 times what it took; see ratios.json"]


@pytest.mark.parametrize(
    "runs", [[{"row": 1.61, "call": 3.0}], [{"row": 1.5, "call": 1.0}, {"row": 1.61, "call": 0.7}]]
)
def test_a_ratio_that_fell_little_or_once_is_not_reported(
    measured: list[dict[str, float]], runs: list[dict[str, float]]
) -> None:
    measured += runs
    assert ratios.check(Settings()) == []
    assert measured == []

"""Compares ratios of processor time with the stored ratios: the time that the mechanisms take without this project
(tests/benchmarks/floors.py), divided by the time of rows, calls and starts.
"""

import pytest

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from tests.benchmarks import ratios
from tests.engines import DATA_DIR

pytestmark = pytest.mark.long(
    "this takes two minutes of processor time; tests/unit/test_ratios.py tests the comparison"
)


def test_no_ratio_has_fallen_by_a_fifth() -> None:
    assert ratios.check(Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=DATA_DIR)) == []

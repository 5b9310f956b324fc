"""Divides the processor time of the floors (tests/benchmarks/floors.py) by the processor time of rows, calls and
starts, and compares these ratios with the stored ratios.
"""

import pytest

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from tests.benchmarks import ratios
from tests.engines import DATA_DIR

pytestmark = pytest.mark.long("two minutes of processor time; tests/unit/test_ratios.py has the comparison")


def test_nothing_has_become_dearer_by_a_fifth() -> None:
    assert ratios.check(Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=DATA_DIR)) == []

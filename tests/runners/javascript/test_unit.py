"""Runs the tests of the runner's pure parts, which are written in JavaScript."""

import subprocess
from pathlib import Path

from evaluator_host.environments import toolchain

UNIT = Path(__file__).parent / "unit"


def test_the_pure_parts_of_the_runner():
    files = sorted(str(path) for path in UNIT.glob("*.test.mjs"))
    assert files
    ended = subprocess.run([str(toolchain.node_path()), "--test", *files], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout[-4000:]

"""Runs the runner's unit tests, which are written in JavaScript."""

import os
import subprocess
from pathlib import Path

from evaluator_host.engine.environments import toolchain
from tests.runners.javascript.conftest import built_runner

UNIT = Path(__file__).parent / "unit"


def test_the_pure_parts_of_the_runner():
    files = sorted(str(path) for path in UNIT.glob("*.test.mjs"))
    assert files
    env = {**os.environ, "RUNNER": str(built_runner())}
    command = [str(toolchain.node_path()), f"--import={UNIT / 'built.mjs'}", "--test", *files]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout[-4000:]

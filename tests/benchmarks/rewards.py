"""Measures the code-reward recipe: what a hidden test costs, compared with a process for each test, and how many rows
are scored if some answers are hostile.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.benchmarks.figures import running_ms
from tests.docs.blocks import ROOT, files

TESTS: Final = [{"stdin": f"{number} 3", "stdout": str(number + 3)} for number in range(5)]
_ANSWER: Final = "print(sum(map(int, input().split())))"
_HOSTILE: Final = (
    "while True: pass",
    "import time; time.sleep(60)",
    "x = b'x' * (600 << 20); print(5)",
    "while True: print('5' * 1000)",
    "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint(5)",
)
_ONE_IN: Final = 20
_MINUTE_MS: Final = 60_000.0
_EVALUATOR: Final = Evaluator(
    files(ROOT / "examples" / "rl-rewards" / "code-rewards.md")["reward.py"], limits=Limits(timeout_s=60, memory_mb=512)
)
_PYTHON: Final = [str(Path(sys.base_prefix) / "bin" / "python3"), "-I", "-S", "answer.py"]
# the program runs as process 1, so that its processor time is counted for its parent
_SANDBOX: Final = [
    *("bwrap", "--unshare-all", "--as-pid-1", "--die-with-parent"),
    *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
]


async def recipe_ms(service: Service, rows: int = 40) -> float:
    """Return how much processor time a test takes with the recipe, in host and sandboxes together."""
    await _score(service, [_ANSWER] * 2)
    began_ms = running_ms()
    assert await _score(service, [_ANSWER] * rows) == rows
    return (running_ms() - began_ms) / (rows * len(TESTS))


async def rows_per_min(service: Service, rows: int = 200) -> float:
    """Return how many rows two processors score in a minute if one in twenty answers is hostile."""
    await _score(service, [_ANSWER] * 4)
    answers = [
        _HOSTILE[number // _ONE_IN % len(_HOSTILE)] if number % _ONE_IN == 0 else _ANSWER for number in range(rows)
    ]
    began_ms = running_ms()
    scored = await _score(service, answers)
    assert rows - rows // _ONE_IN <= scored < rows
    return rows * 2 * _MINUTE_MS / (running_ms() - began_ms)


async def _score(service: Service, answers: list[str]) -> float:
    rows = [Row({"tests": TESTS}, answer) for answer in answers]
    async with aclosing(service.evaluate_rows(_EVALUATOR, rows)) as results:
        return sum([result.score or 0.0 async for _, result in results])


def process_ms() -> float:
    """Return the processor time of a test in a separate process with a new folder, as in SandboxFusion."""
    return _each_ms(lambda _: _PYTHON)


def sandbox_ms() -> float:
    """Return the processor time of a test in a process with its own namespaces and mounts, as in Piston."""
    return _each_ms(lambda folder: [*_SANDBOX, "--bind", folder, folder, "--chdir", folder, *_PYTHON])


def _each_ms(command: Callable[[str], list[str]], times: int = 40) -> float:
    began_ms = running_ms()
    for test in TESTS * times:
        folder = tempfile.mkdtemp()
        Path(folder, "answer.py").write_text(_ANSWER)
        line = command(folder)
        ended = subprocess.run(line, input=test["stdin"], capture_output=True, cwd=folder, text=True, timeout=60)
        assert ended.stdout.split() == test["stdout"].split(), ended.stderr
        shutil.rmtree(folder)
    return (running_ms() - began_ms) / (times * len(TESTS))

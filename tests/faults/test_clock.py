"""The wall clock jumps: limits, ages and order hang on a clock that does not."""

import ast
from pathlib import Path

import pytest

import evaluator_host
from evaluator_host.config import RUNTIMES_DIR
from tests.faults.scene import Scene, scene

# Reads of the wall clock that are meant: what a record shows or a database compares with other wall-clock times, and
# what is compared with times of files or of another machine. None of them limits, orders or ends a row.
SHOWN = {
    "environments/record.py": "when a set was built",
    "environments/shelf.py": "compared with the time of a file",
    "sandbox/docker_remains.py": "compared with the engine's own times",
    "cli": "what a command shows or is given",
    "jobs": "when a job was made",
    "selftest": "what a report shows",
    "store": "when a record was made, or a key expires",
    "web/keyring.py": "when a key expires",
    "web/audited.py": "when a call was made",
}
WALL = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}


def wall_clock_reads(source: str) -> list[int]:
    """Return the lines on which a module asks what time it is."""
    names = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    return [node.lineno for node in names if (getattr(node.value, "id", ""), node.attr) in WALL]


def test_only_what_is_shown_or_stored_reads_the_wall_clock() -> None:
    package = Path(evaluator_host.__file__).parent
    read = [
        f"{path.relative_to(package)}:{line}"
        for path in sorted(package.rglob("*.py"))
        if "_bundled" not in path.parts and not any(str(path.relative_to(package)).startswith(known) for known in SHOWN)
        for line in wall_clock_reads(path.read_text())
    ]
    assert read == []


def test_no_runner_reads_the_wall_clock() -> None:
    python = {path: wall_clock_reads(path.read_text()) for path in (RUNTIMES_DIR / "python").rglob("*.py")}
    assert {str(path): lines for path, lines in python.items() if lines} == {}
    scripts = [path for kind in ("*.mjs", "*.cjs", "*.js") for path in (RUNTIMES_DIR / "javascript").rglob(kind)]
    own = [path for path in scripts if "node_modules" not in path.parts and "guest" not in path.parts]
    assert own
    assert [str(path) for path in own if "Date.now(" in path.read_text() or "new Date(" in path.read_text()] == []


JUMPING = """
import datetime, time
real, started = time.time, time.monotonic()
def jumping():
    return real() + (-1) ** int((time.monotonic() - started) / 0.2) * 86400 * 400
time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)
"""


@pytest.fixture
def jumpy(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH that makes the wall clock of a Python process jump by two years, five times a second."""
    folder = tmp_path / "jumpy"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(JUMPING)
    return folder


def test_a_clock_that_jumps_changes_no_answer_and_no_limit(jumpy: Path, tmp_path: Path) -> None:
    with scene(tmp_path, environment={"PYTHONPATH": str(jumpy), "EVALUATOR_HOST_IDLE_TTL_S": "60"}) as host:
        assert {answer(host, seconds=0.7, timeout_s=5.0) for _ in range(3)} == {1.0}
        assert answer(host, seconds=60.0, timeout_s=0.6) == "timeout"
        assert host.evaluate().json()["sandbox"]["warm"] is False
        assert host.evaluate().json()["sandbox"]["warm"] is True, "an idle sandbox is no older than it is"


def answer(host: Scene, *, seconds: float, timeout_s: float) -> float | str:
    code = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(inputs['seconds'])\n    return 1.0\n"
    found = host.evaluate(code, seconds=seconds, timeout_s=timeout_s).json()
    return found["error"]["code"] if found["error"] else found["score"]

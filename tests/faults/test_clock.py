"""If the wall clock jumps, limits, ages and order stay right, because they depend on a clock that does not jump."""

import ast
from pathlib import Path

import pytest

import evaluator_host
from evaluator_host.engine.config.settings import RUNTIMES_DIR
from tests.faults.scene import Scene, scene
from tests.server import new_home

# files in which times are used as limits or for an order; in other files the wall clock is only stored or shown to
# people
STEADY = (
    "engine/pool",
    "engine/sandbox",
    "engine/service",
    "engine/environments",
    "engine/contracts",
    "vendors",
    "platform/wires",
    "platform/http",
    "server",
    "platform/terminal/command.py",
)
# in how many places each of these modules may read the wall clock, and why
MEANT = {
    "vendors/daytona/entities.py": (3, "kept: when a sandbox was made and last used"),
    "platform/wires/wire.py": (1, "compared with the time in a signature of a platform"),
    "engine/sandbox/linux/instance.py": (1, "compared with the time of a file"),
    "vendors/nemo/entities.py": (2, "kept: when an object was made, and changed"),
    "engine/sandbox/linux/cgroups.py": (1, "compared with the time of a folder"),
    "engine/environments/record.py": (1, "shown: when a set was built"),
    "engine/environments/folder.py": (1, "compared with the time of a file"),
    "engine/sandbox/docker/cleanup.py": (1, "compared with the engine's own times"),
    "engine/sandbox/docker/environment_images.py": (1, "compared with the engine's own times"),
    "server/server.py": (1, "told: the date of a response"),
    "server/telemetry.py": (3, "told: when a span began and ended, when a metric was read"),
    "platform/http/auth/access.py": (1, "kept: when a call was audited"),
    "platform/http/auth/keyring.py": (2, "compared with the time at which a key expires; kept: when a key was used"),
}
WALL = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}


def wall_clock_reads(source: str) -> list[int]:
    """Return the lines on which a module reads the wall clock."""
    names = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    return [node.lineno for node in names if (getattr(node.value, "id", ""), node.attr) in WALL]


def test_nothing_that_limits_or_ends_reads_the_wall_clock() -> None:
    package = Path(evaluator_host.__file__).parent
    modules = [path for name in STEADY for path in sorted((package / name).rglob("*.py")) or [package / name]]
    reads = {str(path.relative_to(package)): wall_clock_reads(path.read_text()) for path in modules}
    assert {name: len(lines) for name, lines in reads.items() if lines} == {
        name: many for name, (many, _) in MEANT.items()
    }


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
    """A folder that makes the wall clock of a Python process jump by two years, five times a second, if it is on the
    PYTHONPATH.
    """
    folder = tmp_path / "jumpy"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(JUMPING)
    return folder


@pytest.mark.long
def test_a_clock_that_jumps_changes_no_answer_and_no_limit(jumpy: Path, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(jumpy), "EVALUATOR_HOST_IDLE_TTL_S": "60"}
    with scene(tmp_path, data_dir=new_home(tmp_path), environment=environment) as host:
        assert {answer(host, seconds=0.7, timeout_s=5.0) for _ in range(3)} == {1.0}
        assert answer(host, seconds=60.0, timeout_s=0.6) == "timeout"
        assert host.evaluate().json()["sandbox"]["warm"] is False
        assert host.evaluate().json()["sandbox"]["warm"] is True, (
            "a jump of the clock must not make an idle sandbox too old"
        )


def answer(host: Scene, *, seconds: float, timeout_s: float) -> float | str:
    code = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(inputs['seconds'])\n    return 1.0\n"
    found = host.evaluate(code, seconds=seconds, timeout_s=timeout_s).json()
    return found["error"]["code"] if found["error"] else found["score"]

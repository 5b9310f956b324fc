"""Installs real packages in separate environments outside the checkout, once per machine."""

import hashlib
import subprocess
import sys
from pathlib import Path

import uv

from evaluator_host.engine.system.files import FileLock
from tests.conftest import DATA_DIR

PROGRAMS = Path(__file__).parent / "programs"
_ENVIRONMENTS = DATA_DIR.parent / "real-packages"


def real_python(pins: Path) -> Path:
    """Return the Python interpreter of an environment with exactly these package versions.

    The interpreter has the same minor version as the tests' Python.
    """
    digest = hashlib.sha256(f"{sys.version_info[:2]} {pins.read_text()}".encode()).hexdigest()[:16]
    home = _ENVIRONMENTS / f"{pins.stem}-{digest}"
    python, complete, tool = home / "bin" / "python", home / "complete", uv.find_uv_bin()
    _ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    lock = FileLock(_ENVIRONMENTS / f"{home.name}.lock")
    lock.acquire(wait=True)
    try:
        if not complete.exists():
            subprocess.run([tool, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)], check=True)
            install = [tool, "pip", "install", "--quiet", "--no-deps", "--python", str(python), "-r", str(pins)]
            subprocess.run(install, check=True)
            complete.touch()
    finally:
        lock.release()
    return python

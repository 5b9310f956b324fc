"""NVIDIA's own client in an environment of its own, installed once per run."""

import atexit
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import uv

from tests.conftest import DATA_DIR
from tests.dialects.nemo.metrics import EXPRESSIONS, GOLDEN
from tests.leftovers import make_folder
from tests.model_server import ModelServer, question_of

PINS: Final = GOLDEN / "client.txt"
ANSWERS: Final = {"pencils": "(12 * 4) + 7", "server": "125 + 25", "tank": "90 - (18 * 3)"}


class Expressions(ModelServer):
    """A model that answers word problems."""

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        made = super().completion(body)
        answer = next((said for word, said in ANSWERS.items() if word in question_of(body)), "?")
        made["choices"][0]["text"] = answer
        return made


@cache
def client_python() -> Path:
    """The Python that has the client; of the same minor version as this one."""
    DATA_DIR.parent.mkdir(parents=True, exist_ok=True)
    home = make_folder("nemo-client", parent=DATA_DIR.parent)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    python, tool = home / "bin" / "python", uv.find_uv_bin()
    subprocess.run([tool, "venv", "--quiet", "--python", sys.executable, str(home)], check=True)
    there = ["--quiet", "--no-deps", "--python", str(python), "-r", str(PINS)]
    subprocess.run([tool, "pip", "install", *there], check=True)
    return python


def session(host: str, model: str, folder: Path, rows: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Run the session, and return what it printed and what it found."""
    script, found = folder / "session.py", folder / "found.json"
    script.write_text(EXPRESSIONS + (GOLDEN / "session.py").read_text())
    ran = subprocess.run(
        [str(client_python()), str(script), host, model, str(found), json.dumps(rows)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout, json.loads(found.read_text())

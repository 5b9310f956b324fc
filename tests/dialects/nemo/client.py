"""NVIDIA's own client in an environment of its own, installed once per machine."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import uv

from tests.conftest import DATA_DIR
from tests.dialects.nemo.metrics import EXPRESSIONS, GOLDEN
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


def client_python() -> Path:
    """The Python that has the client; of the same minor version as this one."""
    key = hashlib.sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    home = DATA_DIR.parent / f"nemo-client-{key}"
    python = home / "bin" / "python"
    if not (home / "whole").exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        made = home.with_name(f"{home.name}.{id(home)}")
        tool = uv.find_uv_bin()
        subprocess.run([tool, "venv", "--quiet", "--python", sys.executable, str(made)], check=True)
        there = ["--quiet", "--no-deps", "--python", str(made / "bin" / "python"), "-r", str(PINS)]
        subprocess.run([tool, "pip", "install", *there], check=True)
        (made / "whole").touch()
        try:
            made.rename(home)
        except OSError:  # another run was first
            shutil.rmtree(made)
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

"""Installs NVIDIA's own client in a separate environment, once per machine, and runs programs with it."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.dialects.nemo.metrics import EXPRESSIONS, GOLDEN
from tests.differential.packages import real_python
from tests.model_server import ModelServer, question_of

PINS: Final = GOLDEN / "client.txt"
ANSWERS: Final = {"pencils": "(12 * 4) + 7", "server": "125 + 25", "tank": "90 - (18 * 3)"}


class Expressions(ModelServer):
    """A model server whose answers are expressions that solve word problems."""

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        made = super().completion(body)
        answer = next((said for word, said in ANSWERS.items() if word in question_of(body)), "?")
        made["choices"][0]["text"] = answer
        return made


def client_python() -> Path:
    """Return the Python interpreter that has the client, with the same minor version as the tests' Python."""
    return real_python(PINS)


def session(host: str, model: str, folder: Path, rows: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Run the program session.py with the client; return what it printed, and the findings that it wrote to a file."""
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

"""Follows the example in docs/resources/adding.md: another package adds a resource, and later changes its table."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.server import Server, new_home

pytestmark = pytest.mark.engine

EXAMPLE = ROOT / "examples" / "acme-notes"
FILES = {
    str(path.relative_to(EXAMPLE)): path.read_text()
    for path in EXAMPLE.rglob("*")
    if path.is_file() and path.suffix != ".pyc"
}
LATER = "acme_notes/migrations/r0002_colour.py"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder that contains the example's package, installed as pip would install it."""
    made = tmp_path / "packages"
    for name, text in {**FILES, "acme_notes/__init__.py": ""}.items():
        if name not in ("pyproject.toml", LATER):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_text(text)
    about = made / "acme_notes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-notes\nVersion: 1.0\n")
    group, line = re.findall(r'^\[project\.entry-points\."(.+)"\]\n(.+)', FILES["pyproject.toml"], re.MULTILINE)[0]
    (about / "entry_points.txt").write_text(f"[{group}]\n{line.replace(chr(34), '')}\n")
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_home(tmp_path)


def served(package: Path, home: Path) -> Server:
    return Server(
        "none", data_dir=home, log=home.parent / "log", environment={"PYTHONPATH": str(package)}, few_sandboxes=True
    )


@pytest.fixture
def server(package: Path, home: Path) -> Iterator[Server]:
    with served(package, home) as running:
        yield running


IN_TURN = """
import json, sys
from evaluator_host.__main__ import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["evaluator-host", *arguments]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    print("\\0", end="")
"""
"""Program that runs commands one after another, since starting a process for each would take longer than the commands."""


def commands(server: Server, package: Path, *commands: tuple[str, ...]) -> list[str]:
    """Run commands, and return what each of them printed."""
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN, json.dumps(commands)],
        env={**os.environ, "PYTHONPATH": str(package), "EVALUATOR_HOST_URL": server.url},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\0")[:-1]


def test_its_routes_its_commands_and_its_say_on_deletions(server: Server, package: Path) -> None:
    assert "/v1/notes/{name}" in server.client.get("/openapi.json").json()["paths"]
    said = server.client.put("/v1/notes/capitals", json={"text": "row 17 is wrong", "colour": "red"})
    assert (said.status_code, said.json()["errors"][0]["field"]) == (422, "colour")
    _, listed, helped = commands(
        server, package, ("notes", "put", "capitals", "row 17 is wrong"), ("notes", "list"), ("--help",)
    )
    assert "row 17 is wrong" in listed
    assert "Notes of people, on a host." in helped
    rows = {"content": b'{"outputs": 1}\n', "headers": {"Content-Type": "application/x-ndjson"}}
    server.client.post("/v1/datasets?name=capitals", **rows).raise_for_status()
    refused = server.client.delete("/v1/datasets/capitals")
    assert refused.status_code == 409
    assert "capitals is used by note capitals" in refused.json()["detail"]
    server.client.delete("/v1/notes/capitals").raise_for_status()
    assert server.client.get("/v1/notes").json() == []
    server.client.delete("/v1/datasets/capitals").raise_for_status()


@pytest.mark.long
def test_its_table_changes_with_a_later_release_and_rows_stay(package: Path, home: Path) -> None:
    with served(package, home) as server:
        server.client.put("/v1/notes/a", json={"text": "kept"}).raise_for_status()
    later = package / LATER
    later.parent.mkdir()
    later.write_text(FILES[LATER])
    table = package / "acme_notes" / "table.py"
    table.write_text(
        table.read_text()
        .replace("    text: Mapped[str]\n", "    text: Mapped[str]\n    colour: Mapped[str]\n")
        .replace("    text: str\n", "    text: str\n    colour: str\n")
        .replace("Note(name, text, ", 'Note(name, text, "red", ')
    )
    with served(package, home) as server:
        server.client.put("/v1/notes/b", json={"text": "new"}).raise_for_status()
        assert [(one["name"], one["colour"]) for one in server.client.get("/v1/notes").json()] == [
            ("a", "yellow"),
            ("b", "red"),
        ]

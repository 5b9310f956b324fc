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
# the changes of release 2 to the table and the routes
COLOUR = re.compile(r"    colour: .*\n|, (body\.)?colour\b(: str)?")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder that contains the example's package, installed as pip would install it."""
    made = tmp_path / "packages"
    for name, text in {**FILES, "acme_notes/__init__.py": ""}.items():
        if name != "pyproject.toml":
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
    environment = {"PYTHONPATH": str(package), "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'host.db'}"}
    return Server("none", data_dir=home, log=home.parent / "log", environment=environment, few_sandboxes=True)


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
    said = server.client.put("/v1/notes/capitals", json={"text": "row 17 is wrong", "author": "ann"})
    assert (said.status_code, said.json()["errors"][0]["field"]) == (422, "author")
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
    for name in ("table.py", "routes.py"):
        module = package / "acme_notes" / name
        module.write_text(COLOUR.sub("", module.read_text()))
    (package / LATER).unlink()
    with served(package, home) as server:
        kept = server.client.put("/v1/notes/a", json={"text": "kept"}).raise_for_status().json()
        assert "colour" not in kept
    for name in ("acme_notes/table.py", "acme_notes/routes.py", LATER):
        (package / name).write_text(FILES[name])
    with served(package, home) as server:
        server.client.put("/v1/notes/b", json={"text": "new", "colour": "red"}).raise_for_status()
        notes = server.client.get("/v1/notes").json()
        assert [(one["name"], one["colour"]) for one in notes] == [("a", "yellow"), ("b", "red")]
        assert notes[0] == {**kept, "colour": "yellow"}

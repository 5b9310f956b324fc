"""The command line shows its progress while it installs the exact versions in a file, and suggests a fix for a wrong
version.
"""

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked
from tests.server import COMMAND, Server, index_environment
from tests.tools import copy_tools

HEAD = '# /// script\n# dependencies = ["{pin}"]\n# requires-python = "{python}"\n# ///\n'
BODY = "import six\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
FLOOR = """import * as _ from "npm:lodash@4.17.21";

export async function main(variables: {target: string}) {
  return {score: variables.target.length + _.floor(7.55)};
}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory in which no package set is installed yet."""
    data = tmp_path_factory.mktemp("data")
    copy_tools(data)
    return data


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log", data_dir=home) as running:
        yield running


def evaluator(folder: Path, pin: str, *, python: str = ">=3.8") -> Path:
    file = folder / "evaluator.py"
    file.write_text(HEAD.format(pin=pin, python=python) + BODY)
    return file


def environment(home: Path) -> dict[str, str]:
    chosen = {"EVALUATOR_HOST_DATA_DIR": str(home), "EVALUATOR_HOST_SANDBOX": "bubblewrap", "TERM": "xterm"}
    return {**os.environ, **index_environment(), **chosen}


def command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal."""
    return forked.run(arguments, env=environment(home), timeout=90)


def on_terminal(home: Path, *arguments: str) -> tuple[int, str]:
    """Run a command with a terminal as its standard error; return its exit code and what the terminal showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=environment(home), stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # the terminal's other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    return process.wait(90), seen.decode()


def steps(seen: str) -> list[str]:
    """Return the steps that a progress bar showed, in order."""
    return list(dict.fromkeys(re.findall(r"packages: (\w+)", seen)))


@pytest.mark.long("test_builds.py builds over the API")
@pytest.mark.parametrize("verb", ["run", "check"])
@pytest.mark.parametrize("where", ["here", "at a URL"])
def test_a_terminal_shows_how_far_a_build_is(
    request: pytest.FixtureRequest, home: Path, tmp_path: Path, verb: str, where: str
) -> None:
    options = ["--url", request.getfixturevalue("server").url] if where == "at a URL" else []
    minor = 14 + ["run", "check"].index(verb) * 2 + len(options) // 2  # each case has a different package set
    arguments = (verb, str(evaluator(tmp_path, f"six==1.{minor}.0")), *options)
    code, seen = on_terminal(home, *arguments)
    assert code == 0, seen
    shown = steps(seen)
    assert shown[0] == "resolving"
    assert set(shown) <= {"resolving", "downloading", "installing", "checking", "ready"}
    assert len(shown) > 1
    assert steps(on_terminal(home, *arguments)[1]) == [], "no steps may be shown, because the set is already installed"


@pytest.mark.long
def test_nothing_is_drawn_where_nobody_would_see_it(home: Path, tmp_path: Path) -> None:
    file = evaluator(tmp_path, "toolz==1.0.0")
    file.write_text(file.read_text().replace("import six", "import toolz"))
    ran = command(home, "run", str(file))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "scored" in ran.stdout


@pytest.mark.long
def test_specifiers_of_a_file_pin_its_packages(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "floor.ts"
    file.write_text(FLOOR)
    ran = command(home, "run", str(file), "--variables", '{"target": "abc"}')
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^score +10$", ran.stdout, re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize(("verb", "where"), [("run", "here"), ("check", "at a URL")])
def test_another_python_than_the_file_requires_is_refused(
    request: pytest.FixtureRequest, home: Path, tmp_path: Path, verb: str, where: str
) -> None:
    options = ["--url", request.getfixturevalue("server").url] if where == "at a URL" else []
    ran = command(home, verb, str(evaluator(tmp_path, "six==1.99.0", python=">=3.99")), *options)
    assert ran.returncode == 2
    assert "the file requires Python >=3.99, and evaluators run on Python 3." in ran.stderr
    assert "run it on a host with such a Python" in ran.stderr


@pytest.mark.long
def test_a_range_is_refused_with_the_newest_pin_that_matches(home: Path, tmp_path: Path) -> None:
    python = command(home, "check", str(evaluator(tmp_path, "six<1.17")))
    assert python.returncode == 2
    assert "six==1.16.0" in python.stderr
    script = tmp_path / "floor.ts"
    script.write_text(FLOOR.replace("4.17.21", "~4.17.5"))
    typescript = command(home, "run", str(script), "--variables", "{}")
    assert typescript.returncode == 2
    assert "line 1" in typescript.stderr
    assert re.search(r"lodash@4\.17\.2[1-9]", typescript.stderr)

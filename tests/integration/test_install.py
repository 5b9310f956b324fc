"""The package is built from a checkout with the standard tools, and installed outside the checkout as users install it."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import DATA_DIR
from tests.install_page import commands_of
from tests.server import free_port

ROOT = Path(__file__).resolve().parents[2]
UV = str(Path(sys.executable).with_name("uv"))
MB = 1024 * 1024
pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

PROGRAMS = {
    "exact.py": "def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == 'a' else 0.0\n",
    "exact.js": "function evaluate(inputs, outputs, trace) { return outputs === 'a' ? 1 : 0; }\n",
    "exact.ts": "export const evaluate = (inputs: object, outputs: string, trace: object): number => (outputs === 'a' ? 1 : 0);\n",
}


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVALUATOR_HOST", "VIRTUAL_ENV"))}
    given = {"EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), **environment}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept | given, capture_output=True, text=True, timeout=550
    )


def done(*command: str | Path, cwd: Path, **environment: str) -> str:
    ended = run(*command, cwd=cwd, **environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which nothing has been built."""
    folder = tmp_path_factory.mktemp("checkout") / "evaluator-host"
    listed = done("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def built(checkout: Path) -> Path:
    """The folder with the sdist and the wheel that `uv build` makes."""
    out = checkout.parent / "dist"
    done(UV, "build", "--out-dir", out, ".", cwd=checkout)
    return out


def sdist(built: Path) -> Path:
    return next(built.glob("*.tar.gz"))


def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


@pytest.mark.long("this builds the wheel; test_release.py tests the files of a release")
def test_it_has_the_pages_the_runners_and_a_bill_of_materials(built: Path) -> None:
    assert wheel(built).stat().st_size <= 5.5 * MB
    with zipfile.ZipFile(wheel(built)) as archive:
        names = archive.namelist()
        (bill,) = [name for name in names if "/sboms/" in name]
        components = json.loads(archive.read(bill))["components"]
    for part in (
        "web/ui/dist/index.html",
        "_bundled/runtimes/python/",
        "_bundled/sandbox_images/seccomp.json",
        "licenses/LICENSE",
    ):
        assert any(part in name for name in names), part
    assert {"httpx", "preact", "esbuild"} <= {one["name"] for one in components}
    with tarfile.open(sdist(built)) as archive:
        assert not [name for name in archive.getnames() if "/tests/" in name or "node_modules" in name]


@pytest.mark.long
def test_another_tool_builds_the_same_files(checkout: Path, built: Path) -> None:
    out = checkout.parent / "again"
    done(UV, "tool", "run", "--from", "build", "pyproject-build", "--installer", "uv", "--outdir", out, cwd=checkout)
    digests = [
        hashlib.sha256(pick(folder).read_bytes()).hexdigest() for folder in (built, out) for pick in (wheel, sdist)
    ]
    assert digests[:2] == digests[2:]


@pytest.mark.long
def test_a_build_that_cannot_make_the_pages_fails(checkout: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare, ignore=shutil.ignore_patterns("dist", "node_modules"))
    nowhere = {
        "npm_config_registry": "http://127.0.0.1:9",
        "npm_config_cache": str(tmp_path / "npm"),
        "npm_config_fetch_retries": "0",
    }
    ended = run(UV, "build", "--out-dir", tmp_path / "out", ".", cwd=bare, **nowhere)
    assert ended.returncode != 0
    assert "The pages of the workbench could not be built" in ended.stderr
    assert "run `make setup` first" in ended.stderr


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that contains the wheel and its requirements."""
    home = tmp_path_factory.mktemp("installed")
    done(UV, "venv", "--quiet", "--seed", home / "venv", "--python", sys.executable, cwd=home)
    done(UV, "pip", "install", "--quiet", "--python", home / "venv/bin/python", wheel(built), cwd=home)
    return home / "venv/bin"


def scores(folder: Path, names: Iterable[str], *command: str | Path, **environment: str) -> None:
    for name in names:
        (folder / name).write_text(PROGRAMS[name])
        arguments = ("run", name, "--outputs", '"a"', "--json")
        told = done(*command, *arguments, cwd=folder, EVALUATOR_HOST_SANDBOX="bubblewrap", **environment)
        assert (json.loads(told)["status"], json.loads(told)["score"]) == ("scored", 1.0), name


@pytest.mark.long
def test_the_wheel_scores_in_three_languages(installed: Path, tmp_path: Path) -> None:
    """The wheel scores in three languages.

    The wheel is made from the sdist. Tests below install the wheel with pip and uvx, using the commands in
    docs/install.md.
    """
    scores(tmp_path, PROGRAMS, installed / "evaluator-host")


@pytest.mark.long
def test_pip_installs_a_checkout(checkout: Path, installed: Path, tmp_path: Path) -> None:
    """pip can install a checkout. The requirements come from the existing environment, because they are the same as the
    wheel's.
    """
    target = tmp_path / "target"
    quiet = ("install", "--quiet", "--no-compile", "--no-deps")
    done(installed / "python", "-m", "pip", *quiet, "--target", target, checkout, cwd=tmp_path)
    scores(tmp_path, ["exact.ts"], installed / "python", "-m", "evaluator_host", PYTHONPATH=str(target))


@pytest.mark.long
def test_pipx_installs_the_wheel(built: Path, tmp_path: Path) -> None:
    """pipx can install the wheel. The command must only start, because other tests check the scores of an installed
    wheel (fixture `installed`).
    """
    homes = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin"), "PIPX_DEFAULT_BACKEND": "uv"}
    done(UV, "tool", "run", "--from", "pipx[uv]", "pipx", "install", wheel(built), cwd=tmp_path, **homes)
    assert done(tmp_path / "bin/evaluator-host", "version", cwd=tmp_path).startswith("evaluator-host ")


@pytest.mark.long
def test_the_commands_of_the_page_for_pip_score(built: Path, installed: Path, tmp_path: Path) -> None:
    """The commands for pip in docs/install.md give a score. The requirements are already installed, because installing
    them takes 10 s.
    """
    done(UV, "pip", "uninstall", "--quiet", "--python", installed / "python", "evaluator-host", cwd=tmp_path)
    assert not (installed / "evaluator-host").exists()
    printed = page_commands(0, built, installed, tmp_path)
    assert re.search(r"score +1\.0", printed), printed


@pytest.mark.long
def test_the_commands_of_the_page_for_uvx_score(built: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/uvx").symlink_to(Path(UV).with_name("uvx"))
    printed = page_commands(1, built, tmp_path / "bin", tmp_path)
    assert re.search(r"score +1\.0", printed), printed


def page_commands(number: int, built: Path, programs: Path, folder: Path) -> str:
    """Run the page's commands with the path of the wheel, and return the output of the last command."""
    printed = ""
    for command in commands_of("From the package", number):
        line = command.replace(wheel(built).name, str(wheel(built)))
        path = f"{programs}:{os.environ['PATH']}"
        printed = done("sh", "-ec", line, cwd=folder, PATH=path, PIP_NO_COMPILE="1")
    return printed


@pytest.mark.long
def test_make_run_serves_what_the_page_asks(tmp_path: Path) -> None:
    """`make run` serves what docs/install.md asks for. The test does not install the tools again, because the tests
    already run with them.
    """
    serve, ask = commands_of("From a checkout")
    port = str(free_port())
    made = {
        "PORT": port,
        "MAKEFLAGS": "",
        "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR),
        "EVALUATOR_HOST_SANDBOX": "bubblewrap",
    }
    command = [*serve.split(), "--old-file=.venv/.tools", "MAKE=true"]
    with (tmp_path / "log").open("wb") as log:
        host = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | made, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until = time.monotonic() + 120
        while "listens on" not in (tmp_path / "log").read_text():
            assert host.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
        assert json.loads(done("sh", "-ec", ask.replace("8710", port), cwd=tmp_path))["score"] == 1.0
    finally:
        os.killpg(host.pid, signal.SIGTERM)
        host.wait(30)


@pytest.mark.long
def test_a_bare_install_keeps_keys_and_names_the_extras(installed: Path, tmp_path: Path) -> None:
    command = [installed / "evaluator-host"]
    data = {"EVALUATOR_HOST_DATA_DIR": str(tmp_path / "data")}
    assert run(*command, "keys", "create", "ci", cwd=tmp_path, **data).stdout.startswith("eh_")
    assert "ci" in run(*command, "keys", "list", cwd=tmp_path, **data).stdout
    assert (tmp_path / "data/evaluator-host.db").exists(), "the package must contain the tables of the database"
    postgres = run(
        *command, "keys", "list", cwd=tmp_path, EVALUATOR_HOST_DATABASE_URL="postgresql://u:p@127.0.0.1/d", **data
    )
    assert (postgres.returncode, "pip install 'evaluator-host[postgres]'" in postgres.stderr) == (2, True), (
        postgres.stderr
    )
    (tmp_path / "exact.py").write_text(PROGRAMS["exact.py"])
    docker = run(*command, "run", "exact.py", cwd=tmp_path, EVALUATOR_HOST_SANDBOX="docker", **data)
    assert "pip install 'evaluator-host[docker]'" in docker.stderr

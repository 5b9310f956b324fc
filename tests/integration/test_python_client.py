"""The Python client is built, installed alone as users install it, and calls a real host."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks
from tests.server import FORKED, Server, new_home

SOURCE = ROOT / "clients" / "python"
UV = Path(sys.executable).with_name("uv")
MB = 1 << 20
pytestmark = pytest.mark.engine


def done(*command: str | Path, folder: str | Path = "/") -> str:
    """Run a command outside the checkout and return its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    done(UV, "build", "--wheel", "--quiet", "--out-dir", out, SOURCE)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that contains the client and its requirements."""
    home = tmp_path_factory.mktemp("bare") / "venv"
    done(UV, "venv", "--quiet", "--python", sys.executable, home)
    done(UV, "pip", "install", "--quiet", "--python", home / "bin" / "python", wheel)
    return home / "bin" / "python"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    with Server(log=home / "log", data_dir=new_home(home), environment=FORKED) as running:
        yield running


def test_it_brings_little_and_nothing_of_the_host(python: Path, wheel: Path) -> None:
    installed = next((python.parents[1] / "lib").glob("python3.*/site-packages"))
    assert sum(file.stat().st_size for file in installed.rglob("*") if file.is_file()) <= 15 * MB
    assert not (installed / "evaluator_host").exists()
    with zipfile.ZipFile(wheel) as archive:  # the wheel must not have files of the host, so that both can be installed
        assert {name.partition("/")[0].partition("-")[0] for name in archive.namelist()} == {"evaluator_host_client"}


@pytest.mark.long
def test_each_of_its_modules_can_be_imported(python: Path) -> None:
    program = (
        "import evaluator_host_client as it, importlib, pkgutil, sys\n"
        "for found in pkgutil.walk_packages(it.__path__, 'evaluator_host_client.'): importlib.import_module(found.name)\n"
        "print(len(sys.modules['evaluator_host_client.types'].__path__), 'evaluator_host' in sys.modules)\n"
        "for name in it.__all__: getattr(it, name)\n"
    )
    assert done(python, "-c", program).split() == ["1", "False"]


@pytest.mark.long
def test_the_examples_of_its_page_and_a_job_run(python: Path, server: Server, tmp_path: Path) -> None:
    found = blocks(SOURCE / "README.md")
    examples, told = ([one.text for one in found if one.language == language] for language in ("python", "text"))
    url = f"http://127.0.0.1:{server.port}"
    printed = [done(python, "-c", one.replace("http://127.0.0.1:8710", url), folder=tmp_path) for one in examples]
    assert printed == told
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 4
    job = (
        "from evaluator_host_client import Client, Evaluator, HostError\n"
        f"with Client({url!r}) as client:\n"
        "    client.datasets.upload('answers', [{'outputs': 'Paris'}, {'outputs': 'Rome'}])\n"
        "    code = 'def evaluate(inputs, outputs, trace): return outputs == \"Paris\"'\n"
        "    client.evaluators.create('paris', Evaluator(code))\n"
        "    job = client.jobs.wait(client.jobs.create(['paris'], 'answers').id)\n"
        "    print(job.status)\n"
        "    try: client.evaluators.get('rome')\n"
        "    except HostError as error: print(type(error).__name__)\n"
    )
    assert done(python, "-c", job).split() == ["completed", "NotFound"]


REWARDS = """
from trl_reward import passes
from verl_reward import compute_score

good, tests = "def double(n): return 2 * n", ["assert double(4) == 8"]
chat = [{"role": "assistant", "content": f"```python\\n{good}\\n```"}]
print(passes([chat, good, "exit()"], [tests] * 3), compute_score("", good, '["assert double(4) == 8"]'))
for wrong in (None, "assert True", [], [None], ["assert ("]):
    try:
        print(passes([good], [wrong]))
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__)
try:
    print(compute_score("", good, "assert True"))
except ValueError:
    print("not JSON")
"""


def test_the_example_for_trainers_needs_the_client_alone_and_refuses_bad_rows(
    python: Path, server: Server, tmp_path: Path
) -> None:
    folder = shutil.copytree(ROOT / "examples" / "rl-rewards", tmp_path / "rl-rewards")
    program = f"import os; os.environ['EVALUATOR_HOST_URL'] = {server.url!r}\n{REWARDS}"
    assert done(python, "-c", program, folder=folder).splitlines() == [
        "[1.0, 1.0, 0.0] 1.0", *["ValueError"] * 4, "RuntimeError", "not JSON"
    ]  # fmt: skip


def test_its_version_and_needs_are_those_of_the_host() -> None:
    own = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    host = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert own["version"] == host["version"]
    assert set(own["dependencies"]) <= set(host["dependencies"])

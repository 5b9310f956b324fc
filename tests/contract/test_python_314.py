"""`concurrent.interpreters`, which is new in Python 3.14, works in an image with Python 3.14 and on a Debian with
Python 3.14.

Few machines have Python 3.14, so debootstrap makes a Debian with Python 3.14: as an image's base, and as a host's
machine.
"""

import json
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.engine.backends import build_images
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.sandbox.docker.image import build, recipe
from tests.attacks.weakened import LOAD_TIMEOUT_S
from tests.conftest import settings
from tests.contract import python_314
from tests.debian import debian_root

ROOT = Path(__file__).resolve().parents[2]
SUITE = "testing"
IMAGE = "evaluator-host/python-3.14:1"
WALK = """
unset PIP_FIND_LINKS # of this machine, not of the root
export HOME=/tmp/home PATH=/usr/sbin:/usr/bin:/sbin:/bin
mkdir "$HOME" && cd "$HOME"
python3 -m venv here
here/bin/python -m pip install --quiet --no-compile --disable-pip-version-check "$(ls /given/*.whl)[parquet]"
here/bin/evaluator-host setup >/dev/null
for start in fresh template; do
  here/bin/python /given/python_314.py $start
done
"""
pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("this installs a Debian; test_children.py tests subinterpreters of this machine's Pythons"),
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
async def over_docker() -> AsyncIterator[Settings]:
    """Settings for a host with an image that contains Python 3.14."""
    # the pins must not change before this line, which may build the image that all other tests use
    chosen = settings("docker", docker_image=IMAGE, load_timeout_s=LOAD_TIMEOUT_S)
    pins = replace(recipe.read_pins(), suite=SUITE, python="3.14")
    with pytest.MonkeyPatch.context() as patched:
        for module in (recipe, build):
            patched.setattr(module, "read_pins", lambda: pins)
        recipe.image_platform.cache_clear()
        await build_images(chosen, base=None, progress=print)
        yield chosen
    recipe.image_platform.cache_clear()


async def test_subinterpreters_work_in_an_image_with_python_3_14(over_docker: Settings) -> None:
    assert await python_314.both(over_docker) == python_314.EXPECTED


def test_subinterpreters_work_on_a_host_with_python_3_14(tmp_path: Path) -> None:
    debian = debian_root(SUITE, "ca-certificates,python3,python3-venv,bubblewrap")
    subprocess.run(["make", "dist"], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (ROOT / "dist").glob("evaluator_host-*.whl")
    (tmp_path / "walk").write_text(WALK)
    command = ["sh", ROOT / ".ci/enter-root", debian, "0", tmp_path / "walk", python_314.__file__, wheel]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1000)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [python_314.EXPECTED] * 2

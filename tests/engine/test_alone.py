"""The engine can be used alone: it scores code in three languages with pinned packages, and no other part of the host
is on the import path.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evaluator_host
from tests.docs.blocks import ROOT, blocks

PACKAGE = Path(evaluator_host.__file__).parent
ABSENT = ("sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn", "httpx", "typer", "rich", "mcp")
REFUSING = """
import importlib.abc, sys

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"{{name}} is not for the engine", name=name)

sys.meta_path.insert(0, Refusing())
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the engine and the runners of its sandboxes, and without any other part of the host."""
    home = tmp_path_factory.mktemp("engine")
    for part in ("engine", "types"):
        shutil.copytree(PACKAGE / part, home / "evaluator_host" / part)
    shutil.copy(PACKAGE / "__init__.py", home / "evaluator_host")
    for folder in ("runtimes", "sandbox_images", "deploy"):
        (home / folder).symlink_to(ROOT / folder)
    (home / "sitecustomize.py").write_text(REFUSING.format(absent=ABSENT))
    return home


def run(home: Path, program: str) -> str:
    """Run a program with the folder `home` first on the import path, and return the program's output."""
    environment = {**os.environ, "PYTHONPATH": str(home), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=home, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.engine
def test_it_evaluates_three_languages_with_pinned_packages(alone: Path) -> None:
    program, printed = blocks(ROOT / "docs" / "engine.md")[:2]
    assert run(alone, program.text) == printed.text


def test_every_module_of_the_engine_can_be_imported_alone(alone: Path) -> None:
    """Every module of the engine can be imported alone, except those for Docker and registries, which import httpx and
    belong to optional extras.
    """
    names = sorted(
        ".".join(path.relative_to(alone).with_suffix("").parts).removesuffix(".__init__")
        for path in (alone / "evaluator_host").rglob("*.py")
    )
    loaded = [name for name in names if not re.search(r"\.(registry\.http|system\.limited_child)$", name)]
    program = f"import importlib\nfor name in {loaded!r}: importlib.import_module(name)\nprint(len({loaded!r}))"
    assert int(run(alone, program)) > 150

"""Every bash and python block of the documentation runs against a real host, and prints what the document says.

`text` and `yaml` blocks cannot run here (make targets, image builds, other programs' files). A `json` or `text` block
after a block that ran shows the output of that block; values that differ from run to run are not compared.
"""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.conftest import DATA_DIR
from tests.databases import Databases
from tests.docs.blocks import DOCUMENTS, ROOT, Block, blocks, name
from tests.node_client import NODE, installed
from tests.server import Server, index_environment

pytestmark = pytest.mark.engine

INSTALLED = Path(sys.executable).parent
README = ROOT / "README.md"
RUNNABLE = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
MORE = "…"
"""A key in a shown answer that stands for further fields."""
VOLATILE = {"timing_ms", "rows_per_s", "digest", "runtime", "peak_memory_kb", "peak_memory_mb", "run_ms", "warm"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program `evaluator-host`. To save time, the program is forked from a process that has imported
    everything (`tests.forked`).

    Blocks in the README start the installed program.
    """
    return tmp_path_factory.mktemp("programs")


# tests/engine/test_alone.py also tests the examples of engine.md
LONG = {"cli.md", "engine.md", "first-job.md", "import.md", "migration.md", "scale.md", "troubleshooting.md"}


def marked(document: Path) -> object:
    """Return the test case for a document; it is long if the document has many commands or is about a single vendor."""
    is_long = document.parent not in (ROOT, ROOT / "docs") or document.name in LONG
    return pytest.param(document, id=name(document), marks=[pytest.mark.long] if is_long else [])


@pytest.mark.timeout(400)  # a document may have dozens of commands, and each starts a process
@pytest.mark.parametrize("document", [marked(path) for path in DOCUMENTS if blocks(path)])
def test_every_block_runs_and_prints_what_the_document_says(
    document: Path, server: Server, tmp_path: Path, programs: Path, databases: Databases
) -> None:
    found = blocks(document)
    database = databases.make("sqlite")  # a new database, so that a key made in the document is not a key of the host
    if any("@evaluator-host/client" in block.text for block in found if block.language in RUNNABLE):
        installed(tmp_path)
    assert {block.language for block in found} <= {"bash", "python", "json", "text", "yaml"}
    for block, following in pairwise([*found, Block("", "", 0)]):
        if block.language not in RUNNABLE:
            continue
        ran = run(block, server, tmp_path, INSTALLED if document == README else programs, database=database)
        assert ran.returncode == 0, f"{document}:{block.line}: {ran.stdout}{ran.stderr}"
        if following.language == "json":
            told = json.loads(following.text)
            answer = shown(json.loads(ran.stdout), told)
            assert stable(answer) == stable(told), f"{document}:{following.line}"
            assert shape(answer) == shape(told), f"{document}:{following.line}"
        elif following.language == "text" and follows(document, block, following):
            assert ran.stdout == following.text, f"{document}:{following.line}"


def run(
    block: Block, server: Server, folder: Path, programs: Path, *, database: str
) -> subprocess.CompletedProcess[str]:
    text = block.text.replace("127.0.0.1:8710", f"127.0.0.1:{server.port}")
    environment = {
        **os.environ,
        "PATH": f"{programs}:{INSTALLED}:{NODE.parent}:{os.environ['PATH']}",
        "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR),
        "EVALUATOR_HOST_DATABASE_URL": database,
        **index_environment(),
    }
    if block.language == "python" and programs != INSTALLED:
        return forked.run(["-c", text], cwd=folder, env=environment, timeout=100)
    return subprocess.run(
        [*RUNNABLE[block.language], text],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=100,
        pass_fds=[] if programs == INSTALLED else [forked.make_program(programs)],
    )  # fmt: skip


def follows(document: Path, block: Block, following: Block) -> bool:
    """Whether there is only white space between one block and the next."""
    end = block.line + block.text.count("\n") + 2
    lines = document.read_text().splitlines()[end - 1 : following.line - 1]
    return not re.search(r"\S", "\n".join(lines))


def shown(value: Any, told: Any) -> Any:
    """Return a decoded answer as the document shows it: the entry `"…": "…"` replaces the fields that the document
    leaves out.
    """
    if not isinstance(value, dict) or not isinstance(told, dict):
        return value
    kept = told.keys() - {MORE} if MORE in told else value.keys()
    more = {MORE: MORE} if kept < value.keys() else {}
    return {key: shown(inner, told.get(key)) for key, inner in value.items() if key in kept} | more


def stable(value: Any) -> Any:
    """Return a decoded answer without fields that differ from run to run."""
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if key not in VOLATILE}
    return [stable(inner) for inner in value] if isinstance(value, list) else value


def shape(value: Any) -> Any:
    """Return a decoded answer in which the name of each value's kind replaces the value."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__

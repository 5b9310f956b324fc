"""The host's small replacements of platforms' packages import little: standard modules that load in a few milliseconds.

`.ci/import_cost.py` measures the time. This test compares lists of modules, which are the same on a busy machine.
"""

import json
import subprocess
import sys

import pytest

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.contracts.table import all_dialects

HEAVY = {
    "argparse", "ast", "asyncio", "csv", "dataclasses", "email", "http", "importlib.metadata", "inspect", "json", "logging",
    "multiprocessing", "pickle", "random", "socket", "sqlite3", "ssl", "statistics", "subprocess", "tempfile", "threading",
    "typing", "unittest", "urllib.request", "uuid", "zipfile",
}  # fmt: skip
ALLOWED = {
    # Opik's results are dataclasses, and `dataclasses` imports the other two
    "opik": {"ast", "dataclasses", "inspect"},
    "mlflow": {"json"},  # traces are read from JSON
}
LIGHT = [one for one in all_dialects() if one.sdk is not None and not one.sdk.needed]
PROGRAM = """
import json, sys
known = set(sys.modules)
sys.path.insert(0, {folder!r})
__import__({module!r})
sys.stdout.write(repr(sorted(set(sys.modules) - known)))
"""


@pytest.mark.parametrize("dialect", LIGHT, ids=lambda one: one.contract)
def test_light_modules_import_no_heavy_module(dialect) -> None:
    folder = str(RUNTIMES_DIR / "python" / dialect.sdk.stand_in.folder)
    program = PROGRAM.format(folder=folder, module=dialect.sdk.stand_in.preimport).replace(
        "import json, sys", "import sys"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True)
    imported = set(json.loads(ran.stdout.replace("'", '"')))
    assert imported & HEAVY == ALLOWED.get(dialect.contract, set())
    assert any(name.partition(".")[0] == dialect.sdk.stand_in.preimport.partition(".")[0] for name in imported)
    assert len(imported) < 60


def test_a_sandbox_without_a_dialect_imports_none_of_it() -> None:
    program = "import sys; from evaluator_runner import program; print('\\n'.join(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=RUNTIMES_DIR / "python", check=True, capture_output=True, text=True
    )
    loaded = {name for name in ran.stdout.split() if name.startswith("evaluator_runner.dialects.")}
    # modules that recognise code only after it has run, so every sandbox imports them
    own = {"nemo", "uipath", "evaluate", "evaluate_v1", "main", "clients"}
    assert {name.split(".")[2] for name in loaded} <= own

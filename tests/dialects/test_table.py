"""A dialect's code is only in its own folders: no other file of the host or of a runner contains the dialect's name."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.contracts.function import dialect as function
from evaluator_host.engine.contracts.table import all_dialects, dialect_of
from evaluator_host.platform.plugins import plugins
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.evaluator import Contract, Language
from tests.probe import NODE

ROOT = Path(__file__).parents[2]
HOST = ROOT / "evaluator_host"
OWN = {
    Contract.AUTO,
    Contract.EVALUATE,
    Contract.EVALUATE_V1,
    Contract.MAIN,
    Contract.SCRIPT,
    Contract.FUNCTION,
    Contract.JUDGE,
}
ORDINARY = {"inspect", "rewards", "weave"}  # names of dialects that are also ordinary words
VENDORS = [contract for contract in Contract if contract not in OWN and contract not in ORDINARY]
CONTRACTS = [contract for contract in Contract if contract is not Contract.AUTO]
RELEASED = {
    "evaluator_host/platform/store/migrations/r0004_entities.py"
}  # a released migration; its name says its purpose and must not change
# this file contains attributes of spans that name a trace's session
ATTRIBUTES = {"evaluator_host/platform/traces/export.py"}
HEAVY = {
    "pydantic",
    "jinja2",
    "typer",
    "fastapi",
    "starlette",
    "httpx",
    "sqlalchemy",
    "evaluator_host.engine.config.settings",
}


@cache
def sources() -> list[tuple[str, str]]:
    """Return the path and text of each source file that is not in a dialect's own folder."""
    found = []
    for folder in (HOST, RUNTIMES_DIR):
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(folder).parts
            if path.suffix not in {".py", ".mjs", ".cjs"} or {"node_modules", "ui"} & set(parts):
                continue
            if parts[0] in ("sdk", "vendors") or "dialects" in parts[:-1]:
                continue
            found.append((path.relative_to(ROOT).as_posix(), path.read_text("utf-8")))
    return found


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.slow
def test_a_vendor_is_named_in_its_folders_only(name: str) -> None:
    found = []
    module = name.replace("-", "_")
    named = re.compile(rf"(?:{name}|{module})(?!um|al|ai)")  # "maximum" and the package "vertexai" do not name a vendor
    for path, text in sources():
        if path not in RELEASED | ATTRIBUTES and named.search(text.lower()):
            found.append((path, [line for line in text.splitlines() if named.search(line.lower())]))
    assert found == []


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_contract_has_a_dialect_of_its_own(contract: Contract) -> None:
    dialect = dialect_of(contract)
    assert dialect.contract is contract
    assert dialect.languages <= set(Language)


@pytest.mark.parametrize("name", plugins())
def test_entry_points_of_a_plugin_lead_to_something(name: str) -> None:
    plugin = plugins()[name]
    values = [getattr(plugin, one) for one in plugin.__slots__]
    parts = [part for one in values for part in (one.values() if isinstance(one, dict) else [one])]
    assert any(isinstance(part, EntryPoint) for part in parts)
    for part in parts:
        if isinstance(part, EntryPoint):
            assert part.load() is not None


@pytest.mark.parametrize(
    "dialect", [one for one in all_dialects() if one.sdk is not None], ids=lambda one: one.contract
)
def test_an_sdk_has_its_light_modules_and_its_lock(dialect) -> None:
    modules = RUNTIMES_DIR / "python" / dialect.sdk.stand_in.folder
    for name in (dialect.sdk.module, dialect.sdk.stand_in.preimport):
        path = modules.joinpath(*name.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
    lock = (RUNTIMES_DIR / "python" / dialect.sdk.lock).read_text() if dialect.sdk.lock else ""
    for package in {*dialect.sdk.needed, *dialect.sdk.needed_by.values()}:
        assert re.search(rf"^{package}==", lock, re.MULTILINE)


def test_the_python_runner_knows_the_same_dialects() -> None:
    code = "import json; from evaluator_runner import dialects; print(json.dumps(sorted(dialects.CONTRACTS)))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=RUNTIMES_DIR / "python", check=True, capture_output=True, text=True
    )
    assert json.loads(ran.stdout) == sorted(one.contract for one in all_dialects() if Language.PYTHON in one.languages)


def test_the_javascript_runner_knows_the_same_dialects() -> None:
    table = json.dumps((RUNTIMES_DIR / "javascript" / "dialects" / "table.mjs").as_uri())
    code = f"import({table}).then(({{ DIALECTS }}) => console.log(JSON.stringify(DIALECTS.map((one) => one.contract).sort())))"
    ran = subprocess.run([str(NODE), "-e", code], check=True, capture_output=True, text=True)
    for language in (Language.JAVASCRIPT, Language.TYPESCRIPT):
        assert json.loads(ran.stdout) == sorted(one.contract for one in all_dialects() if language in one.languages)


@pytest.mark.slow
def test_the_table_is_cheap_to_import() -> None:
    code = "import sys\nfrom evaluator_host.engine.contracts.table import all_dialects\nall_dialects()\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    imported = set(ran.stdout.split())
    assert imported & HEAVY == set()
    above = ("evaluator_host.platform", "evaluator_host.client", "evaluator_host.server", "evaluator_host.cli")
    assert [name for name in imported if name.startswith(above)] == []


def test_the_host_and_the_javascript_runner_know_the_same_names_of_parameters() -> None:
    text = (RUNTIMES_DIR / "javascript" / "dialects" / "function.mjs").read_text()
    known = dict(re.findall(r"^const (OUTPUTS|TRUTHS) = new Set\('([^']*)'", text, re.MULTILINE))
    assert known["OUTPUTS"].split() == list(function._OUTPUTS)
    assert known["TRUTHS"].split() == list(function._TRUTHS)


def test_names_of_contracts_are_known_without_an_import_of_a_dialect() -> None:
    code = "import sys\nfrom evaluator_host import Evaluator\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    imported = ran.stdout.split()
    assert "evaluator_host.types.evaluator" in imported
    assert [name for name in imported if "vendors" in name or "contracts" in name or "importlib.metadata" in name] == []

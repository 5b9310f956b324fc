"""If all vendors' folders are removed from a copy of the host, the copy still answers calls, and runs judges and jobs.

The copy does not have the routes of any vendor.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host import Client, Evaluator
from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.platform.plugins import plugins
from evaluator_host.types.evaluator import Contract
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.plugin_folders import OWN_CONTRACTS, plugin_folders
from tests.model_server import ModelServer
from tests.server import Server, new_home

ROOT = Path(__file__).parents[2]
VENDORS = ROOT / "evaluator_host" / "vendors"
NAMES = [path.name for path in sorted(VENDORS.iterdir()) if (path / "__init__.py").is_file()]
DIALECTS = {"python": RUNTIMES_DIR / "python" / "dialects", "javascript": RUNTIMES_DIR / "javascript" / "dialects"}
PUBLIC = {"nemo": ("evaluator_host/sdk",)}  # for each vendor: a public package with its classes
ADD = "def evaluate(inputs, outputs, trace):\n    return float(inputs['a'] + inputs['b'] == outputs)"


def folders_of(vendor: str) -> list[Path]:
    """Return all folders and files that belong to a vendor, as docs/dialects/adding.md lists them."""
    named = (VENDORS / vendor, *(found for one in DIALECTS.values() for found in one.glob(f"{vendor}*")))
    kept = [path for path in named if path.name.partition(".")[0] == vendor]
    return [*(path.relative_to(ROOT) for path in kept), *map(Path, PUBLIC.get(vendor, ()))]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the host without any vendor, made of hard links."""
    made = tmp_path_factory.mktemp("removed") / "host"
    made.mkdir()
    for name in ("evaluator_host", "runtimes", "sandbox_images", "deploy", "pyproject.toml"):
        subprocess.run(["cp", "-al", str(ROOT / name), str(made / name)], check=True)
    for vendor in NAMES:
        for path in folders_of(vendor):
            subprocess.run(["rm", "-r", str(made / path)], check=True)
    return made


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with ModelServer(plays_all=True) as running:
        yield running


def ran(copy: Path, *command: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(copy)}
    ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_all_files_of_a_vendor_are_in_its_folders() -> None:
    for vendor in NAMES:
        plugin = plugins().get(vendor.replace("_", "-"))
        values = [] if plugin is None else [getattr(plugin, name) for name in plugin.__slots__]
        parts = [part for one in values for part in (one.values() if isinstance(one, dict) else [one])]
        own = f"evaluator_host.vendors.{vendor}."
        assert all(part.path.startswith(own) for part in parts if hasattr(part, "path")), vendor
        assert plugin is not None or plugin_folders()[vendor.replace("_", "-")].has("dialect"), vendor


def test_no_module_of_a_sandbox_imports_a_vendor_s() -> None:
    files = (path for path in RUNTIMES_DIR.rglob("*.*") if path.suffix in (".py", ".mjs", ".cjs"))
    texts = [(path, path.read_text("utf-8")) for path in files if path.is_file()]
    for vendor in NAMES:
        imported = re.compile(rf"dialects(?:\.| import ){vendor}\b|\./{vendor}\.mjs")
        own = tuple(ROOT / path for path in folders_of(vendor))
        importing = [path for path, text in texts if imported.search(text)]
        assert [path for path in importing if not any(path == one or one in path.parents for one in own)] == [], vendor


@pytest.mark.slow
def test_the_import_rules_hold_without_them(copy: Path) -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    assert "0 broken" in ran(copy, str(lint), "--no-cache")


@pytest.mark.engine
def test_a_host_without_vendors_calls_judges_and_runs_jobs(copy: Path, provider: ModelServer, tmp_path: Path) -> None:
    models = f'{{"judge": {{"base_url": "{provider.url}", "model": "real", "key": "sk-1"}}}}'
    environment = {"PYTHONPATH": str(copy), "EVALUATOR_HOST_MODELS": models}
    command = [sys.executable, "-P", "-m", "evaluator_host"]
    home = new_home(tmp_path)
    with (
        Server(log=tmp_path / "log", data_dir=home, environment=environment, command=command) as host,
        Client(host.url) as client,
    ):
        assert set(client.info().contracts) == {"auto", *OWN_CONTRACTS}
        assert client.evaluate(Evaluator(ADD), inputs={"a": 2, "b": 3}, outputs=5).score == 1
        script = Evaluator("export function evaluate(inputs, outputs) { return outputs === 5 ? 1 : 0 }", "javascript")
        assert client.evaluate(script, inputs={}, outputs=5).score == 1
        form = {"model": "judge", "prompt": "Rate:\n{{ outputs }}", "scale": {"min": 1, "max": 5}}
        judged = client.evaluate(Evaluator("", judge=form), outputs="it is 4 of 5")
        assert (judged.score, judged.evaluator.contract) == (4, Contract.JUDGE), judged.error
        rows = [{"a": one, "b": 1, "outputs": one + 1} for one in range(3)]
        job = client.jobs.wait(client.jobs.create([Evaluator(ADD)], rows, mapping={"outputs": "outputs"}).id)
        assert job.status is JobStatus.COMPLETED
        document = host.client.get("/openapi.json").json()
        paths = document["paths"]
    assert "/v1/evaluate" in paths
    assert document["x-documents"] == []
    assert [path for path in paths if not path.startswith(("/v1/", "/healthz", "/readyz", "/metrics"))] == []

"""Each way to run NeMo's metrics here returns the same as NeMo's own package, except for documented differences."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import DATA_DIR
from tests.dialects.nemo.client import PINS
from tests.differential.compare import differences, unexplained
from tests.differential.model import model_server
from tests.differential.packages import PROGRAMS, real_python
from tests.server import FORKED, Server

pytestmark = [pytest.mark.engine, pytest.mark.differential, pytest.mark.timeout(900)]

DIFFERS: Final = "dialects/nemo.md#what-differs"
CLIENT: Final = "dialects/nemo.md#nvidias-own-client"
# largest relative difference of numbers: NVIDIA's client gets a job's numbers, which are computed from exact sums
RELATIVE: Final = {"client": 1e-12, "sdk": 0.0, "sandbox": 0.0, "submit": 0.0}
AGENTS: Final = {
    r"(agent|toolkit)( failed| without output)?(, ignored)?: rows\[[01]\]\.(sample\.inference_error|metric_errors\.seen)": DIFFERS,
    r"toolkit failed: rows\[0\]\.requests": "dialects/nemo.md#what-differs",
}
EXPLAINED: Final[dict[str, dict[str, str]]] = {
    "client": {
        **AGENTS,
        r"bleu: figures\[0\]\.histogram\.bins\[9\]\.count": DIFFERS,
        r"named by an enum: figures\[0\]\.name": DIFFERS,
        r"rows that are not objects: error": CLIENT,
        r"judge refused: error": DIFFERS,
        r"online structured nim: rows\[0\]\.requests\[0\]\.request\.(extra_body|nvext)": DIFFERS,
        r"online structured without a schema: error": CLIENT,
        r"online reasoning: .*": CLIENT,
        r"online failed: error": DIFFERS,
        r"online failed, ignored: rows\[1\]\.(sample\.inference_error|metric_errors\.seen)": DIFFERS,
        r"online bad metric, ignored: figures\[[12]\]\..*": DIFFERS,
    },
    "sdk": {
        **AGENTS,
        r"online failed: error": DIFFERS,
        r"online failed, ignored: rows\[1\]\.(sample\.inference_error|metric_errors\.seen)": DIFFERS,
        r"online failed, ignored, several: (rows\[1\]|figures\[[0-9]\])\..*": DIFFERS,
        r"online bad metric, ignored: figures\[[12]\]\..*": DIFFERS,
    },
    "sandbox": {
        **AGENTS,
        r"online failed: error": DIFFERS,
        r"online failed, ignored: rows\[1\]\.(sample\.inference_error|metric_errors\.seen)": DIFFERS,
        r"online failed, ignored, several: (rows\[1\]|figures\[[0-9]\])\..*": DIFFERS,
        r"online bad metric, ignored: figures\[[12]\]\..*": DIFFERS,
    },
    "submit": {
        **AGENTS,
        r"online failed: (error|rows|figures)": DIFFERS,
        r"online failed, ignored: rows\[1\]\.(sample\.inference_error|metric_errors\.seen)": DIFFERS,
        r"online failed, ignored, several: (rows\[1\]|figures\[[0-9]\])\..*": DIFFERS,
        r"online bad metric, ignored: figures\[[12]\]\..*": DIFFERS,
        r"online structured nim: rows\[0\]\.requests\[0\]\.request\.(extra_body|nvext)": DIFFERS,
        r"online structured without a schema: error": CLIENT,
        r"online reasoning: .*": CLIENT,
        r"judge refused: (error|rows|figures)": DIFFERS,
    },
}
NOT_OF_JOBS: Final = ("figures",)  # cases with an option that jobs do not have


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The results of the cases for each way to run them: `real`, and the ways in `RELATIVE`."""
    folder = tmp_path_factory.mktemp("nemo")
    environment = FORKED | {"EVALUATOR_HOST_JUDGE_HOSTS": '["127.0.0.1"]'}
    with model_server() as model, Server(log=folder / "log", environment=environment) as host:
        running = [_begun(kind, folder / kind, model.url, host.wait_until_ready().url) for kind in ("real", "own")]
        made: dict[str, dict[str, Any]] = {}
        for kind, process in running:
            said, _ = process.communicate(timeout=800)
            assert process.returncode == 0, said[-3000:]
            made |= json.loads((folder / kind / "found.json").read_text())
    return made


def _begun(kind: str, folder: Path, model: str, host: str) -> tuple[str, subprocess.Popen[str]]:
    folder.mkdir()
    for file in PROGRAMS.glob("nemo_*.py"):
        shutil.copy(file, folder)
    python = real_python(PINS) if kind == "real" else Path(sys.executable)
    if kind == "own":
        cases = folder / "nemo_cases.py"
        cases.write_text(cases.read_text().replace("from nemo_evaluator_sdk", "from evaluator_host.sdk"))
    environment = os.environ | FORKED
    environment |= {"EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
    command = [str(python), f"nemo_{kind}.py", model, host, "found.json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return kind, subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)  # type: ignore[call-overload,return-value]


@pytest.mark.parametrize("way", list(RELATIVE))
def test_results_are_those_of_the_real_package(found: dict[str, dict[str, Any]], way: str) -> None:
    real, here = found["real"], found[way]
    assert len(here) > 50
    fields = {
        name: list(differences(*_alike(real[name], here[name], way), relative=RELATIVE[way]))
        for name in here
        if not (name in NOT_OF_JOBS and way in ("client", "submit"))
    }
    left = unexplained(fields, EXPLAINED[way])
    assert left == {}, json.dumps(left, indent=1)


def _alike(real: dict[str, Any], here: dict[str, Any], way: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Remove expected differences from both results: the summary has rounded numbers, and a job reports errors
    differently.
    """
    real, here = ({name: value for name, value in one.items() if name != "summary"} for one in (real, here))
    if way == "submit" and "error" in real and "rows" in here:  # a submission leaves out the rows that failed
        told = [message for row in here["rows"] for message in (row["metric_errors"] or {}).values()]
        return ({}, {}) if told and _plain(told[0]) in _plain(real["error"]) else (real, here)
    if "error" in real and "error" in here:
        told = here["error"].replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")
        message = real["error"].partition(": ")[2] if way in ("client", "submit") else real["error"]
        if _plain(message) in _plain(told):
            return {}, {}
    return real, here


def _plain(text: str) -> str:
    return re.sub(r"pydantic\.dev/[0-9.]+/", "pydantic.dev/", text)  # the packages use different versions of pydantic

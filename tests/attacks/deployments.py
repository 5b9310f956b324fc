"""The deployments that are attacked, by `evaluator-host selftest`: bubblewrap as root, as an ordinary user, and Docker."""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any, Final

from evaluator_host.environments import toolchain
from evaluator_host.model.evaluator import Language
from evaluator_host.selftest.attack import Group
from tests.conftest import DATA_DIR
from tests.engines import engine_address
from tests.ordinary_user import ordinary_user_command

ORDINARY_USER: Final = "bubblewrap as an ordinary user"
DEPLOYMENTS: Final = ("bubblewrap", ORDINARY_USER, "docker")
COMMAND: Final = (sys.executable, "-m", "evaluator_host", "selftest")

_TIMEOUT_S: Final = 500
_AS_ORDINARY_USER: Final = """
import shutil, sys
from pathlib import Path
from evaluator_host.__main__ import main

data = Path("data").resolve()
shutil.copytree(sys.argv.pop(1), data / "toolchain")
sys.argv[1:1] = ["selftest", "--data-dir", str(data)]
main()
"""


def environment(backend: str) -> dict[str, str]:
    """Return the settings of a deployment, as variables; the engine is started when none answers."""
    named = {"EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": backend}
    return named | ({"EVALUATOR_HOST_DOCKER_HOST": engine_address()} if backend == "docker" else {})


async def report_of(deployment: str, language: Language, *groups: Group) -> Any:
    """Return what `selftest --json` says of the attacks in one language, of some groups or all."""
    options = ["--language", str(language), "--json", *(word for group in groups for word in ("--group", str(group)))]
    if deployment == ORDINARY_USER:
        await toolchain.ensure_esbuild(DATA_DIR)
        toolchain.restricted_python_dir(DATA_DIR)
        tools = DATA_DIR / "toolchain"
        command = ordinary_user_command(["-c", _AS_ORDINARY_USER, tools, *options], also=(tools,))
        variables = dict(os.environ)
    else:
        command = [*COMMAND, *options]
        variables = os.environ | environment(deployment)
    return await asyncio.to_thread(_report, command, variables)


def _report(command: list[str], variables: dict[str, str]) -> Any:
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=_TIMEOUT_S)
    assert ran.returncode in (0, 1), f"exit {ran.returncode}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    assert ran.stderr == "", ran.stderr
    return json.loads(ran.stdout)

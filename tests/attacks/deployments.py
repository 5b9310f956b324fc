"""The deployments that `evaluator-host selftest` attacks: bubblewrap as root, bubblewrap as an ordinary user, and Docker."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.conftest import DATA_DIR
from tests.engines import engine_address
from tests.ordinary_user import ordinary_user_command
from tests.tools import TOOLS, tool_folders

ORDINARY_USER: Final = "bubblewrap as an ordinary user"
DEPLOYMENTS: Final = ("bubblewrap", ORDINARY_USER, "docker")

_TIMEOUT_S: Final = 800
# If another test kills a host that root runs, that host's cgroups stay. A host that an ordinary user runs then warns
# that it cannot remove them.
_EXPECTED: Final = re.compile(
    r"cannot remove /sys/fs/cgroup/\S*evaluator-host\.\S+: \[Errno 13\] Permission denied: \S+"  # of another host
    r"|\w+ [\w ]+ is done: \d+ of \d+ attacks"
)
_AS_ORDINARY_USER: Final = """
import os, shutil, sys
from pathlib import Path
from evaluator_host.__main__ import main
from evaluator_host.selftest import command
from tests.attacks.shared_sandboxes import in_shared_sandboxes

data = Path("data").resolve()
os.environ["EVALUATOR_HOST_TEST_DATA"] = str(data)
names, *tools = sys.argv[1:]
for tool in tools:
    shutil.copytree(tool, data / "toolchain" / Path(tool).name)
everything = (*command.load_attacks(), *command.load_host_attacks())
command._chosen = lambda *_: in_shared_sandboxes([attack for attack in everything if attack.name in names.split(",")])
if int(os.environ.get("EVALUATOR_HOST_WORKERS", "1")) > 1:
    from tests.attacks.processes import attack_processes
    os.environ["EVALUATOR_HOST_SANDBOX"] = "bubblewrap"
    Path("host").mkdir()
    command.attack_deployment = lambda of, attacks, *, at_once, progress: attack_processes(
        of, attacks, Path("host").resolve(), at_once=at_once
    )
sys.argv[1:] = ["selftest", "--data-dir", str(data), "--json"]
main()
"""


def environment(backend: str) -> dict[str, str]:
    """Return the settings of a deployment as environment variables. For Docker, start an engine if none is running."""
    named = {"EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": backend}
    return named | ({"EVALUATOR_HOST_DOCKER_HOST": engine_address()} if backend == "docker" else {})


async def report_as_ordinary_user(attacks: Sequence[str]) -> Any:
    """Run `selftest --json` with these attacks on an ordinary user's bubblewrap host, and return its report."""
    arguments: list[str | Path] = ["-c", _AS_ORDINARY_USER, ",".join(attacks), *tool_folders()]
    return await asyncio.to_thread(_report, ordinary_user_command(arguments, also=(TOOLS,)), dict(os.environ))


def _report(command: list[str], variables: dict[str, str]) -> Any:
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=_TIMEOUT_S)
    assert ran.returncode in (0, 1), f"exit {ran.returncode}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    assert [line for line in ran.stderr.splitlines() if not _EXPECTED.fullmatch(line)] == []
    return json.loads(ran.stdout)

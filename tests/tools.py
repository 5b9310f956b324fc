"""The tools that hosts use in sandboxes: they are installed once, in `DATA_DIR`, and copied to other data directories."""

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final

from evaluator_host.engine.environments import toolchain
from tests.conftest import DATA_DIR

TOOLS: Final = DATA_DIR / "toolchain"


@cache
def tool_folders() -> list[Path]:
    """Install the tools of this version in `TOOLS`, and return their folders.

    `TOOLS` may also have tools of other versions, which a host may remove at any time. As long as this process runs,
    no host removes the tools that are returned.
    """
    with ThreadPoolExecutor(1) as aside:  # `asyncio.run` needs a thread, because the caller may be in an event loop
        runner = aside.submit(lambda: asyncio.run(toolchain.ensure_javascript_runner(DATA_DIR))).result()
    shell = toolchain.shell_tools_dir(DATA_DIR)
    esbuild, restricted = toolchain.esbuild_path(DATA_DIR).parent, toolchain.restricted_python_dir(DATA_DIR)
    return [runner, esbuild, restricted, *([shell] if shell else [])]


def copy_tools(data: Path) -> None:
    """Copy the tools of this version to a data directory, unless they are there."""
    for folder in tool_folders():
        if not (target := data / "toolchain" / folder.name).exists():
            shutil.copytree(folder, target)

"""Queries a Python package index by running the host's own small programs in separate processes."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import certifi

from evaluator_host.engine.packages.index import uv_workspace
from evaluator_host.engine.packages.tools import Resolver, unreachable
from evaluator_host.types.errors import PackagesFailed


def _write(file: Path, asked: dict[str, Any]) -> None:
    file.touch(0o600)  # the file may hold credentials
    file.write_text(json.dumps(asked), "utf-8")


class PipPrograms:
    """Runs `versions` and `contents`, and remembers which index uv uses if the operator has not named one."""

    def __init__(self) -> None:
        self._default: str | None = None

    async def ask(self, program: str, question: dict[str, Any], resolver: Resolver) -> dict[str, Any]:
        """Add index and runtime to `question`, pass it to a program in this folder, and return the answer.

        Raises:
          IndexUnavailable: the index does not answer.
        """
        index, target = resolver.index, resolver.target
        parts = urlsplit(index.pip_index_url or await self._default_index(resolver))
        asked = {
            **question,
            "index": urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])),
            "user": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "runtime": target.runtime,
            "machine": target.machine,
            "glibc": target.glibc,
        }
        async with uv_workspace(index) as workspace:
            asked["authorities"] = workspace.environment.get("SSL_CERT_FILE", certifi.where())
            file = workspace.path / "asked.json"
            await asyncio.to_thread(_write, file, asked)
            argv = (sys.executable, "-I", "-m", f"evaluator_host.engine.packages.pip.{program}", str(file))
            finished = await resolver.attempt(argv, workspace)
        if finished.code != 0:
            said = finished.stderr.strip().splitlines()
            raise unreachable(said[-1] if said else "it gave no reason", index)
        answer: dict[str, Any] = json.loads(finished.stdout)
        return answer

    async def _default_index(self, resolver: Resolver) -> str:
        """Return the index that uv uses if the operator has not named one."""
        tools = resolver.tools
        if self._default is None:
            async with uv_workspace(resolver.index) as workspace:
                (workspace.path / "none.in").touch()
                argv = (
                    str(tools.uv), "pip", "compile", "none.in", "--emit-index-url", "--no-header", "--no-config",
                    "--offline", "--quiet", "--python", str(tools.python), "--no-python-downloads",
                )  # fmt: skip
                finished = await resolver.attempt(argv, workspace)
            found = re.search(r"^--(?:default-)?index-url (\S+)$", finished.stdout, re.MULTILINE)
            if found is None:
                raise PackagesFailed("uv does not report its default index; set EVALUATOR_HOST_PIP_INDEX_URL")
            self._default = found[1]
        return self._default

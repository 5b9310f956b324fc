"""Starts hosts in which every name and secret is a unique word, and records all that an evaluator in a sandbox sees."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.engines import engine_address
from tests.ordinary_user import PROJECT, ordinary_user_command
from tests.server import free_port
from tests.tools import TOOLS, tool_folders

GUESTS = Path(__file__).parents[1] / "fixtures" / "guests"
LANGUAGES = {"python": "view.py", "javascript": "view.js"}
FAMILIAR = ("USER", "LOGNAME", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "PYTHONSTARTUP", "PS1")
# A program that sets the marked names (such as the host name), and then replaces itself with the host. If root runs it,
# it sets them only in a new namespace.
BECOME = """
import json, os, shutil, sys
from pathlib import Path
words, tools = json.loads(sys.argv[1]), sys.argv[2:]
here = Path.cwd() / words["folder"]
for tool in tools:
    shutil.copytree(tool, here / words["data"] / "toolchain" / Path(tool).name)
os.chdir(here)
os.environ.update(words["environment"], HOME=str(here / words["home"]))
command = [sys.executable, "-m", "evaluator_host", "serve", "--data-dir", str(here / words["data"]), *words["options"]]
os.execv(sys.executable, command)
"""


@dataclass(frozen=True)
class Words:
    """The names and secrets of one host; no two hosts share a word."""

    hostname: str = field(default_factory=lambda: f"host-{secrets.token_hex(8)}")
    folder: str = field(default_factory=lambda: f"folder-{secrets.token_hex(8)}")
    data: str = field(default_factory=lambda: f"data-{secrets.token_hex(8)}")
    home: str = field(default_factory=lambda: f"home-{secrets.token_hex(8)}")
    secret: str = field(default_factory=lambda: f"secret-{secrets.token_hex(8)}")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "EVALUATOR_HOST_PIP_INDEX_URL": f"https://user:{self.secret}@index.invalid/simple",
            "EVALUATOR_HOST_NPM_TOKEN": self.secret,
            "EVALUATOR_HOST_PROXY": f"http://user:{self.secret}@proxy.invalid:3128",
            # the hosts do not keep idle sandboxes, because starting them costs more than the tests themselves
            "EVALUATOR_HOST_IDLE_SANDBOXES": "0",
            **dict.fromkeys(FAMILIAR, self.secret),
        }

    @property
    def all(self) -> tuple[str, ...]:
        return (self.hostname, self.folder, self.data, self.home, self.secret)


@contextmanager
def marked_host(backend: str, folder: Path, *, ordinary: bool = False) -> Iterator[tuple[str, Words]]:
    """Run a real host with unique words; yield the host's address and the words."""
    words, port = Words(), free_port()
    told: dict[str, Any] = {name: getattr(words, name) for name in ("folder", "data", "home", "environment")}
    told["options"] = ["--port", str(port), "--sandbox", backend]
    arguments = [BECOME, json.dumps(told), *tool_folders()]
    command = (
        ordinary_user_command(["-c", *arguments], also=(TOOLS,))
        if ordinary
        else [sys.executable, "-c", *map(str, arguments)]
    )
    named = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', words.hostname, *command]
    environment = {"EVALUATOR_HOST_DOCKER_HOST": engine_address()} if backend == "docker" else {}
    log = folder / f"{words.folder}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            named,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process, log)
        yield url, words
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder / words.folder, ignore_errors=True)


def view_from(url: str, language: str, words: tuple[str, ...]) -> dict[str, Any]:
    """Return what an evaluator on this host sees (`view`), and where the given words occur in that view (`found`). The
    words are sent and returned spelled backwards, so that the request itself does not contain them.
    """
    code = (GUESTS / LANGUAGES[language]).read_text()
    evaluator = {"code": code, "language": language, "limits": {"timeout_s": 120, "result_kb": 16384}}
    body = {"evaluator": evaluator, "inputs": {"words": [word[::-1] for word in words]}}
    answer = httpx.post(f"{url}/v1/evaluate", json=body, timeout=150)
    assert answer.status_code == 200, answer.text
    result = answer.json()
    assert result["error"] is None, result["error"]
    value: dict[str, Any] = result["value"]
    return value


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/readyz", timeout=10).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"the host is not ready: {log.read_text()}")

"""If a company's index is behind a proxy and has a certificate from a private authority, only uv and npm get the
passwords.

The guards: credentials are in the environment and in a file with mode 0600 in the command's own folder, because other
users could read them on a command line. The host also removes passwords from the tools' output
(tests/unit/test_resolvers.py), although these versions of uv and npm hide passwords themselves.
"""

import asyncio
import base64
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import HostError, IndexUnavailable
from tests.builds import JAVASCRIPT, PYTHON, building, nothing_left, value_of
from tests.indexes import Index
from tests.packages import npm_package, wheel
from tests.processes import command_line
from tests.proxies import Proxy, authority

USER, PASSWORD = "bob", "c0rp%2Fpassw0rd"  # the password as written in a URL, with its slash escaped
PLAIN = "c0rp/passw0rd"
TOKEN = "npm-t0ken-of-the-company"
PROXY_PASSWORD = "pr0xy-passw0rd"
SECRETS = (PASSWORD, PLAIN, TOKEN, PROXY_PASSWORD, base64.b64encode(f"{USER}:{PLAIN}".encode()).decode())
LOOKS = """
import corporate, os
def evaluate(i, o, t):
    seen = [dict(os.environ), corporate.said]
    for root in ('/opt', '/etc', '/tmp', '/proc/self', '/proc/1'):
        for folder, _, names in os.walk(root):
            if folder.count('/') > 6 or '/opt/python' in folder:
                continue
            for name in names:
                try:
                    if os.path.isfile(os.path.join(folder, name)):
                        seen.append(open(os.path.join(folder, name), errors='replace').read(100_000)[:20_000])
                except OSError:
                    pass
    text = repr(seen)
    return {'score': 1, 'found': [s for s in SECRETS if s in text], 'size': len(text)}
"""
NODE_LOOKS = """
import said from "corporate";
import fs from "node:fs";
export const evaluate = (i, o, t) => {
  const text = JSON.stringify(process.env) + fs.readdirSync("/opt/packages", {recursive: true}).map((name) => {
    try { return fs.readFileSync("/opt/packages/" + name, "utf8"); } catch { return ""; }
  }).join();
  return {score: 1, found: SECRETS.filter((secret) => text.includes(secret)), size: text.length};
};
"""


class Corporate:
    """The index, the proxy in front of the index, and a host's settings for both."""

    def __init__(self, folder: Path) -> None:
        self.ca_file, server = authority(folder, "localhost")
        self.index = Index(user=f"{USER}:{PLAIN}", token=TOKEN, tls=server, host="localhost")
        self.proxy = Proxy(f"carol:{PROXY_PASSWORD}")

    @property
    def settings(self) -> dict[str, Any]:
        address = self.index.url.replace("://", f"://{USER}:{PASSWORD}@")
        changes: dict[str, Any] = {"pip_index_url": f"{address}/simple", "npm_registry": f"{self.index.url}/npm/"}
        return {**changes, "npm_token": TOKEN, "ca_file": self.ca_file, "proxy": self.proxy.url}


@pytest.fixture
def corporate(tmp_path: Path) -> Iterator[Corporate]:
    made = Corporate(tmp_path)
    with made.index, made.proxy:
        made.index.add_python(wheel("corporate", {"corporate.py": "said = 1"}))
        made.index.add_npm(npm_package("corporate", {"index.js": "module.exports = 1"}))
        yield made


@contextmanager
def command_lines() -> Iterator[set[str]]:
    """Yield a set that collects, during the block, the command lines of all descendants of this process."""
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.01):
            for pid in process_tree(os.getpid()):
                seen.add(command_line(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def files_with(secrets: tuple[str, ...], root: Path) -> list[str]:
    found = []
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            found += [f"{path}: {secret}" for secret in secrets if secret.encode() in content]
    return found


@pytest.mark.long("test_lock_sites.py has an index with credentials")
async def test_credentials_are_used_and_seen_by_nobody(
    corporate: Corporate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "data"
    with caplog.at_level(logging.DEBUG), command_lines() as lines:
        async with building(home, corporate.index, **corporate.settings) as service:
            sees = await value_of(service, f"SECRETS = {SECRETS!r}\n{LOOKS}", "corporate==1.0.0")
            code = f"const SECRETS = {json.dumps(SECRETS)};\n{NODE_LOOKS}"
            node = await value_of(service, code, "corporate@1.0.0", language=JAVASCRIPT)
            reports = json.dumps([str(report) for report in await service.environments.reports()])
    assert (sees["found"], node["found"]) == ([], [])
    # the programs must have read something; otherwise they could not have found a secret
    assert min(sees["size"], node["size"]) > 200
    assert {asked.partition(":")[0] for asked in corporate.proxy.asked} == {"localhost"}
    used = {asked.authorization for asked in corporate.index.asked if asked.authorization}
    assert used == {f"Bearer {TOKEN}", "Basic " + SECRETS[-1]}
    assert [secret for secret in SECRETS if secret in reports or secret in caplog.text] == []
    assert any("pip install" in line for line in lines)
    assert any("npm-cli.js" in line for line in lines)
    assert [line for line in lines for secret in SECRETS if secret in line] == []
    assert files_with(SECRETS, home) == []
    nothing_left(home)


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [
        {"pip_index_url": "https://bob:wr0ng-secret@localhost:PORT/simple", "npm_token": "wr0ng-secret"},
        {"proxy": "http://carol:wr0ng-secret@127.0.0.1:PROXY"},
        {"ca_file": None},
        {"pip_index_url": "https://bob:wr0ng-secret@localhost:9/simple", "npm_registry": "https://bob:wr0ng-secret@localhost:9/", "npm_token": None},
    ],
    ids=["password", "proxy's password", "authority", "port"],
)  # fmt: skip
async def test_errors_about_wrong_credentials_contain_no_secret(
    corporate: Corporate, tmp_path: Path, caplog: pytest.LogCaptureFixture, wrong: dict[str, Any]
) -> None:
    home = tmp_path / "data"
    port, proxy = corporate.index.url.rpartition(":")[2], corporate.proxy.url.rpartition(":")[2]
    placed = {name: value and value.replace("PORT", port).replace("PROXY", proxy) for name, value in wrong.items()}
    with caplog.at_level(logging.DEBUG):
        async with building(home, corporate.index, **{**corporate.settings, **placed}) as service:
            errors = await asyncio.gather(
                failure(service, "corporate==1.0.0", language=PYTHON),
                failure(service, "corporate@1.0.0", language=JAVASCRIPT),
            )
    for error in errors:
        assert isinstance(error, IndexUnavailable), error.detail
    words = " ".join([*(error.detail for error in errors), caplog.text])
    assert [secret for secret in (*SECRETS, "wr0ng-secret") if secret in words] == []
    assert files_with((*SECRETS, "wr0ng-secret"), home) == []
    nothing_left(home)


async def failure(service: Service, pin: str, *, language: Any) -> HostError:
    pins = await service.environments.queries.parse([pin], language)
    with pytest.raises(HostError) as caught:
        await service.environments.ensure(pins, language)
    return caught.value

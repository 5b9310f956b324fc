"""The first sandbox of a host is slow or killed: the host still answers, says why it is not ready, and recovers by
itself.
"""

import asyncio
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine import opening
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox import session
from evaluator_host.engine.sandbox.bubblewrap import backend as bubblewrap
from evaluator_host.types.errors import SandboxSlow
from tests import forked
from tests.conftest import DATA_DIR, settings
from tests.faults.scene import FAST
from tests.keyed import eventually
from tests.server import Server

HERE = {"EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
SHIM = """#!/bin/sh
case "$*" in *--args*) [ -e {busy} ] && {what} ;; esac
exec {bwrap} "$@"
"""


def busy_machine(folder: Path, what: str) -> tuple[Path, str]:
    """Make a program that starts in place of bubblewrap. While a file exists, the program runs the shell command `what`
    before bubblewrap. Return the file, and a PATH on which the program is found.
    """
    busy, shim = folder / "busy", folder / "bin" / "bwrap"
    busy.touch()
    shim.parent.mkdir()
    shim.write_text(SHIM.format(busy=busy, what=what, bwrap=shutil.which("bwrap")))
    shim.chmod(0o755)
    return busy, f"{shim.parent}:{os.environ['PATH']}"


@pytest.mark.long
def test_a_host_whose_first_sandboxes_are_killed_serves_and_recovers(tmp_path: Path) -> None:
    busy, path = busy_machine(tmp_path, "kill -9 $$")
    server = Server(log=tmp_path / "log", environment={"PATH": path})
    try:
        until = time.monotonic() + 30
        while "listens on" not in server.log:
            assert server.process.poll() is None, server.log
            assert time.monotonic() < until, server.log
            time.sleep(0.05)
        assert server.client.get("/healthz").status_code == 200
        refused = server.client.get("/readyz")
        assert (refused.status_code, refused.json()["code"]) == (503, "sandbox_lost"), refused.text
        assert "something killed a sandbox while it started" in refused.json()["detail"]
        found = forked.run(["doctor"], env={**os.environ, **HERE, "EVALUATOR_HOST_PORT": str(server.port)})
        assert "is not ready: something killed a sandbox while it started" in " ".join(found.stdout.split())
        assert "no sandbox could be started (attempt 2)" in server.log
        assert "no sandbox has started yet, next try in 1 s" in server.log
        shim = tmp_path / "bin" / "bwrap"
        shim.write_text(shim.read_text().replace("kill -9 $$", "exit 1"))  # now bubblewrap fails in another way
        eventually(lambda: server.client.get("/readyz").json()["code"] == "sandbox_unavailable", within_s=60)
        busy.unlink()
        server.wait_until_ready()
        eventually(lambda: "the first sandbox has started" in server.log)  # the host logs this once it is ready
        assert server.client.post("/v1/evaluate", json={"evaluator": {"code": FAST}}).json()["score"] == 1.0
    finally:
        assert server.stop() == 0, server.log
    assert "Traceback" not in server.log
    assert "ERROR" not in server.log


@pytest.mark.parametrize(("module", "limit"), [(session, "HELLO_TIMEOUT_S"), (bubblewrap, "_SETUP_S")])
async def test_a_slow_first_sandbox_ends_no_host(
    module: object, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, path = busy_machine(tmp_path, "sleep 0.3")
    monkeypatch.setenv("PATH", path)
    fill = session.Sandbox._fill

    async def silent(self: session.Sandbox, timeout_s: float, clock: Any) -> bool:
        await asyncio.sleep(0.01 if busy.exists() else 0)
        return False if busy.exists() else await fill(self, timeout_s, clock)

    monkeypatch.setattr(session.Sandbox, "_fill", silent)
    monkeypatch.setattr(module, limit, 0.001)
    monkeypatch.setattr(opening, "_PAUSE_S", 0.1)
    async with open_engine(settings("bubblewrap"), prewarm=True) as service:
        with pytest.raises(SandboxSlow, match=r"within 0\.001 s"):
            service.supervisor.require_working()
        monkeypatch.setattr(module, limit, 20.0)
        busy.unlink()
        async with asyncio.timeout(30):
            while True:
                with suppress(SandboxSlow):
                    await service.ready()
                    break
                await asyncio.sleep(0.05)

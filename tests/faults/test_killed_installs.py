"""A host is killed while it installs packages or queries an index: its programs end with it, and the next host removes
the files that it left, including credentials.
"""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from tests.indexes import Index, hang
from tests.keyed import eventually
from tests.processes import command_of
from tests.server import Server
from tests.tools import copy_tools

PYTHON: dict[str, Any] = {"code": "import held\ndef evaluate(inputs, outputs, trace):\n    return 1.0\n"}
JAVASCRIPT: dict[str, Any] = {
    "language": "javascript",
    "code": "import held from 'held';\nexport function evaluate() {\n  return 1;\n}\n",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "evaluator",
    [
        pytest.param(PYTHON | {"packages": ["held==1.0.0"]}, id="installs from PyPI"),
        pytest.param(PYTHON | {"packages": ["held"]}, id="asks PyPI"),
        pytest.param(JAVASCRIPT | {"packages": ["held@1.0.0"]}, id="installs from npm"),
        pytest.param(JAVASCRIPT | {"packages": ["held"]}, id="asks npm"),
    ],
)
def test_a_killed_host_leaves_no_program_and_no_credentials(evaluator: dict[str, Any], tmp_path: Path) -> None:
    data = tmp_path / "data"
    copy_tools(data)
    with Index(user="operator:a-password-of-the-index") as index:
        index.odd["/simple/held/"] = index.odd["/npm/held"] = hang
        environment = {
            "EVALUATOR_HOST_PIP_INDEX_URL": index.pip_url,
            "EVALUATOR_HOST_NPM_REGISTRY": index.npm_url,
            "EVALUATOR_HOST_NO_PROXY": "127.0.0.1",
        }
        with Server(log=tmp_path / "log", environment=environment, data_dir=data) as server:

            def call() -> None:
                with suppress(httpx.TransportError):
                    server.client.post("/v1/evaluate", json={"evaluator": evaluator})

            calling = threading.Thread(target=call)
            calling.start()
            eventually(lambda: any("held" in path for path in index.paths()))
            started = {pid: command_of(pid) for pid in process_tree(server.process.pid)}
            server.kill()
            calling.join()
        eventually(lambda: not [pid for pid, command in started.items() if command and command_of(pid) == command])
        with Server(log=tmp_path / "log", environment=environment, data_dir=data):
            files = [path for path in (data / "environments").rglob("*") if path.is_file()]
            assert [path for path in files if b"a-password-of-the-index" in path.read_bytes()] == []
            assert list((data / "environments" / "build" / "staging").iterdir()) == []

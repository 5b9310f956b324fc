"""The builder is killed, but its host lives on: waiting callers get an error, no unfinished package set is kept, and
the next attempt succeeds.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.databases import Databases
from tests.faults.scene import scene
from tests.indexes import Index, hang
from tests.keyed import bearer, eventually, make_key
from tests.packages import wheel
from tests.server import Server
from tests.tools import copy_tools

CODE = "import held\ndef evaluate(inputs, outputs, trace):\n    return held.value\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", ["/simple/held/", "/files/held-1.0.0-py3-none-any.whl"])
def test_the_builder_is_killed(step: str, tmp_path: Path, recovery: Callable[[float], None]) -> None:
    data = tmp_path / "data"
    copy_tools(data)
    with Index() as index:
        index.add_python(wheel("held", {"held.py": "value = 1.0\n"}))
        environment = {"EVALUATOR_HOST_PIP_INDEX_URL": index.pip_url, "EVALUATOR_HOST_NO_PROXY": "127.0.0.1"}
        with scene(tmp_path, data_dir=data, environment=environment) as host:
            body = {"evaluator": {"code": CODE, "packages": ["held==1.0.0"]}}
            index.odd[step] = hang
            calls = [host.threads.submit(host.server.client.post, "/v1/evaluate", json=body) for _ in range(3)]
            host.until(lambda: step in index.paths())
            del index.odd[step]
            for pid in host.processes("uv"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            answers = [call.result() for call in calls]
            assert {answer.json()["code"] for answer in answers} == {"machine_exhausted"}, answers[0].text
            assert "killed the program that installs packages" in answers[0].json()["detail"]
            assert list((data / "environments" / "build" / "staging").iterdir()) == []
            started = time.monotonic()
            again = host.server.client.post("/v1/evaluate", json=body)
            assert again.json().get("score") == 1.0, again.text
            recovery(time.monotonic() - started)


@pytest.mark.long
def test_builds_that_hang_do_not_delay_the_first_build_of_another_workspace(
    databases: Databases, tmp_path: Path
) -> None:
    data, url = tmp_path / "data", databases.make("sqlite")
    copy_tools(data)
    alpha, beta = (bearer(make_key(name, name, url=url)) for name in ("alpha", "beta"))
    with Index() as index:
        index.add_python(wheel("held", {"held.py": "value = 1.0\n"}))
        environment = {
            "EVALUATOR_HOST_PIP_INDEX_URL": index.pip_url,
            "EVALUATOR_HOST_NO_PROXY": "127.0.0.1",
            "EVALUATOR_HOST_DATABASE_URL": url,
        }
        with Server(log=tmp_path / "log", data_dir=data, environment=environment) as server:
            for name in ("one", "two", "three"):
                index.odd[f"/simple/{name}/"] = hang
                body = {"packages": [f"{name}==1.0.0"], "language": "python"}
                assert server.client.post("/v1/environments", json=body, headers=alpha).status_code == 202
            eventually(lambda: len({path for path in index.paths() if path in index.odd}) == 2)
            body = {"evaluator": {"code": CODE, "packages": ["held==1.0.0"]}}
            assert server.client.post("/v1/evaluate", json=body, headers=beta).json().get("score") == 1.0
            assert len({path for path in index.paths() if path in index.odd}) == 2, (
                "the builds of alpha must still hang"
            )

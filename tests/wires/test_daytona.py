"""Daytona's API (wire `daytona`): Daytona's own clients, in Agenta's version and the newest, and the calls that Agenta
and Phoenix make with them.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.keyed import bearer
from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.real_clients import run_python
from tests.wires.wired import ENDLESS, SECRET, wired

pytestmark = pytest.mark.engine

API = "/wires/daytona/api"
PHOENIX_PIP = "import subprocess\nimport sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', *['six=={version}']], check=True)\n"
PHOENIX_NPM = "import { spawnSync } from 'node:child_process';\nconst got = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--silent', \"left-pad@1.3.0\"], { cwd: '/tmp' });\nprocess.exit(got.status ?? 1);\n"


def made(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/sandbox", json={"labels": {"code-toolbox-language": "python"}, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def run(client: httpx.Client, sandbox: dict[str, Any], code: str, **more: Any) -> httpx.Response:
    address = f"{sandbox['toolboxProxyUrl']}/{sandbox['id']}/process/code-run"
    return client.post(address, json={"code": code, "timeout": 45, **more}, timeout=100)


def test_sandboxes_are_made_found_and_deleted(client: httpx.Client) -> None:
    one = made(client, labels={"who": "a", "code-toolbox-language": "python"}, name="mine", env={"A": "b"})
    assert one["state"] == "started"
    assert client.get(f"{API}/sandbox/{one['id']}").json()["id"] == client.get(f"{API}/sandbox/mine").json()["id"]
    listed = client.get(f"{API}/sandbox", params={"labels": json.dumps({"who": "a"})}).json()["items"]
    assert [found["id"] for found in listed] == [one["id"]]
    assert client.delete(f"{API}/sandbox/{one['id']}").json()["state"] == "destroyed"
    gone = client.get(f"{API}/sandbox/{one['id']}")
    assert (gone.status_code, set(gone.json())) == (404, {"statusCode", "message", "error"})
    assert client.get(f"{API}/snapshots?limit=100").json()["items"][0]["state"] == "active"


def test_a_script_has_its_output_and_its_environment(client: httpx.Client) -> None:
    sandbox = made(client, env={"A": "of the sandbox", "B": "b"})
    assert run(client, sandbox, "print(1)", timeout=10**400).json()["result"] == "1\n"
    code = "import os, sys\nprint(os.environ['A'], os.environ['B'], sys.argv[1:])"
    answer = run(client, sandbox, code, envs={"A": "of the call"}, argv=["x"])
    assert answer.json() == {"exitCode": 0, "result": "of the call b ['x']\n", "artifacts": {"charts": []}}
    failed = run(client, sandbox, "print('out')\n{}['x']").json()
    assert failed["exitCode"] == 1
    assert failed["result"].startswith("out\nTraceback")
    assert failed["result"].endswith("KeyError: 'x'\n")
    told = run(client, sandbox, "console.log([1].map((n: number) => n + 1))", language="typescript").json()
    assert (told["exitCode"], told["result"]) == (0, "[ 2 ]\n")


@pytest.mark.differential
def test_phoenix_s_installs_are_pins_of_the_sandbox(client: httpx.Client) -> None:
    sandbox = made(client)
    assert run(client, sandbox, "import six").json()["exitCode"] == 1
    assert run(client, sandbox, PHOENIX_PIP.format(version="1.17.0")).json()["exitCode"] == 0
    assert run(client, sandbox, "import six\nprint(six.__version__)").json()["result"] == "1.17.0\n"
    assert run(client, made(client), "import six").json()["exitCode"] == 1
    ranged = run(client, sandbox, PHOENIX_PIP.format(version="1.*")).json()
    assert (ranged["exitCode"], "six" in ranged["result"]) == (1, True)
    assert run(client, sandbox, PHOENIX_NPM, language="typescript").json()["exitCode"] == 0
    padded = run(client, sandbox, "import pad from 'left-pad';\nconsole.log(pad('x', 3));", language="typescript")
    assert padded.json()["result"] == "  x\n"


def test_wrong_keys_loops_large_bodies_and_other_workspaces_are_refused(keyed: Keyed) -> None:
    with httpx.Client(base_url=keyed.url, headers=bearer(keyed.key)) as client:
        sandbox = made(client)
        endless = run(client, sandbox, ENDLESS, timeout=1)
        assert (endless.status_code, endless.json()["message"]) == (
            408,
            "command execution timeout: the row did not finish within 1 s",
        )
        assert run(client, sandbox, "#" * 70_000).status_code == 413
    assert httpx.get(f"{keyed.url}{API}/sandbox/{sandbox['id']}", headers=bearer(SECRET)).status_code == 404
    assert httpx.get(f"{keyed.url}{API}/sandbox", headers=bearer("no")).status_code == 401
    by_path = httpx.post(f"{keyed.url}/wires/daytona/key/{keyed.key}/api/sandbox", json={}).json()
    assert f"/key/{keyed.key}/toolbox" in by_path["toolboxProxyUrl"]


@pytest.mark.long
def test_a_sandbox_of_one_host_is_found_on_another_of_its_database(keyed: Keyed, tmp_path: Path) -> None:
    """A sandbox that one host made is found on another host with the same database, by its id, name and labels, with
    its environment, even after the first host has ended.
    """
    with httpx.Client(base_url=keyed.url, headers=bearer(keyed.key)) as client:
        sandbox = made(client, name="shared", env={"A": "key-of-a-provider"}, labels={"k": "of both"})
        assert run(client, sandbox, PHOENIX_PIP.format(version="1.17.0")).json()["exitCode"] == 0
    variables = {"EVALUATOR_HOST_DATABASE_URL": keyed.database, "EVALUATOR_HOST_WORKERS": "2"}
    with (
        wired(tmp_path, "daytona", environment=variables) as second,
        httpx.Client(base_url=second.url, headers=bearer(keyed.key), timeout=60) as client,
    ):
        (found,) = client.get(f"{API}/sandbox", params={"labels": json.dumps({"k": "of both"})}).json()["items"]
        assert (found["id"], found["env"]) == (sandbox["id"], {"A": "key-of-a-provider"})
        assert found["toolboxProxyUrl"].startswith(second.url)
        told = run(client, found, "import os, six\nprint(os.environ['A'], six.__version__)").json()
        assert told["result"] == "key-of-a-provider 1.17.0\n"
        for _ in range(3):
            _assert_none_runs_once_deleted(second.url, keyed)
        assert client.delete(f"{API}/sandbox/shared").status_code == 200
    assert httpx.get(f"{keyed.url}{API}/sandbox/shared", headers=bearer(keyed.key)).status_code == 404
    assert b"key-of-a-provider" not in Path(keyed.database.removeprefix("sqlite:///")).read_bytes()


def _assert_none_runs_once_deleted(url: str, keyed: Keyed) -> None:
    """Delete a sandbox on one host, and check that afterwards no process of the other host runs a script in the
    sandbox.
    """
    authorized = bearer(keyed.key)
    sandbox = httpx.post(f"{keyed.url}{API}/sandbox", json={}, headers=authorized).json()

    def ask(_: int) -> int:  # each call has its own connection, which any process may accept
        address = f"{url}/wires/daytona/toolbox/{sandbox['id']}/process/code-run"
        return httpx.post(address, json={"code": "print(1)"}, headers=authorized, timeout=60).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(12))) == {200}
        assert httpx.delete(f"{keyed.url}{API}/sandbox/{sandbox['id']}", headers=authorized).status_code == 200
        assert set(pool.map(ask, range(12))) == {404}


def test_a_body_that_is_not_a_request_is_refused(client: httpx.Client) -> None:
    for body in ({"env": {"A": 1}}, {"labels": []}, {"env": {"A": "x" * 70_000}}):
        assert client.post(f"{API}/sandbox", json=body).json()["statusCode"] == 400
    sandbox = made(client)
    assert run(client, sandbox, "x", language="ruby").status_code == 400
    assert run(client, sandbox, "x", argv=[1]).status_code == 400
    assert client.get(f"{API}/sandbox?labels=x").status_code == 400


CLIENT = """
import asyncio, json, sys
from daytona import AsyncDaytona, CodeRunParams, CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig
CODES = (("python", "import os\\nprint(os.environ['A'])"), ("javascript", "console.log(process.env.A)"), ("typescript", "const n: number = 2; console.log(n)"), ("python", "raise ValueError('no')"))

def run(config):
    daytona = Daytona(config)
    found = []
    for language, code in CODES:
        sandbox = daytona.create(CreateSandboxFromSnapshotParams(language=language, snapshot="any", env_vars={"A": "b"}, ephemeral=True))
        answer = sandbox.process.code_run(code, timeout=45)
        found.append([answer.exit_code, answer.result])
        sandbox.delete()
    return found

async def run_async(config):
    async with AsyncDaytona(config) as daytona:
        params = CreateSandboxFromSnapshotParams(language="python", labels={"phoenix_session_key": "k"}, auto_stop_interval=5, auto_archive_interval=15, network_block_all=True)
        sandbox = await daytona.create(params)
        answer = await sandbox.process.code_run("import os\\nprint(os.environ['A'])", CodeRunParams(env={"A": "b"}), timeout=20)
        again = await daytona.get(sandbox.id)
        await daytona.delete(again)
        return [answer.exit_code, answer.result, again.id == sandbox.id]

found = []
for url, key in zip(sys.argv[1::2], sys.argv[2::2]):
    config = DaytonaConfig(api_key=key, api_url=url, target="eu")
    found.append([run(config), asyncio.run(run_async(config))])
print(json.dumps(found))
"""


@pytest.mark.differential
@pytest.mark.parametrize("pins", ["daytona", "daytona-agenta"])
def test_daytona_s_own_clients_run_scripts(host: Server, keyed: Keyed, pins: str) -> None:
    asked = (f"{host.url}{API}", "any", f"{keyed.url}{API}", keyed.key)
    for (python, javascript, typescript, raised), awaited in run_python(pins, CLIENT, *asked):
        assert (python, javascript, typescript) == ([0, "b\n"], [0, "b\n"], [0, "2\n"])
        assert raised[0] == 1
        assert raised[1].endswith("ValueError: no\n")
        assert awaited == [0, "b\n", True]

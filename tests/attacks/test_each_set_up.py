"""On hosts with every set-up, one workspace cannot attack another through tunnels, names, secrets, budgets, streams or
models.

Other tests try all forms of each attack on bubblewrap as root. This file tries one form of each attack in every set-up
on which the attack's guard could depend: the user who runs the host, the backend, the number of processes and hosts.
"""

import asyncio
import base64
import json
import re
import secrets
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.databases import Databases
from tests.engines import engine_address
from tests.faults.test_slow_names import ASKING, REACHING, SLOW_LIBRARY
from tests.keyed import bearer, eventually, make_key
from tests.model_server import ModelServer
from tests.models.test_network import FLOOD
from tests.ordinary_user import UID, ordinary_user_command
from tests.over_http import calling_processes
from tests.processes import peak_mb, resident_mb, restart_peak
from tests.server import COMMAND, Server, index_environment, new_home
from tests.tools import copy_tools

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(300),
    pytest.mark.long("this starts hosts in many set-ups; other tests try each attack on bubblewrap as root"),
]

WORKSPACES = ("alpha", "beta", "gamma")
SECRET = "tok-5eb1c0ffee5add1e"
DAY = 40  # maximum number of requests to models that a workspace may make in a day
STREAMS = 16  # maximum number of event streams that a key may have open
NAMES = 10
OWN_CGROUP = re.compile(r"(/\.\.)*(/|/evaluator-host\.[0-9a-f]{12}/[0-9a-f]{12}|/docker/[0-9a-f]{64})")
SET_UPS: dict[str, dict[str, str]] = {
    "docker": {},
    "ordinary user": {},
    "template": {"EVALUATOR_HOST_SANDBOX_START": "template"},
    "two processes": {"EVALUATOR_HOST_WORKERS": "2"},
    "two hosts": {"EVALUATOR_HOST_REPLICAS": "2"},
}
# this program starts the host by exec, because the dynamic linker reads LD_PRELOAD before Python runs
BECOME = """
import json, os, sys
variables, library, until, home = json.loads(sys.argv[1]), *sys.argv[2:5]
os.environ.update(variables, LD_PRELOAD=library, SLOW_UNTIL=until)
os.execv(sys.executable, [sys.executable, "-m", "evaluator_host", *sys.argv[5:], "--data-dir", home])
"""
TELLING = """
import os, urllib.request, json

def evaluate(inputs, outputs, trace):
    body = {"model": "judge", "messages": [{"role": "user", "content": f"key {os.environ['TOK']} {inputs['n']}"}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    return {"score": 1.0, "reason": urllib.request.urlopen(request).read().decode()}
"""
SPENDING = """
import json, os, urllib.error, urllib.request

def evaluate(inputs, outputs, trace):
    for number in range(20):
        body = {"model": "judge", "messages": [{"role": "user", "content": f"spend {inputs['n']} {number}"}]}
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            urllib.request.urlopen(request).read()
        except urllib.error.HTTPError as error:
            error.close()
    return 1.0
"""
CALM = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
HELD = "answered late"
CGROUPS = {
    "python": "def evaluate(inputs, outputs, trace):\n    return {'score': 1, 'reason': open('/proc/self/cgroup').read()}",
    "javascript": (
        "import fs from 'node:fs';\n"
        "export const evaluate = (inputs, outputs, trace) => ({score: 1, reason: fs.readFileSync('/proc/self/cgroup', 'utf8')});"
    ),
}
JUDGE = {
    "type": "llm-judge",
    "model": "research/judge",
    "scores": [{"name": "s", "minimum": 0, "maximum": 1, "parser": {"type": "json", "json_path": "s"}}],
    "prompt_template": {"messages": [{"role": "user", "content": "judged for {{item.who}}"}]},
}


@dataclass(frozen=True)
class Hosts:
    """The hosts of one set-up, which share a database and the keys of three workspaces."""

    servers: tuple[Server, ...]
    keys: dict[str, str]
    model: ModelServer
    homes: tuple[Path, ...]
    database_url: str
    until: Path  # path of a file; look-ups of names with `slow` in them wait until this file exists

    @property
    def port(self) -> str:
        """Host and port of the model's server, to which evaluators may connect."""
        return f"localhost:{self.model.url.split(':')[2].split('/')[0]}"

    @property
    def pids(self) -> list[int]:
        """The processes that answer requests."""
        return [pid for one in self.servers for pid in (one.process.pid, *calling_processes(one))]

    @asynccontextmanager
    async def clients(self, workspace: str) -> AsyncIterator[list[httpx.AsyncClient]]:
        """Yield a client for each host. The clients open a new connection for each request, so that any process may
        accept the request.
        """
        limits = httpx.Limits(max_keepalive_connections=0)
        made = [
            httpx.AsyncClient(base_url=one.url, headers=bearer(self.keys[workspace]), timeout=200, limits=limits)
            for one in self.servers
        ]
        try:
            yield made
        finally:
            for one in made:
                await one.aclose()

    def stored(self) -> bytes:
        """Return the content of all places that could contain models' answers: rows of the database, or SQLite's files."""
        if self.database_url.startswith("postgresql"):
            with psycopg.connect(self.database_url) as server:
                return repr(server.execute("SELECT * FROM model_answers").fetchall()).encode()
        return b"".join(path.read_bytes() for home in self.homes for path in home.glob("evaluator-host.db*"))


@pytest.fixture(scope="module", params=SET_UPS)
def hosts(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hosts]:
    released = threading.Event()

    def faults(question: str, _attempt: int) -> None:
        if question == HELD:
            released.wait(60)

    folder = tmp_path_factory.mktemp("hosts")
    with ModelServer(plays_all=True, faults=faults) as model, set_up(request.param, folder, databases, model) as made:
        yield made
        released.set()
        for one in made.servers:
            assert "Traceback" not in one.log, one.log
        made.until.touch()


@contextmanager
def set_up(name: str, folder: Path, databases: Databases, model: ModelServer) -> Iterator[Hosts]:
    library, until = folder / "slow.so", folder / "ended"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=SLOW_LIBRARY, text=True, check=True)
    count = 2 if name == "two hosts" else 1
    folders = [folder / str(number) for number in range(count)]
    for one in folders:
        one.mkdir()
    homes = tuple(map(new_home, folders))
    url = databases.make("postgresql") if count > 1 else f"sqlite:///{homes[0] / 'evaluator-host.db'}"
    keys = {space: make_key(space, space, url=url) for space in WORKSPACES}
    address = model.url.replace("127.0.0.1", "localhost")
    models = {"judge": {"base_url": address}, "research/judge": {"base_url": address, "workspaces": ["beta"]}}
    variables = {
        "EVALUATOR_HOST_DATABASE_URL": url,
        "EVALUATOR_HOST_SECRETS_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "EVALUATOR_HOST_MODELS": json.dumps(models),
        "EVALUATOR_HOST_MODEL_DAY": json.dumps({"requests": DAY}),
        "EVALUATOR_HOST_NETWORK_HOSTS": '["*.test:80", "localhost"]',
        "EVALUATOR_HOST_NETWORK_PRIVATE": '["127.0.0.0/8"]',
        "EVALUATOR_HOST_CODE_SECRETS": '["crm"]',
        **SET_UPS[name],
    }
    command: list[str] = COMMAND
    preloaded = {"LD_PRELOAD": str(library), "SLOW_UNTIL": str(until)}
    if name == "ordinary user":
        command, preloaded = as_ordinary_user(folder, homes[0], library, until, variables), {}
    backend = "docker" if name == "docker" else "bubblewrap"
    engine = {"EVALUATOR_HOST_DOCKER_HOST": engine_address()} if name == "docker" else {}
    with ExitStack() as stack:
        servers = tuple(
            stack.enter_context(
                Server(
                    backend,
                    log=folder / f"log-{number}",
                    data_dir=home,
                    environment={**variables, **engine, **preloaded},
                    command=command,
                )
            )
            for number, home in enumerate(homes)
        )
        if name == "two processes":
            eventually(lambda: len(calling_processes(servers[0])) == 1, within_s=60)
        yield Hosts(servers, keys, model, homes, url, until)


def as_ordinary_user(folder: Path, home: Path, library: Path, until: Path, variables: dict[str, str]) -> list[str]:
    """Give an ordinary user a data directory, and return the command that starts that user's host."""
    (home / "toolchain").unlink()
    copy_tools(home)
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            shutil.chown(path, UID, UID)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    own = {**index_environment(), **variables, "EVALUATOR_HOST_IDLE_SANDBOXES": "0"}
    # the default database is in the data directory, which has another path for the ordinary user
    del own["EVALUATOR_HOST_DATABASE_URL"]
    *shell, script = ordinary_user_command(["-c", BECOME, json.dumps(own), library, until, home], also=(folder,))
    return [*shell, f'{script} "$@"', "host"]


async def scored(
    client: httpx.AsyncClient, code: str, *, inputs: object = None, outputs: object = None, **more: Any
) -> dict[str, Any]:
    """Score one row with this code, and return the result."""
    evaluator = {"code": code, "limits": {"timeout_s": 60}, **more}
    answer = await client.post(
        "/v1/evaluate", json={"evaluator": evaluator, "inputs": inputs or {}, "outputs": outputs}
    )
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


async def test_bytes_that_nobody_reads_fill_no_memory(hosts: Hosts) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": HELD}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {hosts.port}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    sent = [f"CONNECT {hosts.port} HTTP/1.1\r\nHost: {hosts.port}\r\n\r\n", head]
    async with hosts.clients("alpha") as alphas, hosts.clients("beta") as betas:
        assert [(await scored(one, CALM))["score"] for one in betas * 4] == [1.0] * 4 * len(betas)
        before = {pid: resident_mb(pid) for pid in hosts.pids}
        for pid in before:
            restart_peak(pid)
        floods = [
            asyncio.create_task(scored(one, FLOOD, outputs=sent, network=[hosts.port]))
            for one in alphas
            for _ in range(2)
        ]
        while not all(one.done() for one in floods):
            for client in betas:
                assert (await client.get("/healthz")).status_code == 200
                assert (await scored(client, CALM))["score"] == 1.0
        results = await asyncio.gather(*floods)
    assert HELD in hosts.model.asked
    assert max(one["usage"]["network_bytes"] for one in results) < 4 << 20
    assert max(peak_mb(pid) - mb for pid, mb in before.items()) < 40, (
        "each row tries to send 120 MB, which the host must not keep in memory"
    )


async def test_silent_name_servers_delay_no_neighbour(hosts: Hosts) -> None:
    names = [f"slow{number}.test:80" for number in range(NAMES)]
    async with hosts.clients("alpha") as alphas, hosts.clients("beta") as betas:
        await reached(hosts, betas)  # first start and load the sandboxes
        row = {"evaluators": [{"code": CALM}], "dataset": {"rows": [{"n": 1}]}}
        job = (await alphas[0].post("/v1/jobs", json=row)).raise_for_status().json()["id"]
        waiting, tests = [], []
        for at, client in enumerate(alphas):
            waiting.append(asyncio.create_task(scored(client, REACHING, inputs={"to": names}, network=["*.test:80"])))
            for number in range(NAMES):
                rule = {"name": f"low-{at}-{number}", "metric": "mean", "below": 0, "job": job}
                made = await client.post("/v1/alerts", json={**rule, "url": f"https://slow{number}.example/x"})
                assert made.status_code == 201, made.text
                tests.append(asyncio.create_task(client.post(f"/v1/alerts/{rule['name']}/test")))
        for _ in range(2):  # in the second round, alpha's callers have given up, but its look-ups still run
            await reached(hosts, betas)
            told = [one.json()["deliveries"] for one in await asyncio.gather(*tests)]
            refused = await asyncio.gather(*waiting)
    assert {one["status"] for deliveries in told for one in deliveries} == {"waiting"}
    assert [one["reason"].count("504") for one in refused] == [NAMES] * len(alphas)


async def reached(hosts: Hosts, clients: list[httpx.AsyncClient]) -> None:
    """Let evaluators call a model and connect to a server, several times through each of the hosts."""
    for client in clients * 3:
        question = secrets.token_hex(4)
        assert (await scored(client, ASKING, inputs={"question": question}, models=["judge"]))[
            "reason"
        ] == f"answer to {question}"
        assert "200" in (await scored(client, REACHING, inputs={"to": [hosts.port]}, network=[hosts.port]))["reason"]


async def test_a_secret_in_requests_to_models_is_stored_nowhere(hosts: Hosts) -> None:
    evaluator = {"code": TELLING, "models": ["judge"], "secrets": {"TOK": {"secret": "crm"}}}
    async with hosts.clients("alpha") as alphas:
        (await alphas[0].put("/v1/secrets/crm", json={"value": SECRET})).raise_for_status()
        for number, client in enumerate(alphas * 4):
            body = {"evaluator": evaluator, "inputs": {"n": number}, "replay": "prefer"}
            answer = await client.post("/v1/evaluate", json=body)
            assert answer.json()["score"] == 1.0, answer.text
            assert SECRET not in answer.text
        for client in alphas:
            exported = (await client.get("/v1/model-answers/export")).raise_for_status().text
            assert SECRET not in exported
            assert len([line for line in exported.splitlines() if "key [masked]" in line]) == 4 * len(alphas)
    assert f"key {SECRET} 0" in hosts.model.asked
    assert b"key [masked]" in hosts.stored()
    assert SECRET.encode() not in hosts.stored()


async def test_all_processes_together_make_the_requests_of_a_day(hosts: Hosts) -> None:
    async with hosts.clients("gamma") as gammas:
        rows = [scored(one, SPENDING, inputs={"n": n}, models=["judge"]) for n, one in enumerate(gammas * 4)]
        results = await asyncio.gather(*rows)
    assert len([one for one in hosts.model.asked if one.startswith("spend ")]) == DAY
    assert {one["error"]["code"] for one in results if one["error"]} == {"budget_exceeded"}


def test_all_processes_together_have_the_event_streams_of_a_key(hosts: Hosts) -> None:
    sleeping = {
        "code": "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(60)\n",
        "limits": {"timeout_s": 90},
    }
    key = bearer(hosts.keys["alpha"])
    job = hosts.servers[0].client.post(
        "/v1/jobs", json={"evaluators": [sleeping], "dataset": {"rows": [{"n": 1}]}}, headers=key
    )
    path = f"/v1/jobs/{job.raise_for_status().json()['id']}"
    head = f"GET {path}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key['Authorization']}\r\n\r\n"
    with ExitStack() as stack:
        made = [
            stack.enter_context(socket.create_connection(("127.0.0.1", one.port), timeout=60))
            for one in hosts.servers
            for _ in range(40)
        ]
        for one in made:
            one.sendall(head.encode())
        assert Counter(one.recv(1000)[9:12] for one in made) == {b"200": STREAMS, b"429": len(made) - STREAMS}
    hosts.servers[0].client.post(f"{path}/cancel", headers=key).raise_for_status()


@pytest.mark.parametrize("language", CGROUPS)
async def test_the_name_of_a_cgroup_tells_a_guest_nothing(hosts: Hosts, language: str) -> None:
    async with hosts.clients("alpha") as (client, *_):
        text = (await scored(client, CGROUPS[language], language=language))["reason"]
    assert [line for line in text.splitlines() if not OWN_CGROUP.fullmatch(line.split(":", 2)[2])] == []


async def test_a_model_of_the_operator_is_for_its_workspaces_at_nemos_doors(hosts: Hosts) -> None:
    models, judging = (
        "/apis/models/v2/workspaces/research/models",
        "/apis/evaluation/v2/workspaces/default/metric-evaluate",
    )

    def asking(who: str) -> dict[str, Any]:
        return {"metric": JUDGE, "dataset": {"rows": [{"who": who}]}}

    async with hosts.clients("alpha") as alphas, hosts.clients("beta") as betas:
        for client in alphas * 3:
            assert (await client.get(models)).raise_for_status().json()["data"] == []
            assert (await client.get(f"{models}/judge")).status_code == 404
            refused = await client.post(judging, json=asking("alpha"))
            assert refused.status_code == 422, (
                "the status must be that for an unknown name; after a 5xx a client would try again"
            )
            assert "does not know the address of the model research/judge" in refused.text
        for client in betas * 3:
            assert [one["name"] for one in (await client.get(models)).raise_for_status().json()["data"]] == ["judge"]
            (await client.post(judging, json=asking("beta"))).raise_for_status()
    assert {one for one in hosts.model.asked if one.startswith("judged")} == {"judged for beta"}

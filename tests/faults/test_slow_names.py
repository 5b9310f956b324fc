"""The machine's resolver waits for name servers that do not answer: one tenant's host names do not delay calls to
another tenant's models.

The host is a separate process. Its C library is changed: the look-up of a name that contains `slow` lasts until the
test ends.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.platform.store.opening import open_store
from tests.conftest import settings
from tests.keyed import bearer
from tests.model_server import ModelServer
from tests.server import Server, new_home

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]
COUNT = 10
PLACES = 4  # number of names that the host looks up at a time for a workspace
SLOW_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found) {
  if (host && strstr(host, "slow")) {
    int begun = open(getenv("SLOW_BEGUN"), O_CREAT | O_WRONLY | O_APPEND, 0600);
    write(begun, ".", 1);
    close(begun);
    while (access(getenv("SLOW_UNTIL"), F_OK)) usleep(10000);
    return EAI_AGAIN;
  }
  return ((lookup *)dlsym(RTLD_NEXT, "getaddrinfo"))(host, port, hints, found);
}
"""
ASKING = """
import json, os, urllib.request

def evaluate(inputs, outputs, trace):
    body = json.dumps({"model": "judge", "messages": [{"role": "user", "content": inputs["question"]}]}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"})
    return {"score": 1.0, "reason": json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]}
"""
REACHING = """
import os, socket, urllib.parse

def evaluate(inputs, outputs, trace):
    place = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
    said = []
    for to in inputs["to"]:
        said.append(socket.create_connection((place.hostname, place.port)))
        said[-1].sendall(f"CONNECT {to} HTTP/1.1\\r\\nHost: {to}\\r\\n\\r\\n".encode())
    return {"score": 1.0, "reason": " ".join(one.recv(300).decode().splitlines()[0] for one in said)}
"""


@asynccontextmanager
async def clients(server: Server, keys: list[str]) -> AsyncIterator[list[httpx.AsyncClient]]:
    made = [httpx.AsyncClient(base_url=server.url, headers=bearer(key), timeout=100) for key in keys]
    try:
        yield made
    finally:
        for one in made:
            await one.aclose()


async def asked(client: httpx.AsyncClient, code: str, **more: Any) -> str:
    """Score one row, and return the reason in the result."""
    inputs = more.pop("inputs", {})
    answer = await client.post("/v1/evaluate", json={"evaluator": {"code": code, **more}, "inputs": inputs})
    return str(answer.raise_for_status().json()["reason"])


@pytest.mark.long("it waits for servers that are silent; test_turns.py shares look-ups between workspaces")
async def test_names_whose_servers_are_silent_delay_no_other_workspace(tmp_path: Path) -> None:
    library = tmp_path / "slow.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library]
    await asyncio.to_thread(subprocess.run, command, input=SLOW_LIBRARY, text=True, check=True)
    home = new_home(tmp_path)
    async with open_store(settings("bubblewrap").model_copy(update={"data_dir": home})) as store:
        keys = [(await store.keys.create_key(space, space))[1] for space in ("alpha", "beta")]
    with ModelServer(plays_all=True) as model:
        url = model.url.replace("127.0.0.1", "localhost")
        environment = {
            "LD_PRELOAD": str(library),
            "SLOW_BEGUN": str(tmp_path / "begun"),
            "SLOW_UNTIL": str(tmp_path / "ended"),
            "EVALUATOR_HOST_MODELS": f'{{"judge": {{"base_url": "{url}"}}}}',
            "EVALUATOR_HOST_NETWORK_HOSTS": '["*.test:80", "localhost"]',
            "EVALUATOR_HOST_NETWORK_PRIVATE": '["127.0.0.0/8"]',
        }
        program = [sys.executable, "-m", "evaluator_host"]
        server = Server(log=tmp_path / "log", data_dir=home, environment=environment, command=program)
        with server:
            async with clients(server, keys) as (alpha, beta):
                port = f"localhost:{url.rpartition(':')[2].partition('/')[0]}"
                await flooded(alpha, beta, port, begun=tmp_path / "begun")
            (tmp_path / "ended").touch()


def size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


async def flooded(alpha: httpx.AsyncClient, beta: httpx.AsyncClient, port: str, *, begun: Path) -> None:
    """Let alpha create alerts, send messages and open connections, all to slow names, while beta makes calls.

    Args:
      alpha: Client of the workspace with slow names.
      beta: Client of another workspace.
      port: Host name and port of the model.
      begun: File that has as many bytes as look-ups of slow names have begun.
    """
    row = {"evaluators": [{"code": "def evaluate(i, o, t):\n    return 1.0"}], "dataset": {"rows": [{"n": 1}]}}
    job = (await alpha.post("/v1/jobs", json=row)).raise_for_status().json()["id"]
    for code, grants in ((ASKING, {"models": ["judge"]}), (REACHING, {"network": [port]})):
        # first start and load the sandboxes
        await asked(beta, code, **grants, inputs={"question": "warm", "to": [port]})
    rules = [
        {"name": f"low{n}", "metric": "mean", "below": 0, "job": job, "url": f"https://slow{n}.example/x"}
        for n in range(COUNT)
    ]
    answers = await asyncio.gather(*(alpha.post("/v1/alerts", json=rule) for rule in rules))
    assert {one.status_code for one in answers} == {201}
    hosts = [f"slow{n}.test:80" for n in range(COUNT)]
    sent = [asyncio.create_task(alpha.post(f"/v1/alerts/low{n}/test")) for n in range(COUNT)]
    sent.append(
        asyncio.create_task(
            alpha.post(
                "/v1/evaluate",
                json={"evaluator": {"code": REACHING, "network": ["*.test:80"]}, "inputs": {"to": hosts}},
            )
        )
    )
    while size_of(begun) < PLACES:
        await asyncio.sleep(0.01)
    for number in range(2):  # in the second round, alpha's callers have given up, but its look-ups still run
        told = await asked(beta, ASKING, models=["judge"], inputs={"question": f"q{number}"})
        assert told == f"answer to q{number}"
        assert "200" in await asked(beta, REACHING, network=[port], inputs={"to": [port]})
        *tests, reached = await asyncio.gather(*sent)
    assert {one["status"] for answer in tests for one in answer.json()["deliveries"]} == {"waiting"}
    said = " ".join(str(one["error"]) for answer in tests for one in answer.json()["deliveries"])
    assert "other names that this workspace looks up" in said
    assert reached.json()["reason"].count("504") == COUNT

"""An agent gets network access only with the option `--allow-network`; evaluators never get it, and the agent reaches
nothing on the host itself.
"""

import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import docker
import pytest

from tests import forked
from tests.conftest import BACKENDS, DATA_DIR
from tests.dialects.uipath.projects import write
from tests.engines import engine_address
from tests.proxies import authority

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

ASKS = """
import json, os, socket, ssl, urllib.request
from pathlib import Path

def tried(asked):
    try:
        return asked()
    except OSError as error:
        return type(getattr(error, "reason", error)).__name__

def unix(name):
    with socket.socket(socket.AF_UNIX) as door:
        door.connect("\\0" + name)
        return "connected"

def answers(url, name):
    return {
        "http": tried(lambda: urllib.request.urlopen(url, timeout=5).read().decode()),
        "unix": tried(lambda: unix(name)),
        "pair": len(socket.socketpair()),
        "raw": tried(lambda: str(socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))),
        "authorities": ssl.create_default_context().cert_store_stats()["x509_ca"] > 0,
        "localhost": tried(lambda: socket.gethostbyname("localhost")),
        "writable": os.access("/etc/resolv.conf", os.W_OK),
        "resolver": Path("/etc/resolv.conf").is_file() and "nameserver" in Path("/etc/resolv.conf").read_text(),
        "secret": os.environ.get("EVALUATOR_HOST_TEST_SECRET"),
    }
"""
# errors of a loopback interface without servers, and of a machine without routes
NOWHERE = ("ConnectionRefusedError", "OSError")
OUTPUT = ("--output-file", "out.json", "--verbose")
AGENT = ASKS + "\ndef main(input):\n    return answers(**input)\n"
EVALUATOR = f"""{ASKS}
from uipath.eval.evaluators import BaseEvaluationCriteria, BaseEvaluator, BaseEvaluatorConfig
from uipath.eval.models import NumericEvaluationResult

class AskedCriteria(BaseEvaluationCriteria):
    url: str
    name: str

class AskedConfig(BaseEvaluatorConfig[AskedCriteria]):
    name: str = "AskedEvaluator"

class AskedEvaluator(BaseEvaluator[AskedCriteria, AskedConfig, str]):
    @classmethod
    def get_evaluator_id(cls):
        return "AskedEvaluator"

    async def evaluate(self, agent_execution, evaluation_criteria):
        found = answers(evaluation_criteria.url, evaluation_criteria.name)
        return NumericEvaluationResult(score=float(found["http"] == "hello"), details=json.dumps(found))
"""


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        pass


def host_address(backend: str) -> str:
    """Return the address at which a sandbox with network access sees this machine."""
    if backend == "bubblewrap":
        return "127.0.0.1"
    engine = docker.APIClient(base_url=engine_address())
    (config,) = (one for one in engine.inspect_network("bridge")["IPAM"]["Config"] if "." in one["Subnet"])
    engine.close()
    return str(
        config.get("Gateway") or ip_network(config["Subnet"])[1]
    )  # the first address is used, because a bridge that was just made does not name its gateway


@pytest.fixture(params=BACKENDS, name="ask")
def ask_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Yield a function that runs the project with a server on this machine. The server uses https if sandboxes get this
    machine's certificate authorities.
    """
    backend, scheme = request.param, "http"
    with ThreadingHTTPServer((host_address(backend), 0), Hello) as server, socket.socket(socket.AF_UNIX) as door:
        if backend == "bubblewrap":
            authorities, certificate = authority(tmp_path, "localhost")
            context, scheme = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), "https"
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        else:
            authorities = None
        door.bind(f"\0evaluator-host-test-{server.server_port}")
        door.listen()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asked = {
            "url": f"{scheme}://{host_address(backend)}:{server.server_port}/",
            "name": f"evaluator-host-test-{server.server_port}",
        }
        yield partial(run, make_project(tmp_path / "project", asked), backend, authorities)
        server.shutdown()


def make_project(root: Path, asked: dict[str, str]) -> Path:
    item = {"id": "a", "name": "a", "inputs": asked, "evaluationCriterias": {"AskedEvaluator": asked}}
    write(root / "uipath.json", json.dumps({"functions": {"main": "main.py:main"}}))
    write(root / "main.py", AGENT)
    write(root / "evals" / "evaluators" / "custom" / "asked.py", EVALUATOR)
    write(root / "evals" / "eval_sets" / "asked.json", json.dumps({"evaluations": [item]}))
    registered = {"id": "AskedEvaluator", "evaluatorSchema": "file://asked.py:AskedEvaluator", "evaluatorConfig": {}}
    write(root / "evals" / "evaluators" / "asked.json", json.dumps(registered))
    return root


def run(
    project: Path, backend: str, authorities: Path | None, *options: str
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Run `uipath eval`. Return what the agent could reach, what the evaluator could reach, and the warnings."""
    done = forked.run(
        ["uipath", "eval", "asked", "--sandbox", backend, "--data-dir", str(DATA_DIR), *options, *OUTPUT],
        cwd=project, timeout=200,
        env={
            **os.environ,
            "EVALUATOR_HOST_TEST_SECRET": "s3cret",
            **({"EVALUATOR_HOST_DOCKER_HOST": engine_address()} if backend == "docker" else {}),
            **({"SSL_CERT_FILE": str(authorities)} if authorities else {}),
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (item,) = json.loads((project / "out.json").read_text())["evaluationSetResults"]
    (scored,) = item["evaluationRunResults"]
    found = json.loads(scored["result"]["details"])
    return item["agentExecutionOutput"]["result"]["output"], found, done.stderr


def test_the_agent_has_network_by_the_option_and_evaluators_never(ask: Any) -> None:
    agent, evaluator, warned = ask("--allow-network")
    found = {name: agent[name] for name in ("http", "localhost", "resolver", "authorities")}
    assert found == {"http": "hello", "localhost": "127.0.0.1", "resolver": True, "authorities": True}
    assert "warning: the agent has this machine's network" in warned
    assert (agent["pair"], agent["secret"], agent["writable"]) == (2, None, False)
    assert agent["unix"] in ("OSError", "ConnectionRefusedError"), (
        "the agent must not reach the host's abstract sockets"
    )
    assert agent["raw"] == "PermissionError"
    assert evaluator["http"] in NOWHERE

    agent, evaluator, warned = ask()
    assert agent["http"] == evaluator["http"]
    assert agent["http"] in NOWHERE
    assert agent["unix"] == "ConnectionRefusedError"
    assert agent["resolver"] is False
    assert "this machine's network" not in warned

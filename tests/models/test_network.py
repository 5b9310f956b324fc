"""Real clients reach granted hosts with granted secrets through the proxy, and attacks fail."""

import asyncio
import ipaddress
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.system.lookups import LookupFailed, Lookups
from evaluator_host.platform.models.access import make_http_client
from evaluator_host.platform.models.gateway.connection import Rejected
from evaluator_host.platform.models.gateway.hosts import HostPort, granted_hosts, host_port, is_public
from evaluator_host.platform.models.gateway.proxy import server_name
from evaluator_host.platform.models.judges import Judges, open_judges
from evaluator_host.platform.store.store import Store, open_store
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationResult
from tests.conftest import BACKENDS, settings
from tests.models.web_servers import WebServers, web_servers

engine = [pytest.mark.engine, pytest.mark.timeout(200)]
SECRET = "tok-77aa51c0ffee9d3e"
PACKAGES = ("aiohttp==3.14.5", "httpx==0.28.1", "requests==2.34.2")

PYTHON = """
import asyncio, os, ssl, urllib.request
import aiohttp, httpx, requests

def evaluate(inputs, outputs, trace):
    ca = "/tmp/ca.pem"
    open(ca, "w").write(inputs["ca"])
    context = ssl.create_default_context(cafile=ca)
    plain, secure = f"http://api.test:{inputs['http']}", f"https://api.test:{inputs['https']}"
    said = [urllib.request.urlopen(plain + "/urllib").read().decode()]
    said.append(urllib.request.build_opener(urllib.request.HTTPSHandler(context=context)).open(secure + "/u").read().decode())
    with requests.Session() as session:
        for place in (plain, secure):
            said += [session.get(place + "/requests", verify=ca).text, session.post(place + "/p", "body", verify=ca).text]
    with httpx.Client(verify=context) as client:
        said += [client.get(plain + "/httpx").text, client.get(secure + "/httpx").text]

    async def more():
        async with aiohttp.ClientSession(trust_env=True) as session:
            for place in (plain, secure):
                async with session.get(place + "/aiohttp", ssl=context) as answer:
                    said.append(await answer.text())

    asyncio.run(more())
    return {"score": len(said), "reason": " ".join(said)}
"""
NODE = """
import https from 'node:https';

export async function evaluate(inputs, outputs, trace) {
  const plain = 'http://api.test:' + inputs.http, secure = 'https://api.test:' + inputs.https;
  const said = [];
  for (let n = 0; n < 3; n++) said.push(await (await fetch(plain + '/fetch')).text());
  said.push(await (await fetch(plain + '/post', {method: 'POST', body: 'x'.repeat(100000)})).text());
  said.push(await new Promise((resolve, reject) => {
    https.get(secure + '/https', {ca: inputs.ca}, (answer) => {
      let text = '';
      answer.on('data', (data) => { text += data; }).on('end', () => resolve(text));
    }).on('error', reject);
  }));
  const other = await fetch('http://other.example:80/').then((answer) => answer.status, (error) => String(error.cause?.message ?? error));
  return {score: said.length, reason: said.join(' ') + ' ' + other};
}
"""
RAW = """
import os, socket, urllib.parse

def evaluate(inputs, outputs, trace):
    place = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.settimeout(inputs.get("timeout", 5))
        answer = b""
        try:
            for part in outputs if isinstance(outputs, list) else [outputs]:
                connection.sendall(bytes.fromhex(part[4:]) if part.startswith("hex:") else part.encode())
                answer += connection.recv(65536)
            while data := connection.recv(65536):
                answer += data
        except OSError as error:
            answer += f" {type(error).__name__}".encode()
    return {"score": 1.0, "reason": answer.decode("latin-1")[:4000]}
"""
FLOOD = """
import os, socket, time, urllib.parse

def evaluate(inputs, outputs, trace):
    place = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
    with socket.create_connection((place.hostname, place.port), timeout=20) as connection:
        for part in outputs:
            connection.sendall(part.encode())
            time.sleep(0.3)
        answer = connection.recv(65536) if "CONNECT" in outputs[0] else b""
        try:
            for _ in range(120):
                connection.sendall(bytes(1 << 20))
            while data := connection.recv(65536):
                answer += data
        except OSError:
            pass
    return {"score": 1.0, "reason": answer.decode("latin-1")[:1000]}
"""


@dataclass(frozen=True)
class Reaching:
    """A service that grants hosts, and the servers that stand in for these hosts."""

    service: Service
    models: Judges
    store: Store
    web: WebServers

    async def score(self, evaluator: Evaluator | str, outputs: object = "", **inputs: object) -> EvaluationResult:
        """Score one row and return the result. Code given without an evaluator may connect to both servers, with and
        without TLS.
        """
        given = Evaluator(evaluator) if isinstance(evaluator, str) else evaluator
        hosts = given.network or tuple(f"api.test:{port}" for port in (self.web.http, self.web.https, self.web.silent))
        told = {"http": self.web.http, "https": self.web.https, "ca": self.web.ca, **inputs}
        return await self.service.evaluate(replace(given, network=hosts), Row(told, outputs))


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServers]:
    with web_servers(tmp_path_factory.mktemp("web")) as servers:
        yield servers


@pytest.fixture(scope="module", params=BACKENDS)
async def reaching(
    request: pytest.FixtureRequest, web: WebServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Reaching]:
    async with reaching_on(request.param, web, tmp_path_factory.mktemp("reaching")) as made:
        yield made


@pytest.fixture(scope="module")
async def reached(web: WebServers, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reaching]:
    """A service that grants hosts, only on bubblewrap.

    Tests of things that the host does in the same way on both backends use it.
    """
    async with reaching_on("bubblewrap", web, tmp_path_factory.mktemp("reached")) as made:
        yield made


@asynccontextmanager
async def reaching_on(backend: str, web: WebServers, folder: Path) -> AsyncIterator[Reaching]:
    """A new service on a backend, with its own database."""
    chosen = settings(
        backend,
        network_hosts=("*.test", "default/localhost", "elsewhere/only.example:443", "private.example:80"),
        network_private=("127.0.0.1/32",),
        network_mb=2,
        model_wait_s=3.0,
        code_secrets=("crm", "elsewhere/other"),
    )
    async with (
        open_store(f"sqlite:///{folder / 'host.db'}", folder) as store,
        open_judges(chosen, store, names=Lookups(web.resolve)) as judges,
        open_engine(chosen, models=judges) as service,
    ):
        for name in ("crm", "other"):
            await store.secrets.set_secret("default", name, SECRET)
        yield Reaching(service, judges, store, web)


class TestRealClients:
    pytestmark = engine

    async def test_python_reaches_granted_hosts(self, reaching: Reaching) -> None:
        limits = Limits(timeout_s=30, memory_mb=512)
        result = await reaching.score(Evaluator(PYTHON, packages=PACKAGES, limits=limits))
        assert (result.error, result.score) == (None, 10)
        assert result.reason.split(" GET")[0] == "GET /urllib"
        assert result.usage is not None
        assert 8 <= result.usage.connections <= 10
        assert result.usage.network_bytes > 5000
        assert result.usage.requests == 0

    async def test_node_reaches_granted_hosts(self, reaching: Reaching) -> None:
        for _ in range(2):
            result = await reaching.score(Evaluator(NODE, language=Language.JAVASCRIPT))
            assert (result.error, result.score) == (None, 5)
            assert not result.reason.endswith("200")
            assert "other.example" not in reaching.web.lookups


def hello(name: str) -> str:
    """Return a TLS ClientHello with a host name, as hex digits."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return f"hex:{outgoing.read().hex()}"


_CONNECT = "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"
ATTACKS: dict[str, tuple[object, str]] = {
    "another name": (_CONNECT.format(to="evil.example:443"), "HTTP/1.1 403"),
    "another port": (_CONNECT.format(to="api.test:22"), "HTTP/1.1 403"),
    "an address": (_CONNECT.format(to="127.0.0.1:{http}"), "HTTP/1.1 403"),
    "a mapped address": (_CONNECT.format(to="[::ffff:169.254.169.254]:80"), "HTTP/1.1 403"),
    "host of another": ("CONNECT api.test:{http} HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421"),
    "plain to another": ("GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403"),
    "plain with another's host": (
        "GET http://api.test:{http}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "HTTP/1.1 421",
    ),
    "a user in the target": ("GET http://api.test:{http}@evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400"),
    "https as plain": ("GET https://api.test:{https}/ HTTP/1.1\r\nHost: api.test\r\n\r\n", "HTTP/1.1 400"),
    "two lengths": (
        (
            "POST http://api.test:{http}/ HTTP/1.1\r\nHost: api.test:{http}\r\nContent-Length: 4\r\n"
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n"
        ),
        "HTTP/1.1 400",
    ),
    "a path without a model": ("GET /metadata HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 404"),
    "another host in a tunnel": (
        [_CONNECT.format(to="api.test:{http}"), "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"],
        "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 421",
    ),
    "a proxy behind a tunnel": (
        [_CONNECT.format(to="api.test:{http}"), "GET http://evil.example/ HTTP/1.1\r\nHost: api.test\r\n\r\n"],
        "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 4",
    ),
    "another name in TLS": (
        [_CONNECT.format(to="api.test:{https}"), hello("evil.example")],
        "HTTP/1.1 200 Connection established\r\n\r\n\x15\x03\x03\x00\x02\x02\x70",
    ),
    "no TLS": ([_CONNECT.format(to="api.test:{https}"), "\x16\x03\x01\x00\x05hello"], "HTTP/1.1 200 Connection"),
}

_SLOW = "GET /slow HTTP/1.1\r\nHost: api.test:{http}\r\n\r\n"
FLOODS = {
    "behind a request in a tunnel": [_CONNECT.format(to="api.test:{http}"), _SLOW],
    "behind a request in parts": [_CONNECT.format(to="api.test:{http}"), *(_SLOW[:9], _SLOW[9:])],
    "behind a plain request": [_SLOW.replace("/slow", "http://api.test:{http}/slow")],
    "before the other host is known by TLS": [_CONNECT.format(to="api.test:{silent}"), "\x16\x03\x01\x40"],
    "where the other host reads nothing": [_CONNECT.format(to="api.test:{silent}"), "GET / HTTP/1.1\r\n"],
    "behind a request for a model": ["GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"],
}
ANSWERS = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "binary": bytes(range(256)) * 8,
    "nothing": b"",
    "half a head": b"HTTP/1.1 204 No Content\r\nServ",
    "a head without an end": b"HTTP/1.1 204 No Content\r\n" + b"X-A: y\r\n" * 20_000,
    "another form": b"HTTP 204 No Content\r\n\r\n",
    "a status of letters": b"HTTP/1.1 OK\r\n\r\n",
    "two lengths": b"HTTP/1.1 201 Created\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a line that is not a header": b"HTTP/1.1 201 Created\r\nwhat\r\n\r\n",
    "another protocol offered": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "a body that ends early": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab",
    "chunks that are none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab",
}


def resident_mb() -> float:
    """Return the memory of this process, in which the host runs."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)


class TestWhatMustNotBePossible:
    pytestmark = engine

    @pytest.mark.parametrize("name", ATTACKS)
    async def test_only_granted_hosts_are_asked(self, reached: Reaching, name: str) -> None:
        sent, answers = ATTACKS[name]
        web, before, looked_up = reached.web, len(reached.web.asked), len(reached.web.lookups)
        text = json.dumps(sent).replace("{https}", str(web.https)).replace("{http}", str(web.http))
        result = await reached.score(RAW, json.loads(text))
        assert result.reason.startswith(answers)
        assert len(web.asked) == before
        assert set(web.lookups[looked_up:]) <= {"api.test"}

    @pytest.mark.sampled(6)
    @pytest.mark.parametrize("name", FLOODS)
    async def test_bytes_that_nobody_reads_are_not_kept(self, reached: Reaching, name: str) -> None:
        """The host does not keep what nobody reads: if a row sends bytes that the host does not need, the host ends the
        connection.
        """
        web = reached.web
        outputs = [part.format(http=web.http, silent=web.silent) for part in FLOODS[name]]
        calm = Evaluator("def evaluate(inputs, outputs, trace):\n    return 1.0\n")
        await reached.service.evaluate(calm, Row(), caller=Caller("neighbour"))
        before_mb = resident_mb()
        flood = asyncio.create_task(reached.score(Evaluator(FLOOD, limits=Limits(timeout_s=30)), outputs))
        most_mb, slowest_s = before_mb, 0.0
        while not flood.done():
            began = time.process_time()  # includes the host's processor time, since the host runs in this process
            assert (await reached.service.evaluate(calm, Row(), caller=Caller("neighbour"))).score == 1.0
            slowest_s = max(slowest_s, time.process_time() - began)
            most_mb = max(most_mb, resident_mb())
            await asyncio.wait([flood], timeout=0.02)
        result = await flood
        assert most_mb - before_mb < 20
        assert slowest_s < 2
        assert "GET /slow" not in result.reason
        assert result.usage is not None
        assert result.usage.network_bytes < 4 << 20

    async def test_an_upload_in_a_tunnel_counts_once(self, reached: Reaching) -> None:
        web, size = reached.web, 1_500_000  # `size` is the number of bytes of the request; a row may exchange 2 MB
        head = f"POST /up HTTP/1.1\r\nHost: api.test:{web.http}\r\nContent-Length: {size}\r\n\r\n"
        code = RAW.replace("part.encode()", f"part.encode() + b'x' * ({size} if part.startswith('POST') else 0)")
        result = await reached.score(code, [_CONNECT.format(to=f"api.test:{web.http}"), head])
        assert "POST /up" in result.reason
        assert result.usage is not None
        assert size < result.usage.network_bytes < size + 1000

    async def test_a_second_request_behind_the_first_is_dropped(self, reached: Reaching) -> None:
        web, before = reached.web, len(reached.web.asked)
        one = f"GET http://api.test:{web.http}/%s HTTP/1.1\r\nHost: api.test:{web.http}\r\n\r\n"
        result = await reached.score(RAW, one % "first" + one % "second")
        assert result.reason.count("HTTP/1.1 200") == 1
        assert web.asked[before:] == [f"GET api.test:{web.http} /first"]

    async def test_names_that_lead_to_private_addresses_are_refused(self, reached: Reaching) -> None:
        web = reached.web
        evaluator = Evaluator(RAW, network=("private.example:80", f"rebound.test:{web.http}"))
        web.addresses["private.example"] = ["169.254.169.254", "10.0.0.1", "::1", "::ffff:10.0.0.1", "127.0.0.2"]
        result = await reached.score(evaluator, _CONNECT.format(to="private.example:80"))
        assert "address_not_allowed" in result.reason
        web.addresses["rebound.test"] = ["192.168.0.1", "127.0.0.1"]  # only the second address is an allowed one
        looked_up = web.lookups.count("rebound.test")
        sent = f"GET http://rebound.test:{web.http}/pinned HTTP/1.1\r\nHost: rebound.test:{web.http}\r\n\r\n"
        assert "HTTP/1.1 200" in (await reached.score(evaluator, sent)).reason
        assert web.lookups.count("rebound.test") - looked_up == 1
        web.addresses["rebound.test"] = ["192.168.0.1"]
        assert "address_not_allowed" in (await reached.score(evaluator, sent)).reason

    async def test_redirects_lead_to_granted_hosts_only(self, reached: Reaching) -> None:
        code = (
            "import urllib.error, urllib.request\n"
            "def evaluate(inputs, outputs, trace):\n"
            "    try:\n"
            "        return urllib.request.urlopen(f'http://api.test:{inputs[\"http\"]}/redirect').status\n"
            "    except urllib.error.HTTPError as error:\n"
            "        return {'score': 0, 'reason': f'{error.code} {error.read()}'}\n"
        )
        result = await reached.score(code)
        assert result.reason.startswith("403")
        assert "not granted 127.0.0.1:1" in result.reason

    async def test_a_huge_answer_ends_the_row(self, reached: Reaching) -> None:
        web = reached.web
        sent = f"GET http://api.test:{web.http}/huge HTTP/1.1\r\nHost: api.test:{web.http}\r\n\r\n"
        result = await reached.score(RAW, sent)
        assert result.error is not None
        assert result.error.code is ErrorCode.BUDGET_EXCEEDED
        assert "EVALUATOR_HOST_NETWORK_MB" in result.error.message

    @pytest.mark.sampled(12)
    @pytest.mark.parametrize("name", ANSWERS)
    async def test_an_answer_that_is_not_http_is_the_other_hosts_fault(
        self, reached: Reaching, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWERS[name])
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            to = f"api.test:{server.sockets[0].getsockname()[1]}"
            inner = f"GET / HTTP/1.1\r\nHost: {to}\r\n\r\n"
            tunnelled = [_CONNECT.format(to=to), inner]
            for sent in (inner.replace("GET /", f"GET http://{to}/"), tunnelled):
                result = await reached.score(Evaluator(RAW, network=(to,)), sent)
                # with `200 OK`, the head of the response was passed on before the fault
                began = "200 OK" in ANSWERS[name].decode("latin-1")
                assert began or ("502" in result.reason and "bad_answer" in result.reason)
                assert "the host has an internal fault" not in result.reason
        assert not caplog.records

    @pytest.mark.long
    async def test_a_slow_answer_is_awaited_as_long_as_models_are(self, reached: Reaching) -> None:
        web = reached.web
        evaluator = Evaluator(RAW, limits=Limits(timeout_s=1.0))
        sent = f"GET http://api.test:{web.http}/slow HTTP/1.1\r\nHost: api.test:{web.http}\r\n\r\n"
        result = await reached.score(evaluator, sent, timeout=20)
        assert result.error is None
        assert result.usage is not None
        assert 2900 <= result.usage.wait_ms <= 4500
        assert "504" in result.reason
        assert "model_wait_exceeded" in result.reason
        result = await reached.score(evaluator, _CONNECT.format(to=f"api.test:{web.http}"), timeout=20)
        # the host does not wait for an answer in a tunnel, so the row itself ran out of time
        assert result.error is not None
        assert result.error.code is ErrorCode.TIMEOUT

    async def test_nothing_is_reached_without_a_grant_or_after_the_row(self, reached: Reaching) -> None:
        web = reached.web
        with pytest.raises(InvalidRequest, match=r"may not reach only\.example:443"):
            await reached.score(Evaluator(RAW, network=("only.example",)))
        with pytest.raises(InvalidRequest, match="does not name a host"):
            await reached.score(Evaluator(RAW, network=("*",)))
        code = (
            "import os, time, urllib.request\n"
            "def evaluate(inputs, outputs, trace):\n"
            "    if outputs == 'leave' and os.fork() == 0:\n"
            "        os.setsid()\n"
            "        time.sleep(0.3)\n"
            "        urllib.request.urlopen(f'http://api.test:{inputs[\"http\"]}/after')\n"
            "        os._exit(0)\n"
            "    time.sleep(0.6 if outputs != 'leave' else 0)\n"
            "    return 1\n"
        )
        before = len(web.asked)
        for outputs in ("leave", "wait"):
            assert (await reached.score(code, outputs)).score == 1
        assert len(web.asked) == before
        bare = await reached.service.evaluate(
            Evaluator("import os\ndef evaluate(inputs, outputs, trace):\n    return int('HTTP_PROXY' in os.environ)\n"),
            Row(),
        )
        assert bare.score == 0


class TestSecrets:
    pytestmark = engine

    async def test_code_sees_an_allowed_secret_and_nobody_else_does(self, reaching: Reaching) -> None:
        code = (
            "import os, sys\n"
            "TOKEN = os.environ['API_TOKEN']\n"
            "print('loaded with', TOKEN)\n"
            "def evaluate(inputs, outputs, trace):\n"
            "    print('the token is', TOKEN, file=sys.stderr)\n"
            "    if outputs == 'raise':\n"
            "        raise ValueError(TOKEN)\n"
            "    if outputs == 'kill':\n"
            "        os.kill(os.getpid(), 9)\n"
            "    return {'score': len(TOKEN), 'reason': TOKEN, 'metadata': {TOKEN: [TOKEN]}}\n"
        )
        evaluator = Evaluator(code, secrets={"API_TOKEN": "crm"})
        for outputs in ("", "raise", "kill"):
            result = await reaching.service.evaluate(evaluator, Row({}, outputs))
            assert SECRET not in repr(result)
            assert "[masked]" in repr(result)
            assert result.score == (len(SECRET) if not outputs else None)
        report = await reaching.service.check(evaluator)
        assert report.secrets == {"API_TOKEN": "crm"}
        assert SECRET not in repr(report)
        javascript = "console.log(process.env.T); exports.evaluate = (a, b, c) => ({score: process.env.T.length, reason: process.env.T})"
        result = await reaching.service.evaluate(
            Evaluator(javascript, language=Language.JAVASCRIPT, secrets={"T": "crm"}), Row()
        )
        assert (result.score, result.reason) == (len(SECRET), "[masked]")
        await reaching.store.secrets.set_secret("default", "crm", SECRET + "-new")
        assert (await reaching.service.evaluate(evaluator, Row())).score == len(SECRET) + 4
        await reaching.store.secrets.set_secret("default", "crm", SECRET)

    async def test_code_sees_no_secret_that_the_operator_does_not_name(self, reached: Reaching) -> None:
        code = "def evaluate(inputs, outputs, trace):\n    return 1\n"
        with pytest.raises(InvalidRequest, match="may not see the secret 'other'"):
            await reached.service.evaluate(Evaluator(code, secrets={"T": "other"}), Row())
        with pytest.raises(NotFound, match="no secret"):
            await reached.service.evaluate(Evaluator(code, secrets={"T": "crm"}), Row(), caller=Caller("elsewhere"))


async def test_clients_connect_to_the_addresses_that_they_are_given(web: WebServers, tmp_path: Path) -> None:
    """Clients connect to the addresses that they are given, but TLS and the Host header still use the name. httpx has
    no public interface for this, so an upgrade of httpx could break these clients.
    """
    (tmp_path / "ca.pem").write_text(web.ca)
    looked_up: list[str] = []

    async def dial(host: str, _port: int) -> list[str]:
        looked_up.append(host)
        if host == "none.test":
            raise LookupFailed("none.test has no address")
        return ["127.0.0.2", "127.0.0.1"]  # no server listens at the first address

    chosen = settings("bubblewrap", ca_file=tmp_path / "ca.pem", proxy=None)
    for url in (f"https://api.test:{web.https}", f"http://api.test:{web.http}"):
        async with make_http_client(chosen, url, timeout_s=5, at_once=1, dial=dial) as client:
            assert (await client.get(f"{url}/pinned")).text == "GET /pinned"
            assert web.asked[-1] == f"GET {url.partition('//')[2]} /pinned"
            with pytest.raises(httpx.ConnectError, match=r"none\.test has no address"):
                await client.get("http://none.test/")
    assert looked_up == ["api.test", "none.test"] * 2


def test_entries_name_hosts() -> None:
    assert host_port("API.example.com", port=443) == HostPort("api.example.com", 443)
    assert host_port("[::1]:80", port=443) == HostPort("::1", 80)
    assert host_port("*.example.com:8443", port=0) == HostPort("*.example.com", 8443)
    for wrong in ("", "http://a", "a b", "a:99999", "a/b", "a@b", "-a.com", "::1"):
        assert host_port(wrong, port=0) is None
    allowed = ("api.example.com:443", "*.corp:8443")
    granted = granted_hosts(["api.example.com", "a.b.corp:8443"], allowed=allowed)
    assert [str(one) for one in granted] == ["api.example.com:443", "a.b.corp:8443"]
    assert granted_hosts(["*.x.example.org:80"], allowed=[*allowed, "*.example.org"])
    for refused in ("x.example.org", "api.example.com:80", "notcorp:8443", "example.org"):
        with pytest.raises(InvalidRequest, match="may not reach"):
            granted_hosts([refused], allowed=allowed)


@pytest.mark.parametrize("address", ["8.8.8.8", "168.63.129.17", "2606:4700::1111", "2001:470::5efe"])
def test_public_addresses_may_be_reached(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1"),
        *("224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b::808:808"),
        *("168.63.129.16", "192.0.0.8", "192.0.0.192", "192.0.0.9", "192.88.99.1", "192.31.196.1", "192.52.193.1"),
        *("192.175.48.1", "3fff::1", "3ffe::1", "2620:4f:8000::1", "2001:1::1", "2001:3::1", "2001:20::1"),
        *("2001:470:1:2:0:5efe:10.0.0.1", "2600:1::200:5efe:169.254.169.254", "fd00:ec2::254", "100.100.100.200"),
        *("2002:7f00:1::", "2001::1", "fc00::1", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1"),
    ],
)
def test_other_addresses_may_not_be_reached(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


def test_a_client_hello_names_one_host() -> None:
    data = bytes.fromhex(hello("api.test")[4:])
    assert server_name(data[5:]) == "api.test"
    for end in range(5, len(data) - 6, 7):
        with pytest.raises(Rejected):
            server_name(data[5:end] + b"\xff\xff")

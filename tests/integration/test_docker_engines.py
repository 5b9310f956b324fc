"""The Docker backend works with every kind of engine address, and recovers from an engine that is killed."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from evaluator_host.engine.sandbox.base import Link
from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from evaluator_host.engine.sandbox.docker.cleanup import LABEL_INSTANCE
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.protocol import FrameDecoder
from evaluator_host.types.errors import SandboxUnavailable
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec
from tests import engines
from tests.crash_engine import CrashEngine, crash_engine
from tests.relay import Relay

SPEC = SandboxSpec(Language.PYTHON, Environment("", Language.PYTHON, ""))


def own() -> str:
    """Return the name that marks the containers of these tests; a service in the same run uses a different name."""
    return f"{this_instance()}.2"


def backend_at(address: str) -> DockerBackend:
    return DockerBackend(docker_host=address, runtime=None, image=engines.probe_image(), instance=own())


async def says_hello(link: Link) -> bool:
    decoder = FrameDecoder()
    async with asyncio.timeout(30):
        while data := await link.read():
            for frame in decoder.feed(data):
                return frame.type == "hello"
    return False


async def test_an_engine_over_tcp() -> None:
    with Relay(engines.bare_engine_address(), tcp=True) as relay:
        backend = backend_at(relay.address)
        link = await backend.start(SPEC)
        assert await says_hello(link)
        assert (await link.destroy()).signal == 9
        await backend.close()


def certificate(folder: Path, name: str, *, issuer: str | None) -> None:
    """Make a certificate `<name>.pem`, signed by the issuer or by itself, and its key `<name>-key.pem`."""
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", f"/CN={name}", "-keyout", f"{folder}/{name}-key.pem", "-out", f"{folder}/{name}.pem"]
    if issuer is not None:
        command += ["-CA", f"{folder}/{issuer}.pem", "-CAkey", f"{folder}/{issuer}-key.pem"]
        command += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, check=True, capture_output=True)


async def test_an_engine_over_tls_with_certificates_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate(tmp_path, "ca", issuer=None)
    certificate(tmp_path, "server", issuer="ca")
    certificate(tmp_path, "cert", issuer="ca")
    shutil.copy(tmp_path / "cert-key.pem", tmp_path / "key.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server-key.pem")
    context.load_verify_locations(tmp_path / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    # this certificate is trusted for web sites, not for the engine
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "cert.pem"))
    image = engines.probe_image()
    with Relay(engines.bare_engine_address(), tls=context) as relay:
        backend = DockerBackend(docker_host=relay.address, runtime=None, image=image, instance=own())
        link = await backend.start(SPEC)
        assert await says_hello(link)
        assert (await link.destroy()).signal == 9
        await backend.close()


@pytest.fixture
def engine() -> Iterator[CrashEngine]:
    with crash_engine(engines.probe_image(), source=engines.bare_engine_address()) as running:
        yield running


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # docker-py abandons its connections when an engine is killed
async def test_an_engine_killed_under_a_sandbox_loses_it_and_the_next_one_removes_it(engine: CrashEngine) -> None:
    backend = backend_at(engine.address)
    link = await backend.start(SPEC)
    assert await says_hello(link)
    engine.kill()
    async with asyncio.timeout(10):
        assert await link.read() == b""
    assert (await link.destroy()).lost
    with pytest.raises(SandboxUnavailable, match="no Docker engine answers"):
        await backend.start(SPEC)
    await asyncio.to_thread(engine.start)
    again = await backend.start(SPEC)
    assert await says_hello(again)
    await again.destroy()
    await backend.close()
    client = docker.APIClient(base_url=engine.address)
    assert client.containers(all=True, filters={"label": f"{LABEL_INSTANCE}={own()}"}) == []
    client.close()

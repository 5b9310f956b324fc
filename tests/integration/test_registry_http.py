"""Package sets are pushed to a registry over HTTP, pulled, and found by their lock, even if the registry requires
tokens.
"""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.environments.registry.http import pull
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service.caller import Caller
from evaluator_host.types.errors import IndexUnavailable, PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests import package_index
from tests.package_hosts import LABEL, Host, label
from tests.registry_server import Registry, serving_with_tokens

NOWHERE = "tcp://127.0.0.1:1"  # address of a Docker engine that does not exist


@pytest.fixture
def registry(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """In turn: the registry that all tests share, and a registry with tokens, whose user has used `docker login`."""
    if request.param == "open":
        yield request.getfixturevalue("registry_server")
        return
    (tmp_path / "registry").mkdir()
    with serving_with_tokens(tmp_path / "registry", user="team", password="sesame") as made:
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        known = {"auth": base64.b64encode(b"team:sesame").decode()}
        (tmp_path / "config.json").write_text(json.dumps({"auths": {made.name: known}}))
        yield made


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("backend", "registry"), [("bubblewrap", "open"), ("docker", "with tokens")], indirect=["registry"]
)
async def test_a_set_reaches_another_machine_by_http(backend: str, registry: Registry, tmp_path: Path) -> None:
    """A package set reaches another machine over HTTP. On the bubblewrap backend, this needs no Docker engine."""
    repository = f"{registry.name}/over/http"
    with package_index.serving() as index:
        pin = index.add("posted", "said = 'far'\n")
        first = Host(tmp_path / "first", backend, index=index)
        async with open_engine(_settings(first)) as service:
            built = await service.environments.built((await service.environments.request([pin], Language.PYTHON)).key)
            lock = service.environments.lock_of(built.digest)
            pinned = await service.environments.transfer.push(built.digest, f"{repository}:1")
            assert await service.environments.transfer.push(built.digest, f"{repository}:1") == pinned
    assert lock is not None
    second = Host(tmp_path / "second", backend, index=None)
    async with open_engine(_settings(second)) as service:
        with pytest.raises(PackagesFailed, match="not sha256:"):
            await service.environments.transfer.pull(f"{repository}:1", digest=f"sha256:{'0' * 64}")
        pulled = await service.environments.transfer.pull(pinned, digest=built.digest)
        assert (pulled.digest, pulled.packages) == (built.digest, built.packages)
        assert await label(service, LABEL.format("posted"), pin) == "far"
        assert [found.broken for found in await service.environments.verify()] == [()]
    third = Host(tmp_path / "third", backend, index=None)
    settings = _settings(third).model_copy(update={"packages_from": repository})
    async with open_engine(settings) as service:  # this is a host that already has the lock, like a node of a cluster
        result = await service.evaluate(
            Evaluator(LABEL.format("posted"), packages=(pin,)), Row(), caller=Caller(lock=lock)
        )
        assert result.error is None, result.error
        assert service.environments.lock_of(built.digest) is not None
    if backend == "bubblewrap":
        await _damaged(registry, repository, tmp_path)
    else:
        await _unknown(repository, tmp_path)


async def _unknown(repository: str, tmp_path: Path) -> None:
    """Check the messages for a wrong password and for a missing password."""
    host = Host(tmp_path / "fourth", "docker", index=None)
    async with open_engine(_settings(host)) as service:
        for content in ((tmp_path / "config.json").read_text().replace('"auth": "', '"auth": "eDp5'), "{}"):
            (tmp_path / "config.json").write_text(content)
            with pytest.raises(PackagesFailed, match="run `docker login` for it"):
                await service.environments.transfer.pull(f"{repository}:1")


async def _damaged(registry: Registry, repository: str, tmp_path: Path) -> None:
    """Check the messages for a changed blob, an image that is not a set, and a registry that is gone."""
    name = repository.partition("/")[2]
    accept = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
    manifest = await asyncio.to_thread(
        requests.get, f"http://{registry.name}/v2/{name}/manifests/1", headers=accept, timeout=10
    )
    layer = manifest.json()["layers"][0]["digest"]
    blob = registry.blobs()[layer]
    host = Host(tmp_path / "fourth", "bubblewrap", index=None)
    async with open_engine(_settings(host)) as service:
        pull = service.environments.transfer.pull
        whole = blob.read_bytes()
        blob.write_bytes(whole[: len(whole) // 2] + bytes(8) + whole[len(whole) // 2 + 8 :])
        with pytest.raises((PackagesFailed, IndexUnavailable)):
            await pull(f"{repository}:1")
        blob.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(PackagesFailed, match="push the set again"):
            await pull(f"{repository}:1")
        blob.write_bytes(whole)
        with _ending_early(registry.name, layer) as cut, pytest.raises(IndexUnavailable, match="does not answer"):
            await pull(f"{cut}/{name}:1")
        assert not list((tmp_path / "fourth").rglob(".pulled-*"))
        assert await service.environments.verify() == []
        with pytest.raises(PackagesFailed, match="no such image"):
            await pull(f"{repository}:2")
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await pull("127.0.0.1:9/none:1")


@contextmanager
def _ending_early(registry: str, layer: str) -> Iterator[str]:
    """Yield the address of a proxy that announces a whole layer, but closes the connection after half of the bytes."""

    class Half(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._pass_on("HEAD")

        def do_GET(self) -> None:
            self._pass_on("GET")

        def _pass_on(self, method: str) -> None:
            accept = {"Accept": self.headers["Accept"], "Accept-Encoding": "identity"}
            answer = requests.request(method, f"http://{registry}{self.path}", headers=accept, timeout=10)
            whole = answer.content
            self.send_response(answer.status_code)
            for header in ("Content-Type", "Content-Length"):
                self.send_header(header, answer.headers[header])
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2] if self.path.endswith(layer) else whole)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Half) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("what", ["manifest", "token", "redirect", "refusal"])
async def test_of_an_answer_without_an_end_little_is_read(what: str, tmp_path: Path) -> None:
    with _endless(what) as (registry, written), pytest.raises((PackagesFailed, IndexUnavailable)) as raised:
        await pull(f"{registry}/team/set:1", tmp_path / "files", max_bytes=1 << 30)
    assert ("sends more than 4 MB" in raised.value.detail) == (what in ("manifest", "token"))
    assert sum(written) < 32 << 20, "the client must stop long before the registry has sent 400 MB"


@contextmanager
def _endless(what: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a registry that sends 400 MB in one kind of answer, and a list that gets the number of bytes
    that were sent in each answer.
    """
    written: list[int] = []

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here = f"http://{self.headers['Host']}"
            if what == "token" and self.path.startswith("/v2"):
                self._begin(401, "WWW-Authenticate", f'Bearer realm="{here}/token",service="x"')
            elif what == "redirect" and not self.path.startswith("/gone"):
                self._begin(307, "Location", f"{here}/gone")
                self._go_on(bytes(1 << 20))
            else:
                self._begin(404 if what in ("redirect", "refusal") else 200, "Content-Type", "application/json")
                self._go_on(bytes(1 << 20))

        def _begin(self, status: int, header: str, value: str) -> None:
            self.send_response(status)
            self.send_header(header, value)
            self.end_headers()

        def _go_on(self, piece: bytes) -> None:
            with suppress(ConnectionError):
                for _ in range(400):
                    self.wfile.write(piece)
                    written.append(1 << 20)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", written
        server.shutdown()


def _settings(host: Host) -> Settings:
    return host.settings() if host.backend == "docker" else host.settings().model_copy(update={"docker_host": NOWHERE})

"""Runs Debian's registry server on a loopback port, without TLS; it can also require tokens."""

import base64
import contextlib
import gzip
import hashlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from evaluator_host.engine.sandbox.docker.image.package_tree import tar_stream

_SERVICE = "registry of the tests"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry. `name` is `127.0.0.1:<port>`, `storage` is the folder with the registry's blobs."""

    name: str
    storage: Path

    def blobs(self) -> dict[str, Path]:
        """Return the path of every blob, by digest."""
        found = self.storage.glob("docker/registry/v2/blobs/sha256/*/*/data")
        return {f"sha256:{file.parent.name}": file for file in found}

    def manifest(self, name: str) -> dict[str, Any]:
        """Return the manifest of the image `name:1`."""
        answer = requests.get(self._url(name, "manifests/1"), headers={"Accept": _MANIFEST}, timeout=10)
        found: dict[str, Any] = answer.json()
        return found

    def put_over(self, name: str, path: str, content: bytes) -> None:
        """Add a layer that contains one file to the image `name:1`."""
        found = self.manifest(name)
        layer = gzip.compress(b"".join(tar_stream({path: content}, trees={})))
        self._put_manifest(name, {**found, "layers": [*found["layers"], self._put(name, layer)]})

    def put_image(self, name: str, config: dict[str, Any], layers: list[dict[str, Any]]) -> None:
        """Store an image as `name:1`."""
        described = self._put(name, json.dumps(config).encode())
        self._put_manifest(name, {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described, "layers": layers})

    def _put(self, name: str, blob: bytes) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        place = requests.post(self._url(name, "blobs/uploads/"), timeout=10).headers["Location"]
        requests.put(place, params={"digest": digest}, data=blob, timeout=10).raise_for_status()
        return {"mediaType": "application/octet-stream", "digest": digest, "size": len(blob)}

    def _put_manifest(self, name: str, manifest: dict[str, Any]) -> None:
        headers = {"Content-Type": _MANIFEST}
        url = self._url(name, "manifests/1")
        requests.put(url, data=json.dumps(manifest), headers=headers, timeout=10).raise_for_status()

    def _url(self, name: str, path: str) -> str:
        return f"http://{self.name}/v2/{name}/{path}"


@contextmanager
def serving(home: Path, *, auth: str = "") -> Iterator[Registry]:
    """Run a registry that keeps its files in a folder, and yield it; `auth` is the `auth` section of its configuration."""
    if shutil.which("docker-registry") is None:
        pytest.fail("there is no registry server: install docker-registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    storage = f"storage: {{filesystem: {{rootdirectory: {home}/data}}}}"
    (home / "config.yml").write_text(f"version: 0.1\n{storage}\nhttp: {{addr: '127.0.0.1:{port}'}}\n{auth}")
    with (home / "log").open("w") as log:
        server = subprocess.Popen(["docker-registry", "serve", str(home / "config.yml")], stdout=log, stderr=log)
    try:
        for _ in range(200):
            with contextlib.suppress(requests.RequestException):
                requests.get(f"http://127.0.0.1:{port}/v2/", timeout=5).close()
                break
            assert server.poll() is None, (home / "log").read_text()
            time.sleep(0.05)
        yield Registry(f"127.0.0.1:{port}", home / "data")
    finally:
        server.terminate()
        server.wait()


@contextmanager
def serving_with_tokens(home: Path, *, user: str, password: str) -> Iterator[Registry]:
    """Run a registry that requires tokens to push and pull, as Docker Hub, GHCR and Harbor do; one user can get tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _SERVICE)]), datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    certificate = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(
        key, hashes.SHA256()
    )
    (home / "tokens.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    proof = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()

    class Tokens(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = base64.b64encode(f"{user}:{password}".encode()).decode()
            if self.headers.get("Authorization") != f"Basic {known}":
                self.send_response(401)
                self.end_headers()
                return
            (scope,) = parse_qs(urlsplit(self.path).query)["scope"]
            kind, repository, actions = scope.split(":")
            access = [{"type": kind, "name": repository, "actions": actions.split(",")}]
            times = {"nbf": int(time.time()) - 60, "exp": int(time.time()) + 600}
            claims = {"iss": _SERVICE, "aud": _SERVICE, "sub": user, "jti": "1", "access": access, **times}
            head = {"typ": "JWT", "alg": "ES256", "x5c": [proof]}
            signed = b".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
            numbers = utils.decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
            token = signed + b"." + _base64(b"".join(number.to_bytes(32, "big") for number in numbers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"token": token.decode()}).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Tokens) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        realm = f"realm: 'http://127.0.0.1:{server.server_port}/token', service: {_SERVICE}, issuer: {_SERVICE}"
        with serving(home, auth=f"auth: {{token: {{{realm}, rootcertbundle: {home}/tokens.pem}}}}\n") as registry:
            yield registry
        server.shutdown()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")

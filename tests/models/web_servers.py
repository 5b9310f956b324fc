"""Servers on loopback that stand in for other hosts, with HTTP and HTTPS, and host names that resolve to them."""

import contextlib
import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAMES = ("api.test", "other.test")


@dataclass
class WebServers:
    """An HTTP server, an HTTPS server, and a port that never answers. `asked` has each request as `METHOD Host path`,
    `lookups` has the names that were looked up.
    """

    http: int
    https: int
    silent: int
    ca: str
    asked: list[str] = field(default_factory=list)
    lookups: list[str] = field(default_factory=list)
    addresses: dict[str, list[str]] = field(default_factory=dict)

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host name; names that end with .test resolve to this machine."""
        self.lookups.append(host)
        if host in self.addresses:
            return self.addresses[host]
        if host.endswith(".test"):
            return ["127.0.0.1"]
        return [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@contextlib.contextmanager
def web_servers(folder: Path) -> Iterator[WebServers]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.headers['Host']} {self.path}")
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            if path == "/redirect":
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.1:1/metadata")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if path == "/slow":
                time.sleep(8)
            body = b"x" * (3 << 20) if path == "/huge" else f"{self.command} {path}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    file = folder / "server.pem"
    ca = _certificate(file)
    plain, secure = Server(("127.0.0.1", 0), Handler), Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    silent = socket.create_server(("127.0.0.1", 0))
    threads = [threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.05}) for one in (plain, secure)]
    for thread in threads:
        thread.start()
    try:
        yield WebServers(plain.server_port, secure.server_port, silent.getsockname()[1], ca, asked)
    finally:
        silent.close()
        for server in (plain, secure):
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


def _certificate(file: Path) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api.test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in NAMES]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .sign(key, hashes.SHA256())
    )
    text = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + text)
    return text.decode()

"""Requests that a web page can make a browser send to a host on the user's own machine: none of them runs code.

There are two kinds of attack: a page of another origin posts to http://127.0.0.1:8710 (cross-site request forgery), or
the attacker points a name at 127.0.0.1 once the page is loaded, so that the browser believes that the host has the same
origin (DNS rebinding). The tests use plain sockets, since no HTTP client sends such requests.
"""

import json
import socket
from collections.abc import Iterator

import pytest

from tests.keyed import BODY, is_problem
from tests.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


def status_of(
    server: Server, *headers: str, target: str = "/v1/evaluate", version: str = "1.1", method: str = "POST"
) -> int:
    """Send a call with exactly the given headers, and return the status of the answer."""
    body = json.dumps(BODY).encode()
    lines = [f"{method} {target} HTTP/{version}", *headers, "Content-Type: application/json"]
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body if method == "POST" else b""))
        return int(raw.recv(65536).split(b" ", 2)[1])


def test_the_host_answers_to_its_own_names(server: Server) -> None:
    port = server.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", "localhost", f"[::1]:{port}", "[::1]"):
        assert status_of(server, f"Host: {host}") == 200, host


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8710",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost.",
        "127.0.0.1@evil.example",
        "evil.example@127.0.0.1",
        "evil.example:80@localhost",
        "localhost/evil.example",
        "localhost#evil.example",
        "localhost?evil.example",
        "localhost, evil.example",
        "localhost evil.example",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::]",
        "[::ffff:127.0.0.1]",
        "localhost:port",
        "",
        "\xff",
    ],
)
def test_a_name_that_was_pointed_here_is_refused(server: Server, host: str) -> None:
    assert status_of(server, f"Host: {host}") in (400, 403)


def test_a_request_without_a_name_or_with_two_is_refused(server: Server) -> None:
    assert status_of(server) in (400, 403)
    assert status_of(server, version="1.0") in (400, 403)
    assert status_of(server, "Host: localhost", "Host: evil.example") in (400, 422)
    assert status_of(server, "Host: evil.example", "Host: localhost") in (400, 403, 422)
    assert status_of(server, "Host: evil.example", target=f"http://localhost:{server.port}/v1/evaluate") == 403
    assert status_of(server, "Host: evil.example", "X-Forwarded-Host: localhost", "Forwarded: host=localhost") == 403


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://evil.example:{port}",
        "null",
        "",
        "file://",
        "http://localhost",
        "http://localhost:1",
        "http://127.0.0.1:{port}.evil.example",
        "http://localhost:{port}@evil.example",
        "http://[",
        "chrome-extension://aaaabbbbccccdddd",
    ],
)
def test_a_page_of_another_origin_is_refused(server: Server, origin: str) -> None:
    port = server.port
    assert status_of(server, f"Host: localhost:{port}", f"Origin: {origin.format(port=port)}") == 403
    assert (
        status_of(
            server, f"Host: localhost:{port}", f"Origin: {origin.format(port=port)}", target="/v1/info", method="GET"
        )
        == 403
    )


def test_the_hosts_own_page_may_ask(server: Server) -> None:
    for name in ("localhost", "127.0.0.1"):
        own = f"{name}:{server.port}"
        assert status_of(server, f"Host: {own}", f"Origin: http://{own}", "Sec-Fetch-Site: same-origin") == 200


def test_a_page_of_another_site_is_refused_also_without_an_origin(server: Server) -> None:
    site = ("Host: localhost", "Sec-Fetch-Site: cross-site")
    assert status_of(server, *site, "Sec-Fetch-Mode: no-cors") == 403
    assert status_of(server, *site, "Sec-Fetch-Mode: no-cors", target="/v1/info", method="GET") == 403
    assert status_of(server, *site, "Sec-Fetch-Mode: navigate", target="/docs", method="GET") == 200, (
        "the host must allow a link from another site to /docs"
    )


def test_two_origins_are_refused(server: Server) -> None:
    own = f"localhost:{server.port}"
    assert status_of(server, f"Host: {own}", f"Origin: http://{own}", "Origin: https://evil.example") == 422
    assert status_of(server, f"Host: {own}", "Origin: https://evil.example", f"Origin: http://{own}") == 422


def test_no_page_is_allowed_to_ask_by_a_preflight(server: Server) -> None:
    """The host agrees to no preflight request. A browser sends one before it posts JSON to another origin, and posts
    nothing if the host does not agree.
    """
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = server.client.options("/v1/evaluate", headers=headers)
    assert is_problem(answer, 403, "refused")
    own = {"Origin": server.url, "Access-Control-Request-Method": "POST"}
    for response in (answer, server.client.options("/v1/evaluate", headers=own), server.client.get("/v1/info")):
        assert not [name for name in response.headers if name.startswith("access-control-")]


def test_every_answer_keeps_browsers_from_reading_framing_and_sniffing_it(server: Server) -> None:
    for response in (
        server.client.get("/healthz"),
        server.client.get("/docs"),
        server.client.get("/metrics"),
        server.client.get("/nowhere"),
        server.client.post("/v1/evaluate", json=BODY),
        server.client.post("/v1/evaluate", json={}),
        server.client.put("/v1/evaluate"),
        server.client.get("/v1/info", headers={"Host": "evil.example"}),
    ):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "server" not in response.headers

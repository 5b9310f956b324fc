"""With the recipe for HAProxy and the real program, all calls to an evaluator go to the same host, until that host
is gone or overloaded.
"""

import json
import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from evaluator_host import Evaluator
from evaluator_host.client.calls import evaluator_headers
from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.http.auth.access import Access, Rate
from tests.docs.blocks import read
from tests.server import free_port

pytestmark = pytest.mark.engine

EVALUATORS = [Evaluator(f"def evaluate(inputs, outputs, trace):\n    return {n}") for n in range(300)]
FIRST = EVALUATORS[0]


class Host(ThreadingHTTPServer):
    """A stand-in for a host behind a load balancer: it reports that it is ready, and answers calls with its number."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, number: int) -> None:
        host = self
        self.number, self.slow_s, self.gone = number, 0.0, False

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if host.gone:  # open connections end without an answer
                    self.close_connection = True
                    return
                if self.path != "/readyz":
                    time.sleep(host.slow_s)
                body = json.dumps(host.number).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Ignore the errors of health checks that ended early."""

    def end(self) -> None:
        self.gone = True
        self.shutdown()
        self.server_close()


@contextmanager
def balanced(folder: Path, hosts: list[Host]) -> Iterator[httpx.Client]:
    """Run HAProxy for these hosts, with the recipe in the documentation; yield a client."""
    port = free_port()
    text = read("docs/recipes/haproxy.cfg").replace("bind :8700", f"bind 127.0.0.1:{port}")
    text = text.replace("inter 2s", "inter 200ms")
    for host in hosts:
        text = text.replace(f"10.0.0.{host.number}:8710", f"127.0.0.1:{host.server_port}")
    (folder / "haproxy.cfg").write_text(text)
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "HAProxy is not installed; Debian: apt-get install haproxy (make test does it as root)"
    with subprocess.Popen([program, "-db", "-f", str(folder / "haproxy.cfg")], stderr=subprocess.DEVNULL) as process:
        try:
            limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=30) as client:
                until = time.monotonic() + 20
                while time.monotonic() < until:
                    try:
                        client.get("/")
                        break
                    except httpx.TransportError:
                        time.sleep(0.05)
                yield client
        finally:
            process.terminate()


def host_of(client: httpx.Client, evaluator: Evaluator) -> int:
    return int(client.get("/v1/evaluate", headers=dict(evaluator_headers(evaluator))).json())


@pytest.mark.long
def test_evaluators_keep_their_hosts_when_one_goes_and_a_hot_one_spills(tmp_path: Path) -> None:
    hosts = [Host(number) for number in (1, 2, 3)]
    with balanced(tmp_path, hosts) as client:
        before = [host_of(client, one) for one in EVALUATORS]
        assert all(60 < count < 150 for count in Counter(before).values()), Counter(before)
        again = [host_of(client, one) for one in EVALUATORS]
        assert sum(a != b for a, b in zip(before, again, strict=True)) <= 6

        for host in hosts:
            host.slow_s = 0.3
        with ThreadPoolExecutor(30) as threads:
            spread = Counter(threads.map(lambda _: host_of(client, FIRST), range(30)))
        assert len(spread) > 1, "if an evaluator gets many calls, several hosts must serve it"
        # at least a third of the calls; the other calls spill over to another host
        assert 10 <= spread[before[0]] < 30, spread
        for host in hosts:
            host.slow_s = 0.0

        hosts[2].end()
        after = [host_of(client, one) for one in EVALUATORS]
        assert 3 not in after
        kept = [(a, b) for a, b in zip(before, after, strict=True) if a != 3]
        assert sum(a != b for a, b in kept) < 0.03 * len(kept) + 1
    for host in hosts[:2]:
        host.end()


def test_the_header_is_the_same_for_the_same_code_and_for_a_name() -> None:
    ((name, digest),) = evaluator_headers(FIRST)
    assert (name, len(digest)) == ("Evaluator-Digest", 32)
    assert evaluator_headers(Evaluator(FIRST.code, threshold=0.5)) == evaluator_headers(FIRST)
    assert len({evaluator_headers(one) for one in (*EVALUATORS, "exact-match@3", "\ud800")}) == 302


def test_each_of_several_hosts_gives_a_key_its_part(tmp_path: Path) -> None:
    class NoStore:
        keys = audit = package_sets = limits = None

    settings = Settings(data_dir=tmp_path, replicas=4, rate_limit_per_s=10, rate_limit_burst=6, event_streams=16)
    access = Access(NoStore(), settings, 100)  # type: ignore[arg-type] - nothing is stored here
    assert access._rate == Rate(2.5, 2)
    assert access.streams._most == 4

"""`python -m tests.load.soak --minutes 10`: one workspace attacks the API without a pause while another evaluates.

Prints the neighbour's answers and times, quiet and under attack, and the host's peak memory, as JSON. Exit 1 when an answer of
the neighbour was wrong or refused, when its p95 under attack is over five times its quiet one, or when the host took over 600 MB.
"""

import argparse
import gzip
import io
import itertools
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pyarrow as pa
from pyarrow import parquet

from evaluator_host.selftest.catalogue import expand
from evaluator_host.selftest.host import Request, load_requests
from tests.keyed import bearer, make_key
from tests.server import Server

ATTACKERS: Final = 3
P95_RATIO: Final = 5.0
PEAK_MB: Final = 600
PAUSE_S: Final = 0.05
STREAMS: Final = 24
EVALUATORS: Final = 5
CODE: Final = "def evaluate(inputs, outputs, trace):\n    return inputs['x'] / 1000  # {number}\n"
TYPES: Final = {"parquet": "application/vnd.apache.parquet"}


@dataclass
class Calls:
    """What happened to the calls of the neighbour in one phase."""

    seconds: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict[str, Any]:
        cuts = statistics.quantiles(self.seconds, n=20)
        return {
            "calls": len(self.seconds),
            "p50_ms": round(1000 * statistics.median(self.seconds), 1),
            "p95_ms": round(1000 * cuts[-1], 1),
            "longest_ms": round(1000 * max(self.seconds), 1),
            "answers": dict(self.answers),
        }


def neighbour(url: str, key: str, until: float) -> Calls:
    """Evaluate and ask `/healthz` in turn until a time; return what came of it."""
    calls = Calls()
    with httpx.Client(base_url=url, headers=bearer(key), timeout=60) as client:
        for number in itertools.count():
            if time.monotonic() > until:
                return calls
            x = number % 1000
            code = CODE.format(number=number % EVALUATORS)
            began = time.perf_counter()
            try:
                answer = client.post("/v1/evaluate", json={"evaluator": {"code": code}, "inputs": {"x": x}})
                calls.seconds.append(time.perf_counter() - began)
                right = answer.status_code == httpx.codes.OK and answer.json()["score"] == x / 1000
                calls.answers["right" if right else f"{answer.status_code}: {answer.text[:200]}"] += 1
                health = client.get("/healthz", timeout=5).status_code
                calls.answers["healthy" if health == httpx.codes.OK else f"healthz {health}"] += 1
            except httpx.HTTPError as error:
                calls.answers[repr(error)] += 1
            time.sleep(PAUSE_S)
    raise AssertionError("the loop has no end")


def attack(url: str, key: str, stop: threading.Event, seed: int, sent: Counter[str]) -> None:
    """Send every attack in a random order, again and again."""
    order = random.Random(seed)
    attacks: dict[str, Callable[[httpx.Client], None]] = {
        name: lambda client, requests=requests: send(client, requests) for name, requests in load_requests().items()
    }
    attacks |= {"parquet that unfolds": upload_parquet, "event streams": open_streams}
    while not stop.is_set():
        for name in order.sample(sorted(attacks), len(attacks)):
            if stop.is_set():
                return
            with httpx.Client(base_url=url, headers=bearer(key), timeout=30) as client:
                try:
                    attacks[name](client)
                    sent[name] += 1
                except httpx.HTTPError as error:
                    sent[f"{name}: {type(error).__name__}"] += 1


def send(client: httpx.Client, requests: tuple[Request, ...]) -> None:
    """Send the requests of an attack; jobs are not waited for."""
    for request in requests:
        content, headers = expand(request.body).encode(), {"content-type": request.type}
        if request.gzip:
            content, headers["content-encoding"] = gzip.compress(content), "gzip"
        for _ in range(request.times):
            client.request(request.method, request.path, content=content, headers=headers)


def upload_parquet(client: httpx.Client) -> None:
    """Upload a file of some KB whose cells have 30 MB each."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 200, pa.int32()), pa.array(["x" * (30 << 20)]))
    file = io.BytesIO()
    parquet.write_table(pa.table({"a": texts}), file, compression="zstd", store_schema=False)
    client.post(
        "/v1/datasets?name=bomb&replace=true", content=file.getvalue(), headers={"content-type": TYPES["parquet"]}
    )


def open_streams(client: httpx.Client) -> None:
    """Watch a job by many event streams at once, for a second."""
    jobs = client.get("/v1/jobs?limit=1").json()
    if not jobs:
        return
    opened = [client.build_request("GET", f"/v1/jobs/{jobs[0]['id']}/events") for _ in range(STREAMS)]
    answers = [client.send(request, stream=True) for request in opened]
    time.sleep(1)
    for answer in answers:
        answer.close()


def attacked(url: str, key: str, seed: int) -> Iterator[Counter[str]]:
    """Attack during the time in which this generator is suspended."""
    stop, sent = threading.Event(), Counter[str]()
    threads = [threading.Thread(target=attack, args=(url, key, stop, seed + n, sent)) for n in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    yield sent
    stop.set()
    for thread in threads:
        thread.join()


def main() -> int:
    """Run the soak and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--backend", default="bubblewrap")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder / 'host.db'}"
        alpha, beta = (make_key("ci", workspace, url=url) for workspace in ("alpha", "beta"))
        environment = {"EVALUATOR_HOST_DATABASE_URL": url}
        with Server(options.backend, log=folder / "log", environment=environment) as server:
            neighbour(server.url, beta, time.monotonic() + 5)  # warm
            quiet = neighbour(server.url, beta, time.monotonic() + 6 * options.minutes)
            attacking = attacked(server.url, alpha, options.seed)
            sent = next(attacking)
            busy = neighbour(server.url, beta, time.monotonic() + 60 * options.minutes)
            next(attacking, None)
            status = Path(f"/proc/{server.process.pid}/status").read_text()
            errors = sorted({line for line in server.log.splitlines() if "ERROR" in line})
    peak_mb = int(status.split("VmHWM:")[1].split()[0]) // 1024
    ratio = busy.report()["p95_ms"] / quiet.report()["p95_ms"]
    figures = {"quiet": quiet.report(), "attacked": busy.report(), "p95_ratio": round(ratio, 2), "peak_mb": peak_mb}
    print(json.dumps({**figures, "attacks": dict(sorted(sent.items())), "errors": errors[:20]}, indent=2))
    wrong = set(busy.answers) - {"right", "healthy"}
    return int(bool(wrong) or ratio > P95_RATIO or peak_mb > PEAK_MB)


if __name__ == "__main__":
    sys.exit(main())

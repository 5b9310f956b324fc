"""`python -m tests.load.soak --minutes 10`: one workspace attacks all the time while another evaluates.

The attacks are the selftest's attacks on the API, on neighbours and on the processor, and traces that are never
complete. The program prints as JSON the answers and times of the other workspace (the neighbour), without and under
attack, and the host's peak memory. The program exits with 1 in each of these cases: an answer to the neighbour was
wrong or refused; the neighbour's p95 under attack is over five times its p95 without attack; the host took over 600 MB
or did not end well. The last line gives the reason.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import random
import re
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final

import httpx

from evaluator_host.engine.system.tree import temporary_folder
from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import AttackRequest, load_requests
from evaluator_host.selftest.hostile_files import package_index
from tests.conftest import BACKENDS
from tests.engines import engine_address
from tests.keyed import bearer, make_key
from tests.ordinary_user import UID, host_command
from tests.processes import peak_mb
from tests.server import COMMAND, Server
from tests.tools import copy_tools

ATTACKERS: Final = 3
P95_RATIO: Final = 5.0
PEAK_MB: Final = 600
PAUSE_S: Final = 0.05
ATTACK_S: Final = 120.0  # seconds within which requests that are under way at the end must be answered
EVALUATORS: Final = 5
TRACES: Final = 2000
FAULTS: Final = re.compile("^(ERROR|Traceback)", re.MULTILINE)
LOGGED: Final = 3000  # number of characters of the log to show for each error, from its beginning
CODE: Final = "def evaluate(inputs, outputs, trace):\n    return inputs['x'] / 1000  # {number}\n"
GROUPS: Final = frozenset({Group.NEIGHBOURS, Group.CPU, Group.MEMORY})


@dataclass
class Calls:
    """The answers to the neighbour's calls in one phase, with or without attack."""

    seconds: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    # milliseconds that each part of a call took, by its name in `timing_ms`; `around` is the rest of the call
    parts: dict[str, list[float]] = field(default_factory=dict)

    def note(self, seconds: float, answer: httpx.Response) -> None:
        """Record how long an answer took, and the time of each part of the call."""
        self.seconds.append(seconds)
        timing = answer.json()["timing_ms"] if answer.is_success else {"total": 0.0}
        for name, value in {**timing, "around": 1000 * seconds - timing["total"]}.items():
            self.parts.setdefault(name, []).append(value)

    def report(self) -> dict[str, Any]:
        cuts = statistics.quantiles(self.seconds, n=20)
        parts = {name: round(statistics.quantiles(values, n=20)[-1], 1) for name, values in self.parts.items()}
        return {
            "calls": len(self.seconds),
            "p50_ms": round(1000 * statistics.median(self.seconds), 1),
            "p95_ms": round(1000 * cuts[-1], 1),
            "longest_ms": round(1000 * max(self.seconds), 1),
            "p95_of_parts_ms": parts,
            "answers": dict(self.answers),
        }


def neighbour(url: str, key: str, until: float) -> Calls:
    """Evaluate and request `/healthz` alternately until the given time; return the answers."""
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
                calls.note(time.perf_counter() - began, answer)
                right = answer.status_code == httpx.codes.OK and answer.json()["score"] == x / 1000
                calls.answers["right" if right else f"{answer.status_code}: {answer.text[:200]}"] += 1
                health = client.get("/healthz", timeout=5).status_code
                calls.answers["healthy" if health == httpx.codes.OK else f"healthz {health}"] += 1
            except httpx.HTTPError as error:
                calls.answers[repr(error)] += 1
            time.sleep(PAUSE_S)
    raise AssertionError("the loop above must end by itself")


def attack_together(
    url: str, key: str, begun: Event, stop: Event, seed: int, told: "SimpleQueue[Counter[str]]"
) -> None:
    """Attack from several threads until `stop` is set; then report how many times each attack was sent.

    This runs in a separate process, because making large bodies would delay the neighbour's measurements.
    """
    os.setsid()  # a separate session, so that the kernel does not count this process as part of the neighbour
    sent = Counter[str]()
    threads = [threading.Thread(target=attack, args=(url, key, begun, stop, seed + n, sent)) for n in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told.put(sent)


def attack(url: str, key: str, begun: Event, stop: Event, seed: int, sent: Counter[str]) -> None:
    """Send the attacks on the API and some hostile evaluators in a random order, again and again."""
    order = random.Random(seed)
    on_host: dict[str, Callable[[httpx.Client], None]] = {
        name: partial(send, requests=requests) for name, requests in load_requests().items()
    }
    on_host["traces that are never whole"] = send_traces
    hostile = {one.name: partial(evaluate, attack=one) for one in load_attacks() if one.safe and one.group in GROUPS}
    attacks = on_host | hostile
    begun.set()
    while not stop.is_set():
        names = [*on_host, *order.sample(sorted(hostile), len(on_host) // 2)]
        for name in order.sample(names, len(names)):
            if stop.is_set():
                return
            with httpx.Client(base_url=url, headers=bearer(key), timeout=30) as client:
                try:
                    attacks[name](client)
                    sent[name] += 1
                except httpx.HTTPError as error:
                    sent[f"{name}: {type(error).__name__}"] += 1


def evaluate(client: httpx.Client, attack: Attack) -> None:
    inputs = {"calm": False, "mark": "soak", "row": "row-0"}
    evaluator = {"code": attack.code, "language": attack.language, "limits": asdict(attack.limits)}
    client.post("/v1/evaluate", json={"evaluator": evaluator, "inputs": inputs})


def send_traces(client: httpx.Client) -> None:
    """Send many traces without their root, which never arrives."""
    client.post("/v1/evaluators?force=true", json={"name": "tr", "code": CODE})
    first = random.randrange(1 << 60)
    spans = [{"traceId": f"{first + n:032x}", "spanId": f"{n:016x}", "parentSpanId": "f" * 16} for n in range(TRACES)]
    client.post("/v1/evaluators/tr/traces", json={"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def send(
    client: httpx.Client,
    requests: tuple[AttackRequest, ...],
    *,
    follow: Callable[[httpx.Client, str], None] = lambda *_: None,
) -> None:
    """Send the requests of an attack; call `follow` with each job that a request marks as one to follow."""
    job = ""
    for request in requests:
        content, headers = request.encoded()
        path = request.path.format(job=job)
        if request.streams:
            watch(client, path, request.streams)
            continue
        for _ in range(request.times):
            answer = client.request(request.method, path, content=content, headers=headers)
            if path == "/v1/jobs" and request.method == "POST" and answer.is_success:
                job = answer.json()["id"]
                if request.follow:
                    follow(client, job)


def watch(client: httpx.Client, path: str, count: int) -> None:
    """Open many event streams at once, for a second."""
    answers = [client.send(client.build_request("GET", path), stream=True) for _ in range(count)]
    time.sleep(1)
    for answer in answers:
        answer.close()


@contextmanager
def attacked(url: str, key: str, seed: int) -> Iterator[Counter[str]]:
    """Attack during the block; afterwards, the yielded counter says how many times each attack was sent."""
    context = multiprocessing.get_context("spawn")
    begun, stop, told, sent = context.Event(), context.Event(), context.SimpleQueue(), Counter[str]()
    attackers = context.Process(target=attack_together, args=(url, key, begun, stop, seed, told), daemon=True)
    attackers.start()
    try:
        assert begun.wait(ATTACK_S), "the attackers did not begin"
        yield sent
    finally:
        stop.set()
        attackers.join(ATTACK_S)
        if not told.empty():
            sent.update(told.get())
        attackers.kill()


@contextmanager
def serving(
    folder: Path,
    index: str,
    *,
    backend: str,
    ordinary: bool,
    npm_registry: str | None = None,
    keys: tuple[str, str] | None = None,
) -> Iterator[tuple[Server, str, str]]:
    """Run a host, perhaps as an ordinary user; yield the host, and the keys of an attacker and its neighbour.

    Args:
      folder: Folder for the data directory and the log; with `keys`, an earlier host's folder is used again.
      index: Index for Python packages.
      backend: Backend of its sandboxes.
      ordinary: Whether the host runs as an ordinary user.
      npm_registry: Registry for npm packages.
      keys: Keys of a host that ran in this folder before.
    """
    data, url = folder / "data", f"sqlite:///{folder / 'data' / 'host.db'}"
    if keys is None:
        data.mkdir()
        folder.chmod(0o755)
        copy_tools(data)
        keys = (make_key("ci", "attacker", url=url), make_key("ci", "neighbour", url=url))
    environment = {
        "EVALUATOR_HOST_DATABASE_URL": url,
        "EVALUATOR_HOST_PIP_INDEX_URL": index,
        "EVALUATOR_HOST_NO_PROXY": "127.0.0.1",
        **({"EVALUATOR_HOST_NPM_REGISTRY": npm_registry} if npm_registry else {}),
        **({"EVALUATOR_HOST_DOCKER_HOST": engine_address()} if backend == "docker" else {}),
    }
    # the host gets a separate session, to which the kernel gives the same weight as to the sessions of its callers
    command = ["setsid", *COMMAND]
    if ordinary:
        for path in (data, *data.rglob("*")):
            os.chown(path, UID, UID)
        command = host_command(environment)
    server = Server(
        backend, log=folder / "log", data_dir=data, environment=environment, command=command, few_sandboxes=False
    )
    with server:
        yield server, *keys


def soak(
    folder: Path, *, minutes: float, backend: str = "bubblewrap", ordinary: bool = False, seed: int = 1
) -> dict[str, Any]:
    """Return the measured values (`quiet`, `attacked`, `p95_ratio`, `peak_mb`, `attacks`) and the faults (`wrong`)."""
    with package_index() as index, serving(folder, index, backend=backend, ordinary=ordinary) as (server, *keys):
        attacker, own = keys
        neighbour(server.url, own, time.monotonic() + 5)  # these calls only make the evaluators warm
        quiet = neighbour(server.url, own, time.monotonic() + 6 * minutes).report()
        with attacked(server.url, attacker, seed) as sent:
            busy = neighbour(server.url, own, time.monotonic() + 60 * minutes).report()
        most_mb = int(peak_mb(server.process.pid))
        code = server.stop()
    ratio = busy["p95_ms"] / quiet["p95_ms"]
    wrong = sorted(set(busy["answers"]) - {"right", "healthy"})
    wrong += [f"the host took {most_mb} MB"] if most_mb > PEAK_MB else []
    wrong += [f"the host ended with exit code {code}"] if code else []
    wrong += [server.log[found.start() : found.start() + LOGGED] for found in FAULTS.finditer(server.log)]
    return {
        "quiet": quiet, "attacked": busy, "p95_ratio": round(ratio, 2), "peak_mb": most_mb,
        "attacks": dict(sorted(sent.items())), "wrong": wrong,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--backend", choices=BACKENDS, default="bubblewrap")
    parser.add_argument("--ordinary", action="store_true", help="run the host as a user without rights")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with temporary_folder(None, "soak-") as folder:
        results = soak(folder, **vars(options))
    print(json.dumps(results, indent=2))
    faults = why(results)
    print(f"failed: {'; '.join(faults)}" if faults else "passed")
    return int(bool(faults))


def why(results: dict[str, Any]) -> list[str]:
    """Return the faults of a soak, each in one line; empty if it passed."""
    ratio = results["p95_ratio"]
    slow = [f"the neighbour's p95 is {ratio} x its quiet one, over {P95_RATIO:g}"] if ratio > P95_RATIO else []
    return [*(one.splitlines()[0] for one in results["wrong"]), *slow]


if __name__ == "__main__":
    sys.exit(main())

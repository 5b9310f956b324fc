"""`python -m tests.load.reproductions`: runs one attack on availability after another on one host, then restarts the
host.

    python -m tests.load.reproductions --backend docker
    python -m tests.load.reproductions --ordinary          # the host runs as a user without rights

The attacks are the selftest's attacks on the API and on neighbours, and the attacks below. During each attack, another
workspace (the neighbour) requests `/healthz` and calls new and known evaluators. The program prints as JSON how long
the neighbour waited, and how much processor time the host used during a wait, which shows a blocked event loop even on
a busy machine. It exits with 1 in each of these cases: the host used over a quarter of a second of processor time
during a wait; an answer to the neighbour was wrong; the host took over 600 MB, did not end well or did not start again;
the neighbour's package could not be built afterwards.
"""

import argparse
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from evaluator_host.engine.system.tree import temporary_folder
from evaluator_host.selftest.attack import Group
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_requests
from tests.attacks.test_builder_neighbours import LIES, manifest_of
from tests.conftest import BACKENDS
from tests.indexes import Index
from tests.keyed import bearer
from tests.load.soak import CODE, FAULTS, LOGGED, PEAK_MB, evaluate, send, send_traces, serving
from tests.packages import wheel
from tests.processes import peak_mb, restart_peak

HELD_S: Final = 0.25
ATTACK_S: Final = 60.0
# number of attempts; a busy machine may keep the neighbour from reading an answer although the host works
TRIES: Final = 2
ENDED: Final = ("completed", "failed", "cancelled", "paused")
ONE: Final = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
FORGED: Final = """
const fs = require("fs");
export function evaluate(inputs, outputs, trace) {
  const data = Buffer.alloc(40_000_000, "{},");
  for (let fd = 3; fd < 40; fd++) { try { fs.writeSync(fd, data); } catch {} }
  return 1;
}
"""


@dataclass
class Waits:
    """The neighbour's waits and wrong answers during one attack.

    Attributes:
      longest_s: Longest wait for `/healthz`, in seconds of clock time.
      held_s: Highest processor time of the host's first thread during such a wait.
      peak_mb: Highest memory of the host.
    """

    longest_s: float = 0.0
    held_s: float = 0.0
    peak_mb: int = 0
    calls: int = 0
    wrong: list[str] = field(default_factory=list)


def loop_s(pid: int) -> float:
    """Return the processor time of a process's first thread, which runs its event loop."""
    (first,) = (thread for thread in psutil.Process(pid).threads() if thread.id == pid)
    return first.user_time + first.system_time


@contextmanager
def neighbour(url: str, key: str, pid: int) -> Iterator[Waits]:
    """Request `/healthz` and evaluate as another workspace during the block."""
    waits, over = Waits(), threading.Event()

    def call() -> None:
        with httpx.Client(base_url=url, headers=bearer(key), timeout=120) as client:
            while not over.wait(0.1):
                began, before_s = time.monotonic(), loop_s(pid)
                health = client.get("/healthz").status_code
                waits.longest_s = max(waits.longest_s, time.monotonic() - began)
                waits.held_s = max(waits.held_s, loop_s(pid) - before_s)
                code = CODE.format(number=waits.calls % 7)
                answer = client.post("/v1/evaluate", json={"evaluator": {"code": code}, "inputs": {"x": 500}})
                waits.calls += 1
                if health != httpx.codes.OK or answer.status_code != httpx.codes.OK or answer.json()["score"] != 0.5:
                    waits.wrong.append(f"{health}, {answer.status_code}: {answer.text[:300]}")

    def told() -> None:
        try:
            call()
        except (httpx.HTTPError, OSError) as error:
            waits.wrong.append(repr(error))

    caller = threading.Thread(target=told)
    restart_peak(pid)
    caller.start()
    try:
        yield waits
    finally:
        over.set()
        caller.join()
        waits.peak_mb = int(peak_mb(pid))


def attacked(url: str, attack: Callable[[httpx.Client], None], *, attacker: str, own: str, pid: int) -> Waits:
    """Run one attack, and return the neighbour's waits during the attack."""
    with (
        neighbour(url, own, pid) as waits,
        httpx.Client(base_url=url, headers=bearer(attacker), timeout=ATTACK_S) as client,
    ):
        time.sleep(0.5)
        try:
            attack(client)
        except httpx.HTTPError as error:
            print(repr(error), file=sys.stderr)  # the attacker's errors do not count, only the neighbour's
    return waits


def follow(client: httpx.Client, job: str) -> None:
    """Wait until a job has ended, and read its results."""
    until = time.monotonic() + ATTACK_S
    while client.get(f"/v1/jobs/{job}").json().get("status") not in ENDED and time.monotonic() < until:
        time.sleep(0.1)
    for part in ("results", "rows?limit=1000&brief=true", "rows.jsonl"):
        client.get(f"/v1/jobs/{job}/{part}")


def large_batch(client: httpx.Client) -> None:
    """Send forty rows that return 15 MB each."""
    code = "def evaluate(i, o, t):\n    return {'score': 1, 'x': 'y' * 15_000_000}\n"
    evaluator = {"code": code, "limits": {"result_kb": 16384}}
    client.post("/v1/evaluate/batch", json={"evaluator": evaluator, "rows": [{"inputs": {}}] * 40})


def spans_of_a_row(client: httpx.Client) -> None:
    """Send a row with a trace of hundreds of thousands of spans."""
    spans = b",".join(b'{"spanId":"%x","name":"a"}' % number for number in range(400_000))
    trace = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + spans + b"]}]}]}"
    body = b'{"evaluator":{"code":' + json.dumps(ONE).encode() + b'},"trace":' + trace + b"}"
    client.post("/v1/evaluate", content=body, headers={"Content-Type": "application/json"})


def uploads_that_break_off(client: httpx.Client) -> None:
    """Begin 200 uploads, wait for some seconds, and close the connections."""
    head = (
        f"POST /v1/datasets?name=x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {client.headers['Authorization']}\r\n"
    )
    head += "Content-Type: text/csv\r\nContent-Length: 1000000\r\n\r\na"
    address = (client.base_url.host, client.base_url.port or 80)
    held = [socket.create_connection(address) for _ in range(200)]
    for one in held:
        one.sendall(head.encode())
    time.sleep(3)
    for one in held:
        one.close()


def lines_for_the_log(client: httpx.Client) -> None:
    """Send a trace with line breaks in its id, to forge lines of the log."""
    client.post("/v1/evaluators?force=true", json={"name": "gone", "code": ONE})
    forged = "x\nERROR evaluator_host.web.guard: forged\n\x1b[2J"
    spans = [{"traceId": forged, "spanId": "a" * 16}]
    client.post("/v1/evaluators/gone/traces", json={"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    client.delete("/v1/evaluators/gone")


def odd_numbers(client: httpx.Client) -> None:
    """Send requests with the largest and smallest numbers and times."""
    client.post("/v1/datasets?name=odd", content="a\n1\n", headers={"Content-Type": "text/csv"})
    client.get(f"/v1/datasets/odd/rows?first={2**60}")
    client.get("/v1/jobs?before=9999-12-31T23:59:59-14:00")
    client.get("/v1/info")


def garbage_frames(client: httpx.Client) -> None:
    """Let a row write 40 MB to each descriptor of its runner."""
    limits = {"result_kb": 1024, "memory_mb": 1024, "timeout_s": 20}
    evaluator = {"code": FORGED, "language": "javascript", "limits": limits}
    client.post("/v1/evaluate", json={"evaluator": evaluator})


def package(client: httpx.Client, pin: str, language: str = "python") -> None:
    """Let the host install a hostile package."""
    name = pin.partition("=")[0].partition("@")[0]
    code = {
        "python": f"import {name}\n{ONE}",
        "javascript": f"import '{name}';\nexport function evaluate() {{ return 1; }}",
    }
    client.post("/v1/evaluate", json={"evaluator": {"code": code[language], "language": language, "packages": [pin]}})


OWN: Final[dict[str, Callable[[httpx.Client], None]]] = {
    "batch-of-large-results": large_batch,
    "spans-of-a-row": spans_of_a_row,
    "traces-without-a-root": send_traces,
    "uploads-that-break-off": uploads_that_break_off,
    "lines-for-the-log": lines_for_the_log,
    "odd-numbers": odd_numbers,
    "garbage-frames": garbage_frames,
    "package-of-many-modules": partial(package, pin="many==1.0.0"),
    "package-that-lies": partial(package, pin="lies==1.0.0"),
    "package-of-nested-json": partial(package, pin="deepjson@1.0.0", language="javascript"),
    "package-of-large-json": partial(package, pin="bigjson@1.0.0", language="javascript"),
    "package-of-nested-folders": partial(package, pin="selftest_nested==1.0.0"),
}


def reproductions() -> dict[str, Callable[[httpx.Client], None]]:
    """Return every attack by its name, as a function that runs it."""
    on_host = {name: partial(send, requests=requests, follow=follow) for name, requests in load_requests().items()}
    hostile = {
        one.name: partial(evaluate, attack=one) for one in load_attacks() if one.safe and one.group is Group.NEIGHBOURS
    }
    return {**on_host, **hostile, **OWN}


def publish(index: Index) -> None:
    """Offer the hostile packages, and an honest package."""
    index.add_python(wheel("selftest_nested", {"selftest_nested.py": "", "d/" * 1500 + "x.txt": ""}))
    index.add_python(wheel("many", {"many.py": "", **{f"m{number:06d}.py": "" for number in range(6_000)}}))
    index.add_python(wheel("lies", {"lies.py": LIES}))
    index.add_npm(manifest_of("deepjson", "[" * 20_000 + "]" * 20_000))
    index.add_npm(manifest_of("bigjson", "[" + "{}," * 4_000_000 + "0]"))
    index.add_python(wheel("honest", {"honest.py": "value = 0.5\n"}))


def reproduce(
    folder: Path, *, backend: str = "bubblewrap", ordinary: bool = False, only: list[str] | None = None
) -> dict[str, Any]:
    """Run the attacks; return `attacks` (the neighbour's waits and the host's memory, by attack) and `wrong`."""
    attacks = {name: one for name, one in reproductions().items() if not only or name in only}
    found: dict[str, Waits] = {}
    with Index() as index:
        publish(index)
        options: Any = {"backend": backend, "ordinary": ordinary, "npm_registry": index.npm_url}
        with serving(folder, index.pip_url, **options) as (server, attacker, own):
            pid = server.process.pid
            for name, attack in attacks.items():
                for _ in range(TRIES):
                    found[name] = attacked(server.url, attack, attacker=attacker, own=own, pid=pid)
                    print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
                    if found[name].held_s <= HELD_S:
                        break
            code = server.stop()
            wrong = [f"the host ended with exit code {code}"] if code else []
            wrong += [server.log[at.start() : at.start() + LOGGED] for at in FAULTS.finditer(server.log)]
        with serving(folder, index.pip_url, **options, keys=(attacker, own)) as (server, _, own):
            evaluator = {"code": f"import honest\n{ONE.replace('1.0', 'honest.value')}", "packages": ["honest==1.0.0"]}
            answer = httpx.post(
                f"{server.url}/v1/evaluate", json={"evaluator": evaluator}, headers=bearer(own), timeout=120
            )
            if answer.json().get("score") != 0.5:
                wrong.append(f"the neighbour's package after a restart: {answer.status_code} {answer.text[:300]}")
    for name, waits in found.items():
        wrong += [f"{name}: the host took {waits.peak_mb} MB"] if waits.peak_mb > PEAK_MB else []
        wrong += [f"{name}: {one}" for one in waits.wrong]
        wrong += [f"{name}: /healthz waited for {waits.held_s:.2f} s of the host"] if waits.held_s > HELD_S else []
    table = {
        name: {
            "longest_s": round(one.longest_s, 2),
            "held_s": round(one.held_s, 2),
            "peak_mb": one.peak_mb,
            "calls": one.calls,
        }
        for name, one in found.items()
    }
    return {"attacks": table, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=BACKENDS, default="bubblewrap")
    parser.add_argument("--ordinary", action="store_true", help="run the host as a user without rights")
    parser.add_argument(
        "--only",
        action="append",
        choices=sorted(reproductions()),
        help="run only this attack; can be given several times",
    )
    with temporary_folder(None, "reproductions-") as folder:
        results = reproduce(folder, **vars(parser.parse_args()))
    print(json.dumps(results, indent=2))
    return int(bool(results["wrong"]))


if __name__ == "__main__":
    sys.exit(main())

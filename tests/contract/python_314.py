"""Evaluators and attacks that use `concurrent.interpreters`, for a host with Python 3.14. This file also runs on
machines without the package `tests`.
"""

import asyncio
import json
import sys
from typing import Any

from evaluator_host.engine.config.settings import SandboxChoice, SandboxStart, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.runner import attack_deployment
from evaluator_host.types.evaluator import Evaluator, Limits, Row

LIMITS = Limits(timeout_s=20.0, memory_mb=512, processes=64)
FILES = {
    "own/helpers.py": "def double(x):\n    return 2 * x\n\ndef put(queue, value):\n    queue.put(value)\n\ndef fail():\n    raise ValueError('mine')\n"
}
TOP = """
import subprocess
from concurrent import interpreters
from concurrent.futures import InterpreterPoolExecutor

import joblib, own.helpers

MADE = interpreters.create()

def square(x):
    return x * x
"""
BODIES = {
    "exec": ("queue = interpreters.create_queue()\nmade = interpreters.create()\nmade.prepare_main(queue=queue)\nmade.exec('import joblib; from evaluator import square; from own.helpers import double; queue.put((joblib.__version__, double(4), square(3)))')\ngot = queue.get(timeout=5)\nmade.close()\nreturn got", ["1.4.2", 8, 9]),
    "call": ("return interpreters.create().call(square, 5)", 25),
    "call of an own module": ("return interpreters.create().call(own.helpers.double, 5)", 10),
    "one made at load": ("return MADE.call(square, 3)", 9),
    "in a thread": ("queue = interpreters.create_queue()\nmade = interpreters.create()\nmade.call_in_thread(own.helpers.put, queue, 7).join()\nreturn queue.get(timeout=5)", 7),
    "a pool": ("with InterpreterPoolExecutor(2) as pool:\n    return list(pool.map(square, [1, 2, 3]))", [1, 4, 9]),
    "an exception": ("try:\n    interpreters.create().call(own.helpers.fail)\nexcept interpreters.ExecutionFailed as failed:\n    return str(failed).splitlines()[0]", "ValueError: mine"),
    "in a child": ("return subprocess.run(['python3', '-c', 'from concurrent import interpreters; interpreters.create().exec(\"import joblib, own.helpers; print(own.helpers.double(3))\")'], capture_output=True, text=True).stdout", "6\n"),
}  # fmt: skip
ATTACKS = {
    "forged-frames-of-an-interpreter", "interpreter-for-the-next-row", "interpreter-of-loading", "loop-in-an-interpreter",
    "many-busy-interpreters", "subinterpreters",
}  # fmt: skip
EXPECTED = [
    {name: expected for name, (_, expected) in BODIES.items()},
    {"host": [], **{name: ["stopped"] for name in ATTACKS}},
]


def program() -> str:
    """Return an evaluator that runs a case in `BODIES`; its row names the case."""
    cases = "".join(
        f"def case_{number}():\n" + "".join(f"    {line}\n" for line in body.split("\n"))
        for number, (body, _) in enumerate(BODIES.values())
    )
    return f"{TOP}\n{cases}\ndef evaluate(inputs, outputs, trace):\n    return {{'score': 1, 'got': globals()[f'case_{{inputs[\"case\"]}}']()}}\n"


async def results(settings: Settings) -> dict[str, Any]:
    """Return the host's result for each case: the value, or the error as text."""
    evaluator = Evaluator(program(), packages=("joblib==1.4.2",), files=FILES, limits=LIMITS)
    found = {}
    async with open_engine(settings) as opened:
        for number, name in enumerate(BODIES):
            result = await opened.evaluate(evaluator, Row({"case": number}))
            found[name] = result.value["got"] if isinstance(result.value, dict) else str(result.error)
    return found


async def verdicts(settings: Settings) -> dict[str, list[str]]:
    """Return the verdict and the problems of each attack with interpreters on a host."""
    made = await attack_deployment(settings, [one for one in load_attacks() if one.name in ATTACKS], at_once=2)
    return {"host": list(made.host), **{one.attack.name: [one.verdict, *one.problems] for one in made.results}}


async def both(settings: Settings) -> list[Any]:
    return [await results(settings), await verdicts(settings)]


if __name__ == "__main__":
    chosen = Settings(sandbox=SandboxChoice.BUBBLEWRAP, sandbox_start=SandboxStart(sys.argv[1]))
    print(json.dumps(asyncio.run(both(chosen))))

"""Measures what a call over a wire costs, compared with the host's own route and with the platform's executor that it
replaces. A wire is a route that answers in another platform's format.

Blocks of calls of both kinds alternate, and the processor time of the host and all its sandboxes is compared.
"""

import http.client
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.tenants import processor_s
from tests.differential.packages import PROGRAMS, real_python
from tests.wires.real_clients import npm_home

BLOCK, BLOCKS = 20, 12
_LANGFUSE = (
    "def evaluate(ctx):\n    return {'scores': [{'name': 'n', 'value': float(ctx.observation.output == '4')}]}\n"
)
_SEEN = {"observation": {"input": "2+2?", "output": "4", "metadata": {}, "toolCalls": []}, "experiment": None}
_OPIK = (
    "from opik.evaluation.metrics import base_metric, score_result\n\n"
    "class Equals(base_metric.BaseMetric):\n    def __init__(self, name: str = 'equals'):\n"
    "        super().__init__(name=name, track=False)\n\n    def score(self, output, reference, **ignored):\n"
    "        return score_result.ScoreResult(value=float(output == reference), name=self.name)\n"
)
_DATA = {"output": "Paris", "reference": "Paris"}
_GRADE = "def grade(sample, item):\n    return float(sample['output_text'] == item['wanted'])\n"
_MAIN = "def main(completion, target):\n    return {'score': float(completion == target)}\n"
_EXACT = "def evaluate(inputs, outputs, trace):\n    return float(outputs == inputs['correct_answer'])\n"
_SCRIPT = "print('{\"score\": 1.0}')\n"


@dataclass(frozen=True, slots=True)
class Pair:
    """A call over a wire, and a call over the host's own route that does the same work."""

    path: str
    body: dict[str, Any]
    own_path: str
    own_body: dict[str, Any]


def _evaluate(code: str, contract: str, variables: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "/v1/evaluate", {"evaluator": {"code": code, "contract": contract}, "variables": variables}


def pairs(port: int) -> dict[str, Pair]:
    """Store on the host the objects that its wires need, and return a pair for each wire."""
    _ask(port, "/v1/evaluators", {"name": "bench", "code": _EXACT})
    sandbox = _ask(port, "/wires/daytona/api/sandbox", {"labels": {"code-toolbox-language": "python"}})
    row = {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}
    dispatch = {
        "scope": {"organizationId": "o", "projectId": "p", "evaluatorId": "e"}, "runtime": {"language": "PYTHON"},
        "execution": {"jobExecutionId": "j"}, "code": {"source": _LANGFUSE}, "payload": {"observation": _SEEN["observation"]},
    }  # fmt: skip
    grader = {
        "grader": {"type": "python", "name": "g", "source": _GRADE},
        "model_sample": "Paris",
        "item": {"wanted": "Paris"},
    }
    sample = {"sample": {"output_text": "Paris", "choices": [], "output_tools": []}, "item": {"wanted": "Paris"}}
    values = [{"type": "STRING", "name": name, "value": "a"} for name in ("completion", "target")]
    vellum = {"code": _MAIN, "runtime": "PYTHON_3_11_6", "input_values": values, "output_type": "JSON", "packages": []}
    laminar = {"definition": {"function_code": "def main(output):\n    return 1.0\n"}, "input": "Paris"}
    script = ("/v1/run", {"code": _SCRIPT})
    return {
        "langfuse": Pair("/wires/langfuse", dispatch, *_evaluate(_LANGFUSE, "langfuse", _SEEN)),
        "opik": Pair("/wires/opik/v1/private/evaluators/python", {"code": _OPIK, "data": _DATA},
                     *_evaluate(_OPIK, "opik", {"data": _DATA})),
        "openai": Pair("/wires/openai/v1/fine_tuning/alpha/graders/run", grader, *_evaluate(_GRADE, "openai-grader", sample)),
        "vellum": Pair("/wires/vellum/v1/execute-code", vellum, *_evaluate(_MAIN, "main", {"completion": "a", "target": "a"})),
        "webhook": Pair("/hooks/bench", row, "/v1/evaluate", {"evaluator": "bench", **row}),
        "coze": Pair("/wires/coze/run_code", {"language": "python", "code": _SCRIPT, "timeout": 5000}, *script),
        "daytona": Pair(f"/wires/daytona/toolbox/{sandbox['id']}/process/code-run", {"code": _SCRIPT}, *script),
        "laminar": Pair("/wires/laminar", laminar, "/v1/evaluate", {"evaluator": {"code": _EXACT, "contract": "evaluate"}, **row}),
    }  # fmt: skip


def overhead_ms(port: int, pid: int, pair: Pair) -> tuple[float, float]:
    """Return how many milliseconds of processor time a call takes over a wire, and over the host's own route."""
    spent = {pair.path: 0.0, pair.own_path: 0.0}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for number in range(BLOCKS + 1):  # the first block is not warm
            for path, body in ((pair.path, pair.body), (pair.own_path, pair.own_body)):
                content, began = json.dumps(body), processor_s(pid)
                for _ in range(BLOCK):
                    _send(connection, path, content)
                spent[path] += processor_s(pid) - began if number else 0.0
    calls = BLOCK * BLOCKS / 1000
    return spent[pair.path] / calls, spent[pair.own_path] / calls


_WORKER = """
import json, sys, inspect
from opik.evaluation.metrics import BaseMetric
for line in sys.stdin:
    asked = json.loads(line)
    scope = {"__name__": "metric"}
    exec(asked["code"], scope)
    metric = next(one for one in scope.values() if inspect.isclass(one) and issubclass(one, BaseMetric) and one.__module__ == "metric")
    found = metric().score(**asked["data"])
    print(json.dumps({"value": found.value}), flush=True)
"""


def opik_ms(port: int) -> tuple[float, float]:
    """Measure alternately how many ms a metric takes over the wire, and in a waiting process with Opik's package."""
    command = [str(real_python(PROGRAMS / "opik.txt")), "-W", "ignore", "-c", _WORKER]
    asked = {"code": _OPIK, "data": _DATA}
    return _beside_a_process(command, asked, port, "/wires/opik/v1/private/evaluators/python", asked)


_LANGFUSE_TYPESCRIPT = "function evaluate(ctx: any) {\n  return { scores: [{ name: 'n', value: Number(ctx.observation.output === '4') }] };\n}\n"
_IN_PROCESS = """
import { stripTypeScriptTypes } from "node:module";
import { createInterface } from "node:readline";
import vm from "node:vm";
for await (const line of createInterface({ input: process.stdin })) {
  const { code, payload } = JSON.parse(line);
  const context = vm.createContext({ payload });
  vm.runInContext(stripTypeScriptTypes(code), context, { timeout: 5000 });
  console.log(JSON.stringify(await vm.runInContext("evaluate(payload)", context, { timeout: 5000 })));
}
"""


def langfuse_ms(port: int, folder: Path) -> tuple[float, float]:
    """Measure alternately how many ms a TypeScript evaluator takes over the wire, and when Langfuse's `insecure-local`
    runs it.

    `insecure-local` uses `node:vm` in the process of Langfuse's worker, without a sandbox and only for TypeScript. The
    worker cannot be installed as a package, so a short program in Node stands in for it.
    """
    from tests.probe import NODE  # noqa: PLC0415 - finds Node

    program = folder / "local.mjs"
    program.write_text(_IN_PROCESS)
    asked = {"code": _LANGFUSE_TYPESCRIPT, "payload": {"observation": _SEEN["observation"]}}
    body = {
        "scope": {"organizationId": "o", "projectId": "p", "evaluatorId": "e"}, "runtime": {"language": "TYPESCRIPT"},
        "execution": {"jobExecutionId": "j"}, "code": {"source": _LANGFUSE_TYPESCRIPT}, "payload": asked["payload"],
    }  # fmt: skip
    return _beside_a_process([str(NODE), "--no-warnings", str(program)], asked, port, "/wires/langfuse", body)


def _beside_a_process(
    command: list[str], asked: dict[str, Any], port: int, path: str, body: dict[str, Any], rounds: int = 60
) -> tuple[float, float]:
    """Measure alternately how many ms a call over a wire takes, and how many ms a process takes to answer a line."""
    line = json.dumps(asked) + "\n"
    quiet = {**os.environ, "OPIK_TRACK_DISABLE": "true"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=quiet) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        stdin, stdout = worker.stdin, worker.stdout

        def theirs() -> None:
            stdin.write(line)
            stdin.flush()
            assert "1" in stdout.readline()

        theirs()  # the first call imports its modules, which takes longer than a server keeps an unused connection
        with _wire(port, path, body) as ours:
            found = _in_turns(ours, theirs, rounds)
        worker.stdin.close()
    return found


_PROMPTFOO = """
import promptfoo from "promptfoo";
const [url, file, rounds] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const asked = { ours: { type: "webhook", value: url }, theirs: { type: "python", value: `file://${file}` } };
const taken = { ours: [], theirs: [] };
for (let n = 0; n < rounds; n++) {
  for (const [name, assertion] of Object.entries(asked)) {
    const began = performance.now();
    const { pass, reason } = await promptfoo.assertions.runAssertion({ assertion, test: { vars: { correct_answer: "Paris" } }, prompt: "p", providerResponse: { output: "Paris" } });
    if (!pass) throw new Error(reason);
    taken[name].push(performance.now() - began);
  }
}
const p50 = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];
console.log(JSON.stringify([p50(taken.ours), p50(taken.theirs)]));
process.exit(0);
"""


def promptfoo_ms(port: int, folder: Path, rounds: int = 10) -> tuple[float, float]:
    """Measure alternately how many ms promptfoo's webhook assertion and promptfoo's own Python assertion take."""
    from tests.probe import NODE  # noqa: PLC0415 - finds Node

    (folder / "assertion.py").write_text(
        "def get_assert(output, context):\n    return output == context['vars']['correct_answer']\n"
    )
    home = npm_home("promptfoo")
    program = home / "bench.mjs"
    program.write_text(_PROMPTFOO)
    quiet = {
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    asked = [str(NODE), str(program), f"http://127.0.0.1:{port}/hooks/bench", str(folder / "assertion.py"), str(rounds)]
    done = subprocess.run(asked, cwd=home, env=quiet, capture_output=True, text=True, timeout=300, check=True)
    ours, theirs = json.loads(done.stdout)
    return float(ours), float(theirs)


def _in_turns(ours: Callable[[], None], theirs: Callable[[], None], rounds: int) -> tuple[float, float]:
    taken: list[list[float]] = [[], []]
    for number in range(rounds + 3):
        for call, kept in zip((ours, theirs), taken, strict=True):
            began = time.perf_counter()
            call()
            if number >= 3:
                kept.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken[0]), statistics.median(taken[1])


@contextmanager
def _wire(port: int, path: str, body: dict[str, Any]) -> Iterator[Callable[[], None]]:
    content = json.dumps(body)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        yield lambda: _send(connection, path, content)


def _ask(port: int, path: str, body: dict[str, Any]) -> Any:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status in (200, 201, 409), answer.read()
        return json.loads(answer.read())


def _send(connection: http.client.HTTPConnection, path: str, content: str) -> None:
    connection.request("POST", path, content, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, (path, text[:500])

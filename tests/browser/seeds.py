"""Records for the tests of pages: evaluators, data sets, jobs and traces, some of them with hostile names and text."""

import json
import time
from dataclasses import dataclass
from typing import Any, Final

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation, Language

MARKUP: Final = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
"""Markup that must be shown as plain text wherever it appears."""

LENGTH = """
def evaluate(inputs, outputs, trace):
    if outputs is None:
        raise ValueError(f"row {inputs['n']} has no output {inputs['mark']}")
    if outputs == "1/0":
        return 1 / 0
    share = (len(outputs) % 11) / 10
    return {"score": share, "passed": share >= 0.5, "words": len(outputs.split()), "reason": f"{len(outputs)} letters of {outputs}"}
"""
LATER = LENGTH.replace("% 11) / 10", "% 7) / 6").replace("has no output", "lacks an output")
MANY: Final = 2000


@dataclass(frozen=True)
class Seeds:
    """Ids of jobs. `before` has many rows; `after` has the first third of these rows; `small` has traces and markup."""

    before: str
    after: str
    small: str


def many_rows(many: int) -> list[dict[str, Any]]:
    """Return this many rows. A tenth of the rows have no output, and a few have another fault."""
    outputs: list[str | None] = [None, "1/0"] + ["word " * (n % 9) + "x" * (n % 13) for n in range(2, many)]
    for n in range(0, many, 10):
        outputs[n] = None
    return [{"n": n, "mark": MARKUP, "question": f"question {n}", "answer": outputs[n]} for n in range(many)]


def trace_of(n: int) -> dict[str, Any]:
    """Return a trace with a root span, a failed step below the root, and a model call below the step."""

    def span(name: str, start: float, end: float, children: list[Any], **more: Any) -> dict[str, Any]:
        unit = {"duration": {"total": end - start}, **more}
        times = {"start_time": f"2026-03-01T10:00:0{start:.3f}Z", "end_time": f"2026-03-01T10:00:0{end:.3f}Z"}
        status = "ERROR" if "retrieve" in name else "OK"
        attributes = {"ag": {"metrics": {"unit": unit}}, "note": MARKUP}
        return {"name": name, **times, "status_code": status, "attributes": attributes, "children": children}

    chat = span("chat", 0.5, 1.75, [], tokens={"total": 500 + n}, costs={"total": 0.0021})
    root = span("answer", 0.0, 2.0, [span(f"retrieve {MARKUP}", 0.1, 0.4, []), span("generate", 0.45, 1.9, [chat])])
    return {"spans": {"a1": root}}


def otlp(n: int) -> dict[str, Any]:
    """Return an OTLP export with one trace of two spans; `n` is the number of the trace."""
    begin = 1_770_000_000_000_000_000 + n
    span = {"traceId": f"{n + 1:032x}", "name": f"request {MARKUP}", "startTimeUnixNano": str(begin)}
    root = {**span, "spanId": f"{n * 2 + 1:016x}", "endTimeUnixNano": str(begin + 2_000_000_000)}
    child = {**span, "spanId": f"{n * 2 + 2:016x}", "parentSpanId": root["spanId"], "name": "chat"}
    child["endTimeUnixNano"] = str(begin + 1_200_000_000)
    return {"resourceSpans": [{"scopeSpans": [{"spans": [root, child]}]}]}


def sow(client: Client, many: int = MANY) -> Seeds:
    """Store all records, wait until the host has them, and return the ids of the jobs among them.

    Args:
      many: Number of rows of the largest job.
    """
    client.evaluators.create("length", Evaluator(LENGTH, threshold=0.5), description=f"Counts letters {MARKUP}")
    client.evaluators.update("length", Evaluator(LATER, threshold=0.6))
    client.evaluators.create("latency", Evaluator("def evaluate(i, o, trace):\n    return len(trace['spans']) / 2\n"))
    lodash = "import _ from 'lodash';\nexport const evaluate = (i, o, t) => (_.isEmpty(i) ? 0 : 1);\n"
    client.evaluators.create("full", Evaluator(lodash, language=Language.JAVASCRIPT, packages=("lodash@4.17.21",)))
    client.evaluators.create("broken", Evaluator("def evaluate(inputs, outputs, trace:\n    return 1\n"), force=True)
    client.datasets.upload("many", many_rows(many))
    mapping = {"outputs": "answer"}
    jobs = [
        client.jobs.create([version], "many", mapping=mapping, isolation=Isolation.BATCH, limit_samples=rows)
        for version, rows in (("length@1", many), ("length@2", many // 3))
    ]
    rows = [{"inputs": {"n": n, "mark": MARKUP}, "outputs": f"{MARKUP} {n}", "trace": trace_of(n)} for n in range(12)]
    small = client.jobs.create(["length", "latency", "full"], rows)
    for n in range(3):
        client._transport.http.post("/v1/evaluators/latency/traces", json=otlp(n)).raise_for_status()
    ended = [client.jobs.wait(job.id).id for job in (*jobs, small)]
    until = time.monotonic() + 60
    while len(client.evaluators.traces("latency")) < 3 and time.monotonic() < until:
        time.sleep(0.2)
    return Seeds(*ended)


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as the content of a file with JSON lines."""
    return "\n".join(json.dumps(row) for row in rows).encode()

"""Programs as evaluators: the exit code of a program is the score, and its output is the log."""

from functools import partial

from evaluator_host.types.evaluator import Contract, Language, Row
from tests.dialects.cases import NativeCase

RUN = Row(variables={"argv": ["a", "b"], "env": {"WHO": "me"}, "stdin": "in\n"})
EXITS = {"native": [{"exit_code": 0}], "score": 1.0, "passed": True}

case = partial(NativeCase, row=RUN, contract=Contract.SCRIPT, recognised=Contract.SCRIPT)
javascript = partial(case, language=Language.JAVASCRIPT)
typescript = partial(case, language=Language.TYPESCRIPT)


def left(code: int) -> dict[str, object]:
    """Return the object that is stored for a program that ends with this exit code."""
    return {
        "native": [{"exit_code": code}],
        "score": 0.0,
        "passed": False,
        "metrics": {"score": 0.0, "exit_code": code},
    }


CASES = [
    case(
        id="arguments, environment, input and the name",
        code="""
            import os
            import sys
            assert (sys.argv[1:], os.environ["WHO"], sys.stdin.read(), __name__) == (["a", "b"], "me", "in\\n", "__main__")
        """,
        **EXITS,
    ),
    case(id="an exit code", code="raise SystemExit(3)", **left(3)),
    case(id="a text as exit code", code="import sys\nsys.exit('no')", **left(1)),
    case(id="an exception", code="{}['x']", **left(1)),
    case(id="a syntax error", code="x = (", **left(1)),
    case(id="a thread is waited for", code="import threading, os\nthreading.Timer(0.05, lambda: os._exit(7)).start()", status="failed", error="crashed"),
    case(id="dataclasses and recursion find their module", code="import dataclasses\n@dataclasses.dataclass\nclass A:\n    n: int\ndef f(n): return n and f(n - 1)\nassert f(3) == 0 and A(1).n == 1", **EXITS),
    case(id="a program of the row", row=Row(variables={"code": "raise SystemExit(4)"}), code="raise SystemExit(3)", **left(4)),
    case(
        id="a row in the host's form becomes the input",
        row=Row({"a": 1}, "out"),
        code='import json, sys\nassert json.load(sys.stdin) == {"inputs": {"a": 1}, "outputs": "out", "trace": None}',
        **EXITS,
    ),
    case(id="variables of another kind", row=Row(variables={"args": []}), code="pass", status="failed", error="binding_error", message="argv"),
    case(id="argv that is not text", row=Row(variables={"argv": [1]}), code="pass", status="failed", error="binding_error"),
    javascript(
        id="JavaScript: arguments, environment and a timer",
        code="""
            const right = process.env.WHO === 'me' && process.argv.slice(2).join() === 'a,b';
            setTimeout(() => { process.exitCode = right ? 0 : 9; }, 20);
        """,
        **EXITS,
    ),
    javascript(id="JavaScript: an exit code", code="process.exitCode = 5;", **left(5)),
    javascript(id="JavaScript: a promise that nobody awaits", code="(async () => { await new Promise((r) => setTimeout(r, 5)); process.exitCode = 6; })();", **left(6)),
    javascript(id="JavaScript: a module", code="import { basename } from 'node:path';\nif (basename('/a/b') !== 'b') throw new Error('no');", **EXITS),
    javascript(id="JavaScript: process.exit is an exit code", code="process.exit(3);", **left(3)),
    javascript(id="JavaScript: a module with the row", code="import { readFileSync } from 'node:fs';\nif (readFileSync(0, 'utf8') !== 'in\\n' || process.env.WHO !== 'me') throw new Error('no');", **EXITS),
    javascript(
        id="JavaScript: a row in the host's form becomes the input",
        row=Row({"a": 1}, "out"),
        code="const row = JSON.parse(require('fs').readFileSync(0));\nif (row.outputs !== 'out') process.exitCode = 2;",
        **EXITS,
    ),
    javascript(id="JavaScript throws", code="const a = 1;\nthrow new Error('no');", status="failed", error="user_exception", line=2),
    typescript(id="TypeScript", code="const n: number = await Promise.resolve(1);\nif (n !== 1) throw new Error('no');", **EXITS),
]  # fmt: skip

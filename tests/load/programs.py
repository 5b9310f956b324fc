"""The programs that callers send in the load test: some return the number that they get, and the others are hostile."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Program:
    """One evaluator.

    Attributes:
      errors: Error codes; the answer must have one of them. Empty for a program that scores the row's number.
      limits: Limits that the request sets for the program.
    """

    name: str
    code: str
    language: str = "python"
    errors: frozenset[str] = frozenset()
    limits: Mapping[str, float] = field(default_factory=dict)

    def body(self, number: int, *, variant: int) -> dict[str, Any]:
        """Return the body of a request; different variants of a program share no sandbox."""
        comment = "#" if self.language == "python" else "//"
        evaluator = {
            "code": f"{self.code}\n{comment} {variant}\n",
            "language": self.language,
            "limits": dict(self.limits),
        }
        return {"evaluator": evaluator, "inputs": {"number": number}, "outputs": str(number)}

    def fault(self, number: int, answer: Mapping[str, Any]) -> str | None:
        """Return a description of the fault in an answer with status 200, or None."""
        code = (answer.get("error") or {}).get("code")
        right = code in self.errors if self.errors else answer.get("score") == number
        return None if right else f"{self.name}({number}): score {answer.get('score')}, error {answer.get('error')}"


def _python(body: str) -> str:
    return f"import os, sys, time\ndef evaluate(inputs, outputs, trace):\n    {body}\n"


def _javascript(body: str) -> str:
    return f"function evaluate(inputs, outputs, trace) {{ {body} }}"


def _hostile(name: str, code: str, errors: str, *, language: str = "python", **limits: float) -> Program:
    # on such a busy machine, the program may not reach the limit within a second
    allowed = {"timeout", *errors.split()}
    return Program(name, code, language, frozenset(allowed), {"timeout_s": 1.0, **limits})


GOOD = (
    Program("python", _python("return inputs['number']")),
    Program("python that works", _python("return sum(range(20000)) * 0 + inputs['number']")),
    Program("python that prints", _python("print('x' * 100000); return inputs['number']")),
    Program("javascript", _javascript("return inputs.number"), "javascript"),
    Program(
        "typescript",
        "export function evaluate(inputs: {number: number}, outputs: unknown, trace: unknown): number { return inputs.number }",
        "typescript",
    ),
)
HOSTILE = (
    _hostile("loop", _python("while True: pass"), "timeout", timeout_s=0.5),
    _hostile("sleep", _python("time.sleep(600)"), "timeout"),
    _hostile("fork bomb", _python("while True: os.fork()"), "process_limit user_exception crashed"),
    _hostile("memory", _python("x = bytearray(1 << 40)"), "memory_limit", memory_mb=128),
    _hostile("memory by pieces", _python("x = [bytes(1 << 20) for _ in range(1000)]"), "memory_limit", memory_mb=128),
    _hostile("flood", _python("while True: os.write(1, b'x' * 65536)"), "timeout"),
    _hostile("flood of errors", _python("while True: os.write(2, b'\\xff' * 65536)"), "timeout"),
    _hostile("crash", _python("os.kill(os.getpid(), 11)"), "crashed"),
    _hostile("exit", _python("os._exit(0)"), "crashed"),
    # if the runner is process 1 (with Docker and with a template), the kernel protects the runner; the row then
    # continues and returns None
    _hostile(
        "kill everything",
        _python("os.kill(-1, 9); return inputs['number'] if open('/proc/1/comm').read() == 'bwrap\\n' else None"),
        "crashed invalid_result",
    ),
    _hostile("raise", _python("raise ValueError('no')"), "user_exception"),
    _hostile("every descriptor", _python("[os.write(n, b'{}' * 9) for n in range(3, 99)]"), "user_exception crashed"),
    _hostile("no syntax", "def evaluate(", "syntax_error"),
    _hostile("load that exits", "import os\nos._exit(0)\n", "crashed load_error"),
    _hostile("javascript loop", _javascript("for (;;) {}"), "timeout", language="javascript"),
    _hostile(
        "javascript heap",
        _javascript("const x = []; for (;;) x.push(new Array(1e5).fill(x.length + Math.random()))"),
        "memory_limit",
        language="javascript",
    ),
    _hostile("javascript exit", _javascript("process.exit(0)"), "crashed user_exception", language="javascript"),
)

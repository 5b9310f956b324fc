"""`policy: restricted` takes ordinary evaluators and says where one goes beyond it."""

from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import body

ORDINARY = """
from __future__ import annotations
from typing import Dict, Any
from dataclasses import dataclass
import collections, json, math, re, statistics

LIMIT: int = 1

@dataclass
class Part:
    a: float
    b: int = 2

    def total(self) -> float:
        return self.a + self.b

class Counted(Part):
    def __init__(self, value):
        super().__init__(value)
        self.seen = 0
        self.seen += 1

def evaluate(inputs: Dict[str, Any], outputs: Any, trace) -> Dict[str, Any]:
    counts = collections.defaultdict(int)
    counts["a"] += 1
    a, (b, c) = 1, (2, 3)
    for key, (value, _) in {"k": (1, 2)}.items():
        a += value
    total = 0
    def add():
        nonlocal total
        total += 1
    add()
    match outputs:
        case {"x": x}:
            total += x
        case _:
            total = -1
    try:
        1 / 0
    except ZeroDivisionError as error:
        print("caught", error, sep=": ")
    words = sorted({w for w in re.findall(r"\\w+", "b a")})
    text = "{}-{item[k]:>3}".format(a, item={"k": c})
    return {"score": Counted(1).total() / 3, "total": total, "words": words, "text": text,
            "any": any(w == "a" for w in words), "mean": statistics.mean([min(1, 2), max(1, 2)]),
            "attr": hasattr(outputs, "nothing"), "json": json.loads("[1]"), "name": f"{math.pi:.2f}"}
"""


def test_ordinary_evaluator(start: Any, restricted_dir: Path) -> None:
    runner = start("--restricted", str(restricted_dir))
    frame = runner.load(ORDINARY, policy="restricted")
    assert frame.type == "loaded", body(frame)
    frame = runner.call({}, {"x": 5}, None)
    assert body(frame)["value"] == {
        "score": 1.0, "total": 6, "words": ["a", "b"], "text": "2-  3", "any": True, "mean": 1.5, "attr": False,
        "json": [1], "name": "3.14",
    }  # fmt: skip
    assert frame.header["logs"]["stdout"] == "caught: division by zero\n"


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("import os", 3),
        ("import subprocess", 3),
        ("from statistics import sys", 3),
        ("import statistics; statistics.sys", 3),
        ("import operator; operator.attrgetter('__class__')", 3),
        ("().__class__", 3),
        ("getattr((), '__class__')", 3),
        ("'{0.__class__}'.format(1)", 3),
        ("'{x.__class__}'.format_map({'x': 1})", 3),
        ("open('/etc/passwd')", 3),
        ("eval('1')", 3),
        ("exec('1')", 3),
        ("import math; math.pi = 3", 3),
        ("(lambda: 1).__globals__", 3),
        ("(i for i in []).gi_frame", 3),
    ],
)
@pytest.mark.parametrize("contract", ["evaluate", "main"])
def test_violations_name_their_line(start: Any, restricted_dir: Path, statement: str, line: int, contract: str) -> None:
    runner = start("--restricted", str(restricted_dir))
    head = "def main():" if contract == "main" else "def evaluate(inputs, outputs, trace):"
    frame = runner.load(f"{head}\n    x = 1\n    {statement}\n    return x\n", policy="restricted")
    if frame.type == "loaded":
        frame = runner.call_named({}) if contract == "main" else runner.call({}, 1, None)
    error = body(frame)["error"]
    assert (error["code"], error["line"]) == ("policy_violation", line)


def test_pinned_packages_may_be_imported(start: Any, restricted_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "pinned_one.py").write_text("import os\nVALUE = 0.5\n")
    runner = start("--restricted", str(restricted_dir), "--packages", str(tmp_path))
    code = "import pinned_one\ndef evaluate(a, b, c):\n    return pinned_one.os if b else pinned_one.VALUE\n"
    assert runner.load(code, policy="restricted").type == "loaded"
    assert body(runner.call({}, False, None))["value"] == 0.5
    assert body(runner.call({}, True, None))["error"]["code"] == "policy_violation"


def test_syntax_errors_stay_syntax_errors(start: Any, restricted_dir: Path) -> None:
    frame = start("--restricted", str(restricted_dir)).load("def evaluate(a, b, c:\n    pass\n", policy="restricted")
    assert (body(frame)["error"]["code"], body(frame)["error"]["line"]) == ("syntax_error", 1)


def test_policy_without_restrictedpython_is_refused(start: Any) -> None:
    frame = start().load("def evaluate(a, b, c): return 1\n", policy="restricted")
    assert body(frame)["error"]["code"] == "load_error"

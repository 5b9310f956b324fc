"""The runner restores indentation that code has lost. If there is more than one way, the user chooses; and no text
makes the search slow.
"""

import ast
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from evaluator_runner.repair import find_fix

from tests.runners.conftest import RunnerProcess, body

ROOT = Path(__file__).resolve().parents[3]
AGENTA = ("exact_match", "latency_check", "token_budget")
PROGRAMS = ROOT / "tests" / "fixtures" / "flattened"


def flattened(code: str) -> str:
    return "\n".join(line.strip() for line in code.split("\n"))


def loaded(code: str) -> dict[str, Any]:
    fix = find_fix(flattened(code))
    assert fix is not None
    return fix


@pytest.mark.parametrize("name", AGENTA)
def test_an_example_of_agentas_document_is_fixed_to_what_it_was(name: str) -> None:
    code = (PROGRAMS / f"{name}.py").read_text()
    fix = find_fix(flattened(code))
    assert fix is not None
    assert (fix["unique"], fix["candidates"]) == (True, [])
    assert fix["code"] == code
    assert "-if outputs" in fix["diff"] or "-if not trace" in fix["diff"]


PROGRAMS_FIXED = [
    (
        'def f(x):\n    """Return it.\n\n    As it is.\n    """\n    try:\n        return g(x)\n    except (KeyError, ValueError):\n'
        "        return None\n\nLIMIT = 3\n\nclass C:\n    name: str = 'a'\n\n    def m(self):\n        return self.name\n"
    ),
    (
        "def best(words):\n    found = 0\n    for word in words:\n        if word in KNOWN:\n            found += 1\n"
        "    return found / len(words)\n\nKNOWN = {'a'}\n"
    ),
    (
        "import functools\n\ndef kept(call):\n    @functools.wraps(call)\n    def inner(*args):\n        return call(*args)\n"
        "    return inner\n"
    ),
    "def kind(value):\n    match value:\n        case int():\n            return 'int'\n        case _:\n            return 'other'\n",
    (
        'def text(a):\n    s = """one\ntwo"""\n    t = f"""{a}\nthree"""\n    # a remark\n    return s + t + ("x"\n        "y") + \\\n'
        '        "z"\n'
    ),
    "async def evaluate(inputs, outputs, trace):\n    if inputs: return 1\n    else:\n        return await ask(outputs)\n",
]


@pytest.mark.parametrize("code", PROGRAMS_FIXED)
def test_a_program_of_which_one_structure_keeps_the_rules(code: str) -> None:
    fix = loaded(code)
    assert fix["unique"], fix["candidates"]
    assert fix["code"] == code


def test_two_structures_are_shown_and_none_is_chosen() -> None:
    fix = loaded("def f(xs):\n    n = 0\n    for x in xs:\n        n += x\n        n += 1\n    return n\n")
    assert (fix["unique"], fix["code"], fix["diff"]) == (False, None, None)
    inside, after = (one["code"].split("\n")[4] for one in fix["candidates"])
    assert {inside, after} == {"        n += 1", "    n += 1"}


@pytest.mark.parametrize(
    "code",
    [
        "def f(:\nreturn 1\n",
        "def f():\n    return 1\n  x = 2\n",
        "function f() {\nreturn 1\n}\n",
        "if x:\n",
        "x = (1\n",
        "@deco\n",
        "else:\nx\n",
    ],
)
def test_a_fault_that_indentation_does_not_explain_has_no_fix(code: str) -> None:
    assert find_fix(code) is None


def functions() -> Iterator[str]:
    """Yield the source of functions in this project; its modules come in a random order."""
    modules = (ROOT / "evaluator_host").rglob("*.py")
    for file in sorted(modules, key=lambda file: drawn(str(file.relative_to(ROOT)))):
        text = file.read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and 5 <= (node.end_lineno or 0) - node.lineno <= 40:
                yield "\n".join(text.split("\n")[node.lineno - 1 : node.end_lineno]) + "\n"


def drawn(path: str) -> bytes:
    """Return a sort key for a random order that hardly changes when modules are added or removed."""
    return hashlib.sha256(path.encode()).digest()


@pytest.mark.slow
def test_functions_are_right_or_ambiguous_and_none_is_wrong() -> None:
    counts: Counter[str] = Counter()
    for code in islice(functions(), 120):
        fix = find_fix(flattened(code))
        if fix is None or not fix["unique"]:
            counts["open"] += 1
        else:
            counts["right" if ast.dump(ast.parse(fix["code"])) == ast.dump(ast.parse(_plain(code))) else "wrong"] += 1
    assert counts["wrong"] == 0, counts
    assert counts["right"] >= 60, counts


def _plain(code: str) -> str:
    """Return a function's code as it can be restored from text without indentation. The lines of docstrings stay
    without indentation.
    """
    fix = find_fix(flattened(code))
    assert fix is not None
    ours, theirs = ast.parse(fix["code"]), ast.parse(code)
    for one, other in zip(ast.walk(ours), ast.walk(theirs), strict=False):
        if isinstance(one, ast.Constant) and isinstance(other, ast.Constant) and isinstance(one.value, str):
            other.value = one.value
    return ast.unparse(theirs)


def hostile() -> Iterator[str]:
    yield "for x in y:\nz()\n" * 500
    yield "if x:\ny()\n" * 1000
    yield "if x:\n" * 3000 + "y()\n"
    yield "x\n" * 1900
    yield "def f():\n" * 90 + "return 1\n" * 90
    yield "try:\nx()\nexcept E:\ny()\n" * 300 + "return 1\n"
    yield (
        "def f(a):\n"
        + "".join(f"if a:\nv{n} = {n}\n" for n in range(400))
        + "return "
        + "+".join(f"v{n}" for n in range(400))
    )
    yield "class A:\nx: int\ndef f(self):\ny = 1\n" * 300
    yield "x = " + "(" * 5000
    yield "while True:\nif a:\nbreak\nelse:\nb()\n" * 200 + "nonsense nonsense\n"
    randomly = random.Random(3)
    lines = [
        "if a:",
        "for b in c:",
        "d = e",
        "return d",
        "else:",
        "def f(g):",
        "try:",
        "except H:",
        "break",
        "with i as j:",
        "class K:",
        "yield d",
    ]
    for _ in range(60):
        yield "\n".join(randomly.choices(lines, k=randomly.choice((10, 40, 400))))


@pytest.mark.long
@pytest.mark.slow
def test_no_text_keeps_the_search_busy() -> None:
    slowest = 0.0
    for code in hostile():
        started = time.process_time()
        fix = find_fix(code)
        slowest = max(slowest, time.process_time() - started)
        assert len(json.dumps(fix)) < 1 << 20
        for one in () if fix is None else ([fix] if fix["unique"] else fix["candidates"]):
            compile(one["code"], "fixed", "exec")
    assert slowest < 20


def test_the_runner_gives_the_fix_and_runs_it_when_told(runner: RunnerProcess) -> None:
    code = flattened((PROGRAMS / "exact_match.py").read_text())
    failed = runner.load(code)
    error = body(failed)["error"]
    assert (failed.type, error["code"], error["line"]) == ("load_failed", "syntax_error", 9)
    assert error["fix"]["unique"]
    assert "settings.repair" in error["hint"]
    frame = runner.load(code, repair=True)
    assert frame.type == "loaded", body(frame)
    assert [note["code"] for note in frame.header["notes"]] == ["repaired"]

"""When the runner loads code, it reports facts about the code, or a failure with its line in the user's code."""

import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import LIMITS, RunnerProcess, body

EVALUATE = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"


def test_hello_and_loaded(runner: RunnerProcess) -> None:
    assert runner.hello.header["type"] == "hello"
    assert runner.hello.header["protocol"] == 1
    assert runner.hello.header["language"] == "python"
    frame = runner.load("print('loading')\n" + EVALUATE)
    header = frame.header
    assert frame.type == "loaded"
    assert header["id"] == "load"
    assert (header["contract"], header["contract_source"], header["entry"]) == ("evaluate", "inferred", "evaluate")
    assert header["reason"] == "function evaluate with 3 parameters"
    assert header["parameters"] == ["inputs", "outputs", "trace"]
    assert header["notes"] == []
    assert header["logs"] == {"stdout": "loading\n", "stderr": "", "truncated": False}
    loaded = body(frame)
    assert [fact["name"] for fact in loaded.pop("facts")] == ["evaluate"]
    assert loaded == {"missing_imports": [], "bundle": None, "reads": []}


def failure(runner: RunnerProcess, code: str, **header: Any) -> dict[str, Any]:
    frame = runner.load(code, **header)
    assert frame.type == "load_failed", frame
    return dict(body(frame)["error"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "error", "kind", "line", "column"),
    [
        ("def evaluate(a, b, c:\n    return 1\n", "syntax_error", "SyntaxError", 1, 13),
        ("x = 1\n  y = 2\n", "syntax_error", "IndentationError", 2, None),
        ("x = 'é' + (\n", "syntax_error", "SyntaxError", 1, 11),
        ("x = 1\0\n", "syntax_error", None, None, None),
        ("x = 1\n\ny = 1 / 0\n", "load_error", "ZeroDivisionError", 3, 5),
        ("import sys\nsys.exit(3)\n", "load_error", "SystemExit", 2, 1),
        ("exit()\n", "load_error", "SystemExit", 1, 1),
        ("import not_there_at_all\n", "load_error", "ModuleNotFoundError", 1, 1),
        ("raise KeyboardInterrupt\n", "load_error", "KeyboardInterrupt", 1, 1),
        ("x = bytearray(10**12)\n", "memory_limit", "MemoryError", 1, 5),
        ("import os\nos._exit(0)\n", "crashed", None, None, None),
        ("import os, signal\nos.kill(os.getpid(), 11)\n", "crashed", None, None, None),
        ("x = 1\n", "entry_not_found", None, None, None),
    ],
)
def test_load_failures(
    runner: RunnerProcess, code: str, error: str, kind: str | None, line: int | None, column: int | None
) -> None:
    found = failure(runner, code)
    assert found["code"] == error
    if kind is not None:
        assert (found["type"], found["line"]) == (kind, line)
        assert column in {None, found["column"]}
    assert found["message"]


@pytest.mark.slow
def test_every_deep_expression_is_a_syntax_error_or_a_crash(start: Any) -> None:
    for code in ("(" * 5000 + ")" * 5000, "x = " + "-" * 200_000 + "1", "x = " + "[" * 100_000, "a" + ".b" * 100_000):
        assert failure(start(), code)["code"] in {"syntax_error", "crashed", "memory_limit"}


def test_a_load_is_cancelled(runner: RunnerProcess, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    code = f"print('so far', flush=True)\nopen({str(begun)!r}, 'w').close()\nwhile True: pass\n"
    runner.send(
        {"type": "load", "id": "load", "language": "python", "limits": LIMITS, "contract": "auto", "entry": None}
        | {"policy": "none", "timeout_s": 100, "check": False},
        {"code": code, "bundle": None},
    )
    runner.send({"type": "cancel", "id": "another"})
    while not begun.exists():
        time.sleep(0.02)
    runner.send({"type": "cancel", "id": "load"})
    answer = runner.receive()
    assert (answer.type, body(answer)["error"]["code"]) == ("load_failed", "cancelled")
    assert answer.header["logs"]["stdout"] == "so far\n"


def test_load_timeout_leaves_nothing(runner: RunnerProcess) -> None:
    found = failure(runner, "print('so far', flush=True)\nwhile True: pass\n", timeout_s=0.3)
    assert found["code"] == "timeout"
    assert "0.3 s" in found["message"]
    assert runner.end() == 0


def test_load_failure_keeps_logs(runner: RunnerProcess) -> None:
    frame = runner.load("print('so far')\nraise ValueError('no')\n")
    assert frame.header["logs"]["stdout"] == "so far\n"
    assert body(frame)["error"]["message"] == "no"


def test_exit_hint_and_import_hint(start: Any) -> None:
    error = failure(start(), "import sys\nsys.exit(3)\n")
    assert error["message"] == "sys.exit(3) was called at module level"
    assert "module level" in error["hint"]
    assert "packages" in failure(start(), "import numpy_not_here\n")["hint"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("function evaluate(inputs, outputs, trace) { return 1 }", "language"),
        ("export default async function (i, o) { return 1 }", "language"),
        ("// a comment\nconst evaluate = (inputs, outputs) => 1", "language"),
        ('import * as _ from "lodash"\nx', "language"),
        ("interface Row {\n  a: string\n}", "language"),
        ("return outputs == inputs['x']", "def evaluate(inputs, outputs, trace)"),
        ("1.0 if outputs == 'x' else 0.0", "def evaluate(inputs, outputs, trace)"),
        ("def evaluate(i, o, t):\nreturn 1", "indentation"),
        (">>> def evaluate(i, o, t):\n...     return 1", "prompts"),
        ("def evaluate(i, o, t):\n    return o == \u201cParis\u201d", "quotes"),
    ],
)
def test_a_paste_that_went_wrong_gets_a_hint(runner: RunnerProcess, code: str, hint: str) -> None:
    assert hint in failure(runner, code)["hint"]


@pytest.mark.parametrize(
    "code", ["def evaluate(i, o, t):\n    return (\n", "let = 1\nconst = 2 +\n", "import a, b from c"]
)
def test_plain_python_is_not_taken_for_another_language(runner: RunnerProcess, code: str) -> None:
    assert failure(runner, code)["hint"] is None


def test_the_hint_of_a_slow_load_names_no_limit_of_the_evaluator(runner: RunnerProcess) -> None:
    assert "module level" in failure(runner, "while True: pass", timeout_s=0.2)["hint"]


def test_missing_imports_are_listed_on_check(start: Any) -> None:
    code = (
        "from typing import TYPE_CHECKING\nimport json, os.path\n"
        "if TYPE_CHECKING:\n    import only_for_types\nelse:\n    import not_for_types_x\n" + EVALUATE
    )
    frame = start().load("try:\n    import aaa_missing.sub\nexcept ImportError:\n    pass\n" + EVALUATE, check=True)
    found = {"module": "aaa_missing", "line": 2, "names": ["sub"], "path": "aaa_missing/sub.py"}
    assert body(frame)["missing_imports"] == [found]
    frame = start().load(code, check=True)
    assert frame.type == "load_failed"
    assert body(frame)["error"]["type"] == "ModuleNotFoundError"
    assert body(frame)["missing_imports"] == [{"module": "not_for_types_x", "line": 6}]
    lazily = "def evaluate(a, b, c):\n    from bbb_missing import x\n    return x\n"
    assert body(start().load(lazily, check=True))["missing_imports"] == [
        {"module": "bbb_missing", "line": 2, "names": ["x"]}
    ]
    assert body(start().load(lazily))["missing_imports"] == []


def test_a_missing_import_says_what_the_code_reads_of_it(start: Any) -> None:
    code = (
        "import aa_missing as a, bb_missing.deep\nfrom cc_missing.part import One, Two as T\n"
        "from google.dd_missing import three\nfrom google import ee_missing\n"
        "def evaluate(b, c, d):\n    bb_missing.deep.four(b.five)\n    return a.six.seven(a.eight), ee_missing, a\n"
    )
    frame = start().load(code, check=True)
    found = {one["module"]: one.get("names") for one in body(frame)["missing_imports"]}
    assert found == {
        "aa_missing": ["six.seven", "eight"],
        "bb_missing": ["deep", "deep.four"],
        "cc_missing": ["part.One", "part.Two"],
        "google.dd_missing": ["three"],
        "google.ee_missing": None,
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "optional"),
    [
        ("try:\n    import aa_missing\nexcept ImportError:\n    aa_missing = None\n", True),
        ("try:\n    import aa_missing as x\nexcept ImportError:\n    import json as x\n", True),
        ("try:\n    from aa_missing import x\nexcept ImportError:\n    there = False\n", False),
        ("def f():\n    try:\n        import aa_missing\n    except ImportError:\n        return 0\n", False),
        ("try:\n    import json\n    import aa_missing\nexcept ImportError:\n    json = None\n", False),
    ],
)
def test_an_import_that_the_code_has_another_value_for_is_optional(start: Any, code: str, optional: bool) -> None:
    (found,) = body(start().load(code + EVALUATE, check=True))["missing_imports"]
    assert found.get("optional", False) is optional


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("def never():\n" + "".join(f"    import missing_{n}\n" for n in range(8000)), 100),
        ("x0 = []\n" + "".join(f"x{n + 1} = list(x{n})\n" for n in range(1500)), 0),
    ],
    ids=["imports", "statements"],
)
def test_the_time_of_a_check_grows_with_the_length_of_the_code(start: Any, code: str, missing: int) -> None:
    frame = start().load(code + EVALUATE.replace("return", "x0; return"), check=True)
    assert (frame.type, len(body(frame)["missing_imports"])) == ("loaded", missing)


def test_source_forms(start: Any) -> None:
    future = "from __future__ import annotations\nresult = params = inputs = trace = outputs = 0\n"
    shebang = "#!/usr/bin/env python3\n\n\n"
    for code in (future + EVALUATE, shebang + EVALUATE, EVALUATE.replace("\n", "\r\n"), EVALUATE.replace("    ", "\t")):
        runner = start()
        assert runner.load(code).type == "loaded"
        assert body(runner.call({}, 1, None))["value"] == 1.0


def test_main_block_does_not_run(runner: RunnerProcess) -> None:
    code = "if __name__ == '__main__':\n    raise SystemExit('ran')\n" + EVALUATE.replace("1.0", "__name__")
    assert runner.load(code).type == "loaded"
    assert body(runner.call({}, 1, None))["value"] == "evaluator"


def test_module_is_registered(runner: RunnerProcess) -> None:
    code = """
import dataclasses, inspect, pickle, typing

@dataclasses.dataclass
class Score:
    value: "float"

def evaluate(inputs, outputs, trace):
    assert typing.get_type_hints(Score)["value"] is float
    assert "def evaluate" in inspect.getsource(evaluate)
    return pickle.loads(pickle.dumps(Score(0.5))).value
"""
    assert runner.load(code).type == "loaded"
    assert body(runner.call({}, 1, None)).get("value") == 0.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "contract", "noted"),
    [
        ("def main(a):\n    return {'score': json.loads(a)}\n", "main", ["json"]),
        (
            "def evaluate(p, i, o, c):\n    return math.floor(re.match('1', o) is not None)\n",
            "evaluate-v1",
            ["math", "re"],
        ),
        (
            "PATTERN = re.compile('1')\ndef main(a):\n    return {'score': 1 if PATTERN.match(a) else 0}\n",
            "main",
            ["re"],
        ),
        ("import json\ndef main(a):\n    return {'score': json.loads(a)}\n", "main", []),
        ("json = None\ndef main(a):\n    return {'score': 1 if json is None else 0}\n", "main", []),
        ("def main(a):\n    import json\n    return {'score': json.loads(a)}\n", "main", []),
    ],
)
def test_prebound_names(runner: RunnerProcess, code: str, contract: str, noted: list[str]) -> None:
    frame = runner.load(code)
    assert frame.header["contract"] == contract
    expected = [{"code": "prebound", "message": f"used without import: {', '.join(noted)}"}] if noted else []
    assert frame.header["notes"] == expected
    frame = runner.call_named({"a": "1"}) if contract == "main" else runner.call({}, {}, "1", "1")
    assert body(frame).get("value") in ({"score": 1}, 1)


@pytest.mark.parametrize(
    "code", ["def evaluate(a, b, c):\n    return json.loads(b)\n", "evaluate = lambda a, b, c: json.loads(b)\n"]
)
def test_new_contract_has_no_prebound_names(runner: RunnerProcess, code: str) -> None:
    assert runner.load(code).header["notes"] == []
    error = body(runner.call({}, "1", None))["error"]
    assert (error["code"], error["type"]) == ("user_exception", "NameError")
    assert "import json" in error["hint"]


def test_packages_directory(start: Any, tmp_path: Any) -> None:
    (tmp_path / "pinned_pkg").mkdir()
    (tmp_path / "pinned_pkg" / "__init__.py").write_text("VALUE = 0.25\n")
    (tmp_path / "json.py").write_text("VALUE = 'shadowed'\n")
    runner = start("--packages", str(tmp_path))
    code = "import pinned_pkg, json\ndef evaluate(a, b, c):\n    return pinned_pkg.VALUE if json.loads('1') else 0\n"
    assert body(runner.load(code, check=True))["missing_imports"] == []
    assert body(runner.call({}, 1, None))["value"] == 0.25


def test_threads_at_load_make_rows_load_again(runner: RunnerProcess) -> None:
    code = """
import threading, time, os
COUNT = [0]
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("loading")
def evaluate(inputs, outputs, trace):
    COUNT[0] += 1
    print("row")
    return [COUNT[0], threading.active_count()]
"""
    frame = runner.load(code)
    assert [note["code"] for note in frame.header["notes"]] == ["threads_at_load"]
    assert frame.header["logs"]["stdout"] == "loading\n"
    for _ in range(3):
        frame = runner.call({}, 1, None)
        assert body(frame)["value"] == [1, 2]
        assert frame.header["logs"]["stdout"] == "row\n"
    runner.post({"args": [{}, 1, None]}, share="x")
    runner.post({"args": [{}, 1, None]}, share="x")
    assert [body(runner.receive())["value"][0] for _ in range(2)] == [1, 2]


def test_files_at_load_are_the_same_for_every_row(runner: RunnerProcess) -> None:
    code = """
import os
open("made_at_load", "w").write("x")
def evaluate(inputs, outputs, trace):
    found = sorted(os.listdir("."))
    open("made_by_row", "w").write("x")
    open("made_at_load", "a").write("x")
    return [found, os.path.getsize("made_at_load")]
"""
    assert [note["code"] for note in runner.load(code).header["notes"]] == ["files_at_load"]
    for _ in range(3):
        assert body(runner.call({}, 1, None))["value"] == [["made_at_load"], 2]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("made", "used", "note"),
    [
        ("import mmap; made = mmap.mmap(-1, 4096)", "made[0] += 1; seen = made[0]", "memory_at_load"),
        ("import multiprocessing; made = multiprocessing.RawValue('i')", "made.value += 1; seen = made.value", "memory_at_load"),
        ("import tempfile; made = tempfile.TemporaryFile()", "made.write(b'x'); seen = made.tell()", "descriptors_at_load"),
        ("import os; made = os.pipe()", "os.write(made[1], b'x'); seen = len(os.read(made[0], 9))", "descriptors_at_load"),
        ("import os; made = os.eventfd(0)", "os.eventfd_write(made, 1); seen = os.eventfd_read(made)", "descriptors_at_load"),
        ("import socket; made = socket.socketpair()", "made[0].send(b'x'); seen = len(made[1].recv(9))", "descriptors_at_load"),
        ("made = open('/etc/passwd')", "made.read(1); seen = made.tell()", "descriptors_at_load"),
        ("import os; made = os.dup2(os.open('/etc/passwd', os.O_RDONLY), 0)",
         "os.read(0, 1); seen = os.lseek(0, 0, 1)", "descriptors_at_load"),
        ("made = [open('/etc/passwd') for _ in range(3)]; import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))",
         "seen = made[0].read(1) and made[0].tell()", "descriptors_at_load"),
    ],
)  # fmt: skip
def test_resources_that_forked_rows_would_share_make_rows_load_again(
    runner: RunnerProcess, made: str, used: str, note: str
) -> None:
    code = f"import os\n{made}\ndef evaluate(inputs, outputs, trace):\n    {used}\n    return [seen, os.getpid()]\n"
    assert [one["code"] for one in runner.load(code).header["notes"]] == [note]
    (first, one), (second, other) = (body(runner.call({}, 1, None))["value"] for _ in range(2))
    assert first == second == 1
    assert one != other


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "made",
    [
        "open('/dev/urandom', 'rb'); keep = [open('/dev/null'), open('/dev/urandom', 'rb')]",
        "import mmap; file = open('/etc/passwd', 'rb'); keep = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)",
        "import mmap; keep = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)",
        "import asyncio; asyncio.run(asyncio.sleep(0))",
        "import numpy, pandas, pydantic",
        "import numpy; numpy.random.default_rng().random(); numpy.linalg.inv(numpy.eye(300))",
    ],
)
def test_resources_without_state_do_not_make_rows_load_again(start: Any, made: str) -> None:
    pandas = importlib.util.find_spec("pandas")
    runner = start("--packages", str(Path(pandas.origin).parents[1]))
    assert runner.load(f"{made}\ndef evaluate(a, b, c): return 1\n").header["notes"] == []


INTERPRETERS = """
try:
    import _interpreters as own
except ImportError:  # until Python 3.12
    import _xxsubinterpreters as own
run = getattr(own, "exec", None) or own.run_string
"""


def test_an_interpreter_made_at_load_works_in_each_row(runner: RunnerProcess) -> None:
    code = f"""
import os
{INTERPRETERS}
MADE = own.create()
def evaluate(inputs, outputs, trace):
    reader, writer = os.pipe()
    failed = run(MADE, f"import os; seen = globals().get('seen', 0) + 1; os.write({{writer}}, b'%d' % seen)")
    return str(failed or os.read(reader, 9))
"""
    frame = runner.load(code)
    assert [(note["code"], note["message"].partition(",")[0]) for note in frame.header["notes"]] == [
        ("threads_at_load", "loading the code left interpreters behind")
    ]
    assert [body(runner.call({}, 1, None))["value"] for _ in range(2)] == ["b'1'", "b'1'"]


def test_an_interpreter_that_loading_destroyed_leaves_rows_forked(runner: RunnerProcess) -> None:
    code = f"{INTERPRETERS}\nown.destroy(own.create())\ndef evaluate(a, b, c): return 1\n"
    assert runner.load(code).header["notes"] == []
    assert body(runner.call({}, 1, None))["value"] == 1


def test_an_interpreter_finds_own_files_at_load(runner: RunnerProcess) -> None:
    code = f"""
import os
{INTERPRETERS}
reader, writer = os.pipe()
made = own.create()
failed = run(made, f"import os; from own_file import X; os.write({{writer}}, X)")
FOUND = failed or os.read(reader, 9)
own.destroy(made); os.close(reader); os.close(writer)
def evaluate(inputs, outputs, trace):
    return str(FOUND)
"""
    assert runner.load(code, body={"files": {"own_file.py": "X = b'found'"}}).header["notes"] == []
    assert body(runner.call({}, 1, None))["value"] == "b'found'"


def test_daemon_at_load_does_not_meet_two_rows(runner: RunnerProcess) -> None:
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
os.wait()
def evaluate(inputs, outputs, trace):
    parent = open(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read().split()
    return [pid for pid in parent if pid != str(os.getpid())]
"""
    assert [note["code"] for note in runner.load(code).header["notes"]] == ["threads_at_load"]
    first, second = (body(runner.call({}, 1, None))["value"] for _ in range(2))
    assert len(first) == len(second) == 1
    assert first != second


def test_settings_of_the_interpreter_made_at_load_hold_for_rows(runner: RunnerProcess) -> None:
    code = "import sys\nsys.setrecursionlimit(5000)\ndef f(n): return n and f(n - 1)\n"
    code += "def evaluate(a, b, c): return [f(3000), sys.getrecursionlimit(), sys.argv]\n"
    runner.load(code)
    for _ in range(2):
        assert body(runner.call({}, 1, None))["value"] == [0, 5000, ["evaluator.py"]]

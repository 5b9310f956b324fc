"""Processes that an evaluator starts can import the evaluator's packages and modules, and find the interpreter under
its usual names.
"""

import json

import pytest

from evaluator_host.engine.config.settings import SandboxStart
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.commands import SHELL_TOOLS
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.outcome import ErrorCode
from tests.conftest import settings
from tests.python_versions import MINORS
from tests.starts import service_of_each_start

JOBLIB = ("joblib==1.4.2",)
LIMITS = Limits(timeout_s=20.0, memory_mb=1024, processes=64)
TOP = """
import multiprocessing, os, subprocess, sys
from concurrent.futures import ProcessPoolExecutor

import own.helpers

def square(x):
    return x * x

def put(queue, value):
    queue.put(value)

def child(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    return done.stdout.strip() or done.stderr

def subinterpreted(code):
    try:
        import _interpreters as own
    except ImportError:  # until Python 3.12
        import _xxsubinterpreters as own
    reader, writer = os.pipe()
    interpreter = own.create()
    run = getattr(own, "exec", None) or own.run_string
    failed = run(interpreter, f"writer = {writer}" + code)
    own.destroy(interpreter)
    return str(failed) if failed else os.read(reader, 1000).decode()
"""
SUBINTERPRETED = """
import os, joblib
from evaluator import square
from own.helpers import double
os.write(writer, f"{joblib.__version__} {double(4)} {square(3)}".encode())
"""
FILES = {"own/helpers.py": "def double(x):\n    return 2 * x\n", "own/data.txt": "three"}


def pool(start: str, function: str) -> str:
    return (
        f"with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('{start}')) as pool:\n"
        f"    return list(pool.map({function}, [1, 2, 3]))"
    )


BODIES = {
    "the running Python by its path": ("return child(sys.executable, '-c', 'import joblib; print(joblib.__name__)')", "joblib"),
    "python3": ("return child('python3', '-c', 'import joblib; print(joblib.__version__)')", "1.4.2"),
    "python": ("return child('python', '-c', 'print(6 * 7)')", "42"),
    "a child of a child": ("return child('python3', '-c', 'import subprocess; print(subprocess.run([\"python3\", \"-c\", \"import joblib; print(1)\"], capture_output=True, text=True).stdout)')", "1"),
    "a module of the standard library first": ("return child('python3', '-c', 'import json; print(json.dumps(1))')", "1"),
    "its own modules, run in their folder": ("return child('python3', '-c', 'from own.helpers import double; print(double(4))')", "8"),
    "a script that it wrote": ("open('/tmp/answer.py', 'w').write('import joblib, own.helpers; print(own.helpers.double(5))')\nreturn child('python3', 'answer.py', cwd='/tmp')", "10"),
    "a line of the shell": ("return child(\"printf 'b\\na\\n' | sort | head -1 && test -d /tmp\", shell=True)", "a"),
    "a Python of the shell's": ("return child('sh', '-c', 'python3 -c \"import joblib; print(joblib.__version__)\"')", "1.4.2"),
    "bash and env by their paths": ("return child('/usr/bin/env', 'bash', '-c', 'echo ${1:-x}{1,2}')", "x1 x2"),
    "nothing on standard error": ("return subprocess.run(['python3', '-c', ''], capture_output=True, text=True).stderr", ""),
    "spawn": ("queue = multiprocessing.get_context('spawn').Queue()\nchild = multiprocessing.get_context('spawn').Process(target=put, args=(queue, 2))\nchild.start()\nvalue = queue.get(timeout=15)\nchild.join()\nreturn str(value)", "2"),
    "a pool by spawn": (pool("spawn", "square"), [1, 4, 9]),
    "a pool by forkserver": (pool("forkserver", "square"), [1, 4, 9]),
    "a pool by fork": (pool("fork", "square"), [1, 4, 9]),
    "a pool on functions of an own module": (pool("spawn", "own.helpers.double"), [2, 4, 6]),
    "a subinterpreter": (f"return subinterpreted({SUBINTERPRETED!r})", "1.4.2 8 9"),
    "joblib": ("from joblib import Parallel, delayed\nreturn Parallel(n_jobs=2)(delayed(square)(x) for x in (1, 2, 3))", [1, 4, 9]),
    "joblib on an own module": ("from joblib import Parallel, delayed\nreturn Parallel(n_jobs=2)(delayed(own.helpers.double)(x) for x in (1, 2))", [2, 4]),
}  # fmt: skip


def program(*, imported_at_load: bool) -> str:
    bodies = "".join(
        f"def case_{number}():\n" + "".join(f"    {line}\n" for line in body.split("\n"))
        for number, (body, _) in enumerate(BODIES.values())
    )
    at_load = "import joblib, multiprocessing.spawn\ntry: import _interpreters\nexcept ImportError: import _xxsubinterpreters\n"
    top = TOP + (at_load if imported_at_load else "")
    call = "def evaluate(inputs, outputs, trace):\n    return {'score': 1, 'got': globals()[f'case_{inputs[\"case\"]}']()}\n"
    return f"{top}\n{bodies}\n{call}"


service = service_of_each_start()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("at_load", [False, True], ids=["pools in a row", "pools at load"])
async def test_children_of_python_have_what_the_evaluator_has(service: Service, at_load: bool) -> None:
    evaluator = Evaluator(program(imported_at_load=at_load), packages=JOBLIB, files=FILES, limits=LIMITS)
    for number, (name, (_, expected)) in enumerate(BODIES.items()):
        result = await service.evaluate(evaluator, Row({"case": number}))
        assert result.error is None, (name, result.error, result.logs.stderr)
        assert result.value == {"score": 1, "got": expected}, name


@pytest.mark.long
@pytest.mark.parametrize("python", MINORS)
async def test_subinterpreters_of_every_python_have_what_the_evaluator_has(python: str) -> None:
    code = f"{TOP}\ndef evaluate(inputs, outputs, trace):\n    return {{'score': 1, 'got': subinterpreted(outputs)}}\n"
    async with open_engine(settings("bubblewrap")) as opened:
        evaluator = Evaluator(code, packages=JOBLIB, files=FILES, limits=LIMITS, python=python)
        result = await opened.evaluate(evaluator, Row(outputs=SUBINTERPRETED))
    assert result.value == {"score": 1, "got": "1.4.2 8 9"}, result.error


@pytest.mark.sampled(2)
async def test_a_child_finds_nothing_that_another_row_wrote(service: Service) -> None:
    code = (
        "import multiprocessing.spawn, os\n"
        "def evaluate(inputs, outputs, trace):\n"
        "    path = os.environ['EVALUATOR_CODE']\n"
        "    size = os.path.getsize(path)\n"
        "    open(path, 'ab').write(b'changed')\n"
        "    return {'score': 1, 'size': size}\n"
    )
    first = await service.evaluate(Evaluator(code), Row())
    second = await service.evaluate(Evaluator(code), Row())
    assert first.value == second.value


@pytest.mark.sampled(2)
async def test_secrets_of_an_evaluator_are_not_in_the_file_for_children(service: Service) -> None:
    code = (
        "import multiprocessing.spawn, os\n"
        "def evaluate(inputs, outputs, trace):\n"
        "    return b'secrets' not in open(os.environ['EVALUATOR_CODE'], 'rb').read().partition(b'{\"code\"')[0]\n"
    )
    assert (await service.evaluate(Evaluator(code), Row())).score == 1


@pytest.mark.sampled(9)
async def test_javascript_starts_node_by_its_name(service: Service) -> None:
    code = (
        "import { execFileSync } from 'node:child_process';\n"
        "export function evaluate(inputs, outputs, trace) {\n"
        "  return execFileSync('node', ['-e', outputs], { encoding: 'utf8' }).trim() === '3';\n}\n"
    )
    result = await service.evaluate(Evaluator(code, Language.JAVASCRIPT), Row(outputs="console.log(1 + 2)"))
    assert result.score == 1, result.error


FIND = f'missing=\'\'; for tool in {" ".join(SHELL_TOOLS)}; do command -v "$tool" >/dev/null || missing="$missing $tool"; done; echo "$missing"'
RUN = "sed s/a/b/ /dev/null && awk 1 /dev/null && grep -c x /dev/null; find /tmp -maxdepth 0 | xargs ls -d && bash -c 'diff /dev/null /dev/null'"


@pytest.mark.sampled(9)
async def test_a_sandbox_of_either_language_has_the_shells_tools(service: Service) -> None:
    python = f"import subprocess\ndef evaluate(inputs, outputs, trace):\n    return {{'score': 1, 'said': [subprocess.check_output(line, shell=True, text=True).strip() for line in {[FIND, RUN]!r}]}}"
    javascript = f"import {{ execSync }} from 'node:child_process';\nexport const evaluate = (i, o, t) => ({{ score: 1, said: {json.dumps([FIND, RUN])}.map((line) => execSync(line).toString().trim()) }})"
    for code, language in ((python, Language.PYTHON), (javascript, Language.JAVASCRIPT)):
        result = await service.evaluate(Evaluator(code, language), Row())
        assert result.value == {"score": 1, "said": ["", "0\n/tmp"]}, result.error


async def test_programs_of_the_shell_count_towards_the_limit_of_processes(service: Service) -> None:
    code = "import subprocess\ndef evaluate(inputs, outputs, trace):\n    subprocess.run('for n in $(seq 200); do sleep 60 & done; wait', shell=True, check=True)\n    return 1"
    result = await service.evaluate(Evaluator(code, limits=Limits(processes=16, timeout_s=10)), Row())
    assert result.error is not None
    assert result.error.code in (ErrorCode.PROCESS_LIMIT, ErrorCode.USER_EXCEPTION), result.error
    assert (await service.evaluate(Evaluator(code.replace("200", "2").replace("60", "0")), Row())).score == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("backend", "start"),
    [("bubblewrap", SandboxStart.FRESH), ("bubblewrap", SandboxStart.TEMPLATE), ("docker", SandboxStart.FRESH)],
)
async def test_python_has_node_where_the_host_gives_it(backend: str, start: SandboxStart) -> None:
    code = "import subprocess\ndef evaluate(inputs, outputs, trace):\n    return int(subprocess.check_output(['node', '-p', outputs], text=True)) / 10"
    async with open_engine(settings(backend, python_with_node=True, sandbox_start=start)) as opened:
        result = await opened.evaluate(Evaluator(code), Row(outputs="1 + 2"))
        assert result.score == 0.3, result.error
        full = await opened.evaluate(Evaluator(code), Row(outputs="Buffer.alloc(1 << 30, 1).length"))
        assert full.error is not None
        assert (await opened.evaluate(Evaluator(code), Row(outputs="1 + 2"))).score == 0.3

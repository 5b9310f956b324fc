"""Each backend keeps the same promises about limits, hostile code, isolation of rows, and many callers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from textwrap import indent

import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Isolation, Language, Limits, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import EvaluationResult, Status
from tests.conftest import settings

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
ONE = {
    PYTHON: "def evaluate(inputs, outputs, trace):\n    return 1.0\n",
    JAVASCRIPT: "function evaluate(inputs, outputs, trace) { return 1.0 }\n",
    TYPESCRIPT: "function evaluate(inputs: any, outputs: any, trace: any): number { return 1.0 }\n",
}


def evaluator(language: Language, body: str, *, top: str = "", **limits: float) -> Evaluator:
    """Return an evaluator whose function has this body; low limits keep the tests short."""
    indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
    code = {
        PYTHON: f"{top}\ndef evaluate(inputs, outputs, trace):\n{indented}\n",
        JAVASCRIPT: f"{top}\nfunction evaluate(inputs, outputs, trace) {{\n{indented}\n}}\n",
        TYPESCRIPT: f"{top}\nfunction evaluate(inputs: any, outputs: any, trace: any): any {{\n{indented}\n}}\n",
    }[language]
    return Evaluator(code, language, limits=replace(Limits(timeout_s=5.0), **limits))


def evaluator_of_cases(language: Language, bodies: Sequence[str], *, top: str = "", **limits: float) -> Evaluator:
    """Return an evaluator that runs one of these bodies, by the number in `inputs`, so that cases share its sandboxes."""
    if language is PYTHON:
        cases = "".join(
            f"def case_{number}(outputs):\n{indent(body.strip(), '    ')}\n" for number, body in enumerate(bodies)
        )
        return evaluator(
            PYTHON, "return globals()[f'case_{inputs[\"case\"]}'](outputs)", top=f"{top}\n{cases}", **limits
        )
    cases = "".join(f"(outputs) => {{\n{body}\n}},\n" for body in bodies)
    return evaluator(language, "return cases[inputs.case](outputs)", top=f"{top}\nconst cases = [{cases}]", **limits)


def failed(result: EvaluationResult, code: str) -> None:
    assert result.status is Status.FAILED, result
    assert result.error is not None
    assert result.error.code == code, result.error
    assert result.score is None


def scored(result: EvaluationResult, score: float) -> None:
    assert result.status is Status.SCORED, result.error
    assert result.score == score


async def still_well(service: Service, after: Evaluator, inputs: dict[str, int]) -> None:
    """Check that this evaluator, whose row now does no harm, and another evaluator both give the right result."""
    scored(await service.evaluate(after, Row(inputs, outputs="behave")), 1.0)
    scored(await service.evaluate(Evaluator(ONE[after.language] + "\n", after.language), Row()), 1.0)


BEHAVE = {PYTHON: "if outputs == 'behave': return 1.0\n", JAVASCRIPT: "if (outputs === 'behave') return 1.0\n"}

# `tests/attacks/test_catalogue.py` tries each hostile behaviour. These cases are about how each backend reports an end to the
# host: in its own words, or not at all.
HOSTILE = [
    ("infinite loop", PYTHON, "while True: pass", {"timeout_s": 0.3}, "timeout"),
    ("infinite loop", JAVASCRIPT, "for (;;) {}", {"timeout_s": 0.3}, "timeout"),
    ("memory in a child", PYTHON, "import os, time\nif os.fork() == 0:\n    h = []\n    while True: h.append(bytearray(1 << 20))\nos.wait()\nreturn 0.25", {"memory_mb": 128}, dict.fromkeys(("bubblewrap", "docker", "template"))),
    ("hard exit", PYTHON, "import os; os._exit(0)", {}, "crashed"),
    # with bubblewrap, the runner dies with all other processes; with Docker and with a template, the runner is process
    # 1, which the kernel protects, so the row continues
    ("everybody's death", PYTHON, "import os; os.kill(-1, 9); return 0.25", {}, {"bubblewrap": "crashed", "docker": None, "template": None}),
    ("segfault", PYTHON, "import ctypes; ctypes.string_at(0)", {}, "crashed"),
    ("result too large", PYTHON, "return {'score': 1, 'x': 'x' * (2 << 20)}", {"result_kb": 1024}, "result_too_large"),
    ("disk full", JAVASCRIPT, "const fs = require('fs'); for (;;) fs.appendFileSync('/tmp/big', Buffer.alloc(1 << 20))", {"disk_mb": 8}, "disk_limit"),
]  # fmt: skip


def hostile_alike(language: Language, limits: dict[str, float]) -> list[str]:
    """Return the hostile function bodies that have these limits and can share one evaluator."""
    return [body for _, of, body, tight, _ in HOSTILE if (of, tight) == (language, limits)]


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("language", "body", "limits", "code"),
    [pytest.param(*case[1:], id=f"{case[0]}-{case[1]}") for case in HOSTILE],
)
async def test_hostile_code_gets_its_documented_outcome_and_the_next_calls_are_right(
    service: Service, language: Language, body: str, limits: dict[str, float], code: str | dict[str, str | None]
) -> None:
    bodies = hostile_alike(language, limits)
    hostile = evaluator_of_cases(language, [BEHAVE[language] + one for one in bodies], **limits)
    case = {"case": bodies.index(body)}
    result = await service.evaluate(hostile, Row(case, outputs="attack"))
    backend = service.pool.backend.name
    kind = "template" if (backend, service.settings.sandbox_start) == ("bubblewrap", "template") else backend
    expected = code if isinstance(code, str) else code[kind]
    if expected is None:
        scored(result, 0.25)
    else:
        failed(result, expected)
    await still_well(service, hostile, case)


async def test_a_kill_for_memory_in_one_row_is_not_the_end_of_the_next(service: Service) -> None:
    bodies = [
        "import os\nif os.fork() == 0:\n    h = []\n    while True: h.append(bytearray(1 << 20))\nos.wait()\nreturn 1",
        "import os\nos._exit(3)",
    ]
    both = evaluator_of_cases(PYTHON, bodies, memory_mb=128)
    for _ in range(2):
        scored(await service.evaluate(both, Row({"case": 0})), 1)
        failed(await service.evaluate(both, Row({"case": 1})), "crashed")


PRINTS = {
    PYTHON: ["print('row')\nreturn 1", "print('{\"score\": 0.99}', flush=True)\nreturn 0.25", "print('x' * (1 << 20))\nreturn 1"],
    JAVASCRIPT: ["console.log('row'); return 1", "console.log('{\"score\": 0.99}'); return 0.25", "console.log('x'.repeat(1 << 20)); return 1"],
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT])
async def test_printed_text_is_a_log_in_its_order_and_cut_at_its_limit(service: Service, language: Language) -> None:
    top = {PYTHON: "print('module')", JAVASCRIPT: "console.log('module');"}
    printing = evaluator_of_cases(language, PRINTS[language], top=top[language], log_kb=16)
    row, fake, megabyte = [await service.evaluate(printing, Row({"case": case})) for case in range(3)]
    assert (row.score, row.logs.stdout) == (1, "module\nrow\n")
    # in JavaScript each row loads the module again, which prints this line again
    again = {PYTHON: "", JAVASCRIPT: "module\n"}[language]
    assert (fake.score, fake.logs.stdout) == (0.25, again + '{"score": 0.99}\n'), (
        "printed text must not count as a result"
    )
    assert megabyte.logs.truncated
    assert len(megabyte.logs.stdout) <= 16 * 1024
    assert megabyte.logs.stdout.startswith(f"{again}xxx")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT])
async def test_four_megabytes_of_inputs_arrive_whole(service: Service, language: Language) -> None:
    count = {PYTHON: "return len(inputs['text'])", JAVASCRIPT: "return inputs.text.length"}
    inputs = {"text": "ä" * (4 << 20)}
    as_it_came = EncodedRow({"outputs": b"null", "inputs": memoryview(encode_json(inputs)), "trace": b"null"})
    for row in (Row(inputs=inputs), as_it_came):
        scored(await service.evaluate(evaluator(language, count[language]), row), 4 << 20)


MODULE = {PYTHON: "import json\nseen = []", JAVASCRIPT: "let seen = 0"}
SHARED_NOTHING = [
    (PYTHON, "seen.append(1)\nreturn len(seen)"),
    (PYTHON, "import builtins\nbuiltins.mark = getattr(builtins, 'mark', 0) + 1\nreturn builtins.mark"),
    (PYTHON, "was = json.dumps(1)\njson.dumps = lambda *a, **k: 'forged'\nreturn 1 if was == '1' else 2"),
    (PYTHON, "import os\nwas = os.environ.get('MARK')\nos.environ['MARK'] = '1'\nreturn 2 if was else 1"),
    (PYTHON, "import os\nwas = os.path.exists('/tmp/mark')\nopen('/tmp/mark', 'w').close()\nreturn 2 if was else 1"),
    (PYTHON, "import os\nwas = os.path.exists('/dev/shm/mark')\nopen('/dev/shm/mark', 'w').close()\nreturn 2 if was else 1"),
    (JAVASCRIPT, "seen += 1; return seen"),
    (JAVASCRIPT, "globalThis.mark = (globalThis.mark || 0) + 1; return globalThis.mark"),
    (JAVASCRIPT, "const was = [].mark; Array.prototype.mark = 1; return was ? 2 : 1"),
    (JAVASCRIPT, "const was = ({}).mark; Object.prototype.mark = 1; return was ? 2 : 1"),
    (JAVASCRIPT, "const fs = require('fs'); const was = fs.mark; fs.mark = 1; return was ? 2 : 1"),
    (JAVASCRIPT, "const b = Buffer.from('x'); const was = b.mark; Buffer.prototype.mark = 1; return was ? 2 : 1"),
    (JAVASCRIPT, "const was = process.env.MARK; process.env.MARK = '1'; return was ? 2 : 1"),
    (JAVASCRIPT, "const fs = require('fs'); const was = fs.existsSync('/tmp/mark'); fs.writeFileSync('/tmp/mark', ''); return was ? 2 : 1"),
]  # fmt: skip


@pytest.mark.sampled(30)
@pytest.mark.parametrize(("language", "body"), SHARED_NOTHING)
async def test_two_calls_of_one_evaluator_share_nothing(service: Service, language: Language, body: str) -> None:
    bodies = [one for of, one in SHARED_NOTHING if of is language]
    marking = evaluator_of_cases(language, bodies, top=MODULE[language])
    for _ in range(4):
        scored(await service.evaluate(marking, Row({"case": bodies.index(body)})), 1)


async def test_a_process_left_behind_is_gone_before_the_next_call(service: Service) -> None:
    body = """
if outputs == 'count':
    found = 0
    for pid in os.listdir('/proc'):
        if pid.isdigit() and open(f'/proc/{pid}/comm').read().strip() == 'left-behind':
            found += 1
    return found
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('/proc/self/comm', 'w').write('left-behind')
        import time
        time.sleep(600)
    os._exit(0)
os.wait()
return 1
"""
    leaver = evaluator(PYTHON, body, top="import os")
    scored(await service.evaluate(leaver, Row()), 1)
    scored(await service.evaluate(leaver, Row(outputs="count")), 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT])
async def test_many_calls_at_once_are_all_answered_once(service: Service, language: Language) -> None:
    echo = {PYTHON: "return inputs['n']", JAVASCRIPT: "return inputs.n"}
    counting = evaluator(language, echo[language])
    results = await asyncio.gather(*(service.evaluate(counting, Row(inputs={"n": n})) for n in range(80)))
    assert [result.score for result in results] == list(range(80))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT])
async def test_a_batch_keeps_its_order_and_a_failing_row_fails_alone(
    service: Service, language: Language, isolation: Isolation
) -> None:
    bodies = {
        PYTHON: "if inputs['n'] == 7: raise ValueError('seven')\nreturn inputs['n']",
        JAVASCRIPT: "if (inputs.n === 7) throw new RangeError('seven'); return inputs.n",
    }
    rows = [Row(inputs={"n": n}) for n in range(40)]
    results = await service.evaluate_batch(evaluator(language, bodies[language]), rows, isolation=isolation)
    assert [result.score for result in results] == [n if n != 7 else None for n in range(40)]
    failed(results[7], "user_exception")
    assert results[7].error.message == "seven"


@pytest.mark.parametrize("isolation", list(Isolation))
async def test_a_row_that_kills_its_process_costs_a_batch_that_row_only(service: Service, isolation: Isolation) -> None:
    body = "import os\nif inputs['n'] % 20 == 7: os._exit(3)\nreturn inputs['n']"
    rows = [Row(inputs={"n": n}) for n in range(60)]
    results = await service.evaluate_batch(evaluator(PYTHON, body), rows, isolation=isolation)
    assert [result.score for result in results] == [n if n % 20 != 7 else None for n in range(60)]
    for n in (7, 27, 47):
        failed(results[n], "crashed")


async def test_a_caller_that_hangs_up_leaves_nothing_running_and_the_sandbox_goes_on(service: Service) -> None:
    slow = evaluator(PYTHON, "import time\nif outputs == 'slow': time.sleep(60)\nreturn 1.0", timeout_s=100)
    scored(await service.evaluate(slow, Row()), 1.0)
    call = asyncio.create_task(service.evaluate(slow, Row(outputs="slow")))
    await asyncio.sleep(0.2)
    call.cancel()
    await asyncio.wait([call])
    async with asyncio.timeout(10):
        again = await service.evaluate(slow, Row())
    scored(again, 1.0)
    assert again.sandbox.warm


NOTHING_TO_SEE = [
    "import socket\nsocket.create_connection(('127.0.0.1', 22), timeout=2)",
    "import socket\nsocket.create_connection(('169.254.169.254', 80), timeout=2)",
    "import socket\nsocket.getaddrinfo('example.com', 80)",
    "return len(open('/etc/shadow').read())",
    "return len(open('/proc/1/environ').read()) or 1/0",
    "import os\nreturn len(os.listdir('/root'))",
    "import os\nreturn len(os.listdir('/home')) or 1/0",
    "open('/usr/mark', 'w')",
    "open('/opt/runner/mark', 'w')",
    "import os\nos.setuid(0)",
    "import os\nos.chroot('/tmp')",
    "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): raise PermissionError",
    "import ctypes\nif ctypes.CDLL(None).ptrace(0, 0, 0, 0): raise PermissionError",
    "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("body", NOTHING_TO_SEE)
async def test_the_outside_is_out_of_reach(service: Service, body: str) -> None:
    looking = evaluator_of_cases(PYTHON, NOTHING_TO_SEE)
    result = await service.evaluate(looking, Row({"case": NOTHING_TO_SEE.index(body)}))
    failed(result, "user_exception")
    assert result.error.type in {
        "OSError", "ConnectionRefusedError", "gaierror", "FileNotFoundError", "PermissionError", "TimeoutError",
        "ZeroDivisionError", "socket.gaierror",
    }  # fmt: skip


async def test_a_result_says_where_and_on_what_it_ran(service: Service) -> None:
    result = await service.evaluate(evaluator(PYTHON, "return 0.5"), Row())
    again = await service.evaluate(evaluator(PYTHON, "return 0.5"), Row())
    assert result.sandbox.backend == service.pool.backend.name
    assert again.sandbox.warm
    assert again.timing_ms.load == 0
    assert result.environment.runtime.startswith("python 3.")
    assert result.evaluator.contract == "evaluate"
    assert result.evaluator.contract_source == "inferred"
    assert again.sandbox.peak_memory_kb > 1000
    assert result.evaluator.digest == again.evaluator.digest


@pytest.mark.long
async def test_the_total_time_of_a_row_has_all_its_parts(service: Service) -> None:
    slow = evaluator(PYTHON, "return 0.25", top="import time\ntime.sleep(0.3)")
    broken = evaluator(PYTHON, "return 0.25", top="import time\ntime.sleep(0.3)\nnone")
    rows = [result async for _, result in service.evaluate_rows(slow, [Row()] * 3, parallelism=1)]
    alone = await service.evaluate(replace(slow, threshold=0.5), Row())
    failing = [result async for _, result in service.evaluate_rows(broken, [Row()] * 2, parallelism=1)]
    assert rows[0].timing_ms.load > 300
    assert failing[0].timing_ms.total > 300
    for spent in (result.timing_ms for result in (*rows, alone, *failing)):
        assert spent.total >= spent.queue + spent.environment + spent.load + spent.run


FILES = {
    PYTHON: """\
from lib.text import words
def evaluate(inputs, outputs, trace):
    found = words()
    open('data/words.txt', 'w').write('changed')
    return len(found)
""",
    TYPESCRIPT: """\
import { words } from './lib/text';
import { writeFileSync } from 'node:fs';
export function evaluate(inputs: any, outputs: any, trace: any): number {
  const found = words();
  writeFileSync('data/words.txt', 'changed');
  return found.length
}
""",
}
MODULES = {
    "lib/text.py": "def words():\n    return open('data/words.txt').read().split()\n",
    "lib/text.ts": """\
import { readFileSync } from 'node:fs'; import { join } from 'node:path';
export const words = (): string[] => readFileSync(join(__dirname, '..', 'data', 'words.txt'), 'utf8').split(' ');
""",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", list(FILES))
async def test_each_row_finds_the_files_as_they_were_sent(service: Service, language: Language) -> None:
    given = Evaluator(FILES[language], language, files={**MODULES, "data/words.txt": "one two three"})
    results = await service.evaluate_batch(given, [Row() for _ in range(4)])
    assert [result.score for result in results] == [3.0, 3.0, 3.0, 3.0], results
    elsewhere = replace(given, files={**MODULES, "data/words.txt": "one"})
    scored(await service.evaluate(elsewhere, Row()), 1.0)


@pytest.mark.long
async def test_an_idle_sandbox_takes_up_only_the_memory_that_it_uses(service: Service) -> None:
    """The host counts the memory that an idle sandbox really uses.

    The evaluator keeps 40 MB in its module, so its idle sandbox counts as 40 MB, although its limit is 256 MB.
    """
    # a separate service, so that no other sandbox ends during the test
    async with open_engine(settings(service.pool.backend.name, idle_sandboxes=1), prewarm=True) as own:
        capacity = own.pool.capacity
        before_mb = capacity.taken_mb
        hoard = "hoard = bytearray(40 << 20)\nfor at in range(0, len(hoard), 4096): hoard[at] = 1\n"
        scored(await own.evaluate(evaluator(PYTHON, "return 1.0", top=hoard), Row()), 1.0)
        async with asyncio.timeout(60):
            while capacity.running:  # wait while the pool replaces the sandbox that waited for a first call
                await asyncio.sleep(0.05)
        assert capacity.running_mb == 0
        assert 40 <= capacity.taken_mb - before_mb < 256

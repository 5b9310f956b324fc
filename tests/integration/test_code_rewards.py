"""Tests that the code-reward recipe works on every backend, with right, wrong and hostile answers in both languages."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from evaluator_host.types.outcome import ErrorCode
from tests.conftest import settings
from tests.docs.blocks import ROOT, files

CODE = files(ROOT / "examples" / "rl-rewards" / "code-rewards.md")["reward.py"]
LIMITS = Limits(timeout_s=60, memory_mb=512, processes=48)
TESTS = [{"stdin": "2 3", "stdout": "5"}, {"stdin": "-1 1", "stdout": "0"}]
# if a kernel has this setting, the kernel itself may refuse ptrace
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope").exists()
SECRET = "the-expected-value-of-a-hidden-test"

SCORED = {
    "a right answer": ("python", "print(sum(map(int, input().split())))", 1),
    "half of it": ("python", "print(5)", 0.5),
    "a wrong one": ("python", "print('5', '0')", 0),
    "one that raises": ("python", "raise ValueError", 0),
    "in a fence": ("python", "Here it is:\n```python\nprint(sum(map(int, input().split())))\n```\nIt adds.", 1),
    "no program": ("python", "I would add the numbers.", 0),
    "a right answer in JavaScript": ("javascript", "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number); console.log(a + b)", 1),
    "half of it in JavaScript": ("javascript", "console.log(5)", 0.5),
    "a syntax error": ("javascript", "console.log(", 0),
    "a loop": ("python", "while True: pass", 0),
    "a loop in the last test": ("python", "a, b = map(int, input().split())\nwhile a < 0: pass\nprint(a + b)", 0.5),
    "a loop in the first test": ("python", "a, b = map(int, input().split())\nwhile a > 0: pass\nprint(a + b)", 0),
    "a loop in JavaScript": ("javascript", "for (;;);", 0),
    "a sleep": ("python", "import time; time.sleep(60)", 0),
    "memory": ("python", "x = b'x' * (600 << 20); print(5)", 0),
    "memory in JavaScript": ("javascript", "const x = Buffer.alloc(600 << 20, 1); console.log(5)", 0),
    "a flood": ("python", "while True: print('5' * 1000)", 0),
    "a full disk": ("python", "open('x', 'wb').write(b'x' * (80 << 20)); print(5)", 0),
    "a process that stays": ("python", "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint(5)", 0.5),
    "the evaluator's environment": ("python", "import os; print(5 if {'PYTHONPATH', 'EVALUATOR_CODE'}.isdisjoint(os.environ) else 'seen')", 0.5),
}  # fmt: skip
READS_ITS_JUDGE = """
import os
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline', 'mem'):
        if int(pid) == os.getpid():
            continue
        try:
            with open(f'/proc/{pid}/{name}', 'rb') as file:
                if name != 'mem':
                    print(file.read())
                else:
                    for line in open(f'/proc/{pid}/maps'):
                        first, last = (int(part, 16) for part in line.split()[0].split('-'))
                        file.seek(first)
                        found = file.read(min(last - first, 1 << 24))
                        at = found.find(b'the-expected-value')
                        if at >= 0:
                            print(found[at:at + 35].decode())
        except (OSError, ValueError, OverflowError):
            pass
for folder, _, names in os.walk('/tmp'):
    for name in names:
        print(open(os.path.join(folder, name), errors='replace').read())
"""


@pytest.fixture(scope="module", params=["bubblewrap", "docker"])
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    async with open_engine(settings(request.param, python_with_node=True)) as opened:
        yield opened


@pytest.mark.long
async def test_answers_get_what_they_deserve(service: Service) -> None:
    evaluator = Evaluator(CODE, limits=LIMITS)
    for name, (language, answer, score) in SCORED.items():
        result = await service.evaluate(evaluator, Row({"language": language, "tests": TESTS}, answer))
        assert (result.score, result.error) == (score, None), name


@pytest.mark.long
async def test_the_time_of_an_answer_is_not_that_of_the_clock(service: Service) -> None:
    impatient = re.sub(r"(SECONDS, \w+, OUTPUT_BLOCKS) = 2, 4", r"\1 = 20, 0.3", CODE)
    assert impatient != CODE
    evaluator = Evaluator(impatient, limits=LIMITS)
    slow = "import time\nwhile time.process_time() < 1: pass\nprint(sum(map(int, input().split())))"
    for answer, score, reason in ((slow, 1, "right"), ("import time; time.sleep(30)", 0, "test 1: sleeps")):
        result = await service.evaluate(evaluator, Row({"tests": TESTS[:1]}, answer))
        assert (result.score, result.reason, result.error) == (score, reason, None)


async def test_a_reward_says_what_is_wrong_with_an_answer(service: Service) -> None:
    evaluator = Evaluator(CODE, limits=LIMITS)
    for answer, reason in (
        ("a = int(input().split()[0])\nif a < 0: raise ValueError\nprint(a)", "test 1: wrong output, test 2: crashed"),
        ("while True: pass", "test 1: loops"),
    ):
        assert (await service.evaluate(evaluator, Row({"tests": TESTS}, answer))).reason == reason
    without = Evaluator(CODE.replace('["node",', '["deno",'), limits=LIMITS)
    result = await service.evaluate(without, Row({"tests": TESTS, "language": "javascript"}, "console.log(5)"))
    assert result.error is not None
    assert result.error.message == "the sandbox has no deno"


async def test_an_answer_that_kills_or_crowds_out_its_judge_fails_alone(service: Service) -> None:
    evaluator, row = Evaluator(CODE, limits=LIMITS), {"tests": TESTS}
    for answer, codes in (
        ("import os; os.kill(-1, 9)", {ErrorCode.CRASHED}),
        ("import os\nwhile True: os.fork()", {ErrorCode.PROCESS_LIMIT, None}),
    ):
        result = await service.evaluate(evaluator, Row(row, answer))
        assert (result.error and result.error.code) in codes, result.error
        assert not result.score
        right = await service.evaluate(evaluator, Row(row, "print(sum(map(int, input().split())))"))
        assert right.score == 1, right.error


async def test_no_answer_reads_the_expected_values(service: Service) -> None:
    tests = [{"stdin": "", "stdout": SECRET}]
    evaluator = Evaluator(CODE, limits=LIMITS)
    assert (await service.evaluate(evaluator, Row({"tests": tests}, f"print({SECRET!r})"))).score == 1
    spy = await service.evaluate(evaluator, Row({"tests": tests}, READS_ITS_JUDGE))
    assert (spy.score, spy.error) == (0, None)
    shown = CODE.replace(
        'printed = output.read().decode(errors="replace")', "printed = output.read().decode(); print(printed[-20_000:])"
    )
    for code, seen in ((shown, False), (shown.replace("prctl(4, 0,", "prctl(4, 1,"), not YAMA)):
        told = (await service.evaluate(Evaluator(code, limits=LIMITS), Row({"tests": tests}, READS_ITS_JUDGE))).logs
        assert "import os" in (told.stdout or "")  # the program can read its own source
        assert (SECRET in (told.stdout or "")) is seen

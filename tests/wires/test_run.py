"""`POST /v1/run` runs programs over HTTP, and returns their exit codes and output."""

from typing import Any

import httpx
import pytest

from tests.wires.wired import ENDLESS

pytestmark = pytest.mark.engine


def run(client: httpx.Client, code: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/run", json={"code": code, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("language", "code", "exit_code", "stdout"),
    [
        ("python", "print('x')", 0, "x\n"),
        ("python", "import os\nprint('x', flush=True)\nos._exit(5)", 5, "x\n"),
        ("python", "import sys\nprint('x')\nsys.exit('no')", 1, "x\n"),
        ("javascript", "console.log('x'); process.exit(4)", 4, "x\n"),
        ("javascript", "console.log('x'); throw new TypeError('no')", 1, "x\n"),
        ("typescript", "const x: string = 'x';\nconsole.log(x);", 0, "x\n"),
        ("typescript", "const = ;", 1, ""),
    ],
)
def test_a_program_has_an_exit_code_and_an_output(
    client: httpx.Client, language: str, code: str, exit_code: int, stdout: str
) -> None:
    found = run(client, code, language=language)
    assert (found["exit_code"], found["stdout"], found["error"]) == (exit_code, stdout, None)
    assert ("Error" in found["stderr"]) == (exit_code == 1 and "sys.exit" not in code)


READERS = {
    "python": [
        "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
        "print(sum(int(line) for line in open(0)))",
        "print(int(input()) + int(input()))",
        "import fileinput\nprint(sum(int(line) for line in fileinput.input()))",
        "print(sum(map(int, open('/dev/stdin'))))",
        "import os\nprint(sum(map(int, os.read(0, 99).split())))",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(int(input()) + int(input()))'], check=True)",
        "import sys\nfor line in sys.__stdin__: n = int(line) + globals().get('n', 0)\nprint(n)",
    ],
    "javascript": [
        "import { readFileSync } from 'node:fs';\nconsole.log(sum(readFileSync(0, 'utf8')));",
        "const fs = require('fs');\nconsole.log(sum(fs.readFileSync('/dev/stdin').toString()));",
        "let text = '';\nprocess.stdin.setEncoding('utf8');\nprocess.stdin.on('data', (part) => { text += part; });\nprocess.stdin.on('end', () => console.log(sum(text)));",
        "let text = '';\nfor await (const part of process.stdin) text += part;\nconsole.log(sum(text));",
        "import readline from 'node:readline';\nlet n = 0;\nreadline.createInterface({ input: process.stdin }).on('line', (one) => { n += +one; }).on('close', () => console.log(n));",
        "import { createInterface } from 'node:readline/promises';\nlet n = 0;\nfor await (const one of createInterface({ input: process.stdin })) n += +one;\nconsole.log(n);",
        "const { createInterface } = require('readline');\nconst asked = createInterface({ input: process.stdin, output: process.stdout });\nasked.question('', (a) => asked.question('', (b) => { console.log(+a + +b); asked.close(); }));",
        "import { text } from 'node:stream/consumers';\ntext(process.stdin).then((all) => console.log(sum(all)));",
        "import { Writable } from 'node:stream';\nlet all = '';\nprocess.stdin.pipe(new Writable({ write(part, _, next) { all += part; next(); }, final(next) { console.log(sum(all)); next(); } }));",
        "process.stdin.once('readable', () => console.log(sum(String(process.stdin.read()))));",
        "import fs from 'node:fs';\nconst held = Buffer.alloc(9);\nconsole.log(sum(held.toString('utf8', 0, fs.readSync(0, held))));",
        "import fs from 'node:fs';\nfs.readFile(0, 'utf8', (_, all) => console.log(sum(all)));",
        "import { execFileSync } from 'node:child_process';\nprocess.stdout.write(execFileSync(process.execPath, ['-e', `console.log(require('fs').readFileSync(0, 'utf8').trim().split('\\\\n').reduce((n, one) => n + +one, 0))`], { stdio: [0, 'pipe', 2] }));",
    ],
}
"""Programs that print the sum of the two lines of their standard input."""
SUM = "\nfunction sum(text) { return text.trim().split('\\n').reduce((n, one) => n + Number(one), 0); }\n"


@pytest.mark.sampled(36)
@pytest.mark.parametrize(
    ("language", "code"),
    [
        *[("python", code) for code in READERS["python"]],
        *[("javascript", code + SUM) for code in READERS["javascript"]],
        *[("typescript", code + SUM.replace("text)", "text: string): number")) for code in READERS["javascript"]],
    ],
)
def test_a_program_reads_its_standard_input(client: httpx.Client, language: str, code: str) -> None:
    found = run(client, code, language=language, stdin="2\n40\n", limits={"timeout_s": 30})
    assert (found["exit_code"], found["stdout"], found["stderr"], found["error"]) == (0, "42\n", "", None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("head", ["", "import 'node:path';\n", "export const made = 1;\n"])
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_a_program_runs_once_with_what_it_is_given(client: httpx.Client, language: str, head: str) -> None:
    code = (
        f"{head}console.log(process.argv.slice(2), process.env.WHO, globalThis['ran'] = (globalThis['ran'] ?? 0) + 1);"
    )
    found = run(client, code, language=language, argv=["a", "b"], env={"WHO": "me"})
    assert (found["stdout"], found["exit_code"]) == ("[ 'a', 'b' ] me 1\n", 0)
    assert run(client, code, language=language)["stdout"] == "[] undefined 1\n"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("code", "exit_code", "stdout"),
    [
        ("let n = 0;\nconst timer = setInterval(() => { console.log(++n); if (n === 3) clearInterval(timer); }, 2);", 0, "1\n2\n3\n"),
        ("setInterval(() => {}, 5).unref();\nsetTimeout(() => console.log('late'), 20);", 0, "late\n"),
        ("import { pbkdf2 } from 'node:crypto';\npbkdf2('a', 'b', 200_000, 9, 'sha512', (_, key) => console.log(key.length));", 0, "9\n"),
        ("import { execFile } from 'node:child_process';\nexecFile(process.execPath, ['-p', '6 * 7'], (_, out) => console.log(out.trim()));", 0, "42\n"),
        ("await new Promise(() => {});", 13, ""),
        ("process.on('exit', (code) => console.log('left', code));\nsetTimeout(() => { process.exitCode = 4; }, 5);", 4, "left 4\n"),
        ("process.on('exit', (code) => console.log('left', code));\nprocess.exit(3);", 3, "left 3\n"),
        ("import { parseArgs } from 'node:util';\nconsole.log(parseArgs({ options: { n: { type: 'string' } } }).values.n);", 0, "3\n"),
        ("if (require.main === module) console.log('main');", 0, "main\n"),
        ("console.log('before');\nreturn;\nconsole.log('after');", 0, "before\n"),
        ("new Promise((_, no) => setTimeout(() => no(new Error('no')), 3));", 1, ""),
    ],
)  # fmt: skip
def test_a_program_of_javascript_ends_as_under_node(
    client: httpx.Client, code: str, exit_code: int, stdout: str
) -> None:
    found = run(client, code, language="javascript", argv=["--n", "3"])
    assert (found["exit_code"], found["stdout"], found["error"]) == (exit_code, stdout, None), found


def test_a_traceback_has_only_frames_of_the_program(client: httpx.Client) -> None:
    found = run(client, "def f():\n    raise ValueError('no')\nf()\n")
    lines = [line for line in found["stderr"].splitlines() if line.startswith("  File")]
    assert lines == ['  File "<string>", line 3, in <module>', '  File "<string>", line 2, in f']
    assert found["stderr"].endswith("ValueError: no\n")


def test_a_program_that_does_not_end_has_an_error(client: httpx.Client) -> None:
    endless = run(client, f"print('x', flush=True)\n{ENDLESS}", limits={"timeout_s": 1})
    assert (endless["exit_code"], endless["error"]["code"], endless["stdout"]) == (None, "timeout", "x\n")
    large = run(
        client, "x = bytearray(900 << 20)\nfor at in range(0, len(x), 4096): x[at] = 1", limits={"memory_mb": 128}
    )
    assert large["exit_code"] == 1 or large["error"]["code"] == "memory_limit"
    flood = run(client, "print('x' * 300_000)", limits={"log_kb": 64})
    assert (flood["exit_code"], flood["truncated"], len(flood["stdout"])) == (0, True, 64 << 10)


def test_programs_see_nothing_of_each_other(client: httpx.Client) -> None:
    leaves = "import builtins, os, sys\nbuiltins.left = 1\nos.environ['LEFT'] = '1'\nsys.modules['left'] = sys\nopen('/tmp/left', 'w').write('x')\n"
    looks = "import builtins, os, sys\nprint(hasattr(builtins, 'left'), 'LEFT' in os.environ, 'left' in sys.modules, os.path.exists('/tmp/left'))"
    for _ in range(3):
        assert run(client, leaves)["exit_code"] == 0
        assert run(client, looks)["stdout"] == "False False False False\n"


def test_a_request_that_is_not_right_is_a_problem(client: httpx.Client) -> None:
    answer = client.post("/v1/run", json={"code": "pass", "args": []})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "args")
    assert client.post("/v1/run", json={"code": "pass", "packages": ["six"]}).status_code == 422

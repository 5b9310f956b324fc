"""JavaScript attacks on time: loops, waits and single operations that do not end."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import Attack, Expected, Group, Guard, fails, javascript
from evaluator_host.selftest.javascript import SHORT, STILL_HANGS

_FULL: Final = "never: its memory ends it first"
_ENDED: Final = "the runner ends the worker at its row's limit, whatever it is doing"


def _hanging(name: str, program: str, *others: Expected, seen: str = "") -> Attack:
    code = f"const attack = () => {{ {program} }};\n"
    return javascript(
        f"javascript-{name}",
        Group.CPU,
        code,
        STILL_HANGS,
        *others,
        why=_ENDED,
        limits=SHORT,
        seen=seen,
        without=() if seen else Guard.TIMEOUT,
    )


ATTACKS: Final[tuple[Attack, ...]] = (
    _hanging("endless-loop", "for (;;);"),
    _hanging("catastrophic-regex", "return /(a+)+$/.test('a'.repeat(64) + '!') && 1;"),
    _hanging("loop-in-a-microtask", "return Promise.resolve().then(() => { for (;;); });"),
    _hanging(
        "microtasks-for-ever",
        "const again = () => Promise.resolve().then(again); return again();",
        fails(ErrorCode.MEMORY_LIMIT),
        seen=_FULL,
    ),
    _hanging("ticks-for-ever", "const again = () => process.nextTick(again); again();"),
    _hanging("turns-for-ever", "const again = () => setImmediate(again); again(); return new Promise(() => {});"),
    _hanging("promise-that-never-settles", "setInterval(() => {}, 1000); return new Promise(() => {});"),
    _hanging("atomics-wait", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);"),
    _hanging(
        "one-long-join",
        "return Array.from({ length: 5e7 }, () => 1).sort(() => Math.random() - 0.5).join().length;",
        fails(ErrorCode.MEMORY_LIMIT),
        seen=_FULL,
    ),
    _hanging("generator-without-end", "for (const x of (function* () { for (;;) yield 1; })()) x;"),
    _hanging("exceptions-caught-for-ever", "for (;;) try { throw 1; } catch {} finally { continue; }"),
    _hanging(
        "stack-overflows-caught-for-ever",
        "const down = () => { try { down(); } finally { down(); } }; for (;;) try { down(); } catch {}",
    ),
    _hanging(
        "endless-file-read",
        "require('fs').readFileSync('/dev/zero');",
        fails(ErrorCode.MEMORY_LIMIT, ErrorCode.USER_EXCEPTION),
        seen=_FULL,
    ),
    _hanging("wait-for-a-child", "require('child_process').spawnSync(process.execPath, ['-e', 'for (;;);']);"),
    _hanging(
        "loop-in-wasm",
        "const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 103, 0, 0, 10, 9, 1, 7, 0, 3, 64, 12, 0, 11, 11]);"
        " new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.g();",
    ),
    javascript(
        "javascript-promise-that-nothing-can-settle",
        Group.CPU,
        "const attack = () => new Promise(() => {});\n",
        fails(ErrorCode.TIMEOUT),
        why="the worker notices that nothing is left which could settle it",
        limits=SHORT,
        seen="with a worker that waits for whatever may come",
    ),
    javascript(
        "javascript-deep-recursion",
        Group.CPU,
        "const down = (n) => down(n + 1) + 1;\nconst attack = () => down(0);\n",
        fails(ErrorCode.USER_EXCEPTION),
        why="V8's stack is limited, and its overflow is an exception",
        seen="with a stack larger than the thread's",
    ),
)

"""JavaScript attacks on memory: V8's heap, and every way around it."""
# ruff: noqa: E501 - programs, of which some are one line

from dataclasses import replace
from typing import Any, Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, SMALL, Attack, Expected, Group, Guard, fails, javascript

_LIMITED: Final = fails(ErrorCode.MEMORY_LIMIT, mentions="160 MB")
_LIMITS: Final = replace(SMALL, memory_mb=160, timeout_s=20.0)
_WATCHED: Final = "V8 limits its heap, the runner watches the whole process, and the kernel ends what gets past both"


def _memory(name: str, program: str, *expected: Expected, **details: Any) -> Attack:
    return javascript(
        f"javascript-{name}",
        Group.MEMORY,
        program,
        *(expected or (_LIMITED,)),
        why=_WATCHED,
        limits=_LIMITS,
        **({"without": Guard.MEMORY} | details),
    )


_REFUSED: Final = fails(ErrorCode.MEMORY_LIMIT, ErrorCode.USER_EXCEPTION)

ATTACKS: Final[tuple[Attack, ...]] = (
    _memory("heap", "const attack = () => { const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5)); };\n"),
    _memory(
        "heap-of-small-objects",
        "const attack = () => { let last = null; for (;;) last = { last, more: [1, 2, 3] }; };\n",
    ),
    _memory(
        "external-buffers", "const attack = () => { const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1)); };\n"
    ),
    _memory(
        "shared-buffers",
        "const attack = () => { const kept = []; for (;;) kept.push(new Uint8Array(new SharedArrayBuffer(1 << 20)).fill(1)); };\n",
    ),
    _memory(
        "wasm-memory",
        """
const attack = () => {
  const kept = [];
  for (;;) {
    const memory = new WebAssembly.Memory({ initial: 64, maximum: 1024 });
    new Uint8Array(memory.buffer).fill(1);
    kept.push(memory);
  }
};
""",
    ),
    _memory(
        "strings-that-are-flattened",
        "const attack = () => { const kept = []; for (let n = 0; ; n++) kept.push(Buffer.from(`${n}`.padEnd(1 << 20, 'é')).toString()); };\n",
    ),
    _memory(
        "one-allocation",
        "const attack = () => Buffer.alloc(2 ** 29, 1).length;\n",
        _REFUSED,
    ),
    _memory(
        "microtasks-without-end",
        "const attack = () => { for (;;) Promise.resolve(new Array(1000).fill(1)).then((x) => x); };\n",
    ),
    _memory(
        "listeners-and-timers",
        "const attack = () => { for (;;) setTimeout(() => {}, 1e6, new Array(1e4).fill(1.5)); };\n",
    ),
    _memory(
        "in-a-child",
        """
const { spawnSync } = require('child_process');
const CODE = 'const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1))';
const attack = () => spawnSync(process.execPath, ['-e', CODE], { timeout: 15000 }).signal === 'SIGTERM' && 'it lived for 15 s';
""",
        _LIMITED,
        fails(ErrorCode.CRASHED),
        NOTHING,
        without=(),
        seen="where nothing limits the sandbox as a whole: it lives on",
    ),
)

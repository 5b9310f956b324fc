"""JavaScript and TypeScript attacks by the text of the code: what compilers, wrappers and source maps trip over."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Any, Final

from evaluator_host.model.evaluator import Language
from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import LOAD_HANGS, REFUSED, Attack, Expected, Group, fails, scores, whole

_ONE: Final = "function evaluate(inputs, outputs, trace) { return 0.25; }\n"
_RIGHT: Final = scores(0.25)
_SYNTAX: Final = fails(ErrorCode.SYNTAX_ERROR)
_WHY: Final = "code runs in a context of its own, inside its wrapper and outside"


def _source(
    name: str, code: str, *expected: Expected, language: Language = Language.JAVASCRIPT, **details: Any
) -> Attack:
    told: dict[str, Any] = {
        "why": _WHY,
        "safe": False,
        "seen": "never: a context holds nothing that is not the row's own, inside its wrapper and outside",
    } | details
    return whole(f"javascript-{name}", Group.SOURCE, code, *(expected or (_RIGHT,)), language=language, **told)


ATTACKS: Final[tuple[Attack, ...]] = (
    _source("byte-order-mark-and-crlf", b"\\ufeff".decode("unicode-escape") + _ONE.replace(" {", " {\r\n")),
    _source("code-fence", f"```js\n{_ONE}```\n"),
    _source("null-byte", _ONE + "const x = 'a\0b';\n", _RIGHT, _SYNTAX, REFUSED),
    _source("null-byte-in-the-open", _ONE + "\0", _RIGHT, _SYNTAX, REFUSED),
    _source("hashbang", "#!/usr/bin/env node\n" + _ONE),
    _source("html-comments", "<!-- not code\n" + _ONE + "--> not code either\n", _RIGHT, _SYNTAX),
    _source(
        "wrapper-closed", _ONE + "}); globalThis.left = 1; (function () {\n", _SYNTAX, fails(ErrorCode.ENTRY_NOT_FOUND)
    ),
    _source("wrapper-closed-by-a-comment", _ONE + "/* \n", _SYNTAX),
    _source("wrapper-closed-by-a-template", _ONE + "`\n", _SYNTAX),
    _source("return-at-the-top", _ONE + "return 1;\n", _RIGHT, _SYNTAX, fails(ErrorCode.ENTRY_NOT_FOUND)),
    _source("with-statement", "function evaluate(inputs) { with ({ score: 0.25 }) { return score; } }\n"),
    _source("strict-mode", "'use strict';\n" + _ONE),
    _source(
        "source-map-of-its-own",
        _ONE + "//# sourceMappingURL=file:///etc/passwd\n//# sourceURL=/opt/runner/runner.mjs\n",
    ),
    _source(
        "error-with-a-source-map-of-its-own",
        "function evaluate() { throw new Error('mine'); }\n//# sourceMappingURL=data:application/json;base64,bm90IGpzb24=\n",
        fails(ErrorCode.USER_EXCEPTION, mentions="mine"),
    ),
    _source(
        "names-of-the-runner",
        "var require, module, exports, process, global, globalThis2, inputs, outputs, trace, result, port, workerData;\n"
        + _ONE,
        _RIGHT,
        fails(ErrorCode.LOAD_ERROR),
    ),
    _source(
        "entry-hook-of-the-runner",
        "globalThis.__evaluator_host_entries__ = () => { throw new Error('no'); };\n" + _ONE,
        _RIGHT,
        fails(ErrorCode.LOAD_ERROR, ErrorCode.ENTRY_NOT_FOUND),
    ),
    _source(
        "exports-that-throw",
        "module.exports = new Proxy({}, { ownKeys() { throw new Error('no'); }, get() { throw new Error('no'); }, has() { throw new Error('no'); } });\n",
        fails(ErrorCode.LOAD_ERROR, ErrorCode.ENTRY_NOT_FOUND),
    ),
    _source(
        "entry-that-lies-about-itself",
        _ONE
        + "evaluate = new Proxy(evaluate, { get(of, key) { if (key === 'length') throw new Error('no'); return of[key]; } });\n"
        "Object.defineProperty(evaluate, 'toString', { value() { throw new Error('no'); } });\n",
        _RIGHT,
        fails(ErrorCode.LOAD_ERROR, ErrorCode.ENTRY_NOT_FOUND),
    ),
    _source(
        "deeply-nested-expression",
        _ONE + "const x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";\n",
        fails(ErrorCode.SYNTAX_ERROR, ErrorCode.LOAD_ERROR, ErrorCode.MEMORY_LIMIT, ErrorCode.USER_EXCEPTION),
        _RIGHT,
        why="the compiler runs in the sandbox, and its death is an error of the code",
        seen="never: V8 notices",
    ),
    _source(
        "deeply-nested-typescript",
        _ONE + "const x = " + "[" * 50_000 + "]" * 50_000 + " as any;\n",
        fails(
            ErrorCode.SYNTAX_ERROR, ErrorCode.LOAD_ERROR, ErrorCode.MEMORY_LIMIT, ErrorCode.CRASHED, ErrorCode.TIMEOUT
        ),
        _RIGHT,
        language=Language.TYPESCRIPT,
        why="the compiler runs in the sandbox, and its death is an error of the code",
        seen="with esbuild's stack overflow taken for its answer",
    ),
    _source(
        "ten-megabytes",
        _ONE + "// " + "x" * 10_000_000 + "\n",
        REFUSED,
        why="a source is at most `code_kb`",
        seen="with the ceiling raised",
    ),
    _source(
        "loop-at-the-top",
        "for (;;);\n" + _ONE,
        LOAD_HANGS,
        why="loading has a limit of its own",
        seen="with the load's limit taken away",
    ),
    _source(
        "await-without-end-at-the-top",
        "await new Promise(() => {});\nexport " + _ONE,
        LOAD_HANGS,
        fails(ErrorCode.TIMEOUT),
        why="loading has a limit of its own",
        seen="with the load's limit taken away",
    ),
    _source(
        "exit-at-the-top",
        "process.exit(0);\n" + _ONE,
        fails(ErrorCode.LOAD_ERROR),
        why="an exit is no load",
        seen="with exit codes unread",
    ),
    _source(
        "imports-of-the-runner",
        "import { Station } from '/opt/runner/station.mjs';\nimport x from '../../opt/runner/runner.mjs';\n" + _ONE,
        _RIGHT,
        fails(ErrorCode.LOAD_ERROR, ErrorCode.SYNTAX_ERROR),
        why="esbuild runs in the sandbox and sees its files only",
        seen="never: what it can import, it can read as well",
    ),
    _source(
        "imports-of-text",
        "import passwd from '/etc/passwd' with { type: 'text' };\n" + _ONE,
        _RIGHT,
        fails(ErrorCode.LOAD_ERROR, ErrorCode.SYNTAX_ERROR),
        why="esbuild runs in the sandbox and sees its files only",
        seen="never: what it can import, it can read as well",
    ),
    _source(
        "typescript-that-is-no-types",
        "enum E { A = (() => { throw new Error('at load'); })() as any }\nexport function evaluate(i: any): number { return 0.25 }\n",
        fails(ErrorCode.LOAD_ERROR, mentions="at load"),
        language=Language.TYPESCRIPT,
        seen="never: it is the author's own error",
    ),
    _source(
        "decorators-that-run-at-load",
        "function d(x: any, y: any) { globalThis.JSON = null as any; }\n@d class A {}\nexport function evaluate(i: any): number { return 0.25 }\n",
        language=Language.TYPESCRIPT,
        seen="with the runner looking JSON up late",
    ),
)

"""The parser process: reads a program from stdin and writes its rewrite to stdout, as JSON, under its own limits.

The parser is native code and reads untrusted text: if it crashes, it ends this process, not the host.
"""

import json
import resource
import sys
from dataclasses import asdict
from typing import Any, Final

from evaluator_host.migration.draft import Wish
from evaluator_host.migration.javascript.rewrite import rewrite_javascript, rewrite_typescript
from evaluator_host.migration.python.rewrite import rewrite
from evaluator_host.migration.syntax import Unreadable
from evaluator_host.model.evaluator import Language

_LIMITS: Final = (
    (resource.RLIMIT_AS, 2 << 30),
    (resource.RLIMIT_CPU, 20),  # seconds; the largest accepted program needs two
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),  # stdout is a pipe
)
_RECURSION: Final = 20_000  # frames; a tree of the greatest depth needs four per level


def main() -> None:
    """Read one request from stdin and write the answer to stdout."""
    for which, most in _LIMITS:
        resource.setrlimit(which, (most, most))
    sys.setrecursionlimit(_RECURSION)
    asked = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(_answer(asked)))


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    wish = Wish(**asked["wish"])
    try:
        rewritten = REWRITES[Language(asked["language"])](asked["code"], wish)
    except Unreadable as error:
        return {"refused": {"line": error.line, "message": error.reason, "missing": error.missing}}
    except RecursionError:
        return {"refused": {"line": None, "message": "it nests too deeply to be rewritten"}}
    return asdict(rewritten)


REWRITES: Final = {
    Language.PYTHON: rewrite,
    Language.JAVASCRIPT: rewrite_javascript,
    Language.TYPESCRIPT: rewrite_typescript,
}


if __name__ == "__main__":
    main()

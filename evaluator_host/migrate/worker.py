"""Reads untrusted programs. `migrate` calls these functions in a limited process, because the parser is native code."""

import difflib
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, TypeVar

from evaluator_host.migrate.draft import Rewritten, Wish
from evaluator_host.migrate.generate import generated_rows
from evaluator_host.migrate.javascript.adapter import adapt_javascript, adapt_typescript
from evaluator_host.migrate.javascript.rewrite import rewrite_javascript, rewrite_typescript
from evaluator_host.migrate.python.adapter import adapt
from evaluator_host.migrate.python.rewrite import rewrite
from evaluator_host.migrate.syntax import Unreadable
from evaluator_host.types.evaluator import Contract, Language

T = TypeVar("T")
_RECURSION: Final = 20_000  # maximum number of Python frames; the deepest accepted tree needs four frames per level


def rewrite_program(code: str, language: Language, wish: Wish) -> dict[str, Any]:
    """Rewrite a program; return the fields of `Rewritten`, or `{"refused": {"line", "message", "missing"}}`."""
    return _read_deeply(
        lambda: asdict(REWRITES[language](code, wish)),
        lambda error: {"refused": {"line": error.line, "message": error.reason, "missing": error.missing}},
    )


def adapt_program(code: str, language: Language, wish: Wish) -> list[dict[str, Any]]:
    """Write programs that keep the old code and adapt its interface; return each as the fields of `Rewritten`."""
    return _read_deeply(lambda: [asdict(one) for one in ADAPTERS[language](code, wish)], lambda _: [])


def _read_deeply(read: Callable[[], T], otherwise: Callable[[Unreadable], T]) -> T:
    """Return `read()`, called with a higher recursion limit; if `read` raises an error, return `otherwise(error)`."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_RECURSION)
    try:
        return read()
    except Unreadable as error:
        return otherwise(error)
    except RecursionError:
        return otherwise(Unreadable("the code is nested too deeply to be rewritten"))
    finally:
        sys.setrecursionlimit(before)


def made_up_rows(program: str, rewritten: Rewritten, wish: Wish) -> list[dict[str, Any]]:
    """Generate rows from the code, on which the migration is proved."""
    key = rewritten.parameters[3] if rewritten.source == Contract.MAIN else wish.key
    return [
        asdict(row)
        for row in generated_rows(
            program, rewritten.parameters, key, columns=rewritten.columns, whole_row=rewritten.whole_row
        )
    ]


def unified_diff(old: str, new: str, name: str) -> str:
    """Return the difference between two programs in the format of `diff -u`."""
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


REWRITES: Final = {
    Language.PYTHON: rewrite,
    Language.JAVASCRIPT: rewrite_javascript,
    Language.TYPESCRIPT: rewrite_typescript,
}
ADAPTERS: Final = {
    Language.PYTHON: adapt,
    Language.JAVASCRIPT: adapt_javascript,
    Language.TYPESCRIPT: adapt_typescript,
}

"""Reads untrusted programs; `migrate` calls these functions in a limited process, because the parser is native code."""

import difflib
import sys
from dataclasses import asdict
from typing import Any, Final

from evaluator_host.migration.draft import Rewritten, Wish
from evaluator_host.migration.generate import generated_rows
from evaluator_host.migration.javascript.rewrite import rewrite_javascript, rewrite_typescript
from evaluator_host.migration.python.rewrite import rewrite
from evaluator_host.migration.syntax import Unreadable
from evaluator_host.model.evaluator import Contract, Language

_RECURSION: Final = 20_000  # frames; a tree of the greatest depth needs four per level


def rewrite_program(code: str, language: Language, wish: Wish) -> dict[str, Any]:
    """Return a `Rewritten` as an object, or `{"refused": {"line", "message", "missing"}}`."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_RECURSION)
    try:
        return asdict(REWRITES[language](code, wish))
    except Unreadable as error:
        return {"refused": {"line": error.line, "message": error.reason, "missing": error.missing}}
    except RecursionError:
        return {"refused": {"line": None, "message": "it nests too deeply to be rewritten", "missing": False}}
    finally:
        sys.setrecursionlimit(before)


def made_up_rows(program: str, rewritten: Rewritten, wish: Wish) -> list[dict[str, Any]]:
    """Return rows for the proof, generated from the code."""
    key = rewritten.parameters[3] if rewritten.source == Contract.MAIN else wish.key
    return [
        asdict(row)
        for row in generated_rows(
            program, rewritten.parameters, key, columns=rewritten.columns, whole_row=rewritten.whole_row
        )
    ]


def unified_diff(old: str, new: str, name: str) -> str:
    """Return the difference of two programs in the format of `diff -u`."""
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


REWRITES: Final = {
    Language.PYTHON: rewrite,
    Language.JAVASCRIPT: rewrite_javascript,
    Language.TYPESCRIPT: rewrite_typescript,
}

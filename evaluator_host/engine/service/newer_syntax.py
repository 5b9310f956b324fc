"""Recognises code for a newer Python: code that imports newer standard modules, or has newer syntax."""

import re
import sys
from typing import Final

from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.outcome import ErrorCode, EvaluationError

_LINE_CHARS: Final = 1000
_IN_BRACES: Final = "a backslash or comment within the braces of an f-string"
_OWN_QUOTES: Final = "an f-string with its own quotes within its braces"
_NEWER: Final = tuple(
    (re.compile(message), re.compile(line), minor, what)
    for message, line, minor, what in (
        (r"^invalid syntax", r"^\s*lazy\s+(import|from)\s", 15, "a lazy import"),
        (r"^invalid syntax", r"(?<![\w.])(t|tr|rt|T|tR|Rt)['\"]", 14, "a template string"),
        (r"^multiple exception types must be parenthesized", r"", 14, "`except` of several types without parentheses"),
        (r"", r"^\s*(async\s+def|def|class|type)\s+\w+\s*\[[^\]=]*=", 13, "a default of a type parameter"),
        (r"", r"^\s*(async\s+def|def|class)\s+\w+\s*\[", 12, "a list of type parameters"),
        (r"^invalid syntax", r"^\s*type\s+\w+\s*(\[.*\])?\s*=", 12, "a type statement"),
        (r"^f-string expression part cannot include", r"", 12, _IN_BRACES),
        (r"^f-string: |^unterminated ", r"\b[fFrR]{1,2}(['\"]).*\{[^{}]*\1", 12, _OWN_QUOTES),
    )
)  # fmt: skip
_MODULE: Final = re.compile(r"^No module named '([\w.]+)'")
_MODULES: Final = {
    "annotationlib": 14, "concurrent.interpreters": 14, "pathlib.types": 14,
    "string.templatelib": 14, "_interpreters": 13,
}  # fmt: skip


def newer_module(error: EvaluationError, evaluator: Evaluator) -> str | None:
    """Return a hint if the missing module is in the standard library of a newer Python, else None."""
    if error.type != "ModuleNotFoundError" or (match := _MODULE.search(error.message)) is None:
        return None
    minor = _MODULES.get(match[1])
    if minor is None or minor <= _minor_of(evaluator):
        return None
    return f"{match[1]} is a module of Python 3.{minor}: set `python` to 3.{minor}, or remove the import"


def newer_syntax(error: EvaluationError, evaluator: Evaluator) -> str | None:
    """Return a hint if the cause of a syntax error is syntax of a newer Python, else None."""
    if error.code is not ErrorCode.SYNTAX_ERROR or evaluator.language is not Language.PYTHON or not error.line:
        return None
    lines = evaluator.code.splitlines()[error.line - 1 : error.line]
    line = lines[0][:_LINE_CHARS] if lines else ""
    ran = _minor_of(evaluator)
    for message, text, minor, what in _NEWER:
        if minor > ran and message.search(error.message) and text.search(line):
            return f"{what} is Python 3.{minor} syntax: set `python` to 3.{minor}, or write it in the older way"
    return None


def _minor_of(evaluator: Evaluator) -> int:
    return int(evaluator.python.partition(".")[2]) if evaluator.python else sys.version_info.minor

"""Warns about integers that JavaScript rounds, or passes them without rounding if the settings say so."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from evaluator_host.engine.contracts.binding import Binding, encode
from evaluator_host.engine.contracts.escaped_keys import may_have_escaped_key, with_aliases
from evaluator_host.types.evaluator import EvaluatorSettings, Language, Row
from evaluator_host.types.json_paths import Path, places, render_path, steps_of
from evaluator_host.types.json_texts import Octets
from evaluator_host.types.outcome import EvaluationError, Note
from evaluator_host.types.warnings import remedy_of

_MOST_SAFE: Final = 2**53 - 1
_LONG: Final = re.compile(rb"[0-9]{16}")  # 16 consecutive digits: JavaScript rounds no integer with fewer digits
_AS_BIGINT: Final = b'{"integers":"bigint",'  # beginning of a body with exact integers (runtimes/PROTOCOL.md, call)
_TIME: Final = re.compile(r"([Nn]anos?|[Nn]anoseconds|_ns|Ns|[Tt]ime|[Tt]imestamp|_at|At)$")
_SHOWN: Final = 8
_SHOWN_DIGITS: Final = 40


def may_be_rounded(text: Octets, language: Language) -> bool:
    """Return whether JSON may contain an integer that this language rounds."""
    return language is not Language.PYTHON and _LONG.search(text) is not None


def exactly(
    row: Row, binding: Binding, settings: EvaluatorSettings, language: Language, unread: AbstractSet[str]
) -> tuple[bytes | EvaluationError, tuple[Note, ...]]:
    """Return the JSON of a call, with large integers in the form that the settings choose, and notes for the row.

    A note warns about rounded integers. The warning leaves out integers that the code does not get or does not read
    (`unread`), and times in the trace: nanoseconds since 1970 are rounded by less than 0.2 µs.
    """
    body = encode(binding)
    if language is Language.PYTHON:  # Python reads every key and integer exactly
        return body, binding.notes
    if not isinstance(body, EvaluationError) and may_have_escaped_key(body, language):
        binding = replace(binding, body=with_aliases(binding.body))
        body = encode(binding)
    if isinstance(body, EvaluationError) or not may_be_rounded(body, language):
        return body, binding.notes
    match settings.integers:
        case "bigint":
            return _AS_BIGINT + body[1:], binding.notes
        case "text":
            return encode(replace(binding, body=_with_texts(binding.body))), binding.notes
        case None:
            return body, (*binding.notes, *_warnings(row, binding, unread))


def _with_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item) for item in value]
    return str(value) if _is_long(value) else value


def _is_long(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > _MOST_SAFE


def _warnings(row: Row, binding: Binding, unread: AbstractSet[str]) -> tuple[Note, ...]:
    got = {one for _, one in places(binding.body) if _is_rounded(one)}
    given = {name: value for name, value in row.fields.items() if name not in unread}
    found = [(path, one) for path, one in places(given) if _is_rounded(one) and one in got and not _is_time(path)]
    if not found:
        return ()
    shown = ", ".join(f"{_shown(one)} at {render_path(path)}" for path, one in found[:_SHOWN])
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    what = f"the integer {shown}" if len(found) == 1 else f"integers of the row, {shown}{more}"
    message = f"JavaScript rounds {what}, so different integers may become equal"
    return (Note("rounded_integer", message, remedy_of("rounded_integer")),)


def _shown(value: int) -> str:
    digits = str(value)
    return digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}…"


def _is_rounded(value: Any) -> bool:
    return _is_long(value) and _rounded(value) != value


def _is_time(path: Path) -> bool:
    steps = steps_of(path)
    names = [one for one in steps if isinstance(one, str)]
    return steps[0] == "trace" and _TIME.search(names[-1]) is not None


def _rounded(value: int) -> float:
    try:
        return int(float(value))
    except OverflowError:
        return float("inf")

"""Reads the verdict and the reason of a returned object, which authors give in many forms."""

import json
from dataclasses import dataclass
from typing import Final

from evaluator_host.engine.contracts.language_terms import described, terms
from evaluator_host.types.evaluator import Json, Language
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Note
from evaluator_host.types.warnings import remedy_of

VERDICT_KEYS: Final = ("passed", "success", "pass", "is_passed", "isPassed")
REASON_KEYS: Final = ("reason", "explanation", "comment", "log", "reasoning", "rationale")

_ERRORS: Final = ("errors", "errored")  # keys with the number of checks that neither passed nor failed
_WEAK_KEYS: Final = ("ok", "correct")
"""Keys that often mean something else, such as that a model answered: a bool under one of them is the verdict only if
the object has no number that may be the score."""
_ONLY_KEYS: Final = ("relevant", "faithful", "grounded")
"""Keys that are often one of several metrics: a bool under one of them is the verdict only if, besides, the object has
no other bool."""
WORD_KEYS: Final = ("verdict", "status")
RESULT_KEYS: Final = frozenset((*VERDICT_KEYS, *WORD_KEYS))
"""Keys whose meaning in a returned object is fixed, so that a metric of such a name would mislead."""
_PASS_OR_FAIL: Final = frozenset(("pass", "fail"))
"""Texts that count as a verdict under a key in `WORD_KEYS`; other texts there, such as `"passed"`, may describe a run.
"""
_YES: Final = frozenset(("true", "t", "yes", "y", "pass", "passed", "success", "succeeded", "ok", "1", "1.0"))
_NO: Final = frozenset(("false", "f", "no", "n", "fail", "failed", "failure", "0", "0.0"))
_WORD_CHARS: Final = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a returned object.

    Attributes:
      passed: The verdict; None when the object has none.
      keys: Keys that were read as a verdict, and so are not metrics.
      notes: Remarks on how the verdict was read.
    """

    passed: bool | None = None
    keys: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def verdict(value: dict[str, Json], language: Language) -> Verdict | EvaluationError:
    """Read the verdict of an object. Return an error if it has verdicts, but none of them means yes or no."""
    given = given_verdicts(value)
    read = {key: meant for key, one in given.items() if (meant := _meant(one)) is not None}
    if given and not read:
        return _unclear(next(iter(given)), given, language)
    notes = [
        Note("coerced", f"`{key}` is {described(given[key], language)}, and was taken as {_said(meant, language)}")
        for key, meant in read.items()
        if not isinstance(given[key], bool)
    ]
    said: dict[str, bool] = dict(read)
    if isinstance(score := value.get("score"), bool):
        said["score"] = score
    first = next(iter(said), None)
    if first is not None and (other := next((key for key in said if said[key] is not said[first]), None)):
        notes.append(disagreement(first, other, passed=said[first], language=language))
    return Verdict(next(iter(read.values()), None), tuple(read), tuple(notes))


def given_verdicts(value: dict[str, Json]) -> dict[str, Json]:
    """Return the verdict keys of an object with their values; a value may mean neither yes nor no."""
    counted = () if counted_checks(value) is None else ("passed",)
    given = {key: value[key] for key in VERDICT_KEYS if value.get(key) is not None and key not in counted}
    if given:
        return given
    if (key := next((key for key in WORD_KEYS if _is_pass_or_fail(value.get(key))), None)) is not None:
        return {key: value[key]}
    numbers = any(isinstance(one, int | float) and not isinstance(one, bool) for one in value.values())
    if numbers or value.get("score") is not None:
        return {}
    bools = [key for key, one in value.items() if isinstance(one, bool)]
    weak = (*_WEAK_KEYS, *(_ONLY_KEYS if len(bools) == 1 else ()))
    return {key: value[key] for key in weak if key in bools}


def _is_pass_or_fail(given: Json) -> bool:
    return isinstance(given, str) and len(given) <= _WORD_CHARS and given.strip().lower() in _PASS_OR_FAIL


def counted_checks(value: dict[str, Json]) -> tuple[int, int] | None:
    """Return the numbers of passed and of all checks for an object such as `{"passed": 2, "total": 3}`; else None.

    The object may also count the checks that failed or ended with an error: `{"passed": 2, "failed": 1, "errors": 1}`.
    """
    passed, failed, total = value.get("passed"), value.get("failed"), value.get("total")
    if type(passed) is not int:
        return None
    if total is None and type(failed) is int and failed >= 0:
        total = passed + failed + sum(one for key in _ERRORS if type(one := value.get(key)) is int and one > 0)
    return (passed, total) if type(total) is int and 0 <= passed <= total and total > 0 else None


def passed_share(value: dict[str, Json]) -> float | None:
    """Return the fraction of passed checks in an object that counts them; None if it has a score."""
    checks = counted_checks(value) if value.get("score") is None else None
    return None if checks is None else checks[0] / checks[1]


def disagreement(first: str, other: str, *, passed: bool, language: Language) -> Note:
    """Return the warning that two keys have different verdicts. The first key counts; `passed` is its verdict."""
    said, opposite = _said(passed, language), _said(not passed, language)
    return Note(
        "verdicts_disagree",
        f"`{first}` is {said} and `{other}` is {opposite}; `{first}` counts",
        remedy_of("verdicts_disagree"),
    )


def reason(value: dict[str, Json]) -> str | None:
    """Return the reason of an object as text: the first string, else the first list, number or object."""
    given = [value[key] for key in REASON_KEYS if value.get(key) not in (None, [], {})]
    text = next((one for one in given if isinstance(one, str)), None)
    return text if text is not None or not given else _as_text(given[0])


def _as_text(given: Json) -> str:
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return "; ".join(given)
    return json.dumps(given, ensure_ascii=False)


def _meant(given: Json) -> bool | None:
    if isinstance(given, bool):
        return given
    if isinstance(given, int | float):
        return bool(given) if given in (0, 1) else None
    if isinstance(given, str) and len(given) <= _WORD_CHARS:
        word = given.strip().lower()
        return True if word in _YES else False if word in _NO else None
    return None


def _said(meant: bool, language: Language) -> str:  # noqa: FBT001 - a value, not an option
    return str(meant) if language is Language.PYTHON else str(meant).lower()


def _unclear(key: str, given: dict[str, Json], language: Language) -> EvaluationError:
    word = terms(language)
    yes, no = _said(True, language), _said(False, language)  # noqa: FBT003
    return EvaluationError(
        ErrorCode.INVALID_RESULT,
        f"`{key}` is {described(given[key], language)}, which means neither passed nor failed",
        hint=f"return a {word.boolean} in `{key}`, {yes} or {no}; give the value another name if it is not the verdict",
    )

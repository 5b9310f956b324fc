"""Reads returned values by the rules that dialects share: numbers, bools, objects with a score, and errors.

The evaluator's code produced the value, so this module does not trust it. A value that contradicts the kind that the
runner reports, or that is nested deeper than a runner allows, counts as a crash of the evaluator.
"""

import json
import math
from dataclasses import dataclass, replace
from typing import Any, Final, TypeGuard

from evaluator_host.engine.contracts.language_terms import described, terms, valid_returns
from evaluator_host.engine.contracts.metric_leaves import NAME_CHARS, NotFinite, TooDeep, add_leaves, finite
from evaluator_host.engine.contracts.verdicts import REASON_KEYS, RESULT_KEYS, Verdict, counted_checks, reason, verdict
from evaluator_host.types.evaluator import Json, Language
from evaluator_host.types.json_values import VALUE_DEPTH
from evaluator_host.types.numbers import parsed
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Note, Returned
from evaluator_host.types.warnings import remedy_of

__all__ = [
    "Scored",
    "invalid_text",
    "labelled",
    "mapping",
    "numeric_text",
    "parsed",
    "read",
    "terms",
    "text_as_number",
    "with_own_name",
]

FINITE: Final = "return a finite number; look for a division by zero, or the mean of an empty list"
_SCORE_NAMES: Final = frozenset(("score", "value", "result", "rating", "scores", "grade", "accuracy"))
_KEYS_READ: Final = 50
_RESERVED: Final = frozenset(("score", "label", "details", *REASON_KEYS))
_NON_FINITE: Final = frozenset(sign + word for sign in ("", "+", "-") for word in ("nan", "inf", "infinity"))
_SHOWN: Final = 60
_QUOTES: Final = ('"', "'", "`")
_PARTS: Final = ("details", "metadata")
_SHOWN_CHARS: Final = 300
# texts that runners send in place of a type if a value is cyclic or nested too deeply
_SHAPES: Final = ("cyclic value", f"value deeper than {VALUE_DEPTH} levels")


@dataclass(frozen=True, slots=True)
class Scored:
    """Score and metrics of a value, before threshold and range are applied; `metrics` contains the score, too.

    Attributes:
      native: Objects that the dialect's platform would store, one for each named score.
      skipped: Whether the value means "does not apply" on the platform, so that the row is skipped.
      error: Why the row failed, if it failed although the platform stores a result.
      name: Name that the value gives to its score; `with_own_name` makes it a metric.
    """

    score: float | int | None
    passed: bool | None
    metrics: dict[str, float | int]
    label: str | None = None
    reason: str | None = None
    notes: tuple[Note, ...] = ()
    native: tuple[dict[str, Json], ...] = ()
    skipped: bool = False
    error: EvaluationError | None = None
    name: str | None = None


class _Refused(Exception):
    def __init__(self, error: EvaluationError) -> None:
        super().__init__(error.message)
        self.error = error


def read(returned: Returned, language: Language, *, needs_score: bool = False) -> Scored | EvaluationError:
    """Read a returned value as a score, a label or an error; dialects read strings themselves.

    Args:
      returned: The value and its kind.
      language: Language of the evaluator; error messages use the terms of this language.
      needs_score: Whether an object without `score` is an error.
    """
    value = returned.value
    if returned.unsupported is not None:
        return _unsupported(returned.unsupported, language, needs_score=needs_score)
    if returned.nonfinite:
        return _non_finite(returned.nonfinite, language)
    kind = returned.kind
    if kind is Kind.NUMBER and type(value) in (float, int):
        score = finite(value)
        return _non_finite(("$",), language) if score is None else Scored(score, None, {"score": score})
    if kind is Kind.BOOL and isinstance(value, bool):
        return Scored(float(value), value, {"score": float(value)})
    if kind is Kind.OBJECT and isinstance(value, dict):
        return mapping(value, language, needs_score=needs_score)
    if kind is Kind.NULL or kind is Kind.MISSING:
        return _nothing(kind, language, needs_score=needs_score)
    if kind is Kind.ARRAY and _is_score_and_reason(value):
        score, told = value
        found = mapping({"score": score, "reason": told or None}, language, needs_score=needs_score)
        if told is not None or isinstance(score, bool) or not isinstance(found, Scored):
            return found
        null = terms(language).null
        note = Note("coerced", f"the list of a number and {null} was read as a score without a reason: {score}")
        return replace(found, notes=(*found.notes, note))
    if kind is Kind.ARRAY or kind is Kind.UNSUPPORTED:
        what = described(value, language) if isinstance(value, list) else "a value that cannot be written as JSON"
        return _invalid(f"the evaluator returned {what}", language, needs_score=needs_score)
    return contradiction()


def with_own_name(found: Scored, code: str) -> Scored:
    """Return a result in which the score is also a metric under the name that the value gives to it.

    The name counts only if it is a string in the evaluator's code: another name may be a value of the row, and each row
    would add a metric.
    """
    name = found.name
    if name is None or found.score is None or name in found.metrics or not 0 < len(name) <= NAME_CHARS:
        return found
    if name in _RESERVED or name in RESULT_KEYS or not name.isprintable():
        return found
    if not any(f"{quote}{name}{quote}" in code for quote in _QUOTES):
        return found
    return replace(found, metrics={**found.metrics, name: found.score})


def _is_score_and_reason(value: Json) -> TypeGuard[tuple[float | int, str | list[Json] | None]]:
    """Return whether a value is a list of a score and a reason.

    A reason is a string, null, or a list without numbers.
    """
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], float | int):
        return False
    told = value[1]
    if isinstance(told, list):
        return not any(isinstance(one, float | int | None) for one in told)
    return told is None or isinstance(told, str)


def contradiction() -> EvaluationError:
    """Return the error for a contradictory message, which only an evaluator that imitates the runner sends."""
    return EvaluationError(ErrorCode.CRASHED, "the sandbox sent a result that contradicts itself")


def mapping(value: dict[str, Json], language: Language, *, needs_score: bool = False) -> Scored | EvaluationError:
    """Read a returned object: score, verdict, label and reason by their keys; other numbers and bools are metrics.

    If `needs_score` is true, an object without a score is an error.
    """
    notes: list[Note] = []
    metrics: dict[str, float | int] = {}
    try:
        said = _verdict(value, language)
        score, passed = _score(value, language, said, notes, needs_score=needs_score)
        if score is not None:
            metrics["score"] = score
        add_leaves(value, metrics, notes, reserved=_RESERVED.union(said.keys))
    except _Refused as refused:
        return refused.error
    except NotFinite as refused:
        return _non_finite((refused.path,), language)
    except TooDeep:
        return EvaluationError(
            ErrorCode.CRASHED, f"the returned value is nested more than {VALUE_DEPTH} levels deep; return a flatter one"
        )
    label = _label(value.get("label"))
    if score is None:  # beside a score, an error usually describes the output
        if (told := _error_in(value)) is not None:
            notes.append(Note("scoring_failed", f"the code returned an error: {told}", remedy_of("scoring_failed")))
        skipped = "score" in value and not metrics and label is None
        notes.append(_skipped(language) if skipped else _no_score(value, language))
        return Scored(None, None, metrics, label, reason(value), tuple(notes), skipped=skipped)
    return Scored(score, passed, metrics, label, reason(value), (*said.notes, *notes))


def _error_in(value: dict[str, Json]) -> str | None:
    """Return the text of an error that code has put into its result, or None; judges do this if no model answers."""
    inner = (value, *(value.get(name) for name in _PARTS))
    found = (one.get("error") for one in inner if isinstance(one, dict))
    return next((text[:_SHOWN_CHARS] for text in found if isinstance(text, str) and text.strip()), None)


def _verdict(value: dict[str, Json], language: Language) -> Verdict:
    said = verdict(value, language)
    if isinstance(said, EvaluationError):
        raise _Refused(said)
    return said


def _skipped(language: Language) -> Note:
    message = (
        f"the score is {terms(language).null}, so the row is skipped and left out of means; return a number to score it"
    )
    return Note("no_score", message)


def _no_score(value: dict[str, Json], language: Language) -> Note:
    word = terms(language)
    if "score" in value:
        return Note("no_score", f"the score is {word.null}", remedy_of("no_score"))
    if not value:
        message = f"the returned {word.object} is empty; score is null"
        return Note("no_score", message, "look for code that catches an error, and then returns no score")
    return Note("no_score", f"the returned {word.object} has no score; score is null", _meant(value))


def labelled(text: str) -> Scored:
    """Return a result that has this label and no score."""
    remedy = (
        "return the object itself, not its JSON as text" if text.lstrip().startswith("{") else remedy_of("no_score")
    )
    note = Note("no_score", "the evaluator returned text, which becomes the label; the score is null", remedy)
    return Scored(None, None, {}, label=text, notes=(note,))


def text_as_number(text: str, path: str, language: Language) -> Scored | EvaluationError | None:
    """Read a string as a score, for dialects that accept numbers in strings. Return None if it is not a number."""
    score = parsed(text)
    if score is None:
        return _non_finite((path,), language) if text.strip().lower() in _NON_FINITE else None
    if not math.isfinite(score):
        return _non_finite((path,), language)
    note = Note("coerced", f"the text {text.strip()[:_SHOWN]!r} was taken as a number")
    return Scored(score, None, {"score": score}, notes=(note,))


def numeric_text(text: str, language: Language) -> EvaluationError:
    """Return the error for a returned string that contains a number, which the author forgot to convert."""
    call = terms(language).to_number
    return EvaluationError(
        ErrorCode.INVALID_RESULT,
        f"the evaluator returned the text {text[:_SHOWN]!r}, not a number; return {valid_returns(language)}",
        hint=f"to use it as the score, return {call}",
    )


def invalid_text(text: str, language: Language, *, needs_score: bool = False) -> EvaluationError:
    """Return the error for a string that has no meaning in a dialect.

    If `needs_score` is true, only an object with a score is valid, and the error says so.
    """
    return _invalid(f"the evaluator returned the text {text[:_SHOWN]!r}", language, needs_score=needs_score)


def _score(
    value: dict[str, Json], language: Language, said: Verdict, notes: list[Note], *, needs_score: bool
) -> tuple[float | int | None, bool | None]:
    """Return score and verdict of an object.

    A bool score is also the verdict, unless the object has a verdict. If the score is missing, the verdict becomes the
    score, or, if `needs_score` is true, the result is an error.
    """
    score = value.get("score")
    if isinstance(score, bool):
        return float(score), score if said.passed is None else said.passed
    if isinstance(score, int | float):
        number = finite(score)
        if number is None:
            raise _Refused(_non_finite(("$.score",), language))
        return number, said.passed
    if isinstance(score, str):
        read_text = text_as_number(score, "$.score", language)
        if isinstance(read_text, Scored):
            notes.extend(read_text.notes)
            return read_text.score, said.passed
        if read_text is not None:
            raise _Refused(read_text)
    if score is not None:
        raise _Refused(
            _invalid(f"the score is {described(score, language)}, not a number", language, needs_score=needs_score)
        )
    if needs_score:
        raise _Refused(_without_score(value, language))
    if (checks := counted_checks(value)) is not None and said.passed is None:
        notes.append(Note("coerced", "the score is the fraction of the checks that passed: {} of {}".format(*checks)))
        return checks[0] / checks[1], None
    return (None if said.passed is None else float(said.passed)), said.passed


def _label(value: Json) -> str | None:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def _non_finite(paths: tuple[str, ...], language: Language) -> EvaluationError:
    where = ", ".join(path[:_SHOWN] for path in paths)
    return EvaluationError(
        ErrorCode.NON_FINITE,
        f"the value at {where} is {terms(language).non_finite}, or too large for a float",
        hint=FINITE,
    )


def _nothing(kind: Kind, language: Language, *, needs_score: bool) -> EvaluationError:
    word = terms(language).missing if kind is Kind.MISSING else terms(language).null
    return EvaluationError(
        ErrorCode.INVALID_RESULT,
        f"the evaluator returned nothing ({word}); return {valid_returns(language, needs_score=needs_score)}",
        hint="does every branch end in a return statement?",
    )


def _unsupported(unsupported: tuple[str, str], language: Language, *, needs_score: bool) -> EvaluationError:
    path, kind = unsupported
    where = "the evaluator returned" if path == "$" else f"the value at {path[:_SHOWN]} is"
    if kind in _SHAPES:
        return _invalid(f"{where} a {kind}, which cannot be written as JSON", language, needs_score=needs_score)
    return _invalid(
        f"{where} a value of type {kind[:_SHOWN]}, which cannot be written as JSON", language, needs_score=needs_score
    )


def _without_score(value: dict[str, Json], language: Language) -> EvaluationError:
    keys = ", ".join(repr(key[:_SHOWN]) for key in list(value)[:8])
    what = terms(language).object
    lacks = f"the score is {terms(language).null}" if "score" in value else f"the returned {what} has no score"
    return EvaluationError(
        ErrorCode.INVALID_RESULT,
        f"{lacks}; main must return {terms(language).shape} with a number",
        hint=f"its keys are {keys}" if keys else f"the {what} is empty",
    )


def _invalid(what: str, language: Language, *, needs_score: bool) -> EvaluationError:
    return EvaluationError(
        ErrorCode.INVALID_RESULT, f"{what}; return {valid_returns(language, needs_score=needs_score)}"
    )


def _meant(value: Any) -> str | None:
    """Return a hint: the key that was probably meant to be `score`, or else advice on what to return."""
    keys = [str(key) for key in value][:_KEYS_READ] if isinstance(value, dict) else []
    meant = next((key for key in keys if key.lower() in _SCORE_NAMES), None)
    return (
        remedy_of("no_score")
        if meant is None
        else f"did you mean the key score? The returned value has the key {meant}"
    )

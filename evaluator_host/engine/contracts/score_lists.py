"""Reads lists of named scores, `[{"name": "exact", "score": 1}, …]`, which scorers of several platforms return."""

import math
import re
from collections import Counter
from dataclasses import replace
from typing import Final, TypeGuard

from evaluator_host.engine.contracts.interpret import Scored, mapping
from evaluator_host.engine.contracts.metric_leaves import finite
from evaluator_host.engine.contracts.native import NamedScore, invalid, scored
from evaluator_host.engine.contracts.verdicts import REASON_KEYS, WORD_KEYS, given_verdicts, passed_share, reason
from evaluator_host.types.evaluator import Json, Language
from evaluator_host.types.outcome import EvaluationError, Note

_NAMES: Final = ("name", "key", "metric")
_KINDS: Final = ("scorer", "grader", "check", "criterion")
"""Keys that name an object in a list if none of `_NAMES` does; a `value` beside them may be any number."""
_NOT_JUDGED: Final = frozenset(("abstain", "abstained", "skip", "skipped", "n/a", "na", "not_applicable"))
"""Texts under `verdict` or `status` of an object in a list with which it says that it does not apply."""
_OVERALL: Final = (
    *("overall", "overallScore", "overall_score", "totalScore", "total_score", "finalScore", "final_score"),
    *("averageScore", "average_score", "avg_score", "meanScore", "mean_score", "weightedScore", "weighted_score"),
)
_GROUPS: Final = ("scores", "metrics", "checks", "criteria", "dimensions", "evaluations", "assertions")
"""Keys under which an object that has no `score` may have scores or verdicts by name."""
_WRAPPERS: Final = ("result", "verdict", "judgment", "judgement", "judgeResult", "evaluation", "grade", "overall")
"""Keys under which an object may contain the evaluator's whole result: `{"verdict": {"pass": true}, "usage": {…}}`."""
_MOST_WRAPPERS: Final = 3
_TOTALS: Final = ("total", "total_reward", "totalReward")
_MEASURES: Final = frozenset(
    (
        "accuracy",
        "correctness",
        "f1",
        "faithfulness",
        "match",
        "overlap",
        "quality",
        "relevance",
        "reward",
        "score",
        "similarity",
    )
)
"""If an object has only one number, and the number's name contains one of these words, the number is the score."""
_NO_MEASURES: Final = frozenset(
    ("count", "index", "limit", "max", "maximum", "min", "minimum", "no", "not", "num", "target", "threshold")
)
"""A number with one of these words in its name is a count or a limit, not the score: `max_score`."""
_COUNTED: Final = frozenset(
    (
        "completion",
        "count",
        "errors",
        "failed",
        "failures",
        "fn",
        "fp",
        "incorrect",
        "mismatches",
        "missed",
        "misses",
        "missing",
        "prompt",
        "skipped",
        "tokens",
        "warnings",
        "wrong",
    )
)
"""If numbers have these words in their names, their sum is a count of things, not a score."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+\d*(?![a-z])", re.ASCII)
_CLOSE: Final = 1e-9
_SKIPPED: Final = Note("skipped", "the evaluator returned no score that is a number, so it does not apply to this row")
_HINT: Final = "give each object in the list a `name` and a `score`"


def is_score_list(value: Json) -> TypeGuard[list[dict[str, Json]]]:
    """Return whether a value is a list of objects, at least one of which has a score or a verdict."""
    return (
        isinstance(value, list)
        and all(isinstance(one, dict) for one in value)
        and any("score" in with_score(one) or given_verdicts(one) or passed_share(one) is not None for one in value)
    )


def read_score_list(
    found: list[dict[str, Json]], language: Language, *, chosen: str | None
) -> Scored | EvaluationError:
    """Return the mean of the scores in a list, or the score with the name `chosen`.

    Each object is read as if it were returned alone. If no score that counts has a value, the row is skipped.
    """
    named: list[NamedScore] = []
    notes: list[Note] = []
    kinds = Counter(_name(one) or _kind(one) for one in found)
    for place, one in enumerate(found):
        # several objects of one kind are different scores
        kind = _kind(one) if kinds[_kind(one)] == 1 else None
        name = _name(one) or kind or f"score_{place + 1}"
        if _is_not_judged(one):
            named.append(NamedScore(name, None, reason(one)))
            continue
        read = mapping(with_score(one), language)
        if isinstance(read, EvaluationError):
            return replace(read, message=f"{name}: {read.message}")
        if "score" not in with_score(one) and read.score is None and read.label is None:
            return invalid(f"{name}: the object has no score", _HINT)
        notes += [replace(note, message=f"{name}: {note.message}") for note in read.notes if note.code != "no_score"]
        named.append(NamedScore(name, read.label if read.score is None else read.score, read.reason, read.passed))
    return scored(named, (), notes=tuple(notes), chosen=chosen, skipped=_SKIPPED)


def _is_not_judged(one: dict[str, Json]) -> bool:
    words = (one.get(key) for key in WORD_KEYS)
    return not _is_scored(with_score(one)) and any(
        isinstance(word, str) and word.lower() in _NOT_JUDGED for word in words
    )


def _kind(one: dict[str, Json]) -> str | None:
    return next((kind for key in _KINDS if isinstance(kind := one.get(key), str) and kind), None)


def _name(one: dict[str, Json]) -> str | None:
    return next((name for key in _NAMES if isinstance(name := one.get(key), str) and name), None)


def with_score(one: dict[str, Json]) -> dict[str, Json]:
    """Return an object. If it has no `score`, add its overall score, or its `value` if the object has a name.

    The key `overall` is used only if there is no other overall score.
    """
    if "score" in one:
        return one
    keys = (*(("value",) if _name(one) else ()), *_OVERALL)
    found = [key for key in keys if isinstance(one.get(key), bool | int | float)]
    found = [key for key in found if key != "overall"] or found
    return {**one, "score": one[found[0]]} if len(found) == 1 else one


def with_inner(one: dict[str, Json], depth: int = _MOST_WRAPPERS) -> dict[str, Json]:
    """Return an object.

    If it has no score, verdict or number, but contains a single result, add the score of this result.
    """
    if _is_scored(one) or _numbers(one) or depth == 0:
        return one
    if depth == _MOST_WRAPPERS and inner_scores(one, None) is not None:
        return one
    inside = [with_inner(with_score(value), depth - 1) for key in _WRAPPERS if isinstance(value := one.get(key), dict)]
    found = [value for value in inside if _is_scored(value)]
    if len(found) != 1:
        return one
    [result] = found
    kept = ("score", *given_verdicts(result), *REASON_KEYS)
    return {**one, **{key: result[key] for key in kept if key in result}}


def _is_scored(one: dict[str, Json]) -> bool:
    return "score" in one or bool(given_verdicts(one)) or passed_share(one) is not None


def inner_scores(one: dict[str, Json], chosen: str | None) -> list[dict[str, Json]] | None:
    """Return the named scores inside an object that has neither score nor verdict, as `read_score_list` reads them.

    They are the list or object under a key such as `checks`: `{"checks": {"short": {"passed": true}}}`. Metrics may
    have different scales. So plain numbers (`{"short": 1}`), and a `value` in an object with a `name`, count only under
    `scores`, or if a score is chosen by its name. Return None if several keys have scores.

    The object itself may be the group, if each of its values is a result: `{"short": {"passed": true, "score": 1}}`.
    """
    if _is_scored(one):
        return None
    is_group = len(one) > 1 and not one.keys() & set(_WRAPPERS)
    if is_group and all(isinstance(value, dict) and _is_result(value) for value in one.values()):
        return [{**value, "name": name} for name, value in one.items() if isinstance(value, dict)]
    listed = [_listed(one.get(key), with_values=key == "scores" or chosen is not None) for key in _GROUPS]
    groups = [group for group in listed if is_score_list(group)]
    return groups[0] if len(groups) == 1 else None


def _is_result(one: dict[str, Json]) -> bool:
    """Return whether an object has a verdict, and besides it a score or a reason."""
    return bool(given_verdicts(one)) and ("score" in one or reason(one) is not None)


def _listed(group: Json, *, with_values: bool) -> Json:
    if isinstance(group, dict) and group:
        numbers = {name: value for name, value in group.items() if isinstance(value, bool | int | float)}
        if with_values and numbers and all(isinstance(group[name], str) for name in group.keys() - numbers.keys()):
            return [{"name": name, "score": value} for name, value in numbers.items()]
        group = [{**value, "name": name} if isinstance(value, dict) else value for name, value in group.items()]
    return [_without_value(one) for one in group] if isinstance(group, list) and not with_values else group


def _without_value(one: Json) -> Json:
    return {key: inner for key, inner in one.items() if key != "value"} if isinstance(one, dict) else one


def with_measure(one: dict[str, Json]) -> dict[str, Json]:
    """Return an object. If it has neither a score nor a verdict, add a score from its numbers.

    The score is a number under a key such as `total` that is the sum of all other numbers, unless these are counts
    (`{"right": 7, "wrong": 3}`). If there is only one number, it is the score if its name says that it is a measure
    (`exact_match`, but not `max_score`).
    """
    if _is_scored(one):
        return one
    key = _sum_or_only_number(one)
    return one if key is None else {**one, "score": one[key]}


def _sum_or_only_number(one: dict[str, Json]) -> str | None:
    numbers = _numbers(one)
    if len(numbers) == 1:
        key = next(iter(numbers))
        return key if _MEASURES & _words(key) and not _NO_MEASURES & _words(key) else None
    totals = [key for key in _TOTALS if key in numbers]
    parts = {key: number for key, number in numbers.items() if key not in totals}
    if len(totals) != 1 or len(parts) == 1 or _are_counts(parts):
        return None
    total = numbers[totals[0]]
    return totals[0] if math.isclose(sum(parts.values()), total, rel_tol=_CLOSE, abs_tol=_CLOSE) else None


def _numbers(one: dict[str, Json]) -> dict[str, float]:
    return {
        key: number
        for key, value in one.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and (number := finite(value)) is not None
    }


def _are_counts(parts: dict[str, float]) -> bool:
    whole = all(number >= 0 and number == int(number) for number in parts.values())
    return whole and any(_COUNTED & _words(key) for key in parts)


def _words(key: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(key)}

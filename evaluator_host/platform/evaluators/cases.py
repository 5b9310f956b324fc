"""Reads and checks test cases: rows with the result that an evaluator should give.

Cases are stored with the evaluator's version, or in a file next to the evaluator's file.

A case is a row with `expect`, and with `case`, its name. `expect` must be an object with some of `score` (within
`tolerance`), `min`, `max`, `above`, `below`, `passed`, `label` and `error` (a code, the type of an exception, or true
for any), or a string with the same meaning: `1 ± 0.05`, `0.4..0.6`, `>= 0.5`, `passed`, `not passed`, `fails`,
`fails timeout` or `label good`. A string may have several of these parts, with `;` between them.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from evaluator_host.engine.contracts.native import is_number
from evaluator_host.types.bounds import ROUNDING, exceeds, reaches
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluation import CaseProblem, CheckReport
from evaluator_host.types.evaluator import ROW_FIELDS, Json, Row
from evaluator_host.types.numbers import exact
from evaluator_host.types.outcome import EvaluationResult

MOST_CASES: Final = 200
MOST_BYTES: Final = 1 << 20  # maximum bytes of all cases in a version, as JSON
_EXPECT_CHARS: Final = 1000  # maximum number of characters in an `expect` that is a string
_BOUNDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "min": reaches,
    "max": lambda score, bound: reaches(bound, score),
    "above": exceeds,
    "below": lambda score, bound: exceeds(bound, score),
}
_SIGNS: Final = {">=": "min", "≥": "min", "<=": "max", "≤": "max", ">": "above", "<": "below"}
_NUMBERS: Final = ("score", "tolerance", *_BOUNDS)
_NUMBER: Final = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_NEAR: Final = re.compile(rf"=?\s*{_NUMBER}\s*(?:(?:±|\+-|\+/-)\s*{_NUMBER})?", re.IGNORECASE)
_BETWEEN: Final = re.compile(rf"{_NUMBER}\s*(?:\.\.|to|\u2013|…)\s*{_NUMBER}", re.IGNORECASE)
_BOUND: Final = re.compile(rf"(>=|≥|>|<=|≤|<)\s*{_NUMBER}", re.IGNORECASE)
_WORDS: Final[dict[str, dict[str, Json]]] = {
    **{word: {"passed": True} for word in ("passed", "pass", "passes", "true", "✓")},
    **{word: {"passed": False} for word in ("not passed", "not pass", "false", "✗")},
    **{word: {"error": True} for word in ("fails", "failed", "fail", "error")},
}
_NAMES: Final = ("score", "tolerance", *_BOUNDS, "passed", "label", "error")
_HELP: Final = "write 1, 1 ± 0.05, 0.4..0.6, >= 0.5, passed, not passed, fails, fails timeout or label good"


def read_expect(given: Json) -> dict[str, Any]:
    """Convert an `expect` that is an object, a number or a string to an object.

    Raises:
      ValueError: `expect` is empty or too long, or has an unknown form; the message lists the possible forms.
    """
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = {"score": given}
    if isinstance(given, str):
        if len(given) > _EXPECT_CHARS:
            raise ValueError(f"`expect` has {len(given):,} characters, and may have at most {_EXPECT_CHARS:,}; {_HELP}")
        found: dict[str, Any] = {}
        for part in filter(None, map(str.strip, given.split(";"))):
            found |= _read_words(part)
    else:
        found = given if isinstance(given, dict) else {}
    if not found or not found.keys() <= set(_NAMES):
        raise ValueError(f"`expect` must be an object with some of {', '.join(_NAMES)}, or a string: {_HELP}")
    for name, value in found.items():
        if name in _NUMBERS and value is not None and not is_number(value):
            raise ValueError(f"`expect.{name}` must be a number that a float can hold, not {str(value)[:40]!r}")
    return found


def _read_words(text: str) -> dict[str, Any]:
    if (known := _WORDS.get(text.lower())) is not None:
        return known
    if match := _NEAR.fullmatch(text):
        return {"score": float(match[1])} | ({"tolerance": float(match[2])} if match[2] else {})
    if match := _BETWEEN.fullmatch(text):
        return {"min": float(match[1]), "max": float(match[2])}
    if match := _BOUND.fullmatch(text):
        return {_SIGNS[match[1]]: float(match[2])}
    word, _, rest = text.partition(" ")
    names = {"label": "label", "fails": "error"}
    if rest and word.lower() in names:
        return {names[word.lower()]: rest.strip()}
    raise ValueError(f"{text[:40]!r} is not an expectation; {_HELP}")


def expect_text(given: Json) -> str:
    """Format an `expect` as people write it: `0.5 ± 0.05`."""
    expect = read_expect(given)
    said = []
    if "score" in expect:
        near = f" ± {exact(expect['tolerance'])}" if expect.get("tolerance") else ""
        said.append("no score" if expect["score"] is None else f"{exact(expect['score'])}{near}")
    said += [f"{sign} {exact(expect[name])}" for sign, name in _SIGNS.items() if sign.isascii() and name in expect]
    if "passed" in expect:
        said.append("passed" if expect["passed"] else "not passed")
    if "label" in expect:
        said.append(f"label {expect['label']}")
    if "error" in expect:
        said.append("fails" if expect["error"] is True else f"fails {expect['error']}")
    return "; ".join(said)


def unmet(expect: dict[str, Any], result: EvaluationResult) -> str | None:
    """Return the difference between a result and `expect`: `score 0.2, not 0.5`. None if there is no difference."""
    if (error := result.error) is not None:
        wanted = expect.get("error")
        if wanted is None:
            return f"{error.code}: {error.typed_message}"
        return None if wanted in (True, error.code, error.type) else f"{error.code}, not {wanted}"
    said = "no score" if result.score is None else f"score {exact(result.score)}"
    if "error" in expect:
        return f"{said}, not {'a failure' if expect['error'] is True else expect['error']}"
    if not _is_near(expect, result.score) or not all(
        result.score is not None and holds(result.score, expect[name])
        for name, holds in _BOUNDS.items()
        if name in expect
    ):
        return f"{said}, not {expect_text({name: expect[name] for name in expect if name in _NUMBERS})}"
    for name in ("passed", "label"):
        if name in expect and getattr(result, name) != expect[name]:
            return f"{name} {getattr(result, name)}, not {expect[name]}"
    return None


def _is_near(expect: dict[str, Any], score: float | None) -> bool:
    if "score" not in expect:
        return True
    wanted, tolerance = expect["score"], expect.get("tolerance") or 0
    return score == wanted if score is None or wanted is None else bool(abs(score - wanted) <= tolerance + ROUNDING)


def case_name(case: dict[str, Any], place: int) -> str:
    """Return the name of a case. Without a name, return its position in the list: `row 3`."""
    return str(case.get("case") or f"row {place}")


def case_text(case: dict[str, Any], place: int) -> str:
    """Return a case's name and expected result for people to read: `half: 0.5 ± 0.05`."""
    return f"{case_name(case, place)}: {expect_text(case['expect'])}"


def case_row(case: dict[str, Any]) -> Row:
    """Return the row (inputs, outputs, trace, …) to evaluate for a case."""
    return Row(**{name: case[name] for name in ROW_FIELDS if case.get(name) is not None})


def case_problems(cases: Sequence[dict[str, Any]], results: Sequence[EvaluationResult]) -> tuple[CaseProblem, ...]:
    """Return the cases with an unexpected result. `results` are the results in the order of the cases."""
    pairs = zip(cases, results, strict=True)
    found = ((place, case, unmet(read_expect(case["expect"]), result)) for place, (case, result) in enumerate(pairs))
    return tuple(CaseProblem(case_name(case, place), problem) for place, case, problem in found if problem is not None)


async def check_cases(
    evaluate: Callable[[list[Row]], Awaitable[list[EvaluationResult]]], report: CheckReport, cases: Sequence[Any]
) -> CheckReport:
    """If `report` says that an evaluator loads, run its cases. Add the cases that fail to the report, and return it."""
    if report.problems or not cases:
        return report
    failing = case_problems(cases, await evaluate([case_row(case) for case in cases]))
    return replace(report, ok=report.ok and not failing, failing_cases=failing)


def failing_request(failing: Sequence[CaseProblem]) -> InvalidRequest:
    """Return the error for an evaluator that was not stored because some of its cases failed."""
    return InvalidRequest(
        f"{len(failing)} of the evaluator's cases failed: {failing[0].case}: {failing[0].problem}",
        problems=tuple(Problem(f"cases.{one.case}", one.problem, "change the code or the case") for one in failing),
    )

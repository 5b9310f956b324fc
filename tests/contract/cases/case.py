"""A case: an evaluator, a row, and the result that a user should see; the real result is compared with it."""

from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, Final

from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import EvaluationResult

ANY: Final = object()
"""Stands for a value that is not compared with the result."""

_DECIDED: Final = frozenset(
    ("no_score", "coerced", "out_of_range", "duplicate_metric", "bare_score", "trace_converted", "source_cleaned")
)
"""Warnings that a case must expect if they occur; other warnings (for example about a pre-bound name) may always occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The required content of a result.

    Attributes:
      error: Expected code of the error; None if the row must have a score.
      message: Text that must be in the error's message or hint; upper and lower case count as equal.
      type: Class of the exception.
      line: Line of the error in the user's code.
      warnings: Codes of warnings that must occur.
      optional_warnings: Codes of warnings that may occur.
    """

    score: Any = None
    passed: bool | None = None
    label: str | None = None
    reason: str | None = None
    metrics: Any = ANY
    value: Any = ANY
    error: str | None = None
    message: str = ""
    type: str | None = None
    line: int | None = None
    warnings: frozenset[str] = frozenset()
    optional_warnings: frozenset[str] = frozenset()
    contract: str | None = None
    stdout: Any = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One evaluator, one row, one result."""

    id: str
    language: Language
    code: str
    expected: Expected
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: Any = None
    trace: dict[str, Any] | None = None
    variables: dict[str, Any] | None = None
    contract: Contract = Contract.AUTO
    correct_answer_key: str = "correct_answer"
    entry: str | None = None
    threshold: float | None = None

    @property
    def evaluator(self) -> Evaluator:
        return Evaluator(
            self.code,
            language=self.language,
            contract=self.contract,
            threshold=self.threshold,
            settings=EvaluatorSettings(correct_answer_key=self.correct_answer_key, entry=self.entry),
        )

    @property
    def row(self) -> Row:
        return Row(self.inputs, self.outputs, self.trace, self.variables)

    @property
    def request(self) -> dict[str, Any]:
        """The body of `POST /v1/evaluate`."""
        settings = {"correct_answer_key": self.correct_answer_key, "entry": self.entry}
        evaluator = {"code": self.code, "language": self.language.value, "contract": self.contract.value}
        evaluator |= {"threshold": self.threshold, "settings": settings}
        row = {"inputs": self.inputs, "outputs": self.outputs, "trace": self.trace, "variables": self.variables}
        return {"evaluator": evaluator, **row}

    def mismatches(self, result: EvaluationResult) -> list[str]:
        """Return a description of each difference between a result and the expected result."""
        expected, error = self.expected, result.error
        status = "failed" if expected.error else "scored"
        found: dict[str, tuple[Any, Any]] = {
            "status": (result.status.value, status),
            "error": (error and error.code.value, expected.error),
            "score": (result.score, expected.score),
            "passed": (result.passed, expected.passed),
            "label": (result.label, expected.label),
            "reason": (result.reason, expected.reason),
            "metrics": (result.metrics, expected.metrics),
            "value": (result.value, expected.value),
            "stdout": (result.logs.stdout, expected.stdout),
        }
        if expected.contract:
            found["contract"] = (result.evaluator.contract, expected.contract)
        if expected.type:
            found["error.type"] = (error and error.type, expected.type)
        if expected.line:
            found["error.line"] = (error and error.line, expected.line)
        differing = [
            f"{name}: {have!r}, expected {want!r}" for name, (have, want) in found.items() if not _same(have, want)
        ]
        words = f"{error.message} {error.hint or ''}" if error else ""
        if expected.message.casefold() not in words.casefold():
            differing.append(f"error says {words!r}, expected {expected.message!r} in it")
        if differing and error:
            differing.append(f"error: {error}")
        return differing + self._warning_mismatches(result)

    def _warning_mismatches(self, result: EvaluationResult) -> list[str]:
        codes = {note.code for note in result.warnings}
        missing = self.expected.warnings - codes
        unexpected = (codes & _DECIDED) - self.expected.warnings - self.expected.optional_warnings
        return [f"warning {code} is missing" for code in sorted(missing)] + [
            f"unexpected warning {note}" for note in result.warnings if note.code in unexpected
        ]


def _same(have: Any, want: Any) -> bool:
    """Whether two values are equal as JSON, where (unlike in Python) 1 and true differ."""
    if want is ANY:
        return True
    if isinstance(want, dict) and isinstance(have, dict):
        return have.keys() == want.keys() and all(_same(have[key], value) for key, value in want.items())
    return bool(have == want) and isinstance(have, bool) == isinstance(want, bool)


def python(case_id: str, code: str, expected: Expected, **more: Any) -> Case:
    """Make a Python case from indented code."""
    return Case(id=f"py-{case_id}", language=Language.PYTHON, code=dedent(code).lstrip("\n"), expected=expected, **more)


def javascript(case_id: str, code: str, expected: Expected, **more: Any) -> Case:
    """Make a JavaScript case from indented code."""
    return Case(
        id=f"js-{case_id}", language=Language.JAVASCRIPT, code=dedent(code).lstrip("\n"), expected=expected, **more
    )


def typescript(case_id: str, code: str, expected: Expected, **more: Any) -> Case:
    """Make a TypeScript case from indented code."""
    return Case(
        id=f"ts-{case_id}", language=Language.TYPESCRIPT, code=dedent(code).lstrip("\n"), expected=expected, **more
    )


def scored(score: Any, **more: Any) -> Expected:
    """Expect a score; `metrics` are derived from it unless they are given."""
    metrics = {} if score is None else {"score": score}
    return Expected(**({"score": score, "metrics": metrics} | _frozen(more)))


def failed(error: str, message: str = "", **more: Any) -> Expected:
    return Expected(**({"error": error, "message": message, "metrics": {}} | _frozen(more)))


def _frozen(more: dict[str, Any]) -> dict[str, Any]:
    return {k: frozenset((v,) if isinstance(v, str) else v) if k.endswith("warnings") else v for k, v in more.items()}

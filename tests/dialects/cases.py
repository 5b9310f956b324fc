"""A test case for a dialect (a platform's kind of evaluator): code as users paste it, a row, and the platform's result."""

from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, Final

from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import EvaluationResult

ANY: Final = object()
"""Stands for a value that is not compared with the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeCase:
    """One evaluator, one row, one result.

    Attributes:
      contract: Declared contract; `auto` if the host has to recognise it.
      row: Fields of the row; `variables` contains the platform's own row.
      recognised: Contract that the result must contain; None if the code does not load.
      error: Code of the expected error; None if the row must not fail.
      message: Text that the error's message and hint must contain.
      native: Objects that the platform itself stores for the row.
      warnings: Codes that must be among the warnings.
      unwarned: Codes that must not be among the warnings.
    """

    id: str
    code: str
    row: Row
    language: Language = Language.PYTHON
    contract: Contract = Contract.AUTO
    settings: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    packages: tuple[str, ...] = ()
    threshold: float | None = None
    recognised: Contract | None = None
    status: str = "scored"
    error: str | None = None
    message: str = ""
    line: Any = ANY
    score: Any = ANY
    passed: Any = ANY
    label: Any = ANY
    reason: Any = ANY
    metrics: Any = ANY
    native: Any = ANY
    warnings: frozenset[str] = frozenset()
    unwarned: frozenset[str] = frozenset()

    @property
    def evaluator(self) -> Evaluator:
        return Evaluator(
            dedent(self.code).lstrip("\n"),
            language=self.language,
            contract=self.contract,
            settings=self.settings,
            packages=self.packages,
            threshold=self.threshold,
        )

    def mismatches(self, result: EvaluationResult) -> list[str]:
        """Describe the differences between a result and the expected result; empty if there are none."""
        error = result.error
        found = {
            "status": (result.status.value, self.status),
            "error": (error and error.code.value, self.error),
            "line": (error and error.line, self.line),
            "contract": (result.evaluator.contract, self.recognised),
            "score": (result.score, self.score),
            "passed": (result.passed, self.passed),
            "label": (result.label, self.label),
            "reason": (result.reason, self.reason),
            "metrics": (result.metrics, self.metrics),
            "native": (list(result.native), self.native),
        }
        differing = [
            f"{name}: {have!r}, expected {want!r}" for name, (have, want) in found.items() if not _same(have, want)
        ]
        words = f"{error.message} {error.hint or ''}" if error else ""
        if self.message not in words:
            differing.append(f"error says {words!r}, expected {self.message!r} in it")
        if missing := self.warnings - {note.code for note in result.warnings}:
            differing.append(f"warnings {sorted(missing)} are missing; there are {result.warnings}")
        if wrong := [note for note in result.warnings if note.code in self.unwarned]:
            differing.append(f"there must be no warnings {wrong}")
        own = {} if self.recognised is None else dialect_of(self.recognised).warnings
        if untold := [one for one in result.warnings if one.code in own and one.remedy != own[one.code].remedy]:
            differing.append(f"warnings do not say what to do: {untold}")
        if differing and error:
            differing.append(f"error: {error}")
        return [f"{self.id}: {one}" for one in differing]


def _same(have: Any, want: Any) -> bool:
    """Whether two values are equal as JSON, where (unlike in Python) 1 and true differ."""
    if want is ANY:
        return True
    if isinstance(want, dict) and isinstance(have, dict):
        return have.keys() == want.keys() and all(_same(have[key], value) for key, value in want.items())
    if isinstance(want, list) and isinstance(have, list):
        return len(have) == len(want) and all(map(_same, have, want))
    return bool(have == want) and isinstance(have, bool) == isinstance(want, bool)

"""The catalogue of warnings: what each code of a `Note` means, and whether it makes a score doubtful.

docs/api.md lists these codes. The codes of one dialect are in its `Dialect.warnings`. `WarningTally` counts the
warnings of many rows, and `doubt` says whether none of their scores can be relied on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final

from .doc import Doc
from .evaluator import Evaluator
from .outcome import EvaluationResult, Note

MOST_CODES: Final = 40  # maximum number of codes that a tally counts, because a sandbox may invent any number of codes
ROWS: Final = 5  # maximum number of row numbers that the count of a warning lists
_CODE_CHARS: Final = 100
# a threshold from 1 to 10 is probably for ratings, a threshold from 10 to 100 for percentages
_RATING, _PERCENT = 10, 100
_TEXT_CHARS: Final = 600
_TOLD_TOGETHER: Final = 5  # maximum number of different warnings with one code that are told together


class Mend(StrEnum):
    """The place where a user can remove the cause of a warning."""

    MAPPING = "mapping"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class WarningKind:
    """The meaning of a warning's code, whether it makes scores doubtful, and what to do if the note does not say."""

    meaning: str
    doubtful: bool = False
    remedy: str | None = None
    mend: Mend | None = None


WARNINGS: Final[Mapping[str, WarningKind]] = MappingProxyType(
    {
        "missing_outputs": WarningKind(
            "the code reads the outputs, but the row has none", doubtful=True, mend=Mend.MAPPING
        ),
        "missing_column": WarningKind(
            "the row lacks the expected answer, or a value that the code compares (or tests, in JavaScript)",
            doubtful=True,
            mend=Mend.MAPPING,
        ),
        "empty_expected": WarningKind(
            "the code reads the expected answer, but the row has none, or an empty one",
            doubtful=True,
        ),
        "answer_cut": WarningKind(
            "the model's answer was cut off at its token limit",
            doubtful=True,
            remedy="raise `max_tokens` in `inference`",
        ),
        "unused_variables": WarningKind(
            "the row has `variables` that the contract does not pass to the code", doubtful=True, mend=Mend.MAPPING
        ),
        "unused_config": WarningKind(
            "`settings.config` has keys that the contract does not read",
            remedy="look for a misspelt key, or give the values in the row",
        ),
        "missing_import": WarningKind(
            "the code imports a package that is not pinned, and goes on without it",
            doubtful=True,
            mend=Mend.CODE,
        ),
        "unreachable": WarningKind(
            "the code could not reach another host, and goes on without an answer",
            doubtful=True,
            remedy="grant it the host (`network`) or a model (`models`), or put what the code needs into the row",
        ),
        "missing_key": WarningKind(
            "the code reads an environment variable for a key or token that is not set",
            doubtful=True,
            remedy="grant it a model (`models`) or a secret (`secrets`), if the score needs it",
        ),
        "own_time_limit": WarningKind(
            "a library stopped at its own time limit, perhaps only because the machine was busy",
            doubtful=True,
            remedy="turn the library's limit off, because `limits.timeout_s` already limits the row",
            mend=Mend.CODE,
        ),
        "missing_param": WarningKind(
            "the code reads a key of `app_params` that was not given",
            doubtful=True,
            remedy="give it in `settings.config`, or in `app_params` of the row: a column, or one of its variables",
        ),
        "rounded_integer": WarningKind(
            "the row has an integer beyond 2^53, and JavaScript rounds it",
            doubtful=True,
            remedy='set `settings.integers` to "bigint" or "text", or send it as text',
        ),
        "suspicious_parameters": WarningKind(
            "the names of parameters contradict their values, so the score would always be 0",
            doubtful=True,
            mend=Mend.CODE,
        ),
        "verdicts_disagree": WarningKind(
            "the result has two verdicts that contradict each other",
            doubtful=True,
            mend=Mend.CODE,
            remedy="return one of them, or the same in both",
        ),
        "standard_decorators": WarningKind(
            "decorators ran by the rules of the JavaScript standard, but may be written for TypeScript's own rules",
            doubtful=True,
            mend=Mend.CODE,
            remedy="send a tsconfig.json in `files` that sets `experimentalDecorators`, or write (value, context)",
        ),
        "no_decorator_metadata": WarningKind(
            "tsconfig.json asks for metadata of decorators, which the compiler does not write",
            doubtful=True,
            mend=Mend.CODE,
            remedy="give decorators the types that they need as arguments, or send compiled JavaScript",
        ),
        "non_finite": WarningKind(
            "one of several outputs is NaN or infinite, so it is left out",
            doubtful=True,
            mend=Mend.CODE,
            remedy="test for an empty list and for a division by zero before this output is computed",
        ),
        "entry_failed": WarningKind(
            "one of several evaluators in the code failed; the score comes from the others",
            doubtful=True,
            mend=Mend.CODE,
            remedy="fix this evaluator, or name the one that counts in `settings.entry`",
        ),
        "entry_left_out": WarningKind(
            "one of several evaluators in the code is not called; the score comes from the others",
            doubtful=True,
            mend=Mend.CODE,
            remedy="pin the package that it needs, write it as a function, or name the one that counts in "
            "`settings.entry`",
        ),
        "scoring_failed": WarningKind(
            "a score cannot be used, or an error replaces it",
            doubtful=True,
            mend=Mend.CODE,
            remedy="the result's `value` says why",
        ),
        "duplicate_metric": WarningKind(
            "two outputs have the same name", doubtful=True, mend=Mend.CODE, remedy="give each output its own name"
        ),
        "no_score": WarningKind(
            "the result has no number, so the score is null",
            remedy="return a number, or a dict with `score`",
            mend=Mend.CODE,
        ),
        "out_of_range": WarningKind(
            "the score is outside 0..1; it is not changed",
            remedy="divide the score by the highest possible score, if there is one",
        ),
        "threshold_out_of_range": WarningKind("the score is in 0..1, but the threshold is not"),
        "coerced": WarningKind("a value was read as another type; the message says which"),
        "bare_score": WarningKind("`main` returned a number, not the object that its contract requires"),
        "dropped": WarningKind("the result has a part that the evaluator's platform would drop"),
        "too_many_metrics": WarningKind(
            "the result has too many numbers to keep them all as metrics; the others are in `value`"
        ),
        "trace_converted": WarningKind("the trace was not in the documented format, and was converted"),
        "ignored": WarningKind("the host does not read a part of the evaluator or of its criteria"),
        "skipped": WarningKind("the evaluator says that it does not apply to the row"),
        "not_asked": WarningKind("the row has no criteria for the evaluator"),
        "several_entries": WarningKind("the code has several evaluators; the message says which ones are called"),
        "several_scores": WarningKind(
            "the evaluator returned several scores; the score is their mean",
            remedy="to use one of them, name it in `settings.score_output`",
        ),
        "not_an_entry": WarningKind("a function that is not an evaluator is not called"),
        "entry_found_inside": WarningKind("the evaluator is inside a string or a function of the code"),
        "source_cleaned": WarningKind("a code fence, line numbers or the like were removed"),
        "repaired": WarningKind("the code had lost its indentation, and ran with the only indentation that fits"),
        "magics": WarningKind("lines of a notebook that are not Python were left out of the code"),
        "prebound": WarningKind("the code uses names without importing them, as its platform allows"),
        "packages_chosen": WarningKind(
            "the host chose packages for the modules that the code imports",
            remedy="to keep these versions, give the pins as `packages`",
        ),
        "threads_at_load": WarningKind(
            "loading the code left threads, interpreters or processes behind, so each row loads it again"
        ),
        "files_at_load": WarningKind("loading the code left files behind, so each row loads it again"),
        "descriptors_at_load": WarningKind("loading the code left files or sockets open, so each row loads it again"),
        "memory_at_load": WarningKind("loading the code left shared memory behind, so each row loads it again"),
        "no_network": WarningKind("the code imports a client for models or HTTP, but has no grant for models or hosts"),
    }
)
"""Warnings by code. The first ones make a score doubtful; the others say how the score came about.

Dialects add their own.
"""

DOUBTFUL: Final = frozenset(code for code, kind in WARNINGS.items() if kind.doubtful)
"""Codes of the warnings that make a score doubtful."""


def threshold_notes(threshold: float | None, low: float = 0, high: float = 1) -> tuple[Note, ...]:
    """Return a warning if a threshold is outside the range of the scores, so that no score or every score passes."""
    if threshold is None or low <= threshold <= high:
        return ()
    passes = "no score in this range reaches it" if threshold > high else "every score in this range reaches it"
    message = f"the threshold {threshold:g} is outside {low:g}..{high:g}: {passes}"
    is_percentage = (low, high) == (0, 1) and _RATING < threshold <= _PERCENT
    meant = f"did you mean {threshold / _PERCENT:g}?" if is_percentage else f"give a number from {low:g} to {high:g}"
    return (Note("threshold_out_of_range", message, meant),)


def code_threshold_notes(evaluator: Evaluator) -> tuple[Note, ...]:
    """Return a warning if the threshold of code is outside 0..1. A judge has its own scale."""
    return threshold_notes(evaluator.threshold) if evaluator.judge is None else ()


def remedy_of(code: str) -> str | None:
    """Return general advice about warnings of this code, or None if nothing needs to be done."""
    kind = WARNINGS.get(code)
    return None if kind is None else kind.remedy


@dataclass(frozen=True, slots=True)
class WarningCount:
    """A warning, and how many rows of an evaluator have it."""

    code: Annotated[str, Doc("Code of the warning (docs/api.md#warnings).")]
    count: Annotated[int, Doc("Number of rows that have the warning.")]
    message: Annotated[
        str, Doc("What happened, in the row that was counted first; up to five warnings with this code are joined.")
    ]
    remedy: Annotated[str | None, Doc("What to do about it; None if nothing needs to be done.")]
    rows: Annotated[tuple[int, ...], Doc("Numbers of the first five rows that have the warning.")]
    doubtful: Annotated[bool, Doc("Whether the warning makes the score of a row doubtful.")] = False
    mend: Annotated[
        Mend | None, Doc("Where a user can remove the cause: in the mapping or in the code; None for neither.")
    ] = None
    varies: Annotated[bool, Doc("Whether the warning's message differs between rows.")] = False

    @property
    def text(self) -> str:
        """Return how many rows have the warning, what happened, and what to do about it."""
        where = f"{self.count} row{'s' if self.count > 1 else ''}"
        example = f"for example row {self.rows[0]}: " if self.varies else ""
        return f"{self.code} ({where}): {example}{self.message}" + (f"; {self.remedy}" if self.remedy else "")


class WarningTally:
    """Counts the warnings of rows by code, in memory that does not grow with the number of rows.

    Args:
      known: Earlier counts, to which the tally adds.
    """

    def __init__(self, known: Iterable[WarningCount] = ()) -> None:
        self._counts = {one.code: one for one in known}

    def add(self, row: int, notes: Iterable[Note]) -> None:
        """Count the warnings of a row, each code once. Different warnings with the same code are told together."""
        by_code: dict[str, list[Note]] = {}
        for note in notes:
            by_code.setdefault(note.code[:_CODE_CHARS], []).append(note)
        for code, told in by_code.items():
            found = self._counts.get(code)
            if found is not None:
                rows = tuple(sorted({*found.rows, row}))[:ROWS]
                # rows finish in any order, so this result may belong to an earlier row than those counted so far
                is_earlier = rows[0] < min(found.rows, default=row)
                this = _first(code, told, row)
                varies = found.varies or this.message != found.message
                shown = this if is_earlier else found
                self._counts[code] = replace(shown, count=found.count + 1, rows=rows, varies=varies)
            elif len(self._counts) < MOST_CODES:
                self._counts[code] = _first(code, told, row)

    def counts(self) -> tuple[WarningCount, ...]:
        """Return the counts. Warnings that make scores doubtful come first, then the most frequent warnings."""
        return tuple(sorted(self._counts.values(), key=lambda one: (not one.doubtful, -one.count, one.code)))


def _first(code: str, told: Sequence[Note], row: int) -> WarningCount:
    kind = WARNINGS.get(code, WarningKind(""))
    message, remedy = _joined(note.message for note in told), _joined(note.remedy for note in told)
    return WarningCount(code, 1, message or "", remedy, (row,), kind.doubtful, kind.mend)


def _joined(texts: Iterable[str | None]) -> str | None:
    """Return the different texts among these as one, each shortened so that all fit. None if there is no text."""
    different = [*dict.fromkeys(text for text in texts if text)]
    shown = different[:_TOLD_TOGETHER]
    more = [f"and {len(different) - len(shown)} more"] if len(different) > len(shown) else []
    return "; ".join([*(text[: _TEXT_CHARS // len(shown)] for text in shown), *more]) or None


def doubt(*, rows: int, failed: int, numbers: int, doubted: int, warnings: Sequence[WarningCount] = ()) -> str | None:
    """Return why none of the scores of these rows can be relied on; None if at least one can, or if there are no rows.

    If one of several evaluators in the code failed in some rows, no score can be relied on. The scores of these rows
    leave out that evaluator, so the mean may be too high.

    `numbers` is the number of rows with a score or another number. `doubted` is the number of rows among them with a
    warning that makes the score doubtful.
    """
    if not rows:
        return None
    if failed == rows:
        return f"{failed} of {rows} rows failed"
    if not numbers:
        return f"0 of {rows} rows have a score"
    if doubted < numbers:
        lacking = next((one for one in warnings if one.code == "entry_failed"), None)
        if lacking is None:
            return None
        return f"{lacking.count} of {numbers} scores leave out an evaluator that failed: {lacking.message}"
    why = next((one.message for one in warnings if one.doubtful), "see the warnings")
    return all_doubtful(numbers, why)


def all_doubtful(numbers: int, why: str) -> str:
    """Return the sentence for `numbers` scores of which each is doubtful; `why` is the message of a warning."""
    return f"{numbers} of {numbers} scores are doubtful: {why}"


def doubt_of(result: EvaluationResult) -> str | None:
    """Return the message of the warning that makes a result's score or metrics doubtful; None if there is none."""
    if result.score is None and not result.metrics:
        return None
    return next((note.message[:_TEXT_CHARS] for note in result.warnings if note.code in DOUBTFUL), None)


def failed_together(together: EvaluationResult | None) -> str | None:
    """Return why the score over all rows together failed, or None if it did not fail or does not exist."""
    error = None if together is None else together.error
    return None if error is None else f"the score over all rows together failed: {error.code.value}: {error.message}"


class RowWarnings:
    """Collects the warnings of results as they arrive; if no score can be relied on, says why."""

    def __init__(self) -> None:
        self._tally = WarningTally()
        self._rows = self._failed = self._numbers = self._doubted = 0

    @classmethod
    def of(cls, results: Iterable[EvaluationResult]) -> "RowWarnings":
        """Return the warnings of these results, which count as rows 0, 1, 2 and so on."""
        made = cls()
        for row, result in enumerate(results):
            made.add(row, result)
        return made

    def add(self, row: int, result: EvaluationResult) -> None:
        """Count the result of a row."""
        has_number = result.score is not None or bool(result.metrics)
        self._rows += 1
        self._failed += result.error is not None
        self._numbers += has_number
        self._doubted += doubt_of(result) is not None
        self._tally.add(row, result.warnings)

    def counts(self) -> tuple[WarningCount, ...]:
        """Return the warnings in the order of `WarningTally.counts`."""
        return self._tally.counts()

    def doubt(self) -> str | None:
        """Return why no score can be relied on, or None (see the function `doubt`)."""
        return doubt(
            rows=self._rows,
            failed=self._failed,
            numbers=self._numbers,
            doubted=self._doubted,
            warnings=self.counts(),
        )

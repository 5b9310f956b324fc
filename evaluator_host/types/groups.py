"""Groups results by the value of a column: counts and mean scores, for a limited number of values."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

from .evaluator import Json
from .json_values import encode_json, value_at
from .numbers import wilson
from .outcome import Status
from .results import ColumnStatistics, GroupStatistics

GROUPS: Final = 200  # maximum number of values that get their own group
_VALUE_CHARS: Final = 200  # maximum number of characters, as JSON, in a value that gets its own group
_UNIT: Final = 1 << 1074  # every float is a multiple of 1 / _UNIT

Kept = TypeVar("Kept")


class Numbers:
    """Computes mean, standard error, minimum and maximum of numbers as they arrive; their order does not matter."""

    def __init__(self) -> None:
        self.count = 0
        self.min = math.inf
        self.max = -math.inf
        self._sum = 0  # the exact sum, in units of 1 / _UNIT
        self._squares = 0  # the exact sum of squares, in units of 1 / _UNIT**2

    def add(self, value: float) -> None:
        self.count += 1
        numerator, denominator = value.as_integer_ratio()
        units = numerator * (_UNIT // denominator)
        self._sum += units
        self._squares += units * units
        self.min, self.max = min(self.min, value), max(self.max, value)

    def mean(self, *, zeros: int = 0) -> float | None:
        """Return the mean of the numbers and of `zeros` zeros, or None if there are no numbers."""
        count = self.count + zeros
        return self._sum / (count * _UNIT) if count else None

    def std_error(self, *, zeros: int = 0) -> float | None:
        """Return the standard error of the mean, as if `zeros` more numbers were 0.

        It is None for fewer than two numbers, or if it is too large for a float.
        """
        count = self.count + zeros
        if count < 2:
            return None
        try:
            return math.sqrt((self._squares * count - self._sum**2) / (count**2 * (count - 1) * _UNIT**2))
        except OverflowError:
            return None


class _Group:
    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._verdicts: Counter[bool | None] = Counter()
        self._scores = Numbers()

    def add(self, status: str, score: float | None, *, passed: bool | None) -> None:
        self._statuses[status] += 1
        self._verdicts[passed] += 1
        if score is not None:
            self._scores.add(score)

    @property
    def has_scores(self) -> bool:
        return self._scores.count > 0

    @property
    def has_verdicts(self) -> bool:
        return self._verdicts[True] + self._verdicts[False] > 0

    def statistics(self, value: Json, *, zero_scores: bool, zero_verdicts: bool) -> GroupStatistics:
        """Return counts and scores of the rows that have this value.

        Failed rows count as a score of 0 with `zero_scores`, and as not passed with `zero_verdicts`.
        """
        failed = self._statuses[Status.FAILED]
        zeros = failed if zero_scores else 0
        judged = self._verdicts[True] + self._verdicts[False] + (failed if zero_verdicts else 0)
        return GroupStatistics(
            value=value,
            rows=self._statuses.total(),
            scored=self._statuses[Status.SCORED],
            failed=failed,
            skipped=self._statuses[Status.SKIPPED],
            mean=self._scores.mean(zeros=zeros),
            mean_rows=self._scores.count + zeros,
            pass_rate=self._verdicts[True] / judged if judged else None,
            std_error=self._scores.std_error(zeros=zeros),
            judged=judged,
            pass_interval=wilson(self._verdicts[True], judged),
        )

    @property
    def is_empty(self) -> bool:
        return not self._statuses


class ByValue(Generic[Kept]):
    """Keeps something for each of the first `most` values that are short, and for all other values together."""

    def __init__(self, make: Callable[[], Kept], *, most: int = GROUPS) -> None:
        self._make = make
        self._most = most
        self._by_key: dict[str, tuple[Json, Kept]] = {}
        self.others = make()

    def of(self, value: Json) -> Kept:
        """Return what is kept for a value. If there is room, a new value is not one of the others."""
        key = _key(value)
        if (found := self._by_key.get(key)) is not None:
            return found[1]
        if len(self._by_key) >= self._most or len(key) > _VALUE_CHARS:
            return self.others
        return self._by_key.setdefault(key, (value, self._make()))[1]

    def ordered(self) -> list[tuple[Json, Kept]]:
        """Return the values with what is kept for them, sorted by value."""
        return sorted(self._by_key.values(), key=lambda one: _order(one[0]))


class Groups:
    """Gathers the results of an evaluator, grouped by a value of their rows.

    Each of the first 200 values has its own group; all other results are counted together.
    """

    def __init__(self) -> None:
        self._groups = ByValue(_Group)

    def open(self, value: Json) -> None:
        """Give a value a group, even if no result with this value follows."""
        self._groups.of(value)

    def add(self, value: Json, status: str, score: float | None, *, passed: bool | None) -> None:
        """Count the result of a row that has this value."""
        self._groups.of(value).add(status, score, passed=passed)

    def statistics(self, evaluator: str, *, zero: bool = False) -> ColumnStatistics:
        """Return counts and scores for each value, sorted by value.

        If `zero` is true, and other rows have scores or verdicts, a failed row counts as a score of 0 that did not
        pass.
        """
        every = [*self._groups.ordered(), (None, self._groups.others)]
        scores = zero and any(one.has_scores for _, one in every)
        verdicts = zero and any(one.has_verdicts for _, one in every)
        *groups, others = (one.statistics(value, zero_scores=scores, zero_verdicts=verdicts) for value, one in every)
        return ColumnStatistics(evaluator, tuple(groups), None if self._groups.others.is_empty else others)


def value_in(record: Any, column: str) -> Json:
    """Return a record's value in a column, an input or a variable of this name, or None if there is no such value."""
    if not isinstance(record, dict):
        return None
    places: Iterable[Any] = (record, record.get("inputs"), record.get("variables"))
    return next(
        (found for one in places if isinstance(one, dict) and (found := value_at(one, column)) is not None), None
    )


def _key(value: Json) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return encode_json(int(value) if whole else value).decode()


def _order(value: Json) -> tuple[int, float, str]:
    """Return a key that sorts numbers before text, and rows without a value last."""
    if isinstance(value, int | float):
        return 0, value, ""
    return (2, 0.0, "") if value is None else (1, 0.0, value if isinstance(value, str) else _key(value))

"""Makes the points of a scatter plot from the values of two jobs: at most 2,000, whatever the number of rows."""

import math
from array import array
from collections.abc import Iterable
from typing import Final

from evaluator_host.schemas.results import Point

POINTS: Final = 2000
_CELLS: Final = 40  # along each axis of a grid, so 1600 points at most


class Scatter:
    """Gathers pairs of values, 24 bytes each."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._before = array("d")
        self._after = array("d")

    def add_pair(self, row: int, before: float, after: float) -> None:
        """Add a row, unless one of its values is not finite."""
        if math.isfinite(before) and math.isfinite(after):
            self._rows.append(row)
            self._before.append(before)
            self._after.append(after)

    def __len__(self) -> int:
        return len(self._rows)

    def points(self) -> tuple[tuple[Point, ...], bool]:
        """Return the points, and whether neighbouring values share a point."""
        distinct = _grouped(zip(self._before, self._after, strict=True), at_most=POINTS)
        if distinct is not None:
            return self._placed(distinct), False
        cells = zip(_cells(self._before), _cells(self._after), strict=True)
        grouped = _grouped(cells, at_most=_CELLS * _CELLS)
        assert grouped is not None  # noqa: S101 - there are no more cells than that
        return self._placed(grouped), True

    def _placed(self, groups: "list[array[int]]") -> tuple[Point, ...]:
        points = [
            Point(
                before=_middle([self._before[at] for at in group]),
                after=_middle([self._after[at] for at in group]),
                count=len(group),
                row=self._rows[group[0]],
            )
            for group in groups
        ]
        return tuple(sorted(points, key=lambda point: (point.before, point.after)))


def _grouped(keys: Iterable[tuple[float, float]], *, at_most: int) -> "list[array[int]] | None":
    """Return the indexes of each key, or None when there are more than `at_most` keys."""
    groups: dict[tuple[float, float], array[int]] = {}
    for at, key in enumerate(keys):
        if (group := groups.get(key)) is None:
            if len(groups) == at_most:
                return None
            group = groups[key] = array("q")
        group.append(at)
    return list(groups.values())


def _middle(values: list[float]) -> float:
    """Return the mean: exact when all values are equal, and finite even when their sum is not."""
    if values.count(values[0]) == len(values):
        return values[0]
    return math.fsum(value / len(values) for value in values)


def _cells(values: "array[float]") -> list[int]:
    low, high = min(values), max(values)
    reach = high / 2 - low / 2  # halves, so that no difference is infinite
    if not reach:
        return [0] * len(values)
    return [min(int((value / 2 - low / 2) / reach * _CELLS), _CELLS - 1) for value in values]

"""Compares scores with each other and with bounds that people set, and ignores rounding errors of floats."""

from typing import Final

ROUNDING: Final = 1e-9  # largest rounding error by which a sum of floats may miss a bound
_SHARE: Final = 1e-9  # largest rounding error as a fraction of the greater number
_AROUND_0: Final = 1e-12  # rounding errors of sums that are about 0


def exceeds(value: float, bound: float) -> bool:
    """Return whether a value is greater than a bound by more than a rounding error; 0.8 - 0.7 does not exceed 0.1.

    If the bound is NaN, every value exceeds it.
    """
    return not (value <= bound or value - bound <= ROUNDING)


def reaches(value: float, bound: float) -> bool:
    """Return whether a value is at least a bound, or is lower only by a rounding error; 0.7 + 0.1 reaches 0.8."""
    return value >= bound - ROUNDING


def difference(before: float, after: float) -> float:
    """Return `after - before`, or 0 if that is at most a rounding error, as between 0.3 and 0.1 + 0.2."""
    found = after - before
    return 0.0 if abs(found) <= max(_SHARE * max(abs(before), abs(after)), _AROUND_0) else found

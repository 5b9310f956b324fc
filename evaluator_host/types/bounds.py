"""Compares means and differences of scores with bounds that people set, whatever the rounding of sums of floats."""

from typing import Final

ROUNDING: Final = 1e-9  # amount by which sums of floats may miss a bound


def exceeds(value: float, bound: float) -> bool:
    """Return whether a value is greater than a bound by more than rounding: 0.8 - 0.7 does not exceed 0.1."""
    return value - bound > ROUNDING

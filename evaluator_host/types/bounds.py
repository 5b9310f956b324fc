"""Compares means and differences of scores with bounds that people set; rounding errors of floats do not matter."""

from typing import Final

ROUNDING: Final = 1e-9  # by how much sums of floats may miss a bound


def exceeds(value: float, bound: float) -> bool:
    """Return whether a value is greater than a bound by more than a rounding error; 0.8 - 0.7 does not exceed 0.1."""
    return value - bound > ROUNDING

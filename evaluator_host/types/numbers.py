"""Parses numbers in strings, and formats scores for display: only 1 is shown as 1 or 100 %, and only 0 as 0 %."""

import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from itertools import chain
from typing import Final

from .bounds import ROUNDING

_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TEN, _THOUSAND, _KILOBYTE, _TEN_MILLION = 10, 1e3, 1024, 1e7
_PARTS: Final = 3  # maximum number of floats that make up a sum; each takes a pass over the numbers
_Z: Final = 1.959964  # standard normal quantile of a 95 % interval
_POINTS: Final = 0.05  # smallest difference of percentages that one decimal shows


def parsed(text: str) -> float | None:
    """Return the number that a string contains, or None unless all languages write numbers in this way.

    Rejected: hexadecimal (JavaScript only), digit groups (Python only), an empty string (0 in JavaScript), `nan`,
    `inf`. A number that is too large for a float is infinity.
    """
    stripped = text.strip()
    return float(stripped) if _DECIMAL.fullmatch(stripped) else None


def mean_of(numbers: Sequence[float]) -> float:
    """Return the mean of finite numbers, exactly rounded, even if their sum is too large for a float."""
    return float(sum_of(numbers) / len(numbers))


def sum_of(numbers: Sequence[float]) -> Fraction:
    """Return the sum with at least 150 bits, which is exact unless the numbers differ by more than a float can hold.

    A sum of floats is rounded. So the rounding error is computed as a sum, too, and so on until it is 0.
    """
    parts: list[float] = []
    try:
        while len(parts) < _PARTS and (part := math.fsum(chain(numbers, (-one for one in parts)))):
            parts.append(part)
    except OverflowError:
        return sum(map(Fraction, numbers), Fraction())
    return sum(map(Fraction, parts), Fraction())


def percentile(ordered: Sequence[float], p: float) -> float:
    """Return percentile `p`, 0 to 100, of a non-empty sorted list.

    It is at position `(p / 100) * (n + 1) - 1` of the list, with linear interpolation.
    """
    position = min(max((p / 100) * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def wilson(hits: int, total: int) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval `(low, high)` of the fraction `hits / total`; None when `total` is 0."""
    if not total:
        return None
    share, square = hits / total, _Z**2 / total
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / total + square / (4 * total))
    # rounding must not put `low` above 0, or `high` below 1, if none or all are hits
    return max(0.0, middle - half) if hits else 0.0, min(1.0, middle + half) if hits < total else 1.0


def rounded(value: float, form: str = ".4g") -> str:
    """Format a score or another number, as the workbench does; a number close to 1 gets more digits: 0.99996.

    With the form `g`, a number from 1000 to ten million has one decimal.
    """
    size, digits = abs(value), int(form[-2]) if form[-2:-1].isdigit() else 0
    if form.endswith("g") and _THOUSAND <= size < _TEN_MILLION:
        return format(_half_up(value, decimals=1), form[:-2] + "1f").removesuffix(".0")
    if form.endswith("g") and size:
        value = float(Context(digits, ROUND_HALF_UP).create_decimal(value))
    elif form.endswith("f"):
        value = _half_up(value, decimals=digits)
    text = format(value, form)
    if abs(size - 1) > ROUNDING and abs(float(text)) == 1:
        return format(math.copysign(_beside(1, size), value), form[:-2].rstrip(".") + ".12g")
    return text


def exact(value: float) -> str:
    """Format a number with twelve digits, as many as are compared."""
    return f"{value:.12g}"


def rounded_beside(value: float, bound: float) -> str:
    """Format a number like `rounded`, but exactly if it would otherwise look like a bound from which it differs."""
    text = rounded(value)
    return exact(value) if text == rounded(bound) else text


def percent(share: float) -> str:
    """Format a fraction of 1 as a percentage; a fraction just above 0 or just below 1 gets more digits: 99.95%."""
    whole = share * 100
    text = f"{_half_up(whole, decimals=1):.1f}%"
    if 0 < share < 1 and text in ("0.0%", "100.0%"):
        text = f"{whole:.2g}%" if text == "0.0%" else f"{_beside(100, whole):.12g}%"
    return text


def points(change: float) -> str:
    """Format the difference of two fractions in percentage points."""
    value = change * 100
    small = ROUNDING < abs(value) < _POINTS
    return f"{value:+.2g} points" if small else f"{_half_up(value, decimals=1):+.1f} points"


def per_second(count: int, seconds: float) -> float | None:
    """Return a rate with three digits, which is not 0 however slow it is; None if no time has passed."""
    return float(f"{count / seconds:.3g}") if seconds > 0 else None


def size_text(octets: int) -> str:
    """Format a number of bytes, as the workbench does: 999 B, 1.5 KB, 12 MB.

    A KB is 1,024 bytes, as in the settings.
    """
    if octets < _KILOBYTE:
        return f"{octets} B"
    size, units = octets / _KILOBYTE, ["TB", "GB", "MB", "KB"]
    unit = units.pop()
    while units and _half_up(size, decimals=0) >= _KILOBYTE:
        size, unit = size / _KILOBYTE, units.pop()
    return f"{_half_up(size, decimals=1):.1f} {unit}" if size < _TEN else f"{_half_up(size, decimals=0):.0f} {unit}"


def _half_up(value: float, *, decimals: int) -> float:
    """Round a number as JavaScript does: of two equally near numbers, to the one that is farther from 0."""
    return float(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


def _beside(whole: float, value: float) -> float:
    """Round a number close to `whole` so that the difference has two digits."""
    return whole - float(f"{whole - value:.2g}")

"""Finds out from an Excel cell's number format whether the cell contains a date, and writes dates as ISO 8601.

If neither the value nor its format has a time of day, only the date is written. Rules: ECMA-376, part 1, 18.8.30
(number formats) and 18.17.4 (serial numbers of dates).
"""

import datetime as dt
import re
from enum import Flag, auto
from typing import Final


class Shows(Flag):
    """What a number format shows: a date, a time, both, or an elapsed time; `NUMBER` for every other format."""

    NUMBER = 0
    DATE = auto()
    TIME = auto()
    ELAPSED = auto()  # elapsed hours, minutes or seconds, which may exceed 24, 60 and 60


_LITERAL: Final = re.compile(r'"[^"]*"|\\.|[_*].|\[(?!(?:h+|m+|s+)\])[^\]]*\]', re.IGNORECASE)
_ELAPSED: Final = re.compile(r"\[(?:h+|m+|s+)\]")
_NOON: Final = re.compile(r"am/pm|a/p")
_BUILT_IN: Final = {
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58), Shows.DATE),
    **dict.fromkeys((*range(18, 22), 32, 33, 45, 47), Shows.TIME),
    # formats 34, 35, 55 and 56 show dates in some languages, and times in others
    **dict.fromkeys((22, 34, 35, 55, 56), Shows.DATE | Shows.TIME),
    46: Shows.ELAPSED,
}
_CODE_CHARS: Final = 1000  # maximum number of characters of a format that are read; Excel allows 255
_DAY_MS: Final = 86_400_000
_DAYS: Final = 2_958_466  # number of days in Excel's calendar, which ends with the year 9999
_DAYS_1904: Final = 1462  # days between the first days of Excel's two calendars
_BEFORE_1900: Final = dt.date(1899, 12, 31)
_NO_LEAP_DAY: Final = 60  # serial number of 29 February 1900, a day that only Excel's calendar has


class NotADate(ValueError):
    """The number is not a date: Excel shows `####`, or a day that does not exist."""


def built_in(number: int) -> Shows:
    """Return what a built-in number format shows. Files refer to these formats only by number."""
    return _BUILT_IN.get(number, Shows.NUMBER)


def shows(code: str) -> Shows:
    """Return what a number format such as `yyyy-mm-dd` shows. Only the first section of the format counts."""
    bare = _LITERAL.sub("", code[:_CODE_CHARS]).partition(";")[0].lower()
    if "general" in bare:
        return Shows.NUMBER
    if _ELAPSED.search(bare):
        return Shows.ELAPSED
    clock = _NOON.sub("h", bare)
    time = Shows.TIME if set(clock) & {"h", "s"} else Shows.NUMBER
    months = "mmm" in clock or ("m" in clock and not time)
    return time | (Shows.DATE if months or set(clock) & {"y", "d"} else Shows.NUMBER)


def moment(serial: float, shown: Shows, *, since_1904: bool) -> str | float:
    """Convert a serial number to ISO 8601 (a date, a time, or both, to the millisecond), or an elapsed time to seconds.

    `since_1904` is whether the workbook counts days from 1904 instead of 1900.

    Raises:
      NotADate: the calendar has no such day.
    """
    if shown is Shows.ELAPSED:
        return round(serial * 86_400, 3)
    if not 0 <= serial < _DAYS:
        raise NotADate
    days, rest_ms = divmod(round(serial * _DAY_MS), _DAY_MS)
    time = (dt.datetime.combine(_BEFORE_1900, dt.time()) + dt.timedelta(milliseconds=rest_ms)).time().isoformat()
    if days == 0 and Shows.TIME in shown and not (since_1904 and Shows.DATE in shown):
        return time
    day = _day(days, since_1904=since_1904).isoformat()
    return f"{day}T{time}" if Shows.TIME in shown or rest_ms else day


def _day(days: int, *, since_1904: bool) -> dt.date:
    days += _DAYS_1904 if since_1904 else 0
    if days in (0, _NO_LEAP_DAY) or days >= _DAYS:
        raise NotADate
    return _BEFORE_1900 + dt.timedelta(days=days - (days > _NO_LEAP_DAY))

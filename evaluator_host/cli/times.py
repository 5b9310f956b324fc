"""Durations as people type them, and moments as they are shown."""

import re
from datetime import datetime, timedelta
from typing import Final

from evaluator_host.model.errors import InvalidRequest

_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def duration(text: str, option: str) -> timedelta:
    """Return what `90d`, `12h`, `2w` means.

    Raises:
      InvalidRequest: it means nothing, or more than a calendar holds.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    found = timedelta(**{_UNITS[match.group(2)]: int(match.group(1))}) if match else None
    if found is None or found.days > 36_500:
        raise InvalidRequest(f"{option} {text!r} is no duration; write a number and s, m, h, d or w: 90d, 12h, 2w")
    return found


def shown(moment: datetime) -> str:
    """Return a moment for people, in UTC."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")

"""Finds the numbers in a returned object, names each by its dotted path, and refuses numbers that no float can hold."""

import math
from collections.abc import Collection, Iterator
from typing import Any, Final

from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import VALUE_DEPTH
from evaluator_host.types.names import counted
from evaluator_host.types.outcome import Note
from evaluator_host.types.warnings import remedy_of

MOST_METRICS: Final = 1000  # maximum number of metrics in one result
NAME_CHARS: Final = 300
_INT64: Final = 2**63
_SHOWN: Final = 60
_DUPLICATES: Final = 16  # maximum number of duplicate names that get a separate warning


class NotFinite(Exception):
    """A number at `path` is NaN, infinite or too large for a float."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class TooDeep(Exception):
    """A value nested more deeply than any runner accepts."""


def finite(value: float) -> float | int | None:
    """Return a number that JSON and databases can store; None for NaN, infinity and numbers too large for a float."""
    if type(value) is float:
        return value + 0.0 if math.isfinite(value) else None  # `+ 0.0` makes 0 of -0, which JavaScript often returns
    if -_INT64 <= value < _INT64:
        return value
    try:
        return float(value)
    except OverflowError:
        return None


def add_leaves(
    value: dict[str, Json], metrics: dict[str, float | int], notes: list[Note], *, reserved: Collection[str]
) -> None:
    """Add the numbers and bools inside an object to `metrics` by dotted name, until there are `MOST_METRICS` names.

    Bools count as 1.0 or 0.0. Numbers in lists are not metrics. All values are checked, even beyond the limit.

    Args:
      value: The returned object.
      metrics: The metrics so far, by name; this function adds more.
      notes: Notes of the result; a note is added if metrics were left out.
      reserved: Top-level keys of the object that are not metrics.

    Raises:
      NotFinite: a metric is too large for a float, or a float in the object is not finite.
      TooDeep: the object is nested too deeply.
    """
    found = _Metrics(metrics, notes)
    levels: list[tuple[Iterator[tuple[Any, Json]], str | None]] = [(iter(value.items()), "")]
    path: list[Any] = []  # keys from the top to the current level
    while levels:
        items, prefix = levels[-1]
        for key, item in items:
            kind = type(item)
            if kind is str or item is None:
                continue
            named = prefix is not None and not (len(levels) == 1 and key in reserved)
            if kind is dict or kind is list:
                # one level more than the limit, because runners may count a leaf as a level
                if len(levels) > VALUE_DEPTH:
                    raise TooDeep
                path.append(key)
                inner = f"{_short(prefix, key)}." if named and kind is dict else None
                levels.append((iter(item.items() if kind is dict else enumerate(item)), inner))
                break
            number = float(item) if kind is bool else finite(item)
            # an integer that does not become a metric need not fit into a float
            if number is None and (named or kind is float):
                raise NotFinite(_path([*path, key]))
            if named and number is not None:
                found.add(_short(prefix, key), number)
        else:
            levels.pop()
            if path:
                path.pop()
    found.note_left_out()


class _Metrics:
    def __init__(self, metrics: dict[str, float | int], notes: list[Note]) -> None:
        self._metrics = metrics
        self._notes = notes
        self._duplicates = 0
        self._left_out = 0

    def add(self, name: str, number: float) -> None:
        if len(name) > NAME_CHARS:
            self._left_out += 1
        elif name in self._metrics:
            self._duplicates += 1
            if self._duplicates <= _DUPLICATES:
                message = f"two metrics are named {name[:_SHOWN]!r}; the first one counts"
                self._notes.append(Note("duplicate_metric", message, remedy_of("duplicate_metric")))
        elif len(self._metrics) < MOST_METRICS:
            self._metrics[name] = number
        else:
            self._left_out += 1

    def note_left_out(self) -> None:
        if self._left_out:
            self._notes.append(too_many_metrics(self._left_out))


def too_many_metrics(left_out: int) -> Note:
    """Return the note on a result with too many metrics: `left_out` numbers are only in the result's `value`."""
    return Note(
        "too_many_metrics",
        f"{counted(left_out, 'number')} can be found only in `value`: a result has at most {MOST_METRICS} metrics, "
        "with names of "
        f"at most {NAME_CHARS} characters",
    )


def _short(prefix: str | None, key: str) -> str:
    """Return the dotted name of a key below `prefix`; if `prefix` is already over the limit, return it unchanged."""
    return (prefix or "") + key[: NAME_CHARS + 1] if len(prefix or "") <= NAME_CHARS else str(prefix)


def _path(keys: list[Any]) -> str:
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key[:_SHOWN]}" for key in keys)

"""Finds the numbers inside a returned object by dotted name, and refuses those that no float can hold."""

import math
from typing import Final

from evaluator_host.model.evaluator import Json
from evaluator_host.model.json_values import VALUE_DEPTH
from evaluator_host.model.outcome import Note

_INT64: Final = 2**63
_SHOWN: Final = 60


class NotFinite(Exception):
    """A number at `path` is NaN, infinite or too large for a float."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class TooDeep(Exception):
    """A value nested more deeply than any runner accepts."""


def finite(value: float) -> float | int | None:
    """Return a number that JSON and databases can hold: integers over 64 bits as float, None when that overflows."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if -_INT64 <= value < _INT64:
        return value
    try:
        return float(value)
    except OverflowError:
        return None


class Leaves:
    """Collects numbers and bools inside one object by dotted name; bools count as 1.0 or 0.0, lists are ignored."""

    def __init__(self, metrics: dict[str, float | int], notes: list[Note]) -> None:
        self._metrics = metrics
        self._notes = notes

    def add(self, item: Json, name: str, path: str, *, depth: int = 2) -> None:
        """Collect `item` if it is a number or bool, else the numbers and bools inside it.

        Raises:
          NotFinite: a number that would be a metric is none, or a float anywhere below is not finite.
          TooDeep: the object nests too deep.
        """
        if isinstance(item, dict):
            _check_depth(depth)
            for key, inner in item.items():
                self.add(inner, f"{name}.{key}", f"{path}.{key}", depth=depth + 1)
        elif isinstance(item, list):
            look_through(item, path, depth=depth)
        elif isinstance(item, int | float):
            self._add_number(item, name, path)

    def _add_number(self, item: float, name: str, path: str) -> None:
        number = float(item) if isinstance(item, bool) else finite(item)
        if number is None:
            raise NotFinite(path)
        if name in self._metrics:
            self._notes.append(
                Note("duplicate_metric", f"two outputs are named {name[:_SHOWN]!r}; the first one counts")
            )
        else:
            self._metrics[name] = number


def look_through(item: Json, path: str, *, depth: int = 2) -> None:
    """Check a value that is not a metric: floats must be finite, and the nesting bounded.

    Raises:
      NotFinite: a float is not finite. An integer of any size is fine: it is nobody's score.
      TooDeep: the value nests too deep.
    """
    if isinstance(item, dict):
        _check_depth(depth)
        for key, inner in item.items():
            look_through(inner, f"{path}.{key}", depth=depth + 1)
    elif isinstance(item, list):
        _check_depth(depth)
        for index, inner in enumerate(item):
            if not isinstance(inner, str):
                look_through(inner, f"{path}[{index}]", depth=depth + 1)
    elif isinstance(item, float) and not math.isfinite(item):
        raise NotFinite(path)


def _check_depth(depth: int) -> None:
    if depth > VALUE_DEPTH + 1:  # one to spare: whether a leaf is a level is for the runners to say
        raise TooDeep

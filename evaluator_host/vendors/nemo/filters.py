"""Filters of lists, as NeMo's client sends them: `filter[name][$like]=sum`, or one JSON object as `filter`.

The operators and their meanings are NVIDIA's (nemo_platform 0.3.0): `$like` finds a string anywhere in the value and
ignores case, `%` and `_` stand for themselves; a missing field equals null and nothing else.
"""

import operator
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.vendors.nemo.names import page_of

Filter: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Returns whether an object, as the list shows it, matches the filter."""

Fields: TypeAlias = Mapping[str, str]
"""Fields by which you can filter a list, each with its path in the listed objects (`storage.type`)."""

_BRACKETS: Final = re.compile(r"filter\[([a-z_]{1,40})\](?:\[(\$[a-z]{1,10})\])?")
_DEPTH: Final = 8
_AT_ONCE: Final = 128  # number of objects to read at once; a power of two, because a page that is too large is halved
_SHOWN: Final = 60
_LOGICAL: Final = frozenset({"$and", "$or", "$not"})
_MANY: Final = frozenset({"$in", "$nin"})
_SEVERAL: Final = "status"  # the only field for which a filter may give several values, separated by commas


def _known(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda found, expected: found is not None and holds(found, expected)


_OF_BOTH: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$eq": operator.eq,
    "$in": _known(lambda found, several: found in several),
    "$nin": _known(lambda found, several: found not in several),
}
_OF_TEXTS: Final = {**_OF_BOTH, "$like": _known(lambda found, part: part.casefold() in found.casefold())}
_OF_MOMENTS: Final = {
    **_OF_BOTH,
    "$lt": _known(operator.lt),
    "$lte": _known(operator.le),
    "$gt": _known(operator.gt),
    "$gte": _known(operator.ge),
}


class Fetch(Protocol):
    """A function that returns one page of a list."""

    def __call__(self, *, number: int, size: int) -> Awaitable[dict[str, Any]]:
        """Return one page in the format of `names.page`."""


def fields(*names: str, **elsewhere: str) -> Fields:
    """Map each field that a filter may use to its path: name, times, `names`, and the fields in `elsewhere`."""
    return {**{name: name for name in ("name", *names, "created_at", "updated_at")}, **elsewhere}


def read_filter(query: Iterable[tuple[str, str]], known: Fields) -> Filter | None:
    """Return the filter in a query string, or None if the query string has no filter.

    Raises:
      InvalidRequest: the filter is not valid, or this list does not support it.
    """
    wanted = []
    for key, value in query:
        if key == "filter":
            wanted.append(_tree(_object(value), known, depth=0))
        elif key.startswith("filter"):
            parts = _BRACKETS.fullmatch(key)
            if parts is None:
                raise _wrong(key[:_SHOWN], "not a filter: write filter[name]=… or filter[name][$like]=…")
            wanted.append(_condition(parts[1], parts[2] or "$eq", value, known))
    return _all(wanted) if wanted else None


async def filtered(fetch: Fetch, keep: Filter | None, *, number: int, size: int) -> dict[str, Any]:
    """Return page `number`, from 1, of the objects that match a filter. If there is a filter, all objects are read."""
    if keep is None:
        return await fetch(number=number, size=size)
    kept, sort = await every(fetch, keep)
    return page_of(kept, number=number, size=size, sort=sort)


async def every(fetch: Fetch, keep: Filter) -> tuple[list[dict[str, Any]], str | None]:
    """Return all objects of a list that match a filter, and the name of the list's sort order, if it has one."""
    kept: list[dict[str, Any]] = []
    read, total, size = 0, 1, _AT_ONCE
    sort = None
    while read < total:
        try:
            found = await fetch(number=read // size + 1, size=size)
        except InvalidRequest:  # the page is too large
            if size == 1:
                raise
            size //= 2
            continue
        kept += [one for one in found["data"] if keep(one)]
        read, total, sort = read + size, found["pagination"]["total_results"], found["sort"]
    return kept, sort


def _object(text: str) -> dict[str, Any]:
    try:
        value = decode_json(text.encode())
    except InvalidJson:
        value = None
    if not isinstance(value, dict):
        raise _wrong("filter", 'must be a JSON object, like {"name": {"$like": "sum"}}')
    return value


def _tree(value: Any, known: Fields, *, depth: int) -> Filter:
    if not isinstance(value, dict) or not value:
        raise _wrong("filter", "each part of a filter must be an object with at least one key")
    if depth > _DEPTH:
        raise _wrong("filter", f"the filter has more than {_DEPTH} levels; write it with fewer")
    logical = _LOGICAL & value.keys()
    if not logical:
        return _all([part for name, wanted in value.items() for part in _conditions(name, wanted, known)])
    if len(value) > 1:
        raise _wrong("filter", f"{min(logical)} must be the only key of its object; combine it with the others by $and")
    ((key, below),) = value.items()
    if key == "$not":
        inner = _tree(below, known, depth=depth + 1)
        return lambda shown: not inner(shown)
    if not isinstance(below, list) or not below:
        raise _wrong("filter", f'{key} needs a list of objects: {{"{key}": [{{…}}, {{…}}]}}')
    parts = [_tree(part, known, depth=depth + 1) for part in below]
    return _all(parts) if key == "$and" else lambda shown: any(part(shown) for part in parts)


def _all(parts: list[Filter]) -> Filter:
    return lambda shown: all(part(shown) for part in parts)


def _conditions(name: str, wanted: Any, known: Fields) -> list[Filter]:
    if not isinstance(wanted, dict):
        return [_condition(name, "$eq", wanted, known)]
    return [_condition(name, sign, value, known) for sign, value in wanted.items()]


def _condition(name: str, sign: str, wanted: Any, known: Fields) -> Filter:
    where = f"filter[{name[:_SHOWN]}]" if sign == "$eq" else f"filter[{name[:_SHOWN]}][{sign[:_SHOWN]}]"
    if name not in known:
        raise _wrong(where, f"this list can be filtered by {', '.join(known)}")
    as_moment = name.endswith("_at")
    signs = _OF_MOMENTS if as_moment else _OF_TEXTS
    if sign not in signs:
        raise _wrong(where, f"this field can be compared only with {', '.join(signs)}")
    if name == _SEVERAL and sign == "$eq" and "," in str(wanted):
        sign = "$in"
    read = partial(_comparable, where=where, as_moment=as_moment)
    expected: Any = [read(value) for value in _several(wanted, where)] if sign in _MANY else read(wanted)
    if expected is None and sign != "$eq":
        raise _wrong(where, "null can be compared only with $eq")
    holds, path = signs[sign], known[name].split(".")
    return lambda shown: holds(read(_value(shown, path)), expected)


def _several(wanted: Any, where: str) -> list[Any]:
    several = wanted.split(",") if isinstance(wanted, str) else wanted
    if not isinstance(several, list):
        raise _wrong(where, "give several values as a list, or with commas between them")
    return several


def _value(shown: Any, path: list[str]) -> Any:
    for step in path:
        shown = shown.get(step) if isinstance(shown, Mapping) else None
    return shown


def _comparable(value: Any, where: str, *, as_moment: bool) -> str | datetime | None:
    """Convert a value to a time if `as_moment` is set, else to a string, for a comparison; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if not as_moment:
        return str(value)
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise _wrong(where, f"{str(value)[:_SHOWN]!r} is not a time; write it like 2026-01-31T12:00:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _wrong(where: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{where}: {what}", problems=(Problem(where, what),))

"""Decodes untrusted JSON, encodes JSON for a sandbox or a caller, and limits how deep values nest."""

import asyncio
import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

import orjson

from .json_paths import places, render_path

VALUE_DEPTH: Final = 64  # maximum number of levels in a returned value (runtimes/PROTOCOL.md)
LARGE_BYTES: Final = 256 << 10  # maximum number of bytes of JSON to work on in the event loop; a thread works on more
_LARGE_MEMORY: Final = 2 << 20  # maximum memory of JSON, once decoded, to work on in the event loop
_MANY_QUOTES: Final = 40_000  # number of quotes in JSON whose strings take 10 ms to decode
# bytes of memory that a dict, a list, an entry of a dict and an element of a list take
_DICT, _LIST, _ENTRY, _ELEMENT = 64, 56, 110, 56
_DIGITS: Final = bytes(ord("0") if chr(byte).isdecimal() and byte < 128 else ord(" ") for byte in range(256))
# a number with so many digits may need over 64 bits; orjson then returns a float. `_DIGITS` makes each digit 0
_LONG_NUMBER: Final = b"0" * 19
# the first check examines only every third byte, and so at least six of 19 digits in a row
_STEP: Final = 3
_STEPPED: Final = b"0" * (len(_LONG_NUMBER) // _STEP)
_MOST_WEIGHT: Final = 1 + _ENTRY  # the largest estimate of memory for one byte of JSON
_KINDS: Final = bytes(
    ord("0") if chr(byte) in "0123456789" else ord("e") if chr(byte) in "eE+" else ord(" ") for byte in range(256)
)
# patterns of a three-digit exponent, which hexadecimal ids may match too
_HUGE_KIND, _HUGE_PLUS_KIND = b"0e000", b"0ee000"
_HUGE: Final = re.compile(rb"[0-9][eE]\+?[0-9]{3,}(?:[,\]}\s]|\Z)")  # a long exponent at the end of a number
_MOST_DIGITS: Final = b"0" * 309  # the number of digits of the largest double

_Made = TypeVar("_Made")

_CONTAINERS: Final = (dict, list)  # a constant, because a union `dict | list` would be built again for each value

_LONE_SURROGATE: Final = re.compile(  # an escaped lone surrogate; `re` quickly finds the fixed prefix
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F])"
)


class InvalidJson(ValueError):
    """The text is not JSON, or the host cannot keep its values unchanged."""


def type_name(value: object) -> str:
    """Return what a JSON value is, with its article, for messages such as "must be an object, not a list"."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case _:
            return type(value).__name__


def decode_json(data: bytes) -> Any:
    """Decode untrusted JSON; integers beyond 64 bits stay exact, lone surrogates are replaced.

    Raises:
      InvalidJson: the data is not JSON.
    """
    return _decoded(data, long_number=_has_long_number(data))


def _decoded(data: bytes, *, long_number: bool) -> Any:
    if not long_number:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    try:
        return _decode_exactly(data.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"not JSON: {error}") from error


def decode_given(data: bytes) -> Any:
    """Decode JSON from a caller as `decode_json` does, but refuse strings and numbers that would be changed.

    Raises:
      InvalidJson: the data is not JSON, a number is beyond a double's range, or a string has half of a surrogate pair.
        Neither UTF-8 nor a database can store half of a pair. The message has the path.
    """
    long_number = _has_long_number(data)
    value = _decoded(data, long_number=long_number)
    if may_have_lone_surrogate(data) and (path := _lone_surrogate(_with_surrogates(data))) is not None:
        raise InvalidJson(
            f"the text at {path} ends or begins in the middle of a character (half of a surrogate pair); "
            "split text between characters, or replace that half with \\ufffd"
        )
    if _may_be_infinite(data, long_number=long_number) and (path := not_finite(value)) is not None:
        raise InvalidJson(f"the number at {path} is too large for a float and would become infinite; send it as text")
    return value


def may_have_lone_surrogate(data: bytes | memoryview) -> bool:
    """Return whether JSON may contain an escaped half of a surrogate pair. A quoted escape also counts."""
    return _LONE_SURROGATE.search(data) is not None


def _with_surrogates(data: bytes) -> Any:
    try:
        return json.loads(data)
    except RecursionError as error:
        raise InvalidJson(f"not JSON: {error}") from error


def _lone_surrogate(value: Any) -> str | None:
    """Return the path of a string or key that contains half of a surrogate pair, or None if there is no such string."""
    with contextlib.suppress(UnicodeEncodeError, RecursionError):
        json.dumps(value, ensure_ascii=False).encode()  # this check takes a tenth of the time of the search below
        return None
    for path, one in places(value):
        if isinstance(one, str) and _has_surrogate(one):
            return render_path(path)
        if isinstance(one, dict) and any(map(_has_surrogate, one)):
            return f"{render_path(path)} (a key)"
    return None


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _may_be_infinite(data: bytes, *, long_number: bool) -> bool:
    """Return whether JSON may have a number beyond a double's range. For speed, only the digits are checked.

    `long_number` says whether the JSON has 19 digits in a row.
    """
    kinds = data.translate(_KINDS)
    if long_number and _MOST_DIGITS in kinds:
        return True
    has_exponent = _HUGE_KIND in kinds or (b"+" in data and _HUGE_PLUS_KIND in kinds)
    return has_exponent and _HUGE.search(data) is not None


def not_finite(value: Any) -> str | None:
    """Return the path of a number that is NaN or infinite, which JSON cannot express, or None if there is none."""
    if not _has_not_finite(value):  # this check takes a third of the time of the search below
        return None
    found = (path for path, one in places(value) if isinstance(one, float) and not math.isfinite(one))
    return next(map(render_path, found), None)


def _has_not_finite(value: Any) -> bool:
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                return True
        elif isinstance(one, dict):
            rest += one.values()
        elif isinstance(one, list | tuple):
            rest += one
    return False


def require_finite(value: Any, *, advice: str = "send null or text in its place") -> None:
    """Refuse a value that contains NaN or an infinity, which would become null.

    Raises:
      InvalidJson: the value contains such a number; the message has the path.
    """
    if (path := not_finite(value)) is not None:
        raise InvalidJson(f"the number at {path} is NaN or infinite, which JSON does not have; {advice}")


def repeated_key(data: bytes, again: bytes) -> str | None:
    """Return the path of a key that occurs twice in one object of the JSON `data`, or None.

    `again` is the decoded data, encoded as JSON again.
    """
    # if no key was dropped, both have the same number of colons, which is quick to check
    if data.count(b":") == again.count(b":"):
        return None
    found = ((path, one) for path, one in places(json.loads(data, object_pairs_hook=_pairs)) if isinstance(one, _Twice))
    return next((render_path((path, one.key)) for path, one in found), None)


class _Twice(dict[str, Any]):
    """An object whose JSON had a key twice. `key` is this key."""

    key: str


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    twice = _Twice(made)
    twice.key = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return twice


def require_single_keys(data: bytes, value: Any) -> None:
    """Refuse JSON with a key that occurs twice in one object, because only the last value would be kept.

    Raises:
      InvalidJson: a key occurs twice; the message has the path.
    """
    try:
        path = repeated_key(data, encode_json(value))
    except RecursionError:  # values that nest this deeply are refused when they are decoded
        return
    if path is not None:
        raise InvalidJson(f"the key at {path} appears twice, and only the last value would be kept; send it once")


def _has_long_number(data: bytes) -> bool:
    """Return whether JSON has 19 digits in a row; for most JSON, a check of every third byte is enough."""
    return _STEPPED in data[::_STEP].translate(_DIGITS) and _LONG_NUMBER in data.translate(_DIGITS)


def value_at(record: dict[str, Any], column: str, missing: Any = None) -> Any:
    """Return the value of a column, by its name or by a dotted path into objects, or `missing` if there is none."""
    if column in record:
        return record[column]
    value: Any = record
    for part in column.split("."):
        if not isinstance(value, dict) or part not in value:
            return missing
        value = value[part]
    return value


def without_column(record: dict[str, Any], column: str) -> dict[str, Any]:
    """Return a record without the value that `value_at` returns, and without objects that become empty."""
    return _without(record, [column] if column in record else column.split("."))


def _without(value: dict[str, Any], path: list[str]) -> dict[str, Any]:
    first, *rest = path
    if first not in value or (rest and not isinstance(value[first], dict)):
        return value
    inner = _without(value[first], rest) if rest else {}
    return {name: inner if name == first else one for name, one in value.items() if name != first or inner}


def is_large(data: bytes) -> bool:
    """Return whether JSON has too many bytes or values to work on in the event loop."""
    return len(data) > LARGE_BYTES or takes_more_memory(data, _LARGE_MEMORY)


def has_many_values(data: bytes) -> bool:
    """Return whether JSON has too many values to decode in the event loop, however long its strings are."""
    if not takes_more_memory(data, _LARGE_MEMORY):
        return False
    # remove escaped backslashes and quotes, because these do not begin or end strings
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return plain.count(b'"') > _MANY_QUOTES or takes_more_memory(b"".join(plain.split(b'"')[::2]), _LARGE_MEMORY)


async def aside(data: bytes, work: Callable[..., _Made], *given: Any) -> _Made:
    """Call a function that works on JSON `data`, in a thread if that would keep the event loop busy."""
    return await asyncio.to_thread(work, *given) if is_large(data) else work(*given)


async def decode_large(data: bytes) -> Any:
    """Decode untrusted JSON as `decode_json` does, in a thread if that would keep the event loop busy."""
    return await aside(data, decode_json, data)


def _decode_exactly(text: str) -> Any:
    """Decode with the standard library, which keeps long integers; half of an emoji becomes a question mark."""
    value = json.loads(text, parse_constant=_refuse_constant)
    if "\\ud" not in text and "\\uD" not in text:
        return value
    again = json.dumps(value, ensure_ascii=False)
    try:
        again.encode()
    except UnicodeEncodeError:
        return json.loads(again.encode("utf-8", "replace"))
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def memory_bytes(data: bytes) -> int:
    """Return about how many bytes JSON takes in memory once decoded; a small object takes 60 times its length."""
    count = data.count
    return len(data) + _DICT * count(b"{") + _LIST * count(b"[") + _ENTRY * count(b":") + _ELEMENT * count(b",")


def takes_more_memory(data: bytes, most_bytes: int) -> bool:
    """Return whether decoded JSON takes over `most_bytes` in memory (`memory_bytes`).

    The answer is quick for short JSON.
    """
    return len(data) * _MOST_WEIGHT > most_bytes and memory_bytes(data) > most_bytes


def encode_json(value: Any) -> bytes:
    """Encode a value as JSON; dataclasses become objects, integers beyond 64 bits stay exact."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
    except TypeError:  # raised for an integer beyond 64 bits
        plain = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
        try:
            return plain.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON writes as an escape
            return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def nests_within(value: Any, levels: int) -> bool:
    """Return whether a value has at most this many levels of lists and objects, without recursion."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for item in layer if isinstance(item, dict | list) for inner in _items(item)]
        if not layer:
            return True
    return not any(isinstance(item, dict | list) for item in layer)


def is_small(value: Any, *, values: int, characters: int = 1 << 20) -> bool:
    """Return whether a JSON value has at most `values` values and `characters` characters; stop counting there."""
    rest = [value]
    while rest and values >= 0 and characters >= 0:
        item = rest.pop()
        if isinstance(item, str):
            characters -= len(item)
        elif isinstance(item, _CONTAINERS):
            values -= len(item)
            if values >= 0 and isinstance(item, dict):
                characters -= len("".join(map(str, item)))
                rest += item.values()
            elif values >= 0:
                rest += item
    return values >= 0 and characters >= 0


def _items(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def is_conversation(value: Any) -> bool:
    """Return whether a value is a list of messages, each with a role."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "role" in one for one in value)

"""Splits JSON objects and lists into their fields and items without decoding, in a fifth of the time of decoding."""

import codecs
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, TypeAlias

from .json_values import may_have_lone_surrogate

Octets: TypeAlias = bytes | memoryview
"""Bytes, or a view of a part of other bytes."""

_PIECE_BYTES: Final = 64 << 10  # number of bytes to examine together, few enough for the processor's cache
_OVERLAP: Final = 512  # number of bytes by which pieces overlap, so that no number is overlooked because it is split
_MANY_DIGITS: Final = b"0" * 300  # a number with so many digits may exceed a double; `_LIKE` makes each digit 0
_HUGE: Final = b"e000"  # an exponent of three digits; `_LIKE` makes each digit 0
# how many matches of _HUGE to look at in a piece before assuming a huge number; most matches are in strings
_MOST_HUGE: Final = 100
_MOST_LEVELS: Final = 200  # maximum levels of nesting; one of the host's encoders allows only a few more
_LEVELS_AT_ONCE: Final = 64
_MOST_ITEMS: Final = 2000  # maximum number of items in a list; splitting so many takes 2 ms
_SHORT_BYTES: Final = 4 << 10
_LIKE: Final = str.maketrans("123456789.E+{}:,\t\r\n", "0000000000ee[]     ")
_KINDS: Final = bytes(ord(chr(byte).translate(_LIKE)) for byte in range(256))
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]")


class NotPlain(ValueError):
    """The text has to be decoded: it is not JSON, or has numbers or nesting that decoders read differently."""


def part(text: memoryview) -> Octets:
    """Return a part of JSON.

    A short part is copied to `bytes`, because `bytes` cost the garbage collector nothing.
    """
    return bytes(text) if len(text) <= _SHORT_BYTES else text


def plain_fields(text: Octets) -> dict[str, Octets]:
    """Return the JSON of each field of an object, keyed by name; if a name occurs twice, the last one counts.

    Raises:
      NotPlain: the text is not a JSON object, or decoders may differ on it: it may have numbers beyond a double's
        range, or over 200 levels, counting brackets in strings.
    """
    _require_utf_8(text)
    if may_have_lone_surrogate(text):
        raise NotPlain("the text has half of a surrogate pair")
    fields = field_texts(text)
    for value in fields.values():
        for inner in field_texts(value).values() if value[:1] == b"{" else (value,):
            if inner[:1] != b'"':
                _require_common_values(inner)
    return fields


def field_texts(text: Octets) -> dict[str, Octets]:
    """Return the fields of a JSON object, each still as JSON text.

    Raises:
      NotPlain: the text is not a JSON object.
    """
    return _parts(_cut(text))


def item_texts(text: Octets) -> list[dict[str, Octets]]:
    """Split each object in a list into the JSON texts of its fields, as `field_texts` does.

    Raises:
      NotPlain: the text is not a list of objects, or has over 2,000 objects.
    """
    if sum(piece.count(b"{") for piece in _pieces(text)) > _MOST_ITEMS:
        raise NotPlain(f"the list has more than {_MOST_ITEMS:,} objects")
    return list(map(_parts, _cut(text, items=True)))


def _parts(cut: dict[str, Any]) -> dict[str, Octets]:
    return {name: part(memoryview(value)) for name, value in cut.items()}


def _cut(text: Octets, *, items: bool = False) -> Any:
    try:
        return _decoder(items=items)(text)
    except (ValueError, RecursionError) as error:
        raise NotPlain(str(error)) from error


@cache
def _decoder(*, items: bool) -> Callable[[Octets], Any]:
    import msgspec  # noqa: PLC0415 - takes 10 ms, and only large bodies need it

    fields = dict[str, msgspec.Raw]
    return msgspec.json.Decoder(list[fields] if items else fields).decode


def _pieces(text: Octets) -> Iterator[bytes]:
    return (bytes(text[start : start + _PIECE_BYTES]) for start in range(0, len(text), _PIECE_BYTES))


def _require_utf_8(text: Octets) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in _pieces(text):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise NotPlain(str(error)) from error


def _require_common_values(text: Octets) -> None:
    """Check that the numbers in JSON are finite, and that it is not nested too deeply for any decoder."""
    levels = 0
    for start in range(0, len(text), _PIECE_BYTES):
        before = min(start, _OVERLAP)
        kinds = bytes(text[start - before : start + _PIECE_BYTES]).translate(_KINDS)
        if _MANY_DIGITS in kinds or _has_huge_exponent(kinds):
            raise NotPlain("a number may be beyond a double's range")
        levels = _levels_after(kinds[before:], levels)


def _has_huge_exponent(kinds: bytes) -> bool:
    """Return whether a number may have an exponent of three digits. Some strings also make the result true."""
    end = len(kinds)
    for _ in range(_MOST_HUGE):
        if (end := kinds.rfind(_HUGE, 0, end)) < 0:
            return False
        if kinds[max(0, end - _OVERLAP) : end].rstrip(b"0e-")[-1:] in b" [":
            return True
    return True


def _levels_after(kinds: bytes, levels: int) -> int:
    """Return about how many brackets are open at the end of a piece of JSON."""
    opened = kinds.count(b"[")
    if levels + opened <= _MOST_LEVELS:
        return max(0, levels + opened - kinds.count(b"]"))
    brackets = kinds.translate(None, _NO_BRACKETS)
    for start in range(0, len(brackets), _LEVELS_AT_ONCE):
        some = brackets[start : start + _LEVELS_AT_ONCE]
        if levels + len(some) > _MOST_LEVELS:
            raise NotPlain("the text is nested too deeply")
        levels = max(0, levels + 2 * some.count(b"[") - len(some))
    return levels

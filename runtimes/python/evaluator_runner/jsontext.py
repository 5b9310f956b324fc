"""Decodes JSON with the interpreter's C scanner, quotes strings, and encodes values that the runner made.

The `json` package would import `re`, `enum` and `functools`, which cost 10 ms and 1 MB in every idle sandbox.
"""

from __future__ import annotations

import _json

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

quote = _json.encode_basestring
_NO_NOTES = b'"notes":[]}'
_SPACES = frozenset(" \t\r\n")
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Context:
    """The attributes that the C scanner reads from its decoder."""

    strict = True
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner clears it itself

    def __init__(self, object_hook: Callable[[dict[str, Any]], Any] | None) -> None:
        self.object_hook = object_hook


def decoder(object_hook: Callable[[dict[str, Any]], Any] | None = None) -> Callable[..., Any]:
    """Return a function that decodes JSON text, starting at an index; `object_hook` converts each object.

    The function raises ValueError if the text is not JSON, and RecursionError if the text is nested too deeply.
    """
    scan = _json.make_scanner(_Context(object_hook))  # type: ignore[arg-type]

    def decode(text: str, start: int = 0) -> Any:
        try:
            value, end = scan(text, start)
        except (StopIteration, SystemError) as error:  # the scanner raises SystemError if it cannot find `json.decoder`
            if text[start : start + 1] in _SPACES:
                return decode(text[start:].lstrip(" \t\r\n"))
            raise ValueError("not JSON") from error
        if end != len(text) and text[end:].strip(" \t\r\n"):
            raise ValueError("the text is not JSON: something follows the value")
        return value

    return decode


decode = decoder()


def encode(value: Any) -> str:
    """Return the JSON of a value that the runner made: None, bool, int, finite float, str, list, dict with str keys."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{quote(key)}:{encode(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([encode(item) for item in value]) + "]"
    return repr(value)


def scalar_text(text: str) -> str:
    """Return text without surrogates: a lone surrogate becomes U+FFFD, a pair becomes the character that it encodes.

    UTF-8 cannot hold a lone surrogate.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def to_bytes(text: str) -> bytes:
    """Return text as UTF-8, even if it has lone surrogates."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return scalar_text(text).encode()


def with_note(body: bytes, code: str, message: str) -> bytes:
    """Add a note to a result's body, and return the body."""
    note = to_bytes(encode({"code": code, "message": message}))
    return body[:-2] + (b"" if body.endswith(_NO_NOTES) else b",") + note + b"]}"

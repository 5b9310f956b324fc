"""Encodes a returned value as the protocol's `result` body. The value's own methods are never called.

Subclasses of built-in types are read by the methods of the built-in type. User code runs only where it has to produce a
value (`item`, `model_dump`, `__float__` of a Fraction).
"""

from __future__ import annotations

from evaluator_runner import jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.coerce import Coerced, NoForm, coerce, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Path: TypeAlias = "tuple[Path, str | int] | None"

_LEVELS = 64
_NONFINITE = 8
_NOTES = 15  # maximum number of notes to keep; one further note says how many others there are
_PATH_CHARS = 200
_INT_LIMIT = 10**309
_FLOAT_LIMIT = float("inf")
_STEPS = 4  # convert one value at most this many times; no known value takes more than two (an Enum of a numpy scalar)
_EXACT = frozenset((str, float, bool, int, type(None), dict, list))
_TAIL = ',"nonfinite":[],"unsupported":null,"notes":[]}'
_quote = jsontext.quote


class TooLarge(Exception):
    """The encoded value is over its size limit."""


class _Unsupported(Exception):
    """A part of the value cannot be written as JSON; the result frame reports that part instead of the value."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(kind)
        self.path = path
        self.kind = kind


def encode_result(value: Any, *, limit: int) -> bytes:
    """Return the body of a `result` frame.

    Raises:
      TooLarge: the body takes more than `limit` bytes.
    """
    kind = type(value)
    if kind is float and -_FLOAT_LIMIT < value < _FLOAT_LIMIT:
        return f'{{"kind":"number","value":{value!r}{_TAIL}'.encode()
    if kind is bool:
        return f'{{"kind":"bool","value":{"true" if value else "false"}{_TAIL}'.encode()
    return _Encoding(limit).run(value)


class _Encoding:
    """The state of encoding one value."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._parts: list[str] = []
        self._open: set[int] = set()
        self._nonfinite: list[str] = []
        self._notes: list[str] = []
        self._more_notes = 0

    def run(self, value: Any) -> bytes:
        try:
            kind = self._write(value, None, 0)
        except _Unsupported as found:
            path, name = render_path(found.path), found.kind
            kind = "unsupported" if found.path is None else _container_kind(value)
            shown = f'"unsupported":{{"path":{_quote(path)},"type":{_quote(name)}}}'
            return self._finish(f'{{"kind":"{kind}","nonfinite":[],{shown}')
        head = f'{{"kind":"{kind}","value":{"".join(self._parts)}'
        nonfinite = ",".join([_quote(path) for path in self._nonfinite])
        return self._finish(f'{head},"nonfinite":[{nonfinite}],"unsupported":null')

    def _finish(self, text: str) -> bytes:
        if self._more_notes:
            self._notes.append(f"{self._more_notes} more values were read as another type, or replaced")
        notes = ",".join([f'{{"code":"coerced","message":{_quote(note)}}}' for note in self._notes])
        body = f'{text},"notes":[{notes}]}}'.encode()
        if len(body) > self._limit:
            raise TooLarge
        return body

    def _emit(self, text: str) -> None:
        self._size += len(text)
        if self._size > self._limit:
            raise TooLarge
        self._parts.append(text)

    def _write(self, value: Any, path: Path, level: int) -> str:
        """Append the value as JSON to the output, and return the kind of the value."""
        kind = type(value)
        if kind is str:
            return self._text(value, path)
        if kind is float:
            return self._float(value, path)
        if kind is bool:
            self._emit("true" if value else "false")
            return "bool"
        if kind is int:
            return self._int(value, path)
        if value is None:
            self._emit("null")
            return "null"
        if kind is dict:
            return self._object(value, path, level + 1)
        if kind is list:
            return self._array(value, path, level + 1)
        return self._guarded(value, self._coerced(value, path), path, level)

    def _coerced(self, value: Any, path: Path) -> Any:
        """Convert the value, step by step, to an exact built-in type."""
        for _ in range(_STEPS):
            kind = type(value)
            if kind in _EXACT:
                return value
            try:
                coerced: Coerced = coerce(value, whole=path is None)
            except NoForm as no_form:
                raise _Unsupported(path, no_form.kind) from None
            if coerced.taken_as:
                name = type_name(kind)
                placed = f"the returned {name}" if path is None else f"{name} at {render_path(path)}"
                self._note(f"{placed} was taken as {coerced.taken_as}")
            value = coerced.plain
        raise _Unsupported(path, type_name(type(value)))

    def _guarded(self, value: Any, plain: Any, path: Path, level: int) -> str:
        """Write the converted value `plain`; return its kind. Raise an error if conversions lead back to `value`."""
        if id(value) in self._open:
            raise _Unsupported(path, "cyclic value")
        self._open.add(id(value))
        kind = self._write(plain, path, level)
        self._open.discard(id(value))
        return kind

    def _text(self, value: str, path: Path) -> str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                value = jsontext.scalar_text(value)
                self._note(f"half of a surrogate pair at {render_path(path)} was replaced")
        self._emit(_quote(value))
        return "string"

    def _int(self, value: int, path: Path) -> str:
        if -_INT_LIMIT < value < _INT_LIMIT:
            self._emit(repr(value))
        else:
            self._not_finite(path)
        return "number"

    def _float(self, value: float, path: Path) -> str:
        if -_FLOAT_LIMIT < value < _FLOAT_LIMIT:
            self._emit(repr(value))
        else:
            self._not_finite(path)
        return "number"

    def _not_finite(self, path: Path) -> None:
        self._emit("null")
        if len(self._nonfinite) < _NONFINITE:
            self._nonfinite.append(render_path(path))

    def _enter(self, value: Any, path: Path, level: int) -> None:
        if id(value) in self._open:
            raise _Unsupported(path, "cyclic value")
        if level > _LEVELS:
            raise _Unsupported(path, f"value deeper than {_LEVELS} levels")
        self._open.add(id(value))

    def _array(self, value: list[Any], path: Path, level: int) -> str:
        self._enter(value, path, level)
        separator = "["
        for index, item in enumerate(value):
            self._emit(separator)
            self._write(item, (path, index), level)
            separator = ","
        self._emit("[]" if separator == "[" else "]")
        self._open.discard(id(value))
        return "array"

    def _object(self, value: dict[Any, Any], path: Path, level: int) -> str:
        self._enter(value, path, level)
        separator = "{"
        for key, item in self._items(value, path):
            self._emit(f"{separator}{_quote(key)}:")
            self._write(item, (path, key), level)
            separator = ","
        self._emit("{}" if separator == "{" else "}")
        self._open.discard(id(value))
        return "object"

    def _items(self, value: dict[Any, Any], path: Path) -> Any:
        if all(type(key) is str and key.isascii() for key in value):
            return value.items()
        items: dict[str, Any] = {}
        for key, item in list(value.items()):
            name = self._key(key, path)
            if name in items:
                self._note(
                    f"several keys at {render_path(path)} become {name!r} once they are strings; the last one counts"
                )
            items[name] = item
        return items.items()

    def _key(self, key: Any, path: Path) -> str:
        if isinstance(key, str):
            text = str.__str__(key)
            clean = jsontext.scalar_text(text)
            if clean != text:
                self._note(f"half of a surrogate pair in a key at {render_path(path)} was replaced")
            return clean
        try:
            text = _key_text(key)
        except BaseException:  # noqa: BLE001 - a user's __str__ may raise anything
            raise _Unsupported(path, f"key of type {type_name(type(key))}") from None
        self._note(f"{type_name(type(key))} key {text[:100]!r} at {render_path(path)} was taken as a string")
        return jsontext.scalar_text(text)

    def _note(self, message: str) -> None:
        if len(self._notes) < _NOTES:
            self._notes.append(message)
        else:
            self._more_notes += 1


def _key_text(key: Any) -> str:
    if key is None or key is True or key is False:
        return {None: "null", True: "true", False: "false"}[key]
    kind = type(key)
    if kind is int or kind is float:
        return repr(key)
    return str.__str__(str(key))


def _container_kind(value: Any) -> str:
    return "array" if issubclass(type(value), list | tuple) and not hasattr(type(value), "_fields") else "object"


def render_path(path: Path) -> str:
    """Format a path in the value, such as `$.a[0]["not a name"]`."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        if isinstance(step, int):
            steps.append(f"[{step}]")
        elif step.isidentifier():
            steps.append(f".{step}")
        else:
            steps.append(f"[{_quote(step)}]")
    text = "$" + "".join(reversed(steps))
    return text if len(text) <= _PATH_CHARS else text[:_PATH_CHARS] + "…"

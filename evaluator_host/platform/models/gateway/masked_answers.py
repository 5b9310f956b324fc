"""Masks an evaluator's secrets in a model's answer before the answer is stored: in JSON, and in a stream of events.

An answer is decoded before it is masked. So a secret is found even if the JSON escapes some of its characters, or if a
model sends it in pieces, one in each event.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from evaluator_host.types.json_values import InvalidJson, decode_json, encode_json
from evaluator_host.types.redaction import Redactor

_DATA: Final = "data:"  # prefix of the data lines in server-sent events
_Place: TypeAlias = tuple[str | int, ...]


class _Text(NamedTuple):
    """A string in a JSON value: the object or list that contains the string, its key there, and the path to it."""

    holder: Any
    key: str | int
    place: _Place


def masked_body(redactor: Redactor, body: str, *, streamed: bool) -> str:
    """Return an answer's body with its secrets masked. The body is a stream of events if `streamed`, else JSON."""
    return _masked_events(redactor, body) if streamed else _masked_json(redactor, body)


def _masked_json(redactor: Redactor, text: str) -> str:
    try:
        value = decode_json(text.encode())
    except InvalidJson:
        return redactor.text(text)
    masked = redactor.value(value)
    return text if masked == value else encode_json(masked).decode()


def _masked_events(redactor: Redactor, body: str) -> str:
    """Return events, each of them masked. If a secret is spread over several events, mask it in the first of them."""
    lines = [_masked_line(redactor, line) for line in body.split("\n")]
    events = {number: value for number, line in enumerate(lines) if (value := _value_of(line)) is not None}
    parts: dict[_Place, list[tuple[int, _Text]]] = {}
    for number, value in events.items():
        for text in _texts(value, ()):
            parts.setdefault(text.place, []).append((number, text))
    for found in parts.values():
        whole = "".join(text.holder[text.key] for _, text in found)
        if (masked := redactor.text(whole)) != whole:
            for number, text in found:
                text.holder[text.key], masked = masked, ""
                lines[number] = f"{_DATA} {encode_json(events[number]).decode()}"
    return "\n".join(lines)


def _masked_line(redactor: Redactor, line: str) -> str:
    if not line.startswith(_DATA):
        return redactor.text(line)
    data = line.removeprefix(_DATA)
    masked = _masked_json(redactor, data)
    return line if masked == data else f"{_DATA} {masked}"


def _value_of(line: str) -> Any:
    """Return the JSON object in a data line of an event. The result is None for other lines."""
    if not line.startswith(_DATA):
        return None
    try:
        value = decode_json(line.removeprefix(_DATA).encode())
    except InvalidJson:
        return None
    return value if isinstance(value, dict) else None


def _texts(value: Any, place: _Place) -> Iterator[_Text]:
    """Yield the strings in a JSON value, each with its path.

    A path also contains the `index` of each choice, block and tool call on the way, so that pieces of one text in
    several events have the same path.
    """
    if isinstance(value, dict):
        place += tuple(one for name, one in value.items() if name.endswith("index") and isinstance(one, int))
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, str):
            yield _Text(value, key, (*place, key))
        elif isinstance(inner, dict | list):
            yield from _texts(inner, (*place, key))

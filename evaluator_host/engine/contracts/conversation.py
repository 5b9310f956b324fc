"""Reads the conversation of a row: the row's `messages`, or the messages in spans that called a model.

Three kinds of attributes contain messages: `gen_ai.input.messages` (OpenTelemetry's conventions, as JSON),
`gen_ai.prompt.0.role` (OpenLLMetry) and `llm.input_messages.0.message.role` (OpenInference). If there are no such
attributes, each root span is one turn: its inputs are the user's message, and its outputs are the assistant's message.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from evaluator_host.engine.contracts.native import text_of
from evaluator_host.engine.contracts.trace_tree import convert
from evaluator_host.types.evaluator import Json, Row
from evaluator_host.types.json_values import InvalidJson, decode_json

_LISTS: Final = (("gen_ai.input.messages", "gen_ai.output.messages"),)
_NUMBERED: Final = (
    (re.compile(r"gen_ai\.prompt\.([0-9]{1,4})\.(.+)"), re.compile(r"gen_ai\.completion\.([0-9]{1,4})\.(.+)")),
    (
        re.compile(r"llm\.input_messages\.([0-9]{1,4})\.message\.(.+)"),
        re.compile(r"llm\.output_messages\.([0-9]{1,4})\.message\.(.+)"),
    ),
)
_CALL: Final = re.compile(r"tool_calls\.([0-9]{1,3})\.(?:tool_call\.)?(.+)")
_SPANS: Final = 10_000
_Message = dict[str, Any]


def messages_of(row: Row) -> list[Json] | None:
    """Return the messages of a row, each `{"role", "content", "tool_calls"?}`; None if the row has no conversation."""
    given = row.inputs.get("messages")
    if isinstance(given, list):
        return given
    found = messages_of_trace(row.trace) if row.trace else []
    return list(found) or None


def messages_of_trace(trace: dict[str, Json]) -> list[_Message]:
    """Return the conversation in the model calls of one trace, or of all traces of a session.

    If the messages of a model call begin with all earlier messages, the call's messages replace them. Otherwise, the
    new messages of the call are added.
    """
    spans = sorted(_spans(convert(trace)[0] or {}), key=lambda span: str(span.get("start_time") or ""))
    told: list[_Message] = []
    for span in spans:
        said = _said(span.get("attributes") or {})
        told = said if said[: len(told)] == told else told + [one for one in said if one not in told]
    return told or _turns(spans)


def _spans(trace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    roots = trace.get("spans")
    left = [(span, True) for span in reversed(list(roots.values() if isinstance(roots, dict) else []))]
    count = 0
    while left and count < _SPANS:
        span, is_root = left.pop()
        if not isinstance(span, dict):
            continue
        count += 1
        yield {**span, "is_root": is_root}
        children = span.get("children")
        left.extend((one, False) for one in reversed(children if isinstance(children, list) else []))


def _said(attributes: dict[str, Any]) -> list[_Message]:
    for told, answered in _LISTS:
        if told in attributes or answered in attributes:
            return [*_listed(attributes.get(told)), *_listed(attributes.get(answered))]
    for prompts, completions in _NUMBERED:
        found = [*_numbered(attributes, prompts, "user"), *_numbered(attributes, completions, "assistant")]
        if found:
            return found
    return []


def _listed(value: Any) -> list[_Message]:
    if isinstance(value, str):
        try:
            value = decode_json(value.encode())
        except InvalidJson:
            return []
    return [_plain(one) for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _plain(message: _Message) -> _Message:
    """Convert an OpenTelemetry message with `parts` to a message with `content` and `tool_calls`."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return {key: message[key] for key in ("role", "content", "tool_calls", "tool_call_id") if key in message}
    made: _Message = {"role": message.get("role", "user")}
    known = [part for part in parts if isinstance(part, dict)]
    texts = [str(part.get("content", "")) for part in known if part.get("type") == "text"]
    answers = [part for part in known if part.get("type") == "tool_call_response"]
    texts += [text_of(first(part, "response", "result")) for part in answers]
    made["content"] = "\n".join(texts)
    if answers:
        made["tool_call_id"] = answers[0].get("id")
    if calls := [part for part in known if part.get("type") == "tool_call"]:
        made["tool_calls"] = [_call(str(one.get("id", "")), one.get("name"), one.get("arguments")) for one in calls]
    return made


def first(value: dict[str, Any], *names: str) -> Any:
    """Return the value of the first key in `names` that exists, or None."""
    return next((value[name] for name in names if name in value), None)


def _call(identifier: str, name: Any, arguments: Any) -> dict[str, Any]:
    text = text_of(arguments) if arguments is not None else "{}"
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": text}}


def _numbered(attributes: dict[str, Any], pattern: re.Pattern[str], role: str) -> list[_Message]:
    """Read messages from attributes such as `gen_ai.prompt.0.role`: one attribute for each field of a message."""
    found: dict[int, _Message] = {}
    for key, value in attributes.items():
        if match := pattern.fullmatch(key):
            found.setdefault(int(match[1]), {})[match[2]] = value
    return [_from_fields(found[at], role) for at in sorted(found)]


def _from_fields(fields: _Message, role: str) -> _Message:
    texts = [
        str(value)
        for key, value in sorted(fields.items())
        if re.fullmatch(r"contents\.\d+\.message_content\.text", key)
    ]
    made: _Message = {"role": fields.get("role", role), "content": fields.get("content", "\n".join(texts))}
    calls: dict[int, dict[str, Any]] = {}
    for key, value in fields.items():
        if match := _CALL.fullmatch(key):
            calls.setdefault(int(match[1]), {})[match[2].removeprefix("function.")] = value
    if calls:
        ordered = [calls[at] for at in sorted(calls)]
        made["tool_calls"] = [_call(str(one.get("id", "")), one.get("name"), one.get("arguments")) for one in ordered]
    return made


def _turns(spans: list[dict[str, Any]]) -> list[_Message]:
    """Convert each root span's inputs and outputs to a user's message and an assistant's message."""
    told: list[_Message] = []
    for span in spans:
        data = ((span.get("attributes") or {}).get("ag") or {}).get("data") or {}
        if span["is_root"] and isinstance(data, dict) and "inputs" in data and "outputs" in data:
            told.append({"role": "user", "content": text_of(data["inputs"])})
            told.append({"role": "assistant", "content": text_of(data["outputs"])})
    return told

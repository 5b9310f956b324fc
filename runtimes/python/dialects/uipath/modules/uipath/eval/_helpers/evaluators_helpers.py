"""Reads tool calls from a trace (names, arguments and outputs), by the rules of UiPath's release 2.14."""

from __future__ import annotations

import ast
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..models.models import ToolCall, ToolOutput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

_NAME, _ID, _SYNTHESIZED = "tool.name", "tool.id", "tool.synthesized"
_ARGUMENTS, _OUTPUT = "input.value", "output.value"
_CONTENT = "content"


def extract_tool_calls(spans: Sequence[ReadableSpan], include_args: bool = True) -> list[ToolCall]:  # noqa: FBT001, FBT002
    """Return all tool calls in the order of the spans, with arguments if `include_args`."""
    return [
        ToolCall(name=str(held[_NAME]), args=_arguments(held.get(_ARGUMENTS)) if include_args else {}, id=_id(held))
        for held in _tools(spans)
    ]


def extract_tool_calls_names(spans: Sequence[ReadableSpan]) -> list[str]:
    """Return the name of the tool for each tool call."""
    return [str(held[_NAME]) for held in _tools(spans)]


def extract_tool_calls_outputs(spans: Sequence[ReadableSpan]) -> list[ToolOutput]:
    """Return the output of each tool call: the `content` if the output is an object, else the output as text."""
    return [
        ToolOutput(name=str(held[_NAME]), output=_output(held.get(_OUTPUT, "")), id=_id(held)) for held in _tools(spans)
    ]


def trace_to_str(workload_trace: Sequence[ReadableSpan]) -> str:
    """Format the tool calls as a conversation that has each span once; times are in this machine's time zone."""
    lines: list[str] = []
    told = set()
    for span in workload_trace:
        held = span.attributes or {}
        name = held.get(_NAME)
        if not name:
            continue
        called, answered = _clock(span.start_time), _clock(span.end_time)
        key = span.context.span_id if span.context else (name, called)
        if key in told:
            continue
        told.add(key)
        lines += [f"[{called}] LLM Response:", "  Agent Selected 1 Tool(s):", ""]
        lines += [f"  Tool: {name}", f"  Arguments: {held.get(_ARGUMENTS, {})}", ""]
        lines += [f"[{answered or called}] Tool Call Response - {name}:", str(held.get(_OUTPUT, {})).strip(), ""]
    return "\n".join(lines)


def _tools(spans: Sequence[ReadableSpan]) -> Iterator[Mapping[str, Any]]:
    """Yield the attributes of spans that are tool calls, except spans that were added after the run."""
    for span in spans:
        held = span.attributes
        if held and held.get(_NAME) and not held.get(_SYNTHESIZED, False):
            yield held


def _id(held: Mapping[str, Any]) -> str | None:
    return None if held.get(_ID) is None else str(held[_ID])


def _arguments(value: Any) -> dict[str, Any]:
    """Convert arguments (an object, JSON or a Python literal) to a dict; anything else gives an empty dict."""
    if isinstance(value, str):
        value = _literal(value)
    return value if isinstance(value, dict) else {}


def _literal(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            pass
    return None


def _output(value: Any) -> str:
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            return value
        if not isinstance(read, dict):
            return value
        value = read
    content = value.get(_CONTENT, "") if isinstance(value, dict) else str(value)
    return str(content) if content else ""


def _clock(time_ns: Any) -> str:
    if isinstance(time_ns, int):
        time_ns = datetime.fromtimestamp(time_ns / 1e9)  # noqa: DTZ006 - as the package has it
    return time_ns.strftime("%Y-%m-%d %H:%M:%S") if time_ns else ""

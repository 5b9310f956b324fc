"""Reads the answers of agents. Finds the output in a JSON document or in a stream of events."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

_STEP: Final = re.compile(r"(\.\.?)([A-Za-z_][\w-]*|\*)|(\.\.)?\[(?:'([^']*)'|\"([^\"]*)\"|(-?\d+)|(\*))\]")
_CHANNEL: Final = re.compile(r"[A-Za-z_][\w-]*")
_MOST_VALUES: Final = 1_000_000  # maximum number of values that paths may reach in one answer


class AgentAnswerError(RuntimeError):
    """Raised when an agent's answer has no output."""


class _Reached:
    """Counts the values that paths reach in one answer, which may be a stream of thousands of events."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def add(self, count: int, path: str) -> None:
        """Count some values. Raise `ValueError` if paths have reached too many."""
        self._left -= count
        if self._left < 0:
            raise ValueError(f"the JSONPath {path!r} reaches more than {_MOST_VALUES} values in the answer")


@lru_cache(16)  # the same path is needed for each event of a stream
def parse_path(path: str) -> tuple[tuple[bool, str | int], ...]:
    """Split a JSONPath such as `$.a[0]['b c'][*]..d` into steps.

    Each step is `(deep, name or position)`; if `deep` is true, the step finds the name at any depth.

    Raises:
      ValueError: the path does not have this syntax.
    """
    at = 1 if path.startswith("$") else 0
    text = path if at else f"${'' if path.startswith('[') else '.'}{path}"
    at, steps = 1, list[tuple[bool, str | int]]()
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ValueError(f"the JSONPath {path!r} may contain only names, positions, * and ..")
        deep = found[1] == ".." or found[3] is not None
        name = next(one for one in (found[2], found[4], found[5], found[6], found[7]) if one is not None)
        steps.append((deep, int(name) if found[6] is not None else name))
        at = found.end()
    return tuple(steps)


def find_path(value: Any, path: str, reached: _Reached | None = None) -> list[Any]:
    """Return the values at a JSONPath. `reached` counts the values in other parts of the same answer.

    Raises:
      ValueError: the path is not valid, or reaches too many values.
    """
    found, reached = [value], reached or _Reached()
    for deep, name in parse_path(path):
        tops, found = found, []
        for one in (one for top in tops for one in (_below(top) if deep else (top,))):
            children = _children(one, name)
            reached.add(1 + len(children), path)
            found.extend(children)
    return found


def _below(value: Any) -> Iterator[Any]:
    """Yield a value and all values inside it."""
    left = [value]
    while left:
        one = left.pop()
        yield one
        inner = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        left.extend(reversed(inner))


def _children(value: Any, name: str | int) -> list[Any]:
    if isinstance(value, list):
        if name == "*":
            return value
        return [value[name]] if isinstance(name, int) and -len(value) <= name < len(value) else []
    if not isinstance(value, dict):
        return []
    return list(value.values()) if name == "*" else [value[name]] if name in value else []


def extract(value: Any, path: str, reached: _Reached, *, field: str, required: bool = True) -> Any:
    """Return the last value at a JSONPath. If there is no value and `required` is false, return None.

    `field` is the name of the path in the error message.

    Raises:
      ValueError: there is no value, and `required` is true; or paths have reached too many values.
    """
    found = find_path(value, path, reached)
    if not found and required:
        shown = str(value)[:500]
        raise ValueError(f"JSONPath '{path}' ({field}) did not match any value in agent response: {shown}")
    return found[-1] if found else None


def input_message(request: dict[str, Any]) -> str:
    """Return the text of the user's last message.

    If no message is from the user, return all messages; if there are no messages, return the prompt.

    Raises:
      ValueError: the request has neither messages nor a prompt.
    """
    if "messages" in request:
        messages = request["messages"]
        own = [one for one in messages if one.get("role") == "user"]
        return str(own[-1]["content"]) if own else "\n".join(str(one.get("content", "")) for one in messages)
    if "prompt" in request:
        return str(request["prompt"])
    raise ValueError("Agent inference request must contain 'messages' or 'prompt'.")


def response_of(value: Any, trajectory: Any) -> dict[str, Any]:
    """Wrap an agent's output in a chat message for an evaluator. Add the trajectory if there is one."""
    made = {"choices": [{"message": {"role": "assistant", "content": value}}]}
    return made if trajectory is None else {**made, "trajectory": trajectory}


def read_whole(answer: Any, *, path: str, field: str, trajectory_path: str | None) -> dict[str, Any]:
    """Extract an agent's output and trajectory from its JSON answer. Return them as `response_of` does.

    `field` is the name of `path` in the error message.

    Raises:
      ValueError: the answer has no output.
    """
    reached = _Reached()
    value = str(extract(answer, path, reached, field=field))
    found = None
    if trajectory_path:
        found = extract(answer, trajectory_path, reached, field="trajectory_path", required=False)
    return response_of(value, found)


def read_stream(
    lines: Iterable[str], *, path: str, field: str, trajectory_path: str | None, joined: bool
) -> tuple[dict[str, Any], Any]:
    """Extract output and trajectory from an agent's stream of events, as `read_whole` does; also return the last event.

    The output is the last value at `path`, or, with `joined`, all these values joined into one string.

    Raises:
      AgentAnswerError: no event has an output, or an event is an error.
      ValueError: the path is not valid, or paths reach too many values in all events together.
    """
    parts, reached = list[str](), _Reached()
    value = last = trajectory = error = None
    for line in lines:
        frame = _frame(line)
        if frame is None or frame[0] != "data" or frame[1] == "[DONE]":
            continue
        last = frame[1]
        found = extract(last, path, reached, field=field, required=False)
        if found is not None:
            parts.append(found if isinstance(found, str) else str(found))
            value = found
        if trajectory_path:
            known = extract(last, trajectory_path, reached, field="trajectory_path", required=False)
            trajectory = trajectory if known is None else known
        error = error or _error_in(last)
    if joined and parts:
        value = "".join(parts)
    if error is not None or value is None or value == "":
        why = f": {error}" if error else ""
        raise AgentAnswerError(f"the agent completed the SSE stream without producing a final value{why}")
    return response_of(value, trajectory), last


def _frame(line: str) -> tuple[str, Any] | None:
    line = line.strip()
    channel, mark, text = line.partition(":")
    if not mark or line.startswith("event:") or not _CHANNEL.fullmatch(channel.strip()):
        return None
    try:
        return channel.strip(), json.loads(text.strip())
    except ValueError:
        return channel.strip(), text.strip()


def _error_in(payload: Any) -> str | None:
    if not isinstance(payload, dict):
        return None
    inner = payload.get("value")
    error = payload.get("error") or (inner.get("error") if isinstance(inner, dict) else None)
    if isinstance(error, dict):
        code, message = error.get("code"), error.get("message")
        return f"{code}: {message}" if code and message else str(message or code or error)
    return None if error is None else str(error)

"""Calls agents over HTTP: makes the request, and finds the output in the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .templates import render_template

_STEP = re.compile(r"(\.\.?)([A-Za-z_][\w-]*|\*)|(\.\.)?\[(?:'([^']*)'|\"([^\"]*)\"|(-?\d+)|(\*))\]")
_CHANNEL = re.compile(r"[A-Za-z_][\w-]*")
_MOST_VALUES = 200_000
_TIMEOUT_S = 120.0


class AgentAnswerError(RuntimeError):
    """An agent's answer has no output."""


def parse_path(path: str) -> list[tuple[bool, str | int]]:
    """Split a JSONPath such as `$.a[0]['b c'][*]..d` into steps: whether a step matches at any depth, and its key.

    Raises:
      ValueError: the path has a syntax that is not supported.
    """
    at = 1 if path.startswith("$") else 0
    text = path if at else f"${'' if path.startswith('[') else '.'}{path}"
    at, steps = 1, []
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ValueError(f"the JSONPath {path!r} may contain only names, positions, * and ..")
        deep = found[1] == ".." or found[3] is not None
        name = next(one for one in (found[2], found[4], found[5], found[6], found[7]) if one is not None)
        steps.append((deep, int(name) if found[6] is not None else name))
        at = found.end()
    return steps


def find_path(value: Any, path: str) -> list[Any]:
    """Return the values at a JSONPath.

    Raises:
      ValueError: the path is not valid, or reaches too many values.
    """
    found = [value]
    for deep, name in parse_path(path):
        tops, found = found, []
        for count, one in enumerate(one for top in tops for one in (_below(top) if deep else (top,))):
            found.extend(_children(one, name))
            if count + len(found) > _MOST_VALUES:
                raise ValueError(f"the JSONPath {path!r} reaches more than {_MOST_VALUES} values")
    return found


def _below(value: Any) -> Iterator[Any]:
    """Yield a value and all values inside it."""
    left = [value]
    while left:
        one = left.pop()
        yield one
        inner = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        left.extend(reversed(inner))


def _children(value: Any, name: str | int) -> Iterable[Any]:
    if isinstance(value, list):
        if name == "*":
            return value
        return [value[name]] if isinstance(name, int) and -len(value) <= name < len(value) else []
    if not isinstance(value, dict):
        return []
    return list(value.values()) if name == "*" else [value[name]] if name in value else []


def extract(value: Any, path: str, *, field: str, required: bool = True) -> Any:
    """Return the last value at a JSONPath, or None if there is no value and none is required.

    Raises:
      ValueError: a value is required, but there is none; the message names the `field` that has the path.
    """
    found = find_path(value, path)
    if not found and required:
        shown = str(value)[:500]
        raise ValueError(f"JSONPath '{path}' ({field}) did not match any value in agent response: {shown}")
    return found[-1] if found else None


def payload_of(body: dict[str, Any] | str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON body to send to an agent.

    Args:
      body: Template of the body. It may use `request`, and `input_message`, which is the text of the user's last
        message.
      request: The rendered prompt template, with `messages` or `prompt`.

    Raises:
      ValueError: the request has neither `messages` nor `prompt`.
    """
    if isinstance(body, dict):
        made: dict[str, Any] = render_template(body, {**request, "request": request})
        return made
    return request if body == "request" else {"input_message": input_message(request)}


def input_message(request: dict[str, Any]) -> str:
    """Return the text of the user's last message; if there is none, return the text of all messages, or the prompt.

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
    """Make the response that metrics read: the output as a chat message, and the trajectory if there is one."""
    made = {"choices": [{"message": {"role": "assistant", "content": value}}]}
    return made if trajectory is None else {**made, "trajectory": trajectory}


def read_whole(answer: Any, *, path: str, field: str, trajectory_path: str | None) -> dict[str, Any]:
    """Convert an agent's JSON answer to the response that metrics read.

    Raises:
      ValueError: the answer has no output.
    """
    value = str(extract(answer, path, field=field))
    found = None
    if trajectory_path:
        found = extract(answer, trajectory_path, field="trajectory_path", required=False)
    return response_of(value, found)


def read_stream(
    lines: Iterable[str], *, path: str, field: str, trajectory_path: str | None, joined: bool
) -> tuple[dict[str, Any], Any]:
    """Convert an agent's event stream to the response that metrics read; also return the last event.

    If `joined`, the outputs of all events are put together; otherwise the last output counts.

    Raises:
      AgentAnswerError: no event has an output, or an event is an error.
      ValueError: the path is not valid.
    """
    parts: list[str] = []
    value = last = trajectory = error = None
    for line in lines:
        frame = _frame(line)
        if frame is None or frame[0] != "data" or frame[1] == "[DONE]":
            continue
        last = frame[1]
        found = extract(last, path, field=field, required=False)
        if found is not None:
            parts.append(found if isinstance(found, str) else str(found))
            value = found
        if trajectory_path:
            known = extract(last, trajectory_path, field="trajectory_path", required=False)
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


def call_of(agent: Any) -> dict[str, Any]:
    """Return how to call an agent: the address, the request body, and the path of the output in the answer."""
    if hasattr(agent, "body"):
        return {
            "url": agent.url,
            "query": {},
            "body": agent.body,
            "path": agent.response_path,
            "field": "response_path",
            "trajectory_path": agent.trajectory_path,
            "stream": agent.stream,
            "joined": agent.response_aggregation == "concat",
        }
    from .values.agents import NatAgentConfig

    config = agent.nat or NatAgentConfig()
    own = "://" in config.endpoint
    return {
        "url": config.endpoint if own else f"{agent.url.rstrip('/')}/{config.endpoint.lstrip('/')}",
        "query": dict(config.query_params),
        "body": "request" if config.request_mode == "passthrough" else "input_message",
        "path": config.response_path,
        "field": "nat.response_path",
        "trajectory_path": None,
        "stream": True,
        "joined": config.response_aggregation == "concat",
    }


async def make_agent_inference_request(
    agent: Any,
    request: dict[str, Any],
    *,
    client: Any = None,
    max_retries: int | None = 3,
    api_key: str | None = None,
    default_headers: dict[str, str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - the documented name
) -> dict[str, Any]:
    """Call an agent and convert its answer to a chat response. Requests are repeated after temporary faults.

    Raises:
      RuntimeError: the agent refuses, does not answer, or its answer has no output.
      ValueError: the agent's JSON answer has no output.
    """
    import httpx  # imported here, because only calls need it

    from .inference import posted, requests_log

    call = call_of(agent)
    payload = payload_of(call["body"], request)
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    url = str(httpx.URL(call["url"], params=call["query"])) if call["query"] else call["url"]
    own = client or httpx.AsyncClient()
    try:
        sent = {**headers, **(default_headers or {})}
        answer = await posted(own, url, payload, sent, max_retries, timeout or _TIMEOUT_S, what=f"agent {agent.name}")
    finally:
        if client is None:
            await own.aclose()
    how = {"path": call["path"], "field": call["field"], "trajectory_path": call["trajectory_path"]}
    if call["stream"]:
        response, raw = read_stream(answer.text.splitlines(), **how, joined=call["joined"])
    else:
        raw = answer.json()
        response = read_whole(raw, **how)
    requests_log.get([]).append({"request": payload, "response": raw})
    return response

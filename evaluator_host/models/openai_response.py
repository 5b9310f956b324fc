"""Reads answers of OpenAI-compatible endpoints (platform.openai.com/docs/api-reference): text, tokens, errors."""

from dataclasses import dataclass
from typing import Any, Final

from evaluator_host.model.evaluator import Json
from evaluator_host.model.json_values import VALUE_DEPTH, InvalidJson, decode_json, nests_within

_TOKENS: Final = {"prompt_tokens": "prompt", "completion_tokens": "completion", "total_tokens": "total"}
_SAID_CHARS: Final = 500


class BadAnswer(Exception):
    """The answer is no completion; `str` says why."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion.

    Attributes:
      output: Text, `{"tool_calls": […]}`, or the whole answer.
      facts: `answered_by`, `finish_reason`, `tokens` and `cost`, as far as the answer has them.
    """

    output: Json
    facts: dict[str, Json]


def read_completion(body: Any) -> Completion:
    """Return the message of the first choice of a chat completion.

    Raises:
      BadAnswer: the answer has no such message.
    """
    _require_answer(body)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise BadAnswer("it has no choices[0].message; is the base URL that of an OpenAI-compatible API?")
    facts = {"answered_by": body.get("model"), "finish_reason": choice.get("finish_reason")}
    known = {name: value[:200] for name, value in facts.items() if isinstance(value, str)}
    return Completion(_output(message, known.get("finish_reason")), {**known, **_usage(body.get("usage"))})


def read_text(body: Any) -> Completion:
    """Return the text of the first choice of a completion.

    Raises:
      BadAnswer: the answer has no such text.
    """
    whole = read_whole(body)
    choice = body["choices"][0]
    text = choice.get("text") if isinstance(choice, dict) else None
    if not isinstance(text, str):
        raise BadAnswer("it has no choices[0].text; is the base URL that of an OpenAI-compatible API?")
    return Completion(text, {**whole.facts, **_usage(body.get("usage"))})


def read_whole(body: Any) -> Completion:
    """Return a whole answer, unchanged.

    Raises:
      BadAnswer: the answer has no choices.
    """
    _require_answer(body)
    if not isinstance(body.get("choices"), list) or not body["choices"]:
        raise BadAnswer("it has no choices; is the address that of an OpenAI-compatible API?")
    return Completion(body, {})


def _require_answer(body: Any) -> None:
    if not isinstance(body, dict):
        raise BadAnswer(f"it is {type(body).__name__}, not an object")
    if not nests_within(body, VALUE_DEPTH):
        raise BadAnswer(f"it nests more than {VALUE_DEPTH} levels")
    if body.get("error"):
        raise BadAnswer(_said(body) or "it is an error")


def fault_of(text: str) -> str:
    """Return the message of an error object, or the text of any other error body."""
    try:
        body = decode_json(text.encode())
    except (InvalidJson, ValueError):
        body = None
    return (_said(body) or " ".join(text.split()))[:_SAID_CHARS]


def _output(message: dict[str, Any], finish_reason: str | None) -> Json:
    content = message.get("content")
    if isinstance(content, list):  # parts
        content = "".join(part["text"] for part in content if isinstance(part, dict) and _is_text(part.get("text")))
    if _is_text(content):
        return content
    if message.get("tool_calls"):
        return {"tool_calls": message["tool_calls"]}
    if _is_text(message.get("refusal")):
        return message["refusal"]
    raise BadAnswer(f"the message has neither content nor tool calls (finish_reason: {finish_reason})")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _usage(usage: Any) -> dict[str, Json]:
    if not isinstance(usage, dict):
        return {}
    counted = {ours: usage[theirs] for theirs, ours in _TOKENS.items() if _is_number(usage.get(theirs))}
    found: dict[str, Json] = {}
    if counted:
        counted.setdefault("total", counted.get("prompt", 0) + counted.get("completion", 0))
        found["tokens"] = counted
    if _is_number(usage.get("cost")):
        found["cost"] = usage["cost"]
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15


def _said(body: Any) -> str | None:
    error = body.get("error") if isinstance(body, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else None

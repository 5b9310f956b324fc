"""Completes models' responses as OpenAI's client library does: missing optional fields become null."""

from __future__ import annotations

from typing import Any

_ANY = None  # marks a field whose value is not changed
_TOKEN = {"token": _ANY, "bytes": _ANY, "logprob": _ANY}
_LOGPROB = {**_TOKEN, "top_logprobs": [_TOKEN]}
_CALL = {"arguments": _ANY, "name": _ANY}
_USAGE = {
    **dict.fromkeys(("completion_tokens", "prompt_tokens", "total_tokens")),
    "completion_tokens_details": dict.fromkeys(
        ("accepted_prediction_tokens", "audio_tokens", "reasoning_tokens", "rejected_prediction_tokens", "text_tokens")
    ),
    "prompt_tokens_details": dict.fromkeys(
        ("audio_tokens", "cache_write_tokens", "cached_tokens", "image_tokens", "text_tokens")
    ),
}
_MESSAGE = {
    "content": _ANY,
    "refusal": _ANY,
    "role": _ANY,
    "annotations": [
        {"type": _ANY, "url_citation": dict.fromkeys(("end_index", "start_index", "title", "url"))},
    ],
    "audio": dict.fromkeys(("id", "data", "expires_at", "transcript")),
    "function_call": _CALL,
    "tool_calls": [{"id": _ANY, "function": _CALL, "type": _ANY}],
}
_CHAT = {
    "id": _ANY,
    "choices": [
        {
            "finish_reason": _ANY,
            "index": _ANY,
            "logprobs": {"content": [_LOGPROB], "refusal": [_LOGPROB]},
            "message": _MESSAGE,
        }
    ],
    **dict.fromkeys(("created", "model", "object", "metadata", "moderation", "service_tier", "system_fingerprint")),
    "usage": _USAGE,
}
_LOGPROBS_OF_TEXT = dict.fromkeys(("text_offset", "token_logprobs", "tokens", "top_logprobs"))
_TEXT = {
    "id": _ANY,
    "choices": [{"finish_reason": _ANY, "index": _ANY, "logprobs": _LOGPROBS_OF_TEXT, "text": _ANY}],
    **dict.fromkeys(("created", "model", "object", "system_fingerprint")),
    "usage": _USAGE,
}
"""The fields of OpenAI's types `ChatCompletion` and `Completion`, in their order, as in openai 3.3.0."""


def completed(response: Any, *, chat: bool | None = None) -> Any:
    """Add the missing fields to a response.

    Args:
      response: A response from `/chat/completions` or `/completions`.
      chat: Whether the response is from `/chat/completions`. If it is None, the fields of the choices decide.
    """
    if chat is None:
        choices = response.get("choices") if isinstance(response, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        chat = not (isinstance(first, dict) and "text" in first and "message" not in first)
    return _filled(response, _CHAT if chat else _TEXT)


def _filled(value: Any, kind: Any) -> Any:
    if isinstance(kind, list) and isinstance(value, list):
        return [_filled(one, kind[0]) for one in value]
    if not isinstance(kind, dict) or not isinstance(value, dict) or _is_custom(value):
        return value
    return {**{name: _filled(value.get(name), inner) for name, inner in kind.items()}, **_others(value, kind)}


def _others(value: dict[str, Any], kind: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if name not in kind}


def _is_custom(value: dict[str, Any]) -> bool:
    """Return whether a value is a custom tool call, whose fields differ from those of a function call."""
    return "custom" in value and value.get("type") == "custom"

"""Calls models directly over HTTP, in the user's own process. In a sandbox, the host calls models instead."""

from __future__ import annotations

from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

from .openai_types import completed
from .values.models import Model, ReasoningParams

_NO_KEY = "XXX"  # key to send if none is given, because some servers require a key but accept any
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 15.0
_TIMEOUT_S = 600.0
_NOT_SENT = frozenset({"extra_body", "extra_headers", "extra_query", "timeout"})
_SUFFIXES = ("/chat/completions", "/completions")

requests_log: ContextVar[list[dict[str, Any]]] = ContextVar("requests_log")
# function that asks the host to call a model, set in sandboxes, which have no network
in_place: InferenceFn | None = None


class ClientInferenceError(RuntimeError):
    """A model refused a request.

    Attributes:
      status_code: HTTP status code of the response.
    """

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


@runtime_checkable
class InferenceFn(Protocol):
    """A function that calls a model and returns the model's whole answer."""

    def __call__(
        self,
        model: Model,
        request: dict[str, Any],
        max_retries: int | None,
        *,
        client: Any = None,
        api_key: str | None = None,
        default_headers: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> Awaitable[dict[str, Any]]: ...


async def make_inference_request(
    model: Model,
    request: dict[str, Any],
    max_retries: int | None = 3,
    *,
    client: Any = None,
    api_key: str | None = None,
    default_headers: dict[str, str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - the documented name
) -> dict[str, Any]:
    """Send a chat request (or without `messages`, a completion request) to a model, and return the answer.

    Requests are repeated after temporary faults; each pause is twice as long as the one before.

    Args:
      model: The model: its URL, name and headers.
      request: Body of the request; the fields in its `extra_body` are merged into the body.
      max_retries: Number of tries after the first; None for no further try.
      client: An `httpx.AsyncClient`; None to make one for this request.
      api_key: Bearer token.
      default_headers: Headers to send in addition to the model's own headers.
      timeout: Time limit in seconds for one answer.

    Raises:
      ClientInferenceError: the model refuses the request.
      RuntimeError: the model does not answer.
    """
    if in_place is not None:
        return await in_place(model, request, max_retries, timeout=timeout)
    import httpx  # imported here, because only model calls need it

    if client is None:
        async with httpx.AsyncClient(follow_redirects=True) as own:
            return await _asked(own, model, request, max_retries, api_key, default_headers, timeout)
    return await _asked(client, model, request, max_retries, api_key, default_headers, timeout)


async def _asked(
    client: Any,
    model: Model,
    request: dict[str, Any],
    max_retries: int | None,
    api_key: str | None,
    default_headers: dict[str, str] | None,
    timeout_s: float | None,
) -> dict[str, Any]:
    body = deep_merge({"model": model.name, **_sent(request)}, request.get("extra_body") or {})
    headers = {"Authorization": f"Bearer {api_key or _NO_KEY}", **(model.default_headers or {})}
    url = endpoint_url(model.url, chat="messages" in request)
    answer = await posted(
        client,
        url,
        body,
        {**headers, **(default_headers or {})},
        max_retries,
        timeout_s or _TIMEOUT_S,
        what=model.name,
        base_url=_base_url(model.url),
    )
    found: dict[str, Any] = completed(answer.json(), chat="messages" in request)
    requests_log.get([]).append({"request": {"model": model.name, **request}, "response": found})
    return found


async def posted(
    client: Any,
    url: str,
    body: dict[str, Any],
    headers: dict[str, str],
    max_retries: int | None,
    timeout_s: float,
    *,
    what: str,
    base_url: str | None = None,
) -> Any:
    """Send a POST request with a JSON body, and return the answer. Repeat the request after temporary faults.

    Raises:
      ClientInferenceError: the server refuses the request.
      RuntimeError: the server does not answer.
    """
    import asyncio
    import random

    for tries in range(1, (max_retries or 0) + 2):
        last = tries > (max_retries or 0)
        try:
            answer = await client.post(url, json=body, headers=headers, timeout=timeout_s)
        except OSError as error:  # an error of the operating system that httpx has not converted
            problem: Exception = error
        except Exception as error:  # an httpx.HTTPError; httpx is imported only if it is needed
            if type(error).__module__.partition(".")[0] != "httpx":
                raise
            problem = error
        else:
            if answer.is_success:
                return answer
            problem = refused(answer.status_code, answer.text, url=base_url or url, model=what)
            if answer.status_code not in _AGAIN:
                raise problem
        if last:
            if isinstance(problem, RuntimeError):
                raise problem
            raise RuntimeError(f"Error connecting to inference server at {url}") from problem
        longest = min(_PAUSE_S * 2.0 ** (tries - 1), _LONGEST_PAUSE_S)
        await asyncio.sleep(longest * (0.5 + random.random() / 2))  # noqa: S311 - this only spreads out the retries
    raise AssertionError("unreachable")  # pragma: no cover


def refused(status: int, said: str, *, url: str, model: str) -> RuntimeError:
    """Return the exception to raise for an error response with this status and text."""
    if status == 429:
        return RuntimeError(f"Rate limit exceeded when issuing inference requests for {model}")
    detail = f" Details: {said}" if said.strip() else ""
    where = f"base_url: {url}/, model_id: {model}"
    message = f"Unable to complete inference because a {status} error occurred. {where}{detail}"
    return ClientInferenceError(message, status)


def endpoint_url(url: str, *, chat: bool) -> str:
    """Return the URL for requests; a model's URL may already end with the path for chat or for completions."""
    _, mark, query = url.partition("?")
    return f"{_base_url(url)}{_SUFFIXES[0 if chat else 1]}{mark}{query}"


def _base_url(url: str) -> str:
    base = url.partition("?")[0].rstrip("/")
    for suffix in _SUFFIXES:
        base = base.removesuffix(suffix)
    return base


def is_chat(url: str) -> bool:
    """Return whether a model's URL is for chat requests rather than completion requests."""
    path = url.partition("?")[0].rstrip("/")
    return not path.endswith(_SUFFIXES[1]) or path.endswith(_SUFFIXES[0])


def output_text(response: dict[str, Any], reasoning: ReasoningParams | None = None) -> str | None:
    """Return the text of an answer, but not the reasoning before it. Return None if the text is null.

    Raises:
      ValueError: the answer has no text.
    """
    choices = response.get("choices")
    if not choices:
        raise ValueError("Invalid response format: No choices found in the response.")
    choice = choices[0]
    if "content" in (choice.get("message") or {}):
        text = choice["message"]["content"]
    elif "text" in choice:
        text = choice["text"]
    else:
        raise ValueError(f"Invalid response format: No text found in the response {response}.")
    token = reasoning.end_token if reasoning is not None else None
    return text.rpartition(token)[2] if token and isinstance(text, str) else text


def without_reasoning(response: dict[str, Any], reasoning: ReasoningParams | None) -> dict[str, Any]:
    """Move the reasoning of each choice (the text up to the end token) to `reasoning_content`."""
    token = reasoning.end_token if reasoning is not None else None
    if not token:
        return response
    return {**response, "choices": [_parted(choice, token) for choice in response.get("choices") or ()]}


def _parted(choice: dict[str, Any], token: str) -> dict[str, Any]:
    message = choice.get("message")
    held, name = (message, "content") if message else (choice, "text")
    thought, found, said = str(held.get(name) or "").rpartition(token)
    if not found:
        return choice
    parted = {**held, name: said, "reasoning_content": thought + token}
    return {**choice, "message": parted} if message else parted


def deep_merge(request: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Merge parameters into a request, including nested objects; parameters replace existing values."""
    merged = dict(request)
    for key, value in params.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = deep_merge(merged[key], value) if both else value
    return merged


def _sent(request: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key not in _NOT_SENT}

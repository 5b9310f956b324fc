"""Calls one OpenAI-compatible endpoint: retries after temporary faults, and logs every attempt.

The key is sent only to the endpoint. Redirects are not followed, proxies of the environment and .netrc are not read,
and answers are redacted before they are stored.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from evaluator_host.types.evaluator import Json
from evaluator_host.types.jobs import Target
from evaluator_host.types.json_values import (
    VALUE_DEPTH,
    InvalidJson,
    aside,
    decode_json,
    encode_json,
    nests_within,
    type_name,
)
from evaluator_host.types.redaction import Redactor

ANSWER_BYTES: Final = 2 << 20
_FAULT_BYTES: Final = 64 << 10
_MESSAGE_CHARS: Final = 500
AGAIN: Final = frozenset({408, 409, 425, 429})
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_LONGEST_WAIT_S: Final = 300.0  # longest wait, in seconds, that a Retry-After header can cause
_CHAT: Final = "/chat/completions"
_COMPLETIONS: Final = "/completions"

_NO_SUCH_PATH: Final = frozenset({404, 405, 501})

_TOKENS: Final = {"prompt_tokens": "prompt", "completion_tokens": "completion", "total_tokens": "total"}
_SAID_CHARS: Final = 500


class BadAnswer(Exception):
    """The response is not a completion; the message says why."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer, with its token counts."""

    output: Json  # string or `{"tool_calls": […]}`; None if the caller needs only the whole response
    facts: dict[str, Json]  # `answered_by`, `finish_reason`, `tokens` and `cost`, if the answer has them
    response: dict[str, Json]  # the whole response body


def read_completion(body: Any) -> Completion:
    """Return the message of the first choice in a chat completion response.

    Raises:
      BadAnswer: the response has no such message.
    """
    _require_answer(body)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise BadAnswer("it has no choices[0].message; check that the base URL belongs to an OpenAI-compatible API")
    facts = {"answered_by": body.get("model"), "finish_reason": choice.get("finish_reason")}
    known = {name: value[:200] for name, value in facts.items() if isinstance(value, str)}
    return Completion(_output(message, known.get("finish_reason")), {**known, **_usage(body.get("usage"))}, body)


def read_text(body: Any) -> Completion:
    """Return the text of the first choice in a completion response.

    Raises:
      BadAnswer: the response has no such text.
    """
    whole = read_whole(body)
    choice = body["choices"][0]
    text = choice.get("text") if isinstance(choice, dict) else None
    if not isinstance(text, str):
        raise BadAnswer("it has no choices[0].text; check that the base URL belongs to an OpenAI-compatible API")
    if not text:
        raise _empty("the text is empty", choice.get("finish_reason"))
    return Completion(text, {**whole.facts, **_usage(body.get("usage"))}, body)


def read_whole(body: Any) -> Completion:
    """Check that a completion response has choices, and return the whole response; its text and tokens are not read.

    Raises:
      BadAnswer: the response has no choices.
    """
    _require_answer(body)
    if not isinstance(body.get("choices"), list) or not body["choices"]:
        raise BadAnswer("it has no choices; check that the address belongs to an OpenAI-compatible API")
    return Completion(None, {}, body)


def _require_answer(body: Any) -> None:
    if not isinstance(body, dict):
        raise BadAnswer(f"it is {type_name(body)}, not an object")
    if not nests_within(body, VALUE_DEPTH):
        raise BadAnswer(f"it is nested more than {VALUE_DEPTH} levels deep")
    if body.get("error"):
        raise BadAnswer(_said(body) or "it is an error")


def fault_of(text: str) -> str:
    """Return the message of an error response: the message in its JSON error object, or else the whole text."""
    try:
        body = decode_json(text.encode())
    except (InvalidJson, ValueError):
        body = None
    return (_said(body) or " ".join(text.split()))[:_SAID_CHARS]


def _output(message: dict[str, Any], finish_reason: str | None) -> Json:
    content = message.get("content")
    if isinstance(content, list):  # the message consists of parts
        content = "".join(part["text"] for part in content if isinstance(part, dict) and _is_text(part.get("text")))
    if content and _is_text(content):
        return content
    if message.get("tool_calls"):
        return {"tool_calls": message["tool_calls"]}
    if _is_text(refusal := message.get("refusal")) and refusal:
        return refusal
    raise _empty("the message has neither content nor tool calls", finish_reason)


def _empty(what: str, finish_reason: Any) -> BadAnswer:
    remedy = "; raise `max_tokens` in `inference`" if finish_reason == "length" else ""
    return BadAnswer(f"{what} (finish_reason: {str(finish_reason)[:200]}){remedy}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _usage(usage: Any) -> dict[str, Json]:
    if not isinstance(usage, dict):
        return {}
    counted = {ours: usage[theirs] for theirs, ours in _TOKENS.items() if _is_number(usage.get(theirs))}
    found: dict[str, Json] = {}
    if counted:
        known = counted.get("prompt", 0) + counted.get("completion", 0)
        more = counted.setdefault("total", known) - known
        if "prompt" in counted and more > 0:
            # some providers count the tokens of reasoning only in the total
            counted["completion"] = counted.get("completion", 0) + more
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


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The result of one model call, or the error of its last attempt."""

    output: Json  # string, or `{"tool_calls": […]}`; None when the call failed
    error: str | None  # message of the error, redacted; None when the call succeeded
    latency_ms: float  # milliseconds of the attempt that got an answer, or of the last attempt if none did
    # `{"started_at", "model", "attempts": [{"status", "latency_ms", "error"}], "body", "response", "tokens", "cost",
    # …}`: `body` is the request as it was sent, or None if it has over 2 MB; `response` is the whole response, or None
    # if the call failed. Both are redacted.
    log: dict[str, Json]


class Fault(Exception):
    """A failed attempt.

    `status` is the HTTP status, or None if there was no response. If `again` is true, the caller should try again after
    `wait_s` seconds.
    """

    def __init__(self, message: str, *, status: int | None = None, again: bool, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.again = again
        self.wait_s = wait_s


class Endpoint:
    """Calls one model at one endpoint. Use it in one event loop only. The caller closes the HTTP client."""

    def __init__(self, target: Target, key: str | None, client: httpx.AsyncClient) -> None:
        self._target = target
        self._completes = target.completion
        self._base_url = target.base_url.rstrip("/")
        self._redact = Redactor(key)
        self._client = client
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    async def ask(self, messages: list[Json]) -> ModelAnswer:
        """Return the model's answer to these messages, or the error; never raises."""
        body = {**self._target.inference, "model": self._target.model}
        if self._completes and len(messages) == 1:
            answer = await self._ask(_COMPLETIONS, {**body, "prompt": messages[0]["content"]}, read_text)
            if answer.error is None or answer.log["attempts"][-1]["status"] not in _NO_SUCH_PATH:
                return answer
            self._completes = False
        return await self._ask(_CHAT, {**body, "messages": messages}, read_completion)

    async def complete(self, request: dict[str, Json]) -> ModelAnswer:
        """Send a request with the name of the target's model, log the response, and return the answer. Never raises.

        A request with `messages` goes to the path for chat completions.
        """
        path = _CHAT if "messages" in request else _COMPLETIONS
        return await self._ask(path, {**request, "model": self._target.model}, read_whole)

    async def _ask(self, path: str, request: dict[str, Json], read: Any) -> ModelAnswer:
        url, body = self._base_url + path, encode_json(request)
        attempts: list[Json] = []
        started_at = datetime.now(UTC)
        while True:
            started = time.perf_counter()
            fault: Fault | None = None
            completion: Completion | None = None
            try:
                completion = await self._try(url, body, read)
            except Fault as error:
                fault = error
            latency_ms = round((time.perf_counter() - started) * 1000, 3)
            attempts.append(self._attempt(fault, latency_ms))
            last = len(attempts) > self._target.retries
            if fault is None or not fault.again or last:
                sent = None
                if len(body) <= ANSWER_BYTES:
                    sent = await aside(body, self._redact.value, request)
                log: dict[str, Json] = {"started_at": started_at.isoformat(), "attempts": attempts, "body": sent}
                return self._answer(completion, log, latency_ms)
            await asyncio.sleep(max(fault.wait_s, pause_s(len(attempts))))
            started_at = datetime.now(UTC)

    def _attempt(self, fault: Fault | None, latency_ms: float) -> Json:
        if fault is None:
            return {"status": 200, "latency_ms": latency_ms, "error": None}
        return {
            "status": fault.status,
            "latency_ms": latency_ms,
            "error": self._redact.text(str(fault))[:_MESSAGE_CHARS],
        }

    def _answer(self, completion: Completion | None, log: dict[str, Json], latency_ms: float) -> ModelAnswer:
        log |= {"model": self._target.model, "response": None}
        if completion is None:
            attempts = log["attempts"]
            tries = f" (after {len(attempts)} tries)" if len(attempts) > 1 else ""
            return ModelAnswer(None, f"{attempts[-1]['error']}{tries}", latency_ms, log)
        log |= completion.facts
        log["response"] = completion.response
        return ModelAnswer(completion.output, None, latency_ms, log)

    async def _try(self, url: str, body: bytes, read: Any) -> Completion:
        timeout_s = self._target.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                async with self._client.stream("POST", url, content=body, headers=self._headers) as response:
                    return await self._read(response, read)
        except TimeoutError as error:
            raise Fault(f"no answer within {timeout_s:g} s", again=True) from error
        except httpx.HTTPError as error:
            said = str(error) or type(error).__name__
            raise Fault(f"the connection failed: {said}", again=True) from error

    async def _read(self, response: httpx.Response, read: Any) -> Completion:
        status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Fault(
                "the answer is compressed, though the host asked for it uncompressed", status=status, again=False
            )
        if not response.is_success:
            raise await self._refused(response)
        data = await read_body(response, ANSWER_BYTES + 1)
        if len(data) > ANSWER_BYTES:
            raise Fault(f"the answer is longer than {ANSWER_BYTES >> 20} MB", status=status, again=False)
        try:
            return await aside(data, lambda: self._redact.value(read(decode_json(data))))
        except (InvalidJson, BadAnswer) as error:
            raise Fault(f"the answer cannot be used: {error}", status=status, again=False) from error

    async def _refused(self, response: httpx.Response) -> Fault:
        status = response.status_code
        if response.is_redirect:
            where = self._redact.text(response.headers.get("location", ""))
            return Fault(f"HTTP {status}: redirects are not followed (to {where})", status=status, again=False)
        said = fault_of(self._redact.text((await read_body(response, _FAULT_BYTES)).decode("utf-8", "replace")))
        again = status in AGAIN or status >= httpx.codes.INTERNAL_SERVER_ERROR
        wait_s = wait_s_of(response.headers.get("retry-after"))
        return Fault(f"HTTP {status}: {said}".rstrip(": "), status=status, again=again, wait_s=wait_s)


async def read_body(response: httpx.Response, most: int) -> bytes:
    """Return the beginning of the body: at most `most` bytes."""
    data = bytearray()
    async for chunk in chunks_of(response):
        data += chunk
        if len(data) >= most:
            break
    return bytes(data[:most])


async def chunks_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the chunks of a body, and let other tasks run after each: one read may return thousands of tiny chunks."""
    async for chunk in response.aiter_raw():
        yield chunk
        await asyncio.sleep(0)


def pause_s(tries: int) -> float:
    """Return how many seconds to wait after `tries` failed attempts: doubled each time, and half of it random."""
    longest = min(_PAUSE_S * 2.0 ** (tries - 1), _LONGEST_PAUSE_S)
    return float(longest * (0.5 + random.random() / 2))  # noqa: S311 - spreads callers over time; not a secret


def wait_s_of(header: str | None) -> float:
    """Return the seconds in `Retry-After`, which is a number or a date (RFC 9110, 10.2.3).

    Without this header, return 0.
    """
    wait_s = 0.0
    if header is not None:
        with suppress(ValueError, TypeError, OverflowError):
            wait_s = float(header) if header.strip().isdecimal() else _until(parsedate_to_datetime(header))
    return max(0.0, min(wait_s, _LONGEST_WAIT_S))


def _until(when: datetime) -> float:
    return (when - datetime.now(when.tzinfo)).total_seconds()

"""The model APIs that the gateway supports: accepted requests, the form of errors, token counts in answers."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from evaluator_host.engine.service.model_grants import PLACEHOLDER
from evaluator_host.platform.models.gateway.grants import base_url
from evaluator_host.types.evaluator import Json, ModelKind
from evaluator_host.types.json_values import InvalidJson, decode_json, encode_json
from evaluator_host.types.models import RegisteredModel

_AZURE: Final = re.compile(r"/openai/deployments/([^/]{1,200})/(chat/completions|completions|embeddings)")
_PATHS: Final[Mapping[str, tuple[ModelKind, str]]] = {
    "/chat/completions": (ModelKind.OPENAI, "/chat/completions"),
    "/completions": (ModelKind.OPENAI, "/completions"),
    "/responses": (ModelKind.OPENAI, "/responses"),
    "/embeddings": (ModelKind.OPENAI, "/embeddings"),
    "/messages": (ModelKind.ANTHROPIC, "/v1/messages"),
    "/messages/count_tokens": (ModelKind.ANTHROPIC, "/v1/messages/count_tokens"),
}
_KINDS_OF_ERRORS: Final = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
_VOLATILE: Final = frozenset(
    {"user", "metadata", "safety_identifier", "prompt_cache_key", "stream_options", "service_tier", "store"}
)
_MAX_TOKENS: Final = 1024  # default limit on an answer's tokens, because Anthropic's API requires a limit
# names of the tokens that were read from the cache, in usage that has no details: Anthropic's, and DeepSeek's
_CACHED: Final = ("cache_read_input_tokens", "prompt_cache_hit_tokens")
# fraction of the price of input that Anthropic charges in addition for tokens that it writes to its cache
_WRITTEN, _WRITTEN_FOR_HOUR = 0.25, 1.0
_SSE_DATA: Final = b"data:"
_EVENT_BYTES: Final = 1 << 20  # maximum size, in bytes, of an event that is read; longer events are passed on unread


@dataclass(frozen=True, slots=True)
class Route:
    """Route of a request to a model: the kind of API, and the path."""

    kind: ModelKind  # the API of the route
    path: str  # path after the base URL of the model
    deployment: str | None = None  # name of the model, if the path contains it (Azure)


def route_of(path: str) -> Route | None:
    """Return the route for the path of a POST request. None if this is not the path of a request to a model."""
    if (azure := _AZURE.fullmatch(path)) is not None:
        return Route(ModelKind.OPENAI, f"/{azure[2]}", azure[1])
    found = _PATHS.get(path.removeprefix("/openai").removeprefix("/v1"))  # Groq's client adds /openai
    return None if found is None else Route(*found)


def refusal(kind: ModelKind, status: int, message: str, code: str) -> bytes:
    """Return the body of an error response in the format of this kind of provider."""
    if kind is ModelKind.ANTHROPIC:
        named = _KINDS_OF_ERRORS.get(status, "api_error")
        return encode_json({"type": "error", "error": {"type": named, "message": message, "code": code}})
    named = "insufficient_quota" if code == "budget_exceeded" else _KINDS_OF_ERRORS.get(status, "server_error")
    return encode_json({"error": {"message": message, "type": named, "param": None, "code": code}})


def model_list(kind: ModelKind, names: list[str]) -> bytes:
    """Return the body of the response to `GET /v1/models`."""
    if kind is ModelKind.ANTHROPIC:
        data: list[Json] = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names
        ]
        edges: dict[str, Json] = {
            "first_id": names[0] if names else None,
            "last_id": names[-1] if names else None,
            "has_more": False,
        }
        return encode_json({"data": data, **edges})
    data = [{"id": name, "object": "model", "created": 0, "owned_by": PLACEHOLDER} for name in names]
    return encode_json({"object": "list", "data": data})


def canonical(route: Route, registered: RegisteredModel, body: dict[str, Json]) -> dict[str, Json]:
    """Return a request without user, metadata and transport fields. Recorded answers are found by this form.

    Its `server` is a digest of the URL, so that models of the same name at different URLs do not share answers.
    """
    kept = {name: value for name, value in body.items() if name not in _VOLATILE}
    if not kept.get("stream"):
        kept.pop("stream", None)
    server = hashlib.sha256(base_url(registered).encode()).hexdigest()[:16]
    return {"kind": route.kind, "path": route.path, "server": server, "body": {**kept, "model": registered.model}}


class Tokens(NamedTuple):
    """Numbers of tokens in a request, in its answer, and in the part of the request that the provider had cached.

    `surcharge` is what the provider charges for writing its cache, in addition to the request, as a number of tokens.
    """

    asked: int
    answered: int
    cached: int = 0
    surcharge: float = 0.0


def tokens_of(body: Any) -> Tokens | None:
    """Return the token counts in a response or in an event of a stream. None if there are none."""
    if not isinstance(body, dict):
        return None
    inner = body.get("response") if isinstance(body.get("response"), dict) else body.get("message")
    usage = body.get("usage") or (inner.get("usage") if isinstance(inner, dict) else None)
    if not isinstance(usage, dict):
        return (
            Tokens(0, 0) if "input_tokens" in body else None
        )  # a response of messages/count_tokens, which costs nothing
    asked = _count(usage.get("prompt_tokens"))
    if "prompt_tokens" not in usage:  # `prompt_tokens` includes cached tokens, but Anthropic's `input_tokens` does not
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        asked = sum(_count(usage.get(name)) for name in names)
    answered = _count(usage.get("completion_tokens", usage.get("output_tokens")))
    total = _count(usage.get("total_tokens"))
    if not asked and not answered:
        return Tokens(total, 0)
    # some providers count the tokens of reasoning only in the total
    return Tokens(asked, max(answered, total - asked), min(asked, _cached(usage)), min(asked, _surcharge(usage)))


def _cached(usage: dict[str, Any]) -> int:
    """Return how many tokens of a request the provider read from its cache."""
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    within = details.get("cached_tokens") if isinstance(details, dict) else None
    return next((_count(one) for one in (within, *map(usage.get, _CACHED)) if one is not None), 0)


def _surcharge(usage: dict[str, Any]) -> float:
    """Return what Anthropic charges for writing its cache, besides the price of the tokens themselves."""
    by_life = usage.get("cache_creation")
    for_hour = _count(by_life.get("ephemeral_1h_input_tokens")) if isinstance(by_life, dict) else 0
    return _WRITTEN * (_count(usage.get("cache_creation_input_tokens")) - for_hour) + _WRITTEN_FOR_HOUR * for_hour


def _count(value: Any) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 1 << 40 else 0


def chat_request(kind: ModelKind, request: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    """Convert a chat request in OpenAI's form to the path and body for a provider of this kind."""
    if kind is ModelKind.OPENAI:
        return "/v1/chat/completions", request
    said = [one for one in request.get("messages", ()) if isinstance(one, dict)]
    system = [str(one.get("content")) for one in said if one.get("role") == "system"]
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is not None:
        system.append(f"The answer is one JSON object of this schema, and nothing else: {encode_json(schema).decode()}")
    body = {name: request[name] for name in ("model", "temperature", "top_p") if request.get(name) is not None}
    body["max_tokens"] = request.get("max_tokens") or request.get("max_completion_tokens") or _MAX_TOKENS
    body["messages"] = [one for one in said if one.get("role") != "system"]
    return "/v1/messages", {**body, "system": "\n\n".join(system)} if system else body


def chat_response(kind: ModelKind, answer: dict[str, Json]) -> dict[str, Json]:
    """Convert a provider's answer to a request from `chat_request` into OpenAI's form."""
    if kind is ModelKind.OPENAI:
        return answer
    parts = answer.get("content")
    text = (
        "".join(str(one.get("text", "")) for one in parts if isinstance(one, dict)) if isinstance(parts, list) else ""
    )
    asked, answered, *_ = tokens_of(answer) or Tokens(0, 0)
    message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
    return {"object": "chat.completion", "model": answer.get("model"), "choices": [message], "usage": usage}


_LAST_EVENT: Final = re.compile(
    rb"^(?:data: ?\[DONE\]|event: ?(?:message_stop|response\.(?:completed|failed|incomplete)))\s*$", re.MULTILINE
)


class EventStream:
    """Splits an answer into server-sent events, to pass them on, and reads the token counts in them.

    Args:
      hides_usage: Whether to leave out the last event of a chat. This event contains only token counts, which the
        evaluator did not request.
    """

    def __init__(self, *, hides_usage: bool) -> None:
        self._hides_usage = hides_usage
        self._rest = bytearray()
        self.tokens: Tokens | None = None  # token counts of the answer, as far as they are known
        self.ended = False  # whether the last event has arrived; clients may then stop reading

    def feed(self, data: bytes) -> bytes:
        """Add bytes of the answer. Return the events that are complete now, to pass them on."""
        begin = max(0, len(self._rest) - 2)
        self._rest += data
        ends = self._rest.find(b"\n\n", begin) >= 0 or self._rest.find(b"\n\r\n", begin) >= 0
        if not ends and len(self._rest) <= _EVENT_BYTES:
            return b""
        arrived, self._rest = bytes(self._rest).replace(b"\r\n", b"\n"), bytearray()
        if not ends:
            return arrived
        whole, _, rest = arrived.rpartition(b"\n\n")
        self._rest += rest
        return b"".join(event + b"\n\n" for event in whole.split(b"\n\n") if self._passes(event))

    def rest(self) -> bytes:
        """Return the bytes after the last complete event."""
        return bytes(self._rest)

    def _passes(self, event: bytes) -> bool:
        self.ended = self.ended or _LAST_EVENT.search(event) is not None
        if b"usage" not in event:
            return True
        lines = [line[len(_SSE_DATA) :] for line in event.split(b"\n") if line.startswith(_SSE_DATA)]
        try:
            body = decode_json(b"".join(lines).strip())
        except InvalidJson:
            return True
        if (found := tokens_of(body)) is not None:
            # Anthropic sends both counts in the first event, and the answer's final count in the last event
            last = self.tokens or Tokens(0, 0)
            asked, answered, cached = map(max, found[:3], last[:3])
            self.tokens = Tokens(asked, answered, cached, max(found.surcharge, last.surcharge))
        return not (self._hides_usage and isinstance(body, dict) and body.get("choices") == [])

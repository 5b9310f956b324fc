"""Describes requests to a host as data, and decodes the responses. This module does no I/O."""

import hashlib
import json
import os
import random
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from ..types.errors import Busy, HostError, HostUnreachable, InvalidRequest, Problem
from ..types.evaluator import ROW_FIELDS, Evaluator, Json, Row
from ..types.json_values import InvalidJson, decode_json, encode_json, not_finite, require_finite

T = TypeVar("T")

DEFAULT_URL: Final = "http://127.0.0.1:8710"
_PROBLEMS: Final = 3  # maximum number of problems in an error's message
_CONNECT_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 10.0  # longest pause in seconds, even if Retry-After asks for more
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_EVALUATOR_FIELDS: Final = ("code", "language", "contract", "packages", "threshold", "settings", "limits", "policy")
_RARE_FIELDS: Final = ("python", "files", "path", "data", "models", "network", "secrets", "budget")
# a request leaves out these fields if they have these defaults
_DEFAULTS: Final = {name: getattr(Evaluator(""), name) for name in _RARE_FIELDS}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One HTTP request and the type of its response.

    Attributes:
      method: HTTP method.
      path: Path from the root of the host, with the query.
      answer: Type into which the JSON body of the response is decoded; `NoneType` ignores the body.
      body: JSON as bytes, or pieces that are streamed.
      headers: Headers in addition to the headers that every request has.
    """

    method: str
    path: str
    answer: type[T]
    body: bytes | AsyncGenerator[bytes, None] | None = None
    headers: tuple[tuple[str, str], ...] = ()


def decode(kind: type[T], data: bytes) -> T:
    """Decode JSON into a value of the given type.

    Raises:
      ValidationError: the value is not of that type.
    """
    decoded: T = _adapter(kind).validate_json(data)  # type: ignore[arg-type] # every type is hashable
    return decoded


@lru_cache(maxsize=64)  # cached, because building an adapter takes milliseconds
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def path_part(name: str) -> str:
    """Return a name quoted as one segment of a URL path."""
    return quote(name, safe="")


def query(**given: Any) -> str:
    """Return the arguments that are not None as `?name=value&…`; a list becomes one pair for each item."""
    named = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in given.items()
        if value is not None
    }
    encoded = urlencode(named, doseq=True)
    return f"?{encoded}" if encoded else ""


def evaluator_body(evaluator: Evaluator | str) -> dict[str, Any] | str:
    """Convert an evaluator to request JSON: an object, or the name of a stored evaluator."""
    return evaluator if isinstance(evaluator, str) else pasted_body(evaluator)


def evaluator_headers(evaluator: Evaluator | str) -> tuple[tuple[str, str], ...]:
    """Return the header with which a load balancer always sends an evaluator to the same host.

    Its value is a digest of the code, or the name of a stored evaluator.
    """
    text = evaluator if isinstance(evaluator, str) else evaluator.code
    return (("Evaluator-Digest", hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]),)


def given_cases(cases: Sequence[Mapping[str, Json]] | None) -> dict[str, Any]:
    return {} if cases is None else {"cases": cases}


def pasted_body(evaluator: Evaluator) -> dict[str, Any]:
    """Convert an evaluator that contains its code to request JSON."""
    given = {name: getattr(evaluator, name) for name in _DEFAULTS}
    more = {name: value for name, value in given.items() if value != _DEFAULTS[name]}
    whole = {**{name: getattr(evaluator, name) for name in _EVALUATOR_FIELDS}, **more}
    if evaluator.judge is None:
        return whole
    made = ("code", "language", "contract", "models")  # fields that the host generates from the judge's settings
    return {"judge": evaluator.judge, **{name: value for name, value in whole.items() if name not in made}}


def row_body(row: Row | Mapping[str, Json]) -> dict[str, Any]:
    """Convert a row to request JSON; the host checks the fields of a dictionary.

    Raises:
      InvalidRequest: the row is neither a `Row` nor a dictionary.
    """
    if isinstance(row, Mapping):
        return dict(row)
    if not isinstance(row, Row):
        like = 'Row({"question": "…"}, "the output") or {"inputs": {"question": "…"}, "outputs": "the output"}'
        raise InvalidRequest(f"a row is a Row or a dictionary, not a {type(row).__name__}; pass {like}")
    return {name: value for name in ROW_FIELDS if (value := getattr(row, name)) is not None}


def proof_body(
    rows: Iterable[Row | Mapping[str, Json]] | None,
    dataset: str | None,
    mapping: Mapping[str, str] | None,
    *,
    job: str | None,
) -> dict[str, Any]:
    """Return the request fields that contain or name the rows for a migration's proof."""
    return {
        "rows": [row_body(row) for row in rows or ()],
        "dataset": dataset,
        "mapping": dict(mapping or {}),
        "job": job,
    }


def encode(body: Mapping[str, Any]) -> bytes:
    """Return a request body encoded as JSON.

    Raises:
      InvalidRequest: the body cannot be written as JSON, for example because it has NaN.
    """
    try:
        require_finite(body)
        return encode_json(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"the arguments cannot be written as JSON: {error}; pass plain values") from error


def encode_line(record: Mapping[str, Json]) -> bytes:
    """Encode a data set's record as a line of JSON Lines. The host reads NaN as null, and notes this.

    Raises:
      InvalidRequest: the record cannot be written as JSON.
    """
    return (encode(record) if not_finite(record) is None else json.dumps(record).encode()) + b"\n"


def read_answer(call: Call[T], response: httpx.Response) -> T:
    """Return the host's response, decoded to the type in the call.

    Raises:
      HostUnreachable: the response does not come from an Evaluator Host.
      HostError: the host refused the request. The error has the same class as on the host.
    """
    if not response.is_success:
        raise error_of(response)
    if call.answer is NoneType or response.status_code == 204:
        return None  # type: ignore[return-value] # T is None, or a union that includes None
    try:
        return decode(call.answer, response.content)
    except ValidationError as error:
        raise HostUnreachable(
            f"{response.url} does not answer as an Evaluator Host does: {error}; check the address, and whether client "
            "and host have the same version"
        ) from error


def error_of(response: httpx.Response) -> HostError:
    """Return the exception that matches the host's problem+json error response."""
    try:
        body = decode_json(response.content)
    except InvalidJson:
        body = None
    if not isinstance(body, dict) or "code" not in body:
        return HostUnreachable(
            f"{response.url} answered {response.status_code}, but not as an Evaluator Host does; check the address"
        )
    detail = str(body.get("detail"))
    kind = _error_classes().get(body["code"], HostError)
    if issubclass(kind, Busy):
        return kind(detail, retry_after_s=_seconds(response.headers.get("Retry-After")))
    faults = [fault for fault in body.get("errors") or () if isinstance(fault, dict)]
    error = kind(
        detail, problems=tuple(Problem(str(f.get("field")), str(f.get("message")), f.get("hint")) for f in faults)
    )
    error.code, error.status = str(body["code"]), response.status_code
    error.args = (_with_problems(error),)
    return error


def _with_problems(error: HostError) -> str:
    """Return the message of an error with its first problems and their hints."""
    lines = [error.detail]
    for one in error.problems[:_PROBLEMS]:
        parts = [part for part in (one.message, one.hint) if part and part not in error.detail]
        lines += [f"  {one.field or 'body'}: {'; '.join(parts)}"] if parts else []
    more = len(error.problems) - _PROBLEMS
    return "\n".join([*lines, f"  and {more} more, in `problems`"] if more > 0 else lines)


@lru_cache(maxsize=1)
def _error_classes() -> dict[str, type[HostError]]:
    found, left = dict[str, type[HostError]](), [HostError]
    while left:
        kind = left.pop()
        # if several classes share a code, keep the base class: a subclass may take other arguments
        found.setdefault(kind.code, kind)
        left.extend(kind.__subclasses__())
    return found


def _seconds(header: str | None) -> float:
    try:
        return max(0.0, float(header or 1))
    except ValueError:
        return 1.0


def pause_s(busy: Busy) -> float:
    """Return how many seconds to wait before a retry: about as long as the host requests.

    The pause is varied, so that clients do not all return at the same moment.
    """
    return min(busy.retry_after_s, _LONGEST_PAUSE_S) * random.uniform(0.8, 1.2)  # noqa: S311 - no secret


def host_url(given: str) -> str:
    """Return a host's URL, with `http://` before it if the given URL has no scheme.

    Raises:
      InvalidRequest: the URL is not the address of a host.
    """
    url = (given if "://" in given else f"http://{given}").rstrip("/")
    try:
        parts = urlsplit(url)
        name, path = parts.hostname, parts.path
    except ValueError:
        parts, name, path = urlsplit(""), None, ""
    if parts.scheme not in ("http", "https") or not name:
        raise InvalidRequest(f"{given[:200]!r} is not the address of a host; use one such as {DEFAULT_URL}")
    if path.rpartition("/")[2] == "v1":
        raise InvalidRequest(f"{given[:200]} contains a path of the API; leave out /v1: {url.removesuffix('/v1')}")
    return url


def default_url() -> str:
    """Return the host's URL from the environment variables, or else the URL of a host on this machine."""
    port = os.environ.get("EVALUATOR_HOST_PORT", "")
    here = f"http://127.0.0.1:{port}" if port.isdecimal() and int(port) else DEFAULT_URL
    return os.environ.get("EVALUATOR_HOST_URL") or here


def http_options(url: str | None, *, key: str | None, timeout_s: float | None) -> dict[str, Any]:
    """Return the arguments of an httpx client for the host at a URL.

    Without a URL, the arguments are for the host in the environment variables, with the key from there.

    Raises:
      InvalidRequest: the URL cannot be a host's URL, or the key is malformed. The message does not repeat the key.
    """
    if url is None:
        url, key = default_url(), os.environ.get("EVALUATOR_HOST_KEY") or None if key is None else key
    url = host_url(url)
    headers = {"Content-Type": "application/json"}
    if key is not None:
        if not key.strip() or not key.strip().isascii() or not key.strip().isprintable() or " " in key.strip():
            raise InvalidRequest("this is not the key of a host: a key is one word that begins with eh_; copy it again")
        headers["Authorization"] = f"Bearer {key.strip()}"
    return {
        "base_url": url,
        "timeout": httpx.Timeout(timeout_s, connect=_CONNECT_S),
        "headers": headers,
        # connect to loopback addresses directly, because a proxy cannot reach this machine's
        "trust_env": urlsplit(url).hostname not in _LOOPBACK,
    }


def unreachable(error: httpx.HTTPError, url: httpx.URL) -> HostUnreachable:
    """Return an exception for a failed HTTP exchange; the message tells the caller what to do."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        other = "give the address of a running host: `--url`, EVALUATOR_HOST_URL or `evaluator-host login URL`"
        return HostUnreachable(f"nothing answers at {url}; start a host with `evaluator-host serve`, or {other}")
    if isinstance(error, httpx.TimeoutException):
        return HostUnreachable(f"{url} took longer than the client waits; give the client a larger timeout_s")
    return HostUnreachable(f"the connection to {url} failed: {str(error) or type(error).__name__}")

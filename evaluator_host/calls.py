"""What a client asks of a host and how it reads the answer, as data and pure functions: no socket, no waiting."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from evaluator_host.model.errors import Busy, HostError, HostUnreachable, InvalidRequest, Problem
from evaluator_host.model.evaluator import Contract, Evaluator, Isolation, Row
from evaluator_host.model.json_values import InvalidJson, decode_json, encode_json
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.schemas.evaluation import Batch, CheckReport, HostInfo
from evaluator_host.schemas.migration import Migration

T = TypeVar("T")

_CONNECT_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 10.0  # whatever Retry-After says
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and how to read its answer."""

    method: str
    path: str
    body: bytes | None
    read: Callable[[bytes], T]
    headers: tuple[tuple[str, str], ...] = ()


def reads(kind: type[T]) -> Callable[[bytes], T]:
    """Return the decoder of an answer; built when first needed, since building one takes milliseconds."""

    @lru_cache(maxsize=1)
    def adapter() -> TypeAdapter[T]:
        return TypeAdapter(kind)

    return lambda data: adapter().validate_json(data)


def nothing(_: bytes) -> None:
    """Read an answer without a body."""


_read_result: Final = reads(EvaluationResult)
_read_batch: Final = reads(Batch)
_read_check: Final = reads(CheckReport)
_read_migration: Final = reads(Migration)
INFO: Final = Call("GET", "/v1/info", None, reads(HostInfo))
READY: Final = Call("GET", "/readyz", None, nothing)


def evaluate(evaluator: Evaluator | str, row: Row) -> Call[EvaluationResult]:
    """Return the call that evaluates one row."""
    body = {"evaluator": evaluator_body(evaluator), **_row_body(row)}
    return Call("POST", "/v1/evaluate", encode(body), _read_result)


def evaluate_batch(evaluator: Evaluator | str, rows: Iterable[Row], isolation: Isolation) -> Call[Batch]:
    """Return the call that evaluates rows."""
    body = {
        "evaluator": evaluator_body(evaluator),
        "rows": [_row_body(row) for row in rows],
        "isolation": isolation,
    }
    return Call("POST", "/v1/evaluate/batch", encode(body), _read_batch)


def check(evaluator: Evaluator | str) -> Call[CheckReport]:
    """Return the call that loads an evaluator without running a row."""
    return Call("POST", "/v1/check", encode({"evaluator": evaluator_body(evaluator)}), _read_check)


def migrate(
    evaluator: Evaluator,
    rows: Iterable[Row] | None,
    dataset: str | None,
    *,
    job: str | None,
    mapping: Mapping[str, str] | None,
    to: Contract,
) -> Call[Migration]:
    """Return the call that rewrites a legacy evaluator."""
    names = ("code", "language", "contract", "packages", "threshold", "settings", "limits", "policy")
    body: dict[str, Any] = {"to": to, **{name: getattr(evaluator, name) for name in names}}
    return Call("POST", "/v1/migrate", encode(body | proof_body(rows, dataset, mapping, job=job)), _read_migration)


def proof_body(
    rows: Iterable[Row] | None, dataset: str | None, mapping: Mapping[str, str] | None, *, job: str | None
) -> dict[str, Any]:
    """Return the rows to prove a migration on as the API takes them."""
    posted = [_row_body(row) for row in rows or ()]
    return {"rows": posted, "dataset": dataset, "mapping": dict(mapping or {}), "job": job}


def evaluator_body(evaluator: Evaluator | str) -> dict[str, Any] | str:
    """Return an evaluator as the API takes it: pasted, or the name of a stored one."""
    if isinstance(evaluator, str):
        return evaluator
    names = ("code", "language", "contract", "packages", "threshold", "settings", "limits", "policy")
    python = {} if evaluator.python is None else {"python": evaluator.python}
    return {**{name: getattr(evaluator, name) for name in names}, **python}


def _row_body(row: Row) -> dict[str, Any]:
    names = ("inputs", "outputs", "trace", "variables", "criteria")
    return {name: getattr(row, name) for name in names}


def encode(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON.

    Raises:
      InvalidRequest: it has no JSON form.
    """
    try:
        return encode_json(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"the arguments have no JSON form: {error}") from error


def answer(call: Call[T], response: httpx.Response) -> T:
    """Return what the host answered.

    Raises:
      HostError: what the host raised.
    """
    if response.is_success:
        try:
            return call.read(response.content)
        except ValidationError as error:
            raise HostUnreachable(f"{response.url} does not answer as an Evaluator Host: {error}") from error
    raise _error(response)


def _error(response: httpx.Response) -> HostError:
    """Return the exception that the host raised, from its problem+json."""
    try:
        body = decode_json(response.content)
    except InvalidJson:
        body = None
    if not isinstance(body, dict) or "code" not in body:
        return HostUnreachable(f"{response.url} answered {response.status_code}, and not as an Evaluator Host does")
    detail = str(body.get("detail"))
    kind = _error_classes().get(body["code"], HostError)
    if issubclass(kind, Busy):
        return kind(detail, retry_after_s=_seconds(response.headers.get("Retry-After")))
    faults = [fault for fault in body.get("errors") or () if isinstance(fault, dict)]
    error = kind(
        detail, problems=tuple(Problem(str(f.get("field")), str(f.get("message")), f.get("hint")) for f in faults)
    )
    error.code, error.status = str(body["code"]), response.status_code
    return error


@lru_cache(maxsize=1)
def _error_classes() -> dict[str, type[HostError]]:
    found, left = {}, [HostError]
    while left:
        kind = left.pop()
        found[kind.code] = kind
        left.extend(kind.__subclasses__())
    return found


def _seconds(header: str | None) -> float:
    try:
        return max(0.0, float(header or 1))
    except ValueError:
        return 1.0


def pause_s(busy: Busy) -> float:
    """Return how long to wait before the next try: as the host asks, spread so that clients do not return at once."""
    return min(busy.retry_after_s, _LONGEST_PAUSE_S) * random.uniform(0.8, 1.2)  # noqa: S311 - no secret


def http_options(url: str, *, key: str | None, timeout_s: float | None) -> dict[str, Any]:
    """Return the arguments of an httpx client for the host at a URL.

    Raises:
      InvalidRequest: the key cannot be one. The message does not repeat it.
    """
    headers = {"Content-Type": "application/json"}
    if key is not None:
        if not key.strip().isascii() or not key.strip().isprintable() or " " in key.strip():
            raise InvalidRequest("the key cannot be one: keys are a single word that begins with eh_")
        headers["Authorization"] = f"Bearer {key.strip()}"
    return {
        "base_url": url,
        "timeout": httpx.Timeout(timeout_s, connect=_CONNECT_S),
        "headers": headers,
        "trust_env": urlsplit(url).hostname not in _LOOPBACK,  # a proxy cannot reach this machine's loopback
    }


def unreachable(error: httpx.HTTPError, url: httpx.URL) -> HostUnreachable:
    """Return a failed exchange as what a caller can act on."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return HostUnreachable(f"nothing answers at {url}; start a host with `evaluator-host serve`, or give its URL")
    if isinstance(error, httpx.TimeoutException):
        return HostUnreachable(f"{url} took longer than the client waits; give the client a greater timeout_s")
    return HostUnreachable(f"the connection to {url} failed: {str(error) or type(error).__name__}")

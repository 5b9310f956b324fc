"""Reads the model requests of a row from its returned value.

The evaluator's code made the requests, so every field is checked.
"""

from dataclasses import dataclass
from typing import Any, Final

from evaluator_host.types.evaluator import Json
from evaluator_host.types.outcome import Outcome, Returned

AT_ONCE: Final = 16  # maximum number of model requests that one row may send at once
_NAME_CHARS: Final = 80
_URL_CHARS: Final = 2000
_RETRIES: Final = 5
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to a model, made by an evaluator.

    Attributes:
      name: Key of the answer in the row, when the evaluator is called for this row again.
      url: URL of the endpoint, with or without `/chat/completions`; `ref://workspace/name` means a registered model.
      model: Name of the model at the endpoint.
      secret: Name of the secret that holds the API key; None if the request needs no key.
      request: Body of the request: a chat if it has `messages`, else a completion.
      retries: How many times to try again after a failure.
      timeout_s: Seconds for one answer.
    """

    name: str
    url: str
    model: str
    secret: str | None
    request: dict[str, Json]
    retries: int
    timeout_s: float


def asks_of(outcome: Outcome) -> tuple[Ask, ...]:
    """Return the model requests that an evaluator made for a row; empty if the evaluator has finished the row."""
    if not isinstance(outcome, Returned) or not isinstance(outcome.value, dict):
        return ()
    raw = outcome.value.get("asks")
    if set(outcome.value) != {"asks"} or not isinstance(raw, list) or not 0 < len(raw) <= AT_ONCE:
        return ()
    asks = [_ask(one) for one in raw]
    return tuple(ask for ask in asks if ask is not None) if all(asks) else ()


def _ask(raw: Any) -> Ask | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("request"), dict):
        return None
    texts = [raw.get(name) for name in ("id", "url", "model")]
    if not all(isinstance(text, str) and 0 < len(text) <= _URL_CHARS for text in texts):
        return None
    secret, retries, timeout_s = raw.get("secret"), raw.get("retries"), raw.get("timeout_s")
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        timeout_s = _TIMEOUT_S
    if not (secret is None or (isinstance(secret, str) and len(secret) <= _NAME_CHARS)):
        return None
    return Ask(
        name=raw["id"][:_NAME_CHARS],
        url=raw["url"],
        model=raw["model"],
        secret=secret,
        request=raw["request"],
        retries=max(0, min(retries, _RETRIES)) if type(retries) is int else 0,
        timeout_s=max(0.1, min(timeout_s, _TIMEOUT_S)),
    )

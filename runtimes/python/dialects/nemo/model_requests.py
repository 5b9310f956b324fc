"""Lets the host send a metric's model requests, since a sandbox has no network.

A request stops the row and is returned as the row's value. The host runs the row again, which repeats the request and
gets the answer.
"""

from __future__ import annotations

import sys

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INFERENCE = "nemo_evaluator_sdk.inference"
_KEY_OF_THE_HOST = "held by the host"
_REFERENCE = "ref://"
_TOO_MANY_REQUESTS = 429
_modules = sys.modules


def completed(response: Any, *, chat: bool | None = None) -> Any:
    """Complete a model's response as OpenAI's client library does: missing fields become None."""
    from evaluator_runner.dialects.nemo.modules.nemo_evaluator_sdk import openai_types

    return openai_types.completed(response, chat=chat)


class Asked(BaseException):
    """Stops a row until the host has answered its request. As a BaseException, it passes through `except Exception`."""


class Conversation:
    """The model requests of the current row.

    Attributes:
      open: Requests without an answer, in the host's format.
    """

    def __init__(self) -> None:
        self.open: list[dict[str, Any]] = []
        self._answers: dict[str, Any] | None = None
        self._times: dict[str, int] = {}

    def begin(self, answers: dict[str, Any]) -> None:
        """Start or restart a row; `answers` are the models' answers to its requests so far."""
        self.open = []
        self._answers = answers
        self._times = {}

    def lead(self, metric: Any) -> bool:
        """Make a metric call models through `ask`. Return whether the metric accepts a function that calls models."""
        inference = _modules.get(_INFERENCE)
        if hasattr(inference, "in_place"):
            inference.in_place = self.ask  # type: ignore[union-attr]
        if not callable(getattr(metric, "set_inference_fn", None)):
            return False
        metric.set_inference_fn(self.ask)
        return True

    async def ask(self, model: Any, request: dict[str, Any], max_retries: int | None = None, **options: Any) -> Any:
        """Return the model's answer to a request.

        Raises:
          Asked: the host has not sent this request yet.
          RuntimeError: the model did not answer.
        """
        if self._answers is None:
            raise RuntimeError("the code called a model while it was loading; call models only while a row is scored")
        secret = getattr(model, "api_key_secret", None)
        asked = {
            "url": model.url,
            "model": model.name,
            "secret": getattr(secret, "root", None),
            "request": request,
            "retries": max_retries or 0,
            "timeout_s": options.get("timeout"),
        }
        name = self._name(asked)
        if name not in self._answers:
            self.open.append({"id": name, **asked})
            raise Asked
        answer = self._answers[name]
        if "error" in answer:
            raise _refused(answer["error"], answer.get("status"))
        return completed(answer["response"], chat="messages" in request)

    def _name(self, asked: dict[str, Any]) -> str:
        """Return a name for a request, made from its content and from how often the row has made it so far."""
        import hashlib
        import json

        text = json.dumps(asked, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
        self._times[digest] = self._times.get(digest, 0) + 1
        return f"{digest}-{self._times[digest]}"


class Resolver:
    """Resolves models and keys to placeholders. The real models and keys stay on the host, outside the sandbox.

    Args:
      sdk: The SDK's package. It has the class `Model`, and reads secrets from environment variables, which code may
        set.
    """

    def __init__(self, sdk: Any) -> None:
        self._sdk = sdk
        self._own = sdk.LocalSecretResolver()

    async def resolve_secret(self, secret_ref: Any) -> str:
        """Return the key that the code has set, or a placeholder for the host's key."""
        return await self._own.resolve_secret(secret_ref) or _KEY_OF_THE_HOST

    async def resolve_model(self, model_ref: Any) -> Any:
        """Return a placeholder for a model."""
        return self._sdk.Model(url=_REFERENCE + model_ref.root, name=model_ref.root, format="openai")


def _refused(message: str, status: int | None) -> Exception:
    """Return the exception to raise: the SDK's own if the model refused the request, otherwise a `RuntimeError`."""
    kind = getattr(_modules.get(_INFERENCE), "ClientInferenceError", None)
    if kind is None or status is None or status == _TOO_MANY_REQUESTS or not 400 <= status < 500:
        return RuntimeError(message)
    error: Exception = kind.__new__(kind, message)
    error.args = (message,)
    error.status_code = status  # type: ignore[attr-defined]
    return error

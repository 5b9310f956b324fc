"""Registered models: what an operator configures or a caller registers, and what the API shows of it."""

from dataclasses import dataclass
from datetime import datetime

from evaluator_host.model.evaluator import ModelKind


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model that evaluators may be granted.

    Attributes:
      name: By which evaluators are granted it: `judge-small`.
      url: Base URL of the API: `https://api.openai.com/v1`, `https://api.anthropic.com`.
      kind: The API of the provider: `openai` (and compatible ones) or `anthropic`.
      model: What the provider calls it.
      secret: Name of the workspace's secret that is its key; None for no key, or for the operator's own.
      input_price: Price of a million tokens of requests; None when it is not known.
      output_price: Price of a million tokens of answers; None when it is not known.
      timeout_s: Seconds for one answer.
      retries: Tries after the first one.
      operator: Whether the operator configured it (EVALUATOR_HOST_MODELS).
      created_at: None for the operator's.
    """

    name: str
    url: str
    kind: ModelKind = ModelKind.OPENAI
    model: str = ""
    secret: str | None = None
    input_price: float | None = None
    output_price: float | None = None
    timeout_s: float = 60.0
    retries: int = 2
    operator: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ModelTest:
    """The outcome of one short request to a model.

    Attributes:
      ok: Whether it answered.
      output: Beginning of its answer; None when it gave none.
      error: Why not; None when it answered.
      latency_ms: Milliseconds of the request.
      input_tokens: As the provider counts them.
      output_tokens: As the provider counts them.
      cost: By the model's prices; None without prices.
    """

    ok: bool
    output: str | None
    error: str | None
    latency_ms: float
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class DayUsage:
    """Use of one model by a workspace on one day (UTC).

    Attributes:
      day: `2026-01-31`.
      model: Name of the registered model.
      requests: Requests to its provider.
      replayed: Requests that recorded answers answered.
      input_tokens: Tokens of the requests to the provider.
      output_tokens: Tokens of its answers.
      cost: By the model's prices; requests without a price count as 0.
    """

    day: str
    model: str
    requests: int
    replayed: int
    input_tokens: int
    output_tokens: int
    cost: float


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """The recorded answers of a workspace.

    Attributes:
      answers: How many there are.
      stored_bytes: What they take; EVALUATOR_HOST_MODEL_ANSWERS_MB limits it.
    """

    answers: int
    stored_bytes: int

"""Registered models, as an operator configures or a caller registers them, and as the API shows them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from .doc import Doc
from .evaluator import ModelKind


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model that evaluators may be granted."""

    name: Annotated[str, Doc("Name by which evaluators are granted the model: `judge-small`.")]
    url: Annotated[str, Doc("Base URL of the API: `https://api.openai.com/v1`, `https://api.anthropic.com`.")]
    kind: Annotated[ModelKind, Doc("The API of the provider: `openai` (and compatible ones) or `anthropic`.")] = (
        ModelKind.OPENAI
    )
    model: Annotated[str, Doc("Name of the model at the provider.")] = ""
    secret: Annotated[
        str | None,
        Doc("Name of the workspace's secret with the model's key; None for no key, or for the operator's key."),
    ] = None
    input_price: Annotated[float | None, Doc("Price of a million tokens of requests; None when it is not known.")] = (
        None
    )
    output_price: Annotated[float | None, Doc("Price of a million tokens of answers; None when it is not known.")] = (
        None
    )
    timeout_s: Annotated[float, Doc("Seconds to wait for one answer.")] = 60.0
    retries: Annotated[int, Doc("Retries after a failed request.")] = 2
    cached_price: Annotated[
        float | None,
        Doc("Price of a million tokens of requests that the provider read from its cache; None for `input_price`."),
    ] = None
    operator: Annotated[bool, Doc("Whether the operator configured the model (EVALUATOR_HOST_MODELS).")] = False
    created_at: Annotated[datetime | None, Doc("When the model was registered; None for a model of the operator.")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class ModelHosts:
    """The hosts at which evaluators may call models."""

    hosts: Annotated[list[str], Doc("`api.openai.com` or `api.openai.com:443`.")]
    may_allow: Annotated[
        bool,
        Doc(
            "Whether `allow_host` works. It works only on a host without keys, and only if the operator has not "
            "configured a list of hosts."
        ),
    ]


@dataclass(frozen=True, slots=True)
class ModelTest:
    """The outcome of one short request to a model."""

    ok: Annotated[bool, Doc("Whether the model answered.")]
    output: Annotated[str | None, Doc("Beginning of the model's answer; None when there was none.")]
    error: Annotated[str | None, Doc("Why the model did not answer; None if it answered.")]
    latency_ms: Annotated[float, Doc("Duration of the request in milliseconds.")]
    input_tokens: Annotated[int, Doc("Number of tokens in the request, as the provider counts them.")] = 0
    output_tokens: Annotated[int, Doc("Number of tokens in the answer, as the provider counts them.")] = 0
    cost: Annotated[float | None, Doc("Cost at the model's prices; None if the model has no prices.")] = None


@dataclass(frozen=True, slots=True)
class DayUsage:
    """Use of one model by a workspace on one day (UTC)."""

    day: Annotated[str, Doc("`2026-01-31`.")]
    model: Annotated[str, Doc("Name of the registered model.")]
    requests: Annotated[int, Doc("Number of requests to the model's provider.")]
    replayed: Annotated[int, Doc("Number of requests that recorded answers served.")]
    input_tokens: Annotated[
        int, Doc("Number of tokens of the requests to the provider; estimated where the provider reports none.")
    ]
    output_tokens: Annotated[int, Doc("Number of tokens of the provider's answers, estimated in the same way.")]
    cost: Annotated[float, Doc("Cost at the prices that the model had, without the `unpriced` requests.")]
    unpriced: Annotated[int, Doc("Number of requests with an unknown cost, because the model had no price.")] = 0


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """The recorded answers of a workspace."""

    answers: Annotated[int, Doc("Number of recorded answers.")]
    stored_bytes: Annotated[int, Doc("Size of the answers in bytes; EVALUATOR_HOST_MODEL_ANSWERS_MB limits it.")]

"""Calls models for evaluators that use a judge.

The callers are untrusted code, which chooses address, secret and messages. Therefore the host calls only models that
the operator has configured, and models on hosts that the operator lists, and it uses only the two paths of the
protocol. The key stays in the host, and is masked in answers.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.model_requests import Ask
from evaluator_host.engine.service.model_grants import ModelTerms, RequestUse
from evaluator_host.engine.system.lookups import TENANT_NAMES, Lookups
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.models.endpoint import Endpoint
from evaluator_host.platform.models.gateway.days import DAY_SPENT
from evaluator_host.platform.models.gateway.exchange import CHARACTERS_A_TOKEN
from evaluator_host.platform.models.gateway.gateway import Gateway, Grant
from evaluator_host.platform.models.gateway.grants import GrantedModel
from evaluator_host.platform.models.gateway.protocols import Tokens, tokens_of
from evaluator_host.platform.models.origin_clients import OriginClients
from evaluator_host.platform.plugins import plugins
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Evaluator, Json, ModelKind
from evaluator_host.types.jobs import Target
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.models import RegisteredModel
from evaluator_host.types.outcome import ErrorCode, EvaluationError
from evaluator_host.types.redaction import SHORTEST, Redactor

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

_AT_ONCE: Final = 32  # maximum number of requests at a time, over all processes
_NAME_CHARS: Final = 200
_NAME: Final = r"([A-Za-z0-9_.\-]{1,255})"
# a reference to a model, or the address that NVIDIA's client makes from such a reference
_REFERENCE: Final = re.compile(
    rf"ref://{_NAME}/{_NAME}$|https?://[^/]+/apis/inference-gateway/v2/workspaces/{_NAME}/model/{_NAME}/-(?:/v1)?/?"
)
_SUFFIXES: Final = ("/chat/completions", "/completions")
_NOT_SENT: Final = frozenset({"extra_body", "extra_headers", "extra_query", "timeout", "stream", "stream_options"})


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """The place to call a model: its address, its name there, and the workspace secret that contains the key."""

    base_url: str
    model: str
    secret: str | None = None


class Judges:
    """Calls models on behalf of evaluators: for requests that a row returns to the host, and for granted models.

    Args:
      settings: Configured models, allowed hosts, proxy and certificates.
      store: Secrets, and the models that callers registered; None on the command line.
      names: Looks up the addresses of other hosts that evaluators were granted.
    """

    def __init__(self, settings: Settings, store: "Store | None", *, names: Lookups = TENANT_NAMES) -> None:
        self._settings = settings
        self._store = store
        self._clients = OriginClients(settings, at_once=_AT_ONCE)
        self._turns = Turns(-(-_AT_ONCE // settings.workers))
        self.gateway = Gateway(settings, store, names=names)

    async def grant(self, evaluator: Evaluator, workspace: str, terms: ModelTerms, *, redactor: Redactor) -> Grant:
        """Return a grant of the models and hosts that an evaluator may use.

        Raises the same errors as `Gateway.grant`.
        """
        return await self.gateway.grant(evaluator, workspace, terms, redactor=redactor)

    async def reveal(self, evaluator: Evaluator, workspace: str) -> dict[str, str]:
        """Return an evaluator's secrets, keyed by variable.

        Raise `InvalidRequest` if the code may not see one of them.
        """
        allowed = await self.gateway.directory.operator.code_secrets(workspace)
        found = {}
        for variable, secret in evaluator.secrets.items():
            if not allowed & {secret, "*"}:
                hint = f"the operator can allow it with EVALUATOR_HOST_CODE_SECRETS='[\"{secret}\"]'"
                raise InvalidRequest.of("evaluator.secrets", f"code may not see the secret {secret!r}", hint)
            found[variable] = str(await self._key(secret, workspace))
            if len(found[variable]) < SHORTEST:
                hint = f"set a secret of at least {SHORTEST} characters"
                raise InvalidRequest.of("evaluator.secrets", f"the secret {secret!r} is too short to be masked", hint)
        return found

    async def answer(self, ask: Ask, workspace: str) -> dict[str, Json] | EvaluationError:
        """Return `{"response": …}`, or `{"error", "status"}` when the model does not answer.

        If the workspace has used up its budget of the day, return an `EvaluationError`; the row then fails.

        Raises:
          InvalidRequest: evaluators may not call this model.
          NotFound: there is no such secret.
        """
        model = await self._model(ask, workspace)
        asked = model.registered
        if (why := await self.gateway.days.take(workspace, priced=model.cost(0, 0) is not None)) is not None:
            return EvaluationError(ErrorCode.BUDGET_EXCEEDED, why, hint=DAY_SPENT)
        used, target = RequestUse(), Target(asked.url, asked.model, timeout_s=asked.timeout_s, retries=asked.retries)
        try:
            async with self._turns.turn(workspace), self._clients.lend(asked.url) as client:
                answer = await Endpoint(target, model.key, client).complete(_sent(ask.request))
            if answer.error is not None:
                return {"error": answer.error, "status": answer.log["attempts"][-1]["status"]}
            used = await _used(model, ask.request, answer.log["response"])
        finally:
            self.gateway.days.add(workspace, asked.name, used)
        return {"response": answer.log["response"]}

    async def aclose(self) -> None:
        """Close the connections."""
        await self.gateway.aclose()
        await self._clients.aclose()

    async def _model(self, ask: Ask, workspace: str) -> GrantedModel:
        """Return the model to call, with its key: a registered model, or else the model at the given address."""
        reference = _REFERENCE.match(ask.url)
        if reference is None:
            return await self._at(ModelPlace(ask.url, ask.model, ask.secret), ask.model, ask, workspace)
        namespace, name = reference[1] or reference[3], reference[2] or reference[4]
        whole = f"{namespace}/{name}"
        if whole in await self.gateway.directory.operator.models(workspace):
            return _for_judge(await self.gateway.directory.find(workspace, whole), ask)
        if self._store is not None:
            for find_model in [one.find_model.load() for one in plugins().values() if one.find_model is not None]:
                if (found := await find_model(self._store.database, workspace, namespace, name)) is not None:
                    return await self._at(found, whole, ask, workspace)
        message = f"the host does not know the address of the model {whole}"[:120]
        hint = "name it in EVALUATOR_HOST_MODELS, add it to the workspace's models, or give a Model with its url"
        raise InvalidRequest.of("model", message, hint)

    async def _at(self, place: ModelPlace, name: str, ask: Ask, workspace: str) -> GrantedModel:
        """Return the model at an address that the caller gives and that the operator allows."""
        url = _base_url(place.base_url)
        await self.gateway.directory.hosts.require(url, field="model")
        known = RegisteredModel(
            name[:_NAME_CHARS], url, model=place.model, timeout_s=ask.timeout_s, retries=ask.retries
        )
        return GrantedModel(known, await self._key(place.secret, workspace))

    async def _key(self, secret: str | None, workspace: str) -> str | None:
        if secret is None:
            return None
        name = secret.rpartition("/")[2]
        if self._store is None:
            raise NotFound(f"{name} is a secret, and only a running host stores secrets; give its URL with --url")
        return await self._store.secrets.reveal(workspace, name)


@asynccontextmanager
async def open_judges(
    settings: Settings, store: "Store | None", *, names: Lookups = TENANT_NAMES
) -> AsyncIterator[Judges]:
    """Yield a `Judges`, which calls models for evaluators, and close its connections at the end of the block."""
    async with aclosing(Judges(settings, store, names=names)) as judges:
        yield judges


def _for_judge(model: GrantedModel, ask: Ask) -> GrantedModel:
    """Return an operator's model for a judge. The judge may set a shorter time limit and fewer retries."""
    known = model.registered
    if known.kind is not ModelKind.OPENAI:
        hint = "choose a model with an API of kind openai, or write code that calls this model through `models`"
        raise InvalidRequest.of(
            "model", f"{known.name} has an API of kind {known.kind}, but a judge needs one of kind openai", hint
        )
    timeout_s, retries = min(known.timeout_s, ask.timeout_s), min(known.retries, ask.retries)
    return replace(model, registered=replace(known, url=_base_url(known.url), timeout_s=timeout_s, retries=retries))


async def _used(model: GrantedModel, request: Json, response: Json) -> RequestUse:
    counted = tokens_of(response)
    used = counted if counted is not None else Tokens(*await asyncio.to_thread(_estimated, request, response))
    return RequestUse(*used[:2], model.cost(*used), estimated=counted is None)


def _estimated(request: Json, response: Json) -> tuple[int, int]:
    return len(encode_json(request)) // CHARACTERS_A_TOKEN, len(encode_json(response)) // CHARACTERS_A_TOKEN


def _base_url(url: str) -> str:
    """Return an address without the path of an endpoint, such as `/chat/completions`, at its end."""
    base = url.rstrip("/")
    for suffix in _SUFFIXES:
        base = base.removesuffix(suffix)
    return base


def _sent(request: dict[str, Json]) -> dict[str, Json]:
    """Return the body to send: without options of OpenAI's client library, and with the fields of `extra_body`."""
    extra = request.get("extra_body")
    merged = {**request, **extra} if isinstance(extra, dict) else request
    return {name: value for name, value in merged.items() if name not in _NOT_SENT}

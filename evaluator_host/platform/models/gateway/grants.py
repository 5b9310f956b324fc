"""Looks up the models that evaluators were granted."""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from evaluator_host.engine.config.settings import ModelEndpoint, Settings, revealed
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.platform.models.gateway.judge_hosts import JudgeHosts
from evaluator_host.platform.models.gateway.operator_grants import OperatorGrants
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import ModelKind
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.models import RegisteredModel

if TYPE_CHECKING:
    from evaluator_host.platform.store.objects import StoredObject
    from evaluator_host.platform.store.store import Store

ANY: Final = "*"
_MOST: Final = 32  # maximum number of models granted to one evaluator
_REGISTERED: Final = 1000  # maximum number of models that one workspace may register
_KIND: Final = "registered model"  # kind of the objects that store registered models
_MODEL: Final = Adapter(RegisteredModel)


@dataclass(frozen=True, slots=True)
class GrantedModel:
    """A model that an evaluator may call, and the API key for it."""

    registered: RegisteredModel
    key: str | None = field(repr=False)

    @property
    def name(self) -> str:
        """Return the name under which the model is registered."""
        return self.registered.name

    def cost(
        self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, surcharge: float = 0.0
    ) -> float | None:
        """Return the cost of these tokens in the currency of the model's prices. None if the model has no price.

        `cached_tokens` of the `input_tokens` were read from the provider's cache. `surcharge` is a number of tokens
        that the provider charges in addition to the `input_tokens`.
        """
        model = self.registered
        if model.input_price is None or model.output_price is None:
            return None
        cached_price = model.input_price if model.cached_price is None else model.cached_price
        asked = (input_tokens - cached_tokens + surcharge) * model.input_price + cached_tokens * cached_price
        return (asked + output_tokens * model.output_price) / 1e6


class ModelDirectory:
    """The registered models of the operator and of workspaces.

    `store` contains the models and secrets of workspaces. On the command line, `store` is None.
    """

    def __init__(self, settings: Settings, store: "Store | None") -> None:
        self.operator = OperatorGrants(settings, store.workspaces if store is not None else None)
        self.hosts = JudgeHosts(settings, store)
        self._store = store

    async def add(self, workspace: str, model: RegisteredModel) -> RegisteredModel:
        """Register a model of a workspace, and return it.

        Raises:
          InvalidRequest: name or URL is not valid, or the operator does not allow the host.
          NameTaken: there is a model with that name.
          NotFound: there is no such secret.
          InUse: the workspace has 1,000 models.
        """
        await self.require_addable(workspace, model)
        objects = self._kept().objects
        return _stored(await objects.add_object(_KIND, workspace, model.name, _content(model), most=_REGISTERED))

    async def require_addable(self, workspace: str, model: RegisteredModel) -> None:
        """Check a model before it is registered. Raises InvalidRequest and NotFound for the same reasons as `add`."""
        if model.name in await self.operator.models(workspace):
            raise InvalidRequest.of(
                "name", f"the operator already has a model named {model.name}", "choose another name"
            )
        await self._require(workspace, model)

    async def change(self, workspace: str, name: str, changes: dict[str, Any]) -> RegisteredModel:
        """Change fields of a workspace's model, and return it. Raises the same errors as `add`, and NotFound."""
        if name in await self.operator.models(workspace):
            raise InvalidRequest.of(
                "name",
                f"only the operator can change the model {name}",
                "the operator's models are in EVALUATOR_HOST_MODELS",
            )
        objects = self._kept().objects
        await self._require(workspace, replace(_stored(await objects.get_object(_KIND, workspace, name)), **changes))
        changed = await objects.change_object(
            _KIND, workspace, name, lambda before: _content(replace(_MODEL.read_json(before), **changes))
        )
        return _stored(changed)

    async def _require(self, workspace: str, model: RegisteredModel) -> None:
        await self.hosts.require(model.url, field="url")
        if model.secret is not None:
            await self._kept().secrets.get_secret(workspace, model.secret)

    async def list(self, workspace: str) -> list[RegisteredModel]:
        """Return the models that evaluators of a workspace may be granted, the operator's first."""
        operators = await self.operator.models(workspace)
        own = [_registered(name, operators[name]) for name in sorted(operators)]
        kept = await self._store.objects.list_objects(_KIND, workspace) if self._store is not None else []
        return [*own, *(_stored(one) for one in kept if one.name not in operators)]

    async def get_own(self, workspace: str, name: str) -> RegisteredModel:
        """Return a model that a workspace registered.

        Raises:
          NotFound: there is no such model.
        """
        return _stored(await self._kept().objects.get_object(_KIND, workspace, name))

    async def delete(self, workspace: str, name: str) -> None:
        """Delete a model of a workspace.

        Raises:
          NotFound: there is no such model.
        """
        await self._kept().objects.delete_object(_KIND, workspace, name)

    async def resolve(self, workspace: str, entries: Sequence[str]) -> dict[str, GrantedModel]:
        """Return the granted models, keyed by the names that the code uses. The name `*` stands for all other names.

        Args:
          workspace: The workspace of the evaluator.
          entries: `judge-small`, `gpt-4o=judge-small`, `*=judge-small`.

        Raises:
          InvalidRequest: there is no such model, or the operator does not allow its host.
          NotFound: a model's secret does not exist.
        """
        if len(entries) > _MOST:
            raise InvalidRequest.of("evaluator.models", f"an evaluator may be granted at most {_MOST} models")
        found: dict[str, GrantedModel] = {}
        for entry in entries:
            alias, _, named = entry.rpartition("=")
            model = await self.find(workspace, named)
            found[alias or named] = model
            if not alias:
                found.setdefault(model.registered.model, model)
        return found

    async def find(self, workspace: str, name: str) -> GrantedModel:
        """Return a registered model with its key. Raises the same errors as `resolve`."""
        configured, model = (await self.operator.models(workspace)).get(name), None
        if configured is not None:
            model = _registered(name, configured)
            if configured.key is not None:
                return GrantedModel(model, revealed(configured.key))
        elif self._store is not None:
            with contextlib.suppress(NotFound):
                model = _stored(await self._store.objects.get_object(_KIND, workspace, name))
                await self.hosts.require(model.url, field="url")
        if model is None:
            known = ", ".join(one.name for one in await self.list(workspace)) or "none"
            hint = f"the models are: {known}; {await self._next_step()}"
            raise InvalidRequest.of("evaluator.models", f"there is no model {name[:80]!r}", hint)
        key = await self._kept().secrets.reveal(workspace, model.secret) if model.secret is not None else None
        return GrantedModel(model, key)

    async def _next_step(self) -> str:
        """Return how a workspace gets a further model."""
        allowed = await self.hosts.show()
        if self._store is not None and not allowed.may_allow and not allowed.hosts:
            return "ask the operator for one (EVALUATOR_HOST_MODELS), or to allow its host (EVALUATOR_HOST_JUDGE_HOSTS)"
        step = "you can register a model with `evaluator-host models create`"
        return step if allowed.may_allow or not allowed.hosts else f"{step} on {', '.join(allowed.hosts)}"

    def _kept(self) -> "Store":
        if self._store is None:
            raise NotFound("only a running host stores models and secrets of workspaces; give its URL with --url")
        return self._store


def _registered(name: str, configured: ModelEndpoint) -> RegisteredModel:
    same = ("kind", "secret", "input_price", "output_price", "cached_price", "timeout_s", "retries")
    fields = {field: getattr(configured, field) for field in same}
    model = configured.model or name.rpartition("/")[2]
    return RegisteredModel(name=name, url=configured.base_url, model=model, operator=True, **fields)


def _stored(kept: "StoredObject") -> RegisteredModel:
    return replace(_MODEL.read_json(kept.content), created_at=kept.created_at)


def _content(model: RegisteredModel) -> str:
    fields = asdict(replace(model, model=model.model or model.name))
    return encode_json({name: value for name, value in fields.items() if name != "created_at"}).decode()


def base_url(model: RegisteredModel) -> str:
    """Return the URL of a model's API, to which the path of a `protocols.Route` is added."""
    url = model.url.rstrip("/")
    return url.removesuffix("/v1") if model.kind is ModelKind.ANTHROPIC else url.removesuffix("/chat/completions")

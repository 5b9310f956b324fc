"""The operations on registered models: add, change, list, test, delete, use by day, and recorded answers."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service.model_grants import NO_TERMS
from evaluator_host.platform.models.gateway.exchange import UNREACHABLE
from evaluator_host.platform.models.gateway.grants import ModelDirectory
from evaluator_host.platform.models.gateway.recordings import Recordings
from evaluator_host.platform.models.judges import open_judges
from evaluator_host.platform.models.table import ModelTable
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound
from evaluator_host.types.evaluator import Evaluator, Json
from evaluator_host.types.models import DayUsage, ModelTest, RegisteredModel
from evaluator_host.types.redaction import Redactor

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

_QUESTION: Final = "Answer with the word ok."
_SHOWN: Final = 200


class ModelService:
    """The registered models of one host."""

    def __init__(self, settings: Settings, store: "Store") -> None:
        self._settings = settings
        self._whole_store = store
        self.store = ModelTable(store.database)
        self.directory = ModelDirectory(settings, store)
        self.recordings = Recordings(self.store, most_bytes=settings.model_answers_mb << 20)

    async def get_model(self, workspace: str, name: str) -> RegisteredModel:
        """Return a model that evaluators of a workspace may be granted.

        Raises:
          NotFound: there is no such model.
        """
        found = next((one for one in await self.directory.list(workspace) if one.name == name), None)
        if found is None:
            raise NotFound(f"there is no model {name[:80]!r}; GET /v1/models lists those of this workspace")
        return found

    async def add_model(self, workspace: str, model: RegisteredModel, *, key: str | None = None) -> RegisteredModel:
        """Register a model of a workspace, and return it; `key` becomes a secret with the model's name.

        Raises:
          InvalidRequest: a field is not valid, the host is not allowed, or the secret already exists.
          NameTaken: there is a model with that name.
          NotFound: there is no such secret.
          InUse: the workspace has 1,000 models.
        """
        if key is None:
            return await self.directory.add(workspace, model)
        secrets = self._whole_store.secrets
        if model.secret is not None:
            raise InvalidRequest.of("key", "the model has both `key` and `secret`", "give only one of them")
        await self.directory.require_addable(workspace, model)
        try:
            added = await secrets.add_secret(workspace, model.name, key)
        except NameTaken as error:
            hint = "use it as the model's `secret`, or give the model another name"
            raise InvalidRequest.of("key", error.detail, hint) from error
        try:
            return await self.directory.add(workspace, replace(model, secret=model.name))
        except BaseException:
            await secrets.take_back(workspace, added)
            raise

    async def test_model(self, workspace: str, name: str) -> ModelTest:
        """Ask a model one short question, and return how it answered.

        Raises:
          InvalidRequest: there is no such model, or the operator does not allow its host.
          NotFound: the model's secret does not exist.
        """
        asked, started = {"messages": [{"role": "user", "content": _QUESTION}]}, time.perf_counter()
        async with open_judges(self._settings, self._whole_store) as judges:
            grant = await judges.grant(Evaluator("", models=(name,)), workspace, NO_TERMS, redactor=Redactor())
            grant.models[name] = replace(
                grant.models[name], registered=replace(grant.models[name].registered, retries=0)
            )
            gate = grant.gate()
            answer = await gate.ask(name, asked)
        latency_ms, used = round((time.perf_counter() - started) * 1000, 3), gate.usage
        said, error = None, None
        if "error" in answer:
            error = str(answer["error"])
            if answer["code"] != UNREACHABLE:
                error = f"HTTP {answer['status']}: {error}"
        elif (said := _said(answer["response"])) is None:
            error = "the answer has no message; check that the URL belongs to the API"
        return ModelTest(error is None, said, error, latency_ms, used.input_tokens, used.output_tokens, used.cost)

    async def list_usage(self, workspace: str, *, days: int) -> list[DayUsage]:
        """Return a workspace's use of each model in the last `days` days, today included, the newest first."""
        return await self.store.list_usage(workspace, since=first_day(days))


def first_day(days: int) -> str:
    """Return the first of the last `days` days in UTC, today included: `2026-01-31`."""
    return (datetime.now(UTC).date() - timedelta(days=days - 1)).isoformat()


def _said(body: Json) -> str | None:
    try:
        return str(body["choices"][0]["message"]["content"])[:_SHOWN]
    except (KeyError, IndexError, TypeError):
        return None

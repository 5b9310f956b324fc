"""The verbs of registered models: add, list, test, delete, what they were used for, and recorded answers."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import httpx

from evaluator_host.config.settings import Settings
from evaluator_host.model.errors import NotFound
from evaluator_host.model.evaluator import Json, ModelKind
from evaluator_host.model.json_values import InvalidJson, decode_json, encode_json
from evaluator_host.model.redaction import Redactor
from evaluator_host.models.access import make_http_client
from evaluator_host.models.endpoint import fault_of, read_body
from evaluator_host.models.gateway.exchange import credentials
from evaluator_host.models.gateway.grants import GrantedModel, ModelDirectory, base_url
from evaluator_host.models.gateway.protocols import tokens_of
from evaluator_host.models.gateway.recordings import Recordings
from evaluator_host.schemas.models import DayUsage, ModelTest, RegisteredModel

if TYPE_CHECKING:
    from evaluator_host.store.store import Store

_QUESTION: Final = "Answer with the word ok."
_TEST_BYTES: Final = 1 << 20
_SHOWN: Final = 200
_VERSION: Final = ("anthropic-version", "2023-06-01")


class ModelService:
    """The registered models of one host.

    Args:
      settings: The operator's models, and the hosts that models of workspaces may be on.
      store: Those of workspaces, with usage and recorded answers.
    """

    def __init__(self, settings: Settings, store: "Store") -> None:
        self._settings = settings
        self._store = store.models
        self.directory = ModelDirectory(settings, store)
        self.recordings = Recordings(store.models, most_bytes=settings.model_answers_mb << 20)

    async def get_model(self, workspace: str, name: str) -> RegisteredModel:
        """Return a model that evaluators of a workspace may be granted.

        Raises:
          NotFound: there is none of that name.
        """
        found = next((one for one in await self.directory.list(workspace) if one.name == name), None)
        if found is None:
            raise NotFound(f"there is no model {name[:80]!r}; GET /v1/models lists those of this workspace")
        return found

    async def test_model(self, workspace: str, name: str) -> ModelTest:
        """Ask a model one short question, and return how it answered.

        Raises:
          InvalidRequest: there is no such model, or the operator does not allow its host.
          NotFound: its secret does not exist.
        """
        model = await self.directory.find(workspace, name)
        registered, started = model.registered, time.perf_counter()
        url = base_url(registered)
        async with make_http_client(self._settings, url, timeout_s=registered.timeout_s, at_once=1) as client:
            tried = await _try(client, model, url + _path(registered.kind), _question(registered))
        latency_ms = round((time.perf_counter() - started) * 1000, 3)
        output, error, tokens = tried
        asked, answered = tokens or (0, 0)
        cost = model.cost(asked, answered)
        return ModelTest(error is None, output, error, latency_ms, asked, answered, cost)

    async def list_usage(self, workspace: str, *, days: int) -> list[DayUsage]:
        """Return what a workspace used in the last days, the newest day first."""
        since = datetime.now(UTC).date() - timedelta(days=days - 1)
        return await self._store.list_usage(workspace, since=since.isoformat())

    async def count_answers(self, workspace: str) -> tuple[int, int]:
        """Return how many answers a workspace has recorded, and their bytes."""
        return await self._store.count_answers(workspace)

    async def delete_answers(self, workspace: str, *, model: str | None = None) -> int:
        """Delete the recorded answers of a workspace, or those of one model; return how many there were."""
        return await self._store.delete_answers(workspace, model=model)


def _path(kind: ModelKind) -> str:
    return "/v1/messages" if kind is ModelKind.ANTHROPIC else "/chat/completions"


def _question(model: RegisteredModel) -> dict[str, Json]:
    asked: dict[str, Json] = {"model": model.model, "messages": [{"role": "user", "content": _QUESTION}]}
    return {**asked, "max_tokens": 16} if model.kind is ModelKind.ANTHROPIC else asked


async def _try(
    client: httpx.AsyncClient, model: GrantedModel, url: str, question: dict[str, Json]
) -> tuple[str | None, str | None, tuple[int, int] | None]:
    """Return the beginning of the answer or the error, and the tokens."""
    redactor = Redactor(model.key)
    headers = dict([("content-type", "application/json"), ("accept-encoding", "identity"), _VERSION])
    try:
        async with client.stream(
            "POST", url, content=encode_json(question), headers={**headers, **credentials(model)}
        ) as response:
            text = redactor.text((await read_body(response, _TEST_BYTES)).decode("utf-8", "replace"))
    except httpx.HTTPError as error:
        return None, redactor.text(str(error) or type(error).__name__), None
    if not response.is_success:
        return None, f"HTTP {response.status_code}: {fault_of(text)}", None
    try:
        body = decode_json(text.encode())
    except InvalidJson:
        return None, "the answer is not JSON; is the URL that of the API?", None
    return _said(body), None, tokens_of(body)


def _said(body: Json) -> str | None:
    try:
        if "choices" in body:
            return str(body["choices"][0]["message"]["content"])[:_SHOWN]
        return str(body["content"][0]["text"])[:_SHOWN]
    except (KeyError, IndexError, TypeError):
        return None

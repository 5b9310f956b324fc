"""Client methods for registered models and recorded answers: `client.models`."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import asdict
from types import NoneType
from typing import Final
from urllib.parse import quote

from ..types.evaluator import Json
from ..types.json_values import decode_json
from ..types.line_buffer import LineBuffer
from ..types.models import DayUsage, ModelHosts, ModelTest, RecordedAnswers, RegisteredModel
from .calls import Call, encode, query
from .transport import NamedVerbs, TransportT, stream, verb

_JSON_LINES: Final = (("Content-Type", "application/x-ndjson"),)
_IMPORT_BYTES: Final = 8 << 20  # maximum number of bytes in one import request
_OF_THE_HOST: Final = ("operator", "created_at")


class ModelVerbs(NamedVerbs[TransportT, RegisteredModel]):
    """Methods for the models that evaluators may be granted, in your key's workspace.

    Once a model is deleted, the host refuses evaluators that were granted it.
    """

    _PATH = "/v1/models"
    _REPORT = RegisteredModel

    @verb
    async def create(
        self, model: RegisteredModel, *, key: str | None = None, allow_host: bool = False
    ) -> RegisteredModel:
        """Register a model.

        Args:
          model: Name, URL, kind, name at the provider, secret and prices.
          key: Key of the API, stored as a secret with the model's name; None if `model.secret` names a stored secret.
          allow_host: Whether to let evaluators call the URL's host from now on; `hosts` says whether you may do that.

        Raises:
          NameTaken: there is already a model of that name.
          NotFound: there is no such secret.
          InvalidRequest: a field is not valid, or evaluators may not call that host.
        """
        body: dict[str, Json] = {name: value for name, value in asdict(model).items() if name not in _OF_THE_HOST}
        if not model.model:
            del body["model"]  # without this field, the name at the provider is `name`
        body |= {"allow_host": allow_host} if key is None else {"allow_host": allow_host, "key": key}
        return await self._transport.send(Call("POST", "/v1/models", RegisteredModel, encode(body)))

    @verb
    async def update(self, name: str, /, **changes: Json) -> RegisteredModel:
        """Change fields of a model, and return the model. The changes apply from its next request.

        Costs that were counted before do not change.

        Args:
          name: Name of the model.
          changes: `url`, `kind`, `model`, `secret`, `input_price`, `output_price`, `cached_price`, `timeout_s`,
            `retries`, `allow_host`; None for the default.

        Raises:
          NotFound: there is no model of that name, or no such secret.
          InvalidRequest: a field is not valid, the operator set up the model, or does not allow that host.
        """
        return await self._transport.send(Call("PATCH", self._path(name), RegisteredModel, encode(changes)))

    @verb
    async def test(self, name: str) -> ModelTest:
        """Send a short question to a model, and return how the model answered."""
        return await self._transport.send(Call("POST", self._path(name, "test"), ModelTest))

    @verb
    async def hosts(self) -> ModelHosts:
        """Return the hosts at which evaluators may call models."""
        return await self._get("/v1/model-hosts", ModelHosts)

    @verb
    async def forbid_host(self, host: str) -> None:
        """Forbid evaluators from calling a host that was allowed with `allow_host`.

        Args:
          host: Host and port, as `hosts` lists it.

        Raises:
          NotFound: the host was not allowed with `allow_host`.
        """
        await self._transport.send(Call("DELETE", f"/v1/model-hosts/{quote(host, safe='')}", NoneType))

    @verb
    async def usage(self, *, days: int = 30) -> list[DayUsage]:
        """Return the workspace's use of each model by day (UTC), the newest day first.

        Args:
          days: How many days, today included.
        """
        return await self._get(f"/v1/model-usage{query(days=days)}", list[DayUsage])

    @verb
    async def answers(self) -> RecordedAnswers:
        """Return how many answers are recorded."""
        return await self._get("/v1/model-answers", RecordedAnswers)

    @stream
    async def export_answers(self) -> AsyncGenerator[dict[str, Json], None]:
        """Yield the recorded answers: `{"digest", "model", "created_at", "request", "answer"}`."""
        buffer = LineBuffer()
        async with aclosing(self._transport.download(Call("GET", "/v1/model-answers/export", NoneType))) as pieces:
            async for piece in pieces:
                for line in buffer.feed(piece):
                    yield decode_json(line)

    @verb
    async def import_answers(self, answers: Iterable[dict[str, Json]]) -> RecordedAnswers:
        """Record the answers in an export; they replace recorded answers to the same requests.

        Args:
          answers: The answers, in the form of `export_answers`.

        Raises:
          InvalidRequest: an entry is not a recorded answer; earlier entries may be recorded.
        """
        batch = bytearray()
        for one in answers:
            batch += encode(one) + b"\n"
            if len(batch) >= _IMPORT_BYTES:
                await self._import(bytes(batch))
                batch.clear()
        return await self._import(bytes(batch))

    async def _import(self, lines: bytes) -> RecordedAnswers:
        call = Call("POST", "/v1/model-answers/import", RecordedAnswers, lines, _JSON_LINES)
        return await self._transport.send(call)

    @verb
    async def delete_answers(self, *, model: str | None = None) -> None:
        """Delete the recorded answers of the workspace.

        Args:
          model: Name of the model whose answers to delete; None for all models.
        """
        await self._transport.send(Call("DELETE", f"/v1/model-answers{query(model=model)}", NoneType))

"""Sends an evaluator's request to a model's provider, retries it if that may help, and passes the answer on."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Final

import httpx

from evaluator_host.engine.service.model_grants import RequestUse
from evaluator_host.platform.models.endpoint import AGAIN, chunks_of, pause_s, read_body, wait_s_of
from evaluator_host.platform.models.gateway.connection import Connection, Rejected
from evaluator_host.platform.models.gateway.grants import GrantedModel, base_url
from evaluator_host.platform.models.gateway.protocols import EventStream, Route, Tokens, refusal, tokens_of
from evaluator_host.platform.models.gateway.recordings import EVENTS, HttpAnswer
from evaluator_host.types.evaluator import Json, ModelKind
from evaluator_host.types.json_values import LARGE_BYTES, InvalidJson, decode_json, decode_large, encode_json
from evaluator_host.types.redaction import Redactor

JSON_TYPE: Final = "application/json"
ANSWER_BYTES: Final = 16 << 20
UNREACHABLE: Final = "model_unreachable"  # error code for a request that no provider answered
_VERSION: Final = ("anthropic-version", "2023-06-01")
_FAULT_BYTES: Final = 64 << 10
# number of characters that a token is assumed to have, if a provider does not report tokens
CHARACTERS_A_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Told:
    """Callbacks that report the progress of a request to a provider."""

    used: Callable[[RequestUse], None]  # called once with the tokens and cost of the request
    # called with a successful answer before its last part is sent to the evaluator, which may end once it has this part
    answered: Callable[[HttpAnswer], Awaitable[None]]
    ready: Callable[[], Awaitable[None]]  # returns when the evaluator may get the last part of an answer
    # returns a context manager that waits until there is memory for a large answer, and reserves it during the block
    place: Callable[[], AbstractAsyncContextManager[None]]
    records: bool  # whether `answered` records the answer


class Exchange:
    """One request to a provider, and its retries."""

    def __init__(
        self,
        lend_client: Callable[[str], AbstractAsyncContextManager[httpx.AsyncClient]],
        model: GrantedModel,
        route: Route,
        *,
        headers: dict[str, str],
        body: dict[str, Json],
        told: Told,
    ) -> None:
        self._model = model
        self._told = told
        self._counted = False
        self._redactor = Redactor(model.key)
        self._url = base_url(model.registered) + route.path
        self._lend_client = lend_client
        sent = {**body, "model": model.registered.model}
        options: Json = body.get("stream_options")
        options = options if isinstance(options, dict) else {}
        streams = body.get("stream") is True and route.path.endswith("/completions")
        self._adds_usage = streams and options.get("include_usage") is not True
        if self._adds_usage:
            sent["stream_options"] = {**options, "include_usage": True}
        self._content = encode_json(sent)
        self._headers = {"content-type": JSON_TYPE, "accept-encoding": "identity", **_credentials(model), **headers}

    async def run(self, connection: Connection) -> None:
        """Send the request to the provider, and pass the answer on to the evaluator's connection.

        Raises:
          Rejected: the provider does not answer.
        """
        async with self._lend_client(self._url) as client:
            await self._pass_answer(connection, await self._respond(client))

    async def _pass_answer(self, connection: Connection, response: httpx.Response) -> None:
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise Rejected(
                    502, "the model's answer is compressed, though the host asked for it uncompressed", "bad_answer"
                )
            if not response.is_success:
                await self._pass_fault(connection, response)
            elif EVENTS in response.headers.get("content-type", ""):
                await self._pass_events(connection, response)
            else:
                await self._pass_whole(connection, response)
        except httpx.HTTPError as error:
            self._count(None, 0)
            if connection.began:
                connection.close()
                return
            why = f"the connection to the model broke: {self._said(error)}"
            raise Rejected(502, why, "bad_answer", again=True) from error
        finally:
            await response.aclose()

    def end(self) -> None:
        """Count the request, unless it was counted when its answer arrived."""
        self._tell(RequestUse())

    async def _respond(self, client: httpx.AsyncClient) -> httpx.Response:
        """Send the request to the provider, and repeat it if that may help. Return the response without its body."""
        registered, tries = self._model.registered, 0
        while True:
            tries += 1
            response: httpx.Response | None = None
            fault = f"the model gave no answer within {registered.timeout_s:g} s; try again, or raise its timeout_s"
            try:
                async with asyncio.timeout(registered.timeout_s):
                    request = client.build_request(
                        "POST", self._url, content=self._content, headers=self._headers, timeout=registered.timeout_s
                    )
                    response = await client.send(request, stream=True)
            except TimeoutError:
                pass
            except httpx.HTTPError as error:
                fault = _unreachable(error) or f"the model cannot be reached: {self._said(error)}; check its URL"
            passing = response is None or response.status_code in AGAIN or response.status_code >= 500
            if response is not None and (not passing or tries > registered.retries):
                return response
            wait_s = pause_s(tries)
            if response is not None:
                wait_s = max(wait_s, wait_s_of(response.headers.get("retry-after")))
                await response.aclose()
            elif tries > registered.retries:
                raise Rejected(502, fault, UNREACHABLE)
            await asyncio.sleep(wait_s)

    async def _pass_fault(self, connection: Connection, response: httpx.Response) -> None:
        if response.is_redirect:
            raise Rejected(
                502,
                (
                    f"the model answered with a redirect ({response.status_code}), which the host does not "
                    "follow; correct the model's URL"
                ),
                "bad_answer",
            )
        text = self._redactor.text((await read_body(response, _FAULT_BYTES)).decode("utf-8", "replace"))
        body, status = text.encode(), response.status_code
        try:
            decode_json(body)
        except InvalidJson:
            said = " ".join(text.split())[:500] or f"HTTP {status}"
            body = refusal(self._model.registered.kind, status, said, "model_error")
        self._tell(RequestUse())
        await self._told.ready()
        connection.respond(status, [("content-type", JSON_TYPE)], body)

    async def _pass_whole(self, connection: Connection, response: httpx.Response) -> None:
        async with AsyncExitStack() as place:
            data = await self._whole(response, place)
            tokens = None
            try:
                if len(data) > ANSWER_BYTES:
                    raise Rejected(502, f"the model's answer is longer than {ANSWER_BYTES >> 20} MB", "bad_answer")
                text = await self._masked(data)
                tokens = tokens_of(await decode_large(text.encode()))
            except InvalidJson as error:
                raise Rejected(
                    502, "the model's answer is not JSON; check that its URL belongs to the API", "bad_answer"
                ) from error
            finally:
                used = self._count(tokens, len(data))
            await self._told.answered(HttpAnswer(200, JSON_TYPE, text, used.input_tokens, used.output_tokens))
            await self._told.ready()
            await connection.answer(200, [("content-type", JSON_TYPE)], text.encode())

    async def _whole(self, response: httpx.Response, place: AsyncExitStack) -> bytes:
        """Return the body of an answer, at most one byte over its limit. If it is large, wait until memory is free."""
        data, chunks = bytearray(), chunks_of(response)
        left_s, now = self._model.registered.timeout_s, asyncio.get_running_loop().time
        has_place = False
        while len(data) <= ANSWER_BYTES:
            since = now()
            async with asyncio.timeout(left_s):
                chunk = await anext(chunks, b"")
            left_s -= now() - since
            if not chunk:
                break
            data += chunk
            if len(data) > LARGE_BYTES and not has_place:
                await place.enter_async_context(self._told.place())
                has_place = True
        return bytes(data[: ANSWER_BYTES + 1])

    async def _pass_events(self, connection: Connection, response: httpx.Response) -> None:
        events, parts, size = EventStream(hides_usage=self._adds_usage), list[str](), 0

        async def write(data: bytes) -> None:
            text = self._redactor.text(data.decode("utf-8", "replace"))
            if self._told.records:
                parts.append(text)
            if data and events.ended:
                # call `answered` before the write, because the evaluator may end as soon as it has the last event
                await answered()
            await connection.write(text.encode())

        async def answered() -> None:
            used = self._count(events.tokens, size)
            await self._told.answered(HttpAnswer(200, EVENTS, "".join(parts), used.input_tokens, used.output_tokens))

        async with AsyncExitStack() as place:
            try:
                await connection.begin(200, [("content-type", EVENTS)])
                async for chunk in chunks_of(response):
                    if self._told.records and size <= LARGE_BYTES < size + len(chunk):
                        await place.enter_async_context(self._told.place())
                    size += len(chunk)
                    if size > ANSWER_BYTES:
                        connection.close()
                        return
                    await write(events.feed(chunk))
                await write(events.rest())
            finally:
                self._count(events.tokens, size)
            if not events.ended:
                await answered()
            await self._told.ready()
            connection.finish()

    async def _masked(self, data: bytes) -> str:
        text, mask = data.decode("utf-8", "replace"), self._redactor.text
        return mask(text) if len(data) <= LARGE_BYTES else await asyncio.to_thread(mask, text)

    def _count(self, tokens: Tokens | None, answer_bytes: int) -> RequestUse:
        """Report and return what the request used. Tokens that the provider does not report are estimated."""
        used = tokens or Tokens(len(self._content) // CHARACTERS_A_TOKEN, answer_bytes // CHARACTERS_A_TOKEN)
        return self._tell(RequestUse(*used[:2], self._model.cost(*used), estimated=tokens is None))

    def _tell(self, used: RequestUse) -> RequestUse:
        if not self._counted:
            self._counted = True
            self._told.used(used)
        return used

    def _said(self, error: Exception) -> str:
        return self._redactor.text(str(error) or type(error).__name__)[:200]


def _unreachable(error: BaseException) -> str | None:
    """Return why nothing answers at the model's address, and what to do; None for any other fault.

    The text does not contain the address, because the evaluator's code may not know it.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return "nothing answers at the model's address: its name is unknown; correct the URL, or try again later"
        if isinstance(cause, ConnectionRefusedError):
            mend = "start its server, or correct the URL"
            return f"nothing answers at the model's address: the connection was refused; {mend}"
        cause = cause.__cause__ or cause.__context__
    return None


def _credentials(model: GrantedModel) -> dict[str, str]:
    """Return headers with the model's key and, for Anthropic, with an API version in case the evaluator sends none."""
    anthropic = model.registered.kind is ModelKind.ANTHROPIC
    found = dict([_VERSION]) if anthropic else {}
    if model.key is not None:
        found |= {"x-api-key": model.key} if anthropic else {"authorization": f"Bearer {model.key}"}
    return found

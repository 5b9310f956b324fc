"""Keeps recorded answers of models: finds them by the content of a request, exports and imports them as JSON lines."""

import asyncio
import hashlib
import itertools
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from evaluator_host.platform.models.gateway.masked_answers import masked_body
from evaluator_host.platform.models.table import ModelTable, RecordedAnswer
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import InvalidJson, aside, decode_json, decode_large, encode_json
from evaluator_host.types.redaction import MASKED, Redactor

EVENTS: Final = "text/event-stream"
_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")
_AT_ONCE: Final = 100  # number of imported lines that are stored in one transaction
_LINE_BYTES: Final = 32 << 20
_FIELDS: Final = {"status": int, "content_type": str, "body": str, "input_tokens": int, "output_tokens": int}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A model's HTTP response in the form in which it is recorded and sent again, and its token counts."""

    status: int
    content_type: str
    body: str  # body of the response: JSON, or the events of a stream
    input_tokens: int = 0
    output_tokens: int = 0


def digest_of(request: dict[str, Json]) -> str:
    """Return `sha256:…` of a canonical request (`protocols.canonical`)."""
    return "sha256:" + hashlib.sha256(_canonical(request)).hexdigest()


def _canonical(request: dict[str, Json]) -> bytes:
    try:
        return orjson.dumps(request, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # raised for an integer beyond 64 bits
        return encode_json(request)


@dataclass(slots=True)
class Numbered:
    """A request in canonical form. From the second on, identical requests for one row have a number, `repeat`."""

    request: dict[str, Json]
    answered: bool = False  # whether the request was answered


class Repeats:
    """Numbers the identical requests that an evaluator makes for one row.

    A model may answer each of them differently. If a request gets no answer, its number is free again, because a
    client that retries sends the same request again.
    """

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}

    @contextmanager
    def numbered(self, request: dict[str, Json]) -> Iterator[Numbered]:
        """During the block, give a number to a request in canonical form (`protocols.canonical`)."""
        taken = self._taken.setdefault(digest_of(request), set())
        number = next(one for one in itertools.count() if one not in taken)
        taken.add(number)
        found = Numbered({**request, "repeat": number} if number else request)
        try:
            yield found
        finally:
            if not found.answered:
                taken.remove(number)


class Recordings:
    """The recorded answers of all workspaces. If a workspace's answers exceed `most_bytes`, its oldest are deleted."""

    def __init__(self, store: ModelTable, *, most_bytes: int) -> None:
        self._store = store
        self._most_bytes = most_bytes

    async def find(self, workspace: str, model: str, request: dict[str, Json]) -> HttpAnswer | None:
        """Return the recorded answer to a request in canonical form (`protocols.canonical`), or None.

        An answer that was recorded without the digest of the server's URL is used only for the model with the same
        name.
        """
        content = await self._store.find_answer(workspace, digest_of(request))
        if content is None:
            older = {name: value for name, value in request.items() if name != "server"}
            content = await self._store.find_answer(workspace, digest_of(older), model=model)
        return None if content is None else HttpAnswer(**(await decode_large(content.encode()))["answer"])

    async def keep(
        self, workspace: str, model: str, request: dict[str, Json], answer: HttpAnswer, *, redactor: Redactor
    ) -> None:
        """Record the answer to a request in canonical form (`protocols.canonical`).

        `redactor` masks secrets before the answer is stored; the digest is computed from the unmasked request, so that
        the same request matches later.
        """
        digest = digest_of(request)
        if redactor:
            request, answer = await asyncio.to_thread(_masked, redactor, request, answer)
        content = encode_json({"request": request, "answer": asdict(answer)}).decode()
        one = RecordedAnswer(digest, model, content, datetime.now(UTC))
        await self._store.add_answers(workspace, [one], most_bytes=self._most_bytes)

    async def export(self, workspace: str) -> AsyncGenerator[bytes, None]:
        """Yield every recorded answer as a line: `{"digest", "model", "created_at", "request", "answer"}`."""
        async for one in self._store.answers(workspace):
            head = {"digest": one.digest, "model": one.model, "created_at": one.created_at}
            yield encode_json(head)[:-1] + b"," + one.content.encode()[1:] + b"\n"  # joins two encoded objects into one

    async def import_lines(self, workspace: str, lines: AsyncIterable[bytes]) -> int:
        """Import the lines of an export in place of recorded answers to the same requests. Return the number of lines.

        Raises:
          InvalidRequest: a line is not a recorded answer; the lines before it may have been recorded.
        """
        count, batch = 0, list[RecordedAnswer]()
        async for line in lines:
            if not line.strip():
                continue
            count += 1
            batch.append(await aside(line, _parsed, line, count))
            if len(batch) >= _AT_ONCE:
                await self._store.add_answers(workspace, batch, most_bytes=self._most_bytes)
                batch = []
        await self._store.add_answers(workspace, batch, most_bytes=self._most_bytes)
        return count


def _masked(redactor: Redactor, request: dict[str, Json], answer: HttpAnswer) -> tuple[dict[str, Json], HttpAnswer]:
    body = masked_body(redactor, answer.body, streamed=answer.content_type.startswith(EVENTS))
    return redactor.value(request), replace(answer, body=body)


def _digest_in(line: dict[str, Any]) -> str:
    """Return the digest of the request in a line. If secrets are masked in the request, use the digest in the line."""
    request, named = line["request"], line.get("digest")
    if isinstance(named, str) and _DIGEST.fullmatch(named) and MASKED.encode() in encode_json(request):
        return named
    return digest_of(request)


def _parsed(line: bytes, number: int) -> RecordedAnswer:
    try:
        if len(line) > _LINE_BYTES:
            raise ValueError("it is too long")
        one: Any = decode_json(line)
        request, answer, model = one["request"], one["answer"], one["model"]
        if set(answer) != set(_FIELDS) or not all(type(answer[name]) is kind for name, kind in _FIELDS.items()):
            raise ValueError("its `answer` has missing or unknown fields")
        is_request = isinstance(request, dict) and request.keys() - {"server", "repeat"} == {"kind", "path", "body"}
        if not is_request or type(request.get("repeat", 1)) is not int or not isinstance(model, str):
            raise ValueError("its `request` or `model` has missing or unknown fields")
        content = encode_json({"request": request, "answer": answer}).decode()
        return RecordedAnswer(_digest_in(one), model[:200], content, datetime.now(UTC))
    except (InvalidJson, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidRequest(
            f"line {number} is not a recorded answer: {error}; import what `models export` wrote"
        ) from error

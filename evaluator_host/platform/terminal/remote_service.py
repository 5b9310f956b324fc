"""Sends a command's rows in batches to the running host that `--url` names, with the API key from the settings."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
from pydantic import ValidationError

from evaluator_host.client import AsyncClient, Batch
from evaluator_host.client.calls import Call, http_options, read_answer
from evaluator_host.engine.environments.record import BuildEvent, BuildStatus, EnvironmentReport
from evaluator_host.engine.service.caller import DEFAULT_CALLER, Caller
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.types.errors import HostError, InvalidRequest
from evaluator_host.types.evaluation import CheckReport, HostInfo
from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import EvaluationResult
from evaluator_host.types.stored import DataFile

_BATCH_ROWS: Final = 200
_BATCH_BYTES: Final = 4 << 20  # maximum number of bytes in a batch, far below the default limit of a host
_BATCHES: Final = 2  # default number of batches to send at the same time
_DATA: Final = "data:"
_read_event: Final = Adapter(BuildEvent).read_json


class RemoteService:
    """An evaluation service that sends rows to a running host in batches."""

    def __init__(self, client: AsyncClient, info: HostInfo, builds: httpx.AsyncClient) -> None:
        self._client = client
        self._info = info
        self._builds = builds
        self._together: list[EvaluationResult | None] = []  # for each batch, the score over all its rows

    @property
    def together(self) -> EvaluationResult | None:
        """Return the score over all rows that were sent. None if the evaluator has no such score.

        Raises:
          InvalidRequest: the rows were sent in several batches, and the scores of batches cannot be joined.
        """
        if len(self._together) > 1 and any(self._together):
            raise InvalidRequest(
                "there is no score over all rows together, because the rows went to the host in several requests; "
                "score them as a job: evaluator-host jobs create"
            )
        return self._together[0] if self._together else None

    def info(self) -> HostInfo:
        """Return the version, backend and languages that the host reported when the connection was opened."""
        return self._info

    async def build(
        self, packages: tuple[str, ...], language: Language, python: str | None
    ) -> AsyncGenerator[BuildEvent, None]:
        """Install a package set. Yield the events of its build until the build ends.

        This never raises an error: a failed build is reported when the evaluator runs.
        """
        body = {"packages": packages, "language": language, **({} if python is None else {"python": python})}
        asked = Call("POST", "/v1/environments", EnvironmentReport, encode_json(body))
        try:
            report = read_answer(asked, await self._builds.request(asked.method, asked.path, content=asked.body))
            if report.status is not BuildStatus.BUILDING:
                return
            async with self._builds.stream("GET", f"{asked.path}/{report.key}/events") as response:
                response.raise_for_status()
                async for line in response.aiter_lines():
                    if line.startswith(_DATA):
                        yield _read_event(line.removeprefix(_DATA))
        except (HostError, httpx.HTTPError, ValidationError):
            return

    async def evaluate(self, evaluator: Evaluator, row: Row, *, caller: Caller = DEFAULT_CALLER) -> EvaluationResult:
        batch = await self._client.evaluate_batch(evaluator, [row], replay=caller.terms.replay)
        return batch.results[0]

    async def evaluate_rows(
        self,
        evaluator: Evaluator,
        rows: Iterable[Row],
        *,
        isolation: Isolation,
        parallelism: int | None,
        caller: Caller = DEFAULT_CALLER,
    ) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Evaluate rows. Yield `(index, result)` for each row whenever a batch has returned."""
        batches = _batches(rows)
        sent: dict[asyncio.Task[Batch], int] = {}
        try:
            while True:
                while len(sent) < (parallelism or _BATCHES) and (batch := next(batches, None)):
                    start, part = batch
                    work = self._client.evaluate_batch(
                        evaluator, part, isolation=isolation, outputs="none", replay=caller.terms.replay
                    )
                    task = asyncio.create_task(work)
                    sent[task] = start
                if not sent:
                    return
                done, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    start, batch_result = sent.pop(task), task.result()
                    self._together.append(batch_result.together)
                    for offset, result in enumerate(batch_result.results):
                        yield start + offset, result
        finally:
            for task in sent:
                task.cancel()
            await asyncio.gather(*sent, return_exceptions=True)

    async def send_data(self, path: Path) -> DataFile:
        """Store an evaluator's data file on the host, unless the host already has it. Return facts about the file."""
        return await self._client.data.send(path)

    async def check(self, evaluator: Evaluator) -> CheckReport:
        """Load an evaluator on the host without running a row, and return the report."""
        return await self._client.check(evaluator)


@asynccontextmanager
async def open_remote_service(url: str, key: str | None) -> AsyncIterator[RemoteService]:
    """Yield an evaluation service on the running host at a URL.

    Raises:
      HostUnreachable: no host answers at the URL.
      Unauthorized: the host needs a key, and this key does not work.
    """
    options = http_options(url, key=key, timeout_s=None)
    async with AsyncClient(url, key=key) as client, httpx.AsyncClient(**options) as builds:
        yield RemoteService(client, await client.info(), builds)


def _batches(rows: Iterable[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Yield `(index of the first row, rows)`, each small enough for one request."""
    start, part, size = 0, list[Row](), 0
    for row in rows:
        row_bytes = len(encode_json(row))
        if part and (len(part) == _BATCH_ROWS or size + row_bytes > _BATCH_BYTES):
            yield start, part
            start, part, size = start + len(part), [], 0
        part.append(row)
        size += row_bytes
    if part:
        yield start, part

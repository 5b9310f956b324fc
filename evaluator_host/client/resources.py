"""Client methods for stored resources: `client.evaluators`, `client.datasets`, `client.secrets`."""

import hashlib
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..types.errors import NotFound
from ..types.evaluator import Evaluator, Json, Row
from ..types.formats import Format
from ..types.jobs import EvaluatorScore, ScoreHistory
from ..types.migrations import StoredMigration
from ..types.stored import (
    ColumnFacts,
    DataFile,
    DatasetReport,
    EvaluatorReport,
    FoundRows,
    ReadyJudge,
    RowChanges,
    SecretReport,
    TraceReport,
)
from .calls import Call, encode, encode_line, given_cases, pasted_body, proof_body, query
from .transport import NamedVerbs, Transport, TransportT, stream, verb

_PAGE_ROWS: Final = 500
_PIECE_BYTES: Final = 1 << 16


class EvaluatorVerbs(NamedVerbs[TransportT, EvaluatorReport]):
    """Methods for the named evaluators in your key's workspace. Jobs keep copies of their evaluators."""

    _PATH = "/v1/evaluators"
    _REPORT = EvaluatorReport

    @verb
    async def create(
        self,
        name: str,
        evaluator: Evaluator,
        *,
        description: str = "",
        sampling: float = 1.0,
        tags: Sequence[str] = (),
        message: str = "",
        force: bool = False,
        cases: Sequence[Mapping[str, Json]] | None = None,
        require_cases: bool = False,
    ) -> EvaluatorReport:
        """Store an evaluator under a name, as version 1.

        Args:
          name: Name of the evaluator.
          evaluator: The code and its settings.
          description: Description, shown to users.
          sampling: Fraction of live traces to score, 0 to 1.
          tags: Words by which `all` can find the evaluator: `all(tag="tone")`.
          message: Reason for this version.
          force: Whether to store an evaluator that does not load.
          cases: Rows with `expect` (the expected result) and `case` (a name); None for no cases.
          require_cases: Whether to refuse the evaluator if a case fails.

        Raises:
          NameTaken: there is already an evaluator of that name.
          InvalidRequest: the evaluator does not load; `problems` says why.
        """
        body: dict[str, Any] = {"name": name, "description": description, "sampling": sampling, "message": message}
        path = f"/v1/evaluators{query(force=force, require_cases=require_cases)}"
        body |= {"tags": tags, **pasted_body(evaluator), **given_cases(cases)}
        return await self._transport.send(Call("POST", path, EvaluatorReport, encode(body)))

    @verb
    async def update(
        self,
        name: str,
        evaluator: Evaluator,
        *,
        description: str | None = None,
        sampling: float | None = None,
        tags: Sequence[str] | None = None,
        message: str = "",
        force: bool = False,
        cases: Sequence[Mapping[str, Json]] | None = None,
        require_cases: bool = False,
    ) -> EvaluatorReport:
        """Store the next version of an evaluator, unless it equals the newest version.

        Args:
          name: Name of the evaluator.
          evaluator: The code and its settings.
          description: Description, shown to users; None keeps the old one.
          sampling: Fraction of live traces to score, 0 to 1; None keeps the old one.
          tags: Words to find the evaluator by; None keeps the old ones.
          message: Reason for this version.
          force: Whether to store an evaluator that does not load.
          cases: Rows with `expect` (the expected result) and `case` (a name); None keeps the cases of the newest
            version.
          require_cases: Whether to refuse the evaluator if a case fails.

        Raises:
          InvalidRequest: the evaluator does not load; `problems` says why.
        """
        body = {"description": description, "sampling": sampling, "tags": tags, "message": message}
        body |= {**pasted_body(evaluator), **given_cases(cases)}
        path = self._path(name) + query(force=force, require_cases=require_cases)
        return await self._transport.send(Call("PUT", path, EvaluatorReport, encode(body)))

    @verb
    async def get(self, name: str, version: int | None = None) -> EvaluatorReport:
        """Return a version of an evaluator.

        Args:
          name: Name of the evaluator.
          version: Number of the version, from 1; None for the newest.

        Raises:
          NotFound: there is no such evaluator or version.
        """
        at = "" if version is None else f"/versions/{version}"
        return await self._get(self._path(name) + at, EvaluatorReport)

    @verb
    async def describe(
        self,
        name: str,
        *,
        description: str | None = None,
        sampling: float | None = None,
        tags: Sequence[str] | None = None,
    ) -> EvaluatorReport:
        """Change description, sampling rate or tags, and return the newest version. No version is created.

        Args:
          name: Name of the evaluator.
          description: Description, shown to users; None keeps the old one.
          sampling: Fraction of live traces to score, 0 to 1; None keeps the old one.
          tags: Words to find the evaluator by; None keeps the old ones.
        """
        body = {"description": description, "sampling": sampling, "tags": tags}
        return await self._transport.send(Call("PATCH", self._path(name), EvaluatorReport, encode(body)))

    @verb
    async def all(self, *, tag: str | None = None) -> list[EvaluatorReport]:
        """Return the newest version of each evaluator and its last job, sorted by name.

        Args:
          tag: Only evaluators with this tag.
        """
        return await self._get(self._PATH + query(tag=tag), list[EvaluatorReport])

    @verb
    async def versions(self, name: str) -> list[EvaluatorReport]:
        """Return every version of an evaluator, the newest first."""
        return await self._get(self._path(name, "versions"), list[EvaluatorReport])

    @verb
    async def ready_judges(self) -> list[ReadyJudge]:
        """Return ready-made judges, each a form with a rubric.

        You only add a model: `{**ready.judge, "model": "judge-small"}`.
        """
        return await self._get("/v1/ready-judges", list[ReadyJudge])

    @verb
    async def scores(self, name: str, *, dataset: str | None = None, limit: int = 100) -> list[EvaluatorScore]:
        """Return the scores of an evaluator's versions in completed jobs, the newest job first.

        Args:
          name: Name of the evaluator.
          dataset: Only jobs over the data set of this name.
          limit: Maximum number of jobs.
        """
        return await self._get(self._path(name, "scores") + query(dataset=dataset, limit=limit), list[EvaluatorScore])

    @verb
    async def traces(
        self, name: str, *, status: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[TraceReport]:
        """Return the traces of live traffic that an evaluator scored, skipped or failed to score, the newest first.

        Args:
          name: Name of the evaluator.
          status: `scored`, `skipped` or `failed`; None for all.
          limit: Maximum number of traces.
          before: `number` of the last trace on the previous page.
        """
        path = self._path(name, "traces") + query(status=status, limit=limit, before=before)
        return await self._get(path, list[TraceReport])

    @verb
    async def migrate(
        self,
        *names: str,
        rows: Iterable[Row | Mapping[str, Json]] | None = None,
        dataset: str | None = None,
        mapping: Mapping[str, str] | None = None,
        job: str | None = None,
        dry_run: bool = True,
        force: bool = False,
        adapt: bool = False,
    ) -> list[StoredMigration]:
        """Migrate legacy evaluators: report what each would become, or store the next versions.

        Args:
          names: Names of evaluators; without names, every legacy evaluator.
          rows: Rows for the proof; if there are no rows, no data set and no job, the host generates rows.
          dataset: Name of a data set with the rows for the proof.
          mapping: Which column or template of the data set fills each field of a row.
          job: Id of a job with the rows for the proof.
          dry_run: Whether to store nothing.
          force: Whether to store even versions without a proof.
          adapt: Whether to keep code that cannot be rewritten, and add a function that calls it.

        Raises:
          NotFound: there is no such evaluator, data set or job.
        """
        proof = proof_body(rows, dataset, mapping, job=job)
        body = {"names": names, **proof, "dry_run": dry_run, "force": force, "adapt": adapt}
        call = Call("POST", "/v1/evaluators/migrate", list[StoredMigration], encode(body))
        return await self._transport.send(call)


class DatasetVerbs(NamedVerbs[TransportT, DatasetReport]):
    """Methods for the data sets in your key's workspace. Jobs keep the rows of a deleted data set."""

    _PATH = "/v1/datasets"
    _REPORT = DatasetReport

    @verb
    async def upload(
        self,
        name: str,
        data: Path | str | Iterable[dict[str, Json]],
        *,
        replace: bool = False,
        format: str | None = None,  # noqa: A002 - the name in options and reports
    ) -> DatasetReport:
        """Store rows as a named data set.

        The data is streamed, so that it is never in memory as a whole.

        Args:
          name: Name of the data set.
          data: Path of a file (.jsonl .csv .tsv .json .parquet .xlsx), or rows: `[{"question": …, "answer": …}]`.
          replace: Whether to replace an existing data set of that name.
          format: Format of the file: `csv`, …; None to use the file's suffix.

        Raises:
          NameTaken: there is already a data set of that name, and `replace` is false.
          InvalidRequest: the file does not have its format, or has no row.
          TooLarge: the data has more bytes or rows than the host accepts.
        """
        path = f"/v1/datasets{query(name=name, replace=replace)}"
        if not isinstance(data, Path | str):
            return await self._upload(path, _lines(data), Format.JSONL)
        format_ = Format.of_name(str(data) if format is None else f"rows.{format}")
        with await self._transport.call_blocking(Path(data).open, "rb") as file:
            size = (await self._transport.call_blocking(os.fstat, file.fileno())).st_size  # a pipe reports size 0
            return await self._upload(path, pieces(self._transport, file), format_, size)

    @stream
    async def rows(self, name: str) -> AsyncGenerator[dict[str, Json], None]:
        """Yield the rows of a data set, fetched a page at a time."""
        first = 0
        while True:
            path = self._path(name, "rows") + query(first=first, limit=_PAGE_ROWS)
            page = await self._get(path, list[dict[str, Any]])
            for row in page:
                yield row
            if len(page) < _PAGE_ROWS:
                return
            first += len(page)

    @verb
    async def versions(self, name: str) -> list[DatasetReport]:
        """Return the kept versions of a data set, the newest first; `qa@2` is the name of version 2 of `qa`."""
        return await self._get(self._path(name, "versions"), list[DatasetReport])

    @verb
    async def scores(self, name: str, *, limit: int = 20) -> ScoreHistory:
        """Return the scores of stored evaluators in the newest completed jobs over a data set, the oldest job first.

        Args:
          name: Name of the data set.
          limit: Maximum number of jobs.
        """
        return await self._get(self._path(name, "scores") + query(limit=limit), ScoreHistory)

    @verb
    async def search(
        self,
        name: str,
        text: str = "",
        *,
        where: Sequence[str] = (),
        sort: str | None = None,
        first: int = 0,
        limit: int = 100,
    ) -> FoundRows:
        """Return the rows of a data set that contain the text and meet all conditions.

        Args:
          name: Name of the data set.
          text: Text that a value or the name of a column must contain; upper and lower case make no difference.
          where: Conditions on columns: `city=Rome`, `answer~paris` (contains), `meta.score>=0.5`.
          sort: Column to sort by; put `-` before it for descending order.
          first: Number of matching rows to skip.
          limit: Maximum number of rows.

        Raises:
          InvalidRequest: a condition is not valid.
        """
        asked = query(text=text, where=where, sort=sort, first=first, limit=limit)
        return await self._get(self._path(name, "search") + asked, FoundRows)

    @verb
    async def changes(self, name: str, to: str, *, first: int = 0, limit: int = 100) -> RowChanges:
        """Return which rows differ between two data sets.

        Args:
          name: Name of the data set.
          to: Name of the other data set, such as a later version `qa@3`.
          first: Number of differences to skip.
          limit: Maximum number of differences.
        """
        return await self._get(self._path(name, "changes") + query(to=to, first=first, limit=limit), RowChanges)

    @verb
    async def columns(self, name: str) -> list[ColumnFacts]:
        """Return what each column in a data set contains: kinds, missing and frequent values, ranges."""
        return await self._get(self._path(name, "columns"), list[ColumnFacts])

    @verb
    async def edit(
        self,
        name: str,
        *,
        set: dict[int, dict[str, Json]] | None = None,  # noqa: A002 - the name in the API
        remove: Sequence[int] = (),
        add: Iterable[dict[str, Json]] = (),
        add_from: dict[str, Json] | None = None,
        create: bool = False,
        version: int | None = None,
    ) -> DatasetReport:
        """Store an edited copy of a data set as its next version, and return this version.

        Args:
          name: Name of the data set.
          set: New rows, keyed by the number (from 0) of the row to replace.
          remove: Numbers of rows to remove.
          add: Rows to append.
          add_from: `{"job": id, "rows": [0, 7]}` or `{"evaluator": name, "traces": [12]}`: rows to append.
          create: Create the data set if it does not exist.
          version: Refuse the edit unless this is the newest version, because row numbers change between versions.

        Raises:
          NotFound: there is no such data set, job or trace.
          InUse: the data set has a newer version than `version`.
          InvalidRequest: there is no such row.
        """
        rows = {str(number): row for number, row in (set or {}).items()}
        body = {"set": rows, "remove": list(remove), "add": list(add), "add_from": add_from, "create": create}
        encoded = encode({**body, "version": version})
        return await self._transport.send(Call("PATCH", self._path(name), DatasetReport, encoded))

    async def _upload(
        self, path: str, body: AsyncGenerator[bytes, None], format_: Format, size: int = 0
    ) -> DatasetReport:
        headers = (("Content-Type", format_.media_type), *((("Content-Length", str(size)),) if size else ()))
        async with aclosing(body):
            return await self._transport.send(Call("POST", path, DatasetReport, body, headers))


async def pieces(transport: Transport, file: BinaryIO) -> AsyncGenerator[bytes, None]:
    """Yield the content of an open file in pieces."""
    while piece := await transport.call_blocking(file.read, _PIECE_BYTES):
        yield piece


async def _lines(rows: Iterable[dict[str, Json]]) -> AsyncGenerator[bytes, None]:
    lines = bytearray()
    for row in rows:
        lines += encode_line(row)
        if len(lines) >= _PIECE_BYTES:
            yield bytes(lines)
            lines.clear()
    if lines:
        yield bytes(lines)


class DataVerbs(NamedVerbs[TransportT, DataFile]):
    """Methods for evaluators' data files in your key's workspace.

    Files are named by their digest.

    Jobs that still need a deleted file fail.
    """

    _PATH = "/v1/data"
    _REPORT = DataFile

    @verb
    async def send(self, path: Path | str) -> DataFile:
        """Store a file, unless the host already has it. An evaluator names the file by its digest, in the field `data`.

        Args:
          path: Path of the file.

        Raises:
          TooLarge: the file is over the limit of the host.
          OverQuota: the workspace has reached its limit of stored bytes.
        """
        with await self._transport.call_blocking(Path(path).open, "rb") as file:
            digest = await self._transport.call_blocking(hashlib.file_digest, file, "sha256")
            with suppress(NotFound):
                return await self._get(self._path(f"sha256:{digest.hexdigest()}"), DataFile)
            file.seek(0)
            headers = (("Content-Type", "application/octet-stream"),)
            async with aclosing(pieces(self._transport, file)) as body:
                return await self._transport.send(Call("POST", self._PATH, DataFile, body, headers))


class SecretVerbs(NamedVerbs[TransportT, SecretReport]):
    """Methods for the secrets in your key's workspace. The host never shows a value again.

    Jobs that need a secret fail once it is deleted.
    """

    _PATH = "/v1/secrets"
    _REPORT = SecretReport

    @verb
    async def set(self, name: str, value: str) -> SecretReport:
        """Store a secret; an existing secret of that name is replaced.

        Args:
          name: Name by which targets, models and judges refer to the secret.
          value: 8 to 8192 characters of ASCII on one line.

        Raises:
          InvalidRequest: the name or the value is not valid.
        """
        call = Call("PUT", self._path(name), SecretReport, encode({"value": value}))
        return await self._transport.send(call)

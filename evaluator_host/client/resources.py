"""Client methods for stored resources: `client.evaluators`, `datasets`, `secrets`, `models`, `schedules`, `alerts`."""

import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, Final
from urllib.parse import urlencode

from evaluator_host.client.calls import Call, encode, given_cases, pasted_body, proof_body, query
from evaluator_host.client.jobs import job_body
from evaluator_host.client.transport import NamedVerbs, TransportT, stream, verb
from evaluator_host.datasets.format import Format
from evaluator_host.migration.answers import StoredMigration
from evaluator_host.model.evaluator import Evaluator, Json, Row
from evaluator_host.model.json_values import decode_json
from evaluator_host.schemas.alerts import AlertReport, AlertRule, ScheduleReport
from evaluator_host.schemas.jobs import EvaluatorScore, JobReport
from evaluator_host.schemas.labels import LabelPage, LabelQueue, LabelRow
from evaluator_host.schemas.models import DayUsage, ModelTest, RecordedAnswers, RegisteredModel
from evaluator_host.schemas.stored import (
    ColumnFacts,
    DatasetReport,
    EvaluatorReport,
    FoundRows,
    RowChanges,
    SecretReport,
    TraceReport,
)

_PAGE_ROWS: Final = 500
_PIECE_BYTES: Final = 1 << 16
_JSON_LINES: Final = (("Content-Type", "application/x-ndjson"),)
_IMPORT_BYTES: Final = 8 << 20  # of one request
_OF_THE_HOST: Final = ("operator", "created_at")


class EvaluatorVerbs(NamedVerbs[TransportT, EvaluatorReport]):
    """Methods for the named evaluators in the workspace of the caller's key. Jobs keep copies of those they ran."""

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
          description: Description for people.
          sampling: Share of live traces to score, 0 to 1.
          tags: Words to find it by: `all(tag="tone")`.
          message: Why this version is made.
          force: Whether one that does not load is stored too.
          cases: Rows with `expect`, and `case`, a name; None keeps those of the newest version.
          require_cases: Whether it is refused when a case does not hold.

        Raises:
          NameTaken: there is one of that name.
          InvalidRequest: it does not load; `problems` says why.
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
        """Store the next version of an evaluator. An evaluator that equals the newest version adds none.

        Args:
          name: Name of the evaluator.
          evaluator: The code and its settings.
          description: For people; None keeps it as it is.
          sampling: Share of live traces to score, 0 to 1; None keeps it as it is.
          tags: Words to find it by; None keeps them as they are.
          message: Why this version is made.
          force: Whether one that does not load is stored too.
          cases: Rows with `expect`, and `case`, a name; None keeps those of the newest version.
          require_cases: Whether it is refused when a case does not hold.

        Raises:
          InvalidRequest: it does not load; `problems` says why.
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
          version: From 1; None for the newest.

        Raises:
          NotFound: there is no such evaluator or version.
        """
        at = "" if version is None else f"/versions/{version}"
        return await self._transport.send(Call("GET", self._path(name) + at, EvaluatorReport))

    @verb
    async def describe(
        self,
        name: str,
        *,
        description: str | None = None,
        sampling: float | None = None,
        tags: Sequence[str] | None = None,
    ) -> EvaluatorReport:
        """Change description, sampling rate or tags without a new version; return the newest one.

        Args:
          name: Name of the evaluator.
          description: For people; None keeps it as it is.
          sampling: Share of live traces to score, 0 to 1; None keeps it as it is.
          tags: Words to find it by; None keeps them as they are.
        """
        body = {"description": description, "sampling": sampling, "tags": tags}
        return await self._transport.send(Call("PATCH", self._path(name), EvaluatorReport, encode(body)))

    @verb
    async def all(self, *, tag: str | None = None) -> list[EvaluatorReport]:
        """Return the newest version of each evaluator, by name, with its last job.

        Args:
          tag: Only those that have this tag.
        """
        return await self._transport.send(Call("GET", self._PATH + query(tag=tag), list[EvaluatorReport]))

    @verb
    async def versions(self, name: str) -> list[EvaluatorReport]:
        """Return every version of an evaluator, the newest first."""
        path = self._path(name, "versions")
        return await self._transport.send(Call("GET", path, list[EvaluatorReport]))

    @verb
    async def scores(self, name: str, *, dataset: str | None = None, limit: int = 100) -> list[EvaluatorScore]:
        """Return what the versions of an evaluator scored in completed jobs, the newest first: its trend.

        Args:
          name: Name of the evaluator.
          dataset: Only jobs over the data set of this name.
          limit: Jobs, at most.
        """
        path = self._path(name, "scores") + query(dataset=dataset, limit=limit)
        return await self._transport.send(Call("GET", path, list[EvaluatorScore]))

    @verb
    async def traces(
        self, name: str, *, status: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[TraceReport]:
        """Return scored traces of live traffic for an evaluator, the newest first.

        Args:
          name: Name of the evaluator.
          status: `scored` or `failed`; None for both.
          limit: Traces, at most.
          before: `number` of the last trace of the page before.
        """
        path = self._path(name, "traces") + query(status=status, limit=limit, before=before)
        return await self._transport.send(Call("GET", path, list[TraceReport]))

    @verb
    async def migrate(
        self,
        *names: str,
        rows: Iterable[Row] | None = None,
        dataset: str | None = None,
        mapping: Mapping[str, str] | None = None,
        job: str | None = None,
        dry_run: bool = True,
        force: bool = False,
        adapt: bool = False,
    ) -> list[StoredMigration]:
        """Migrate legacy evaluators: report what each would become, or store the next versions.

        Args:
          names: Names of evaluators; none for every legacy one.
          rows: Rows of the proof; without them and without a data set, the host makes some up.
          dataset: Name of a data set whose rows are those of the proof.
          mapping: Row fields by column or template of the data set.
          job: Id of a job whose rows are those of the proof.
          dry_run: Whether no version is made.
          force: Whether versions are made of those without proof too.
          adapt: Whether code that cannot be rewritten is kept, and a function added that calls it.

        Raises:
          NotFound: there is no such evaluator, data set or job.
        """
        proof = proof_body(rows, dataset, mapping, job=job)
        body = {"names": names, **proof, "dry_run": dry_run, "force": force, "adapt": adapt}
        call = Call("POST", "/v1/evaluators/migrate", list[StoredMigration], encode(body))
        return await self._transport.send(call)


class DatasetVerbs(NamedVerbs[TransportT, DatasetReport]):
    """Methods for the data sets in the workspace of the caller's key. Jobs keep the rows of a deleted one."""

    _PATH = "/v1/datasets"
    _REPORT = DatasetReport

    @verb
    async def upload(
        self,
        name: str,
        data: Path | str | Iterable[dict[str, Json]],
        *,
        replace: bool = False,
        format: str | None = None,  # noqa: A002 - the word of the option and of reports
    ) -> DatasetReport:
        """Store rows as a named data set. Streams, so that the data is never whole in memory.

        Args:
          name: Name of the data set.
          data: Path of a file (.jsonl .csv .tsv .json .parquet .xlsx), or rows: `[{"question": …, "answer": …}]`.
          replace: Whether it replaces the data set of that name, if there is one.
          format: Format of the file: `csv`, …; None: by its suffix.

        Raises:
          NameTaken: there is one of that name, and `replace` is false.
          InvalidRequest: the file is not of its format, or there is no row in it.
          TooLarge: it has more bytes or rows than the host takes.
        """
        path = f"/v1/datasets{query(name=name, replace=replace)}"
        if not isinstance(data, Path | str):
            return await self._upload(path, _lines(data), Format.JSONL)
        format_ = Format.of_name(str(data) if format is None else f"rows.{format}")
        with await self._transport.call_blocking(Path(data).open, "rb") as file:
            size = (await self._transport.call_blocking(os.fstat, file.fileno())).st_size  # 0 of a pipe
            return await self._upload(path, self._pieces(file), format_, size)

    @stream
    async def rows(self, name: str) -> AsyncGenerator[dict[str, Json], None]:
        """Yield the rows of a data set, fetched a page at a time."""
        first = 0
        while True:
            path = self._path(name, "rows") + query(first=first, limit=_PAGE_ROWS)
            page = await self._transport.send(Call("GET", path, list[dict[str, Any]]))
            for row in page:
                yield row
            if len(page) < _PAGE_ROWS:
                return
            first += len(page)

    @verb
    async def versions(self, name: str) -> list[DatasetReport]:
        """Return the kept versions of a data set, the newest first; `qa@2` names one."""
        return await self._transport.send(Call("GET", self._path(name, "versions"), list[DatasetReport]))

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
        """Return rows of a data set that have a text and meet all conditions.

        Args:
          name: Name of the data set.
          text: A text in a value or a column's name, in any case.
          where: Conditions on columns: `city=Rome`, `answer~paris` (contains), `meta.score>=0.5`.
          sort: A column; `-` before it: descending.
          first: How many of the found rows to leave out.
          limit: Rows, at most.

        Raises:
          InvalidRequest: a condition is none.
        """
        pairs = [("text", text), ("first", first), ("limit", limit), *(("where", one) for one in where)]
        asked = urlencode([*pairs, *([("sort", sort)] if sort else [])])
        return await self._transport.send(Call("GET", self._path(name, f"search?{asked}"), FoundRows))

    @verb
    async def changes(self, name: str, to: str, *, first: int = 0, limit: int = 100) -> RowChanges:
        """Return which rows of another data set differ from those of this one.

        Args:
          name: The data set.
          to: The other, such as a later version `qa@3`.
          first: How many of the differences to leave out.
          limit: How many to return at most.
        """
        asked = urlencode({"to": to, "first": first, "limit": limit})
        return await self._transport.send(Call("GET", self._path(name, f"changes?{asked}"), RowChanges))

    @verb
    async def columns(self, name: str) -> list[ColumnFacts]:
        """Return what the columns of a data set hold: kinds, missing and frequent values, ranges."""
        return await self._transport.send(Call("GET", self._path(name, "columns"), list[ColumnFacts]))

    @verb
    async def edit(
        self,
        name: str,
        *,
        set: dict[int, dict[str, Json]] | None = None,  # noqa: A002 - the field of the API
        remove: Sequence[int] = (),
        add: Iterable[dict[str, Json]] = (),
        add_from: dict[str, Json] | None = None,
        create: bool = False,
        version: int | None = None,
    ) -> DatasetReport:
        """Store an edited copy of a data set as its next version, and return it.

        Args:
          name: Name of the data set.
          set: New rows by the number of the old one, from 0.
          remove: Numbers of rows to remove.
          add: Rows to append.
          add_from: `{"job": id, "rows": [0, 7]}` or `{"evaluator": name, "traces": [12]}`: rows to append.
          create: Make the data set if there is none of that name.
          version: Refuse the edit unless this is the newest version: numbers of rows are those of a version.

        Raises:
          NotFound: there is no such data set, job or trace.
          InUse: it has a newer version than `version`.
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

    async def _pieces(self, file: BinaryIO) -> AsyncGenerator[bytes, None]:
        while piece := await self._transport.call_blocking(file.read, _PIECE_BYTES):
            yield piece


async def _lines(rows: Iterable[dict[str, Json]]) -> AsyncGenerator[bytes, None]:
    for row in rows:
        yield encode(row) + b"\n"


class SecretVerbs(NamedVerbs[TransportT, SecretReport]):
    """Methods for the secrets in the workspace of the caller's key. The host never shows a value again.

    Jobs that still need a deleted one fail.
    """

    _PATH = "/v1/secrets"
    _REPORT = SecretReport

    @verb
    async def set(self, name: str, value: str) -> SecretReport:
        """Store a secret; an existing secret of that name is replaced.

        Args:
          name: What targets and judges name it by.
          value: 8 to 8192 characters of ASCII on one line.

        Raises:
          InvalidRequest: the name or the value cannot be one.
        """
        call = Call("PUT", self._path(name), SecretReport, encode({"value": value}))
        return await self._transport.send(call)


class ScheduleVerbs(NamedVerbs[TransportT, ScheduleReport]):
    """Methods for the schedules in the workspace of the caller's key. Deleting a schedule keeps its jobs."""

    _PATH = "/v1/schedules"
    _REPORT = ScheduleReport

    @verb
    async def create(self, /, name: str, cron: str, *, timezone: str = "UTC", **job: Any) -> ScheduleReport:
        """Make a job at each time of a cron expression.

        Args:
          name: Name of the schedule.
          cron: `0 7 * * 1` is every Monday at 7.
          timezone: Time zone of `cron`, such as `Europe/Berlin`.
          job: `evaluators`, `dataset`, … as in `jobs.create`.

        Raises:
          NameTaken: there is one of that name.
          NotFound: there is no such evaluator, data set or secret.
          InvalidRequest: a field is not valid; `problems` says why.
        """
        body = {"name": name, "cron": cron, "timezone": timezone, "job": job_body(**job)}
        return await self._transport.send(Call("POST", "/v1/schedules", ScheduleReport, encode(body)))

    @verb
    async def change(
        self, name: str, *, paused: bool | None = None, cron: str | None = None, timezone: str | None = None
    ) -> ScheduleReport:
        """Pause, resume or change a schedule, and return it; None keeps a field.

        Args:
          name: Name of the schedule.
          paused: Whether it runs nothing for now.
          cron: Another expression.
          timezone: Another time zone.

        Raises:
          InvalidRequest: a field is not valid.
        """
        body = encode({"paused": paused, "cron": cron, "timezone": timezone})
        return await self._transport.send(Call("PATCH", self._path(name), ScheduleReport, body))

    @verb
    async def run(self, name: str) -> JobReport:
        """Make the job of a schedule now, and return it."""
        return await self._transport.send(Call("POST", self._path(name, "run"), JobReport))


class AlertVerbs(NamedVerbs[TransportT, AlertReport]):
    """Methods for the alerts in the workspace of the caller's key, reported with their last messages."""

    _PATH = "/v1/alerts"
    _REPORT = AlertReport

    @verb
    async def create(self, name: str, rule: AlertRule) -> AlertReport:
        """Tell a webhook when a figure goes out of bounds.

        Args:
          name: Name of the alert.
          rule: What it watches, its bound and its webhook.

        Raises:
          NameTaken: there is one of that name.
          NotFound: there is no such job, schedule, evaluator or secret.
          InvalidRequest: a field is not valid; `problems` says why.
        """
        return await self._transport.send(
            Call("POST", "/v1/alerts", AlertReport, encode({"name": name, **asdict(rule)}))
        )

    @verb
    async def pause(self, name: str, *, paused: bool = True) -> AlertReport:
        """Pause an alert, or resume it with `paused=False`.

        Args:
          name: Name of the alert.
          paused: Whether it watches nothing for now.
        """
        return await self._transport.send(Call("PATCH", self._path(name), AlertReport, encode({"paused": paused})))

    @verb
    async def test(self, name: str) -> AlertReport:
        """Send a test message; the newest delivery says how that went."""
        return await self._transport.send(Call("POST", self._path(name, "test"), AlertReport))


class LabelVerbs(NamedVerbs[TransportT, LabelQueue]):
    """Methods for the label queues in the workspace of the caller's key. Deleting one deletes its labels."""

    _PATH = "/v1/label-queues"
    _REPORT = LabelQueue

    @verb
    async def create(self, /, name: str, **given: Any) -> LabelQueue:
        """Make a queue of rows that wait for labels.

        Args:
          name: Name of the queue.
          given: `job` or `dataset`, `kind`, `choices`, `rows`, `limit` and more, as in `POST /v1/label-queues`.

        Raises:
          NameTaken: there is one of that name.
          NotFound: there is no such job, evaluator or data set.
          InvalidRequest: a field is not valid; `problems` says why.
        """
        return await self._transport.send(Call("POST", "/v1/label-queues", LabelQueue, encode({"name": name, **given})))

    @verb
    async def all(self, *, job: str | None = None) -> list[LabelQueue]:
        """Return the queues, newest first.

        Args:
          job: Id of a job: only queues whose labels count for it.
        """
        return await self._transport.send(Call("GET", "/v1/label-queues" + query(job=job), list[LabelQueue]))

    @verb
    async def next(self, name: str, *, by: str | None = None) -> LabelRow | None:
        """Return a row that waits, held for this person for 10 minutes; None when none is left.

        Args:
          name: Name of the queue.
          by: The person; a host with keys takes the key's name.
        """
        call = Call("POST", self._path(name, "next"), LabelRow, encode({"by": by}))
        return await self._transport.send(call)

    @verb
    async def rows(self, name: str, *, state: str | None = None, after: int = -1, limit: int = 100) -> LabelPage:
        """Return rows of a queue by number, without their data.

        Args:
          name: Name of the queue.
          state: `waiting`, `labelled` or `skipped`; None for all.
          after: `next_after` of the previous page.
          limit: At most so many.
        """
        path = self._path(name, "rows") + query(state=state, after=after, limit=limit)
        return await self._transport.send(Call("GET", path, LabelPage))

    @verb
    async def row(self, name: str, index: int) -> LabelRow:
        """Return a row of a queue with its data.

        Args:
          name: Name of the queue.
          index: Number of the row.
        """
        return await self._transport.send(Call("GET", self._path(name, f"rows/{index}"), LabelRow))

    @verb
    async def set(
        self, name: str, index: int, label: Json, *, skip: bool = False, note: str = "", by: str | None = None
    ) -> LabelQueue:
        """Label a row, skip it, or let it wait again, and return the queue after it.

        Args:
          name: Name of the queue.
          index: Number of the row.
          label: true or false, a number, or a choice; None lets it wait again.
          skip: Leave the row out.
          note: Text for people.
          by: The person; a host with keys takes the key's name.

        Raises:
          InvalidRequest: the queue takes no such label.
        """
        body = encode({"label": label, "skip": skip, "note": note, "by": by})
        return await self._transport.send(Call("PUT", self._path(name, f"rows/{index}"), LabelQueue, body))


class ModelVerbs(NamedVerbs[TransportT, RegisteredModel]):
    """Methods for the models that evaluators may be granted, in the workspace of the caller's key.

    Evaluators that were granted a deleted one are refused from then on.
    """

    _PATH = "/v1/models"
    _REPORT = RegisteredModel

    @verb
    async def add(self, model: RegisteredModel) -> RegisteredModel:
        """Register a model.

        Args:
          model: Name, URL, kind, name at the provider, secret and prices.

        Raises:
          NameTaken: there is one of that name.
          NotFound: there is no such secret.
          InvalidRequest: a field is not valid, or the operator allows no model on that host.
        """
        body = {name: value for name, value in asdict(model).items() if name not in _OF_THE_HOST and value != ""}
        return await self._transport.send(Call("POST", "/v1/models", RegisteredModel, encode(body)))

    @verb
    async def change(self, name: str, /, **changes: Json) -> RegisteredModel:
        """Change fields of a model, from its next request on, and return it. What it was used for keeps its cost.

        Args:
          name: Name of the model.
          changes: url, kind, model, secret, input_price, output_price, timeout_s, retries; None for the default.

        Raises:
          NotFound: there is no model of that name, or no such secret.
          InvalidRequest: a field is not valid, the model is the operator's, or the operator allows none on that host.
        """
        return await self._transport.send(Call("PATCH", self._path(name), RegisteredModel, encode(changes)))

    @verb
    async def test(self, name: str) -> ModelTest:
        """Ask a model one short question, and return how it answered."""
        return await self._transport.send(Call("POST", self._path(name, "test"), ModelTest))

    @verb
    async def usage(self, *, days: int = 30) -> list[DayUsage]:
        """Return what the workspace used of each model by day (UTC), the newest day first.

        Args:
          days: How many days, today included.
        """
        return await self._transport.send(Call("GET", f"/v1/model-usage{query(days=days)}", list[DayUsage]))

    @verb
    async def answers(self) -> RecordedAnswers:
        """Return how many answers are recorded."""
        return await self._transport.send(Call("GET", "/v1/model-answers", RecordedAnswers))

    @stream
    async def export_answers(self) -> AsyncGenerator[dict[str, Json], None]:
        """Yield the recorded answers: `{"digest", "model", "created_at", "request", "answer"}`."""
        rest = b""
        async with aclosing(self._transport.download(Call("GET", "/v1/model-answers/export", NoneType))) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield decode_json(line)

    @verb
    async def import_answers(self, answers: Iterable[dict[str, Json]]) -> RecordedAnswers:
        """Record the answers of an export, in place of those of the same requests.

        Args:
          answers: As `export_answers` yields them.

        Raises:
          InvalidRequest: one is no recorded answer; those before it may be recorded.
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
          model: Only those of this model; None for all.
        """
        await self._transport.send(Call("DELETE", f"/v1/model-answers{query(model=model)}", NoneType))

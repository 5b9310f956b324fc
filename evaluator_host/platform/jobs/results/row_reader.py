"""Reads the rows of a job with their results: in pages, by a search, or all of them."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice, takewhile
from typing import Final

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.engine.system.memory import Reservation
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.datasets.files import DECODED_PER_BYTE, RowsFolder
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.datasets.queries import Condition, has_text
from evaluator_host.platform.datasets.rendering import mapped_rows
from evaluator_host.platform.datasets.table import Datasets
from evaluator_host.platform.jobs.output_table import Outputs
from evaluator_host.platform.jobs.outputs import answered, request_log
from evaluator_host.platform.jobs.queue import StoredOutput, StoredResult
from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.platform.jobs.results.row_diffs import row_diff
from evaluator_host.platform.jobs.results.row_previews import decode_result, row_preview
from evaluator_host.platform.jobs.results.table import PAGE_BYTES, Filter, Results, Sort
from evaluator_host.platform.jobs.row_source import RowChunk, RowSource
from evaluator_host.platform.jobs.spec import spec_from_json
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.types.errors import InvalidRequest, LimitExceeded, NotFound
from evaluator_host.types.evaluator import Json, Row
from evaluator_host.types.jobs import Failures
from evaluator_host.types.json_values import decode_json, encode_json, memory_bytes
from evaluator_host.types.results import JobRow, JobRowDetail, JobRowPage, RowDiff
from evaluator_host.types.stored import DatasetFacts

# decoded copies of a row in memory when it is shown alone: the row of the results, the record, and the mapped row
_COPIES: Final = 3

PART_BYTES: Final = 4 << 20  # bytes of results, rows or answers that are written to a download at a time
DOWNLOAD_BYTES: Final = 6 * PART_BYTES  # bytes of memory that a download takes while it is read
_PAGES_AT_ONCE: Final = 4  # pages and parts of downloads that all workspaces together may read at a time
_OF_RESULT: Final = ("label", "reason", "value", "error", "logs")

_SEARCHED: Final = 500
_SEARCHES: Final = 10


@dataclass(frozen=True, slots=True)
class _Sought:
    text: str
    conditions: Sequence[Condition]

    @classmethod
    def of(cls, text: str | None, where: Sequence[str]) -> "_Sought | None":
        return cls(text or "", [Condition.parse(one) for one in where]) if text or where else None

    def matching(self, rows: Iterable[JobRow]) -> list[JobRow]:
        return [row for row in rows if self.is_in(row)]

    def is_in(self, row: JobRow) -> bool:
        searched = [row.row, row.output, *(row.result.get(name) for name in _OF_RESULT)]
        return (not self.text or has_text(searched, self.text)) and all(one.holds(row.row) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The results that a page should have, and the memory that it may take."""

    which: Filter
    sort: Sort
    cursor: str | None
    limit: int
    memory: Reservation | None


@dataclass(frozen=True, slots=True)
class _Part:
    """Results that are read together, before they are decoded.

    Attributes:
      results: The results, in order.
      answers: The model's answers to their rows, keyed by row number.
      weights: Bytes of memory that each result takes with the answer to its row, once decoded.
      rows: Bytes of memory that each row takes, once decoded.
    """

    results: list[StoredResult]
    answers: dict[int, StoredOutput]
    weights: list[int]
    rows: dict[int, int]

    def memory_bytes(self, places: Iterable[int] | None = None) -> int:
        """Return how many bytes of memory the results at `places` take with their rows. None stands for all results."""
        chosen = list(range(len(self.results)) if places is None else places)
        numbers = {self.results[place].row for place in chosen}
        return sum(self.weights[place] for place in chosen) + sum(self.rows[number] for number in numbers)


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads the rows of jobs with their results.

    Every method that takes a `job_id` raises `NotFound` if there is no such job.
    """

    jobs: Jobs
    results: Results
    datasets: Datasets
    folder: RowsFolder
    processes: LimitedProcesses
    outputs: Outputs
    _: KW_ONLY
    turns: Turns = field(default_factory=lambda: Turns(_PAGES_AT_ONCE))

    async def page(
        self,
        workspace_id: str,  # owner of the job
        job_id: str,
        which: Filter,  # filter of results; `evaluator` sets its position
        *,
        evaluator: str | None = None,  # label or name of one of the job's evaluators; None for all of them
        sort: Sort = Sort.ROW,  # order of the rows
        cursor: str | None = None,  # `next_cursor` of the previous page
        limit: int = 100,  # maximum number of rows on the page
        # only rows with this text in a value. One call searches 5,000 results, so a page may have fewer rows than
        # `limit`, or none, although there is a next page
        text: str | None = None,
        where: Sequence[str] = (),  # only rows that meet these conditions on columns; limited like `text`
        total: bool = False,  # whether to also count all rows that match the filter, whatever their text and columns
        # whether to return short forms (`row_preview`), which need only the beginning of a large result
        brief: bool = False,
        memory: Reservation | None = None,  # reserves the memory that the page takes
    ) -> JobRowPage:
        """Return a page of a job's rows with their results. Rows, results and answers have at most 16 MB each.

        Raises:
          NotFound: there is no such job, or it has no such evaluator.
          InvalidRequest: the cursor comes from another query, or a condition is not valid.
          Busy: `memory` has no room for the page.
        """
        sought = _Sought.of(text, where)
        job = await self.jobs.get_job(workspace_id, job_id)
        evaluators = await self.jobs.evaluators(job_id)
        which = _at(which, evaluators, evaluator, rows=job.rows)
        asked = _Asked(which, sort, cursor, limit, memory)
        async with self.turns.turn(workspace_id):
            count = await self.results.count(job_id, which) if total else None
            if sought is not None:
                rows, next_cursor = await self._searched(job, evaluators, sought, asked)
            else:
                rows, next_cursor = await self._paged(job, evaluators, asked, brief=brief)
            rows = await self._with_made_outputs(job, rows)
            if brief:
                rows = await asyncio.to_thread(lambda: [row_preview(row) for row in rows])
        return JobRowPage(tuple(rows), next_cursor, count)

    async def _with_made_outputs(self, job: Job, rows: list[JobRow]) -> list[JobRow]:
        """Return the rows with outputs filled in. If the mapping has a template for outputs, render it."""
        templates = spec_from_json(job.request).parse_mapping().templates
        mapping = Mapping(tuple((name, source) for name, source in templates if name == "outputs"))
        if not mapping.sources or not rows or self._asks(job):
            return rows
        records = {row.index: row.row for row in rows}
        lines = await asyncio.to_thread(lambda: [encode_json(record) + b"\n" for record in records.values()])
        try:
            made = await mapped_rows(self.processes, job.workspace_id, lines, mapping)
        except LimitExceeded:
            return rows
        outputs = {index: one.outputs for index, one in zip(records, made, strict=True) if isinstance(one, Row)}
        return [replace(row, output=outputs.get(row.index)) for row in rows]

    async def one(
        self, workspace_id: str, job_id: str, index: int, *, memory: Reservation | None = None
    ) -> JobRowDetail:
        """Return one row: its record in the data set, the row mapped from this record, and all evaluators' results.

        Raises:
          NotFound: there is no such job, or it has no such row.
          Busy: `memory` has no room for the row.
        """
        job = await self.jobs.get_job(workspace_id, job_id)
        if not 0 <= index < job.rows:
            raise NotFound(f"the job has no row {index}; its rows are 0 to {job.rows - 1}")
        evaluators = await self.jobs.evaluators(job_id)
        part = await self._part(job, await self.results.of_row(job_id, index))
        if memory is not None:
            memory.add(_COPIES * part.memory_bytes())
        results = await self._rows(job, evaluators, part)
        record = (await asyncio.to_thread(self.folder.some, job.dataset_id, [index]))[index]
        made = await self._source(job).row(index)
        if self._asks(job):
            chunk = RowChunk([index], [made])
            asked = [row async for part in answered(chunk, self.outputs, job_id) for row in part.rows]
            made = asked[0] if asked else made
        return JobRowDetail(index, record, _given(made) if isinstance(made, Row) else None, tuple(results))

    async def diff(
        self,
        workspace_id: str,
        job_ids: tuple[str, str],
        labels: tuple[str, str],
        index: int,
        *,
        memory: Reservation | None = None,
    ) -> RowDiff:
        """Return the differences between two jobs in one row: in its outputs, and in an evaluator's results for it.

        `labels` are the evaluator's labels in the two jobs.

        Raises:
          NotFound: a job has no such row.
          Busy: `memory` has no room for the rows.
        """
        before, after = [await self.one(workspace_id, job_id, index, memory=memory) for job_id in job_ids]
        return await asyncio.to_thread(row_diff, before, after, labels)

    async def _paged(
        self, job: Job, evaluators: list[JobEvaluator], asked: _Asked, *, brief: bool
    ) -> tuple[list[JobRow], str | None]:
        found, following = await self.results.page(
            job.id, asked.which, sort=asked.sort, cursor=asked.cursor, limit=asked.limit, brief=brief
        )
        part = await self._part(job, found)
        if asked.memory is not None:
            asked.memory.reserve(part.memory_bytes())
        if len(part.results) < len(found):
            following = self.results.after(part.results[-1], asked.sort)
        return await self._rows(job, evaluators, part), following

    async def _searched(
        self, job: Job, evaluators: list[JobEvaluator], sought: _Sought, asked: _Asked
    ) -> tuple[list[JobRow], str | None]:
        sort, cursor, limit = asked.sort, asked.cursor, asked.limit
        rows: list[JobRow] = []
        held = 0
        for _ in range(_SEARCHES):
            found, following = await self.results.page(job.id, asked.which, sort=sort, cursor=cursor, limit=_SEARCHED)
            part = await self._part(job, found)
            if asked.memory is not None:
                asked.memory.reserve(held + part.memory_bytes())
            if len(part.results) < len(found):
                following = self.results.after(part.results[-1], sort)
            read = await self._rows(job, evaluators, part)
            matching = (place for place, row in enumerate(read) if sought.is_in(row))
            at = await asyncio.to_thread(list, islice(matching, limit - len(rows)))
            rows += [read[place] for place in at]
            del read, matching  # frees memory, because the next part may need as much
            if len(rows) == limit:
                return rows, self.results.after(found[at[-1]], sort)
            cursor = following
            held += part.memory_bytes(at)
            if cursor is None or held > DECODED_PER_BYTE * PAGE_BYTES:
                break
        return rows, cursor

    async def every(
        self,
        workspace_id: str,
        job_id: str,
        which: Filter,
        *,
        evaluator: str | None = None,
        text: str | None = None,
        where: Sequence[str] = (),
        first: int = 0,
    ) -> AsyncGenerator[list[JobRow], None]:
        """Yield all rows that match, starting at row `first`, in order, in parts of a few MB.

        The filters are the same as those of `page`.

        Raises:
          NotFound: there is no such job, or it has no such evaluator.
          InvalidRequest: a condition is not valid.
        """
        sought = _Sought.of(text, where)
        job = await self.jobs.get_job(workspace_id, job_id)
        evaluators = await self.jobs.evaluators(job_id)
        which = _at(which, evaluators, evaluator, rows=job.rows)
        cursor = self.results.after_row(first - 1) if first else None
        while True:
            async with self.turns.turn(workspace_id):
                found, cursor = await self.results.page(job_id, which, cursor=cursor, limit=500, most_bytes=PART_BYTES)
                part = await self._part(job, found, most_bytes=PART_BYTES)
                rows = await self._rows(job, evaluators, part)
                rows = rows if sought is None else await asyncio.to_thread(sought.matching, rows)
            yield rows
            if len(part.results) < len(found):
                cursor = self.results.after(part.results[-1], Sort.ROW)
            if cursor is None:
                return

    async def closing_line(self, workspace_id: str, job_id: str) -> bytes:
        """Return the last line of a file with all rows: data for `merge` if the job scores a shard, otherwise `b""`."""
        job = await self.jobs.get_job(workspace_id, job_id)
        spec = spec_from_json(job.request)
        zero = spec.config.failures is Failures.ZERO
        if spec.config.shard is None:
            return b""
        return spec.shard.closing_line(rows=job.rows, bad_lines=0, failures_are_zero=zero)

    async def given(self, workspace_id: str, job_id: str, *, limit: int) -> list[Row]:
        """Return the first rows of a job as its evaluators received them, including the model's outputs and traces.

        Rows that could not be mapped, or that the model has not answered, are left out.
        """
        job = await self.jobs.get_job(workspace_id, job_id)
        async with aclosing(self._source(job, limit).chunks(bytearray())) as chunks:
            chunk = await anext(chunks, RowChunk([], []))
        found = list(chunk.rows)
        if chunk.numbers and self._asks(job):
            found = [row async for part in answered(chunk, self.outputs, job_id) for row in part.rows]
        return [row for row in found if isinstance(row, Row)]

    async def facts(self, workspace_id: str, job_id: str) -> DatasetFacts:
        """Return the facts about a job's data set."""
        job = await self.jobs.get_job(workspace_id, job_id)
        return (await self.datasets.get_dataset(workspace_id, job.dataset_id)).facts

    async def has_outputs(self, workspace_id: str, job_id: str) -> bool:
        """Return whether a model produces the outputs of a job."""
        return self._asks(await self.jobs.get_job(workspace_id, job_id))

    def _source(self, job: Job, count: int | None = None) -> RowSource:
        mapping = spec_from_json(job.request).parse_mapping()
        return RowSource(self.folder, self.processes, job, mapping=mapping, count=count)

    def _asks(self, job: Job) -> bool:
        return spec_from_json(job.request).target is not None

    async def _part(self, job: Job, results: list[StoredResult], *, most_bytes: int = PAGE_BYTES) -> _Part:
        """Return these results with their sizes in memory.

        Leave out the last results if their rows or answers exceed `most_bytes`.
        """
        answers: dict[int, StoredOutput] = {}
        if self._asks(job):
            sizes = await self.outputs.sizes(job.id, {one.row for one in results})
            results = _within(results, sizes, most_bytes)
            answers = await self.outputs.of_rows(job.id, {one.row for one in results})

        def weighed() -> _Part:
            rows = self.folder.weigh(job.dataset_id, {one.row for one in results}, most_bytes=most_bytes)
            if results and results[0].row not in rows:
                rows = self.folder.weigh(job.dataset_id, [results[0].row])
            kept = list(takewhile(lambda one: one.row in rows, results))
            return _Part(kept, answers, [_memory_bytes(one, answers.get(one.row)) for one in kept], rows)

        return await asyncio.to_thread(weighed)

    async def _rows(self, job: Job, evaluators: list[JobEvaluator], part: _Part) -> list[JobRow]:
        labels = {one.position: one.label for one in evaluators}

        def read() -> list[JobRow]:
            records = self.folder.some(job.dataset_id, {one.row for one in part.results})
            rows = (JobRow(one.row, labels[one.position], records[one.row], decode_result(one)) for one in part.results)
            return [_with_answer(row, part.answers.get(row.index)) for row in rows]

        return await asyncio.to_thread(read)  # decoding some megabytes must not block the event loop


def _memory_bytes(one: StoredResult, answer: StoredOutput | None) -> int:
    texts = (one.result, answer and answer.output, answer and answer.log)
    return sum(memory_bytes(text.encode()) for text in texts if text)


def _within(results: list[StoredResult], sizes: dict[int, int], most_bytes: int) -> list[StoredResult]:
    """Return the first results, up to a total of `most_bytes` for the answers to their rows.

    The list has at least one result.
    """
    held = 0
    seen: set[int] = set()
    for place, one in enumerate(results):
        held += 0 if one.row in seen else sizes.get(one.row, 0)
        seen.add(one.row)
        if place and held > most_bytes:
            return results[:place]
    return results


def _given(row: Row) -> dict[str, Json]:
    given: dict[str, Json] = {"inputs": row.inputs, "outputs": row.outputs, "trace": row.trace}
    more = {"variables": row.variables, "criteria": row.criteria}
    return given | {name: value for name, value in more.items() if value is not None}


def _with_answer(row: JobRow, stored: StoredOutput | None) -> JobRow:
    if stored is None:
        return row
    output = decode_json(stored.output.encode()) if stored.output is not None else None
    return replace(row, output=output, request=request_log(stored))


def _at(which: Filter, evaluators: list[JobEvaluator], wanted: str | None, *, rows: int) -> Filter:
    if which.rows is not None:  # a database refuses numbers that its column cannot hold
        which = replace(which, rows=tuple(row for row in which.rows if 0 <= row < rows))
    if wanted is None:
        return which
    found = [one.position for one in evaluators if wanted in (one.label, one.name)]
    if not found:
        labels = ", ".join(one.label for one in evaluators)
        raise NotFound(f"the job has no evaluator {wanted[:80]}; it has {labels}")
    if len(found) > 1:
        labels = ", ".join(one.label for one in evaluators if one.position in found)
        raise InvalidRequest(f"the job has several evaluators named {wanted[:80]}; name one of {labels}")
    return replace(which, position=found[0])

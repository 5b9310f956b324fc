"""Streams all rows of a job as a file: NDJSON with whole results, CSV and Parquet with flat columns.

The columns of a flat file are known before its first row: the columns of the data set, the metrics of the job, and
`output` for a job with a target. While a job runs, a row may have metrics that no row had when the file was begun;
these are in the column `metrics`, as JSON. Every file has this column, so that a download that begins while the job
runs can continue after its end. If the data set has more columns than the host lists, the others are in the column
`row`, as JSON. In CSV, text that spreadsheets run as a formula gets an apostrophe in
front, as in spreadsheets themselves.
"""

import asyncio
import csv
import io
import re
from array import array
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from evaluator_host.engine.system.extras import extra
from evaluator_host.platform.datasets.files import MORE_COLUMNS
from evaluator_host.platform.jobs.results.aggregate import as_float
from evaluator_host.platform.jobs.results.results import JobResults
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.results.table import Filter
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.formats import Format
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.results import JobRow

# `;` and tabs count as separators too, because in many countries cells are not separated by commas
_FORMULA: Final = re.compile(r"\A(?=[\t\r]|[ \xa0]*[=+\-@])|(?<=[;\t])(?=[ \xa0]*[=+\-@])|(?<=[\r\n])(?=[ \xa0]*[=@])")
_FIXED: Final = ("index", "evaluator", "status", "score", "passed", "label", "reason", "error", "message", "run_ms")


@dataclass(frozen=True, slots=True)
class JobExports:
    """Writes the results of jobs as files."""

    results: JobResults
    rows: RowReader

    async def write(
        self,
        workspace_id: str,
        job_id: str,
        format_: Format,
        which: Filter,
        *,
        evaluator: str | None = None,
        text: str | None = None,
        where: Sequence[str] = (),
        first: int = 0,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a file with the rows of a job that match, starting at row `first`.

        The filters are the same as those of `RowReader.page`.

        Raises:
          NotFound: there is no such job, or it has no such evaluator.
          InvalidRequest: the format is not one of JSONL, CSV and Parquet, this host was installed without Parquet, or a
            condition is not valid.
        """
        chunks = self.rows.every(workspace_id, job_id, which, evaluator=evaluator, text=text, where=where, first=first)
        if format_ is Format.JSONL:
            async for rows in chunks:
                yield await asyncio.to_thread(lambda: b"".join(encode_json(row) + b"\n" for row in rows))  # noqa: B023
            if which == Filter() and not text and not where:  # `merge` must not accept a shard that lacks rows
                yield await self.rows.closing_line(workspace_id, job_id)
            return
        # read before the header is sent, because a mistake in the request needs an error response
        begun: list[JobRow] = await anext(chunks, [])
        columns = await self._columns(workspace_id, job_id)
        writer = _writer(format_)(columns.header)

        def add(rows: list[JobRow]) -> bytes:
            return writer.add([_flat(row, columns) for row in rows])

        yield writer.begin() + await asyncio.to_thread(add, begun)
        async for rows in chunks:
            yield await asyncio.to_thread(add, rows)
        yield writer.end()

    async def _columns(self, workspace_id: str, job_id: str) -> "_Columns":
        statistics = await self.results.statistics(workspace_id, job_id)
        metrics = dict.fromkeys(metric.name for one in statistics.evaluators for metric in one.metrics)
        facts = await self.rows.facts(workspace_id, job_id)
        output = await self.rows.has_outputs(workspace_id, job_id)
        return _Columns(metrics, dict.fromkeys(facts.columns), output=output, more=MORE_COLUMNS in facts.notes)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a flat file that depend on the job: metrics, columns of the data set, the model's answer.

    Metrics without a column of their own share the column `metrics`; columns of the data set share `row` (`more`).
    """

    metrics: dict[str, None]  # names of the metrics, in order
    row: dict[str, None]  # names of the columns, in order
    output: bool
    more: bool

    @property
    def header(self) -> tuple[str, ...]:
        output = ("output",) if self.output else ()
        metrics = (f"metrics.{name}" for name in self.metrics)
        more = ("row",) if self.more else ()
        return (*_FIXED, *output, *metrics, "metrics", *(f"row.{name}" for name in self.row), *more)


def _flat(row: JobRow, columns: _Columns) -> list[Any]:
    result = row.result
    error = result["error"] or {}
    fixed = [
        *(row.index, row.evaluator, result["status"], result["score"], result["passed"], result["label"]),
        *(result["reason"], error.get("code"), error.get("message"), result["timing_ms"]["run"]),
    ]
    output = [row.output] if columns.output else []
    own = {} if result["score"] is None else {"score": result["score"]}  # the score is a metric, as in the statistics
    metrics, cells = {**result["metrics"], **own}, row.row
    more = {name: value for name, value in metrics.items() if name not in columns.metrics}
    others = [{name: value for name, value in cells.items() if name not in columns.row} or None] if columns.more else []
    return [
        *fixed,
        *output,
        *(metrics.get(name) for name in columns.metrics),
        more or None,
        *(cells.get(name) for name in columns.row),
        *others,
    ]


class _Csv:
    """CSV (RFC 4180) with a header; values other than strings and numbers are JSON."""

    def __init__(self, header: Sequence[str]) -> None:
        self._header = header

    def begin(self) -> bytes:
        return csv_lines([self._header])

    def add(self, rows: list[list[Any]]) -> bytes:
        return csv_lines(rows)

    def end(self) -> bytes:
        return b""


def csv_lines(rows: Sequence[Sequence[Any]]) -> bytes:
    """Return rows as CSV; text that spreadsheets run as a formula gets an apostrophe in front."""
    text = io.StringIO()
    csv.writer(text).writerows([_csv_cell(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool | dict | list):
        return encode_json(value).decode()
    if isinstance(value, str) and not _is_number(value):
        return _FORMULA.sub("'", value)
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Sink(io.RawIOBase):
    """A file object for writing. `take` returns the bytes that were written."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


class _Parquet:
    """Writes Parquet. Numbers are doubles, `index` an integer, `passed` a boolean, other values strings or JSON."""

    def __init__(self, header: Sequence[str]) -> None:
        with extra("parquet", "writing Parquet", InvalidRequest):
            import pyarrow as pa  # noqa: PLC0415 - large, and slow to import
            from pyarrow import parquet  # noqa: PLC0415
        kinds: dict[str, Any] = {"index": pa.int64(), "passed": pa.bool_(), "score": pa.float64()}
        kinds["run_ms"] = pa.float64()
        fields: list[Any] = [
            pa.field(name, kinds.get(name, pa.float64() if name.startswith("metrics.") else pa.string()))
            for name in header
        ]
        self._pa = pa
        self._schema = pa.schema(fields)
        self._sink = _Sink()
        sink: Any = self._sink  # pyarrow accepts any file object, though its types say otherwise
        self._writer = parquet.ParquetWriter(sink, self._schema)

    def begin(self) -> bytes:
        return self._sink.take()

    def add(self, rows: list[list[Any]]) -> bytes:
        columns = [self._column(field.type, [row[at] for row in rows]) for at, field in enumerate(self._schema)]
        self._writer.write_batch(self._pa.RecordBatch.from_arrays(columns, schema=self._schema))
        return self._sink.take()

    def _column(self, kind: Any, cells: list[Any]) -> Any:
        """Build a column in Arrow's layout. `pyarrow.array` is not used, because it imports pandas if it can."""
        parts: list[Any]
        match str(kind):
            case "bool":
                parts = [_bits(cells)]
            case "int64":
                parts = [array("q", (cell or 0 for cell in cells))]
            case "double":
                parts = [array("d", (as_float(cell or 0) for cell in cells))]
            case _:
                texts = [_text(cell) for cell in cells]
                parts = [array("i", accumulate(map(len, texts), initial=0)), b"".join(texts)]
        valid = _bits([cell is not None for cell in cells])
        return self._pa.Array.from_buffers(kind, len(cells), [self._pa.py_buffer(part) for part in (valid, *parts)])

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.take()


def _bits(flags: Sequence[Any]) -> bytes:
    """Pack flags into bits, eight in each byte. The first flag is the lowest bit."""
    octets = (flags[at : at + 8] for at in range(0, len(flags), 8))
    return bytes(sum(1 << place for place, flag in enumerate(octet) if flag) for octet in octets)


def _text(cell: Any) -> bytes:
    if cell is None:
        return b""
    return cell.encode() if isinstance(cell, str) else encode_json(cell)


def _writer(format_: Format) -> Callable[[Sequence[str]], "_Csv | _Parquet"]:
    match format_:
        case Format.CSV:
            return _Csv
        case Format.PARQUET:
            return _Parquet
        case _:
            raise InvalidRequest(f"rows of a job are written as jsonl, csv or parquet, not {format_}")

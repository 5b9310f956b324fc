"""Routes of job results: statistics, rows, downloads, comparisons."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from anyio import CancelScope
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.evaluators.routes import shown
from evaluator_host.platform.http.auth.access import WorkspaceOf
from evaluator_host.platform.http.bodies import WholeNumber
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute, large_json_response
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.jobs.results.compared_jobs import JobComparisons
from evaluator_host.platform.jobs.results.exports import JobExports
from evaluator_host.platform.jobs.results.results import JobResults
from evaluator_host.platform.jobs.results.row_reader import DOWNLOAD_BYTES, RowReader
from evaluator_host.platform.jobs.results.table import Filter, Sort
from evaluator_host.types.formats import Format
from evaluator_host.types.outcome import ErrorCode, Status
from evaluator_host.types.results import (
    Agreement,
    ChangePage,
    ColumnStatistics,
    ComparedColumn,
    Comparison,
    FailureGroup,
    JobEvaluatorReport,
    JobRowDetail,
    JobRowPage,
    JobStatistics,
    Pairs,
    RowDiff,
)

_MISSING = describe_error(404, "There is no such job, or the job has no such evaluator.")
_REFUSED = {**_MISSING, **describe_error(422, "The cursor belongs to another query, or the jobs cannot be compared.")}
# maximum number of requests at a time that compute something from all results of a job on the event loop; a workspace
# may use half of them
_COMPUTED_AT_ONCE = 8
_SILENT_S = 15.0  # seconds without a byte of a download after which one is sent: proxies cut silent connections off
_HELD_BYTES = 1024  # bytes of a download that are held back, to be sent one by one while no row matches


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The filters of rows that a request gives."""

    which: Filter
    beside: dict[str, Any]  # the filters that are not part of `which`


def _chosen_rows(
    *,
    evaluator: Annotated[str | None, Query(description="An evaluator of the job: exact-match@1, or its name.")] = None,
    status: Status | None = None,
    passed: bool | None = None,
    error: Annotated[ErrorCode | None, Query(description="Only rows that failed with this error code.")] = None,
    min_score: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    max_score: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    row: Annotated[
        list[WholeNumber] | None, Query(max_length=1000, description="Only these rows: row=3&row=17.")
    ] = None,
    text: Annotated[
        str | None, Query(max_length=200, description="Only rows in which a value contains this text.")
    ] = None,
    where: Annotated[
        list[str] | None,
        Query(max_length=20, description="Conditions on columns, searched like `text`: city=Rome, score>=0.5."),
    ] = None,
) -> _Chosen:
    rows = None if row is None else tuple(row)
    which = Filter(None, status, passed, error, min_score=min_score, max_score=max_score, rows=rows)
    return _Chosen(which, {"evaluator": evaluator, "text": text, "where": where or ()})


_ChosenRows: TypeAlias = Annotated[_Chosen, Depends(_chosen_rows)]
_Column: TypeAlias = Annotated[
    str, Query(min_length=1, max_length=200, description="Column of the data set, or a dotted path in it.")
]
_ByPlace: TypeAlias = Annotated[
    bool,
    Query(
        description="If the jobs have no evaluator in common, compare their first evaluators, their second ones, and "
        "so on."
    ),
]
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            media_type: {} for media_type in ("application/x-ndjson", "text/csv", "application/vnd.apache.parquet")
        },
        "description": "The file.",
    }
}


def job_results_api(
    results: JobResults,
    comparisons: JobComparisons,
    rows: RowReader,
    exports: JobExports,
    *,
    turns: Turns | None = None,
) -> APIRouter:
    """Return the routes under `/v1/jobs/{job_id}` that show, compare and download a job's results.

    Requests that compute something from all results of a job take a turn of `turns`.
    """
    router = APIRouter(prefix="/v1/jobs/{job_id}", route_class=JsonRoute, tags=["jobs"])
    computed = partial(_computed, turns or Turns(_COMPUTED_AT_ONCE, per_free=1))

    @router.get("/results", response_model=JobStatistics, responses=_MISSING)
    async def statistics(job_id: str, workspace: WorkspaceOf) -> Response:
        """Show the statistics so far for each evaluator and metric."""
        if (known := await results.remembered_statistics(workspace, job_id)) is not None:
            return await large_json_response(known)
        return await computed(results.statistics, workspace, job_id)

    @router.get(
        "/groups",
        response_model=list[ColumnStatistics],
        responses={**_MISSING, **describe_error(422, "No row has a value in that column.")},
    )
    async def groups(
        job_id: str,
        workspace: WorkspaceOf,
        by: _Column,
        evaluator: str | None = None,
    ) -> Response:
        """Show each evaluator's mean, pass rate and counts so far, for each value of a column."""
        return await computed(results.groups, workspace, job_id, by, evaluator=evaluator)

    @router.get("/rows", response_model=JobRowPage, responses=_REFUSED)
    async def page(
        job_id: str,
        request: Request,
        workspace: WorkspaceOf,
        chosen: _ChosenRows,
        *,
        sort: Sort = Sort.ROW,
        cursor: Annotated[str | None, Query(description="`next_cursor` of the previous page.")] = None,
        limit: Annotated[
            int, Query(ge=1, le=1000, description="With `text` or `where`, a page may have fewer rows.")
        ] = 100,
        total: Annotated[
            bool, Query(description="Also count the rows that match all conditions except `text` and `where`.")
        ] = False,
        short: Annotated[
            bool, Query(alias="brief", description="Leave out traces, values and logs, and shorten long data.")
        ] = False,
    ) -> Response:
        """List rows with their results: filtered, sorted, in pages of `limit` rows or 16 MB."""
        asked: dict[str, Any] = {"sort": sort, "cursor": cursor, "limit": limit, "total": total, "brief": short}
        memory = memory_of(request.scope)
        found = await rows.page(workspace, job_id, chosen.which, **chosen.beside, **asked, memory=memory)
        return await large_json_response(found)

    @router.get("/rows/{index}", response_model=JobRowDetail, responses=_MISSING)
    async def one(job_id: str, index: WholeNumber, request: Request, workspace: WorkspaceOf) -> Response:
        """Show a row as its evaluators received it, and each result."""
        found = await rows.one(workspace, job_id, index, memory=memory_of(request.scope))
        return await large_json_response(found)

    @router.get("/failures", response_model=list[FailureGroup], responses=_MISSING)
    async def failures(job_id: str, workspace: WorkspaceOf, evaluator: str | None = None) -> Response:
        """Group the failed rows by error, largest group first."""
        return await computed(results.failures, workspace, job_id, evaluator=evaluator)

    @router.get(
        "/agreement",
        response_model=list[Agreement],
        responses={**_MISSING, **describe_error(422, "There are no such labels.")},
    )
    async def agreement(
        job_id: str,
        workspace: WorkspaceOf,
        label: Annotated[
            str | None, Query(min_length=1, max_length=200, description="Column with the labels that people gave.")
        ] = None,
        queue: Annotated[
            str | None, Query(description="A label queue. Default, without `label`: all queues that apply to the job.")
        ] = None,
        evaluator: str | None = None,
    ) -> Response:
        """Compare each evaluator with the labels that people gave: accuracy, kappa, confusion matrix, intervals."""
        chosen = {"label": label, "queue": queue, "evaluator": evaluator}
        return await computed(results.agreement, workspace, job_id, **chosen)

    @router.get("/evaluators", response_model=list[JobEvaluatorReport], responses=_MISSING)
    async def evaluators(job_id: str, workspace: WorkspaceOf) -> Response:
        """List the evaluators of a job, as they were when it was created."""
        found = await results.evaluators(workspace, job_id)
        return await large_json_response([shown(one) for one in found])

    @router.get("/rows.{file_format}", response_class=StreamingResponse, responses={**_REFUSED, **_FILES})
    async def download(
        job_id: str,
        file_format: Literal["jsonl", "csv", "parquet"],
        request: Request,
        workspace: WorkspaceOf,
        chosen: _ChosenRows,
        first: Annotated[int, Query(ge=0, le=2**53, description="Number of the first row to download, from 0.")] = 0,
    ) -> Response:
        """Download the rows that match, with their results: complete as JSONL, as flat columns in CSV and Parquet."""
        memory_of(request.scope).reserve(DOWNLOAD_BYTES)
        format_ = Format(file_format)
        pieces = exports.write(workspace, job_id, format_, chosen.which, **chosen.beside, first=first)
        # the first part is read now, so that an error becomes an error response, not a truncated file
        piece = await anext(pieces, b"")
        headers = {"Content-Disposition": f'attachment; filename="{job_id}.{file_format}"'}
        return StreamingResponse(_whole(piece, pieces), media_type=format_.media_type, headers=headers)

    router.routes.extend(_comparisons(comparisons, rows, computed).routes)
    return router


async def _computed(
    turns: Turns, work: Callable[..., Awaitable[object]], workspace: str, *args: str, **chosen: Any
) -> Response:
    async with turns.turn(workspace):
        found = await work(workspace, *args, **chosen)
    return await large_json_response(found)


def _comparisons(
    comparisons: JobComparisons, rows: RowReader, computed: Callable[..., Awaitable[Response]]
) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs/{job_id}", route_class=JsonRoute, tags=["jobs"])

    @router.get("/compare/{other_id}", response_model=list[Comparison], responses=_REFUSED)
    async def compare(
        job_id: str, other_id: str, workspace: WorkspaceOf, *, evaluator: str | None = None, by_place: _ByPlace = False
    ) -> Response:
        """Compare with a later job over the same rows: paired differences, regressions, improvements."""
        chosen = {"evaluator": evaluator, "by_place": by_place}
        return await computed(comparisons.compare, workspace, job_id, other_id, **chosen)

    @router.get("/compare/{other_id}/changes", response_model=ChangePage, responses=_REFUSED)
    async def changes(
        job_id: str,
        other_id: str,
        workspace: WorkspaceOf,
        *,
        evaluator: str | None = None,
        better: Annotated[
            bool | None, Query(description="Only rows that are better, or only rows that are worse.")
        ] = None,
        after: Annotated[int, Query(ge=-1, le=2**53, description="`next` of the previous page.")] = -1,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
        by_place: _ByPlace = False,
    ) -> Response:
        """List all rows that have a different score in a later job, in order, for one evaluator."""
        chosen: dict[str, Any] = {"evaluator": evaluator, "better": better, "after": after, "limit": limit}
        chosen["by_place"] = by_place
        return await computed(comparisons.changes, workspace, job_id, other_id, **chosen)

    @router.get("/compare/{other_id}/groups", response_model=list[ComparedColumn], responses=_REFUSED)
    async def compared_groups(
        job_id: str,
        other_id: str,
        workspace: WorkspaceOf,
        by: _Column,
        *,
        evaluator: str | None = None,
        metric: Annotated[str, Query(max_length=200)] = "score",
        by_place: _ByPlace = False,
    ) -> Response:
        """Compare a metric with a later job for each value of a column: means, paired differences, intervals."""
        chosen: dict[str, Any] = {"evaluator": evaluator, "metric": metric, "by_place": by_place}
        return await computed(comparisons.groups, workspace, job_id, other_id, by, **chosen)

    @router.get("/compare/{other_id}/pairs", response_model=Pairs, responses=_REFUSED)
    async def pairs(
        job_id: str,
        other_id: str,
        workspace: WorkspaceOf,
        *,
        evaluator: str | None = None,
        metric: Annotated[str, Query(max_length=200)] = "score",
        by_place: _ByPlace = False,
    ) -> Response:
        """Show a metric's values in two jobs, as at most 2,000 points. Rows with the same values share a point."""
        chosen: dict[str, Any] = {"evaluator": evaluator, "metric": metric, "by_place": by_place}
        return await computed(comparisons.pairs, workspace, job_id, other_id, **chosen)

    @router.get("/compare/{other_id}/rows/{index}", response_model=RowDiff, responses=_REFUSED)
    async def row_diff(
        job_id: str,
        other_id: str,
        index: WholeNumber,
        request: Request,
        workspace: WorkspaceOf,
        *,
        evaluator: str | None = None,
        by_place: _ByPlace = False,
    ) -> Response:
        """Show how a row's outputs and results differ from a later job's, as unified diffs."""
        chosen: dict[str, Any] = {"evaluator": evaluator, "by_place": by_place}
        labels = await comparisons.labels_in_common(workspace, job_id, other_id, **chosen)
        memory = memory_of(request.scope)
        return await large_json_response(await rows.diff(workspace, (job_id, other_id), labels, index, memory=memory))

    return router


async def _whole(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yield the bytes of a file. While the next ones take long, yield some that were held back, one at a time."""
    piece: bytes | None = first
    held = b""
    async with aclosing(rest) as pieces:
        while piece is not None:
            if piece:
                whole = held + piece
                held = whole[-_HELD_BYTES:]
                yield whole[:-_HELD_BYTES]
            following = asyncio.ensure_future(anext(pieces, None))
            try:
                while not (await asyncio.wait([following], timeout=_SILENT_S))[0]:
                    yield held[:1]
                    held = held[1:]
                piece = following.result()
            finally:
                following.cancel()
                # the response may be cancelled repeatedly, but a running generator cannot be closed
                with CancelScope(shield=True):
                    await asyncio.wait([following])
    yield held

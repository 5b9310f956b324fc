"""`evaluator-host mcp`: tools for coding agents over the Model Context Protocol, with the official SDK.

Without `--url`, code runs in sandboxes that this process starts. With `--url`, code runs on that host, and there are
also tools for its evaluators, data sets and jobs. Answers are short, because an agent reads them: long texts are
truncated, and only the first of many failures are shown.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import Field

from evaluator_host import __version__
from evaluator_host.client import AsyncClient
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.migrate.migrate import MigrationContext
from evaluator_host.migrate.migrate import migrate as rewrite_and_prove
from evaluator_host.platform.datasets.first_rows import first_rows_of_file
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.datasets.rows import RowFile
from evaluator_host.platform.evaluators.bodies import EvaluatorIn
from evaluator_host.platform.evaluators.evaluation_service import (
    EvaluationService,
    evaluate_in_order,
    open_evaluation_service,
)
from evaluator_host.platform.http.error_responses import invalid_request
from evaluator_host.platform.terminal.logins import key_for
from evaluator_host.types.errors import HostError, InvalidRequest, Problem
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Language, Row
from evaluator_host.types.jobs import JobReport
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.names import what_was_meant
from evaluator_host.types.numbers import mean_of
from evaluator_host.types.outcome import EvaluationResult
from evaluator_host.types.warnings import RowWarnings

_TEXT_CHARACTERS: Final = 4_000
_ANSWER_BYTES: Final = 200_000
_CUTS: Final = ((_TEXT_CHARACTERS, 1_000), (400, 100), (100, 20))
"""Maximum characters of a string and items of a list or object, tried one after another until an answer is short
enough."""
_ROWS: Final = 500
_SHOWN: Final = 10

_INSTRUCTIONS: Final = """\
Write and test evaluators: functions that score one output of a model. The default form is
`def evaluate(inputs, outputs, trace)` in Python (or a function of that name in JavaScript or TypeScript); it returns a
number from 0 to 1, a boolean, or an object with "score" and "reason". `check` after each change, then `evaluate` on a
row or `evaluate_file` on a file of rows. Code has no network; packages are pinned exactly (numpy==2.1.0,
lodash@4.17.21), or chosen by the host: ["auto"]. Evaluators written for other platforms run as they are: `check` says
which platform's form it is."""

Code = Annotated[str, Field(description="Source code of the evaluator.")]
Packages = Annotated[
    list[str] | None,
    Field(
        description="Exact pins: numpy==2.1.0, lodash@4.17.21; or auto: the host finds the packages that the code "
        "imports."
    ),
]
Named = Annotated[str, Field(description="Name of a stored evaluator, with or without a version: exact-match@3.")]


@dataclass(frozen=True, slots=True)
class _Hosts:
    """The services that the tools use: the service that evaluates, and the running host, if there is one."""

    service: EvaluationService
    client: AsyncClient | None
    settings: Settings


class _Server(MCPServer[_Hosts]):
    """A server that explains wrong arguments so that an agent can correct them."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[_Hosts, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
          ToolError: there is no such tool, its arguments are wrong, or it raised an error.
        """
        known = {one.name: one.input_schema.get("properties", {}) for one in await self.list_tools()}
        for given in () if name not in known else arguments.keys() - known[name].keys():
            meant = what_was_meant(given, known[name], otherwise=f"it takes {', '.join(known[name]) or 'none'}")
            raise ToolError(f"{name} has no argument {given[:80]}; {meant}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, pydantic.ValidationError):
                raise
            refused = invalid_request(error.__cause__.errors())
            raise ToolError("\n".join([refused.detail, *map(_line, refused.problems)])) from error


def make_server(settings: Settings, url: str | None) -> MCPServer[_Hosts]:
    """Return the server with its tools. When the server runs, it opens its sandboxes or connects to the host.

    `url` is the address of a running host; if it is None, the server starts its own sandboxes.
    """

    @asynccontextmanager
    async def lifespan(_: MCPServer[_Hosts]) -> AsyncIterator[_Hosts]:
        async with AsyncExitStack() as stack:
            service = await stack.enter_async_context(open_evaluation_service(settings, url))
            client = None if url is None else await stack.enter_async_context(AsyncClient(url, key=key_for(url)))
            yield _Hosts(service, client, settings)

    server = _Server("evaluator-host", instructions=_INSTRUCTIONS, version=__version__, lifespan=lifespan)
    for tool in _TOOLS if url is None else (*_TOOLS, *_HOST_TOOLS):
        server.add_tool(_told(tool))
    return server


async def check(
    context: Context[_Hosts], code: Code, language: Language = Language.PYTHON, packages: Packages = None
) -> dict[str, Any]:
    """Load an evaluator in a sandbox without a row. Return contract, parameters, and problems with line and hint."""
    return _brief(await _hosts(context).service.check(_evaluator(code, language, packages)))


async def evaluate(
    context: Context[_Hosts],
    code: Code,
    inputs: dict[str, Any] | None = None,
    outputs: Any = None,
    trace: dict[str, Any] | None = None,
    language: Language = Language.PYTHON,
    packages: Packages = None,
) -> dict[str, Any]:
    """Score one row. `inputs` has the columns of the test case, `outputs` is the output to score."""
    row = Row(inputs or {}, outputs, trace)
    return _brief(await _hosts(context).service.evaluate(_evaluator(code, language, packages), row))


async def evaluate_file(
    context: Context[_Hosts],
    code: Code,
    path: Annotated[str, Field(description="Rows on this machine: .jsonl .csv .tsv .json .parquet")],
    mapping: Annotated[
        dict[str, str] | None, Field(description='The column for each field of a row: {"outputs": "answer"}.')
    ] = None,
    limit: Annotated[int, Field(ge=1, le=_ROWS)] = 100,
    language: Language = Language.PYTHON,
    packages: Packages = None,
) -> dict[str, Any]:
    """Score the first rows of a file: mean, pass rate, and the rows that failed or scored lowest.

    `doubt` says why none of the scores can be relied on; it is null if at least one can. `warnings` say what to do.
    """
    hosts = _hosts(context)
    _require_file(Path(path))
    bad: list[str] = []
    columns = Mapping.parse([f"{field}={column}" for field, column in (mapping or {}).items()])
    file = RowFile(
        Path(path), columns, max_row_bytes=hosts.settings.body_mb << 20, limit=limit,
        report=lambda line, fault: bad.append(f"line {line}: {fault}"),
    )  # fmt: skip
    rows = [one.row for one in file]
    if not rows:
        raise InvalidRequest(f"there is no row to score in {path}" + "".join(f"; {fault}" for fault in bad[:3]))
    evaluator = _evaluator(code, language, packages)
    first = first_rows_of_file(Path(path), columns, max_row_bytes=hosts.settings.body_mb << 20)
    if first is not None:
        first = replace(first, for_command=False)
        first.require_columns()
        await first.require_outputs([("the evaluator", evaluator)], hosts.service.check)
    results = await evaluate_in_order(hosts.service, evaluator, rows)
    return {**_statistics(results), "bad_lines": bad[:_SHOWN]}


async def migrate(context: Context[_Hosts], code: Code, language: Language = Language.PYTHON) -> dict[str, Any]:
    """Rewrite an older evaluator to evaluate(inputs, outputs, trace). Compare old and new scores on generated rows."""
    service = _hosts(context).service
    async with LimitedProcesses() as processes:
        proof = MigrationContext(partial(evaluate_in_order, service), processes)
        return _brief(await rewrite_and_prove(_evaluator(code, language, None), context=proof, adapt=True))


async def list_evaluators(context: Context[_Hosts]) -> list[dict[str, Any]]:
    """List the evaluators that the host keeps."""
    return [_without_code(_brief(one)) for one in await _client(context).evaluators.all()]


async def get_evaluator(context: Context[_Hosts], name: Named) -> dict[str, Any]:
    """Return a stored evaluator with its code."""
    base, _, version = name.partition("@")
    return _brief(await _client(context).evaluators.get(base, int(version) if version.isdecimal() else None))


async def save_evaluator(
    context: Context[_Hosts],
    name: Annotated[str, Field(description="Name of the stored evaluator.")],
    code: Code,
    description: str = "",
    language: Language = Language.PYTHON,
    packages: Packages = None,
) -> dict[str, Any]:
    """Store an evaluator on the host, as a new version if the name exists. Code that does not load is refused."""
    evaluators, given = _client(context).evaluators, _evaluator(code, language, packages)
    known = {one.name for one in await evaluators.all()}
    if name in known:
        return _without_code(_brief(await evaluators.update(name, given, description=description or None)))
    return _without_code(_brief(await evaluators.create(name, given, description=description)))


async def list_datasets(context: Context[_Hosts]) -> list[dict[str, Any]]:
    """List the data sets that the host keeps, with their columns."""
    return [_brief(one) for one in await _client(context).datasets.all()]


async def read_dataset(
    context: Context[_Hosts], name: str, limit: Annotated[int, Field(ge=1, le=100)] = 10
) -> list[dict[str, Any]]:
    """Return the first rows of a data set."""
    found: list[dict[str, Any]] = []
    async with aclosing(_client(context).datasets.rows(name)) as rows:
        async for row in rows:
            found.append(_brief(row))
            if len(found) == limit:
                break
    return found


async def run_job(
    context: Context[_Hosts],
    evaluators: Annotated[list[str], Field(description="Names of stored evaluators: exact-match, exact-match@3.")],
    dataset: Annotated[str, Field(description="Name of a data set.")],
    mapping: Annotated[
        dict[str, str] | None, Field(description='The column for each field of a row: {"outputs": "answer"}.')
    ] = None,
    limit: Annotated[
        int | None, Field(ge=1, description="Number of rows to score, starting with the first. Default: all.")
    ] = None,
) -> dict[str, Any]:
    """Score a data set with stored evaluators, and return the statistics. `explain_failures` says why rows failed.

    `doubt` says why none of the scores can be relied on; it is null if at least one can. `warnings` say what to do.
    """
    jobs = _client(context).jobs
    job = await jobs.create(evaluators, dataset, mapping=mapping, limit_samples=limit)
    async with aclosing(jobs.watch(job.id)) as reports:
        async for report in reports:
            job = report
            await context.report_progress(report.progress.done, report.progress.rows)
    return {
        "job": job.id,
        "status": job.status,
        "error": job.error,
        "doubt": job.doubt,
        "statistics": _brief(await jobs.results(job.id)),
    }


async def list_jobs(context: Context[_Hosts], limit: Annotated[int, Field(ge=1, le=100)] = 10) -> list[dict[str, Any]]:
    """List the newest jobs."""
    jobs: list[JobReport] = await _client(context).jobs.all(limit=limit)
    return [_brief(job) for job in jobs]


async def explain_failures(
    context: Context[_Hosts], job: Annotated[str, Field(description="Id of a job.")]
) -> list[dict[str, Any]]:
    """Explain why rows of a job failed.

    Each cause comes with the line of the evaluator's code, and one row as an example.
    """
    jobs = _client(context).jobs
    groups = (await jobs.failures(job))[:_SHOWN]
    return [{**_brief(group), "example": _brief(await jobs.row(job, group.rows[0]))} for group in groups]


def _require_file(path: Path) -> None:
    """Refuse a path that is not a file. Reading a pipe would block all other tools."""
    if path.exists() and not path.is_file():
        raise InvalidRequest(f"{path} is a folder, a pipe or a device; give the path of a file with rows")


def _hosts(context: Context[_Hosts]) -> _Hosts:
    return context.request_context.lifespan_context


def _client(context: Context[_Hosts]) -> AsyncClient:
    client = _hosts(context).client
    assert client is not None, "these tools need the URL of a running host"  # noqa: S101
    return client


def _evaluator(code: str, language: Language, packages: list[str] | None) -> Evaluator:
    return EvaluatorIn(code=code, language=language, contract=Contract.AUTO, packages=list(packages or [])).to_model()


def _statistics(results: list[EvaluationResult]) -> dict[str, Any]:
    scores = [(one.score, index) for index, one in enumerate(results) if one.score is not None]
    verdicts = [one.passed for one in results if one.passed is not None]
    told = RowWarnings.of(results)
    failed = [index for index, one in enumerate(results) if one.error is not None]
    lowest = [index for _, index in sorted(scores)[:_SHOWN]]
    return {
        "rows": len(results),
        "doubt": told.doubt(),
        "warnings": [_brief(one) for one in told.counts()],
        "statuses": dict(Counter(one.status for one in results)),
        "mean": mean_of([score for score, _ in scores]) if scores else None,
        "mean_rows": len(scores),
        "pass_rate": sum(verdicts) / len(verdicts) if verdicts else None,
        "judged": len(verdicts),
        "failures": [{"row": index, "error": _brief(results[index].error)} for index in failed[:_SHOWN]],
        "lowest": [{"row": n, "score": results[n].score, "reason": _cut(results[n].reason, *_CUTS[0])} for n in lowest],
    }


def _brief(value: Any) -> dict[str, Any]:
    """Return an answer as JSON. Long strings, lists and objects are truncated."""
    found = decode_json(encode_json(value))
    cut: dict[str, Any] = {}
    for characters, items in _CUTS:
        cut = _cut(found, characters, items)
        if len(encode_json(cut)) <= _ANSWER_BYTES:
            break
    return cut


def _cut(value: Json, characters: int, items: int) -> Any:
    if isinstance(value, str) and len(value) > characters:
        return f"{value[:characters]}… ({len(value)} characters)"
    if isinstance(value, dict):
        kept = {
            _cut(name, characters, items): _cut(one, characters, items) for name, one in islice(value.items(), items)
        }
        return {**kept, "…": f"{len(value) - items} more"} if len(value) > items else kept
    if isinstance(value, list):
        kept_items = [_cut(one, characters, items) for one in value[:items]]
        return [*kept_items, f"… {len(value) - items} more"] if len(value) > items else kept_items
    return value


def _without_code(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name != "evaluator"}


def _told(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Convert errors of the host to errors of the tool that say what to do next."""

    @wraps(tool)
    async def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return await tool(*args, **kwargs)
        except HostError as error:
            raise ToolError("\n".join([f"{error.code}: {error.detail}", *map(_line, error.problems)])) from error
        except pydantic.ValidationError as error:
            raise ToolError(str(error)) from error

    return told


def _line(one: Problem) -> str:
    return f"{one.field}: {one.message} {one.hint or ''}".rstrip()


_TOOLS: Final = (check, evaluate, evaluate_file, migrate)
_HOST_TOOLS: Final = (
    list_evaluators,
    get_evaluator,
    save_evaluator,
    list_datasets,
    read_dataset,
    run_job,
    list_jobs,
    explain_failures,
)

"""Routes that migrate pasted or stored evaluators, and that import files of other platforms."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, FailFast, Field
from starlette.routing import BaseRoute

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.mapping import BadRow, Mapping
from evaluator_host.platform.datasets.rendering import mapped_rows
from evaluator_host.platform.datasets.resource import DatasetResource
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.evaluators.bodies import EvaluatorIn, RowIn
from evaluator_host.platform.evaluators.resource import EvaluatorResource
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.bodies import Body, Few
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.platform.http.json_routes import JsonRoute
from evaluator_host.platform.http.replies import ERRORS, respond
from evaluator_host.platform.jobs.resource import JobResource
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Contract, Row
from evaluator_host.types.migrations import Import, Migration, StoredMigration

if TYPE_CHECKING:
    from evaluator_host.migrate.imports import ImportWish

LEGACY: Final = (
    "def evaluate(app_params, inputs, output, correct_answer):\n    return 1.0 if output == correct_answer else 0.0\n"
)
_ADAPT: Final = (
    "If the code cannot be rewritten, or scores differently afterwards, keep it as it is and add a function "
    "`evaluate(inputs, outputs, trace)` that calls it. Only with `to: evaluate`."
)
_FILES: Final = 2000  # maximum number of files in an import
_TAKEN: Final = describe_error(409, "A name is in use, and `replace` is not set; nothing was stored.")
_STORED_ROWS: Final = 1000  # maximum number of rows of a data set or a job on which a migration is proved


class ProofIn(Body):
    """The rows to prove a migration on."""

    rows: Annotated[list[RowIn], FailFast()] = Field(
        default_factory=list,
        description="Rows to prove the migration on. Default: rows that the host generates from the code.",
    )
    dataset: str | None = Field(None, description="A data set in place of `rows`; its first 1,000 rows are used.")
    job: str | None = Field(
        None, description="A job in place of `rows`; its first 1,000 rows are used, as its evaluators received them."
    )
    mapping: Annotated[dict[str, str], Few] = Field(
        default_factory=dict, description="The column or template of the data set for each row field."
    )

    async def to_rows(
        self, datasets: DatasetService, jobs: RowReader, processes: LimitedProcesses, workspace: str
    ) -> list[Row] | None:
        """Return the rows on which to prove the migration; None to generate rows.

        Raises:
          InvalidRequest: the body names several sources, the mapping does not fit, or the job has no row.
          NotFound: there is no such data set or job.
          LimitExceeded: the mapping's templates take too much processor time or memory.
        """
        places = [name for name in ("rows", "dataset", "job") if getattr(self, name)]
        if len(places) > 1:
            problem = Problem(places[1], f"{places[0]} is given too", "give only one of them")
            raise InvalidRequest(
                "the request gives rows in several ways, but only one can be used", problems=(problem,)
            )
        if self.job is not None:
            found = await jobs.given(workspace, self.job, limit=_STORED_ROWS)
            if not found:
                raise InvalidRequest(
                    "the job has no row on which to prove the migration",
                    problems=(Problem("job", "no row can be used"),),
                )
            return found
        if self.dataset is None:
            return [row.to_row() for row in self.rows] or None
        lines = await datasets.lines(workspace, self.dataset, 0, limit=_STORED_ROWS)
        found = []
        for row in await mapped_rows(processes, workspace, lines, Mapping.from_sources(self.mapping)):
            if isinstance(row, BadRow):
                raise InvalidRequest("the mapping does not fit the data set", problems=(Problem("mapping", str(row)),))
            found.append(row)
        return found


class MigrateIn(EvaluatorIn, ProofIn):
    """Body of `POST /v1/migrate`: a legacy evaluator, and rows to prove its migration on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"code": LEGACY, "rows": [{"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}]}]
        }
    )

    to: Literal["evaluate", "main"] = Field("evaluate", description="The contract of the new code.")
    adapt: bool = Field(default=False, description=_ADAPT)


class MigrateStoredIn(ProofIn):
    """Body of `POST /v1/evaluators/migrate`: the stored evaluators, and whether to create new versions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}]})

    names: Annotated[list[str], FailFast()] = Field(
        default_factory=list, max_length=1000, description="Names of evaluators. Default: every legacy evaluator."
    )
    dry_run: bool = Field(
        default=True, description="Only report the result for each evaluator; do not create versions."
    )
    force: bool = Field(default=False, description="Also create versions that were not proven.")
    adapt: bool = Field(default=False, description=_ADAPT)


class ImportIn(Body):
    """Body of `POST /v1/import`: files of another platform, and how to import them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"path": "scorers.py", "files": {"scorers.py": LEGACY}, "dry_run": True}]}
    )

    files: Annotated[dict[str, str], Few] = Field(
        max_length=_FILES, description="The file to import and every file that it refers to, as text, keyed by path."
    )
    path: str = Field(description="Which of the files to import: .yaml .json .jsonl .py .js .mjs .cjs .ts .mts")
    name: str | None = Field(
        None,
        max_length=50,
        description="First part of the evaluators' names, and name of the data set. Default: the file's name.",
    )
    platform: str | None = Field(
        None, description="Platform that the file comes from. Default: the host recognises it."
    )
    contract: Contract = Field(Contract.AUTO, description="Contract of the evaluators in a module.")
    packages: list[str] = Field(
        default_factory=list,
        max_length=100,
        description="Exact pins for every evaluator; `auto` adds the packages that each evaluator imports.",
    )
    models: list[str] = Field(
        default_factory=list,
        max_length=10,
        description="Registered models for evaluators that call a model: judge-small, embedding=embed-small.",
    )
    replace: bool = Field(
        default=False, description="Add versions to existing evaluators, and replace an existing data set."
    )
    force: bool = Field(default=False, description="Also store evaluators that do not load.")
    dry_run: bool = Field(default=False, description="Check everything, and store nothing.")

    def to_wish(self) -> "ImportWish":
        """Convert the request to an `ImportWish`."""
        from evaluator_host.migrate.imports import ImportWish  # noqa: PLC0415 - seldom used, but slow to load

        given = {name: getattr(self, name) for name in type(self).model_fields if name != "files"}
        return ImportWish(**{**given, "packages": tuple(self.packages), "models": tuple(self.models)})


async def _loaded(module: str) -> None:
    """Import a module of this package in a thread, because its first import takes 60 ms of processor time."""
    await asyncio.to_thread(import_module, f"evaluator_host.migrate.{module}")


def migration_routes(host: Host, access: Access) -> list[BaseRoute]:
    """Return the routes that migrate evaluators and import files."""
    service, registry = host.service, host.resource(EvaluatorResource).registry
    datasets, job_rows = host.resource(DatasetResource).service, host.resource(JobResource).rows
    router = APIRouter(route_class=JsonRoute)

    @router.post("/v1/migrate", response_model=Migration, responses=ERRORS, tags=["evaluate"])
    async def migrate_(body: MigrateIn, request: Request) -> Response:
        """Rewrite a legacy evaluator to `evaluate(inputs, outputs, trace)`, and prove that its scores stay the same."""
        await _loaded("migrate")
        from evaluator_host.migrate.migrate import migrate, migration_context  # noqa: PLC0415 - as above

        caller, evaluator = caller_of(request.scope), body.to_model()
        rows = await body.to_rows(datasets, job_rows, service.processes, caller.workspace)
        context = migration_context(service, caller.workspace)
        work = migrate(evaluator, rows, context=context, to=Contract(body.to), adapt=body.adapt)
        audited_call = AuditedCall(access, caller, "migrate", evaluator=evaluator, rows=len(rows or ()))
        return await respond(request, work, audited_call, large=True)

    @router.post("/v1/evaluators/migrate", response_model=list[StoredMigration], responses=ERRORS, tags=["evaluators"])
    async def migrate_named(body: MigrateStoredIn, request: Request) -> Response:
        """Migrate stored legacy evaluators: report the result for each, or create new versions of the proven ones."""
        await _loaded("stored")
        from evaluator_host.migrate.stored import StoredWish, migrate_stored  # noqa: PLC0415 - as above

        caller = caller_of(request.scope)
        rows = await body.to_rows(datasets, job_rows, service.processes, caller.workspace)
        wish = StoredWish(tuple(body.names), rows, body.dry_run, body.force, body.adapt, caller.key_id)
        work = migrate_stored(service, registry, caller.workspace, wish=wish)
        audited_call = AuditedCall(access, caller, "evaluators.migrate", rows=len(rows or ()))
        return await respond(request, work, audited_call, large=True)

    @router.post("/v1/import", response_model=Import, responses={**ERRORS, **_TAKEN}, tags=["evaluators"])
    async def import_(body: ImportIn, request: Request) -> Response:
        """Import evaluators and rows from a platform's configuration or export, or from a module of evaluators."""
        await _loaded("imports")
        from evaluator_host.migrate.imports import ImportContext, run_import  # noqa: PLC0415 - as above

        caller = caller_of(request.scope)
        context = ImportContext(service, service.processes, registry, datasets, caller.workspace, caller.key_id)
        work = run_import(context, body.files, body.to_wish())
        return await respond(request, work, AuditedCall(access, caller, "import"), large=True)

    return router.routes

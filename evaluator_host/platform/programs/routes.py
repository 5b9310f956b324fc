"""`POST /v1/run`: a program, run once in a sandbox."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, FailFast, Field

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.platform.evaluators.bodies import LimitsIn
from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.bodies import Body, Few
from evaluator_host.platform.http.json_routes import JsonRoute
from evaluator_host.platform.http.pins import Minor, PinIn, pin_texts
from evaluator_host.platform.http.replies import ERRORS, respond
from evaluator_host.platform.programs.service import Program, script_result
from evaluator_host.types.evaluator import Language, Limits

_EXAMPLE: dict[str, Any] = {"code": "import sys\nprint(sys.argv[1:])\nsys.exit(3)\n", "argv": ["a"]}


class RunIn(Body):
    """Body of `POST /v1/run`: a program, its arguments and limits."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    code: str = Field(description="Source code of the program.")
    language: Language = Language.PYTHON
    packages: Annotated[list[str | PinIn], FailFast()] = Field(
        default_factory=list, max_length=1000, description="Exact pins of pip or npm packages."
    )
    limits: LimitsIn = LimitsIn()
    python: Minor | None = None
    argv: list[str] = Field(default_factory=list, max_length=1000, description="Arguments of the program.")
    env: Annotated[dict[str, str], Few] = Field(
        default_factory=dict, max_length=1000, description="Environment variables of the program."
    )
    stdin: str = Field("", description="Standard input.")
    files: Annotated[dict[str, str], Few] = Field(
        default_factory=dict, max_length=500, description="Further files, keyed by path."
    )

    def to_model(self) -> Program:
        """Return the program that the service runs."""
        return Program(
            code=self.code,
            language=self.language,
            packages=pin_texts(self.packages, self.language),
            limits=Limits(**dict(self.limits)),
            argv=tuple(self.argv),
            env=self.env,
            stdin=self.stdin,
            python=self.python,
            files=self.files,
        )


class RunReport(Body):
    """Exit code and output of a program."""

    exit_code: int | None = Field(description="Exit code; None for a program that did not end by itself.")
    stdout: str = Field(description="Its standard output, truncated at limits.log_kb.")
    stderr: str = Field(description="Its standard error, truncated in the same way.")
    truncated: bool = Field(description="Whether standard output or standard error was truncated.")
    error: dict[str, Any] | None = Field(description="Why there is no exit code, in the format of an evaluation error.")


def programs_api(service: Service, access: Access) -> APIRouter:
    """Return the route that runs programs."""
    router = APIRouter(route_class=JsonRoute)

    @router.post("/v1/run", response_model=RunReport, responses=ERRORS, tags=["evaluate"])
    async def run(body: RunIn, request: Request) -> Response:
        """Run a program once, and return its exit code and its output."""
        caller, script = caller_of(request.scope), body.to_model()
        work = _run(service, script, caller.workspace)
        return await respond(request, work, AuditedCall(access, caller, "run", evaluator=script.evaluator, rows=1))

    return router


async def _run(service: Service, script: Program, workspace: str) -> Any:
    return script_result(await service.evaluate(script.evaluator, script.row, caller=Caller(workspace)))

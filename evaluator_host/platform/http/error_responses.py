"""Builds error responses in the format RFC 9457 `application/problem+json`. The responses name the faulty fields."""

import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from http import HTTPStatus
from typing import Any, Final

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from evaluator_host.types.errors import Busy, HostError, InvalidRequest, NotFound, Problem, Unauthorized
from evaluator_host.types.evaluator import ROW_FIELDS, EvaluatorSettings, Limits
from evaluator_host.types.names import nearest_name

_log = logging.getLogger(__name__)

ERROR_CODE: Final = "evaluator_host.error_code"
"""Key in a request's scope for the code of the error with which the host answered."""

FOREIGN: Final = "evaluator_host.foreign"
"""Key in a request's scope for the function that writes errors in another platform's format, see `platform/wires`."""

_OTHER_NAMES: Final = {
    "input": "inputs",
    "output": "outputs",
    "prediction": "outputs",
    "response": "outputs",
    "expected": "inputs, with the expected value in them",
    "reference": "inputs, with the expected value in them",
    "ground_truth": "inputs, with the expected value in them",
    "data": "rows or dataset",
    "requirements": "packages",
    "dependencies": "packages",
    "source": "code",
    "script": "code",
    "lang": "language",
    "timeout": "timeout_s, in limits",
    "memory": "memory_mb, in limits",
    "evaluate": "evaluator",
    "scorer": "evaluator",
    "metrics": "evaluators",
}
"""Names of fields in other products, each with the name of this host's field."""

_FIELDS: Final = (
    "code", "language", "contract", "packages", "threshold", "settings", "limits", "policy", "python", "files", "path",
    "models", "budget", "evaluator", "evaluators", "inputs", "outputs", "trace", "variables", "criteria", "messages",
    "rows", "isolation", "replay", "dataset", "mapping", "target", "config", "name", "timeout_s", "memory_mb",
    "processes", "disk_mb", "log_kb", "result_kb", "correct_answer_key", "entry", "score_output", "parallelism",
    "limit_samples", "max_failures", "failures", "description", "sampling", "network", "secrets", "cron", "timezone",
)  # fmt: skip

_OF_EVALUATORS = {
    "limits": frozenset(one.name for one in fields(Limits)),
    "settings": frozenset(one.name for one in fields(EvaluatorSettings)),
}
_HINTS = {
    "json_type": "send Content-Type: application/json; with curl, add -H 'Content-Type: application/json'",
    "extra_forbidden": "remove it, or check its spelling",
    "missing": "add it",
    "dict_type": "send an object: {…}",
    "list_type": "send a list: […], even of a single item",
    "json_invalid": "send a JSON object with Content-Type: application/json",
}


class FieldProblem(BaseModel):
    """One faulty field of a request."""

    field: str = Field(description="Dotted path to the field in the body.")
    message: str
    hint: str | None = Field(None, description="What to do instead.")


class ProblemBody(BaseModel):
    """Body of an error response (`application/problem+json`)."""

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(description="Stable name of the error; see docs/api.md.")
    detail: str
    errors: list[FieldProblem] = Field(default_factory=list)


REFERENCE: Final = "#/components/schemas/{model}"
_CONTENT: Final = {"application/problem+json": {"schema": {"$ref": REFERENCE.format(model=ProblemBody.__name__)}}}


def describe_error(status: int | str, text: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entry for an error response with this status.

    The entry refers to the schema by name. An entry that contained the model would make FastAPI build the schema again
    for each route.
    """
    return {status: {"description": text, "content": _CONTENT}}


def problem_response(error: HostError) -> Response:
    headers = _headers(error)
    body = {
        "type": "about:blank",
        "title": type(error).__name__,
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        "errors": list(error.problems),
    }
    return Response(orjson.dumps(body), error.status, headers, "application/problem+json")


def error_response(scope: Scope, error: HostError) -> Response:
    """Return the response for an error.

    A request to a route that imitates another platform's API gets the error in that platform's format; other requests
    get problem+json.
    """
    shown = error.for_callers()
    scope[ERROR_CODE] = shown.code
    if shown is not error:
        _log.warning("%s %s: %s", scope.get("method"), scope.get("path"), error.detail)
    if (foreign := scope.get(FOREIGN)) is None:
        return problem_response(shown)
    response: Response = foreign.refuse(shown)
    return response


def _headers(error: HostError) -> dict[str, str]:
    if isinstance(error, Busy):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": 'Bearer realm="evaluator-host"'}
    return {}


def install_error_handlers(app: FastAPI) -> None:
    """Make errors raised by routes return problem+json; the middleware handles all other errors."""

    async def answer(request: Request, error: Exception) -> Response:
        return error_response(request.scope, _host_error(error))

    for kind in (HostError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def _host_error(error: Exception) -> HostError:
    if isinstance(error, RequestValidationError):
        return invalid_request(error.errors())
    cause = error.__cause__ if isinstance(error, HTTPException) else error
    if isinstance(cause, HostError):  # if reading a body raises an error, FastAPI wraps it in its own exception
        return cause
    assert isinstance(error, HTTPException)  # noqa: S101 - no other class has a handler
    if isinstance(cause, OSError | ClientDisconnect):
        raise cause  # this is not the caller's fault, although FastAPI treats every error here as the caller's
    if error.status_code == NotFound.status:
        return NotFound("there is no such path; /docs describes the API")
    more = (
        "; /docs names the methods that this path accepts" if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else ""
    )
    wrapped = InvalidRequest(f"{error.detail}{more}")
    wrapped.status = error.status_code
    return wrapped


def invalid_request(faults: Sequence[Any]) -> InvalidRequest:
    """Return the error for pydantic's list of faults in a body; it names the first 50 faulty fields."""
    bare = any(fault["type"] == "missing" and fault["loc"][-1] == "evaluator" for fault in faults)
    problems = tuple(_problem(fault, bare=bare) for fault in faults[:50])
    names = ", ".join(problem.field or "body" for problem in problems[:3])
    return InvalidRequest(f"the request is invalid: {names}", problems=problems)


def _problem(fault: Mapping[str, Any], *, bare: bool) -> Problem:
    """Return the problem for one of pydantic's faults. `bare` means that the request has no field `evaluator`."""
    path = ".".join(str(part) for part in fault["loc"] if part != "body" and not _is_tag(part))
    kind, message = fault["type"], str(fault["msg"])
    if kind == "extra_forbidden" and path == "code" and bare:
        return Problem(path, "unknown field", 'code goes into `evaluator`: {"evaluator": {"code": "…"}}')
    if kind == "extra_forbidden":
        above, _, name = path.rpartition(".")
        if path == "evaluator.name" and isinstance(given := fault.get("input"), str):
            hint = f'give the name of a stored evaluator alone: {{"evaluator": {json.dumps(given[:80])}}}'
            return Problem(path, "unknown field", hint)
        if re.fullmatch(r"evaluators\.\d+\.name", path):
            hint = "store the evaluator under this name, and give only the name; a job's `name` names the job itself"
            return Problem(path, "unknown field", hint)
        if re.fullmatch(r"rows\.\d+", above):
            return Problem(path, "unknown field", _field_of_row(name))
        return Problem(path, "unknown field", _inner_field(above, name) or _meant_field(name) or _HINTS[kind])
    if kind in ("model_attributes_type", "dict_type", "model_type") and not path:
        if isinstance(fault.get("input"), bytes):
            return Problem("", "the Content-Type of the request is not JSON", _HINTS["json_type"])
        return Problem("", "the body is not a JSON object", _HINTS["json_invalid"])
    if kind == "enum" and isinstance(given := fault.get("input"), str):
        close = nearest_name(given, re.findall(r"'([^']+)'", message))
        return Problem(path, message, f"did you mean {close}?" if close else None)
    if kind == "json_invalid":
        reason = str(fault.get("ctx", {}).get("error", "")).removeprefix("not JSON: ")
        return Problem("", f"not valid JSON: {reason}", "correct the body at this place; it must be a JSON object")
    return Problem(path, message, _HINTS.get(kind))


def _inner_field(above: str, name: str) -> str | None:
    """Return a hint for a limit or a setting that was sent as a field of the evaluator itself."""
    if above.rpartition(".")[2] != "evaluator":
        return None
    found = next((place for place, names in _OF_EVALUATORS.items() if name in names), None)
    return None if found is None else f"did you mean {found}.{name}?"


def _field_of_row(name: str) -> str:
    """Return a hint for an unknown field of a row: the field that was meant, or that columns go into `inputs`."""
    known = _OTHER_NAMES.get(name.lower(), "")
    if known.startswith(("inputs", "outputs")):
        return f"did you mean {known}?"
    close = nearest_name(name, ROW_FIELDS, alike=0.75)
    return f"did you mean {close}?" if close else f'a column goes into `inputs`: {{"inputs": {{"{name[:80]}": …}}}}'


def _meant_field(name: str) -> str | None:
    """Return a hint that names the field that was probably meant by an unknown name."""
    if (known := _OTHER_NAMES.get(name.lower())) is not None:
        return f"did you mean {known}?"
    if name in _FIELDS:
        return "this is a field of other requests; leave it out, or see the request's example under /docs"
    close = nearest_name(name, _FIELDS, alike=0.75)
    return f"did you mean {close}?" if close else None


def _is_tag(part: object) -> bool:
    """Whether a part of pydantic's path is the tag of a union, such as `<name>`, and not a field."""
    return isinstance(part, str) and part.startswith("<")

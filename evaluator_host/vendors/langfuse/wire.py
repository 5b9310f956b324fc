"""Serves the API of Langfuse's code evaluator dispatchers `external` and `aws-lambda` (wire `langfuse`).

Sources: langfuse/langfuse@62751446, codeEvalDispatcherTypes.ts, awsLambdaCodeEvalDispatcher.ts and, for signatures,
encryption/signature.ts; PR #15088 at 5af11771 for the external dispatcher.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import Probe, Wire, described
from evaluator_host.types.errors import (
    Busy,
    HostError,
    InvalidRequest,
    NotFound,
    Refused,
    TooLarge,
    Unauthorized,
)
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.outcome import HOST_FAULTS, ErrorCode, EvaluationError, EvaluationResult

_LAMBDA: Final = "/2015-03-31/functions/{function}/invocations"
_BODY_BYTES: Final = (11 << 20) // 2
_SOURCE_BYTES: Final = 256 << 10
_RESULT_BYTES: Final = 256 << 10
_LANGUAGES: Final = {"PYTHON": Language.PYTHON, "TYPESCRIPT": Language.TYPESCRIPT}
_OURS: Final = "EXTERNAL_INVOCATION_ERROR"
_CODES: Final = {
    ErrorCode.SYNTAX_ERROR: "INVALID_SOURCE",
    ErrorCode.ENTRY_NOT_FOUND: "INVALID_SOURCE",
    ErrorCode.ENTRY_AMBIGUOUS: "INVALID_SOURCE",
    ErrorCode.INVALID_RESULT: "INVALID_RESULT",
    ErrorCode.NON_FINITE: "INVALID_RESULT",
    ErrorCode.RESULT_TOO_LARGE: "RESULT_TOO_LARGE",
    ErrorCode.TIMEOUT: "TIMEOUT",
    **dict.fromkeys(HOST_FAULTS, _OURS),
}
_AWS: Final[tuple[tuple[type[HostError], int, str], ...]] = (
    (Unauthorized, 403, "UnrecognizedClientException"),
    (Refused, 403, "AccessDeniedException"),
    (TooLarge, 413, "RequestTooLargeException"),
    (NotFound, 404, "ResourceNotFoundException"),
    (Busy, 429, "TooManyRequestsException"),
    (InvalidRequest, 400, "InvalidRequestContentException"),
)


class _Unsupported(Exception):
    """The host cannot run a request; the message is in Langfuse's wording."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return two routes: one for the external dispatcher, and one for Lambda's `Invoke`."""

    async def external(request: Request) -> Response:
        found = await _answered(calls, request)
        return _response(found if isinstance(found, dict) else _of(found))

    async def invoke(request: Request) -> Response:
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        if kind == "DryRun":
            return Response(status_code=204)
        if kind != "RequestResponse":
            raise InvalidRequest(f"the invocation type {kind[:40]!r} is not supported; use RequestResponse")
        found = await _answered(calls, request)
        answer = found if isinstance(found, dict) else _of(found)
        return _lambda_response(answer)

    path = calls.wire.path
    return [Route(path, external, methods=["POST"]), Route(f"{path}{_LAMBDA}", invoke, methods=["POST"])]


async def _answered(calls: WireCalls, request: Request) -> EvaluationResult | EvaluationError | dict[str, Json]:
    body = await calls.read(request)
    scope = _inner(body, "scope")
    tenant = "/".join(str(scope.get(name, "")) for name in ("organizationId", "projectId"))
    if not scope:
        tenant = request.headers.get("x-amz-tenant-id", "").replace(":", "/", 1)
    await calls.enter_tenant(request, tenant)
    try:
        evaluator, row = _read(body)
    except _Unsupported as refused:
        return _failure(refused.code, str(refused))
    return await calls.evaluate(request, evaluator, row)


def _read(body: dict[str, Any]) -> tuple[Evaluator, Row]:
    """Read the evaluator and the row from a dispatch request.

    Raises:
      _Unsupported: the language or the source is not one that Langfuse sends.
    """
    named, code = _inner(body, "runtime").get("language"), _inner(body, "code").get("source")
    language = _LANGUAGES.get(named) if isinstance(named, str) else None
    if language is None:
        raise _Unsupported("UNSUPPORTED_RUNTIME", f"runtime.language is {str(named)[:40]!r}, not PYTHON or TYPESCRIPT")
    if not isinstance(code, str) or not code.strip():
        raise _Unsupported("INVALID_SOURCE", "code.source has no code")
    if len(code.encode("utf-8", "replace")) > _SOURCE_BYTES:
        raise _Unsupported("SOURCE_TOO_LARGE", f"code.source is over {_SOURCE_BYTES >> 10} KB")
    payload = _inner(body, "payload")
    if not isinstance(payload.get("observation"), dict):
        raise _Unsupported(_OURS, "payload.observation is missing")
    variables = {"observation": payload["observation"], "experiment": payload.get("experiment")}
    settings = EvaluatorSettings(entry="evaluate")  # Langfuse calls no other function
    evaluator = Evaluator(code, language=language, contract=Contract("langfuse"), settings=settings)
    return evaluator, Row(variables=variables)


def _inner(body: dict[str, Any], name: str) -> dict[str, Any]:
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def _of(found: EvaluationResult | EvaluationError) -> dict[str, Json]:
    error = found if isinstance(found, EvaluationError) else found.error
    if error is None:
        return {"scores": list(found.native)} if isinstance(found, EvaluationResult) else {}
    code = _CODES.get(error.code, "USER_CODE_ERROR")
    typescript = isinstance(found, EvaluationResult) and found.evaluator.language is not Language.PYTHON
    # As in Langfuse, errors in Python code name the line, and errors in TypeScript code do not.
    return _failure(code, described(error, with_line=not typescript or code != "USER_CODE_ERROR"))


def _failure(code: str, message: str) -> dict[str, Json]:
    return {"error": {"code": code, "message": message}}


def _response(answer: dict[str, Json]) -> Response:
    response = json_response(answer)
    if len(response.body) > _RESULT_BYTES:
        said = f"the scores are over {_RESULT_BYTES >> 10} KB as JSON; return less"
        return json_response(_failure("RESULT_TOO_LARGE", said))
    return response


def _lambda_response(answer: dict[str, Json]) -> Response:
    error = answer.get("error")
    headers = {"X-Amz-Executed-Version": "$LATEST"}
    if isinstance(error, dict) and error["code"] == "TIMEOUT":
        told = {"errorType": "Sandbox.Timedout", "errorMessage": error["message"]}
        return json_response(told, headers={**headers, "X-Amz-Function-Error": "Unhandled"})
    if isinstance(error, dict) and error["code"] == _OURS:
        return _aws_error(500, "ServiceException", error["message"])
    response = _response(answer)
    response.headers.update(headers)
    return response


def refuse(error: HostError, path: str) -> Response:
    """Convert an error of the host to a response: in AWS's format on Lambda's path, otherwise in Langfuse's."""
    if path.startswith("/2015-03-31"):
        status, name = next(((status, name) for kind, status, name in _AWS if isinstance(error, kind)), (500, ""))
        return _aws_error(status, name or "ServiceException", error.detail)
    if isinstance(error, TooLarge):  # sent with status 200, so that Langfuse reads the error and does not retry
        return json_response(_failure("PAYLOAD_TOO_LARGE", error.detail))
    if isinstance(error, InvalidRequest) and error.status == InvalidRequest.status:
        return json_response(_failure("INVALID_SOURCE", error.detail))
    # Every version of Langfuse retries 429 and 500; only the newest retries 502, 503 and 504.
    status = 429 if isinstance(error, Busy) else min(500, error.status)
    return json_response(_failure(_OURS, error.detail), status)


def _aws_error(status: int, name: str, message: str) -> Response:
    body = {"Type": "Service" if status >= 500 else "User", "Message": message, "message": message}
    return json_response(body, status, {"x-amzn-errortype": name})


def access_key_id(_scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Return the access key id of a request that AWS's SDK has signed, or None for other requests.

    Langfuse's operator configures a key of this host as the access key id.
    """
    _, _, rest = headers.get("authorization", "").partition("AWS4-HMAC-SHA256 Credential=")
    return rest.partition("/")[0] or None


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests like those of Langfuse, for `wires check`."""
    invoke = _LAMBDA.format(function="code-based-eval-executor-python")
    scored = 'def evaluate(ctx):\n    return {"scores": [{"name": "exact", "value": 1, "dataType": "NUMERIC"}]}\n'
    typed = "function evaluate(ctx: EvaluationContext) { return { scores: [{ name: 'n', value: 1 }] }; }"
    return (
        Probe("external, Python", "POST", "", _dispatch("PYTHON", scored), lambda got: _has(got, "scores")),
        Probe("external, TypeScript", "POST", "", _dispatch("TYPESCRIPT", typed), lambda got: _has(got, "scores")),
        Probe(
            "external, code that raises",
            "POST",
            "",
            _dispatch("PYTHON", "def evaluate(ctx):\n    return ctx.x\n"),
            lambda got: _has(got, "error"),
        ),
        Probe("AWS Lambda Invoke", "POST", invoke, _dispatch("PYTHON", scored), lambda got: _has(got, "scores")),
    )


def _has(response: Any, key: str) -> bool:
    return response.status_code == 200 and key in response.json()


def _dispatch(language: str, source: str) -> dict[str, Json]:
    return {
        "scope": {"organizationId": "check", "projectId": "check", "evaluatorId": "check"},
        "runtime": {"language": language},
        "execution": {"jobExecutionId": "check"},
        "code": {"source": source},
        "payload": {"observation": {"input": "2+2?", "output": "4", "metadata": {}, "toolCalls": []}},
    }


WIRE: Final = Wire(
    name="langfuse",
    title="Langfuse's external dispatcher of code evaluators, and its AWS Lambda",
    variable="LANGFUSE_CODE_EVAL_DISPATCHER=external LANGFUSE_CODE_EVAL_EXTERNAL_ENDPOINT={url}",
    clock_s=10.0,
    body_bytes=_BODY_BYTES,
    refuse=refuse,
    routes=routes,
    probes=probes,
    key_of=access_key_id,
    signature_header="x-langfuse-signature",
)

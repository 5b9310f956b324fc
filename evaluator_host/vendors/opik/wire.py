"""Serves the part of the API of Opik's Python backend that runs custom metrics (wire `opik`).

Opik finds this host by its own setting `PYTHON_EVALUATOR_URL`.

Sources: comet-ml/opik@02b630c0, apps/opik-python-backend: evaluator.py, process_worker.py and its tests, which check
the error messages; score_validation.py at 5147e990; the Java class PythonEvaluatorService, which decides which requests
are retried.
"""

import re
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.forward import forward
from evaluator_host.platform.wires.wire import Probe, Wire, described
from evaluator_host.types.errors import Busy, HostError, InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Row
from evaluator_host.types.outcome import HOST_FAULTS, ErrorCode, EvaluationError, EvaluationResult

_PRIVATE: Final = "/v1/private/evaluators"
_SCORE: Final = f"{_PRIVATE}/python"
_HEALTH: Final = "/healthcheck"
_NO_METRIC: Final = (
    "Field 'code' in the request doesn't contain a subclass implementation of 'opik.evaluation.metrics.BaseMetric'"
)
_NO_SCORE: Final = "The provided 'code' field didn't return any 'opik.evaluation.metrics.ScoreResult'"
_NOT_EVALUATED: Final = "The provided 'code' and 'data' fields can't be evaluated"
_NOT_PYTHON: Final = "Field 'code' contains invalid Python code"
_NOT_JSON: Final = "The browser (or proxy) sent a request that this server could not understand."
_NAMED: Final = 10  # maximum number of unusable scores that a message lists
_NAME_CHARS: Final = 100
_FRAME: Final = re.compile(r'^([ \t]*+File )"[^"\n]*"', re.MULTILINE)


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the routes that score, report health, and pass other requests on to Opik's own backend."""

    async def score(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response()
        body = await _body(calls, request)
        code, data = body.get("code"), body.get("data")
        if code is None:
            return _error(400, "Field 'code' is missing in the request")
        if not isinstance(code, str):
            return _error(400, "Field 'code' must be a string")
        if data is None:
            return _error(400, "Field 'data' is missing in the request")
        kind = {"type": body["type"]} if isinstance(body.get("type"), str) else {}
        row = Row(variables={"data": data, **kind})
        return _answer(await calls.evaluate(request, Evaluator(code, contract=Contract("opik")), row))

    async def health(_: Request) -> Response:
        return PlainTextResponse("OK")

    async def other(request: Request) -> Response:
        with calls.audited(request, "upstream"):
            return await forward(calls, request)

    path = calls.wire.path
    passed_on = ["GET", "POST", "PUT", "DELETE"]
    return [
        Route(path + _SCORE, score, methods=["POST", "OPTIONS"]),
        Route(path + _HEALTH, health),
        Route(path + "/{rest:path}", other, methods=passed_on),
    ]


async def _body(calls: WireCalls, request: Request) -> dict[str, Any]:
    try:
        return await calls.read(request)
    except InvalidRequest as error:
        if "is not" in error.detail:
            raise InvalidRequest(_NOT_JSON) from error
        raise


def _answer(found: EvaluationResult | EvaluationError) -> Response:
    if isinstance(found, EvaluationError):
        return _failed(found)
    scores = found.value.get("scores") if isinstance(found.value, dict) else None
    # unusable scores are returned too, because Opik stores the usable ones among them
    if isinstance(scores, list) and scores:
        unusable = [reason for one in scores if (reason := _unusable(one)) is not None]
        if len(unusable) < len(scores):
            return json_response({"scores": scores})
        return _error(400, f"The provided 'code' field returned no usable score: {', '.join(unusable[:_NAMED])}")
    return _error(400, _NO_SCORE) if found.error is None or scores == [] else _failed(found.error)


def _unusable(score: Json) -> str | None:
    """Return why Opik cannot store a score, or None if Opik can store it."""
    found = score if isinstance(score, dict) else {}
    name = re.sub(r"[\x00-\x1f\x7f]", " ", str(found.get("name") or "<unnamed>"))[:_NAME_CHARS]
    if found.get("value") is None:
        return f"'{name}' returned no value"
    return f"'{name}' reported the scoring as failed" if found.get("scoring_failed") is True else None


def _failed(error: EvaluationError) -> Response:
    if error.code is ErrorCode.TIMEOUT:
        return _error(504, f"Server processing exceeded timeout limit: {error.message}")
    if error.code in HOST_FAULTS:
        return _error(503, error.message)
    if error.code is ErrorCode.ENTRY_NOT_FOUND:
        return _error(400, _NO_METRIC)
    if error.code is ErrorCode.INVALID_RESULT:
        return _error(400, _NO_SCORE)
    trace = _FRAME.sub(r'\1"<string>"', error.traceback or described(error))
    trace = trace.removeprefix("Traceback (most recent call last):\n").rstrip("\n")
    of_module = error.code is ErrorCode.SYNTAX_ERROR or "in <module>" in trace
    return _error(400, f"{_NOT_PYTHON if of_module else _NOT_EVALUATED}: {trace}")


def _error(status: int, text: str) -> Response:
    return json_response({"error": f"{status} {HTTPStatus(status).phrase}: {text}"}, status)


def refuse(error: HostError, _path: str) -> Response:
    """Return Opik's response for an error of the host; Opik retries after a 503."""
    if isinstance(error, Busy):
        return _error(503, error.detail)
    return _error(400 if error.status == InvalidRequest.status else error.status, error.detail)


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests like those of Opik's backend, for `wires check`."""
    code = (
        "from opik.evaluation.metrics import base_metric, score_result\n\n"
        "class Equals(base_metric.BaseMetric):\n"
        "    def score(self, output, reference, **ignored):\n"
        "        return score_result.ScoreResult(value=float(output == reference), name='equals')\n"
    )
    data: dict[str, Json] = {"output": "4", "reference": "4"}
    wrong = "400 Bad Request: Field 'data' is missing in the request"
    return (
        Probe("a trace", "POST", _SCORE, {"code": code, "data": data}, lambda got: bool(got.json()["scores"])),
        Probe("a request without data", "POST", _SCORE, {"code": code}, lambda got: got.json()["error"] == wrong),
        Probe("the container's health check", "GET", _HEALTH, None, lambda got: got.status_code == 200),
    )


WIRE: Final = Wire(
    name="opik",
    title="Opik's Python backend, which runs custom metrics",
    variable="PYTHON_EVALUATOR_URL={url}",
    clock_s=5.0,
    row_s=3.0,
    body_bytes=16 << 20,
    refuse=refuse,
    routes=routes,
    probes=probes,
    open_paths=frozenset({_HEALTH}),
)

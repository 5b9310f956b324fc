"""Makes a stored evaluator an endpoint that other platforms call to score one row (wire `webhook`).

Sources: promptfoo 0.121.20 (assertion `webhook`), agenta 0.125.1 (`auto_webhook_test`), azure-ai-projects 2.10.0
(`EndpointBasedEvaluatorDefinition`), Maxim's page on API based evaluators.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from evaluator_host.platform.evaluators.resource import EvaluatorResource
from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import Probe, Wire, described, query_key
from evaluator_host.types.bounds import reaches
from evaluator_host.types.errors import Busy, HostError, InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Row
from evaluator_host.types.numbers import exact
from evaluator_host.types.outcome import HOST_FAULTS, ErrorCode, EvaluationError, EvaluationResult, Status

_OUTPUTS: Final = ("output", "outputs", "response", "answer", "prediction")
_WITHOUT_SCORE: Final = ("skipped", "no_score")  # warnings that say why a result has no score
_CLOCK_S: Final = 5.0  # seconds that promptfoo waits for an answer; Agenta waits 10 seconds


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the route that scores a row, and two that describe the evaluators."""
    evaluators = calls.host.resource(EvaluatorResource).registry

    async def score(request: Request) -> Response:
        body = await calls.read(request)
        workspace = calls.caller(request).workspace
        found = await evaluators.resolve(workspace, request.path_params["evaluator"])
        row, fails_as_result = _row(body, found.evaluator)
        result = await calls.evaluate(request, found.evaluator, row, lock=found.lock)
        error = result if isinstance(result, EvaluationError) else result.error
        if fails_as_result and isinstance(result, EvaluationResult) and (own := _promptfoo_s(result)) is not None:
            return json_response(own)
        if error is not None:
            return _failed(error, as_result=fails_as_result)
        return json_response(_answer(result, found.evaluator) if isinstance(result, EvaluationResult) else {})

    async def show(request: Request) -> Response:
        workspace = calls.caller(request).workspace
        one = (await evaluators.resolve(workspace, request.path_params["evaluator"])).evaluator
        return json_response({"evaluator": one.name, "version": one.version, "contract": one.contract.value})

    async def show_all(request: Request) -> Response:
        return json_response({"evaluators": await evaluators.store.names(calls.caller(request).workspace)})

    path = calls.wire.path
    one = f"{path}/{{evaluator}}"
    return [Route(path, show_all), Route(one, show), Route(one, score, methods=["POST"])]


def _row(body: dict[str, Any], evaluator: Evaluator) -> tuple[Row, bool]:
    """Read the row in a request, and whether the caller expects failures as results instead of HTTP errors."""
    context = body.get("context")
    if isinstance(context, dict) and "output" in body and set(body) == {"output", "context"}:  # promptfoo's body
        if evaluator.contract is Contract("promptfoo"):
            return Row(variables=body), True
        variables = context.get("vars")
        return Row(variables if isinstance(variables, dict) else {}, body["output"]), True
    if isinstance(body.get("inputs"), dict):  # Agenta's body, or a row as in `POST /v1/evaluate`
        outputs = body.get("output", body.get("outputs"))
        trace, variables = body.get("trace"), body.get("variables")
        if not isinstance(trace, dict | None) or not isinstance(variables, dict | None):
            raise InvalidRequest("trace and variables must be objects, or left out")
        return Row(body["inputs"], outputs, trace, variables, body.get("criteria")), False
    name = next((name for name in _OUTPUTS if name in body), None)
    return Row({key: value for key, value in body.items() if key != name}, body.get(name) if name else None), False


def _promptfoo_s(result: EvaluationResult) -> dict[str, Json] | None:
    """Return a promptfoo assertion's result as promptfoo stores it, or None for other evaluators."""
    if result.evaluator.contract is not Contract("promptfoo") or not result.native:
        return None
    native = result.native[0]
    return {**native, "success": native["pass"], "metrics": result.metrics}


def _answer(result: EvaluationResult, evaluator: Evaluator) -> dict[str, Json]:
    """Convert a result to the form that all callers read. Without a verdict, scores from the middle of the scale pass.

    A skipped row passes, because an evaluator that does not apply must not fail a test.
    """
    score, passed, reason = result.score, result.passed, result.reason
    if passed is None and score is not None:
        least = evaluator.passing_score
        passed = reaches(score, least)
        told = f"the evaluator has no threshold, so a score of at least {exact(least)} passes"
        if reason is None or (evaluator.judge is None and not 0 <= score <= 1):
            reason = told if reason is None else f"{reason} ({told})"
    elif passed is None:
        passed = result.status is Status.SKIPPED
    if score is None and reason is None:
        reason = next((one.message for one in result.warnings if one.code in _WITHOUT_SCORE), None)
    answer = {"pass": passed, "success": passed, "score": score, "reason": reason, "label": result.label}
    return {**{name: value for name, value in answer.items() if value is not None}, "metrics": result.metrics}


def _failed(error: EvaluationError, *, as_result: bool) -> Response:
    """Report a failure: promptfoo gets a failed assertion, other callers get an HTTP error and no score."""
    text = described(error)
    if as_result and error.code not in HOST_FAULTS:
        return json_response({"pass": False, "success": False, "score": 0, "reason": f"{error.code}: {text}"})
    status = 503 if error.code in HOST_FAULTS else 504 if error.code is ErrorCode.TIMEOUT else 422
    return json_response({"error": text, "code": error.code.value}, status)


def refuse(error: HostError, _path: str) -> Response:
    """Return the response for an error of the host: `{"error": text, "code"}`, with the error's HTTP status."""
    headers = {"Retry-After": "1"} if isinstance(error, Busy) else None
    return json_response({"error": error.detail, "code": error.code}, error.status, headers)


def key_of(scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Return the API key in the header `api-key` (Azure) or in the query parameter `key`, or None."""
    return headers.get("api-key") or query_key(scope)


def probes(below: str) -> tuple[Probe, ...]:
    """Return requests for `wires check`: for the list of evaluators, and for the evaluator `below` if it is given."""
    listed = Probe("the list of evaluators", "GET", "", None, lambda got: got.status_code == 200)
    if not below:
        return (listed,)
    asked = {"output": "Paris", "context": {"prompt": "capital of France?", "vars": {"correct_answer": "Paris"}}}
    agenta = {"inputs": {"question": "capital of France?", "correct_answer": "Paris"}, "output": "Paris"}
    return (
        listed,
        Probe("promptfoo", "POST", "", asked, lambda got: isinstance(got.json().get("pass"), bool)),
        Probe("Agenta", "POST", "", agenta, lambda got: got.status_code == 200 and "success" in got.json()),
    )


WIRE: Final = Wire(
    name="webhook",
    title="webhook evaluators of promptfoo, Agenta, Azure AI Foundry and Maxim",
    variable="promptfoo: type: webhook, value: {url}/EVALUATOR",
    clock_s=_CLOCK_S,
    body_bytes=8 << 20,
    refuse=refuse,
    routes=routes,
    probes=probes,
    prefix="/hooks",
    key_of=key_of,
)

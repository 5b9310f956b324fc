"""Serves the API of Laminar's evaluator executor (wire `laminar`), for Laminar's setting `PYTHON_ONLINE_EVALUATOR_URL`.

Source: lmnr-ai/lmnr, the callers in app-server and frontend. Laminar's own executor is not public, so we do not know
what it calls the function: this wire accepts any function with one parameter.
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import Probe, Wire, described
from evaluator_host.types.errors import Busy, HostError, InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Json, Row
from evaluator_host.types.outcome import EvaluationError, EvaluationResult

_ENTRY: Final = "__evaluator_host_score"
_CALLER: Final = f"""

def __evaluator_host_found(names):
    function = type(lambda: 0)
    own = [one for one in names.values() if type(one) is function and one.__name__ != "__evaluator_host_found"]
    named = [one for one in own if one.__name__ in ("main", "evaluate")]
    return (named or [one for one in own if one.__code__.co_argcount == 1])[-1:]

__evaluator_host_found = __evaluator_host_found(dict(globals()))

def {_ENTRY}(inputs, outputs, trace):
    if not __evaluator_host_found:
        return {{"score": 0, "error": "the code defines no function with one parameter: write def main(output): ..."}}
    value = __evaluator_host_found[0](outputs)
    if hasattr(value, "__await__"):
        import asyncio
        value = asyncio.run(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        return {{"score": 0, "error": f"the function returned {{repr(value)[:80]}}; a score must be a number or None"}}
    if value is not None and not -float("inf") < value < float("inf"):
        return {{"score": 0, "error": f"the function returned {{value}}; a score must be finite"}}
    return {{"score": value or 0, "none": value is None}}
"""


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the route that runs an evaluator, directly at the wire's own URL."""

    async def score(request: Request) -> Response:
        body = await calls.read(request)
        definition = body.get("definition")
        code = definition.get("function_code") if isinstance(definition, dict) else None
        if not isinstance(code, str):
            raise InvalidRequest("definition.function_code is missing, or is not a string")
        evaluator = Evaluator(code + _CALLER, contract=Contract.EVALUATE, settings=EvaluatorSettings(entry=_ENTRY))
        return json_response(_told(await calls.evaluate(request, evaluator, Row(outputs=body.get("input")))))

    return [Route(calls.wire.path, score, methods=["POST"])]


def _told(found: EvaluationResult | EvaluationError) -> dict[str, Json]:
    error = found if isinstance(found, EvaluationError) else found.error
    if error is not None:
        return {"error": described(error)}
    value = found.value if isinstance(found, EvaluationResult) else None
    if not isinstance(value, dict) or "error" in value:
        return {"error": value["error"] if isinstance(value, dict) else "the function returned no score"}
    return {"score": None if value["none"] else value["score"]}


def refuse(error: HostError, _path: str) -> Response:
    """Return Laminar's response for an error of the host: `{"error": text}`."""
    headers = {"Retry-After": "1"} if isinstance(error, Busy) else None
    return json_response({"error": error.detail}, error.status, headers)


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests like those of Laminar, for `wires check`."""
    code = "def main(output):\n    return 1.0 if output == 'Paris' else 0.0\n"
    body = {"definition": {"function_code": code}, "input": "Paris"}
    raises = {"definition": {"function_code": "def main(output):\n    return output['x']\n"}, "input": "Paris"}
    return (
        Probe("a span's output", "POST", "", body, lambda got: got.json() == {"score": 1.0}),
        Probe("code that raises", "POST", "", raises, lambda got: "TypeError" in got.json()["error"]),
    )


WIRE: Final = Wire(
    name="laminar",
    title="the executor of Laminar's online evaluators",
    variable="PYTHON_ONLINE_EVALUATOR_URL={url}",
    clock_s=30.0,
    row_s=10.0,
    body_bytes=8 << 20,
    refuse=refuse,
    routes=routes,
    probes=probes,
)

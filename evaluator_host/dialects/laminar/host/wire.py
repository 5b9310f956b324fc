"""The wire `laminar`: the executor of Laminar's online evaluators (`PYTHON_ONLINE_EVALUATOR_URL`).

Source: lmnr-ai/lmnr, the callers in app-server and frontend. Laminar's own executor is not public: the name of the
function is not known, so one of any name that takes one argument is called.
"""

from typing import Final
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from evaluator_host.dialects.script.host.scripts import Script, ScriptResult, script_result
from evaluator_host.dialects.wires.host.calls import WireCalls
from evaluator_host.dialects.wires.host.wire import Probe, Wire
from evaluator_host.model.errors import Busy, HostError, InvalidRequest
from evaluator_host.model.evaluator import Json
from evaluator_host.model.json_values import InvalidJson, decode_json
from evaluator_host.web.http.json_routes import json_response

_CALL: Final = """

def __evaluator_host(names, given, mark):
    function = type(lambda: 0)
    own = [one for one in names.values() if type(one) is function and one.__name__ != "__evaluator_host"]
    named = [one for one in own if one.__name__ in ("main", "evaluate")]
    fitting = named or [one for one in own if one.__code__.co_argcount == 1]
    if not fitting:
        raise SystemExit("the code defines no function of one parameter: write def main(output): ...")
    value = fitting[-1](given)
    if hasattr(value, "__await__"):
        import asyncio
        value = asyncio.run(value)
    plain = value is None or isinstance(value, (int, float)) and not isinstance(value, bool)
    number = float(value) if isinstance(value, float) else value  # not the text of a numpy.float64
    print("\\n" + mark + ("" if plain else "?") + repr(number)[:400])

__evaluator_host(dict(globals()), {given!r}, {mark!r})
"""


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the route, which is the wire's address itself."""

    async def score(request: Request) -> Response:
        body = await calls.read(request)
        definition = body.get("definition")
        code = definition.get("function_code") if isinstance(definition, dict) else None
        if not isinstance(code, str):
            raise InvalidRequest("definition.function_code is missing, or is not a text")
        mark = uuid4().hex
        call = _CALL.replace("{mark!r}", repr(mark)).replace("{given!r}", repr(body.get("input")))
        script = Script(code + call)
        found = script_result(await calls.evaluate(request, script.evaluator, script.row))
        return json_response(_told(found, mark))

    return [Route(calls.wire.path, score, methods=["POST"])]


def _told(found: ScriptResult, mark: str) -> dict[str, Json]:
    if found.error is not None:
        return {"error": found.error.message}
    text = found.stdout.rpartition(mark)[2]
    if found.exit_code != 0 or mark not in found.stdout:
        return {"error": found.stderr.strip().rpartition("\n")[2] or f"exit code {found.exit_code}"}
    if text.startswith("?"):
        return {"error": f"the function returned {text[1:].strip()[:80]}; a score is a number or None"}
    try:
        return {"score": None if text.strip() == "None" else decode_json(text.encode())}
    except InvalidJson:
        return {"error": "the score is not finite, or the code printed after its end"}


def refuse(error: HostError, _path: str) -> Response:
    """Return the response for an error of the host: a text under `error`."""
    headers = {"Retry-After": "1"} if isinstance(error, Busy) else None
    return json_response({"error": error.detail}, error.status, headers)


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests as Laminar sends them."""
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

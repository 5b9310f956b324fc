"""Serves Vellum's API (wire `vellum`): `POST /v1/execute-code`, which its SDK calls for code with packages or secrets.

Source: vellum-ai 1.14.8, `client.execute_code` and `CodeExecutionNode`.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import Probe, Wire, described
from evaluator_host.types.errors import Busy, HostError, InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Language, Row
from evaluator_host.types.json_values import InvalidJson, decode_given
from evaluator_host.types.outcome import HOST_FAULTS, ErrorCode, EvaluationError, EvaluationResult

_PATH: Final = "/v1/execute-code"
_RUNTIMES: Final = {
    "PYTHON_3_11_6": Language.PYTHON,
    "PYTHON_3_12": Language.PYTHON,
    "TYPESCRIPT_5_3_3": Language.TYPESCRIPT,
}
_EMPTY: Final[dict[str, Json]] = {
    "STRING": "",
    "NUMBER": 0.0,
    "JSON": None,
    "CHAT_HISTORY": [],
    "SEARCH_RESULTS": [],
    "ARRAY": [],
    "ERROR": None,
    "FUNCTION_CALL": None,
}
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "STRING": (str,),
    "NUMBER": (int, float),
    "CHAT_HISTORY": (list,),
    "SEARCH_RESULTS": (list,),
    "ARRAY": (list,),
    "ERROR": (dict,),
    "FUNCTION_CALL": (dict,),
}
_PACKAGES: Final = "packages must be a list of objects with `name` and `version`"
_NAMES: Final = {"STRING": "str", "NUMBER": "float"}


class _Refused(Exception):
    """A returned value does not fit the output type; the message says why."""


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the route that runs code."""

    async def execute(request: Request) -> Response:
        body = await calls.read(request)
        kind = body.get("output_type")
        if not isinstance(kind, str) or kind not in _EMPTY:
            raise InvalidRequest(f"output_type is {str(kind)[:40]!r}; it must be one of {', '.join(_EMPTY)}")
        found = await calls.evaluate(request, _evaluator(body), Row(variables=_inputs(body)))
        return _answer(found, kind)

    return [Route(calls.wire.path + _PATH, execute, methods=["POST"])]


def _evaluator(body: dict[str, Any]) -> Evaluator:
    code, language = body.get("code"), _RUNTIMES.get(str(body.get("runtime")))
    if not isinstance(code, str):
        raise InvalidRequest("code is missing, or is not a string")
    if language is None:
        raise InvalidRequest(f"runtime is {str(body.get('runtime'))[:40]!r}; it must be one of {', '.join(_RUNTIMES)}")
    between = "==" if language is Language.PYTHON else "@"
    packages = body.get("packages") or []
    if not isinstance(packages, list):
        raise InvalidRequest(_PACKAGES)
    pins = tuple(_pin(one, between) for one in packages)
    return Evaluator(code, language=language, contract=Contract.MAIN, packages=pins)


def _pin(package: Any, between: str) -> str:
    if not isinstance(package, dict) or not all(isinstance(package.get(one), str) for one in ("name", "version")):
        raise InvalidRequest(_PACKAGES)
    if package.get("repository"):
        raise InvalidRequest(
            f"package {package['name'][:80]!r} names a repository, but this host installs only from its operator's "
            "index; leave the repository out"
        )
    return f"{package['name']}{between}{package['version']}"


def _inputs(body: dict[str, Any]) -> dict[str, Json]:
    given = body.get("input_values")
    if not isinstance(given, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in given
    ):
        raise InvalidRequest("input_values must be a list of objects with `type`, `name` and `value`")
    return {one["name"]: one.get("value") for one in given}


def _answer(found: EvaluationResult | EvaluationError, kind: str) -> Response:
    error = found if isinstance(found, EvaluationError) else found.error
    log = found.logs.stdout if isinstance(found, EvaluationResult) else ""
    # Contract `main` requires a score; Vellum also accepts a value without a score.
    unscored = error is not None and error.code is ErrorCode.INVALID_RESULT and "as JSON" not in error.message
    if error is not None and not unscored:
        status = 503 if error.code in HOST_FAULTS else 400
        return json_response({"message": described(error), "detail": described(error), "log": log}, status)
    value = found.value if isinstance(found, EvaluationResult) else None
    try:
        output = {"type": kind, "value": _converted(value, kind)}
    except _Refused as refused:
        return json_response({"message": str(refused), "detail": str(refused), "log": log}, 400)
    return json_response({"log": log, "output": output})


def _converted(value: Json, kind: str) -> Json:
    """Convert a value to an output type; None becomes the type's default.

    Raises:
      _Refused: the value has another type.
    """
    if value is None:
        return _EMPTY[kind]
    if kind == "JSON":
        return _parsed(value) if isinstance(value, str) else value
    if kind == "NUMBER" and isinstance(value, str | bool):
        with suppress(ValueError):
            if math.isfinite(number := float(value)):  # JSON has no infinities and no NaN
                return number
    if not isinstance(value, _KINDS[kind]):
        wanted, have = _NAMES.get(kind, _KINDS[kind][0].__name__), type(value).__name__
        raise _Refused(f"Expected an output of type '{wanted}', but received '{have}'")
    return value


def _parsed(text: str) -> Json:
    try:
        return decode_given(text.encode())  # other JSON decoders turn numbers that are too large for a float into null
    except (InvalidJson, UnicodeEncodeError):
        return text


def refuse(error: HostError, _path: str) -> Response:
    """Convert an error of the host to Vellum's response: 400 for invalid inputs, 429 when busy, else 5xx."""
    status = 429 if isinstance(error, Busy) else 400 if error.status == InvalidRequest.status else error.status
    text = "; ".join([error.detail, *(f"{one.field}: {one.message}" for one in error.problems[:5])])
    return json_response({"message": text, "detail": text, "log": ""}, status)


def api_key(_scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Return the API key in the header `X-API-KEY`, or None."""
    return headers.get("x-api-key")


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests like those of Vellum's client, for `wires check`."""
    inputs = [{"type": "STRING", "name": "a", "value": "x"}]
    python = {
        "code": "def main(a: str):\n    return {'score': len(a)}\n",
        "runtime": "PYTHON_3_11_6",
        "input_values": inputs,
        "packages": [],
        "output_type": "JSON",
    }
    code = "export default async function main(inputs: {a: string}) { return inputs.a.length; }"
    typescript = {**python, "code": code, "runtime": "TYPESCRIPT_5_3_3", "output_type": "NUMBER"}
    return (
        Probe("Python", "POST", _PATH, python, lambda got: got.json()["output"]["value"] == {"score": 1}),
        Probe("TypeScript", "POST", _PATH, typescript, lambda got: got.json()["output"]["value"] == 1),
    )


WIRE: Final = Wire(
    name="vellum",
    title="code execution of Vellum's SDK for workflows",
    variable="VELLUM_API_URL={url}",
    clock_s=60.0,
    row_s=30.0,
    body_bytes=16 << 20,
    refuse=refuse,
    routes=routes,
    probes=probes,
    key_of=api_key,
)

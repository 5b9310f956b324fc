"""Serves the API of Coze Loop's runtimes (wire `coze`).

Coze Loop finds this host by its own settings `COZE_LOOP_PYTHON_FAAS_URL` and `COZE_LOOP_JS_FAAS_URL`.

Source: coze-dev/coze-loop@4f550f38, http_faas_runtime.go, the templates around users' code, js_faas_server.ts.
"""

import time
from typing import Any, Final
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from evaluator_host.engine.contracts.native import is_number
from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.programs.service import Program, ScriptResult, script_result
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import Probe, Wire
from evaluator_host.types.errors import Busy, HostError, InvalidRequest
from evaluator_host.types.evaluator import Json, Language, Limits

_START: Final = "__COZE_RETURN_VAL_START__"
_END: Final = "__COZE_RETURN_VAL_END__"
_LOG_KB: Final = 256
_LANGUAGES: Final = {
    "python": Language.PYTHON,
    "py": Language.PYTHON,
    "javascript": Language.JAVASCRIPT,
    "js": Language.JAVASCRIPT,
    "typescript": Language.TYPESCRIPT,
    "ts": Language.TYPESCRIPT,
}


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the routes that run code and report health."""

    async def run_code(request: Request) -> Response:
        began = time.perf_counter()
        body = await calls.read(request)
        script = _script(body, calls)
        result = await calls.evaluate(request, script.evaluator, script.row, timeout_s=_timeout_s(body))
        found = script_result(result)
        return json_response(_told(found, script.language, began))

    async def health(_: Request) -> Response:
        return json_response({"status": "healthy"})

    path = calls.wire.path
    return [Route(f"{path}/run_code", run_code, methods=["POST"]), Route(f"{path}/health", health)]


def _script(body: dict[str, Any], calls: WireCalls) -> Program:
    code, language = body.get("code"), _LANGUAGES.get(str(body.get("language", "")).lower())
    if not isinstance(code, str) or not code.strip():
        raise InvalidRequest("code is required")
    if language is None:
        raise InvalidRequest(f"unsupported language: {str(body.get('language'))[:40]}")
    log_kb = min(_LOG_KB, calls.host.settings.max_log_kb)
    return Program(code, language=language, limits=Limits(log_kb=log_kb))


def _timeout_s(body: dict[str, Any]) -> float | None:
    timeout_ms = body.get("timeout")
    return timeout_ms / 1000 if is_number(timeout_ms) and timeout_ms > 0 else None


def _told(found: ScriptResult, language: Language, began: float) -> dict[str, Json]:
    """Return the response for a result. The status is always 200, because Coze Loop retries after any other status."""
    value, stdout = _returned(found.stdout, language)
    told: dict[str, Json] = {
        "output": {"stdout": stdout, "stderr": found.stderr, "ret_val": value},
        "metadata": {
            "task_id": f"task_{uuid4().hex}",
            "instance_id": "evaluator-host",
            "duration": round((time.perf_counter() - began) * 1000),
            "status": "success" if found.exit_code == 0 else "failed",
        },
    }
    if found.error is not None:
        told["error"] = f"{found.error.code}: {found.error.message}"
    elif found.exit_code != 0 and not value:
        last = found.stderr.strip().rpartition("\n")[2]
        told["error"] = f"execution failed: {last or f'exit code {found.exit_code}'}"
    return told


def _returned(stdout: str, language: Language) -> tuple[str, str]:
    """Return the value that a program printed (in Python between two marker lines), and the rest of its output."""
    before, start, rest = stdout.partition(_START)
    if start:
        value, _, after = rest.partition(_END)
        return value.strip(), before + after.removeprefix("\n")
    if language is Language.PYTHON:
        return "", stdout
    lines = stdout.rstrip("\n").split("\n")
    return lines[-1].strip(), "\n".join(lines[:-1])


def refuse(error: HostError, _path: str) -> Response:
    """Convert an error of the host to Coze Loop's response: status 200 if Coze Loop should not try again."""
    body = {"error": error.detail}
    if isinstance(error, Busy) or error.status >= 500:
        return json_response(body, 503, {"Retry-After": "1"})
    if error.status in (401, 403, 404, 405):
        return json_response(body, error.status)
    output = {"stdout": "", "stderr": error.detail, "ret_val": ""}
    return json_response({**body, "output": output, "metadata": {"status": "failed", "duration": 0}})


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests like those of Coze Loop, for `wires check`."""
    value = '{"score": 1.0, "reason": "same"}'
    python = f"print({_START!r})\nprint({value!r})\nprint({_END!r})\n"
    asked = {"timeout": 5000, "priority": "normal", "ext": {}}
    script = f"console.log({value!r});"
    return (
        Probe(
            "Python",
            "POST",
            "/run_code",
            {"language": "python", "code": python, **asked},
            lambda got: got.json()["output"]["ret_val"] == value,
        ),
        Probe(
            "JavaScript",
            "POST",
            "/run_code",
            {"language": "js", "code": script, **asked},
            lambda got: got.json()["output"]["ret_val"] == value,
        ),
        Probe("the container's health check", "GET", "/health", None, lambda got: got.status_code == 200),
    )


WIRE: Final = Wire(
    name="coze",
    title="the Python and JavaScript runtimes of Coze Loop",
    variable="COZE_LOOP_PYTHON_FAAS_URL={url} COZE_LOOP_JS_FAAS_URL={url}",
    clock_s=30.0,
    body_bytes=8 << 20,
    refuse=refuse,
    routes=routes,
    probes=probes,
    open_paths=frozenset({"/health"}),
)

"""Serves the sandboxes and `code_run` of Daytona's API (wire `daytona`), as evaluation platforms use them.

Sources: daytona 0.197.0 and 0.226.1 (their clients and models), agenta 0.125.1 (DaytonaRunner), Arize Phoenix@9478f954
(daytona_backend.py).
"""

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from evaluator_host.engine.contracts.native import is_number
from evaluator_host.platform.http.json_routes import json_response
from evaluator_host.platform.programs.service import Program, ScriptResult, script_result
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.wire import Probe, Wire, wire_request
from evaluator_host.types.errors import Busy, HostError, InvalidRequest, PackagesFailed
from evaluator_host.types.evaluator import Json, Language, Limits
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.types.outcome import HOST_FAULTS, ErrorCode
from evaluator_host.vendors.daytona.entities import LANGUAGE, Records, SandboxRecord

_TIMEOUT_S: Final = 60.0
_LOG_KB: Final = 256
_SNAPSHOTS: Final = ("default", "daytona-small", "evaluator-host")
_INSTALL_CHARS: Final = 4000
_INSTALL: Final = re.compile(r"""["'](pip|npm)["']\s*,\s*(?:\[\s*)?["']install["']([^\]]*)\]""")
_TEXT: Final = re.compile(r"""["']([^"']*)["']""")


class _Verbs:
    """Answers requests from Daytona's clients."""

    def __init__(self, calls: WireCalls) -> None:
        self._calls = calls
        self._records = Records(calls.host.store.database, calls.host.store.secrets.box)

    async def create(self, request: Request) -> Response:
        """Create a sandbox as a record only; no process starts."""
        body = await self._calls.read(request)
        try:
            record = await self._records.create(self._workspace(request), body)
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        return json_response(record.told(self._toolbox(request)))  # Daytona's client accepts only status 200

    async def list(self, request: Request) -> Response:
        """List the sandboxes that have the given labels, all on one page."""
        try:
            labels = decode_json(request.query_params.get("labels", "{}").encode())
        except InvalidJson:
            labels = None
        if not isinstance(labels, dict):
            raise InvalidRequest("labels is not a JSON object")
        toolbox = self._toolbox(request)
        items = [one.told(toolbox) for one in await self._records.find(self._workspace(request), labels)]
        pages = {"total": len(items), "page": 1, "totalPages": 1, "nextCursor": None}
        return json_response({"items": items, **pages})

    async def show(self, request: Request) -> Response:
        """Show a sandbox. Every other request about a sandbox gets the same response."""
        return json_response((await self._record(request)).told(self._toolbox(request)))

    async def delete(self, request: Request) -> Response:
        record = await self._record(request)
        await self._records.delete(record)
        return json_response({**record.told(self._toolbox(request)), "state": "destroyed"})

    async def snapshots(self, request: Request) -> Response:
        """List the standard snapshots, those that the query names, and those from which sandboxes were created."""
        names = dict.fromkeys([*request.query_params.getlist("name"), *_SNAPSHOTS])
        own = {one.asked.get("snapshot") for one in await self._records.find(self._workspace(request), {})}
        items = [_snapshot(str(name)) for name in (*names, *sorted(str(name) for name in own - {None}))]
        return json_response({"items": items, "total": len(items), "page": 1, "totalPages": 1})

    async def snapshot(self, request: Request) -> Response:
        """Show a snapshot; every name counts as an existing snapshot."""
        return json_response(_snapshot(request.path_params["name"]))

    async def code_run(self, request: Request) -> Response:
        """Run a script. If the script only installs packages, add the packages to the sandbox instead."""
        body = await self._calls.read(request)
        record = await self._records.lease(self._workspace(request), request.path_params["id"])
        code = body.get("code")
        if not isinstance(code, str):
            raise InvalidRequest("code is missing, or is not a string")
        language = _language(body.get("language") or record.labels.get(LANGUAGE) or "python")
        runner, timeout_s = language.runner, body.get("timeout")
        timeout_s = float(timeout_s) if is_number(timeout_s) and timeout_s > 0 else _TIMEOUT_S
        wanted = _installs(code)
        if wanted is None:
            script = self._script(body, record, code, language)
            result = await self._calls.evaluate(request, script.evaluator, script.row, timeout_s=timeout_s)
            return _told(script_result(result))
        packages = tuple(dict.fromkeys([*record.packages.get(runner, ()), *wanted]))
        script = Program("pass" if runner == "python" else "0;", language=language, packages=packages)
        try:
            result = await self._calls.evaluate(request, script.evaluator, script.row, timeout_s=timeout_s)
        except (InvalidRequest, PackagesFailed) as error:
            hints = [f"{one.field}: {one.message}; {one.hint}" for one in error.problems]
            return _ran(1, "\n".join([error.detail, *hints]))
        if script_result(result).exit_code != 0:
            return _told(script_result(result))
        await self._records.add_packages(record, runner, wanted)
        return _ran(0, f"Successfully installed {' '.join(wanted)}\n")

    def _script(self, body: dict[str, Any], record: SandboxRecord, code: str, language: Language) -> Program:
        argv, envs = body.get("argv") or [], body.get("envs") or {}
        texts = isinstance(argv, list) and isinstance(envs, dict)
        if not texts or not all(isinstance(one, str) for one in (*argv, *envs.values())):
            raise InvalidRequest("argv must be a list of strings, and envs an object whose values are strings")
        return Program(
            code,
            language=language,
            packages=record.packages.get(language.runner, ()),
            limits=Limits(log_kb=min(_LOG_KB, self._calls.host.settings.max_log_kb)),
            argv=tuple(argv),
            env={**record.env, **envs},
        )

    def _workspace(self, request: Request) -> str:
        return self._calls.caller(request).workspace

    async def _record(self, request: Request) -> SandboxRecord:
        return await self._records.get(self._workspace(request), request.path_params["id"])

    def _toolbox(self, request: Request) -> str:
        """Return the URL to which the client sends scripts.

        The URL has the host name that the client used for this request.
        """
        key = wire_request(request.scope).key
        segment = "" if key is None else f"/key/{key}"
        return f"{request.url.scheme}://{request.headers['host']}{self._calls.wire.path}{segment}/toolbox"


def routes(calls: WireCalls) -> list[BaseRoute]:
    """Return the routes for sandboxes, for snapshots, and for running a script in a sandbox."""
    verbs, path = _Verbs(calls), calls.wire.path
    api, one = f"{path}/api/sandbox", f"{path}/api/sandbox/{{id}}"
    return [
        Route(api, verbs.create, methods=["POST"]),
        Route(api, verbs.list),
        Route(f"{api}/paginated", verbs.list),
        Route(one, verbs.show),
        Route(one, verbs.delete, methods=["DELETE"]),
        Route(f"{one}/{{verb:path}}", verbs.show, methods=["GET", "POST", "PUT"]),
        Route(f"{path}/api/snapshots", verbs.snapshots),
        Route(f"{path}/api/snapshots/{{name:path}}", verbs.snapshot),
        Route(f"{path}/toolbox/{{id}}/process/code-run", verbs.code_run, methods=["POST"]),
    ]


def _language(name: Any) -> Language:
    try:
        return Language(str(name).lower())
    except ValueError:
        raise InvalidRequest(f"the language {str(name)[:40]!r} is not python, javascript or typescript") from None


def _installs(code: str) -> list[str] | None:
    """Return the packages that a short script installs with pip or npm (as Phoenix does), or None for other scripts."""
    found = _INSTALL.search(code) if len(code) <= _INSTALL_CHARS else None
    if found is None:
        return None
    return [text for text in _TEXT.findall(found[2]) if text and not text.startswith(("-", "/"))]


def _snapshot(name: str) -> dict[str, Json]:
    return {"id": name, "name": name, "state": "active", "regionIds": ["eu", "us"], "general": True}


def _told(found: ScriptResult) -> Response:
    error = found.error
    if error is not None and error.code is ErrorCode.TIMEOUT:
        return _error(408, f"command execution timeout: {error.message}")
    if error is not None and error.code in HOST_FAULTS:
        return _error(503, error.message)
    if error is not None:
        return _ran(137, f"{found.stdout}{found.stderr}{error.code}: {error.message}\n")
    failed = found.exit_code != 0
    return _ran(found.exit_code or 0, found.stdout + (found.stderr if failed else ""))


def _ran(exit_code: int, result: str) -> Response:
    return json_response({"exitCode": exit_code, "result": result, "artifacts": {"charts": []}})


def _error(status: int, message: str) -> Response:
    return json_response({"statusCode": status, "message": message, "error": message}, status)


def refuse(error: HostError, _path: str) -> Response:
    """Return the response for an error of the host, in the format of Daytona's API."""
    status = 429 if isinstance(error, Busy) else 400 if error.status == InvalidRequest.status else error.status
    return _error(status, error.detail)


def probes(_below: str) -> tuple[Probe, ...]:
    """Return requests like those of Daytona's client, for `wires check`. None of them runs a script."""
    labels = {LANGUAGE: "python"}
    return (
        Probe("snapshots", "GET", "/api/snapshots", None, lambda got: bool(got.json()["items"])),
        Probe("a sandbox", "POST", "/api/sandbox", {"labels": labels}, lambda got: got.json()["state"] == "started"),
        Probe("the list", "GET", "/api/sandbox", None, lambda got: got.status_code == 200),
    )


WIRE: Final = Wire(
    name="daytona",
    title="Daytona's sandboxes, for the code evaluators of Agenta and Phoenix",
    variable="DAYTONA_API_URL={url}/api",
    clock_s=130.0,
    row_s=120.0,
    body_bytes=8 << 20,
    refuse=refuse,
    routes=routes,
    probes=probes,
)

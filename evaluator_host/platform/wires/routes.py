"""Adds to the application the wires (routes for other platforms) that the settings turn on."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

from fastapi import FastAPI
from prometheus_client import Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evaluator_host.engine.config.settings import Settings, WireOptions
from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.http.error_responses import FOREIGN
from evaluator_host.platform.wires.calls import WireCalls
from evaluator_host.platform.wires.table import require_known, wires
from evaluator_host.platform.wires.wire import Wire, WireRequest
from evaluator_host.types.errors import Misconfigured

_KEY = "/key/"


def named_wires(settings: Settings) -> list[tuple[Wire, WireOptions]]:
    """Return the wires in `EVALUATOR_HOST_WIRES`, each with its options.

    Raises:
      Misconfigured: a name is unknown.
    """
    require_known(settings.wires, "EVALUATOR_HOST_WIRES")
    require_known(settings.wire_options, "EVALUATOR_HOST_WIRE_OPTIONS")
    return [(wires()[name].load(), settings.wire_options.get(name, WireOptions())) for name in settings.wires]


def mount_wires(app: FastAPI, served: ASGIApp, host: Host, access: Access) -> ASGIApp:
    """Add the wires' routes to `app`.

    Return the application `served` with middleware that recognises requests to wires.
    """
    calls = [WireCalls(wire, options, host, access) for wire, options in named_wires(host.settings)]
    for one in calls:
        app.router.routes += one.wire.routes(one)
    return WireRequests(served, calls, host.service.metrics) if calls else served


def wire_findings(settings: Settings) -> list[Finding]:
    """Return the `doctor` findings about the wires in the settings, one for each wire."""
    try:
        wires = named_wires(settings)
    except Misconfigured as error:
        return [Finding("wires", ok=False, detail=error.detail, fix="correct EVALUATOR_HOST_WIRES")]
    found = []
    for wire, options in wires:
        packages = ", ".join(pin for pins in options.packages.values() for pin in pins) or "no packages"
        proof = "its secret or a key" if options.secret is not None else "a key, if this host has keys"
        detail = f"at {wire.path}, called with {proof}; at most {wire.limit_s(options):g} s per row; {packages}"
        found.append(Finding(f"wire {wire.name}", ok=True, detail=detail))
    return found


class WireRequests:
    """ASGI middleware for requests to wires: it recognises them, removes keys from their paths, and counts them.

    Args:
      app: The application that serves all requests.
      calls: The wires that are turned on.
      metrics: Metrics of the host.
    """

    def __init__(self, app: ASGIApp, calls: list[WireCalls], metrics: Metrics) -> None:
        self._app = app
        self._calls = {one.wire.path: one for one in calls}
        self._requests = Counter(
            "evaluator_host_wire_requests",
            "Requests to wires (routes for other platforms), by wire and HTTP status.",
            ["wire", "status"],
            registry=metrics.registry,
        )
        self._seconds = Histogram(
            "evaluator_host_wire_seconds",
            "Duration in seconds of requests to wires, from the request's head to the response.",
            ["wire"],
            registry=metrics.registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. If it is for a wire, give it a `WireRequest` and count it."""
        found = self._find(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        calls, path, key = found
        inner = {**scope, "path": path, "raw_path": path.encode()}
        inner[FOREIGN] = WireRequest(calls.wire, calls.options, calls.workspace_id, inner, key)
        note = partial(self._note, calls.wire.name, perf_counter())
        await self._app(inner, receive, _watched(send, note))
        # telemetry names the span after the route's `path`, which a wire has, too
        scope["route"] = inner.get("route", calls.wire)

    def _find(self, path: str) -> tuple[WireCalls, str, str | None] | None:
        """Return the wire of a path, the path without its key, and the key: `/wires/NAME/key/eh_…/v1/private`."""
        for prefix, calls in self._calls.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                below, key = path.removeprefix(prefix), None
                if below.startswith(_KEY):
                    key, _, rest = below.removeprefix(_KEY).partition("/")
                    below = f"/{rest}" if rest else ""
                return calls, prefix + below.rstrip("/"), key
        return None

    def _note(self, wire: str, began: float, status: int) -> None:
        self._requests.labels(wire, str(status)).inc()
        self._seconds.labels(wire).observe(perf_counter() - began)


def _watched(send: Send, note: Callable[[int], None]) -> Send:
    """Return a `send` that also calls `note` with the status of the response."""

    async def watched(message: Message) -> None:
        if message["type"] == "http.response.start":
            note(message["status"])
        await send(message)

    return watched

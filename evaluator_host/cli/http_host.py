"""The running server: uvicorn over a service, from its first sandbox to a stop that leaves nothing behind."""

import asyncio
import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import uvicorn

from evaluator_host import __version__
from evaluator_host.cli.console import out
from evaluator_host.cli.edge import SIGNALS
from evaluator_host.config import Settings
from evaluator_host.web.app import create_app
from evaluator_host.web.door import Door
from evaluator_host.web.wire import EXACT_MATCH
from evaluator_host.wiring import open_service

_STOP_S: Final = 10  # calls that still run at a stop get this long


class _Server(uvicorn.Server):
    """Says where it listens once it does, and leaves signals to us: uvicorn would end the process before the pool."""

    greeting: tuple[str, ...] = ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for line in self.greeting:
            out.print(line)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


async def serve_http(settings: Settings, listener: socket.socket) -> None:
    """Serve on a listening socket until a signal ends it.

    Raises:
      SandboxUnavailable: no backend works.
    """
    async with open_service(settings) as service:
        config = uvicorn.Config(
            create_app(service, settings),
            loop="none",
            http=Door,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
        )
        server = _Server(config)
        server.greeting = greeting(base_url(listener), service.info().backend)
        await server.serve(sockets=[listener])


def base_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def greeting(url: str, backend: str) -> tuple[str, ...]:
    """Return what is printed once a host listens: where, on what, and a call to paste."""
    body = {
        "evaluator": {"code": EXACT_MATCH.replace("'", '"')},  # no quote that would end the shell's
        "inputs": {"correct_answer": "Paris"},
        "outputs": "Paris",
    }
    return (
        f"Evaluator Host {__version__} listens on {url} (sandbox: {backend}; API: {url}/docs). Try it:",
        f"curl -s {url}/v1/evaluate -H 'Content-Type: application/json' -d '{json.dumps(body)}'",
    )

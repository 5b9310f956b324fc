"""uvicorn still has the parts on which `connection_limits` depends, although they are not public."""

import ast
import asyncio
import gc
import inspect
import weakref
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock

import pytest
import pytest_asyncio
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from evaluator_host.platform.http import connection_limits
from evaluator_host.platform.http.connection_limits import ConnectionLimits

METHODS = {
    "connection_made": ["transport"],
    "connection_lost": ["exc"],
    "data_received": ["data"],
    "pause_writing": [],
    "resume_writing": [],
    "send_400_response": ["msg"],
    "on_message_begin": [],
    "on_headers_complete": [],
    "on_body": ["body"],
    "on_message_complete": [],
    "_unsupported_upgrade_warning": [],
}
ATTRIBUTES = {"pipeline", "connections", "transport", "cycle", "scope"}
CYCLE_ATTRIBUTES = {"transport", "response_complete", "response_started", "more_body", "keep_alive"}
CHANGED = f"uvicorn {uvicorn.__version__} has changed `{{}}`: adapt platform/http/connection_limits.py to it"


@pytest_asyncio.fixture
async def protocol() -> AsyncIterator[Any]:
    """An object of uvicorn's own protocol class that has read only the beginning of a request with a body."""

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    plain = HttpToolsProtocol(uvicorn.Config(app, lifespan="off", ws="none"), ServerState(), {})
    plain.connection_made(Mock(spec=asyncio.Transport, get_extra_info=Mock(return_value=None)))
    plain.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{")
    yield plain
    plain.connection_lost(None)
    await asyncio.gather(*plain.tasks)


@pytest.mark.parametrize("name", METHODS)
def test_uvicorn_still_calls_the_methods_that_are_overridden(name: str) -> None:
    method = getattr(HttpToolsProtocol, name, None)
    assert method is not None, CHANGED.format(name)
    assert list(inspect.signature(method).parameters)[1:] == METHODS[name], CHANGED.format(name)


async def test_uvicorn_still_has_the_attributes_that_are_read(protocol: Any) -> None:
    missing = [name for name in sorted(ATTRIBUTES) if not hasattr(protocol, name)]
    missing += [f"cycle.{name}" for name in sorted(CYCLE_ATTRIBUTES) if not hasattr(protocol.cycle, name)]
    assert missing == [], CHANGED.format(", ".join(missing))
    assert protocol in protocol.connections, CHANGED.format("connections")
    assert protocol.cycle.transport is protocol.transport, CHANGED.format("cycle.transport")


async def test_uvicorn_still_keeps_the_state_of_a_request_in_its_cycle(protocol: Any) -> None:
    cycle = protocol.cycle
    assert (cycle.response_complete, cycle.more_body, cycle.keep_alive) == (False, True, True), CHANGED.format("cycle")
    protocol.data_received(b"}")
    assert cycle.more_body is False, CHANGED.format("cycle.more_body")


@pytest.mark.parametrize("body_at_once", [True, False])
async def test_headers_wait_for_the_body_only_if_it_comes_at_once(body_at_once: bool) -> None:
    continues, written = asyncio.Event(), list[bytes]()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        if not body_at_once:
            await continues.wait()
        await send({"type": "http.response.body", "body": b"body"})

    protocol = ConnectionLimits(uvicorn.Config(app, lifespan="off", ws="none"), ServerState(), {})
    transport = Mock(spec=asyncio.Transport, get_extra_info=Mock(return_value=None), write=written.append)
    protocol.connection_made(transport)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while not written:
        await asyncio.sleep(0)
    assert written[0].endswith(b"\r\n\r\nbody" if body_at_once else b"\r\n\r\n")
    continues.set()
    await asyncio.gather(*protocol.tasks)
    assert b"".join(written).endswith(b"\r\n\r\nbody")
    assert len(written) == (1 if body_at_once else 2)
    protocol.connection_lost(None)


async def test_a_connection_is_not_quiet_while_the_head_of_its_response_waits() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b""})

    written = list[bytes]()
    protocol = ConnectionLimits(uvicorn.Config(app, lifespan="off", ws="none"), ServerState(), {})
    protocol.connection_made(Mock(spec=asyncio.Transport, get_extra_info=Mock(return_value=None), write=written.append))
    protocol.data_received(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    protocol._quiet_since = 0.0
    while not protocol.cycle.response_complete:
        await asyncio.sleep(0)
    assert (written, protocol.quiet_since != 0.0) == ([], True)
    await asyncio.gather(*protocol.tasks)
    await asyncio.sleep(0)
    assert written[0].endswith(b"\r\n\r\n")
    protocol.connection_lost(None)


async def test_a_request_is_freed_once_it_is_answered() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    protocol = ConnectionLimits(uvicorn.Config(app, lifespan="off", ws="none"), ServerState(), {})
    protocol.connection_made(Mock(spec=asyncio.Transport, get_extra_info=Mock(return_value=None)))
    gc.disable()
    try:
        protocol.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        first = weakref.ref(protocol.cycle)
        await asyncio.gather(*protocol.tasks)
        await asyncio.sleep(0)
        protocol.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first() is None
    finally:
        gc.enable()
    await asyncio.gather(*protocol.tasks)
    protocol.connection_lost(None)


def test_nothing_else_of_uvicorn_is_used() -> None:
    used, of_cycle = set(), set()
    for node in ast.walk(ast.parse(inspect.getsource(connection_limits))):
        if isinstance(node, ast.Attribute):
            match node.value:
                case ast.Name("self" | "other" | "oldest") | ast.Attribute(attr="_connection"):
                    used.add(node.attr)
                case ast.Attribute(attr="cycle" | "_cycle"):
                    of_cycle.add(node.attr)
                case _:
                    pass
    own = set(vars(ConnectionLimits)) | {
        "_begun",
        "_cycle",
        "_connection",
        "_hang_up",
        "_head",
        "_send",
        "_send_head",
        "is_closing",
    }
    assert used - own == ATTRIBUTES
    assert of_cycle == CYCLE_ATTRIBUTES
    overridden = {
        name
        for name in vars(ConnectionLimits)
        if name in METHODS or (hasattr(HttpToolsProtocol, name) and name[0] != "_")
    }
    assert overridden == set(METHODS)

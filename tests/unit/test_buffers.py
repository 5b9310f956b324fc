"""Bytes from sandboxes, callers and other machines wait in buffers in the host's memory. Each buffer has a limit, and a
test tries this limit.
"""

import ast
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final
from unittest.mock import Mock

import httpx
import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.binding import Binding
from evaluator_host.engine.contracts.otlp import TRACE_SPANS
from evaluator_host.engine.sandbox.docker import attach
from evaluator_host.engine.sandbox.docker.attach import AttachFailed, Attachment
from evaluator_host.engine.sandbox.protocol import BYTES_AHEAD, CALLS_AHEAD
from evaluator_host.engine.sandbox.send_window import SendWindow
from evaluator_host.engine.service import row_io
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.models.endpoint import read_body
from evaluator_host.platform.models.gateway import connection, exchange
from evaluator_host.platform.models.gateway.connection import Rejected, RequestReader, Tunnel
from evaluator_host.platform.traces.export import TraceSpans
from evaluator_host.platform.traces.live_traffic import Traffic, _Key
from evaluator_host.platform.wires import forward
from evaluator_host.types.errors import TooLarge
from evaluator_host.types.evaluator import EvaluatorSettings, Row
from evaluator_host.types.outcome import EvaluationError
from tests.ordinary_user import PROJECT
from tests.unit.test_large_answers import Provider, Reader, ask, connected

HOST: Final = PROJECT / "evaluator_host"
QUARTERS: Final = ("engine", "platform", "server", "vendors")
KINDS: Final = {"bytearray", "deque", "Queue", "BytesIO", "StringIO"}
HERE: Final = "unit/test_buffers.py"


@dataclass(frozen=True)
class Bound:
    """A limit (a constant in a module, or a field of the settings), and the test that tries the limit."""

    limit: str
    tried: str


SENT_AHEAD: Final = Bound("engine/sandbox/protocol.py CALLS_AHEAD", HERE)
STREAMED: Final = Bound("engine/service/rows.py BUFFERED_BYTES", "unit/test_rows_busy.py")
WAITING: Final = Bound("engine/config/settings.py queue_limit", "unit/test_pool.py")

PLACES: Final[dict[str, Bound | str]] = {
    "engine/contracts/trace_tree.py _place": "spans of a body, which has a limit itself",
    "engine/environments/build/command.py _bounded": Bound(
        "engine/system/processes.py OUTPUT_BYTES", "attacks/test_builder_sandbox.py"
    ),
    "engine/pool/evaluator_pools.py EvaluatorPool": WAITING,
    "engine/sandbox/docker/attach.py Attachment": Bound("engine/sandbox/docker/attach.py _HANDSHAKE_BYTES", HERE),
    "engine/sandbox/docker/attach.py Demultiplexer": "a head of eight bytes",
    "engine/sandbox/docker/attach.py Inbox": Bound(
        "engine/sandbox/docker/attach.py PAUSE_BYTES", "contract/docker/test_docker_link.py"
    ),
    "engine/sandbox/docker/image/recipe.py _add": "an empty file",
    "engine/sandbox/pipe_link.py PipeLink": Bound(
        "engine/sandbox/pipe_link.py _QUEUE_BYTES", "contract/test_bubblewrap_limits.py"
    ),
    "engine/sandbox/protocol.py FrameDecoder": Bound("engine/sandbox/protocol.py BODY_BYTES", "unit/test_protocol.py"),
    "engine/sandbox/send_window.py SendWindow": SENT_AHEAD,
    "engine/sandbox/session.py Sandbox": SENT_AHEAD,
    "engine/service/calls.py RowCalls": STREAMED,
    "engine/service/row_io.py bind_together": Bound("engine/sandbox/protocol.py BODY_BYTES", HERE),
    "engine/service/rows.py RowStream": STREAMED,
    "engine/system/forker.py Channel": "messages of the host's own processes",
    "engine/system/lookups.py Lookups": "names of calls under way, which wait for five seconds",
    "engine/system/memory.py ByteTurns": "answers of sandboxes, of which there are few",
    "engine/system/processes.py _read": Bound(
        "engine/system/processes.py OUTPUT_BYTES", "integration/test_lock_sites.py"
    ),
    "engine/system/threads.py SharedThreads": "work of calls and jobs, which are bounded themselves",
    "engine/system/turns.py Turns": "calls under way, whose number has limits of its own",
    "platform/datasets/json_array.py _Cutter": Bound(
        "engine/config/settings.py body_mb", "unit/test_dataset_formats.py"
    ),
    "platform/datasets/readers.py _delimiter": "the first lines of a file",
    "platform/http/error_log.py NonBlockingHandler": "lines of the host's own, of which it drops those over 10,000",
    "platform/jobs/queue.py _marked": "a byte for each row of a job",
    "platform/jobs/results/exports.py csv_lines": Bound(
        "platform/jobs/results/row_reader.py PART_BYTES", "jobs/test_rows_read.py"
    ),
    "platform/jobs/results/row_reader.py RowReader": "an empty mark of rows",
    "platform/models/endpoint.py read_body": Bound("platform/models/endpoint.py ANSWER_BYTES", HERE),
    "platform/models/gateway/connection.py RequestReader": Bound(
        "platform/models/gateway/connection.py BODY_BYTES", HERE
    ),
    "platform/models/gateway/connection.py Tunnel": Bound("platform/models/gateway/connection.py TUNNEL_BYTES", HERE),
    "platform/models/gateway/exchange.py Exchange": Bound("platform/models/gateway/exchange.py ANSWER_BYTES", HERE),
    "platform/models/gateway/protocols.py EventStream": Bound("platform/models/gateway/exchange.py ANSWER_BYTES", HERE),
    "platform/models/gateway/proxy.py _Hello": Bound(
        "platform/models/gateway/proxy.py _HELLO_BYTES", "unit/test_hostile_bytes.py"
    ),
    "platform/store/audit.py AuditLog": Bound("platform/store/audit.py KEPT", "store/test_audit.py"),
    "platform/traces/live_traffic.py Traffic": Bound(
        "platform/traces/live_traffic.py _HELD_BYTES", "integration/test_hostile_traffic.py"
    ),
    "platform/wires/forward.py _bounded": Bound("platform/wires/forward.py _ANSWER_BYTES", HERE),
    "vendors/promptfoo/config.py _csv_tests": "a file of a request, which has a limit itself",
}


CHUNK: Final = bytes(64 << 10)
WAITS: Final = (60.0, 60.0)


def made() -> set[str]:
    """Return the file and the name of each function or class that creates a buffer."""
    found = set()
    for file in (file for part in QUARTERS for file in (HOST / part).rglob("*.py")):
        for top in ast.parse(file.read_text()).body:
            calls = [node.func for node in ast.walk(top) if isinstance(node, ast.Call)]
            if KINDS & {getattr(call, "attr", getattr(call, "id", "")) for call in calls}:
                found.add(f"{file.relative_to(HOST)} {getattr(top, 'name', '')}")
    return found


def test_every_place_is_listed_and_no_other() -> None:
    assert made() == set(PLACES)


@pytest.mark.parametrize("bound", {one for one in PLACES.values() if isinstance(one, Bound)}, ids=lambda one: one.limit)
def test_its_limit_and_its_test_exist(bound: Bound) -> None:
    file, name = bound.limit.split()
    module = import_module("evaluator_host." + file.removesuffix(".py").replace("/", "."))
    assert name in (Settings.model_fields if module.__name__.endswith("settings") else vars(module))
    assert (PROJECT / "tests" / bound.tried).is_file()


class Endless(Provider):
    """The body of an answer that never ends."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.read += len(CHUNK)
            yield CHUNK


async def test_an_answer_of_a_model_without_an_end() -> None:
    reader, body = Reader(), Endless()
    reader.set()
    with pytest.raises(Rejected, match="longer than 16 MB"):
        await ask("alpha", Turns(1), reader, body)
    assert body.read <= exchange.ANSWER_BYTES + len(CHUNK)


@pytest.mark.parametrize("most", [0, 1, 100_000])
async def test_no_more_of_a_body_is_read_than_is_wanted(most: int) -> None:
    body = Endless()
    assert len(await read_body(httpx.Response(200, stream=body), most)) == most
    assert body.read <= most + len(CHUNK)


async def test_an_answer_of_a_server_behind_a_wire_without_an_end() -> None:
    body = Endless()
    with pytest.raises(TooLarge, match="over 16 MB"):
        await forward._bounded(httpx.Response(200, stream=body))
    assert body.read <= forward._ANSWER_BYTES + len(CHUNK)


def test_a_request_of_a_row_without_an_end() -> None:
    reader = RequestReader(lambda _: True, lambda: None)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert reader.feed(head) is None
    part = b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK)
    for _ in range(connection.BODY_BYTES // len(CHUNK)):
        assert reader.feed(part) is None
    with pytest.raises(Rejected, match="over 8 MB"):
        reader.feed(part)


def test_a_tunnel_that_the_host_does_not_read() -> None:
    tunnel = Tunnel(connected(Reader()), b"", lambda _: None)
    for _ in range(connection.TUNNEL_BYTES // len(CHUNK)):
        tunnel.feed(CHUNK)
    with pytest.raises(Rejected, match="1 MB sent through this tunnel"):
        tunnel.feed(b"x")


async def test_an_engine_whose_answer_has_no_end() -> None:
    attachment = Attachment()
    for _ in range(attach._HANDSHAKE_BYTES // len(CHUNK)):
        attachment.data_received(CHUNK)
    attachment.data_received(b"x")
    with pytest.raises(AttachFailed):
        await attachment.upgraded


def test_rows_that_a_sandbox_does_not_answer() -> None:
    window = SendWindow()
    while window.open:
        window.sent(1)
    assert len(window._sizes) <= CALLS_AHEAD
    window = SendWindow()
    window.sent(BYTES_AHEAD)
    assert not window.open


async def test_rows_together_that_have_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_io, "BODY_BYTES", 1000)
    drawn = 0

    async def rows() -> AsyncIterator[Row]:
        nonlocal drawn
        while True:
            drawn += 1
            yield Row({"text": "x" * 100})

    bound = await row_io.bind_together(lambda row, _: Binding(row.inputs), rows(), EvaluatorSettings())
    assert bound is not None
    assert isinstance(bound.body, EvaluationError)
    assert drawn <= 10


def test_a_session_that_never_ends() -> None:
    traffic, session = Traffic(Mock(), Mock(), Mock(), Mock()), _Key("alpha", "one", "s-1")

    def add(number: int, *, now: float) -> int:
        traces = tuple(f"{number:016x}{place:016x}" for place in range(TRACE_SPANS // 5))
        return traffic._add(session, TraceSpans("s-1", len(traces), True, b"{}", traces), now, WAITS, 1)

    assert [add(number, now=number) for number in range(6)] == [0] * 5 + [TRACE_SPANS * 6 // 5]
    ids, held = len(traffic._sessions), traffic._held["alpha"]
    assert held > 200 * ids
    waiting = _Key("alpha", "one", f"{7:016x}{7:016x}")
    assert traffic._add(waiting, TraceSpans(waiting.trace_id, 3, False, b"{}"), 6.0, WAITS, 1) == 0
    assert [add(number, now=60.0) for number in (6, 7)] == [TRACE_SPANS // 5, TRACE_SPANS // 5 + 3]
    assert (len(traffic._sessions), traffic._held["alpha"]) == (ids, held)
    assert waiting not in traffic._pending
    assert [traffic._pending[session].due(now) for now in (119.0, 121.0)] == [False, True]


def test_a_trace_that_first_meets_a_refused_session() -> None:
    traffic, session = Traffic(Mock(), Mock(), Mock(), Mock()), _Key("alpha", "one", "s")
    assert (
        traffic._add(session, TraceSpans("s", TRACE_SPANS + 1, True, b"{}", ("a",)), 0.0, WAITS, 1) == TRACE_SPANS + 1
    )
    assert traffic._add(session, TraceSpans("s", 1, True, b"{}", ("b",)), 0.0, WAITS, 1) == 1
    later = TraceSpans("b", 1, False, b"{}")
    assert traffic._key_of("alpha", "one", later) == session
    assert traffic._add(session, later, 0.0, WAITS, 1) == 1
    assert traffic._held["alpha"] == traffic._pending[session].size


def test_a_session_with_a_trace_that_is_too_large() -> None:
    traffic, own, session = Traffic(Mock(), Mock(), Mock(), Mock()), *(_Key("alpha", "one", one) for one in "as")
    assert traffic._add(own, TraceSpans("a", TRACE_SPANS, False, b"{}"), 0.0, WAITS, 1) == 0
    assert traffic._add(own, TraceSpans("a", 1, False, b"{}"), 0.0, WAITS, 1) == TRACE_SPANS + 1
    assert traffic._add(session, TraceSpans("s", 1, True, b"{}" * 9999, ("a",)), 0.0, WAITS, 1) == TRACE_SPANS + 2
    assert not traffic._pending[session].groups
    assert traffic._held["alpha"] == traffic._pending[session].size < 9999

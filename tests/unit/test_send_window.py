"""The host sends rows to a sandbox in advance, and reads several answers together if many fast rows are under way."""

import asyncio
import json
from unittest.mock import AsyncMock, Mock

import pytest

from evaluator_host.engine.sandbox import send_window
from evaluator_host.engine.sandbox.protocol import encode
from evaluator_host.engine.sandbox.send_window import SendWindow
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.types.json_values import LARGE_BYTES
from tests.unit.pools import leased, opened, request, until


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the window's clock; return a list that contains the current time."""
    now = [0.0]
    monkeypatch.setattr(send_window.time, "monotonic", lambda: now[0])
    return now


def _under_way(clock: list[float], *, rows_per_s: float, count: int) -> SendWindow:
    """Return the window for a sandbox that has answered 16 rows and is working on more rows."""
    window = SendWindow()
    for _ in range(16):
        window.sent(100)
        clock[0] += 1 / rows_per_s
        window.answered()
    for _ in range(count):
        window.sent(100)
    return window


def test_answers_of_many_fast_rows_are_read_together(clock: list[float]) -> None:
    assert _under_way(clock, rows_per_s=1000, count=8).patience_s == pytest.approx(0.004)
    assert _under_way(clock, rows_per_s=1000, count=60).patience_s == send_window._PATIENCE_S


@pytest.mark.parametrize(("rows_per_s", "count"), [(1000, 1), (1000, 5), (100_000, 64)])
def test_an_answer_is_awaited_where_few_rows_are_under_way_or_all_are_at_once(
    clock: list[float], rows_per_s: float, count: int
) -> None:
    assert _under_way(clock, rows_per_s=rows_per_s, count=count).patience_s == 0


def test_the_first_answers_are_awaited() -> None:
    window = SendWindow()
    for _ in range(10):
        window.sent(100)
    assert window.patience_s == 0


async def test_a_row_counts_as_answered_if_its_caller_hangs_up_while_its_large_answer_is_parsed() -> None:
    body = json.dumps({"kind": "text", "value": "a" * LARGE_BYTES}).encode()
    answers = [encode({"type": "result", "id": str(row), "run_ms": 1.0, "logs": None}, body) for row in (1, 2)]
    link = Mock(far=False, drain=AsyncMock(), read=AsyncMock(side_effect=answers))
    sandbox = Sandbox(link, backend="bubblewrap", spec=Mock(memory_mb=64), grace_s=1.0)
    for _ in answers:
        call = asyncio.create_task(sandbox.call(b"{}", timeout_s=60.0))
        await until(lambda: sandbox.rows > 0 and not sandbox._unanswered)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (sandbox.quiet, sandbox.room, list(sandbox._window._sizes)) == (True, True, [])


async def test_a_sandbox_whose_window_is_not_empty_is_not_used_again() -> None:
    async with opened() as (pool, backend):
        lease = await leased(pool, request())
        lease.sandbox._window.sent(100)
        pool.release(lease)
        await until(lambda: backend.links[0].destroyed)

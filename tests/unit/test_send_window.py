"""The host sends rows to a sandbox in advance, and reads several answers together if many fast rows are under way."""

import pytest

from evaluator_host.engine.sandbox import session
from evaluator_host.engine.sandbox.session import SendWindow


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the window's clock; return a list that contains the current time."""
    now = [0.0]
    monkeypatch.setattr(session.time, "monotonic", lambda: now[0])
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
    assert _under_way(clock, rows_per_s=1000, count=60).patience_s == session._PATIENCE_S


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

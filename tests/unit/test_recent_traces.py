"""The host remembers which traces it scored lately, with a limit that workspaces share."""

import pytest

from evaluator_host.platform.traces import recent
from evaluator_host.platform.traces.recent import KEPT_S, RecentTraces


def test_a_trace_is_remembered_for_ten_minutes() -> None:
    traces = RecentTraces()
    traces.add("alpha", [("one", "a"), ("one", "b")], 100.0)
    assert traces.has_all("alpha", [("one", "a"), ("one", "b")], 100.0 + KEPT_S - 1)
    assert not traces.has_all("alpha", [("one", "a")], 100.0 + KEPT_S)
    for workspace, trace in (("beta", ("one", "a")), ("alpha", ("two", "a")), ("alpha", ("one", "c"))):
        assert not traces.has_all(workspace, [trace], 100.0)


def test_a_workspace_with_many_traces_forgets_its_own_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 10)
    traces = RecentTraces()
    traces.add("beta", [("one", "a")], 0.0)
    for number in range(100):
        traces.add("alpha", [("one", str(number))], 1.0)
    kept = [number for number in range(100) if traces.has_all("alpha", [("one", str(number))], 2.0)]
    assert kept == list(range(91, 100))
    assert traces.has_all("beta", [("one", "a")], 2.0)

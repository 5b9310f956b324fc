"""Remembers which traces were scored recently, so that spans that come too late are not scored as a second trace."""

from collections.abc import Iterable
from typing import Final

MOST: Final = 50_000  # maximum number of traces to remember, of all workspaces together; each takes about 200 bytes
KEPT_S: Final = 600.0  # seconds after which another trace with the same id counts as a new trace


class RecentTraces:
    """Traces whose scoring began recently. If there are too many, the workspace with most traces loses its oldest."""

    def __init__(self) -> None:
        # when scoring began, keyed by workspace and hash of the trace, oldest first
        self._times: dict[str, dict[int, float]] = {}
        self._count = 0

    def add(self, workspace: str, traces: Iterable[tuple[str, str]], now: float) -> None:
        """Remember these traces: pairs of an evaluator's reference and a trace id."""
        times = self._times.setdefault(workspace, {})
        for one in map(hash, traces):
            self._count -= times.pop(one, None) is not None
            times[one] = now
            self._count += 1
            if self._count > MOST:
                most = max(self._times.values(), key=len)
                del most[next(iter(most))]
                self._count -= 1

    def has_all(self, workspace: str, traces: Iterable[tuple[str, str]], now: float) -> bool:
        """Return whether the scoring of all these traces began less than ten minutes ago."""
        times = self._times.get(workspace, {})
        return all(now - times.get(hash(one), -KEPT_S) < KEPT_S for one in traces)

"""Says at the end of a run how long the host took to recover from each fault; nothing is asserted about it."""

from collections.abc import Callable

import pytest

_MEASURED = pytest.StashKey[dict[str, float]]()


@pytest.fixture
def recovery(request: pytest.FixtureRequest) -> Callable[[float], None]:
    """Note how many seconds passed between the fault of this test and the next good answer."""
    noted = request.config.stash.setdefault(_MEASURED, {})

    def note(seconds: float) -> None:
        noted[request.node.name] = seconds

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was noted."""
    measured = config.stash.get(_MEASURED, {})
    if measured:
        terminalreporter.section("recovery")
        for name, seconds in measured.items():
            terminalreporter.write_line(f"{seconds * 1000:8.0f} ms  {name}")

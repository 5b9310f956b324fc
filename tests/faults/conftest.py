"""Prints, at the end of a run, how long the host took to recover from each fault. No test checks these times."""

from collections.abc import Callable

import pytest

_NAME = "recovery"


@pytest.fixture
def recovery(record_property: Callable[[str, object], None]) -> Callable[[float], None]:
    """Return a function that records how many seconds this test's host took from the fault to its next good answer."""
    return lambda seconds: record_property(_NAME, seconds)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the times that all processes of the run have recorded."""
    noted = {
        report.nodeid: value
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == _NAME
    }
    if noted:
        terminalreporter.section("recovery")
        for name, seconds in noted.items():
            terminalreporter.write_line(f"{float(str(seconds)) * 1000:8.0f} ms  {name}")

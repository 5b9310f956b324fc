"""Lists the tests that pass only at a second try, with what each printed at its first.

`make test` runs pytest twice with this plugin: over everything, then, with `--second-try`, over what failed, one test at
a time. A test that passes the second time has a fault, or has found one: the list at the end of the run shows what it
said when it failed. `--second-try=fail` makes the run fail because of it (`STRICT=1 make test`).
"""

import pytest

_FIRST = "second_try/first"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--second-try`."""
    parser.addoption(
        "--second-try",
        nargs="?",
        choices=("list", "fail"),
        const="list",
        help="these tests failed before: list those that pass now, or fail because of them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register for one of both runs; a process of xdist reports to the one that started it."""
    if hasattr(config, "workerinput"):
        return
    tries = SecondTry(config) if config.getoption("--second-try") else FirstTry(config)
    config.pluginmanager.register(tries)


class FirstTry:
    """Keeps what failing tests print, by test id."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._printed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure of a test, its setup or its teardown."""
        if report.failed:
            captured = "".join(f"\n--- {title} ---\n{text}" for title, text in report.sections)
            earlier = self._printed.get(report.nodeid, "")
            self._printed[report.nodeid] = f"{earlier}{report.longreprtext}{captured}\n"

    def pytest_sessionfinish(self) -> None:
        """Write them where the second run looks."""
        if self._config.cache is not None:
            self._config.cache.set(_FIRST, self._printed)


class SecondTry:
    """Lists the tests that pass now."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test ends."""
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run where that was asked for."""
        if self._unsteady and self._config.getoption("--second-try") == "fail" and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the list, and what each test printed when it failed."""
        if not self._unsteady:
            return
        printed = self._config.cache.get(_FIRST, {}) if self._config.cache is not None else {}
        terminalreporter.section("passed only at the second try; the first printed:", sep="=", red=True)
        for test in self._unsteady:
            terminalreporter.section(test, sep="_")
            terminalreporter.write_line(printed.get(test, "(not kept)"))
        terminalreporter.section("passed only at the second try", sep="=", red=True)
        for test in self._unsteady:
            terminalreporter.write_line(test)

    @property
    def _unsteady(self) -> list[str]:
        return sorted(self._passed - self._failed)

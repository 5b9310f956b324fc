"""A pytest plugin: evaluators as fixtures, assertions on their scores, and a table of scores at the end of the run.

Code runs in sandboxes that the test process starts, or on a running host with `--evaluator-host-url`. A run without
evaluators costs nothing, because the host is imported only when an evaluator is used.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from evaluator_host.client import Client
    from evaluator_host.scale.sandbox_pool import SandboxPool
    from evaluator_host.types.evaluator import Evaluator, Row
    from evaluator_host.types.outcome import EvaluationError, EvaluationResult

_PROPERTY: Final = "evaluator_host"
_ENOUGH: Final = 0.5
_MILLIONTH: Final = 1e-6
_SHOWN: Final = 1000  # maximum number of characters to show of each part of a row
_WARNINGS_SHOWN: Final = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("evaluator-host", "scores of evaluators")
    group.addoption("--evaluator-host-url", help="use the running host at this URL (EVALUATOR_HOST_URL)")
    group.addoption("--evaluator-report", metavar="FILE", help="write every score as JSON")


@dataclass(frozen=True, slots=True)
class ScoredEvaluator:
    """An evaluator in a test, which scores rows and makes assertions about their scores."""

    name: str  # name of the evaluator's file, for the report
    evaluator: "Evaluator | str"  # the evaluator itself, or the name of a stored evaluator
    _engine: Any  # a Client or a SandboxPool, which have the same methods
    _note: Callable[[str, object], None]

    def score(self, **row: Any) -> "EvaluationResult":
        """Evaluate one row and return its result; `row` has its fields: `inputs`, `outputs`, `trace`, `messages`, …."""
        result: EvaluationResult = self._engine.evaluate(self.evaluator, **row)
        error = None if result.error is None else f"{result.error.code}: {result.error.message}"
        warnings = [f"{note.code}: {note.text}" for note in result.warnings]
        told = {"evaluator": self.name, "score": result.score, "passed": result.passed, "error": error}
        self._note(_PROPERTY, {**told, "warnings": warnings})
        return result

    def assert_score(
        self,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        equal: float | None = None,
        passed: bool | None = None,
        **row: Any,
    ) -> "EvaluationResult":
        """Evaluate one row, fail the test unless its score is as expected, and return the result.

        Args:
          at_least: Lowest score that passes. It is 0.5 if none of these arguments is given.
          at_most: Highest score.
          equal: The score, to within a millionth.
          passed: Whether the row reaches the evaluator's threshold.
          row: As in `score`.
        """
        __tracebackhide__ = True
        result = self.score(**row)
        if (wrong := _fault(result, at_least=at_least, at_most=at_most, equal=equal, passed=passed)) is not None:
            pytest.fail(f"{self.name}: {wrong}{_shown(row, result)}", pytrace=False)
        return result

    def assert_mean(self, rows: "Iterable[Row | dict[str, Any]]", *, at_least: float, failures: int = 0) -> float:
        """Evaluate rows and fail the test unless their mean score is high enough; return the mean.

        Args:
          rows: `Row`s, or objects `{"inputs": …, "outputs": …}`.
          at_least: Lowest mean of the rows that scored.
          failures: Maximum number of rows that may fail.

        The test also fails if no score can be relied on, for example if the code reads outputs and no row has any.
        """
        from evaluator_host.client.calls import row_body  # noqa: PLC0415 - see the top
        from evaluator_host.types.bounds import exceeds  # noqa: PLC0415 - see the top
        from evaluator_host.types.names import counted  # noqa: PLC0415 - see the top
        from evaluator_host.types.numbers import mean_of, rounded_beside  # noqa: PLC0415 - see the top

        __tracebackhide__ = True
        given = [row if isinstance(row, dict) else row_body(row) for row in rows]
        if (wrong := self._missing_outputs(given)) is not None:
            pytest.fail(f"{self.name}: {wrong}", pytrace=False)
        results = [self.score(**row) for row in given]
        scores = [one.score for one in results if one.score is not None]
        failed = [number for number, one in enumerate(results) if one.error is not None]
        if len(failed) > failures:
            first = results[failed[0]]
            told = f"first row {failed[0]}: {first.error and first.error.message}{_shown(given[failed[0]], first)}"
            pytest.fail(f"{self.name}: {len(failed)} of {counted(len(results), 'row')} failed, {told}", pytrace=False)
        if (why := _doubt(results)) is not None:
            pytest.fail(f"{self.name}: {why}", pytrace=False)
        if not scores:
            pytest.fail(f"{self.name}: no score in {counted(len(results), 'row')}", pytrace=False)
        mean = mean_of(scores)
        if exceeds(at_least, mean):
            lowest = min(range(len(results)), key=lambda n: _or_high(results[n].score))
            shown = rounded_beside(mean, at_least)
            pytest.fail(
                f"{self.name}: the mean of {counted(len(scores), 'row')} is {shown}, below {at_least}; "
                f"the lowest is row {lowest} with {results[lowest].score}{_shown(given[lowest], results[lowest])}",
                pytrace=False,
            )
        return mean

    def _missing_outputs(self, rows: list[dict[str, Any]]) -> str | None:
        """Return a message if the code reads outputs and no row has any. Otherwise return None."""
        if not rows or any(row.get(name) is not None for row in rows for name in ("outputs", "messages", "variables")):
            return None
        if not self._engine.check(self.evaluator).reads.outputs:
            return None
        from evaluator_host.platform.datasets.batch_outputs import no_outputs  # noqa: PLC0415 - see the top

        return no_outputs([row.get("inputs") or {} for row in rows], len(rows))


def evaluator_fixture(source: Path | str, *, name: str | None = None, **fields: Any) -> Any:
    """Return a pytest fixture with the evaluator of a file. The value of the fixture is a `ScoredEvaluator`.

    Example:
      exact = evaluator_fixture("exact.py")

    Args:
      source: Path of a file, relative to the folder of the test file. Modules of its project that the file imports are
        sent, too. With `--evaluator-host-url`, this may also be the name of a stored evaluator (`exact-match@3`).
      name: Name in the report. None for the name of the file or of the stored evaluator.
      fields: Fields of the body of `POST /v1/evaluate`: `packages`, `threshold`, `contract`, `timeout_s`, ….
    """

    @pytest.fixture
    def fixture(make_evaluator: Callable[..., ScoredEvaluator]) -> ScoredEvaluator:
        return make_evaluator(source, name=name, **fields)

    return fixture


@pytest.fixture(scope="session")
def evaluation_engine(pytestconfig: pytest.Config) -> "Iterator[Client | SandboxPool]":
    """Yield a client of the running host if the user named one, else a pool of sandboxes in this process."""
    if url := _url(pytestconfig):
        from evaluator_host.client import Client  # noqa: PLC0415 - see the top

        with Client(url, key=os.environ.get("EVALUATOR_HOST_KEY")) as client:
            yield client
        return
    from evaluator_host.scale.sandbox_pool import SandboxPool  # noqa: PLC0415 - see the top

    with SandboxPool() as pool:
        yield pool


@pytest.fixture
def make_evaluator(
    request: pytest.FixtureRequest, evaluation_engine: "Client | SandboxPool"
) -> Callable[..., ScoredEvaluator]:
    """Return a function `make(source, *, name, **fields)` that makes a `ScoredEvaluator`. See `evaluator_fixture`."""

    def note(name: str, value: object) -> None:
        request.node.user_properties.append((name, value))

    def make(source: Path | str, *, name: str | None = None, **fields: Any) -> ScoredEvaluator:
        file = request.path.parent / source
        if not file.is_file() and Path(source).suffix == "":
            if not _url(request.config):
                raise pytest.UsageError(
                    f"there is no file {file}; for a stored evaluator of that name give --evaluator-host-url"
                )
            return ScoredEvaluator(name or str(source), str(source), evaluation_engine, note)
        return ScoredEvaluator(name or file.name, _read(file, fields), evaluation_engine, note)

    return make


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the scores of each evaluator, and write the report."""
    scores = [
        {"test": report.nodeid, **value}
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == _PROPERTY
    ]
    if (file := config.getoption("--evaluator-report")) is not None:
        Path(file).write_text(json.dumps({"scores": scores}, indent=2) + "\n")
    if not scores:
        return
    from evaluator_host.types.names import counted  # noqa: PLC0415 - see the top
    from evaluator_host.types.numbers import mean_of, rounded  # noqa: PLC0415 - see the top

    terminalreporter.section("scores of evaluators")
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in scores:
        by_name[one["evaluator"]].append(one)
    for name, found in sorted(by_name.items()):
        numbers = [one["score"] for one in found if one["score"] is not None]
        over = f" over {len(numbers)}" if len(numbers) < len(found) else ""
        mean = f"mean {rounded(mean_of(numbers))}{over}, lowest {rounded(min(numbers))}" if numbers else "no score"
        failed = sum(one["error"] is not None for one in found)
        rows = counted(len(found), "row")
        terminalreporter.line(f"{name}: {rows}, {mean}{f', {failed} failed' if failed else ''}")
        for text, count in Counter(text for one in found for text in one["warnings"]).most_common(_WARNINGS_SHOWN):
            terminalreporter.line(f"  warning in {count} of {rows}: {text}")


def _url(config: pytest.Config) -> str | None:
    return config.getoption("--evaluator-host-url") or os.environ.get("EVALUATOR_HOST_URL")


def _read(file: Path, fields: dict[str, Any]) -> "Evaluator":
    from evaluator_host.platform.evaluators.evaluator_files import read_evaluator  # noqa: PLC0415
    from evaluator_host.platform.terminal.command import load_settings  # noqa: PLC0415 - see the top

    return read_evaluator(file, fields.pop("language", None), host=load_settings(), **fields).evaluator


def _doubt(results: "list[EvaluationResult]") -> str | None:
    """Return why no score can be relied on, with the warnings. Return None if a score can be relied on."""
    from evaluator_host.types.warnings import RowWarnings  # noqa: PLC0415 - see the top

    told = RowWarnings.of(results)
    why = told.doubt()
    return why if why is None else "\n".join((why, *(one.text for one in told.counts())))


def _fault(
    result: "EvaluationResult",
    *,
    at_least: float | None,
    at_most: float | None,
    equal: float | None,
    passed: bool | None,
) -> str | None:
    from evaluator_host.types.bounds import exceeds  # noqa: PLC0415 - see the top

    score, because = result.score, f": {result.reason}" if result.reason else ""
    if score is None:
        why = {"failed": "the row failed", "skipped": "the row was skipped", "scored": "the evaluator returned none"}
        return f"there is no score, because {why[result.status]}{'' if result.error is None else _told(result.error)}"
    if at_least is None and at_most is None and equal is None and passed is None:
        at_least = _ENOUGH
    wrong = {
        f"not {equal}": equal is not None and exceeds(abs(score - equal), _MILLIONTH),
        f"below {at_least}": at_least is not None and exceeds(at_least, score),
        f"above {at_most}": at_most is not None and exceeds(score, at_most),
        "and the row has no verdict": passed is not None and result.passed is None,
        "and the row passed": passed is False and result.passed,
        "and the row did not pass": passed is True and result.passed is False,
    }
    return next((f"the score is {score}, {how}{because}" for how, holds in wrong.items() if holds), None)


def _shown(row: "dict[str, Any]", result: "EvaluationResult") -> str:
    """Return lines of text that show a row, and the hint and the warnings in its result."""
    parts = {**row, "hint": None if result.error is None else result.error.hint}
    told = "".join(f"\n  warning {note.code}: {_cut(note.text)}" for note in result.warnings)
    shown = (f"\n  {name}: {_cut(value)}" for name, value in parts.items() if value is not None and value != {})
    return "".join(shown) + told


def _cut(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _told(error: "EvaluationError") -> str:
    return f": {error.code}: {error.message}{f' (line {error.line})' if error.line else ''}"


def _or_high(score: float | None) -> float:
    return float("inf") if score is None else score

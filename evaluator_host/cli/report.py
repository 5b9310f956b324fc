"""Reports of a run for other programs: JUnit XML for CI systems, Markdown with the changes since an earlier run.

Both reports are made from the file that `run --out` writes, so they need only a few numbers in memory for each row.
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.files import reading
from evaluator_host.platform.terminal.console import err, plain, printable
from evaluator_host.platform.terminal.gates import why_dropped
from evaluator_host.types.bounds import difference
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.json_values import decode_json
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import mean_of, percent, points, rounded, rounded_beside
from evaluator_host.types.outcome import Status

_SHOWN: Final = 5
_LISTED: Final = 100  # maximum number of rows that JSON lists
_MESSAGE_CHARACTERS: Final = 500
_BY_POSITION: Final = "rows are compared by position, because some have no `id`: keep them in the same order"
_REFERENCE: Final = re.compile(r"[@#!](?=\\?\w)")  # a mention of a person or team, or of an issue or merge request
# put after the `@`, `#` or `!` of a mention, so that CI systems do not notify people
_BREAK: Final = "\N{ZERO WIDTH SPACE}"

Number: TypeAlias = Callable[["RowsReport"], float | None]
# a column of a table: its header, and a function that returns the cell for a row
Column: TypeAlias = tuple[str, Callable[["ReportedRow"], str]]


@dataclass(frozen=True, slots=True)
class ReportedRow:
    """One row of a report: its index (from 0), its line in the data, status, score, verdict, error, seconds and id."""

    index: int
    line: int
    status: Status
    score: float | None
    passed: bool | None
    message: str | None
    run_s: float
    id: str | None = None


_FIELDS: Final = tuple(one.name for one in fields(ReportedRow))
_read_row: Final = Adapter(ReportedRow).read


@dataclass(frozen=True, slots=True)
class RowsReport:
    """The rows of one run in their order."""

    name: str  # name of the evaluator, which the report shows
    rows: tuple[ReportedRow, ...]

    @property
    def mean(self) -> float | None:
        """Return the mean score, or None if no row has a score."""
        scores = [row.score for row in self.rows if row.score is not None]
        return mean_of(scores) if scores else None

    @property
    def pass_rate(self) -> float | None:
        """Return the fraction that passed among the rows with a verdict, or None if no row has a verdict."""
        verdicts = [row.passed for row in self.rows if row.passed is not None]
        return sum(verdicts) / len(verdicts) if verdicts else None

    @property
    def not_passed(self) -> int | None:
        """Return the number of rows that did not pass, or None if no row has a verdict."""
        verdicts = [row.passed for row in self.rows if row.passed is not None]
        return verdicts.count(False) if verdicts else None

    @property
    def judged(self) -> int | None:
        """Return the number of rows with a verdict, or None if no row has one or all scored rows have one."""
        count = sum(row.passed is not None for row in self.rows)
        return count if count not in (0, self.count(Status.SCORED)) else None

    def count(self, status: Status) -> int:
        return sum(row.status == status for row in self.rows)


@dataclass(frozen=True, slots=True)
class SameRows:
    """The rows that have a value in both reports. Means can be compared only over the same rows."""

    now: RowsReport
    before: RowsReport
    only_now: int  # number of rows that have the value only in the later report
    only_before: int

    @classmethod
    def of(cls, report: RowsReport, baseline: RowsReport, name: str) -> "SameRows":
        """Return the rows that have a value in both reports: a score, or a verdict if `name` is `passed`."""
        now, before = (
            {key: row for key, row in rows.items() if getattr(row, name) is not None}
            for rows in _keyed(report, baseline)
        )
        both = [key for key in now if key in before]
        shown, earlier = (tuple(found[key] for key in both) for found in (now, before))
        only = len(now) - len(both), len(before) - len(both)
        return cls(RowsReport(report.name, shown), RowsReport(baseline.name, earlier), *only)

    @property
    def every(self) -> bool:
        """Return whether exactly the same rows have a value in both reports."""
        return not (self.only_now or self.only_before)

    @property
    def drop(self) -> float | None:
        """Return by how much the mean score is lower in the later report, or None if no row has a score in both."""
        now, before = self.now.mean, self.before.mean
        return None if now is None or before is None else difference(now, before)

    def told(self, file: Path, most: float | None = None) -> str:
        """Return a sentence that says how the mean score has changed since the earlier report, which is in `file`.

        `most` is the largest permitted drop, or None.
        """
        drop = self.drop
        if drop is None:
            return f"the mean is not compared: no row has a score both here and in {file}"
        shown = rounded(abs(drop)) if most is None else rounded_beside(abs(drop), most)
        change = f"{shown} {'lower' if drop > 0 else 'higher'} than" if drop else "the same as"
        rows = f", over {counted(len(self.now.rows), 'row')} with a score in both "
        rows += f"({self.only_now} only in this run, {self.only_before} only in that file)"
        return f"the mean is {change} in {file}{'' if self.every else rows}"


def _keyed(*reports: RowsReport) -> list[dict[Hashable, ReportedRow]]:
    """Return the rows of each report, keyed by id, or by position in the data if not all rows have ids.

    Rows that share an id are matched in their order, if both reports have the same number of rows with this id.
    """
    by_id = _have_ids(*reports)
    return [dict(_by_id(one.rows)) if by_id else {row.index: row for row in one.rows} for one in reports]


def _have_ids(*reports: RowsReport) -> bool:
    return all(row.id is not None for one in reports for row in one.rows)


def _by_id(rows: Sequence[ReportedRow]) -> Iterator[tuple[Hashable, ReportedRow]]:
    every, seen = Counter(row.id for row in rows), Counter[str | None]()
    for row in rows:
        seen[row.id] += 1
        yield (row.id, seen[row.id], every[row.id]), row


@dataclass(slots=True)
class ReportFiles:
    """The report files that a command's options ask for, written at the end of a run."""

    junit: Path | None = None  # file for JUnit XML
    markdown: Path | None = None  # file to which Markdown is added, as summaries of CI systems require
    baseline: Path | None = None  # results of an earlier run
    max_drop: float | None = None  # largest permitted drop of the mean from the baseline
    # the baseline; it is read first, because the run may replace its file
    _before: RowsReport | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.max_drop is not None and self.baseline is None:
            raise InvalidRequest("--max-drop needs --baseline with the results of an earlier run")
        if self.baseline is not None:
            self._before = read_report(self.baseline, "baseline")

    @property
    def wanted(self) -> bool:
        """Return whether the options ask for a report, or for a comparison with a baseline."""
        return any((self.junit, self.markdown, self.baseline))

    def comparison(self, report: RowsReport) -> dict[str, Any] | None:
        """Return what has changed since the baseline, for `--json`; None without a baseline.

        Means are over the rows with a score in both runs. `regressions` lists at most 100 rows, the worst first.
        """
        if self._before is None:
            return None
        same, worse = SameRows.of(report, self._before, "score"), _worse(report, self._before)
        before, after = same.before.mean, same.now.mean
        return {
            "baseline": str(self.baseline),
            "paired_by": "id" if _have_ids(report, self._before) else "position",
            "rows": len(same.now.rows),
            "only_before": same.only_before,
            "only_after": same.only_now,
            "before": before,
            "after": after,
            "difference": None if before is None or after is None else difference(before, after),
            "improved": len(_worse(self._before, report)),
            "regressed": len(worse),
            "regressions": [
                {"row": now.index, "id": now.id, "before": then, "after": now.score} for now, then in worse[:_LISTED]
            ],
        }

    def write(self, report: RowsReport, gates: Mapping[str, str]) -> int:
        """Write the reports about a run.

        `gates` are the gates that the run did not pass, each with the reason. Return 1 if the mean fell by more than
        `max_drop`, or cannot be compared with the baseline, else 0.

        Raises:
          InvalidRequest: a file cannot be written.
        """
        drop = self._compare(report)
        try:
            if self.junit is not None:
                self.junit.write_bytes(junit(report, {**gates, **drop}))
            if self.markdown is not None:
                with self.markdown.open("a", encoding="utf-8") as file:
                    file.write(markdown(report, self._before))
        except OSError as error:
            raise InvalidRequest(f"cannot write {error.filename}: {error.strerror}") from error
        return 1 if drop else 0

    def _compare(self, report: RowsReport) -> dict[str, str]:
        """Print the change since the baseline, and return why the run did not pass `--max-drop`, if it did not."""
        if self._before is None or self.baseline is None:
            return {}
        same = SameRows.of(report, self._before, "score")
        told = same.told(self.baseline, self.max_drop)
        err.print(plain(told))
        if not _have_ids(report, self._before):
            err.print(_BY_POSITION)
        err.print(plain(_changed_rows(report, self._before)))
        why = why_dropped(same.drop, self.max_drop, unit="run")
        if why is None:
            return {}
        ids = ". If the ids of the rows change with each run, leave them out of the data: rows without ids are compared"
        err.print(f"{why}, so the exit code is 1{f'{ids} by position' if same.drop is None else ''}")
        return {"--max-drop": f"{told}; {why}"}


def read_report(file: Path, name: str) -> RowsReport:
    """Read a report from a file that `run --out` wrote. `name` becomes the report's title.

    Raises:
      InvalidRequest: the file cannot be read, or `run --out` did not write it.
    """
    with reading(file), file.open("rb") as lines:
        return RowsReport(name, tuple(sorted(_rows(lines, file), key=lambda row: row.index)))


def _rows(lines: Any, file: Path) -> Iterator[ReportedRow]:
    for number, line in enumerate(lines, 1):
        try:
            entry = decode_json(line)
            if "shard" in entry:  # this is the closing line of a shard, not a row
                continue
            result = entry["result"]
            error, timing = result["error"], result["timing_ms"]
            message = f"{error['code']}: {error['message']}" if error else result["reason"]
            found = (
                entry["index"], entry["line"], result["status"], result["score"], result["passed"],
                message and message[:_MESSAGE_CHARACTERS], timing["run"] / 1000, entry.get("id"),
            )  # fmt: skip
            yield _read_row(dict(zip(_FIELDS, found, strict=True)))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidRequest(
                f"line {number} of {file} is not a result; give a file that `run --out` has written"
            ) from error


def junit(report: RowsReport, gates: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """Convert a report to JUnit XML: a row that did not pass becomes a failure, and a failed row an error.

    Each of `gates`, with the reason why the run did not pass it, becomes a test case that failed.
    """
    name = printable(report.name)
    suite = ET.Element("testsuite", name=name, tests=str(len(report.rows) + len(gates)))
    suite.set("failures", str(sum(row.passed is False for row in report.rows) + len(gates)))
    suite.set("errors", str(report.count(Status.FAILED)))
    suite.set("skipped", str(report.count(Status.SKIPPED)))
    suite.set("time", f"{sum(row.run_s for row in report.rows):.3f}")
    for row in report.rows:
        case = ET.SubElement(suite, "testcase", classname=name, name=f"row {row.index}")
        case.set("line", str(row.line))
        case.set("time", f"{row.run_s:.6f}")
        kind = {Status.FAILED: "error", Status.SKIPPED: "skipped"}.get(row.status)
        kind = kind or ("failure" if row.passed is False else None)
        if kind is not None:
            told = printable(row.message or "")
            ET.SubElement(case, kind, message=told if kind != "failure" else f"score {row.score}. {told}".strip())
    for gate, why in gates.items():
        case = ET.SubElement(suite, "testcase", classname=name, name=gate)
        ET.SubElement(case, "failure", message=printable(why))
    suites = ET.Element("testsuites")
    suites.append(suite)
    written: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def markdown(report: RowsReport, baseline: RowsReport | None = None) -> str:
    """Convert a report to Markdown: results, new failures, the lowest scores, and changes since an earlier report."""
    lines = [f"### {_cell(report.name)}", ""]
    head = ["", "now"] if baseline is None else ["", "now", "baseline", "change"]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, form, get in _NUMBERS:
        lines += _lines(name, form, get, report, baseline)
    if baseline is not None and not _have_ids(report, baseline):
        lines += ["", f"{_BY_POSITION.capitalize()}."]
    worse = _worse(report, baseline) if baseline is not None else []
    if worse:
        before = {row.index: then for row, then in worse}
        scores = ("before", lambda row: _number(before[row.index], ".4g")), ("now", _score)
        table = _table([row for row, _ in worse], scores)
        lines += ["", f"{_are(worse)} worse than in the baseline{_first(worse, 'worst')}:", "", *table]
    lost = _lost_passes(report, baseline) if baseline is not None else []
    if lost:
        passed = "passed only in the baseline, and the score did not fall"
        lines += ["", f"{counted(len(lost), 'row')} {passed}{_first(lost)}:", "", *_table(lost)]
    lowest = sorted((row for row in report.rows if row.score is not None), key=lambda row: (row.score, row.index))
    failed = [row for row in report.rows if row.status == Status.FAILED]
    if failed:
        lines += ["", f"{counted(len(failed), 'row')} failed{_first(failed)}:", "", *_table(failed)]
    if lowest and not worse:
        lines += ["", "The lowest scores:", "", *_table(lowest)]
    return "\n".join(lines) + "\n"


def _changed_rows(report: RowsReport, baseline: RowsReport) -> str:
    """Return how many rows are better and worse than in the baseline, and the worst of them with their scores."""
    worse, better = _worse(report, baseline), _worse(baseline, report)
    lines = [f"{counted(len(better), 'row')} better, {len(worse)} worse{_first(worse, 'worst') if worse else ''}"]
    for now, then in worse[:_SHOWN]:
        named = "" if now.id is None else f" (id {now.id})"
        lines.append(f"worse: row {now.index}{named}, {rounded(then)} -> {_score(now) or 'no score'}")
    return "\n".join(lines)


def _worse(report: RowsReport, baseline: RowsReport) -> list[tuple[ReportedRow, float]]:
    """Return the rows that are worse than in `baseline`, each with its score there.

    The largest drop is first. Rows that have no score now come last, because failed rows have their own list.
    """
    rows, before = _keyed(report, baseline)
    pairs = ((row, before[key].score) for key, row in rows.items() if key in before)
    worse = [(now, then) for now, then in pairs if then is not None and _is_worse(now, then)]
    return sorted(worse, key=lambda pair: (pair[0].score is None, (pair[0].score or 0) - pair[1], pair[0].index))


def _is_worse(now: ReportedRow, then: float) -> bool:
    """Return whether a row's score has fallen, or the row fails now.

    A row that has neither a score nor an error is not worse.
    """
    return now.status == Status.FAILED if now.score is None else difference(then, now.score) < 0


def _lost_passes(report: RowsReport, baseline: RowsReport) -> list[ReportedRow]:
    """Return the rows that passed in `baseline` but do not pass now, except those that `_worse` returns."""
    rows, before = _keyed(report, baseline)
    worse = {row.index for row, _ in _worse(report, baseline)}
    pairs = ((row, before[key].passed) for key, row in rows.items() if key in before and row.index not in worse)
    return [now for now, then in pairs if then is True and now.passed is False]


def _are(rows: Sequence[object]) -> str:
    return f"{counted(len(rows), 'row')} {'is' if len(rows) == 1 else 'are'}"


def _first(rows: Sequence[object], which: str = "first") -> str:
    return f", the {which} {_SHOWN}" if len(rows) > _SHOWN else ""


def _lines(name: str, form: str, get: Number, report: RowsReport, baseline: RowsReport | None) -> list[str]:
    """Return the lines of a Markdown table for one number, such as the mean; `form` is the number format.

    If some rows have a value in only one report, a second line compares the rows that have a value in both.
    """
    if baseline is None:
        now = get(report)
        return [] if now is None else [f"| {name} | {_number(now, form)} |"]
    value = _VALUES.get(name)
    same = None if value is None else SameRows.of(report, baseline, value)
    if same is None or same.every:
        return _compared(name, form, get(report), get(baseline))
    whole = _compared(name, form, get(report), get(baseline), change=False)
    rows = f"{name}, {counted(len(same.now.rows), 'row')} with both"
    return [*whole, *(_compared(rows, form, get(same.now), get(same.before)) if same.now.rows else [])]


def _compared(name: str, form: str, now: Any, before: Any, *, change: bool = True) -> list[str]:
    if now is None and before is None:
        return []
    changed = None if now is None or before is None or not change else type(now)(difference(before, now))
    text = points(changed) if changed is not None and "%" in form else _number(changed, "+" + form)
    return [f"| {name} | {_number(now, form)} | {_number(before, form)} | {text} |"]


def _number(value: Any, form: str) -> str:
    return "" if value is None else percent(value) if "%" in form else rounded(value, form)


def _score(row: ReportedRow) -> str:
    return _number(row.score, ".4g")


def _table(rows: Sequence[ReportedRow], scores: Sequence[Column] = (("score", _score),)) -> list[str]:
    """Return a Markdown table of the first rows. If one of them has an id, the table has a column of ids."""
    shown = rows[:_SHOWN]
    ids: list[Column] = [("id", lambda row: _cell(row.id or ""))] if any(row.id for row in shown) else []
    columns: list[Column] = [
        ("row from 0", lambda row: str(row.index)), *ids, *scores, ("reason", lambda row: _cell(row.message or "")),
    ]  # fmt: skip
    lines = [f"| {' | '.join(cell(row) for _, cell in columns)} |" for row in shown]
    return [f"| {' | '.join(name for name, _ in columns)} |", f"|{'---|' * len(columns)}", *lines]


def _cell(text: str) -> str:
    """Escape a string for a cell of a Markdown table, because it may come from a caller's code.

    Control characters are escaped as for a terminal, because CI systems print reports to their logs.
    """
    shown = plain(" ".join(text.split())).encode("utf-8", "replace").decode().replace("\\", "\\\\")
    escaped = "".join(f"\\{sign}" if sign in "|`*_<>[]#!&~" else sign for sign in shown)
    return _REFERENCE.sub(r"\g<0>" + _BREAK, escaped)


_NUMBERS: Final[tuple[tuple[str, str, Number], ...]] = (
    ("rows", "d", lambda report: len(report.rows)),
    ("failed", "d", lambda report: report.count(Status.FAILED)),
    ("skipped", "d", lambda report: report.count(Status.SKIPPED)),
    ("with a verdict", "d", lambda report: report.judged),
    ("not passed", "d", lambda report: report.not_passed),
    ("mean", ".4g", lambda report: report.mean),
    ("passed", ".1%", lambda report: report.pass_rate),
)
# names of numbers in a report, each with the field of rows from which it is computed
_VALUES: Final = {"mean": "score", "passed": "passed"}

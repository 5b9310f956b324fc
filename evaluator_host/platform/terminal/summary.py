"""Formats results as tables, and summarises a run row by row.

The summary needs 8 bytes of memory for each row, and more while it computes percentiles.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from evaluator_host.platform.terminal.console import err, facts
from evaluator_host.platform.terminal.gates import why_under
from evaluator_host.platform.terminal.words import in_options
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Row
from evaluator_host.types.groups import Numbers
from evaluator_host.types.json_values import InvalidJson, decode_json, encode_json, is_conversation, type_name
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import per_second, percent, rounded, wilson
from evaluator_host.types.outcome import HOST_FAULTS, EvaluationError, EvaluationResult, Fix, ModelUsage, Status
from evaluator_host.types.results import RunTimes
from evaluator_host.types.warnings import RowWarnings, WarningCount, failed_together

_ROWS_SHOWN: Final = 5  # maximum number of rows to show among those that did not pass
_METRICS_KEPT: Final = 200  # maximum number of metrics in the summary of a run
_METRICS_SHOWN: Final = 20
_NAME_CHARS: Final = 60


class Summary:
    """Row counts, scores and times of one run.

    With `failures_are_zero`, failed rows count as 0, and as not passed, if other rows have scores or verdicts.
    """

    def __init__(self, *, failures_are_zero: bool = False) -> None:
        self._failures_are_zero = failures_are_zero
        self.rows = 0  # number of rows with a result
        # `(row, line, result)` of the first failed row in the file, or None
        self.first_failure: tuple[int, int, EvaluationResult] | None = None
        self.together: EvaluationResult | None = None  # the score over all rows, for an evaluator that has one
        self.errors: Counter[str] = Counter()
        self.statuses: Counter[Status] = Counter()
        self._warnings = RowWarnings()
        self._verdicts: Counter[bool] = Counter()
        self._not_passed: list[tuple[int, int]] = []  # `(row, line)` of the first rows that did not pass
        self._score = Numbers()
        self._metrics: dict[str, Numbers] = {}
        self._has_more_metrics = False
        self._run_times = RunTimes()

    def add(self, result: EvaluationResult, *, row: int, line: int) -> None:
        """Count the result of one row. `row` is the row's number, from 0, and `line` its line in the data file."""
        self.rows += 1
        self.statuses[result.status] += 1
        self._run_times.add(result.status, result.timing_ms.run)
        self._warnings.add(row, result)
        if result.passed is not None:
            self._verdicts[result.passed] += 1
        if result.passed is False:
            self._not_passed = sorted([*self._not_passed, (row, line)])[:_ROWS_SHOWN]
        if result.score is not None:
            self._score.add(result.score)
        for name, value in result.metrics.items():
            if name == "score" and value == result.score:
                continue
            if name in self._metrics or len(self._metrics) < _METRICS_KEPT:
                self._metrics.setdefault(name, Numbers()).add(value)
            else:
                self._has_more_metrics = True
        if result.error is not None:
            self.errors[result.error.code.value] += 1
            if self.first_failure is None or row < self.first_failure[0]:
                self.first_failure = (row, line, result)

    @property
    def mean(self) -> float | None:
        """Mean score. None if no row has a score."""
        return self._score.mean(zeros=self._zeros)

    @property
    def _zeros(self) -> int:
        """Number of failed rows that count as a score of 0."""
        return self.statuses[Status.FAILED] if self._failures_are_zero and self._score.count else 0

    @property
    def _judged(self) -> int:
        """Number of rows over which the pass rate is computed."""
        judged = self._verdicts.total()
        return judged + (self.statuses[Status.FAILED] if self._failures_are_zero and judged else 0)

    @property
    def pass_rate(self) -> float | None:
        """Of the rows with a verdict, the fraction that passed."""
        return self._verdicts[True] / self._judged if self._judged else None

    @property
    def doubt(self) -> str | None:
        """Why no score is reliable: there are no scores, all are doubtful, or `together` failed. Otherwise None."""
        scored_together = self.together is not None and self.together.error is None
        if scored_together and self.mean is None:
            return None
        return self._warnings.doubt() or failed_together(self.together)

    @property
    def lost(self) -> int:
        """Number of rows that failed because their sandbox was lost, or because the host had no processor time."""
        return sum(self.errors[code.value] for code in HOST_FAULTS)

    def exit_code(self, *, bad_lines: int, fail_under: float | None, strict: bool) -> int:
        """Return the exit code of the run.

        1: a row failed, no score is reliable, or the mean is below `fail_under`. 2: a line is bad, and `strict` is set.
        3: the host lost rows. 0: none of these.
        """
        if strict and bad_lines:
            return 2
        if self.lost:
            return 3
        gates = self.gates(bad_lines=bad_lines, fail_under=fail_under, strict=strict)
        if under := gates.get("--fail-under"):
            err.print(under)
        elif self.errors:
            err.print(f"{counted(self.statuses[Status.FAILED], 'row')} failed, so the exit code is 1")
        return 1 if gates or self.errors else 0

    def gates(self, *, bad_lines: int, fail_under: float | None, strict: bool) -> dict[str, str]:
        """Return each condition that the run did not meet, such as `--strict`, with the reason.

        Each makes the exit code nonzero.
        """
        gates = {}
        if strict and bad_lines:
            gates["--strict"] = f"bad lines: {bad_lines}"
        fractions = self._score.min >= 0 and self._score.max <= 1
        if under := why_under(self.mean, fail_under, fractions=fractions):
            gates["--fail-under"] = under
        if self.doubt:
            gates["reliable scores"] = in_options(self.doubt)
        return gates

    def to_json(self, *, bad_lines: int, seconds: float) -> dict[str, Any]:
        """Return the summary as `run --json` prints it."""
        return {
            "rows": self.rows,
            "scored": self.statuses[Status.SCORED],
            "failed": self.statuses[Status.FAILED],
            "skipped": self.statuses[Status.SKIPPED],
            "bad_lines": bad_lines,
            **_spread(self._score, zeros=self._zeros),
            "mean_rows": self._score.count + self._zeros,
            "metrics": {name: {"rows": one.count, **_spread(one)} for name, one in self._metrics.items()},
            "pass_rate": self.pass_rate,
            "judged": self._judged,
            "pass_interval": wilson(self._verdicts[True], self._judged),
            "errors": dict(self.errors.most_common()),
            "warnings": self._warnings.counts(),
            "doubt": self.doubt,
            "rows_per_s": per_second(self.rows, seconds),
            "run_ms": self._run_times.latency(),
            "first_failure": self._first_failure(),
            **({} if self.together is None else {"together": self.together}),
            **({"more_metrics": True} if self._has_more_metrics else {}),
        }

    def to_table(self, *, bad_lines: int, seconds: float) -> Text:
        """Format the summary as a table."""
        found = self.to_json(bad_lines=bad_lines, seconds=seconds)
        run_ms, failure = found["run_ms"], found["first_failure"]
        return facts(
            (
                ("doubtful", found["doubt"] and in_options(found["doubt"])),
                ("rows", self.rows),
                ("scored", found["scored"]),
                ("failed", f"{found['failed']}  {_counts(self.errors)}" if self.errors else "0"),
                ("skipped", found["skipped"] or None),
                ("bad lines", bad_lines or None),
                (
                    "score",
                    None if self.mean is None else f"{_scores(found)}{self._counted(found['scored'])}",
                ),
                ("metrics", _metrics_text(found["metrics"], found["scored"], more=self._has_more_metrics) or None),
                ("passed", self._passed_text(found)),
                ("not passed", self._not_passed_text() if self._not_passed else None),
                ("together", None if self.together is None else corpus_scores_text(self.together)),
                ("warnings", warnings_text(found["warnings"]) or None),
                ("speed", None if found["rows_per_s"] is None else f"{found['rows_per_s']:g} rows/s"),
                ("a row ran", None if run_ms is None else f"{run_ms.p50} ms (p50), {run_ms.p99} ms (p99)"),
                ("first failure", None if failure is None else _failure(failure)),
            ),
        )

    def _counted(self, scored: int) -> str:
        if self._zeros:
            return f" (over {self._score.count + self._zeros} rows: failed rows count as 0)"
        return _few_rows(self._score.count, scored)

    def _passed_text(self, found: dict[str, Any]) -> str | None:
        rate = pass_rate_text(self.pass_rate, found["judged"], found["scored"])
        return rate and f"{rate} (95 % interval {pass_interval_text(found['pass_interval'])})"

    def _not_passed_text(self) -> str:
        count = self._verdicts[False]
        more = ", …" if count > len(self._not_passed) else ""
        rows, lines = (", ".join(map(str, numbers)) + more for numbers in zip(*self._not_passed, strict=True))
        many = "s" * (count > 1)
        return f"{count}: line{many} {lines} (row{many} {rows}, counted from 0); --out FILE writes each result"

    def _first_failure(self) -> dict[str, Any] | None:
        if self.first_failure is None:
            return None
        row, line, result = self.first_failure
        return {"row": row, "line": line, "error": result.error, "logs": result.logs}


def _spread(numbers: Numbers, *, zeros: int = 0) -> dict[str, float | None]:
    """Return statistics of numbers, as if there were `zeros` more numbers, each of them 0."""
    some, more = numbers.count > 0, [0.0] * bool(zeros)
    return {
        "mean": numbers.mean(zeros=zeros),
        "std_error": numbers.std_error(zeros=zeros),
        "min": min([numbers.min, *more]) if some else None,
        "max": max([numbers.max, *more]) if some else None,
    }


def pass_rate_text(share: float | None, judged: int, scored: int) -> str | None:
    """Format a pass rate: `100.0%`, or `100.0% of 2 rows` if 2 is not the number of scored rows."""
    if share is None:
        return None
    return percent(share) + ("" if judged == scored else f" of {counted(judged, 'row')}")


def pass_interval_text(interval: tuple[float, float] | None) -> str | None:
    return None if interval is None else " to ".join(map(percent, interval))


def warnings_text(counts: Sequence[WarningCount]) -> str:
    """Format row warnings, one per line, each with the number of rows, what happened, and what to do."""
    return "\n".join(in_options(one.text) for one in counts)


def _scores(found: dict[str, Any]) -> str:
    error = "" if found["std_error"] is None else f" (standard error {found['std_error']:.2g})"
    return f"mean {rounded(found['mean'])}{error}, min {rounded(found['min'])}, max {rounded(found['max'])}"


def _few_rows(rows: int, scored: int) -> str:
    return "" if rows == scored else f" (over {rows} of the scored rows)"


def _metrics_text(found: dict[str, dict[str, Any]], scored: int, *, more: bool) -> str:
    """Return a line for each of the first metrics. `more` is whether the run has metrics besides those in `found`."""
    shown = [
        f"{name[:_NAME_CHARS]}: {_scores(one)}{_few_rows(one['rows'], scored)}"
        for name, one in list(found.items())[:_METRICS_SHOWN]
    ]
    left = len(found) - len(shown)
    others = f"; only the first {_METRICS_KEPT} metrics are counted" if more else ""
    return "\n".join([*shown, *([f"and {left} more, which --json prints{others}"] if left else [])])


def usage_text(used: ModelUsage) -> str:
    """Return the use of models in one line: requests, tokens, cost and connections."""
    replayed = f", {counted(used.replayed, 'recorded answer')}" if used.replayed else ""
    cost = ", cost not known" if used.cost is None else f", cost {used.cost:.6g}"
    hosts = f", {counted(used.connections, 'connection')} of {used.network_bytes} bytes" if used.connections else ""
    requests = counted(used.requests, "request")
    guessed = f" (estimated for {counted(used.estimated, 'request')})" if used.estimated else ""
    return f"{requests}{replayed}, {used.input_tokens} + {used.output_tokens} tokens{guessed}{cost}{hosts}"


def corpus_scores_text(result: EvaluationResult) -> str:
    """Format the score over all rows and its warnings as lines of text; if there is no such score, format the error."""
    if result.error is not None:
        return f"{result.error.code}: {result.error.message}"
    numbers = ", ".join(f"{name} {rounded(value)}" for name, value in result.metrics.items()) or "no numbers"
    return "\n".join([numbers, *(f"{note.code}: {in_options(note.text)}" for note in result.warnings)])


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def _failure(failure: dict[str, Any]) -> str:
    error = failure["error"]
    column = f", column {error.column}" if error.column else ""
    place = f" (line {error.line}{column} of the evaluator)" if error.line else ""
    hint = f"\n{in_options(error.hint)}" if error.hint else ""
    return f"row {failure['row']} (line {failure['line']}): {error.code.value}: {message_of(error)}{place}{hint}"


def parse_row(texts: dict[str, str | None]) -> Row:
    """Return the row that the options `--inputs --outputs --trace --variables --criteria --messages` describe.

    Outputs that are not JSON are plain text; messages must be a JSON list of objects, the other fields JSON objects.

    Raises:
      InvalidRequest: an option is not a JSON object.
    """
    fields: dict[str, Any] = {}
    problems = []
    for name, text in texts.items():
        if text is None:
            continue
        try:
            fields[name] = decode_json(text.encode("utf-8", "replace"))
        except InvalidJson as error:
            fields[name] = text
            if name != "outputs":
                problems.append(Problem(f"--{name}", str(error)))
                continue
        if name == "messages" and not is_conversation(fields[name]):
            problems.append(Problem("--messages", 'must be a JSON list of messages: [{"role": …, "content": …}]'))
        elif name not in {"outputs", "messages"} and not isinstance(fields[name], dict):
            problems.append(Problem(f"--{name}", f"must be a JSON object, not {type_name(fields[name])}"))
    if problems:
        raise InvalidRequest("the row is invalid", problems=tuple(problems))
    return Row(**fields)


def result_table(result: EvaluationResult) -> Text:
    """Format a result as a table. Leave out absent fields."""
    timing = result.timing_ms
    contract = (
        f"{result.evaluator.contract} ({result.evaluator.contract_source})" if result.evaluator.contract else None
    )
    others = {name: value for name, value in result.metrics.items() if name != "score"}
    return facts(
        (
            ("status", result.status),
            ("score", result.score),
            ("passed", result.passed),
            ("label", result.label),
            ("reason", result.reason),
            ("metrics", encode_json(others).decode() if others else None),
            ("grants", ", ".join(result.evaluator.grants) or None),
            ("warnings", "\n".join(f"{note.code}: {in_options(note.text)}" for note in result.warnings)),
            ("error", error_text(result.error) if result.error else None),
            ("not loaded", ", ".join(result.not_loaded) or None),
            ("native", "\n".join(encode_json(one).decode() for one in result.native)),
            ("stdout", result.logs.stdout),
            ("stderr", result.logs.stderr),
            ("models", usage_text(result.usage) if result.usage is not None else None),
            ("contract", contract),
            ("time", f"ran {timing.run:.1f} ms, load {timing.load:.1f} ms, total {timing.total:.1f} ms"),
        ),
    )


def message_of(error: EvaluationError) -> str:
    """Return an error's message, with API fields renamed to options. A KeyError's message begins with `KeyError`."""
    return f"KeyError: {error.message}" if error.type == "KeyError" else in_options(error.message)


def error_text(error: EvaluationError) -> str:
    """Format an error as lines of text: what happened, where, what to do."""
    place = f" (line {error.line}{f', column {error.column}' if error.column else ''})" if error.line else ""
    return "\n".join(
        part
        for part in (
            f"{error.code}: {message_of(error)}{place}",
            error.traceback,
            error.hint and in_options(error.hint),
        )
        if part is not None
    )


def fix_text(fix: Fix) -> str:
    """Format a fix as lines of text: its diff, or the possible diffs if there are several."""
    if fix.diff is not None:
        return f"check --fix makes this change:\n{fix.diff}"
    return "\nor\n".join(one.diff for one in fix.candidates)


def exit_code(result: EvaluationResult) -> int:
    """Return 0 if the row did not fail, 1 if it failed, 3 if it failed because of the host."""
    if result.error is not None and result.error.code in HOST_FAULTS:
        return 3
    return 1 if result.status is Status.FAILED else 0

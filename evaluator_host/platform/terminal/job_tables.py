"""Shows jobs, their results and comparisons as tables in a terminal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.text import Text

from evaluator_host.platform.terminal.console import facts, format_time, next_command, plain, table
from evaluator_host.platform.terminal.summary import (
    corpus_scores_text,
    pass_interval_text,
    pass_rate_text,
    usage_text,
    warnings_text,
)
from evaluator_host.platform.terminal.words import in_options
from evaluator_host.types.alerts import ScheduleReport
from evaluator_host.types.evaluator import Json
from evaluator_host.types.jobs import JobEstimate, JobNode, JobReport, JobScore, ScoredJob, ScoreHistory, ScoreLine
from evaluator_host.types.json_values import encode_json, value_at
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import percent, points, rounded
from evaluator_host.types.results import (
    Agreement,
    ColumnStatistics,
    ComparedColumn,
    ComparedGroup,
    Comparison,
    Difference,
    EvaluatorStatistics,
    FailureGroup,
    GroupStatistics,
    JobRow,
    JobStatistics,
)

SCORE_HEADER = ("SCORED", "FAILED", "MEAN", "PASSED", "CHANGE")
_JOB_HEADER = ("JOB", "STATUS", "NAME", "DATA SET", "CREATED", "EVALUATOR", *SCORE_HEADER)
_INTERVAL = "95 % INTERVAL"
_DIFFERENCE = ("N", "BEFORE", "AFTER", "DIFFERENCE", _INTERVAL, "")
OWN_ROWS = "(own rows)"
CHANGES_SHOWN = 10
_BARS = "▁▂▃▄▅▆▇█"
_FEW_METRICS = 6  # maximum number of metrics that a table of rows shows
_SAID_CHARS = 40  # maximum number of characters of a row's outputs, and of its inputs, in a table


@dataclass(frozen=True, slots=True)
class OwnedJob:
    """A job with the name of its workspace."""

    workspace: str
    job: JobReport


def jobs_table(jobs: Sequence[JobReport]) -> Text:
    return table(_JOB_HEADER, [row for job in jobs for row in _job_rows(job)])


def owned_jobs_table(jobs: Sequence[OwnedJob]) -> Text:
    """Return a table of jobs from several workspaces."""
    return table(("WORKSPACE", *_JOB_HEADER), [(one.workspace, *row) for one in jobs for row in _job_rows(one.job)])


def _job_rows(job: JobReport) -> Iterator[tuple[object, ...]]:
    """Yield a line for each evaluator of a job. Only the first line has the job's data set and time."""
    about = job.title, job.dataset_name or OWN_ROWS, format_time(job.created_at)
    for score in job.scores:
        yield (
            job.id,
            f"{job.status}, doubtful" if score.doubt else job.status,
            *about,
            score.evaluator,
            *score_cells(score),
        )
        about = "", "", ""


def score_cells(score: JobScore) -> tuple[object, ...]:
    """Format an evaluator's statistics in a job as table cells, in the order of `SCORE_HEADER`."""
    rate = pass_rate_text(score.pass_rate, score.judged, score.mean_rows)
    change = None if score.change is None else rounded(score.change, "+.4g")
    return f"{score.scored}/{score.rows}", score.failed, mean_cell(score), rate, change


def mean_cell(score: JobScore) -> object:
    """Return an evaluator's mean in a job as a table cell, which says if the mean is doubtful."""
    return score.mean if score.doubt is None or score.mean is None else f"{rounded(score.mean)} (doubtful)"


def job_facts(job: JobReport) -> Text:
    """Return a table with the status, times, row counts and settings of one job."""
    progress = job.progress
    speed = f", {progress.rows_per_s:g} {job.unit}s/s" if progress.rows_per_s else ""
    left = f", {progress.eta_s:.0f} s to go" if progress.eta_s else ""
    return facts(
        (
            ("job", job.id),
            ("name", job.title),
            ("status", f"{job.status}, but its scores cannot be relied on" if job.doubt else job.status),
            ("doubtful", job.doubt and in_options(job.doubt)),
            ("error", f"{job.error.code}: {job.error.message}" if job.error else None),
            ("evaluators", ", ".join(job.evaluators)),
            ("data set", job.dataset_name or f"{job.dataset} (rows of the job)"),
            ("mapping", ", ".join(f"{field}={source}" for field, source in job.mapping.items())),
            ("model", _model(job)),
            ("done", f"{progress.done} of {counted(progress.rows, job.unit)}{speed}{left}"),
            ("failed", counted(progress.failed, job.unit)),
            ("nodes", "; ".join(_node(one, job.unit) for one in job.nodes) or None),
            *((one.evaluator, _score_text(one, zero=job.config.failures == "zero")) for one in job.scores),
            *((f"{one.evaluator} warns", warnings_text(one.warnings) or None) for one in job.scores),
            ("created", format_time(job.created_at)),
            ("finished", format_time(job.finished_at) if job.finished_at else None),
        )
    )


def schedule_facts(one: ScheduleReport) -> object:
    """Return a table with every field of a schedule."""
    return facts(
        (
            ("schedule", one.name),
            ("cron", f"{one.cron} ({one.timezone})"),
            ("next runs", "\n".join(map(format_time, one.next_runs)) or ("paused" if one.paused else "never")),
            ("last run", format_time(one.last_at) if one.last_at else None),
            ("last job", one.last_job),
            ("last error", one.last_error),
            ("missed", one.missed_text if one.missed else None),
            ("evaluators", ", ".join(one.evaluators)),
            ("data set", one.dataset or "(own rows)"),
        )
    )


def history_table(history: ScoreHistory) -> Text:
    """Return a table of evaluators with their scores in each job.

    If a score fell, the text also says how to compare two jobs.
    """
    header = ("EVALUATOR", "JOBS", "TREND", "FIRST", "MEAN", "CHANGE")
    made = table(header, [_history_cells(history.jobs, line) for line in history.evaluators])
    for line in history.evaluators:
        job, last = [pair for pair in zip(history.jobs, line.scores, strict=True) if pair[1]][-1]
        if last is None or last.previous is None:
            continue
        name = line.evaluator
        compare = next_command(f"jobs compare {last.previous} {job.id} --evaluator {name}")
        if last.change is not None and last.change < 0:
            made.append(plain(f"\n{name} fell by {rounded(-last.change)}: {compare}"))
        elif last.not_compared:
            why = "its last two jobs scored different rows or count failed rows differently, or the scores of the "
            why += "last one are doubtful"
            made.append(plain(f"\nthe means of {name} cannot be compared, because {why}; compare its rows: {compare}"))
    return made


def _history_cells(jobs: Sequence[ScoredJob], line: ScoreLine) -> tuple[object, ...]:
    given = [score for score in line.scores if score is not None]
    first = next((score.mean for score in given if score.mean is not None and score.doubt is None), None)
    _, _, last, _, change = score_cells(given[-1])
    return line.evaluator, len(given), _bars(jobs, line), first, last, change


def _bars(jobs: Sequence[ScoredJob], line: ScoreLine) -> str:
    """Draw a bar for each job: a higher mean score gives a higher bar. A dot stands for an unreliable mean.

    Bars between two `|` have their own scale, because only their means are over the same rows.
    """
    bars = dict.fromkeys((job.id for job in jobs), "·")
    steps = len(_BARS) - 1
    for place, run in enumerate(_runs(jobs, line)):
        low = min(run.values())
        span = max(run.values()) - low
        for job, mean in run.items():
            bars[job] = _BARS[round((mean - low) / span * steps) if 0 < span < math.inf else steps // 2]
        first = next(iter(run))
        bars[first] = f"{'|' if place else ''}{bars[first]}"
    return "".join(bars.values())


def _runs(jobs: Sequence[ScoredJob], line: ScoreLine) -> list[dict[str, float]]:
    """Return the reliable means by job, in runs of jobs whose means can be compared with each other."""
    first: dict[str, str] = {}  # for each job, the first job with which its mean can be compared
    known: list[tuple[str, float]] = []
    for job, score in zip(jobs, line.scores, strict=True):
        if score is None:
            continue
        first[job.id] = job.id if score.change is None else first.get(str(score.previous), job.id)
        if score.mean is not None and not score.doubt:
            known.append((job.id, score.mean))
    return [dict(run) for _, run in groupby(known, key=lambda one: first[one[0]])]


def _score_text(score: JobScore, *, zero: bool) -> str | None:
    """Format an evaluator's mean as text, with its number of rows, pass rate and change. None if there is no mean.

    With `zero`, failed rows count as 0, and the text also contains the number of failed rows.
    """
    if score.mean is None:
        return None
    rate = pass_rate_text(score.pass_rate, score.judged, score.mean_rows)
    passed = "" if rate is None else f", {rate} passed"
    change = "" if score.change is None else f", {rounded(score.change, '+.4g')} since {score.previous}"
    failed = score.failed if zero else 0
    as_zero = f" ({failed} failed, counted as 0)" if failed else ""
    return f"mean {rounded(score.mean)} over {score.mean_rows} of {counted(score.rows, 'row')}{as_zero}{passed}{change}"


def _node(node: JobNode, unit: str) -> str:
    reason = f" ({node.reason})" if node.reason else ""
    return f"{node.name} {node.state}{reason}, {counted(node.rows, unit)}"


def _model(job: JobReport) -> str | None:
    if job.target is None:
        return None
    rows = job.progress.rows // max(len(job.evaluators), 1)
    return f"{job.target.model}, {job.progress.generated} of {rows} outputs"


def statistics_table(statistics: JobStatistics) -> Text:
    """Return a table of a job's scores and other statistics, for each evaluator."""
    return Text("\n\n").join(_evaluator_statistics(one) for one in statistics.evaluators)


def _evaluator_statistics(one: EvaluatorStatistics) -> Text:
    rate = pass_rate_text(one.pass_rate, one.judged, one.scored)
    passed = "" if rate is None else f", {rate} passed (95 % interval {pass_interval_text(one.pass_interval)})"
    skipped = f", {one.skipped} skipped" if one.skipped else ""
    rows = counted(one.rows, "row")
    made = Text(plain(f"{one.evaluator}: {rows}, {one.scored} scored, {one.failed} failed{skipped}{passed}"))
    if one.doubt is not None:
        made.append(plain(f"\ndoubtful: {in_options(one.doubt)}"))
    if one.warnings:
        made.append(plain(f"\n{warnings_text(one.warnings)}"))
    if one.metrics:
        header = ("METRIC", "COUNT", "MISSING", "MEAN", "STD ERR", "MIN", "P50", "P90", "P99", "MAX", "STD DEV (N)")
        made.append("\n").append(table(header, [_metric(metric) for metric in one.metrics]))
    for metric in one.metrics:
        if metric.rubric_distribution is not None:
            levels = ", ".join(f"{level.label} {level.count}" for level in metric.rubric_distribution)
            made.append(plain(f"\n{metric.name}: {levels}"))
    if one.together is not None:
        made.append(plain(f"\ntogether: {corpus_scores_text(one.together)}"))
    if one.usage is not None:
        made.append(plain(f"\nmodels: {usage_text(one.usage)}"))
    for error in one.errors:
        made.append(plain(f"\n{error.code}: {counted(error.count, 'row')}, for example row {error.example_row}"))
    return made


def groups_table(statistics: ColumnStatistics, column: str) -> Text:
    """Return a table of an evaluator's scores for each value of a column."""
    counts = ("ROWS", "SCORED", "FAILED", "SKIPPED")
    header = (plain(column).upper(), *counts, "MEAN", "STD ERR", "OVER", "PASSED", _INTERVAL)
    rows = [_group_cells(_value_text(one.value), one) for one in statistics.groups]
    others = statistics.others
    return table(header, rows if others is None else [*rows, _group_cells("(other values)", others)])


def all_groups_table(found: Sequence[ColumnStatistics], column: str) -> Text:
    """Return a table for each evaluator of a job: its scores for each value of a column."""
    heads = (f"{one.evaluator}:{'' if one.doubt is None else f' doubtful: {in_options(one.doubt)}'}" for one in found)
    tables = (groups_table(one, column) for one in found)
    return Text("\n\n").join(Text(f"{plain(head)}\n").append(one) for head, one in zip(heads, tables, strict=True))


def _group_cells(name: str, one: GroupStatistics) -> tuple[object, ...]:
    rate = pass_rate_text(one.pass_rate, one.judged, one.mean_rows)
    counts = one.rows, one.scored, one.failed, one.skipped
    return name, *counts, one.mean, one.std_error, one.mean_rows, rate, pass_interval_text(one.pass_interval)


def _value_text(value: Json) -> str:
    return "(no value)" if value is None else '""' if value == "" else _brief(_text(value))


def _metric(metric: Any) -> tuple[object, ...]:
    at = metric.percentiles or {}
    return (
        *(metric.name, metric.count, metric.nan_count, metric.mean, metric.std_error, metric.min),
        *(at.get("p50"), at.get("p90"), at.get("p99"), metric.max, metric.std_dev),
    )


def rows_table(rows: Sequence[JobRow], mapping: Mapping[str, str]) -> Text:
    """Return a table of rows; `mapping` is their job's mapping."""
    found = dict.fromkeys(name for row in rows for name in row.result["metrics"] if name != "score")
    metrics = tuple(found) if len(found) <= _FEW_METRICS else ()
    header = ("ROW FROM 0", "EVALUATOR", "STATUS", "SCORE", "PASSED", *map(plain, metrics), "OUTPUTS", "INPUTS", "WHY")
    return table(header, [_row(row, mapping.get("outputs"), metrics) for row in rows])


def _row(row: JobRow, answers: str | None, metrics: Sequence[str]) -> tuple[object, ...]:
    result = row.result
    outputs, inputs = said(row, answers)
    shown = ", ".join(f"{name}: {_text(value)}" for name, value in inputs.items() if value is not None)
    beginnings = (None if outputs is None else _brief(_text(outputs)), _brief(shown))
    values = map(result["metrics"].get, metrics)
    return row.index, row.evaluator, result["status"], result["score"], result["passed"], *values, *beginnings, why(row)


def why(row: JobRow) -> str | None:
    """Return the error of a row, or the reason for its score."""
    error = row.result["error"]
    return f"{error['code']}: {error['message']}" if error else row.result["reason"]


def said(row: JobRow, answers: str | None) -> tuple[Json, dict[str, Json]]:
    """Return a row's outputs, and its inputs (or its remaining values if it has no inputs).

    `answers` is the path of the outputs within the row, if known.
    """
    record = dict(row.row)
    mapped = None if answers is None or answers in record else value_at(record, answers, None)
    answer = next((record.pop(name) for name in (answers, "outputs", "output") if name in record), None)
    answer = answer if mapped is None else mapped
    answer = answer if row.request is None and row.output is None else row.output
    inputs = record.get("inputs")
    return answer, inputs if isinstance(inputs, dict) else record


def _text(value: Json) -> str:
    return value if isinstance(value, str) else encode_json(value).decode("utf-8", "replace")


def _brief(text: str) -> str:
    return text if len(text) <= _SAID_CHARS else f"{text[: _SAID_CHARS - 1]}…"


def failures_table(groups: Sequence[FailureGroup]) -> Text:
    """Return a table of failed rows, grouped by kind of failure."""
    return table(("EVALUATOR", "COUNT", "CODE", "LINE", "ROWS FROM 0", "MESSAGE"), [_group(group) for group in groups])


def _group(group: FailureGroup) -> tuple[object, ...]:
    rows = ", ".join(map(str, group.rows)) + (", …" if group.count > len(group.rows) else "")
    hint = f"; {in_options(group.hint)}" if group.hint else ""
    return group.evaluator, group.count, group.code, group.line, rows, f"{in_options(group.message)}{hint}"


def estimate_text(one: JobEstimate) -> Text:
    """Format a job's estimate as text, which also names the budgets that the estimate exceeds."""
    made = Text(plain(f"{counted(one.rows, 'result')} would use {usage_text(one.usage)}\n"))
    if one.usage.requests and one.sample.replayed:
        made.append("recorded answers of the sample count as requests, since other rows may have none\n")
    if one.target is not None:
        unknown = f"{counted(one.target.requests, 'request')}, without reporting tokens"
        made.append(f"the target would answer {usage_text(one.target) if one.target.input_tokens else unknown}\n")
    results = counted(one.sampled, "result")
    made.append(plain(f"estimated from {results}, of which {one.failed} failed: {usage_text(one.sample)}"))
    return made.append(plain("".join(f"\nbudget_exceeded: {why}" for why in one.over)))


def agreement_tables(found: Sequence[Agreement]) -> Text:
    """Return tables of how evaluators agree with people's labels: accuracy, kappa, classes, confusion matrix."""
    made = Text()
    for one in found:
        weighted = "" if one.weighted_kappa is None else f", weighted {rounded(one.weighted_kappa, '.3f')}"
        kappa = (
            "none" if one.kappa is None else f"{rounded(one.kappa, '.3f')} ({_interval(one.kappa_interval)}){weighted}"
        )
        share = (
            "none" if one.accuracy is None else f"{rounded(one.accuracy, '.3f')} ({_interval(one.accuracy_interval)})"
        )
        made.append(plain(f"{one.evaluator}: {counted(one.rows, 'row')}, accuracy {share}, kappa {kappa}\n"))
        if one.left_out:
            made.append(plain(f"left out: {one.left_out}\n"))
        if one.note is not None:
            made.append(plain(f"{one.note}\n"))
        if not one.rows:
            continue
        header = ("CLASS", "PEOPLE", "EVALUATOR", "RECALL", "", "PRECISION", "")
        rows = [
            (
                kind.name, kind.human, kind.judged, kind.recall, _interval(kind.recall_interval), kind.precision,
                _interval(kind.precision_interval),
            )
            for kind in one.classes
        ]  # fmt: skip
        made.append(table(header, rows))
        names = [kind.name for kind in one.classes]
        counts = {(cell.human, cell.judged): cell.rows for cell in one.confusion}
        made.append("\n")
        made.append(
            table(("PEOPLE \\ EVALUATOR", *names), [(a, *(counts.get((a, b), 0) for b in names)) for a in names])
        )
        made.append("\n")
    return made


def _interval(given: tuple[float, float] | None) -> str:
    return "" if given is None else f"{rounded(given[0], '.3f')} to {rounded(given[1], '.3f')}"


def comparison_table(one: Comparison, ids: Mapping[int, str]) -> Text:
    """Return a table that compares the results of one evaluator in two jobs. `ids` has the ids of its rows."""
    better = f"{counted(one.improved, 'row')} better" + (
        f" ({one.gained} of which failed before)" if one.gained else ""
    )
    worse = f"{one.regressed} worse" + (f" ({one.lost} of which fail now)" if one.lost else "")
    unscored = f", {one.unscored} with a score in one job only" if one.unscored else ""
    made = Text(plain(f"{one.before} -> {one.after}: {better}, {worse}{unscored}\n"))
    made.append(_passes(one))
    if one.doubt is not None:
        made.append(plain(f"doubtful: {in_options(one.doubt)}\n"))
    for rows, job in ((one.only_before, "earlier"), (one.only_after, "later")):
        if rows:
            made.append(f"left out: {counted(rows, 'row')} with a result only in the {job} job\n")
    for cause in one.changed:
        made.append(plain(f"{cause.what}: {cause.before} -> {cause.after}\n"))
    if not one.changed:
        made.append("nothing differs between the jobs\n")
    made.append(table(("METRIC", *_DIFFERENCE), [(metric.metric, *_difference(metric)) for metric in one.metrics]))
    for name, warnings in (("before", one.warnings_before), ("after", one.warnings_after)):
        made.append(plain("".join(f"\n{name}: {in_options(warning.text)}" for warning in warnings)))
    for name, changes, rows in (("worse", one.regressions, one.regressed), ("better", one.improvements, one.improved)):
        shown = changes[:CHANGES_SHOWN]
        for change in shown:
            row = f"row {change.row}" + (f" (id {ids[change.row]})" if change.row in ids else "")
            made.append(plain(f"\n{name}: {row}, {_score(change.before)} -> {_score(change.after)}"))
        if rows > len(shown):
            where = "--out FILE writes" if name == "worse" else "the page of the comparison lists"
            made.append(f"\n{name}: {counted(rows - len(shown), 'row')} more; {where} all")
    return made


def compared_groups_tables(found: Sequence[ComparedColumn], column: str) -> Text:
    """Return a table for each evaluator of two jobs: the difference of its mean score for each value of a column."""
    header = (plain(column).upper(), "ROWS", *_DIFFERENCE)
    made = []
    for one in found:
        rows = [_compared_group(_value_text(group.value), group) for group in one.groups]
        rows += [] if one.others is None else [_compared_group("(other values)", one.others)]
        notes = [in_options(text) for text in (one.doubt and f"doubtful: {one.doubt}", one.note) if text]
        head = Text(plain("\n".join((f"{one.before} -> {one.after}: score", *notes, ""))))
        made.append(head.append(table(header, rows)))
    return Text("\n\n").join(made)


def _compared_group(name: str, group: ComparedGroup) -> tuple[object, ...]:
    return name, group.rows, *_difference(group.difference)


def _passes(one: Comparison) -> str:
    """Return lines that compare which rows passed in each job; `""` if no row has a verdict in both jobs."""
    if one.pass_rate_before is None or one.pass_rate_after is None:
        return ""
    gain = points(one.pass_rate_after - one.pass_rate_before)
    if (found := one.pass_difference) is not None and found.interval is not None:
        gain += f", 95 % interval {' to '.join(map(points, found.interval))}"
    rates = f"{percent(one.pass_rate_before)} -> {percent(one.pass_rate_after)} ({gain})"
    made = f"passed: {rates}, over {counted(one.judged, 'row')} with a verdict in both\n"
    if one.passes_lost:
        gained = f", {one.passes_gained} only in the later one" if one.passes_gained else ""
        made += f"{counted(one.passes_lost, 'row')} passed only in the earlier job{gained}\n"
    if rows := one.passes_lost_rows:
        first = ", ".join(map(str, rows[:CHANGES_SHOWN])) + (", …" if len(rows) > CHANGES_SHOWN else "")
        named = f"{'row' if len(rows) == 1 else 'rows'} {first}"
        made += f"passed before but not now, although the score did not fall: {named}\n"
    return made


def _difference(metric: Difference) -> tuple[object, ...]:
    interval = (
        metric.note if metric.interval is None else f"{rounded(metric.interval[0])} to {rounded(metric.interval[1])}"
    )
    return metric.n, metric.before, metric.after, metric.difference, interval, significance(metric)


def significance(metric: Difference) -> str:
    """Return one or two words, as on the web page, that say whether a difference of means may be due to chance."""
    if metric.significant:
        return "significant"
    if metric.difference == 0:
        return "no difference"
    return "" if metric.interval is None else "may be chance"


def _score(value: float | None) -> str:
    return "no score" if value is None else rounded(value)

"""Formats jobs and their results as tables."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from evaluator_host.cli.console import facts, format_time, plain, table
from evaluator_host.cli.summary import corpus_scores_text
from evaluator_host.schemas.jobs import JobReport
from evaluator_host.schemas.results import Comparison, Difference, EvaluatorFigures, FailureGroup, JobFigures, JobRow

_CHANGES_SHOWN = 10


def jobs_table(jobs: Sequence[JobReport]) -> Text:
    """Return a table of jobs."""
    header = ("JOB", "STATUS", "DONE", "FAILED", "DATA SET", "CREATED", "EVALUATORS")
    return table(header, [_job_row(job) for job in jobs])


def _job_row(job: JobReport) -> tuple[object, ...]:
    done = f"{job.progress.done}/{job.progress.rows}"
    return (
        *(job.id, job.status, done, job.progress.failed, job.dataset, format_time(job.created_at)),
        ", ".join(job.evaluators),
    )


def job_facts(job: JobReport) -> Text:
    """Return the facts of one job."""
    progress = job.progress
    speed = f", {progress.rows_per_s:g} rows/s" if progress.rows_per_s else ""
    left = f", {progress.eta_s:.0f} s to go" if progress.eta_s else ""
    return facts(
        (
            ("job", job.id),
            ("status", job.status),
            ("error", f"{job.error.code}: {job.error.message}" if job.error else None),
            ("evaluators", ", ".join(job.evaluators)),
            ("data set", job.dataset),
            ("mapping", ", ".join(f"{field}={source}" for field, source in job.mapping.items())),
            ("model", _model(job)),
            ("done", f"{progress.done} of {progress.rows}{speed}{left}"),
            ("failed", progress.failed),
            ("created", format_time(job.created_at)),
            ("finished", format_time(job.finished_at) if job.finished_at else None),
        )
    )


def _model(job: JobReport) -> str | None:
    if job.target is None:
        return None
    rows = job.progress.rows // max(len(job.evaluators), 1)
    return f"{job.target.model}, {job.progress.generated} of {rows} outputs"


def figures_table(figures: JobFigures) -> Text:
    """Return the figures of a job for each evaluator."""
    return Text("\n\n").join(_evaluator(one) for one in figures.evaluators)


def _evaluator(one: EvaluatorFigures) -> Text:
    rate = "" if one.pass_rate is None else f", {one.pass_rate:.1%} passed"
    skipped = f", {one.skipped} skipped" if one.skipped else ""
    made = Text(plain(f"{one.evaluator}: {one.rows} rows, {one.scored} scored, {one.failed} failed{skipped}{rate}"))
    if one.metrics:
        header = ("METRIC", "COUNT", "NAN", "MEAN", "MIN", "P50", "P90", "P99", "MAX", "STD DEV")
        made.append("\n").append(table(header, [_metric(metric) for metric in one.metrics]))
    for metric in one.metrics:
        if metric.rubric_distribution is not None:
            levels = ", ".join(f"{level.label} {level.count}" for level in metric.rubric_distribution)
            made.append(plain(f"\n{metric.name}: {levels}"))
    if one.together is not None:
        made.append(plain(f"\ntogether: {corpus_scores_text(one.together)}"))
    for error in one.errors:
        made.append(plain(f"\n{error.code}: {error.count} rows, for example row {error.example_row}"))
    return made


def _metric(metric: Any) -> tuple[object, ...]:
    at = metric.percentiles or {}
    return (
        *(metric.name, metric.count, metric.nan_count, metric.mean, metric.min),
        *(at.get("p50"), at.get("p90"), at.get("p99"), metric.max, metric.std_dev),
    )


def rows_table(rows: Sequence[JobRow]) -> Text:
    """Return a table of rows."""
    return table(("ROW", "EVALUATOR", "STATUS", "SCORE", "PASSED", "WHY"), [_row(row) for row in rows])


def _row(row: JobRow) -> tuple[object, ...]:
    result = row.result
    why = result["reason"]
    if result["error"]:
        why = f"{result['error']['code']}: {result['error']['message']}"
    return row.index, row.evaluator, result["status"], result["score"], result["passed"], why


def failures_table(groups: Sequence[FailureGroup]) -> Text:
    """Return a table of the groups of failed rows."""
    return table(("EVALUATOR", "COUNT", "CODE", "LINE", "ROWS", "MESSAGE"), [_group(group) for group in groups])


def _group(group: FailureGroup) -> tuple[object, ...]:
    rows = ", ".join(map(str, group.rows)) + (", …" if group.count > len(group.rows) else "")
    return group.evaluator, group.count, group.code, group.line, rows, group.message


def comparison_table(one: Comparison) -> Text:
    """Return the comparison of an evaluator in two jobs."""
    made = Text(plain(f"{one.before} -> {one.after}: {one.improved} rows better, {one.regressed} worse\n"))
    header = ("METRIC", "N", "BEFORE", "AFTER", "DIFFERENCE", "95 % INTERVAL", "")
    made.append(table(header, [_difference(metric) for metric in one.metrics]))
    for name, changes in (("worse", one.regressions), ("better", one.improvements)):
        for change in changes[:_CHANGES_SHOWN]:
            made.append(plain(f"\n{name}: row {change.row}, {_score(change.before)} -> {_score(change.after)}"))
    return made


def _difference(metric: Difference) -> tuple[object, ...]:
    interval = None if metric.interval is None else f"{metric.interval[0]:.4g} to {metric.interval[1]:.4g}"
    mark = "significant" if metric.significant else ""
    return metric.metric, metric.n, metric.before, metric.after, metric.difference, interval, mark


def _score(value: float | None) -> str:
    return "no score" if value is None else f"{value:.4g}"

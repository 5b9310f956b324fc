"""The table of scores over time shows the mean of the last job and says if it is doubtful; its bars do not mix rows."""

import io
from datetime import UTC, datetime

from rich.console import Console

from evaluator_host.platform.terminal.job_tables import history_table
from evaluator_host.types.jobs import JobScore, ScoredJob, ScoreHistory, ScoreLine

AT = datetime(2026, 1, 1, tzinfo=UTC)


def score(mean: float | None, doubt: str | None = None, *, previous: int | None = None) -> JobScore:
    """Return a score. If `previous` is given, its mean is over the same rows as that of this job."""
    job, change = (None, None) if previous is None else (f"job_{previous}", 0.1)
    return JobScore("exact@1", 4, 4, 0, 0, mean, None, job, change, doubt=doubt, mean_rows=4)


def chart(*scores: JobScore | None) -> str:
    jobs = tuple(ScoredJob(f"job_{at}", "title", AT) for at in range(len(scores)))
    text = io.StringIO()
    Console(file=text, width=200).print(history_table(ScoreHistory("qa", jobs, (ScoreLine("exact", scores),))))
    return text.getvalue().splitlines()[1].split()[2]


def test_the_mean_is_that_of_the_last_job() -> None:
    jobs = tuple(ScoredJob(f"job_{at}", "title", AT) for at in range(3))
    same = score(0.25), score(0.5, previous=0)
    doubtful = ScoreLine("doubtful", (*same, score(1.0, "all scores are doubtful")))
    history = ScoreHistory("qa", jobs, (doubtful, ScoreLine("good", (*same, score(0.75, previous=1)))))
    text = io.StringIO()
    Console(file=text, width=200).print(history_table(history))
    first, second = text.getvalue().splitlines()[1:3]
    assert first.split() == ["doubtful", "3", "▁█·", "0.25", "1", "(doubtful)", "-"]
    assert second.split() == ["good", "3", "▁▅█", "0.25", "0.75", "+0.1"]


def test_bars_of_jobs_over_other_rows_have_another_scale() -> None:
    rows_added = score(0.3), score(0.4, previous=2)
    assert chart(score(0.9), score(0.95, previous=0), *rows_added) == "▁█|▁█"
    assert chart(score(0.9), score(0.95, previous=0), None, score(0.3)) == "▁█·|▄"


def test_a_doubtful_job_between_two_others_does_not_part_them() -> None:
    assert chart(score(0.25), score(1.0, "all scores are doubtful"), score(0.75, previous=0)) == "▁·█"


def test_bars_of_huge_means_are_drawn() -> None:
    assert chart(score(-1e308), score(1e308, previous=0)) == "▄▄"

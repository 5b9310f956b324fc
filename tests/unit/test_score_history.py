"""The table of scores over time shows the mean of the last job, and says if it is doubtful."""

import io
from datetime import UTC, datetime

from rich.console import Console

from evaluator_host.platform.terminal.job_tables import history_table
from evaluator_host.types.jobs import JobScore, ScoredJob, ScoreHistory, ScoreLine

AT = datetime(2026, 1, 1, tzinfo=UTC)


def score(mean: float | None, doubt: str | None = None) -> JobScore:
    return JobScore("exact@1", 4, 4, 0, 0, mean, None, None, None, doubt=doubt, mean_rows=4)


def test_the_mean_is_that_of_the_last_job() -> None:
    jobs = tuple(ScoredJob(f"job_{at}", "title", AT) for at in range(3))
    lines = {"good": [0.25, 0.5, 0.75], "doubtful": [0.25, 0.5]}
    doubtful = (*map(score, lines["doubtful"]), score(1.0, "all scores are doubtful"))
    history = ScoreHistory(
        "qa", jobs, (ScoreLine("doubtful", doubtful), ScoreLine("good", (*map(score, lines["good"]),)))
    )
    text = io.StringIO()
    Console(file=text, width=200).print(history_table(history))
    first, second = text.getvalue().splitlines()[1:3]
    assert first.split() == ["doubtful", "3", "▁█·", "0.25", "1", "(doubtful)", "-"]
    assert second.split() == ["good", "3", "▁▅█", "0.25", "0.75", "-"]

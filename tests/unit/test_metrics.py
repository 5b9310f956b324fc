"""The host combines the metrics of all its processes into one answer."""

from evaluator_host.engine.service.metrics import Metrics, summed


def test_counts_stay_when_a_process_ends_and_gauges_go_with_it() -> None:
    made = []
    for value in (1, 2, 4):
        metrics = Metrics()
        metrics.watch("queue", "Calls.", lambda value=value: value)  # type: ignore[misc]
        for _ in range(10 * value):
            metrics._rows.count("python", "scored", "")
        metrics._seconds.observe("python", value)
        made.append(metrics.text())
    ended = summed((), ended=(made[2], b""))
    lines = summed(made[:2], ended=(ended,)).decode().splitlines()
    assert 'evaluator_host_rows_total{code="",language="python",status="scored"} 70.0' in lines
    assert 'evaluator_host_row_seconds_count{language="python"} 3.0' in lines
    assert 'evaluator_host_row_seconds_bucket{language="python",le="2.5"} 2.0' in lines
    assert "evaluator_host_queue 3.0" in lines
    assert not any("_created" in line for line in lines)

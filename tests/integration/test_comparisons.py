"""Two jobs are compared: what differs, which rows got worse, and which means say nothing."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.jobs import Failures
from tests import forked
from tests.integration.everyday import EXACT, MAPPING, ROWS, command

pytestmark = pytest.mark.long("test_job_reading.py compares jobs too")


def test_failed_rows_count_in_a_comparison_as_they_do_in_both_jobs(client: Client, url: str) -> None:
    rows = [{"gold": "a", "new": "a", "old": ""}, {"gold": "b", "new": "", "old": "b"}, {"gold": "c"}]
    rows += [{"gold": "d", "new": "d", "old": "d"}, {"gold": "e", "new": "e", "old": ""}, {"gold": "f", "old": "x"}]
    code = EXACT.code.replace("return", "0 if outputs else 1 / 0; return")
    client.datasets.upload("zeros", rows)
    client.evaluators.create("zeros-exact", Evaluator(code, threshold=0.5))

    def score(column: str, failures: Failures) -> str:
        made = client.jobs.create(["zeros-exact"], "zeros", mapping={"outputs": column}, failures=failures)
        return client.jobs.wait(made.id).id

    before, after = (score(column, Failures.ZERO) for column in ("old", "new"))
    (found,) = client.jobs.compare(before, after)
    was, now = (client.jobs.get(one).scores[0] for one in (before, after))
    (metric,) = (one for one in found.metrics if one.metric == "score")
    assert (metric.n, metric.before, metric.after) == (6, pytest.approx(was.mean), pytest.approx(now.mean))
    assert (metric.difference, metric.better, metric.worse) == (pytest.approx(now.change), 2, 1)
    assert (found.improved, found.gained, found.regressed, found.lost, found.unscored) == (2, 2, 1, 1, 0)
    assert (found.judged, found.pass_rate_before, found.pass_rate_after) == (
        6,
        pytest.approx(was.pass_rate),
        pytest.approx(now.pass_rate),
    )
    assert (found.doubt, client.jobs.pairs(before, after).n) == (None, 6)
    assert [one.row for one in client.jobs.changes(before, after)] == [0, 1, 4]
    plain = score("new", Failures.EXCLUDE)
    (mixed,) = client.jobs.compare(before, plain)
    assert mixed.doubt is not None
    assert mixed.doubt.startswith(
        "only the earlier job counts failed rows as 0. Therefore 5 rows that failed are left out"
    )
    shown = command(url, "jobs", "compare", before, plain)
    assert "nothing differs" not in shown
    assert "failed rows: count as 0 -> left out of the mean" in shown
    assert "doubtful: only the earlier job counts failed rows as 0" in shown
    assert [one.change for one in client.jobs.get(plain).scores] == [None]


def test_a_pass_rate_comes_with_the_number_of_rows_behind_it(client: Client, url: str, tmp_path: Path) -> None:
    rows = [{"n": n, "outputs": ""} for n in range(5)]
    code = "def evaluate(inputs, outputs, trace):\n    return {'score': 0.2, **({'passed': True} if inputs['n'] < 2 else {})}\n"
    client.datasets.upload("judged", rows)
    client.evaluators.create("judged-some", Evaluator(code))
    client.evaluators.create("judged-few", Evaluator(code.replace("return", "1 / max(0, 3 - inputs['n']); return")))
    evaluators = ["judged-some", "judged-few"]
    job = client.jobs.wait(client.jobs.create(evaluators, "judged", failures=Failures.ZERO).id)
    assert [(one.pass_rate, one.judged) for one in job.scores] == [(1.0, 2), (0.5, 4)]
    assert [(one.pass_rate, one.judged) for one in client.jobs.results(job.id).evaluators] == [(1.0, 2), (0.5, 4)]
    groups = [group for one in client.jobs.groups(job.id, "n") for group in one.groups]
    assert [(one.pass_rate, one.judged) for one in groups] == [
        *[(1.0, 1), (1.0, 1), (None, 0), (None, 0), (None, 0)],
        *[(1.0, 1), (1.0, 1), (None, 0), (0.0, 1), (0.0, 1)],
    ]
    for action in ("show", "results"):
        shown = command(url, "jobs", action, job.id)
        assert ("100.0% of 2 rows passed" in shown, "50.0% of 4 rows passed" in shown) == (True, True)
    assert "100.0% of 2 rows" in command(url, "jobs", "list", "--search", "judged")
    batch = client.evaluate_batch(Evaluator(code), [Row({"n": n}, "") for n in range(5)])
    assert (batch.summary.pass_rate, batch.summary.judged) == (1.0, 2)


def test_failed_rows_count_as_zero_only_beside_scores_and_verdicts(client: Client, url: str) -> None:
    client.datasets.upload("named", [{"topic": topic, "text": text} for topic in "ab" for text in ("", "x", "y")])
    client.evaluators.create(
        "names", Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs[0] and 'good'\n")
    )
    before, after = (
        client.jobs.wait(client.jobs.create(["names"], "named", mapping={"outputs": "text"}, failures=Failures.ZERO).id)
        for _ in range(2)
    )
    (score,) = after.scores
    assert (score.scored, score.failed, score.mean, score.mean_rows, score.pass_rate) == (4, 2, None, 0, None)
    (statistics,) = client.jobs.results(after.id).evaluators
    assert (statistics.metrics, statistics.pass_rate) == ((), None)
    (groups,) = client.jobs.groups(after.id, "topic")
    assert [(one.mean, one.std_error, one.mean_rows) for one in groups.groups] == [(None, None, 0)] * 2
    (compared,) = client.jobs.compare(before.id, after.id)
    assert (compared.metrics, compared.judged, client.jobs.pairs(before.id, after.id).n) == ((), 0, 0)
    assert "mean" not in command(url, "jobs", "show", after.id)


def test_a_comparison_names_rows_that_passed_only_before(client: Client, url: str) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return inputs['score'] * outputs"
    client.datasets.upload("verdicts", [{"score": score, "output": 1} for score in (0.7, 0.9, 0.4, 0.6)])
    client.evaluators.create("stricter", Evaluator(code, threshold=0.5))
    client.evaluators.update("stricter", Evaluator(code, threshold=0.8))
    jobs = [client.jobs.wait(client.jobs.create([name], "verdicts").id).id for name in ("stricter@1", "stricter@2")]
    (found,) = client.jobs.compare(*jobs)
    assert (found.regressed, found.judged) == (0, 4)
    assert (found.passes_lost, found.passes_lost_rows, found.passes_gained) == (2, (0, 3), 0)
    (back,) = client.jobs.compare(*reversed(jobs))
    assert (back.passes_lost, back.passes_lost_rows, back.passes_gained) == (0, (), 2)
    shown = command(url, "jobs", "compare", *jobs)
    assert (
        "2 rows passed only in the earlier job\npassed before but not now, although the score did not fall: rows 0, 3\n"
        in shown
    )


def test_jobs_are_compared_for_each_value_of_a_column(client: Client, url: str) -> None:
    rows = [
        {"n": n, "topic": ("refunds", "invoices", None)[n % 3], "gold": "a", "old": "a" if n % 2 else "b", "new": "a"}
        for n in range(60)
    ]
    rows = [{**row, "new": row["old"]} if row["topic"] == "invoices" else row for row in rows]
    rows[59]["new"] = None
    client.datasets.upload("by-topic", rows)
    client.evaluators.create("topic-exact", Evaluator(EXACT.code.replace("return", "outputs.strip(); return")))
    before, after = (
        client.jobs.wait(client.jobs.create(["topic-exact"], "by-topic", mapping={"outputs": column}).id).id
        for column in ("old", "new")
    )
    (whole,) = client.jobs.compare(before, after)
    (found,) = client.jobs.compare_groups(before, after, "topic")
    assert [(one.value, one.rows, one.difference.n) for one in found.groups] == [
        ("invoices", 20, 20),
        ("refunds", 20, 20),
        (None, 20, 19),
    ]
    assert (found.before, found.after, found.others, found.note, found.doubt) == (
        whole.before, whole.after, None, None, None,
    )  # fmt: skip
    invoices, refunds, none = (one.difference for one in found.groups)
    assert (invoices.difference, invoices.significant, refunds.significant) == (0.0, False, True)
    assert (refunds.before, refunds.after, refunds.difference) == (0.5, 1.0, 0.5)
    assert refunds.interval is not None
    assert 0 < refunds.interval[0] < 0.5 < refunds.interval[1] < 1
    (score,) = (one for one in whole.metrics if one.metric == "score")
    weighted = sum(one.n * (one.difference or 0.0) for one in (invoices, refunds, none))
    assert (score.n, score.difference) == (59, pytest.approx(weighted / 59))
    shown = command(url, "jobs", "compare", before, after, "--by", "topic")
    assert "TOPIC" in shown
    assert "(no value)" in shown
    assert "significant" in shown.splitlines()[3]
    (numbers,) = client.jobs.compare_groups(before, after, "n")
    assert (len(numbers.groups), numbers.groups[0].difference.note) == (50, "too few rows")
    assert numbers.others is not None
    assert (numbers.others.rows, numbers.others.difference.n) == (10, 9)
    with pytest.raises(InvalidRequest, match="no row has a value in the column topics; did you mean topic"):
        client.jobs.compare_groups(before, after, "topics")
    with pytest.raises(AssertionError, match="leave out --diff and --out"):
        command(url, "jobs", "compare", before, after, "--by", "topic", "--diff")


def test_many_values_of_a_column_come_with_a_note_on_chance(client: Client) -> None:
    client.datasets.upload("many-topics", [{"topic": n % 6, "outputs": n} for n in range(60)])
    client.evaluators.create("even", Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs % 2 == 0\n"))
    jobs = [client.jobs.wait(client.jobs.create(["even"], "many-topics").id).id for _ in range(2)]
    (found,) = client.jobs.compare_groups(*jobs, "topic")
    assert [one.value for one in found.groups] == [0, 1, 2, 3, 4, 5]
    assert found.note == "6 values have an interval; even if nothing had changed, about 1 in 20 would seem significant"


def test_a_row_that_failed_is_told_where_jobs_are_compared(client: Client, url: str, tmp_path: Path) -> None:
    rows = [{"gold": "a", "new": "a", "old": "a"}, {"gold": "b", "new": "c", "old": "b"}, {"gold": "d", "old": "d"}]
    rows = [{**row, **named} for row, named in zip(rows, ({}, {"id": "=b"}, {"id": "d7"}), strict=True)]
    client.datasets.upload("lost", rows)
    client.evaluators.create(
        "lost-exact", Evaluator(EXACT.code.replace("return", "outputs.strip(); return"), threshold=0.5)
    )
    before, after = (
        client.jobs.wait(client.jobs.create(["lost-exact"], "lost", mapping={"outputs": column}).id).id
        for column in ("old", "new")
    )
    (compared,) = client.jobs.compare(before, after)
    assert (compared.regressed, compared.lost, compared.metrics[0].worse) == (2, 1, 1)
    assert (compared.judged, compared.pass_rate_before, compared.pass_rate_after) == (2, 1.0, 0.5)
    assert (compared.passes_lost, compared.passes_lost_rows) == (1, ()), (
        "this list must leave out a row whose score fell too, because the row is in the list of worse rows"
    )
    worse = tmp_path / "worse.csv"
    shown = command(url, "jobs", "compare", before, after, "--out", str(worse))
    assert "worse: row 2 (id d7), 1 -> no score\nworse: row 1 (id =b), 1 -> 0" in shown
    lines = list(csv.reader(worse.read_text().splitlines()))
    header = "row,id,evaluator,before,after,change,passed_before,passed_after,why,outputs_before,outputs,inputs.gold,inputs.old,inputs.id"
    assert lines[0] == header.split(",")
    assert lines[2][:9] == ["1", "'=b", "lost-exact@1", "1.0", "0.0", "-1.0", "true", "false", ""]
    assert lines[2][9:] == ["b", "c", "b", "b", "'=b"]
    assert lines[1][:8] == ["2", "d7", "lost-exact@1", "1.0", "", "", "true", ""]
    assert lines[1][8].startswith("binding_error: the mapping")
    command(url, "jobs", "compare", before, after, "--out", str(tmp_path / "worse.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "worse.jsonl").read_text().splitlines()]
    assert [(row["row"], row["id"], row["change"]) for row in rows] == [(2, "d7", None), (1, "=b", -1)]
    assert (rows[1]["outputs_before"], rows[1]["outputs"], rows[1]["inputs"]["gold"]) == ("b", "c", "b")
    command(url, "jobs", "compare", before, after, "--out", str(tmp_path / "worse.xlsx"), code=2)
    assert "0 rows better, 2 worse (1 of which fail now)" in shown
    assert "passed: 100.0% -> 50.0% (-50.0 points), over 2 rows with a verdict in both" in shown
    assert "the means of lost-exact cannot be compared" in command(url, "datasets", "scores", "lost")
    command(url, "jobs", "watch", before)
    command(url, "jobs", "watch", after, code=1)
    once = ("jobs", "create", "-e", "lost-exact", "-d", "lost", "--map", "outputs=new", "--wait")
    command(url, *once, code=1)
    command(url, *once, "--max-failures", "1")
    with pytest.raises(NotFound, match="did you mean lost"):
        client.datasets.scores("lsot")


def test_no_change_is_shown_between_means_of_different_rows(client: Client) -> None:
    client.datasets.upload("uneven", ROWS[:2])
    for code in ("return 0.5", "return 1 if outputs == inputs['gold'] else 1 / 0"):
        body = f"def evaluate(inputs, outputs, trace):\n    {code}\n"
        client.evaluators.create("uneven", Evaluator(body)) if code == "return 0.5" else client.evaluators.update(
            "uneven", Evaluator(body)
        )
        score = client.jobs.wait(client.jobs.create(["uneven"], "uneven", mapping=MAPPING).id).scores[0]
    assert (score.mean, score.scored, score.failed, score.change) == (1, 1, 1, None)
    assert score.previous is not None


def test_lists_mark_a_mean_that_says_nothing_and_count_no_change_from_it(client: Client, url: str) -> None:
    client.datasets.upload("silent", ROWS[:2])
    client.evaluators.create(
        "silent", Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs == 'Paris'\n")
    )
    for mapping, mean, doubtful in (({"outputs": "none"}, 0, True), (MAPPING, 0.5, False)):
        score = client.jobs.wait(client.jobs.create(["silent"], "silent", mapping=mapping).id).scores[0]
        assert (score.mean, score.doubt is not None, score.change) == (mean, doubtful, None)
        assert score.previous is None, "the earlier job is doubtful"
        listed = command(url, "evaluators", "list").splitlines()
        [last] = [line for line in listed if line.startswith("silent ")]
        assert ("(doubtful)" in last) is doubtful
    [mapped, unmapped] = command(url, "jobs", "list", "--search", "silent").splitlines()[1:]
    assert ("doubtful" in mapped, "completed, doubtful" in unmapped) == (False, True)
    [mapped, unmapped] = command(url, "evaluators", "scores", "silent").splitlines()[1:]
    assert ("doubtful" in mapped, "0 (doubtful)" in unmapped) == (False, True)


def test_counts_over_several_evaluators_are_of_results_not_of_rows(client: Client, url: str) -> None:
    job = client.jobs.wait(client.jobs.create([EXACT, EXACT], ROWS, mapping=MAPPING).id)

    def told(*words: str) -> str:
        done = forked.run(["jobs", *words, "--url", url])
        return " ".join(f"{done.stdout} {done.stderr}".split())

    assert f"2 results did not pass: evaluator-host jobs rows {job.id} --not-passed --url {url}" in told(
        "failures", job.id
    )
    assert "1 row did not pass: " in told("failures", job.id, "--evaluator", job.evaluators[0])
    assert "2 of 6 results; --limit shows more" in told("rows", job.id, "--limit", "2")
    assert "1 of 3 rows that match; " in told("rows", job.id, "--limit", "1", "--evaluator", job.evaluators[0])
    shown = told("show", job.id)
    assert ("done 6 of 6 results" in shown, "failed 2 results" in shown) == (True, True)
    assert "every failed result: " in shown
    ended = client.jobs.wait(client.jobs.create([EXACT, EXACT], ROWS, mapping=MAPPING, max_failures=1).id)
    assert ended.error is not None
    assert "(2 results have failed, but the job allows at most 1)" in ended.error.message


def test_a_comparison_shows_how_outputs_and_reasons_differ(client: Client, url: str) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return {'score': SCORE, 'reason': 'WHY'}\n"
    jobs = [
        client.jobs.wait(client.jobs.create([Evaluator(made)], [{"outputs": "a text"}]).id).id
        for made in (
            code.replace("SCORE", "1").replace("WHY", "right"),
            code.replace("SCORE", "0").replace("WHY", "too short"),
        )
    ]
    shown = command(url, "jobs", "compare", *jobs, "--diff")
    differ = client.jobs.row_diff(*jobs, 0)
    assert (differ.row, differ.outputs) == (0, "")
    with pytest.raises(NotFound):
        client.jobs.row_diff(*jobs, 7)
    for line in ("row 0", "--- before", "-score: 1", "+score: 0", "-reason: right", "+reason: too short"):
        assert line in shown


def test_a_comparison_names_what_differs_and_refuses_evaluators_of_different_names(client: Client, url: str) -> None:
    rows = [{"question": f"q{n}", "gold": "a", "answer": "a", "other": "b"} for n in range(12)]
    client.datasets.upload("differing", rows)
    client.evaluators.create("one-text", EXACT)
    client.evaluators.create("other-text", EXACT)

    def job(evaluator: str, outputs: str, **config: Any) -> str:
        mapping = {"outputs": outputs, "correct_answer": "gold"}
        made = client.jobs.create([evaluator], "differing", mapping=mapping, **config)
        return client.jobs.wait(made.id).id

    first, same, mapped, short = (
        job("one-text", "answer"),
        job("one-text", "answer"),
        job("one-text", "other"),
        job("one-text", "answer", limit_samples=5),
    )
    assert client.jobs.compare(first, same)[0].changed == ()
    (changed,) = client.jobs.compare(first, mapped)[0].changed
    assert (changed.what, changed.before, changed.after) == ("mapping", "outputs=answer", "outputs=other")
    assert client.jobs.compare(first, mapped)[0].metrics[-1].interval == (-1.0, -1.0)
    shown = command(url, "jobs", "compare", first, short)
    assert "rows: none -> limit=5" in shown
    assert "too few rows" in shown
    code = Evaluator(EXACT.code + "# again\n", Language.PYTHON, limits=Limits(timeout_s=5), threshold=0.5)
    client.evaluators.update("one-text", code)
    changes = {
        one.what: (one.before, one.after) for one in client.jobs.compare(first, job("one-text", "answer"))[0].changed
    }
    assert changes == {"code": ("one-text@1", "one-text@2"), "limits": ("timeout_s=10.0", "timeout_s=5.0")}
    other = job("other-text", "answer")
    with pytest.raises(InvalidRequest, match=r"no evaluator in common: one-text@1; other-text@1\n") as raised:
        client.jobs.compare(first, other)
    assert [one.field for one in raised.value.problems] == ["by_place"]
    assert client.jobs.compare(first, other, by_place=True)[0].after == "other-text@1"
    assert client.jobs.pairs(first, other, by_place=True).n == 12
    assert list(client.jobs.changes(first, other, by_place=True)) == []
    assert client.jobs.row_diff(first, other, 0, by_place=True).after == "other-text@1"
    refused = forked.run(["jobs", "compare", first, other, "--url", url])
    assert (refused.returncode, "--by-place" in refused.stderr) == (2, True)
    assert "one-text@1 -> other-text@1" in command(url, "jobs", "compare", first, other, "--by-place")

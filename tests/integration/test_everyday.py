"""Everyday work with a running host: job names and statistics, schedules, edits to data sets, and labels."""

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from evaluator_host import __version__
from evaluator_host.client import Client
from evaluator_host.types.errors import InUse, InvalidRequest, NotFound, PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.jobs import Failures
from tests import forked
from tests.server import PREWARMED, Server, new_home
from tests.unit.test_workbooks import packed, parts

EXACT = Evaluator(
    "def evaluate(inputs, outputs, trace):\n    return float(outputs['x'] if outputs == '!' else outputs == inputs['gold'])\n",
    threshold=0.5,
)
ROWS = [
    {"question": "France?", "gold": "Paris", "answer": "Paris", "n": 1},
    {"question": "Italy?", "gold": "Rome", "answer": "Milan", "n": 2.5},
    {"question": "Peru?", "gold": "Lima", "answer": "!", "n": None},
]
MAPPING = {"outputs": "answer", "correct_answer": "gold"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=PREWARMED) as server:
        yield server.url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    with Client(url) as opened:
        yield opened


def command(url: str, *arguments: str, code: int = 0) -> str:
    done = forked.run([*arguments, "--url", url])
    assert done.returncode == code, done.stdout + done.stderr
    return str(done.stdout)


def test_a_workbook_becomes_jobs_with_names_and_statistics(client: Client, url: str, tmp_path: Path) -> None:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in (list(ROWS[0]), *(list(one.values()) for one in ROWS)):
        book.active.append(row)
    book.save(file)
    (tmp_path / "qa.xlsx").write_bytes(file.getvalue())
    assert command(url, "datasets", "upload", str(tmp_path / "qa.xlsx")).startswith(
        "qa: 3 rows, columns question, gold"
    )
    client.evaluators.create("everyday-exact", EXACT)
    jobs = [
        client.jobs.wait(
            client.jobs.create(["everyday-exact"], "qa", mapping=MAPPING, name=f"run {failures}", failures=failures).id
        )
        for failures in (Failures.EXCLUDE, Failures.ZERO)
    ]
    first, second = (job.scores[0] for job in jobs)
    assert (first.mean, first.pass_rate, first.scored, first.failed, first.rows, first.change) == (
        0.5,
        0.5,
        2,
        1,
        3,
        None,
    )
    assert (second.mean, second.pass_rate) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    # the change is None, because the two jobs count failed rows differently
    assert (second.previous, second.change) == (jobs[0].id, None)
    told = "cannot be compared, because its last two jobs scored different rows or count failed rows differently"
    assert told in command(url, "datasets", "scores", "qa")
    shown = [command(url, "jobs", "show", job.id) for job in jobs]
    assert ("mean 0.5 over 2 of 3 rows, " in shown[0], "over 3 of 3 rows (1 failed, counted as 0), " in shown[1]) == (
        True,
    ) * 2
    statistics = client.jobs.results(jobs[1].id).evaluators[0]
    assert (statistics.metrics[0].mean, statistics.pass_rate) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert [job.id for job in client.jobs.all(search="RUN ZERO")] == [jobs[1].id]
    assert client.jobs.rename(jobs[0].id, "baseline").name == "baseline"
    listed = command(url, "jobs", "list", "--search", "baseline").splitlines()[1]
    assert ("baseline" in listed, "2/3" in listed, " qa " in listed, "50.0%" in listed) == (True,) * 4
    trend = client.evaluators.scores("everyday-exact", dataset="qa")
    assert [(one.job, one.version) for one in trend] == [(jobs[1].id, 1), (jobs[0].id, 1)]
    assert "run zero" in command(url, "evaluators", "scores", "everyday-exact")


def test_evaluators_over_the_jobs_of_a_data_set(client: Client, url: str) -> None:
    client.datasets.upload("course", [{"gold": "a", "new": "a", "old": "b"}, {"gold": "b", "new": "b", "old": "b"}])
    client.evaluators.create("course-exact", EXACT)
    client.evaluators.create("course-late", EXACT)
    runs = (("old", ["course-exact"]), ("new", ["course-exact", "course-late"]), ("old", ["course-exact", EXACT]))
    jobs = []
    for column, evaluators in runs:
        job = client.jobs.create(evaluators, "course", mapping={"outputs": column})
        jobs.append(client.jobs.wait(job.id).id)
    history = client.datasets.scores("course")
    assert [job.id for job in history.jobs] == jobs
    exact, late = history.evaluators
    assert (exact.evaluator, late.evaluator) == ("course-exact", "course-late")
    assert [score and (score.mean, score.change) for score in exact.scores] == [(0.5, None), (1, 0.5), (0.5, -0.5)]
    assert [score and score.mean for score in late.scores] == [None, 1, None]
    assert [job.id for job in client.datasets.scores("course", limit=2).jobs] == jobs[1:]
    shown = command(url, "datasets", "scores", "course")
    assert f"course-exact fell by 0.5: evaluator-host jobs compare {jobs[1]} {jobs[2]}" in shown
    assert "▁█▁" in shown
    assert "course-late fell" not in shown


def test_a_job_refuses_an_evaluator_that_it_has_already(client: Client) -> None:
    client.evaluators.create("once", EXACT)
    with pytest.raises(InvalidRequest) as refused:
        client.jobs.create(["once", EXACT, "once@1"], ROWS, mapping=MAPPING)
    [problem] = refused.value.problems
    assert (problem.field, problem.message) == ("evaluators.2", "the job already has an evaluator once@1")


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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
    header = "row,id,evaluator,before,after,change,passed_before,passed_after,why,outputs_before,outputs,inputs"
    assert lines[0] == header.split(",")
    assert lines[2][:9] == ["1", "'=b", "lost-exact@1", "1.0", "0.0", "-1.0", "true", "false", ""]
    assert lines[2][9:] == ["b", "c", '{"gold":"b","old":"b","id":"=b"}']
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
    with pytest.raises(NotFound, match="did you mean course"):
        client.datasets.scores("coures")


@pytest.mark.long
def test_no_file_of_rows_is_a_fault_of_the_host(client: Client, url: str, tmp_path: Path) -> None:
    broken, far = tmp_path / "my data (v1).xlsx", tmp_path / "far.parquet"
    broken.write_bytes(packed(parts('<c r="A2"><v>abc</v></c>', styles="<fills><fill/></fills>")))
    with pytest.raises(InvalidRequest, match="such as my-data-v1"):
        client.datasets.upload(broken.stem, broken)
    with pytest.raises(InvalidRequest, match="line 2: cell A2 should contain a number, but contains 'abc'"):
        client.datasets.upload("broken", broken)
    parquet.write_table(pa.table({"at": pa.array([1_704_067_200_123_456_789, 2**62], pa.timestamp("ns"))}), far)
    half = tmp_path / "half.parquet"
    half.write_bytes(far.read_bytes()[:-9])
    with pytest.raises(InvalidRequest, match="not Parquet, or is damaged"):
        client.datasets.upload("half", half)
    assert client.datasets.upload("far", far).rows == 2
    assert next(iter(client.datasets.rows("far"))) == {"at": "2024-01-01T00:00:00.123456789"}
    uncalculated = tmp_path / "formula.xlsx"
    uncalculated.write_bytes(packed(parts('<c r="A2"><v>1</v></c><c r="B2"><f>A2</f></c>')))
    [note] = client.datasets.upload("formula", uncalculated).notes
    assert note.startswith("cell B2 has a formula whose value is not in the file")
    assert note in command(url, "datasets", "show", "formula")


@pytest.mark.long
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


@pytest.mark.long
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


def test_rows_are_found_edited_and_kept_in_versions(client: Client, url: str) -> None:
    client.datasets.upload("capitals", ROWS)
    assert [one.index for one in client.datasets.search("capitals", "ROME").rows] == [1]
    assert [one.index for one in client.datasets.search("capitals", where=["n>=1"], sort="-n").rows] == [1, 0]
    assert [one.index for one in client.datasets.search("capitals", where=["gold!=Rome", "answer~a"]).rows] == [0]
    assert client.datasets.search("capitals", limit=1).total == 3
    with pytest.raises(InvalidRequest):
        client.datasets.search("capitals", where=["gold"])
    columns = {one.name: one for one in client.datasets.columns("capitals")}
    assert (columns["n"].present, columns["n"].missing, columns["n"].mean) == (2, 1, 1.75)
    assert (columns["gold"].distinct, columns["gold"].max_length, columns["gold"].min) == (3, 5, None)
    edited = client.datasets.edit(
        "capitals", set={1: {**ROWS[1], "answer": "Rome"}}, remove=[2], add=[{"question": "?"}]
    )
    assert (edited.rows, edited.version) == (3, 2)
    assert [row["question"] for row in client.datasets.rows("capitals")] == ["France?", "Italy?", "?"]
    assert [row["question"] for row in client.datasets.rows("capitals@1")] == ["France?", "Italy?", "Peru?"]
    assert [one.version for one in client.datasets.versions("capitals")] == [2, 1]
    changes = client.datasets.changes("capitals@1", "capitals")
    assert (changes.changed, changes.added, changes.removed) == (2, 0, 0)
    assert [(one.kind, one.index, (one.after or {})["question"]) for one in changes.rows] == [
        ("changed", 1, "Italy?"), ("changed", 2, "?"),
    ]  # fmt: skip
    assert '- 2  {"question":"Peru?"' in command(url, "datasets", "compare", "capitals@1", "capitals")
    with pytest.raises(InUse, match="version 1 is no longer the newest"):
        client.datasets.edit("capitals", remove=[0], version=1)
    with pytest.raises(InvalidRequest, match="has no row 7"):
        client.datasets.edit("capitals", remove=[7])
    with pytest.raises(NotFound):
        client.datasets.edit("nowhere", add=[{"a": 1}])
    job = client.jobs.wait(client.jobs.create([EXACT], "capitals@1", mapping=MAPPING).id)
    made = client.datasets.edit("hard", add_from={"job": job.id, "rows": [2]}, create=True)
    assert list(client.datasets.rows("hard")) == [ROWS[2]]
    assert (made.rows, made.version) == (1, 1)
    assert "hard@2: 2 rows" in command(url, "datasets", "edit", "hard", "--add", '{"question": "!"}')
    assert "Peru?" in command(url, "datasets", "search", "hard", "--where", "gold=Lima")
    assert command(url, "datasets", "columns", "hard").startswith("COLUMN")


@pytest.mark.long
def test_a_schedule_by_command(client: Client, url: str) -> None:
    client.datasets.upload("weekly-rows", ROWS)
    client.evaluators.create("weekly-exact", EXACT)
    base = ("-e", "weekly-exact", "-d", "weekly-rows", "--map", "outputs=answer", "--map", "correct_answer=gold")
    cron = ("--name", "weekly", "--cron", "0 7 * * 1", "--timezone", "Europe/Berlin")
    at_once = forked.run(["jobs", "create", *base, *cron, "--url", url])
    assert at_once.returncode == 2
    assert "evaluator-host schedules create --name NAME" in " ".join(at_once.stderr.split())
    assert "0 7 * * 1 (Europe/Berlin)" in command(url, "schedules", "create", *base, *cron)
    job = client.jobs.wait(command(url, "schedules", "run", "weekly").strip())
    assert (job.schedule, job.scores[0].scored) == ("weekly", 2)
    alert = ("alerts", "create", "low", "--schedule", "weekly", "--below", "0.9", "--webhook")
    assert forked.run([*alert, "http://127.0.0.1:1/", "--url", url]).returncode == 2
    command(url, "schedules", "pause", "weekly")
    assert "paused" in command(url, "schedules", "list")
    command(url, "schedules", "remove", "weekly")


@pytest.mark.long
def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(client: Client, url: str, tmp_path: Path) -> None:
    client.datasets.upload("capitals", ROWS, replace=True)
    client.evaluators.create("same-text", EXACT)
    file = tmp_path / "my towns (v1).csv"
    file.write_text("question,answer\na,b\n")

    def told(*words: str) -> str:
        done = forked.run([*words, "--url", url])
        assert done.returncode == 2, done.stdout + done.stderr
        return str(done.stderr)

    assert "did you mean capitals?" in told("jobs", "create", "-e", "same-text", "-d", "capitls")
    assert "did you mean same-text?" in told("jobs", "create", "-e", "sametext", "-d", "capitals")
    assert "did you mean capitals?" in told("datasets", "delete", "Capitals")
    assert "there is no same-text@9; its newest version is same-text@1" in told("evaluators", "show", "same-text@9")
    assert "`evaluator-host datasets list` lists the names" in told("datasets", "show", "zzz")
    upload = told("jobs", "create", "-e", "same-text", "-d", str(file))
    assert "upload it first: evaluator-host datasets upload" in upload
    assert command(url, "datasets", "upload", str(file)).startswith("my-towns-v1: 1 row")
    assert "--model-url" in str(
        forked.run(["models", "add", "judge", "--model-url", "x", "--url", "https://api.openai.com/v1"]).stderr
    )


@pytest.mark.long
def test_labels_of_a_shard_are_of_its_rows_alone(client: Client) -> None:
    rows = [{**ROWS[0], "human": True} for _ in range(5)]
    job = client.jobs.wait(client.jobs.create([EXACT], rows, mapping=MAPPING, shard="1/2").id)
    (found,) = client.jobs.agreement(job.id, label="human")
    assert (found.rows, found.unlabelled) == (2, 0)
    assert client.labels.create("of-a-shard", job=job.id).rows == 2
    assert [one.index for one in client.labels.rows("of-a-shard").rows] == [1, 3]
    client.labels.delete("of-a-shard")


@pytest.mark.long
def test_agreement_names_the_labelled_rows_that_it_leaves_out(client: Client, url: str) -> None:
    labels = (True, True, True, None, "", "yes")  # the third row fails
    rows = [{**ROWS[at % 3], "human": label} for at, label in enumerate(labels)]
    fails = Evaluator("def evaluate(inputs, outputs, trace):\n    raise ValueError(outputs)\n")
    job = client.jobs.wait(client.jobs.create([EXACT, fails], rows, mapping=MAPPING).id)
    found, failed = client.jobs.agreement(job.id, label="human")
    assert (found.rows, found.accuracy, found.unlabelled, found.failed) == (2, 0.5, 2, 2)
    assert (failed.rows, failed.accuracy, failed.unlabelled, failed.failed) == (0, None, 2, 4)
    shown = command(url, "jobs", "agreement", job.id, "--label", "human")
    assert "left out: 2 rows without a label, 2 labelled rows that failed\n" in shown
    assert ": 0 rows, accuracy none, kappa none\nleft out: 2 rows without a label, 4 labelled rows that failed" in shown
    with pytest.raises(InvalidRequest, match=r"\(2 rows without a label, 4 labelled rows that failed\)"):
        client.jobs.agreement(job.id, label="human", evaluator=failed.evaluator)


@pytest.mark.long
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
    assert "1 of these rows; " in told("rows", job.id, "--limit", "1", "--evaluator", job.evaluators[0])
    shown = told("show", job.id)
    assert ("done 6 of 6 results" in shown, "failed 2 results" in shown) == (True, True)
    assert "every failed result: " in shown
    ended = client.jobs.wait(client.jobs.create([EXACT, EXACT], ROWS, mapping=MAPPING, max_failures=1).id)
    assert ended.error is not None
    assert "(2 results have failed, but the job allows at most 1)" in ended.error.message


@pytest.mark.long
def test_people_label_rows_of_a_job(client: Client, url: str) -> None:
    client.datasets.upload("to-label", ROWS)
    job, later = (client.jobs.wait(client.jobs.create([EXACT], "to-label", mapping=MAPPING).id) for _ in range(2))
    shown = command(
        url, "labels", "create", "review", "--job", job.id, "--rows", "scored", "--instructions", "Is it right?"
    )
    assert ("2: 0 labelled, 0 skipped, 2 waiting" in shown, "Is it right?" in shown) == (True, True)
    ann, bob = client.labels.next("review", by="ann"), client.labels.next("review", by="bob")
    assert ann is not None
    assert bob is not None
    assert (ann.index, ann.row["question"], ann.given["outputs"] if ann.given else None, ann.results) == (
        *(0, "France?", "Paris", ()),
    )
    assert bob.index == 1
    assert client.labels.next("review", by="carl") is None  # both rows are reserved for ann and bob
    again = client.labels.next("review", by="bob")
    assert again is not None
    assert again.index == 1
    with pytest.raises(InvalidRequest, match="true or false"):
        client.labels.set("review", 0, "good", by="ann")
    with pytest.raises(NotFound):
        client.labels.set("review", 2, True, by="ann")
    assert client.labels.set("review", 0, True, note="sure", by="ann").labelled == 1
    assert "1 labelled, 1 skipped, 0 waiting" in command(url, "labels", "skip", "review", "1", "--by", "bob")
    assert command(url, "labels", "next", "review", code=1) == ""
    assert "0 skipped, 1 waiting" in command(url, "labels", "clear", "review", "1")
    assert "2 labelled" in command(url, "labels", "set", "review", "1", "yes", "--by", "bob")
    queue = client.labels.get("review")
    assert [(one.name, one.labelled, one.skipped) for one in queue.people] == [("ann", 1, 0), ("bob", 1, 0)]
    assert [
        (one.index, one.label, one.by, one.note) for one in client.labels.rows("review", state="labelled").rows
    ] == [
        *((0, True, "ann", "sure"), (1, True, "bob", "")),
    ]
    assert len(client.labels.row("review", 0).results) == 1  # results are shown only once there is a label
    assert client.labels.rows("review", limit=1).next_after == 0
    for one in (job, later):  # the outputs come from the data set, so the labels apply to every job over it
        (found,) = client.jobs.agreement(one.id, queue="review")
        assert (found.label, found.rows, found.unlabelled, found.accuracy) == ("queue review", 2, 1, 0.5)
    assert client.jobs.agreement(later.id)[0].label == "label queues"
    assert "accuracy 0.500" in command(url, "jobs", "agreement", job.id, "--queue", "review")
    assert [one.name for one in client.labels.all(job=later.id)] == ["review"]
    client.jobs.delete(job.id, force=True)
    client.datasets.delete("to-label", force=True)
    client.jobs.delete(later.id)
    assert client.labels.row("review", 0).row["gold"] == "Paris"  # the queue keeps the rows that it was made with
    command(url, "labels", "delete", "review")
    with pytest.raises(NotFound):
        client.labels.get("review")


@pytest.mark.long
def test_labels_count_for_the_outputs_and_the_question_that_people_saw(client: Client, url: str) -> None:
    client.datasets.upload("two-answers", [{"a": "x", "b": "y", "gold": "x"} for _ in range(3)])
    first, same, other = (
        client.jobs.wait(client.jobs.create([EXACT], "two-answers", mapping={"outputs": column}).id).id
        for column in ("a", "a", "b")
    )
    client.labels.create("right", job=first, instructions="Is it right?")
    client.labels.set("right", 0, True)
    assert client.jobs.agreement(same)[0].accuracy == 1
    assert client.labels.all(job=other) == []
    with pytest.raises(InvalidRequest, match="no label queue has rows of this job with its outputs"):
        client.jobs.agreement(other)
    with pytest.raises(InvalidRequest, match="are for other rows or outputs than those of this job"):
        client.jobs.agreement(other, queue="right")
    client.labels.create("more", job=same, instructions="Is it right? ")
    client.labels.set("more", 1, True)
    assert client.jobs.agreement(first)[0].rows == 2  # both queues ask the same question
    client.labels.create("tone", job=same, instructions="Is it polite?")
    assert client.jobs.agreement(first)[0].rows == 2  # nobody has answered this question yet
    client.labels.set("tone", 0, False)
    with pytest.raises(InvalidRequest, match=r"different questions: tone \(passed: Is it polite\?\); \w+ \(passed: Is"):
        client.jobs.agreement(first)
    assert client.jobs.agreement(first, queue="tone")[0].accuracy == 0
    assert "--queue" in forked.run(["jobs", "agreement", first, "--url", url]).stderr
    for name in ("right", "more", "tone"):
        client.labels.delete(name)


@pytest.mark.long
def test_label_queues_with_choices_and_scores(client: Client, url: str) -> None:
    client.datasets.upload("graded", [{"n": n} for n in range(10)])
    queue = client.labels.create("grades", dataset="graded", kind="choice", choices=["good", "bad"], limit=5)
    assert [one.index for one in client.labels.rows("grades").rows] == [0, 2, 4, 6, 8]
    assert (queue.dataset, queue.job, queue.waiting) == ("graded", None, 5)
    command(url, "labels", "set", "grades", "2", "1")
    assert client.labels.row("grades", 2).label == "good"
    done = forked.run(["labels", "start", "grades", "--url", url], given="2\n\nnonsense\ngood\nq\n")
    assert done.returncode == 0, done.stderr
    assert "one of good, bad" in done.stderr
    assert [(one.label, one.state) for one in client.labels.rows("grades").rows] == [
        *(("bad", "labelled"), ("good", "labelled"), (None, "skipped"), ("good", "labelled"), (None, "waiting")),
    ]
    client.labels.create("scores", dataset="graded", kind="score", max=5, rows=[3, 1])
    assert client.labels.set("scores", 1, 4).labelled == 1
    for wrong in (6, True, "good"):
        with pytest.raises(InvalidRequest, match="a number from 0 to 5"):
            client.labels.set("scores", 3, wrong)
    for given in ({}, {"dataset": "graded", "kind": "choice"}, {"dataset": "graded", "rows": [10]}):
        with pytest.raises(InvalidRequest):
            client.labels.create("wrong", **given)
    assert "scores" in command(url, "labels", "list")


CASES = [
    {"case": "right", "inputs": {"gold": "Rome"}, "outputs": "Rome", "expect": {"score": 1, "tolerance": 0.05}},
    {"case": "wrong", "inputs": {"gold": "Rome"}, "outputs": "Milan", "expect": "not passed; <= 0.1"},
    {"case": "none", "inputs": {}, "outputs": "Milan", "expect": "fails KeyError"},
]


@pytest.mark.long
def test_cases_are_kept_with_a_version_and_run(client: Client, url: str, tmp_path: Path) -> None:
    made = client.evaluators.create("kept-cases", EXACT, cases=CASES)
    assert (made.version, list(made.cases), made.failing_cases) == (1, CASES, ())
    assert client.check("kept-cases").ok
    broken = Evaluator("def evaluate(inputs, outputs, trace):\n    return 0.5\n", threshold=0.5)
    with pytest.raises(InvalidRequest, match="3 of the evaluator's cases failed") as refused:
        client.evaluators.update("kept-cases", broken, require_cases=True)
    assert [one.field for one in refused.value.problems] == ["cases.right", "cases.wrong", "cases.none"]
    updated = client.evaluators.update("kept-cases", broken)  # an update keeps the cases, and reports which fail
    assert updated.version == 2
    assert [(one.case, one.problem) for one in updated.failing_cases or ()] == [
        ("right", "score 0.5, not 1 ± 0.05"), ("wrong", "score 0.5, not <= 0.1"), ("none", "score 0.5, not KeyError")
    ]  # fmt: skip
    report = client.check("kept-cases@2")
    assert (report.ok, len(report.failing_cases)) == (False, 3)
    assert client.check(broken, cases=[{"outputs": 1, "expect": "0.4..0.6"}]).ok
    # an update with other cases makes a new version
    assert client.evaluators.update("kept-cases", broken, cases=CASES[:1]).version == 3
    assert client.evaluators.get("kept-cases").failing_cases is None
    with pytest.raises(InvalidRequest, match="invalid") as refused:
        client.evaluators.update("kept-cases", broken, cases=[{"outputs": 1, "expect": "about half"}])
    assert "write 1, 1 ± 0.05" in str(refused.value.problems)
    (tmp_path / "exact.py").write_text(EXACT.code)
    book = "case,gold,outputs,expect\nright,Rome,Rome,1 ± 0.05\nwrong,Rome,Milan,>= 0.5\n"
    (tmp_path / "exact.cases.csv").write_text(book)
    file = str(tmp_path / "exact.py")
    shown = command(url, "check", file, code=1)
    assert "wrong: score 0, not >= 0.5" in shown
    assert "1 of 2 cases passed" in command(url, "test", file, code=1)
    command(url, "evaluators", "update", "kept-cases", file, "--require-cases", code=2)
    command(url, "evaluators", "update", "kept-cases", file)
    assert "right: 1 ± 0.05" in command(url, "evaluators", "show", "kept-cases")


@pytest.mark.long
def test_a_misspelt_npm_pin_is_named_by_the_builder(client: Client, url: str) -> None:
    for pin, words in (("lodahs@4.17.21", "Did you mean lodash?"), ("lodash@4.99.0", "The nearest: lodash@4.")):
        code = Evaluator(
            "export function evaluate(i, o, t) { return 1 }", language=Language.JAVASCRIPT, packages=(pin,)
        )
        with pytest.raises(PackagesFailed, match=r"has no version|no package") as refused:
            client.evaluate(code, outputs=1)
        assert words in refused.value.detail


@pytest.mark.long
def test_doctor_beside_a_running_host_finds_no_fault(url: str) -> None:
    found = forked.run(["doctor"], timeout=120, env={**os.environ, "EVALUATOR_HOST_PORT": url.rpartition(":")[2]})
    assert f"an Evaluator Host runs there ({__version__})" in found.stdout


@pytest.mark.long
def test_login_without_a_terminal_asks_for_nothing(url: str, tmp_path: Path) -> None:
    home = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    done = forked.run(["login", url], env=home)
    assert (done.returncode, f"answers ({__version__})" in done.stderr, "Key" in done.stdout + done.stderr) == (
        0,
        True,
        False,
    )
    assert forked.run(["schedules", "list"], env=home).returncode == 0
    assert "default" in forked.run(["usage", "--json", "--data-dir", str(tmp_path)], env=home).stdout
    refused = forked.run(["login", "http://127.0.0.1:9"], env={**home, "XDG_CONFIG_HOME": str(tmp_path / "none")})
    assert (refused.returncode, "give the address of a running host: `--url`" in refused.stderr) == (3, True)
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_a_saved_key_goes_to_its_own_host_alone(url: str, tmp_path: Path) -> None:
    """A saved key is sent only to its own host.

    Nobody has saved a key for the host at `localhost`: the client must say so, and must not send the key of another
    host.
    """
    home = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    data = new_home(tmp_path)
    keyed = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path / 'keyed.db'}"}
    made = forked.run(["keys", "create", "me", "--data-dir", str(data)], env={**home, **keyed})
    key = made.stdout.strip()
    with Server(log=tmp_path / "log", data_dir=data, environment=keyed) as server:
        assert forked.run(["login", url], env=home).returncode == 0
        assert forked.run(["login", server.url], env={**home, "EVALUATOR_HOST_KEY": key}).returncode == 0
        code = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
        (tmp_path / "one.py").write_text(code)
        score = ["run", str(tmp_path / "one.py"), "--outputs", "a", "--url"]
        assert [forked.run([*score, one], env=home).returncode for one in (server.url, url)] == [0, 0]
        assert forked.run(["evaluators", "list", "--url", server.url], env=home).returncode == 0
        other = server.url.replace("127.0.0.1", "localhost")
        for asked in (["evaluators", "list", "--url", other], [*score, other]):
            refused = forked.run(asked, env=home)
            assert (refused.returncode, "key" in refused.stderr) == (2, True), refused.stderr


def test_variables_that_nothing_reads_are_reported(client: Client) -> None:
    result = client.evaluate(EXACT, inputs={"gold": "a"}, outputs="a", variables={"limit": 3})
    assert [(one.code, "`limit`" in one.message) for one in result.warnings] == [("unused_variables", True)]
    main = Evaluator("def main(gold):\n    return {'score': gold}\n")
    assert client.evaluate(main, variables={"gold": 1}).warnings == ()


@pytest.mark.long
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


@pytest.mark.long
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

"""A newcomer's first steps work with the commands and the client, on a real host: evaluators, a data set, jobs, and
a comparison.
"""

import csv
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.jobs import JobStatus
from tests import forked
from tests.both_clients import FLAVOURS, open_client

EXACT = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['correct_answer']\n"
KIND = "def evaluate(inputs, outputs, trace):\n    return outputs.strip() == inputs['correct_answer']\n"
ROWS = "question,gold,answer\nCapital of France?,Paris,Paris\nCapital of Italy?,Rome,Rome \nCapital of Peru?,Lima\n"
ROWS += "Capital of Norway?,Oslo,Bergen\n"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as opened:
        yield opened


@pytest.fixture(params=FLAVOURS)
def either(url: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, url) as opened:
        yield opened


def command(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = forked.run([*arguments, "--url", url])
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.long
def test_a_job_whose_scores_say_nothing_says_so_wherever_it_is_shown(url: str, client: Client, tmp_path: Path) -> None:
    rows = [{"question": "1", "expected": "a", "output": "a"}, {"question": "2", "expected": "b", "output": "b"}]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "gold.py").write_text(
        "def evaluate(inputs, outputs, trace):\n    return outputs == inputs.get('gold')\n"
    )
    (tmp_path / "label.py").write_text("def evaluate(inputs, outputs, trace):\n    return 'good'\n")
    (tmp_path / "raises.py").write_text("def evaluate(inputs, outputs, trace):\n    raise ValueError('boom')\n")
    command(url, "datasets", "upload", str(tmp_path / "pairs.jsonl"))
    doubts = {
        "gold.py": "2 of 2 scores are doubtful: the code reads `gold`",
        "label.py": "0 of 2 rows have a score",
        "raises.py": "2 of 2 rows failed",
    }
    for file, doubt in doubts.items():
        done = forked.run(
            ["jobs", "create", "-e", str(tmp_path / file), "-d", "pairs", "--wait", "--name", file, "--url", url]
        )
        assert done.returncode == 1, done.stdout + done.stderr
        flat = " ".join(done.stdout.split())
        assert "completed, but its scores cannot be relied on" in flat
        assert doubt in flat
        run = forked.run(["run", str(tmp_path / file), "--data", str(tmp_path / "pairs.jsonl"), "--url", url])
        assert run.returncode == 1
        assert doubt in " ".join(run.stdout.split())
    raises, label, gold = client.jobs.all(limit=3)
    shown = command(url, "jobs", "show", raises.id).stdout
    assert "ValueError" in shown or "boom" in shown
    assert f"every failed row: evaluator-host jobs rows {raises.id} --status failed --limit 2" in shown
    assert [one.scores[0].doubt is not None for one in (raises, label, gold)] == [True] * 3
    [statistics] = client.jobs.results(gold.id).evaluators
    assert [(one.code, one.count, one.rows, one.doubtful) for one in statistics.warnings] == [
        ("missing_column", 2, (0, 1), True)
    ]
    assert gold.doubt == f"{statistics.evaluator}: {statistics.doubt}"
    [compared] = client.jobs.compare(gold.id, label.id, by_place=True)
    assert [one.code for one in compared.warnings_before] == ["missing_column"]
    assert [one.code for one in compared.warnings_after] == ["no_score"]
    assert "before: missing_column (2 rows)" in " ".join(
        command(url, "jobs", "compare", gold.id, label.id, "--by-place").stdout.split()
    )


@pytest.mark.long
def test_a_newcomer_s_path_by_command(url: str, tmp_path: Path) -> None:
    (tmp_path / "exact.py").write_text(EXACT)
    (tmp_path / "kind.py").write_text(KIND)
    (tmp_path / "capitals.csv").write_text(ROWS)
    made = command(
        url,
        "evaluators",
        "create",
        "capital-check",
        str(tmp_path / "exact.py"),
        "--sampling",
        "0.25",
        "--threshold",
        "1",
    )
    assert made.stdout.startswith("capital-check@1  evaluate  sha256:")
    uploaded = command(url, "datasets", "upload", str(tmp_path / "capitals.csv"))
    assert uploaded.stdout == "capitals: 3 rows, columns question, gold, answer\n"
    assert ":4: it has 2 cells, but the header has 3; the line is left out" in uploaded.stderr
    edited = command(url, "datasets", "edit", "capitals-1", "--add", '{"answer": "Rome"}', "--create")
    assert edited.stdout == "capitals-1@1: 1 row\n"
    command(url, "datasets", "delete", "capitals-1")
    mapped = ("--map", "outputs=answer", "--map", "correct_answer=gold")
    first = command(url, "jobs", "create", "-e", "capital-check@1", "-d", "capitals", *mapped, "--wait")
    assert "completed" in first.stdout
    assert "capital-check@1: 3 rows, 3 scored, 0 failed, 33.3% passed" in first.stdout
    updated = command(url, "evaluators", "update", "capital-check", str(tmp_path / "kind.py"))
    assert updated.stdout.startswith("capital-check@2")
    assert "kept from capital-check@1: threshold 1.0; --fresh keeps none of them" in updated.stderr
    second = command(url, "jobs", "create", "-e", "capital-check", "-d", "capitals", *mapped, "--wait", "--json")
    job = json.loads(second.stdout)
    assert (job["status"], job["evaluators"]) == ("completed", ["capital-check@2"])
    compared = command(url, "jobs", "compare", "last-1", "last")
    assert "capital-check@1 -> capital-check@2: 1 row better, 0 worse" in compared.stdout
    assert "better: row 1, 0 -> 1" in compared.stdout
    rows = command(url, "jobs", "rows", job["id"], "--sort", "-score", "--not-passed")
    cells = re.split(r" {2,}", rows.stdout.splitlines()[1])
    assert cells[:-2] == ["2", "capital-check@2", "scored", "0", "False", "Bergen"]
    assert (cells[-2].startswith("question: "), "gold: " in cells[-2], cells[-1]) == (True, True, "-")
    failures = command(url, "jobs", "failures", job["id"])
    told = f"no row failed\n1 row did not pass: evaluator-host jobs rows {job['id']} --not-passed --url {url}\n"
    assert (failures.stdout, failures.stderr) == ("", told)
    assert "0.25 of live traces" in command(url, "evaluators", "show", "capital-check@1").stdout
    command(url, "jobs", "download", "last", str(tmp_path / "rows.csv"))
    with (tmp_path / "rows.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [(one["row.answer"], one["metrics.score"]) for one in found] == [
        ("Paris", "1.0"),
        ("Rome ", "1.0"),
        ("Bergen", "0.0"),
    ]


def test_versions_stay_as_they_were(either: Client) -> None:
    first = either.evaluators.create("versioned", Evaluator(EXACT, threshold=0.5), description="capitals")
    again = either.evaluators.update("versioned", Evaluator(EXACT, threshold=0.5))
    assert (first.version, again.version, again.digest) == (1, 1, first.digest)
    second = either.evaluators.update("versioned", Evaluator(KIND))
    assert (second.version, second.description) == (2, "capitals")
    assert [one.version for one in either.evaluators.versions("versioned")] == [2, 1]
    assert either.evaluators.get("versioned", 1).evaluator == Evaluator(EXACT, threshold=0.5, name=None)
    answers = {
        reference: either.evaluate(reference, inputs={"correct_answer": "a"}, outputs="a ").score
        for reference in ("versioned", "versioned@latest", "versioned@2", "versioned@1")
    }
    assert answers == {"versioned": 1.0, "versioned@latest": 1.0, "versioned@2": 1.0, "versioned@1": 0.0}
    either.evaluators.delete("versioned")
    with pytest.raises(NotFound):
        either.evaluate("versioned", inputs={}, outputs="a")


@pytest.mark.long
def test_tags_belong_to_the_name_and_messages_to_versions(either: Client, url: str, tmp_path: Path) -> None:
    made = either.evaluators.create("tagged", Evaluator(EXACT), tags=["tone", "a-b", "tone"], message="the first")
    assert (made.tags, made.message, made.author, made.last_job) == (("a-b", "tone"), "the first", None, None)
    second = either.evaluators.update("tagged", Evaluator(KIND), message="ignore spaces")
    assert (second.tags, second.message) == (("a-b", "tone"), "ignore spaces")
    assert either.evaluators.update("tagged", Evaluator(KIND), message="the same code").message == "ignore spaces"
    assert [one.message for one in either.evaluators.versions("tagged")] == ["ignore spaces", "the first"]
    described = either.evaluators.describe("tagged", description="for capitals", tags=["tone"])
    assert (described.version, described.description, described.tags) == (2, "for capitals", ("tone",))
    assert either.evaluators.describe("tagged", sampling=0.5).tags == ("tone",)
    assert [one.name for one in either.evaluators.all(tag="tone")] == ["tagged"]
    assert either.evaluators.all(tag="a-b") == []
    for tags in ([""], ["x" * 51], ["a"] * 21):
        with pytest.raises(InvalidRequest):
            either.evaluators.describe("tagged", tags=tags)
    with pytest.raises(NotFound):
        either.evaluators.describe("nobody", tags=["tone"])
    (tmp_path / "kind.py").write_text(KIND + "# again\n")
    how = ("--tag", "spaces", "--message", "by command")
    command(url, "evaluators", "update", "tagged", str(tmp_path / "kind.py"), *how)
    listed = command(url, "evaluators", "list", "--tag", "spaces").stdout
    assert "tagged" in listed
    assert "by command" in listed
    assert "tone" in command(url, "evaluators", "describe", "tagged", "--tag", "tone").stdout
    assert command(url, "evaluators", "describe", "tagged", "--no-tags", "--json").stdout.count('"tags": []') == 1
    either.evaluators.delete("tagged")


@pytest.mark.long
def test_the_last_job_of_an_evaluator_is_its_newest_however_many_there_are(client: Client) -> None:
    rows = [{"inputs": {"correct_answer": "a"}, "outputs": "a"}, {"inputs": {"correct_answer": "a"}, "outputs": "b"}]
    for name in ("seldom", "often"):
        client.evaluators.create(name, Evaluator(EXACT))
    first = client.jobs.wait(client.jobs.create(["seldom", "often"], rows).id)
    client.evaluators.update("often", Evaluator(KIND))
    second = client.jobs.wait(client.jobs.create(["often", "often@1"], rows[:1]).id)
    found = {one.name: one.last_job for one in client.evaluators.all()}
    seldom, often = found["seldom"], found["often"]
    assert seldom is not None
    assert often is not None
    assert (seldom.job, seldom.version, seldom.score.mean, seldom.dataset) == (first.id, 1, 0.5, None)
    assert (often.job, often.version, often.score.mean, often.created_at) == (second.id, 2, 1.0, second.created_at)
    client.jobs.delete(second.id)
    last = {one.name: one.last_job for one in client.evaluators.all()}["often"]
    assert last is not None
    assert last.job == first.id


def test_a_job_before_the_first_is_refused(url: str, client: Client) -> None:
    client.jobs.create([Evaluator(EXACT)], [{"inputs": {"correct_answer": "a"}, "outputs": "a"}])
    refused = forked.run(["jobs", "show", "last-999", "--url", url])
    assert refused.returncode == 2
    assert re.search(r"last-999 counts back 999 from the newest job, but there (is|are) only \d+ job", refused.stderr)


def test_code_that_does_not_load_is_refused_with_its_reason_unless_forced(either: Client) -> None:
    broken = Evaluator("def evaluate(inputs, outputs, trace:\n    return 1\n")
    with pytest.raises(InvalidRequest, match="does not load") as refused:
        either.evaluators.create("broken", broken)
    assert refused.value.problems[0].field == "evaluator.code"
    made = either.evaluators.create("broken", broken, force=True)
    assert made.problem is not None
    assert made.problem.code == "syntax_error"
    with pytest.raises(NameTaken):
        either.evaluators.create("broken", Evaluator(EXACT))
    with pytest.raises(InvalidRequest, match="is not a name"):
        either.evaluators.create("../broken", Evaluator(EXACT))
    either.evaluators.delete("broken")


@pytest.mark.long
def test_a_version_remembers_its_lock(client: Client) -> None:
    code = "import _ from 'lodash';\nexport function evaluate(i, o, t) { return _.isEqual(o, i.want) ? 1 : 0; }\n"
    pinned = Evaluator(code, language=Language.JAVASCRIPT, packages=("lodash@4.17.21",))
    made = client.evaluators.create("deep-equal", pinned)
    assert made.environment is not None
    assert [(one.name, one.version) for one in made.environment.packages] == [("lodash", "4.17.21")]
    result = client.evaluate("deep-equal@1", inputs={"want": {"a": [1]}}, outputs={"a": [1]})
    assert (result.score, result.environment.digest) == (1, made.environment.digest)
    job = client.jobs.wait(client.jobs.create(["deep-equal"], [{"inputs": {"want": 1}, "outputs": 1}]).id)
    assert next(client.jobs.rows(job.id)).result["environment"]["digest"] == made.environment.digest


@pytest.mark.long
def test_one_job_runs_two_versions_of_a_package(client: Client) -> None:
    code = "import six\ndef evaluate(i, o, t):\n    return six.__version__ == o\n"
    versions = ("1.16.0", "1.17.0")
    client.evaluators.create("sixes", Evaluator(code, packages=(f"six=={versions[0]}",)))
    client.evaluators.update("sixes", Evaluator(code, packages=(f"six=={versions[1]}",)))
    rows = [{"inputs": {}, "outputs": versions[n % 2]} for n in range(40)]
    job = client.jobs.wait(client.jobs.create(["sixes@1", "sixes@2"], rows, parallelism=2).id)
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 80, 0)
    scores = {(row.index, row.evaluator): row.result["score"] for row in client.jobs.rows(job.id)}
    assert scores == {(n, f"sixes@{at + 1}"): float(n % 2 == at) for n in range(40) for at in (0, 1)}


@pytest.mark.long
def test_results_are_friendly_to_pandas(either: Client, tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415 - the import takes a third of a second

    either.datasets.upload("numbers", ({"n": n, "outputs": n % 3} for n in range(250)))
    code = "def evaluate(i, o, t):\n    return {'score': o / 2, 'big': i['n'] > 200}\n"
    job = either.jobs.wait(either.jobs.create([Evaluator(code)], "numbers").id)
    assert (job.status, job.progress.done) == (JobStatus.COMPLETED, 250)
    frame = pd.DataFrame(either.jobs.records(job.id))
    assert len(frame) == 250
    assert frame["metrics.big"].sum() == 49
    statistics = either.jobs.results(job.id).evaluators[0]
    assert {metric.name: metric.count for metric in statistics.metrics} == {"score": 250, "big": 250}
    assert statistics.metrics[0].mean == pytest.approx(frame["score"].mean())
    size = either.jobs.download(job.id, tmp_path / "rows.parquet")
    assert size == (tmp_path / "rows.parquet").stat().st_size
    table = pd.read_parquet(tmp_path / "rows.parquet")
    assert table["score"].tolist() == frame["score"].tolist()
    # there is no column `output`, because the job asked no model
    assert "output" not in [*table.columns, *frame.columns]
    either.jobs.download(job.id, tmp_path / "rows.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [line["index"] for line in lines] == list(range(250))
    assert list(either.datasets.rows("numbers"))[:2] == [{"n": 0, "outputs": 0}, {"n": 1, "outputs": 1}]
    either.datasets.delete("numbers")


def test_more_rows_than_an_order_may_bring_are_to_be_uploaded(client: Client) -> None:
    rows = [{"n": n} for n in range(10_001)]
    with pytest.raises(InvalidRequest, match="too many rows") as refused:
        client.jobs.create([Evaluator(EXACT)], rows)
    (problem,) = refused.value.problems
    assert (problem.field, "client.datasets.upload" in (problem.hint or "")) == ("dataset.rows", True)
    assert client.datasets.upload("many", rows).rows == 10_001


def test_a_data_set_is_replaced_only_when_asked_and_jobs_keep_their_rows(either: Client) -> None:
    either.datasets.upload("twice", [{"n": 1, "outputs": 1}])
    job = either.jobs.wait(either.jobs.create([Evaluator("def evaluate(i, o, t): return o")], "twice").id)
    with pytest.raises(NameTaken):
        either.datasets.upload("twice", [{"n": 2}])
    either.datasets.upload("twice", [{"n": 2}], replace=True)
    assert list(either.datasets.rows("twice")) == [{"n": 2}]
    assert next(either.jobs.rows(job.id)).row == {"n": 1, "outputs": 1}
    either.datasets.delete("twice")
    with pytest.raises(NotFound):
        either.datasets.get("twice")
    either.jobs.delete(job.id)
    with pytest.raises(NotFound):
        either.jobs.get(job.id)

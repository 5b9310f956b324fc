"""Everyday work with a running host: job names and statistics, schedules, edits to data sets, cases and keys."""

import io
import json
import os
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from evaluator_host import __version__
from evaluator_host.client import Client
from evaluator_host.types.errors import InUse, InvalidRequest, NotFound, PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.jobs import Failures
from tests import forked
from tests.integration.everyday import EXACT, MAPPING, ROWS, command
from tests.server import Server, new_home
from tests.unit.test_workbooks import packed, parts


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


def test_jobs_are_gates_as_a_run_is(client: Client, url: str) -> None:
    client.datasets.upload("gated", [{"gold": "a", "new": "a", "old": "b"}, {"gold": "b", "new": "b", "old": "b"}])
    client.evaluators.create("gated-exact", EXACT)
    create = ("jobs", "create", "-e", "gated-exact@1", "-d", "gated", "--json", "--url", url)
    good = forked.run([*create, "--map", "outputs=new", "--wait", "--fail-under", "0.8"])
    assert good.returncode == 0, good.stderr
    bad = forked.run([*create, "--map", "outputs=old", "--wait", "--fail-under", "80"])
    under = "gated-exact@1: the mean score 0.5 is under --fail-under 80; did you mean 0.8?, so the exit code is 1\n"
    assert (bad.returncode, bad.stderr) == (1, under)
    before, after = (json.loads(one.stdout)["id"] for one in (good, bad))
    title = json.loads(good.stdout)["title"]
    assert title.startswith("gated-exact · gated (new) · ")
    named = (command(url, "jobs", "list", "--search", "gated"), command(url, "jobs", "show", before))
    assert [f"  {title}" in text for text in named] == [True, True], named
    command(url, "jobs", "watch", after, "--fail-under", "0.6", code=1)
    command(url, "jobs", "watch", after, "--fail-under", "0.5")
    dropped = forked.run(["jobs", "compare", before, after, "--max-drop", "0.4", "--url", url])
    assert dropped.returncode == 1
    told = "gated-exact@1: the mean is 0.5 lower; --max-drop allows 0.4, so the exit code is 1\n"
    assert dropped.stderr == told
    command(url, "jobs", "compare", before, after, "--max-drop", "0.5", "--json")
    command(url, "jobs", "compare", after, before, "--max-drop", "0")
    command(url, "jobs", "compare", before, after, "--by", "gold", "--max-drop", "0.1", code=2)
    early = forked.run([*create, "--map", "outputs=new", "--fail-under", "0.8"])
    assert (early.returncode, "--fail-under needs --wait" in early.stderr) == (2, True)


def test_a_job_refuses_an_evaluator_that_it_has_already(client: Client) -> None:
    client.evaluators.create("once", EXACT)
    with pytest.raises(InvalidRequest) as refused:
        client.jobs.create(["once", EXACT, "once@1"], ROWS, mapping=MAPPING)
    [problem] = refused.value.problems
    assert (problem.field, problem.message) == ("evaluators.2", "the job already has an evaluator once@1")


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
    assert "not for a schedule" in forked.run(["schedules", "create", *base, *cron, "--wait", "--url", url]).stderr
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
    (tmp_path / "one.py").write_text("def evaluate(inputs, outputs, trace):\n    return 1.0\n")
    for words in (["run", str(tmp_path / "one.py"), "--outputs", "a"], ["check", str(tmp_path / "one.py")]):
        here = forked.run([*words, "--sandbox", "none"], env=home)
        assert (here.returncode, f"this command runs on this machine; to run it on {url}" in here.stderr) == (0, True)
        for there in (["--url", url], ["--sandbox", "none", "--json"]):
            assert "on this machine" not in forked.run([*words, *there], env=home).stderr
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

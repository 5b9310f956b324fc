"""Pages and commands can read a job: single rows, a search, groups of failures, its evaluators, and rows paired with
rows of another job.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import Failures
from tests import forked
from tests.both_clients import FLAVOURS, open_client

STRICT = """
def evaluate(inputs, outputs, trace):
    if outputs is None:
        raise ValueError(f"row {inputs['n']} has no output")
    if outputs == "[":
        import json
        json.loads(outputs)
    return {"score": len(outputs) / 10, "reason": f"{outputs} is fine"}
"""
KIND = "def evaluate(inputs, outputs, trace):\n    return len(outputs or 'abc') / 10\n"
ROWS = [{"n": n, "answer": None if n % 3 == 0 else "[" if n == 5 else "a" * (n % 10)} for n in range(3000)]


@pytest.fixture(scope="module", params=FLAVOURS)
def client(url: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, url) as opened:
        yield opened


@pytest.fixture(scope="module")
def jobs(url: str) -> list[str]:
    with Client(url) as client:
        client.datasets.upload("lengths", ROWS)
        made = [
            client.jobs.create([Evaluator(code)], "lengths", mapping={"outputs": "answer"}, isolation=Isolation.BATCH)
            for code in (STRICT, KIND)
        ]
        return [client.jobs.wait(job.id).id for job in made]


def test_one_row_says_what_evaluators_got_and_made_of_it(client: Client, jobs: list[str]) -> None:
    detail = client.jobs.row(jobs[0], 4)
    assert detail.row == {"n": 4, "answer": "aaaa"}
    assert detail.given == {"inputs": {"n": 4, "answer": "aaaa"}, "outputs": "aaaa", "trace": None}
    assert [(one.evaluator, one.result["score"]) for one in detail.results] == [("evaluator 1", 0.4)]
    with pytest.raises(NotFound, match="its rows are 0 to 2999"):
        client.jobs.row(jobs[0], 3000)


def test_a_row_that_cannot_be_made_was_given_to_nobody(client: Client) -> None:
    order = client.jobs.create([Evaluator(KIND)], [{"a": 1}], mapping={"outputs": "{{ a.b.c }}"})
    detail = client.jobs.row(client.jobs.wait(order.id).id, 0)
    assert detail.given is None
    assert detail.results[0].result["error"]["code"] == "binding_error"


def test_failures_are_put_together(client: Client, jobs: list[str]) -> None:
    first, second = client.jobs.failures(jobs[0])
    assert (first.count, first.rows, first.type, first.line) == (1000, (0, 3, 6, 9, 12), "ValueError", 4)
    assert (second.count, second.rows, second.type) == (1, (5,), "json.decoder.JSONDecodeError")
    assert client.jobs.failures(jobs[1]) == []
    with pytest.raises(NotFound, match="no evaluator other"):
        client.jobs.failures(jobs[0], evaluator="other")


def test_scores_by_the_values_of_a_column(client: Client, jobs: list[str], url: str) -> None:
    (found,) = client.jobs.groups(jobs[0], "answer")
    by_value = {one.value: one for one in found.groups}
    assert list(by_value) == [*sorted({str(row["answer"]) for row in ROWS if row["answer"] is not None}), None]
    for value, one in by_value.items():
        rows = sum(row["answer"] == value for row in ROWS)
        failed = rows if value in (None, "[") else 0
        assert (one.rows, one.scored, one.failed, one.mean_rows) == (rows, rows - failed, failed, rows - failed)
        assert one.mean == (None if failed else pytest.approx(len(str(value)) / 10))
    assert found.others is None
    (many,) = client.jobs.groups(jobs[1], "n")
    assert [one.value for one in many.groups] == list(range(200))
    assert many.others is not None
    assert many.others.rows == 2800
    lengths = [len(str(row["answer"] or "abc")) / 10 for row in ROWS[200:]]
    assert many.others.mean == pytest.approx(sum(lengths) / 2800)
    with pytest.raises(InvalidRequest, match="no row has a value in the column anser; did you mean answer"):
        client.jobs.groups(jobs[0], "anser")
    with pytest.raises(NotFound, match="no evaluator other"):
        client.jobs.groups(jobs[0], "n", evaluator="other")
    shown = forked.run(["jobs", "results", jobs[0], "--by", "answer", "--url", url]).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert " ".join(lines[1]) == "ANSWER ROWS SCORED FAILED SKIPPED MEAN STD ERR OVER PASSED 95 % INTERVAL"
    assert ["(no", "value)", "1000", "0", "1000", "0", "-", "-", "0", "-", "-"] in lines
    assert lines[3][:2] == ["[", "1"]


@pytest.mark.long
def test_failed_rows_that_count_as_zero_do_so_in_each_group(client: Client) -> None:
    rows = [{"topic": topic, "answer": answer} for topic in ("a", "b") for answer in ("x", None)]
    code = "def evaluate(inputs, outputs, trace):\n    return len(outputs) > 0\n"
    options = {"mapping": {"outputs": "answer"}, "failures": Failures.ZERO}
    job = client.jobs.wait(client.jobs.create([Evaluator(code)], rows[:3], **options).id)
    (found,) = client.jobs.groups(job.id, "topic")
    assert [(one.value, one.mean, one.mean_rows, one.failed, one.pass_rate) for one in found.groups] == [
        ("a", 0.5, 2, 1, 0.5),
        ("b", 1.0, 1, 0, 1.0),
    ]


@pytest.mark.long
def test_doubtful_scores_by_a_column_say_so(client: Client, url: str) -> None:
    order = client.jobs.create(
        [Evaluator("def evaluate(inputs, outputs, trace):\n    return 1 / 0\n")], [{"topic": "a"}]
    )
    job = client.jobs.wait(order.id)
    (found,) = client.jobs.groups(job.id, "topic")
    assert found.doubt == job.scores[0].doubt == "1 of 1 rows failed"
    assert (
        "evaluator 1: doubtful: 1 of 1 rows failed"
        in forked.run(["jobs", "results", job.id, "--by", "topic", "--url", url]).stdout
    )


@pytest.mark.long
def test_jobs_over_two_versions_of_the_answers_are_compared(client: Client) -> None:
    code = Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n")
    ids = []
    for version, answers in (("v1", ("a", "x")), ("v2", ("a", "b"))):
        rows = [{"gold": gold, version: answer} for gold, answer in zip("ab", answers, strict=True)]
        ids.append(client.jobs.wait(client.jobs.create([code], rows, mapping={"outputs": version}).id).id)
    (found,) = client.jobs.compare(*ids)
    assert (found.improved, found.regressed) == (1, 0)
    rows_of_other = [{"gold": gold, "v1": "a"} for gold in "ac"]
    other = client.jobs.wait(client.jobs.create([code], rows_of_other, mapping={"outputs": "v1"}).id)
    with pytest.raises(InvalidRequest, match="row 1 differs in gold"):
        client.jobs.compare(ids[0], other.id)


@pytest.mark.long
def test_jobs_over_other_questions_are_not_compared_though_outputs_lie_beside_them(client: Client) -> None:
    code = Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs == inputs['meta']['gold']\n")
    ids = []
    for gold, answer in (("a", "a"), ("a", "x"), ("b", "x")):
        rows = [{"meta": {"gold": gold, "answer": answer}, "split": "test"}]
        ids.append(client.jobs.wait(client.jobs.create([code], rows, mapping={"outputs": "meta.answer"}).id).id)
    (found,) = client.jobs.compare(*ids[:2])
    assert (found.improved, found.regressed) == (0, 1)
    with pytest.raises(InvalidRequest, match="row 0 differs in meta"):
        client.jobs.compare(ids[0], ids[2])


@pytest.mark.long
def test_the_error_for_rows_in_another_order_names_versions_and_the_remedy(client: Client) -> None:
    jobs = []
    for name, order in (("first-bot", "ab"), ("second-bot", "ba")):
        client.datasets.upload(name, [{"question": question, "outputs": "x"} for question in order], replace=True)
        jobs.append(client.jobs.create([Evaluator(KIND)], name).id)
    told = (
        r"different rows \(first-bot@\d, second-bot@\d\): row 0 differs in question; .* sort both files by the same col"
    )
    with pytest.raises(InvalidRequest, match=told):
        client.jobs.compare(*jobs)


@pytest.mark.long
def test_rows_are_found_by_a_text_on_every_page(client: Client, jobs: list[str]) -> None:
    found = [row.index for row in client.jobs.rows(jobs[0], text="AAAAAAAA is fine")]
    assert found == [n for n in range(3000) if n % 10 >= 8 and n % 3]
    slow = [row.index for row in client.jobs.rows(jobs[0], text="row 2997 has", sort="-run_ms", status="failed")]
    assert slow == [2997]
    assert list(client.jobs.rows(jobs[0], text="nowhere to be found")) == []


def test_rows_are_found_by_conditions_on_their_columns(client: Client, jobs: list[str], url: str) -> None:
    found = [row.index for row in client.jobs.rows(jobs[0], where=["answer=aaaaaaaa", "n>=2900"])]
    assert found == [n for n, row in enumerate(ROWS) if row["answer"] == "aaaaaaaa" and n >= 2900]
    both = [row.index for row in client.jobs.rows(jobs[0], where="n<100", text="is fine", sort="-score")]
    assert sorted(both) == [row.index for row in client.jobs.rows(jobs[0], text="is fine") if row.index < 100]
    shown = forked.run(["jobs", "rows", jobs[0], "--where", "n=2997", "--url", url]).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["ROW", "2997"]
    with pytest.raises(InvalidRequest, match="'answer' is not a condition"):
        list(client.jobs.rows(jobs[0], where=["answer"]))


def test_rows_are_found_by_their_numbers(client: Client, jobs: list[str]) -> None:
    assert [row.index for row in client.jobs.rows(jobs[0], row=[17, 3, 3000, -1, 2**53])] == [3, 17]
    assert [row.index for row in client.jobs.rows(jobs[0], row=[17, 3], sort="-score", status="failed")] == [3]
    with pytest.raises(InvalidRequest, match="row"):
        list(client.jobs.rows(jobs[0], row=range(1001)))


def test_failures_say_where_every_failed_row_is(jobs: list[str], url: str) -> None:
    told = forked.run(["jobs", "failures", jobs[0], "--url", url])
    assert "0, 3, 6, 9, 12, …" in told.stdout
    assert f"every failed row: evaluator-host jobs rows {jobs[0]} --status failed --limit 1001" in told.stderr


def test_rows_are_counted_when_asked(client: Client, url: str, jobs: list[str]) -> None:
    with Client(url) as plain:
        send = plain._transport.http.get
        assert send(f"/v1/jobs/{jobs[0]}/rows?limit=1&total=true&status=failed").json()["total"] == 1001
        assert send(f"/v1/jobs/{jobs[0]}/rows?limit=1&total=true&min_score=0.85").json()["total"] == 200
        assert send(f"/v1/jobs/{jobs[0]}/rows?limit=1").json()["total"] is None
        assert client.jobs.count_rows(jobs[0], status="failed") == 1001
        for filters in ({"text": "is fine"}, {"where": ["n<100"]}):
            with pytest.raises(InvalidRequest, match="cannot be counted"):
                client.jobs.count_rows(jobs[0], **filters)


def test_a_table_of_rows_says_how_many_match(url: str, jobs: list[str]) -> None:
    def said(*options: str) -> tuple[str, str]:
        done = forked.run(["jobs", "rows", jobs[0], *options, "--url", url])
        return done.stdout, " ".join(done.stderr.split())

    download = f"evaluator-host jobs download {jobs[0]} rows.csv"
    assert said()[1] == f"20 of 3000 rows; --limit shows more, and {download} --url {url} writes all"
    told = f"--limit shows more, and {download} --status failed --url {url} writes all"
    assert said("--status", "failed", "--limit", "2")[1] == f"2 of 1001 rows that match; {told}"
    told = f"--limit shows more, and {download} --min-score 0.8 --text 'is fine' --where 'n<100' --url {url} writes all"
    options = ("--text", "is fine", "--where", "n<100", "--min-score", "0.8", "--limit", "2")
    assert said(*options)[1] == f"more than 2 rows match, of which the first 2 are shown; {told}"
    assert said("--where", "n=2997")[1] == "1 row matches"
    assert said("--not-passed") == ("", "no row matches")
    shown, told = said("--json")
    assert (len(json.loads(shown)), told) == (20, "")


def test_only_the_rows_that_match_are_downloaded(client: Client, url: str, jobs: list[str], tmp_path: Path) -> None:
    every = [
        ({"status": "failed"}, [n for n in range(3000) if n % 3 == 0 or n == 5]),
        (
            {"min_score": 0.8, "text": "is fine", "where": ["n<100", "n>20"]},
            [28, 29, 38, 49, 58, 59, 68, 79, 88, 89, 98],
        ),
        ({"row": [7, 17, 4000], "evaluator": "evaluator 1"}, [7, 17]),
        ({"passed": False}, []),
    ]
    for suffix, read in (
        ("jsonl", lambda line: json.loads(line)["index"]),
        ("csv", lambda line: int(line.split(",")[0])),
    ):
        file, part = tmp_path / f"rows.{suffix}", tmp_path / f"rows.{suffix}.part"
        for filters, expected in every:
            client.jobs.download(jobs[0], file, **filters)
            whole = file.read_bytes()
            assert [read(line) for line in whole.decode().splitlines()[suffix == "csv" :]] == expected, filters
            part.write_bytes(whole[: len(whole) // 2])
            client.jobs.download(jobs[0], file, **filters, resume=True)
            assert file.read_bytes() == whole, filters
        file.unlink()
        file.mkdir()  # so that the download ends with an error after its last row
        with pytest.raises(OSError, match=str(file)):
            client.jobs.download(jobs[0], file, status="failed")
        file.rmdir()
        with pytest.raises(InvalidRequest, match="with other filters"):
            client.jobs.download(jobs[0], file, status="scored", resume=True)
        client.jobs.download(jobs[0], file, status="failed", resume=True)
        assert not [one for one in tmp_path.iterdir() if ".part" in one.name]
    options = ("--min-score", "0.8", "--text", "is fine", "--where", "n<100", "--where", "n>20", "--url", url)
    done = forked.run(["jobs", "download", jobs[0], str(tmp_path / "fine.jsonl"), *options])
    assert (done.returncode, (tmp_path / "fine.jsonl").read_text().count("\n")) == (0, 11), done.stderr
    with pytest.raises(InvalidRequest, match="'answer' is not a condition"):
        client.jobs.download(jobs[0], file, where=["answer"])


@pytest.mark.long
def test_a_list_shows_outputs_that_a_template_makes(client: Client, url: str) -> None:
    rows = [{"first": "Ada", "last": "Lovelace"}, {"first": "Alan"}, {"first": "Kurt", "last": "Gödel", "outputs": "-"}]
    for template, made in (("{{ first }} {{ last }}", "Ada Lovelace"), ("{{ item.first | upper }}", "ADA")):
        job = client.jobs.create([Evaluator(KIND), Evaluator(KIND)], rows, mapping={"outputs": template})
        client.jobs.wait(job.id)
        for found in (client.jobs.first_rows(job.id, 6), client.jobs.first_rows(job.id, 6, text="Ada")):
            assert [one.output for one in found if one.index == 0] == [made] * 2
        failed = {one.output for one in client.jobs.first_rows(job.id, 6) if one.index == 1}
        assert failed == ({None} if "last" in template else {"ALAN"})
        shown = forked.run(["jobs", "rows", job.id, "--url", url]).stdout.splitlines()
        assert [made in line for line in shown[1:3]] == [True, True]


def test_the_evaluators_of_a_job_can_be_read(client: Client, jobs: list[str]) -> None:
    (ran,) = client.jobs.evaluators(jobs[0])
    assert (ran.label, ran.name, ran.evaluator.code) == ("evaluator 1", None, STRICT)


def test_two_jobs_are_paired_row_by_row(client: Client, jobs: list[str]) -> None:
    pairs = client.jobs.pairs(*jobs)
    assert (pairs.metric, pairs.n, pairs.binned) == ("score", 1999, False)
    assert sum(point.count for point in pairs.points) == 1999
    # row 10 has an output without letters, which scored 0 in the first job and 0.3 in the second
    assert pairs.points[0].row == 10
    assert (pairs.points[0].before, pairs.points[0].after) == (0.0, 0.3)
    assert client.jobs.pairs(*jobs, metric="unknown").points == ()
    (compared,) = client.jobs.compare(*jobs)
    assert (compared.before, compared.after, compared.improved) == ("evaluator 1", "evaluator 1", 1201)
    assert (compared.gained, compared.lost) == (1001, 0)
    assert (compared.judged, compared.pass_rate_before, compared.pass_rate_after) == (0, None, None)
    better = list(client.jobs.changes(*jobs, better=True))
    assert [one.row for one in better] == sorted({one.row for one in better})
    assert {one.row for one in compared.improvements} < {one.row for one in better}
    assert all(one.before is None or (one.after or 0) > one.before for one in better)
    worse = list(client.jobs.changes(*jobs, better=False))
    assert (len(better), len(worse)) == (1201, compared.regressed)
    every = list(client.jobs.changes(*jobs, evaluator="evaluator 1"))  # the client reads pages of 1,000
    assert sorted(one.row for one in (*better, *worse)) == [one.row for one in every]
    assert [row.index for row in client.jobs.first_rows(jobs[0], 2, sort="row")] == [0, 1]


@pytest.mark.long
def test_a_download_goes_on_where_it_broke_off(client: Client, url: str, tmp_path: Path) -> None:
    rows = [{"n": n, "outputs": f'line "{n}"\nand, more'} for n in range(1200)]
    job = client.jobs.wait(client.jobs.create([Evaluator(KIND), Evaluator(KIND)], rows, isolation=Isolation.BATCH).id)
    for suffix in ("jsonl", "csv"):
        file, part = tmp_path / f"rows.{suffix}", tmp_path / f"rows.{suffix}.part"
        client.jobs.download(job.id, file)
        whole = file.read_bytes()
        for size in (0, 10, len(whole) // 2, len(whole) - 1, len(whole)):
            part.write_bytes(whole[:size])
            assert client.jobs.download(job.id, file, resume=True) == len(whole)
            assert (file.read_bytes() == whole, part.exists()) == (True, False)
        part.write_bytes(whole[: len(whole) // 2])
        done = forked.run(["jobs", "download", job.id, str(file), "--resume", "--url", url])
        assert (done.returncode, file.read_bytes() == whole) == (0, True), done.stderr
    part.write_bytes(whole.replace(b"row.n", b"row.m"))
    with pytest.raises(InvalidRequest, match="do not have the same columns"):
        client.jobs.download(job.id, file, resume=True)
    assert file.read_bytes() == whole
    with Client(url) as plain:
        rest = plain._transport.http.get(f"/v1/jobs/{job.id}/rows.jsonl?first=1199").text.splitlines()
        assert [json.loads(line)["index"] for line in rest] == [1199, 1199]
        assert plain._transport.http.get(f"/v1/jobs/{job.id}/rows.jsonl?first=1200").text == ""


@pytest.mark.long
def test_commands_read_the_same(url: str, jobs: list[str]) -> None:
    def said(*arguments: str) -> str:
        done = forked.run(["jobs", *arguments, "--url", url])
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert json.loads(said("row", jobs[0], "4"))["given"]["outputs"] == "aaaa"
    assert said("failures", jobs[0]).splitlines()[1].split()[2:6] == ["1000", "user_exception", "4", "0,"]
    assert len(said("rows", jobs[0], "--text", "row 2997 has").splitlines()) == 2


@pytest.mark.long
def test_a_platforms_own_scores_and_skipped_rows_are_stored_and_downloaded(client: Client, tmp_path: Path) -> None:
    code = "def handler(output, expected):\n    return None if expected is None else {'name': 'same', 'score': output == expected}\n"
    rows = [{"correct_answer": "a", "outputs": "a"}, {"correct_answer": None, "outputs": "b"}]
    job = client.jobs.wait(client.jobs.create([Evaluator(code)], rows).id)
    natives = [[{"name": "same", "score": True}], [{"name": "handler", "score": None}]]
    for index, (status, native) in enumerate(zip(("scored", "skipped"), natives, strict=True)):
        [kept] = client.jobs.row(job.id, index).results
        assert (kept.result["status"], kept.result["native"]) == (status, native)
    client.jobs.download(job.id, tmp_path / "rows.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [(one["result"]["status"], one["result"]["native"]) for one in lines] == [
        ("scored", natives[0]),
        ("skipped", natives[1]),
    ]
    client.jobs.download(job.id, tmp_path / "rows.csv")
    assert [line.count("skipped") for line in (tmp_path / "rows.csv").read_text().splitlines()[:3]] == [0, 0, 1]
    [statistics] = client.jobs.results(job.id).evaluators
    assert (statistics.scored, statistics.skipped, statistics.failed) == (1, 1, 0)


@pytest.mark.long
def test_a_score_of_few_rows_is_that_of_these_rows(client: Client, url: str) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return {'score': inputs['n'], 'other': 1}\n"
    rows = [{"full": 0.5, "few": few, "outputs": ""} for few in (0.75, None, 0.25)]
    whole, partial = (
        client.jobs.wait(client.jobs.create([Evaluator(code)], rows, mapping={"inputs.n": column}).id)
        for column in ("full", "few")
    )
    assert [(job.scores[0].scored, job.scores[0].mean_rows) for job in (whole, partial)] == [(3, 3), (3, 2)]
    (compared,) = client.jobs.compare(whole.id, partial.id)
    assert (compared.improved, compared.regressed, compared.unscored) == (1, 1, 1)
    shown, different = (
        forked.run(["jobs", *command, "--url", url]).stdout
        for command in (("show", partial.id), ("compare", whole.id, partial.id))
    )
    assert "mean 0.5 over 2 of 3 rows" in shown
    assert "1 row better, 1 worse, 1 with a score in one job only" in different

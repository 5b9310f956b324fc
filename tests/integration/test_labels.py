"""People label rows of jobs and data sets, and jobs are compared with their labels."""

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.evaluator import Evaluator
from tests import forked
from tests.integration.everyday import EXACT, MAPPING, ROWS, command

pytestmark = pytest.mark.long("tests/jobs/test_label_queues.py tests the queues without a host")


def test_labels_of_a_shard_are_of_its_rows_alone(client: Client) -> None:
    rows = [{**ROWS[0], "human": True} for _ in range(5)]
    job = client.jobs.wait(client.jobs.create([EXACT], rows, mapping=MAPPING, shard="1/2").id)
    (found,) = client.jobs.agreement(job.id, label="human")
    assert (found.rows, found.unlabelled) == (2, 0)
    assert client.labels.create("of-a-shard", job=job.id).rows == 2
    assert [one.index for one in client.labels.rows("of-a-shard").rows] == [1, 3]
    client.labels.delete("of-a-shard")


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

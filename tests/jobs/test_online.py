"""Online jobs: the model gets each row's question only once, except for retries, and its answer is scored even if
something fails.
"""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.results.table import Filter
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.types.errors import InvalidRequest, NotFound
from evaluator_host.types.jobs import JobConfig, JobReport, JobStatus, Target
from evaluator_host.types.results import JobRow
from tests.jobs.desk import OK, ON_EACH_DATABASE, WORKSPACE, Desk, opened
from tests.model_server import DROP, Fault, ModelServer, Reply, error_body

KEY = 'sk-test/4e1f+very"secret'
ROWS = [{"question": f"q{n}", "gold": n} for n in range(40)]


def target(server: ModelServer, **changes: Any) -> Target:
    return Target(**{"base_url": server.url, "model": "m-1", "prompt_template": "{{ item.question }}", **changes})


async def start(desk: Desk, asked: Target, rows: Any = ROWS, **config: Any) -> JobReport:
    order = JobSpec([OK], rows, target=asked, config=JobConfig(**config))
    return await desk.board.create_job(order, WORKSPACE)


async def rows_of(desk: Desk, job: JobReport) -> list[JobRow]:
    read = desk.reader
    return list((await read.page(WORKSPACE, job.id, Filter(), limit=1000)).rows)


def bodies(desk: Desk) -> dict[int, dict[str, Any]]:
    """Return the outputs and trace in each call of the evaluator, by the expected answer in the row."""
    calls = [call["args"] for link in desk.backend.links for call in link.calls]
    assert len(calls) == len({args[0]["gold"] for args in calls})
    return {args[0]["gold"]: {"outputs": args[1], "trace": args[2]} for args in calls}


@ON_EACH_DATABASE
@pytest.mark.slow
async def test_each_row_is_asked_once_and_its_answer_is_scored(desk: Desk) -> None:
    await desk.store.secrets.set_secret(WORKSPACE, "openai", KEY)
    with ModelServer(key=KEY, faults=lambda *_: 0.02) as server:
        asked = target(server, api_key="openai", system="Be brief.", inference={"temperature": 0}, concurrency=4)
        job = await desk.ended(await start(desk, asked))
    assert (job.status, job.progress.done, job.progress.failed, job.progress.generated) == ("completed", 40, 0, 40)
    assert job.target == asked
    assert Counter(server.asked) == Counter(row["question"] for row in ROWS)
    assert server.bodies[0]["temperature"] == 0
    assert server.bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert 1 < server.busiest <= 4
    called = bodies(desk)
    for row in ROWS:
        assert called[row["gold"]]["outputs"] == f"answer to {row['question']}"
    (span,) = called[3]["trace"]["spans"].values()
    unit = span["attributes"]["ag"]["metrics"]["unit"]
    assert unit["tokens"]["total"] == unit["tokens"]["prompt"] + unit["tokens"]["completion"] > 0
    shown = (await rows_of(desk, job))[3]
    assert shown.output == "answer to q3"
    assert shown.request is not None
    assert unit["duration"]["total"] == shown.request["latency_ms"] / 1000 > 0
    assert [one["status"] for one in shown.request["attempts"]] == [200]
    asked_first = next(body for body in server.bodies if body["messages"][1]["content"] == "q3")
    assert shown.request["body"] == asked_first
    response = shown.request["response"]
    assert response["choices"][0]["message"] == {"role": "assistant", "content": "answer to q3", "refusal": None}
    assert (response["object"], response["usage"]["total_tokens"]) == ("chat.completion", unit["tokens"]["total"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("completes", [True, False])
@pytest.mark.slow
async def test_a_prompt_is_gone_on_with_where_the_model_does_that(desk: Desk, completes: bool) -> None:
    with ModelServer(completes=completes) as server:
        job = await desk.ended(await start(desk, target(server, completion=True, concurrency=2), ROWS[:6]))
    assert (job.status, job.progress.failed) == ("completed", 0)
    assert [row.output for row in await rows_of(desk, job)] == [f"answer to q{n}" for n in range(6)]
    assert all(("prompt" in body) is completes for body in server.bodies)


@pytest.mark.long
async def test_only_temporary_failures_are_tried_again(desk: Desk) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    first: dict[str, Fault] = {
        "q0": 500, "q1": 408, "q2": 409, "q3": 425, "q4": Reply(429, headers={"Retry-After": "1"}), "q5": DROP,
        "q6": Reply(503, b"<html>busy", {"Retry-After": soon}), "q7": 9.0, "q8": 400, "q9": 422,
        "q10": Reply(302, headers={"Location": "/v1/elsewhere"}), "q11": Reply(200, b"[]"), "q12": Reply(200, b"nonsense"),
        "q13": Reply(200, b'{"choices": [{"message": {"content": null}}]}'), "q14": Reply(200, error_body("no such model")),
        "q15": Reply(200, b'{"a": "' + b"x" * (3 << 20) + b'"}'), "q16": Reply(200, headers={"Content-Encoding": "gzip"}),
    }  # fmt: skip
    with ModelServer(faults=lambda question, attempt: first.get(question) if attempt == 1 else None) as server:
        job = await desk.ended(await start(desk, target(server, timeout_s=6, retries=1, concurrency=20)))
    tries = Counter(server.asked)
    assert {question for question in first if tries[question] == 2} == {f"q{n}" for n in range(8)}
    assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 40, 9)
    rows = await rows_of(desk, job)
    for row in rows[8:17]:
        assert row.result["error"]["code"] == "target_failed"
        assert row.output is None
    for number, part in (
        (8, "HTTP 400: injected 400"),
        (10, "redirects are not followed"),
        (13, "neither content"),
        (14, "no such model"),
        (15, "2 MB"),
    ):
        assert part in rows[number].result["error"]["message"]
    waited = [row.request["attempts"] for row in rows[:8] if row.request]
    assert [[one["status"] for one in attempts] for attempts in waited] == [
        *([status, 200] for status in (500, 408, 409, 425, 429, None, 503, None))
    ]


@pytest.mark.slow
async def test_an_empty_answer_fails_the_row_and_one_that_is_cut_is_doubtful(desk: Desk) -> None:
    def said(message: dict[str, Any], finish_reason: str, tokens: int | None = None) -> Reply:
        body = {"choices": [{"message": message, "finish_reason": finish_reason}]}
        return Reply(200, json.dumps(body | ({"usage": {"completion_tokens": tokens}} if tokens else {})).encode())

    call = {"content": "", "tool_calls": [{"id": "1"}]}
    answers = {
        "q0": said({"content": ""}, "length"),
        "q1": said({"content": [], "refusal": ""}, "stop"),
        "q2": said({"content": "It is Par"}, "length", 17),
        "q3": said(call, "tool_calls"),
        "q4": said({"content": "A"}, "length", 1),  # the whole answer of a classifier with `max_tokens: 1`
    }
    with ModelServer(faults=lambda question, attempt: answers.get(question)) as server:
        job = await desk.ended(await start(desk, target(server), ROWS[:6]))
    empty, silent, cut, called, label, whole = await rows_of(desk, job)
    assert (job.progress.failed, empty.result["error"]["code"]) == (2, "target_failed")
    assert "(finish_reason: length); raise `max_tokens`" in empty.result["error"]["message"]
    assert "neither content nor tool calls (finish_reason: stop)" in silent.result["error"]["message"]
    assert (cut.output, [one["code"] for one in cut.result["warnings"]]) == ("It is Par", ["answer_cut"])
    assert (called.output, called.result["warnings"]) == ({"tool_calls": call["tool_calls"]}, [])
    assert (label.output, label.result["warnings"]) == ("A", [])
    assert whole.result["warnings"] == []


@pytest.mark.long
@pytest.mark.slow
async def test_an_empty_completion_fails_the_row(desk: Desk) -> None:
    empty = Reply(200, b'{"choices": [{"text": "", "finish_reason": "length"}]}')
    with ModelServer(completes=True, faults=lambda question, attempt: empty) as server:
        job = await desk.ended(await start(desk, target(server, completion=True), ROWS[:1]))
    (row,) = await rows_of(desk, job)
    assert "the text is empty (finish_reason: length)" in row.result["error"]["message"]


@pytest.mark.long
@pytest.mark.slow
async def test_retry_after_is_waited_for_and_tries_come_to_an_end(desk: Desk) -> None:
    limited = Reply(429, error_body("slow down"), {"Retry-After": "1"})
    with ModelServer(faults=lambda question, attempt: limited) as server:
        started = datetime.now(UTC)
        job = await desk.ended(await start(desk, target(server, retries=2), ROWS[:2]))
    assert (job.progress.failed, len(server.asked)) == (2, 6)
    assert (datetime.now(UTC) - started).total_seconds() >= 2
    (row, _) = await rows_of(desk, job)
    assert "HTTP 429: slow down (after 3 tries)" in row.result["error"]["message"]


@pytest.mark.slow
async def test_a_key_that_the_model_repeats_is_masked_everywhere(desk: Desk) -> None:
    await desk.store.secrets.set_secret(WORKSPACE, "openai", KEY)
    said = {
        "q0": Reply(401, error_body(f"Incorrect API key provided: {KEY}")),
        "q1": Reply(403, f"you sent Bearer {KEY}".encode()),
        "q2": Reply(302, headers={"Location": f"https://elsewhere.test/?key={KEY}"}),
        "q3": Reply(200, json.dumps({"model": KEY, "choices": [{"message": {"content": f"your key is {KEY}"}}]}).encode()),
        "q4": Reply(200, json.dumps({"choices": [{"message": {"content": None, "tool_calls": [{KEY: [KEY]}]}}]}).encode()),
    }  # fmt: skip
    with ModelServer(key=KEY, faults=lambda question, attempt: said.get(question)) as server:
        job = await desk.ended(await start(desk, target(server, api_key="openai"), ROWS[:6]))
    rows = await rows_of(desk, job)
    assert (job.progress.failed, rows[3].output) == (3, "your key is [masked]")
    assert "[masked]" in rows[0].result["error"]["message"]
    assert rows[4].output == {"tool_calls": [{"[masked]": ["[masked]"]}]}
    assert [bool((row.request or {})["response"]) for row in rows[:5]] == [False] * 3 + [True] * 2
    everything = repr(rows) + repr(job) + repr(bodies(desk))
    assert KEY not in everything
    assert json.dumps(KEY)[1:-1] not in everything


@pytest.mark.slow
async def test_tool_calls_are_the_output_of_a_model_that_calls_tools(desk: Desk) -> None:
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    with ModelServer() as server:
        job = await desk.ended(await start(desk, target(server, inference={"tools": tools}), ROWS[:1]))
    (row,) = await rows_of(desk, job)
    (call,) = row.output["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("look_up", {"question": "q0"})


@pytest.mark.slow
async def test_a_prompt_that_a_row_cannot_fill_fails_that_row_only(desk: Desk) -> None:
    with ModelServer() as server:
        job = await desk.ended(await start(desk, target(server), [ROWS[0], {"gold": 1}, ROWS[2]]))
    rows = await rows_of(desk, job)
    assert [row.result["error"] and row.result["error"]["code"] for row in rows] == [None, "binding_error", None]
    assert sorted(server.asked) == ["q0", "q2"]


@pytest.mark.long
@ON_EACH_DATABASE
@pytest.mark.slow
async def test_pausing_stops_asking_and_going_on_asks_for_the_rest_only(desk: Desk) -> None:
    def slowly(question: str, attempt: int) -> Fault:
        # the first row is answered late, later rows are answered soon
        return 30.0 if question == "q0" and attempt == 1 else 0.1

    with ModelServer(faults=slowly) as server:
        job = await start(desk, target(server, concurrency=3))
        while len(server.asked) < 10:
            await desk.reached(job)
        await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.PAUSE)
        paused = await desk.reached(job, status=JobStatus.PAUSED)
        assert paused.progress.generated is not None
        assert 0 < paused.progress.generated < 40
        assert paused.progress.done == 0
        before = len(server.asked)
        assert before - paused.progress.generated <= 3  # rows that were under way may still finish
        await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
        ended = await desk.ended(job)
        assert (ended.progress.done, len(server.asked) - before) == (40, 40 - paused.progress.generated)


async def test_more_failures_than_allowed_end_the_job_before_all_rows_are_asked(desk: Desk) -> None:
    with ModelServer(faults=lambda question, attempt: 400) as server:
        job = await desk.ended(await start(desk, target(server, concurrency=1), max_failures=3))
    assert (job.status, job.error and job.error.code, len(server.asked)) == (JobStatus.FAILED, "max_failures", 4)
    assert job.error is not None
    assert (job.error.row, job.error.message.startswith("row 0: the model did not answer: HTTP 4")) == (0, True), (
        job.error
    )


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"base_url": "file:///etc/passwd"}, InvalidRequest, "http"),
        ({"base_url": "https://user:secret-word@models.test/v1"}, InvalidRequest, "user or a password"),
        ({"base_url": "https://models.test/v1?key=1"}, InvalidRequest, "query"),
        ({"base_url": "https://models.test\\@elsewhere.test/v1"}, InvalidRequest, "is not valid"),
        ({"base_url": "https://models.te\tst/v1"}, InvalidRequest, "is not valid"),
        ({"base_url": "https://models.test:99999/v1"}, InvalidRequest, "not a URL"),
        ({"base_url": "https://models.test/v1/chat/completions"}, InvalidRequest, "which the host adds"),
        ({"prompt_template": "always the same"}, InvalidRequest, "the same prompt for every row"),
        ({"prompt_template": "{{ 9 ** 9 }}"}, InvalidRequest, "template"),
        ({"prompt_template": None}, InvalidRequest, "either"),
        ({"messages": ({"role": "user", "content": "{{ a }}"},)}, InvalidRequest, "either"),
        ({"inference": {"stream": True}}, InvalidRequest, "stream"),
        ({"inference": {"any": "x" * (1 << 20)}}, InvalidRequest, "over 1 MB"),
        ({"api_key": "missing"}, NotFound, "there is no secret missing"),
    ],
)
async def test_a_target_that_cannot_be_asked_is_refused(
    desk: Desk, changes: dict[str, Any], error: type[Exception], match: str
) -> None:
    asked = Target(
        **{"base_url": "https://models.test/v1", "model": "m", "prompt_template": "{{ question }}", **changes}
    )
    with pytest.raises(error, match=match) as refused:
        await start(desk, asked)
    assert "secret-word" not in str(refused.value)
    assert await desk.board.list_jobs(WORKSPACE) == []


@pytest.mark.long
@pytest.mark.slow
async def test_once_there_are_keys_jobs_ask_the_hosts_that_the_operator_lists(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as server:
        async with opened(database_url, tmp_path) as desk:
            await desk.store.keys.create_key("alice", "default")
            with pytest.raises(InvalidRequest, match=r"may not call 127\.0\.0\.1"):
                await start(desk, target(server))
        for allowed in ("127.0.0.1", server.url.split("/")[2], "*"):
            monkeypatch.setenv("EVALUATOR_HOST_TARGET_HOSTS", json.dumps([allowed]))
            async with opened(database_url, tmp_path) as desk:
                assert (await desk.ended(await start(desk, target(server), ROWS[:1]))).progress.failed == 0
        monkeypatch.setenv("EVALUATOR_HOST_TARGET_HOSTS", '["127.0.0.1:1", "models.test"]')
        async with opened(database_url, tmp_path) as desk:
            with pytest.raises(InvalidRequest, match="may not call"):
                await start(desk, target(server))
        assert len(server.asked) == 3

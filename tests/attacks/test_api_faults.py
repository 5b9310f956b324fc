"""If the host itself has a fault, the answer and the log say where, and contain no caller's data.

The faults are put into a real host process: into a method of the service, into the code that sends an answer, and into
a task that nobody waits for. Each raises an exception that quotes the row, as careless code does.
"""

import sys
from collections.abc import Iterator

import pytest

from tests.keyed import BODY, EXACT, eventually, is_problem
from tests.server import Server

SECRET = "the-secret-of-a-row"
FAULTS = """
import asyncio
from evaluator_host.engine.service.service import Service
from evaluator_host.server import app

def quoting(row):
    try:
        raise KeyError(f"first {row.inputs}")
    except KeyError as error:
        raise RuntimeError(f"no idea what to do with {row.inputs!r}") from error

evaluate, encode = Service.evaluate, app.json_response

async def broken(self, evaluator, row, **rest):
    fault = row.inputs.get("fault")
    if fault == "service":
        quoting(row)
    if fault == "task":
        async def lost():
            quoting(row)
        asyncio.get_running_loop().create_task(lost())
    result = await evaluate(self, evaluator, row, **rest)
    if fault == "handler":
        object.__setattr__(result, "label", Unspeakable(row))
    return result

class Unspeakable:
    def __init__(self, row):
        self.row = row

def encoding(value, *rest):
    label = getattr(value, "label", None)
    if isinstance(label, Unspeakable):
        quoting(label.row)
    return encode(value, *rest)

Service.evaluate, app.json_response = broken, encoding
from evaluator_host.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log", command=[sys.executable, "-c", FAULTS]) as running:
        yield running


@pytest.mark.parametrize("fault", ["service", "handler"])
def test_neither_the_answer_nor_the_log_quotes_the_row(broken: Server, fault: str) -> None:
    body = {"evaluator": {"code": EXACT}, "inputs": {"fault": fault, "correct_answer": SECRET}, "outputs": SECRET}
    response = broken.client.post("/v1/evaluate", json=body)
    assert is_problem(response, 500, "internal")
    assert response.headers["x-frame-options"] == "DENY"
    for name in ("Traceback", "RuntimeError", "KeyError", "evaluator_host", SECRET):
        assert name not in response.text
    for said in ("RuntimeError", "in quoting", "KeyError"):  # the log has the fault's kind, place and cause
        eventually(lambda said=said: said in broken.log)  # type: ignore[misc]
    assert SECRET not in broken.log
    assert broken.client.post("/v1/evaluate", json=BODY).json()["score"] == 1.0


def test_a_task_that_nobody_waits_for_is_logged_without_data_too(broken: Server) -> None:
    body = {"evaluator": {"code": EXACT}, "inputs": {"fault": "task", "correct_answer": SECRET}, "outputs": SECRET}
    assert broken.client.post("/v1/evaluate", json=body).json()["score"] == 1.0
    # asyncio logs the exception when the task is garbage-collected; these calls bring a collection about
    for _ in range(3):
        broken.client.post("/v1/evaluate", json=BODY)
    eventually(lambda: "Task exception was never retrieved" in broken.log)
    assert SECRET not in broken.log


@pytest.mark.long
def test_a_debugging_operator_sees_what_exceptions_say(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = tmp_path_factory.mktemp("server") / "log"
    environment = {"EVALUATOR_HOST_DEBUG": "1"}
    with Server(log=log, command=[sys.executable, "-c", FAULTS], environment=environment) as server:
        body = {"evaluator": {"code": EXACT}, "inputs": {"fault": "service", "correct_answer": SECRET}}
        assert is_problem(server.client.post("/v1/evaluate", json=body), 500, "internal")
        eventually(lambda: "no idea what to do" in server.log)


def test_nothing_of_a_request_is_logged_by_default(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(log=log) as server:
        printing = "def evaluate(inputs, outputs, trace):\n    print(outputs)\n    raise ValueError(outputs)\n"
        server.client.post("/v1/evaluate", json={"evaluator": {"code": printing}, "outputs": SECRET})
        server.client.post("/v1/evaluate", json={"evaluator": {"code": SECRET * 10}, "outputs": SECRET})
        server.client.post("/v1/evaluate", json={SECRET: 1, "evaluator": {"code": EXACT, "packages": [SECRET]}})
        server.client.post(f"/v1/{SECRET}?x={SECRET}", content=SECRET, headers={SECRET: SECRET})
    assert SECRET not in server.log

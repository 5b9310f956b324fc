"""Real clients work with granted models, and attacks on the gateway fail."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.model_grants import ModelTerms
from evaluator_host.platform.evaluators.judges import JudgeIn
from evaluator_host.platform.models.service import ModelService
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Row
from evaluator_host.types.models import RegisteredModel
from evaluator_host.types.outcome import ErrorCode
from tests.model_server import ModelServer, Reply, error_body
from tests.models.conftest import KEY, Granting, granting_on
from tests.models.judges import ASK, NODE, ONE, node_judge, python_judge
from tests.ordinary_user import run_as_ordinary_user
from tests.tools import TOOLS, tool_folders

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

OVER_DOCKER = {"openai": ("openai==3.3.0",)}
"""Clients that are tried with Docker. All clients work in the same way on both backends, so one client with streams is
enough to show that the connection works."""
RAW = """
import os, socket, urllib.parse

def evaluate(inputs, outputs, trace):
    place = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.settimeout(8)
        connection.sendall(outputs.replace("{host}", place.netloc).encode())
        answer = b""
        try:
            while data := connection.recv(65536):
                answer += data
        except OSError as error:
            answer += f" {type(error).__name__}".encode()
    return {"score": 1.0, "reason": answer.decode("utf-8", "replace")[:4000]}
"""
_BODY = json.dumps({"model": "judge", "messages": [{"role": "user", "content": "smuggled"}]})


@pytest.mark.long
@pytest.mark.parametrize(
    ("granting", "name"),
    [("bubblewrap", "anthropic"), *(("docker", name) for name in OVER_DOCKER)],
    indirect=["granting"],
)
async def test_real_clients_work_unchanged(granting: Granting, name: str) -> None:
    """Real clients work unchanged.

    The test tries one client for each header that can contain the key. The test of recorded answers tries all clients,
    and test_pasted_judges.py tries further clients.
    """
    judge = python_judge(name)
    if granting.service.pool.backend.name == "docker":
        judge = replace(judge, packages=OVER_DOCKER[name])
    result = await granting.score(judge)
    assert (result.score, result.error) == (1.0, None)
    assert result.usage is not None
    assert result.usage.requests >= 1
    assert result.usage.input_tokens > 0
    assert result.usage.cost > 0
    assert granting.server.bodies[-1]["model"] == "real-name"
    headers = {name.lower(): value for name, value in granting.server.headers[-1].items()}
    assert KEY in headers.get("authorization", headers.get("x-api-key", ""))


async def test_a_judge_reads_the_outputs_of_the_row_and_not_an_older_column(granted: Granting) -> None:
    prompt = "{{ output }}, {{ outputs }}, {{ item.output }}, {{ item.outputs | default('none') }}"
    judge = JudgeIn.model_validate({"model": "judge", "prompt": prompt}).to_model(Evaluator(""))
    for row, asked in (
        (Row({"output": "old"}, "new"), "new, new, new, none"),
        (Row({"output": "old", "outputs": "older"}, "new"), "new, new, new, new"),
        (Row({"output": "old"}), "old, old, old, none"),
    ):
        assert (await granted.service.evaluate(judge, row, caller=Caller(terms=ModelTerms()))).error is None
        assert granted.server.asked[-1] == asked


async def test_a_model_is_tested_by_one_short_question(granted: Granting) -> None:
    models = ModelService(granted.service.settings, granted.store)
    for name in ("judge", "claude"):
        tested = await models.test_model("default", name)
        assert (tested.ok, tested.output, tested.error) == (True, "answer to Answer with the word ok.", None)
        assert tested.cost is not None
        assert tested.cost > 0
    assert "anthropic-version" in {header.lower() for header in granted.server.headers[-1]}
    await models.directory.add("default", RegisteredModel("down", "http://127.0.0.1:1/v1", model="real"))
    down = await models.test_model("default", "down")
    await models.directory.delete("default", "down")
    assert (down.ok, down.output) == (False, None)
    refused = "nothing answers at the model's address: the connection was refused; start its server, or correct the URL"
    assert down.error == refused


async def test_a_judge_whose_model_does_not_answer_is_not_at_fault(granted: Granting) -> None:
    models = ModelService(granted.service.settings, granted.store)
    judge = JudgeIn.model_validate({"model": "away", "prompt": "{{ outputs }}"}).to_model(Evaluator(""))
    await models.directory.add("default", RegisteredModel("away", "http://127.0.0.1:1/v1", model="real", retries=0))
    error = (await granted.score(judge)).error
    await models.directory.delete("default", "away")
    assert (error.code, error.type, error.traceback) == (ErrorCode.TARGET_FAILED, None, None)
    assert error.message.startswith("nothing answers at the model's address")


@pytest.mark.long
async def test_errors_and_retries_are_the_providers(provider: ModelServer, tmp_path: Path) -> None:
    def faults(question: str, attempt: int) -> Reply | int | None:
        if question == "echo":
            return Reply(401, error_body(f"Incorrect API key provided: {KEY}"))
        return 503 if question == "later" and attempt < 3 else None

    with ModelServer(key=KEY, faults=faults, plays_all=True) as faulty:
        async with granting_on("bubblewrap", faulty, tmp_path) as granting:
            echoed = await granting.score(ONE, "echo")
            assert echoed.score == 0.0
            assert json.loads(echoed.reason)["error"]["message"] == "Incorrect API key provided: [masked]"
            later = await granting.score(ONE, "later")
            assert (later.score, later.usage.requests, len(faulty.asked)) == (1.0, 1, 4)


async def test_code_without_a_grant_has_no_address(granted: Granting) -> None:
    code = "import os\ndef evaluate(inputs, outputs, trace):\n    return float('OPENAI_BASE_URL' in os.environ)\n"
    assert (await granted.score(Evaluator(code))).score == 0.0


async def test_an_unknown_model_is_refused_before_anything_runs(granted: Granting) -> None:
    with pytest.raises(InvalidRequest, match="no model 'other'") as refused:
        await granted.service.check(Evaluator(ONE, models=("other",)))
    assert "the models are: claude, judge" in refused.value.problems[0].hint


async def test_only_granted_models_are_answered_under_the_names_that_were_given(granted: Granting) -> None:
    code = ASK + (
        "def evaluate(inputs, outputs, trace):\n"
        "    return [ask(name, 'x')[0] for name in ('gpt-4o', 'real-name', 'claude', 'other')] == eval(outputs)\n"
    )
    named = Evaluator(code, models=("gpt-4o=judge",))
    assert (await granted.score(named, "[200, 404, 404, 404]")).score == 1
    every = Evaluator(code, models=("*=judge",))
    assert (await granted.score(every, "[200, 200, 200, 200]")).score == 1
    plain = Evaluator(code, models=("judge",))
    assert (await granted.score(plain, "[404, 200, 404, 404]")).score == 1


async def test_a_parameter_that_is_a_client_gets_a_client_of_the_granted_model(granted: Granting) -> None:
    code = "from openai import OpenAI\n\ndef score(client: OpenAI, output):\n    return client.at.startswith('http')\n"
    own = "import os\n\nclass OpenAI:\n    def __init__(self):\n        self.at = os.environ['OPENAI_BASE_URL']\n"
    assert (await granted.score(Evaluator(code, models=("judge",), files={"openai.py": own}))).score == 1


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        ("CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n", "HTTP/1.1 403"),
        ("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 403"),
        ("GET /v1/models HTTP/1.1\r\nHost: metadata.internal\r\n\r\n", "HTTP/1.1 421"),
        ("GET /v1/models HTTP/1.1\r\nHost: {host}\r\nHost: example.com\r\n\r\n", "HTTP/1.1 400"),
        ("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n", "HTTP/1.1 404"),
        ("POST /v1/../v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 404"),
        (
            (
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: {{host}}\r\nContent-Length: 4\r\n"
                f"Transfer-Encoding: chunked\r\n\r\n{len(_BODY):x}\r\n{_BODY}\r\n0\r\n\r\n"
            ),
            "HTTP/1.1 400",
        ),
        ("POST /v1/embeddings HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999\r\n\r\n" + "x" * 9_000_000, "413"),
        ("GET /" + "a" * 40_000 + " HTTP/1.1\r\nHost: {host}\r\n\r\n", "HTTP/1.1 4"),
        ("\x16\x03\x01 no http\r\n\r\n", "HTTP/1.1 400"),
    ],
)
async def test_nothing_but_a_request_to_a_granted_model_is_served(granted: Granting, sent: str, answers: str) -> None:
    before = len(granted.server.asked)
    result = await granted.score(RAW, sent)
    assert answers in result.reason[:40]
    assert len(granted.server.asked) == before


async def test_a_second_request_behind_the_first_is_dropped(granted: Granting) -> None:
    head = (
        f"HTTP/1.1\r\nHost: {{host}}\r\nContent-Type: application/json\r\nContent-Length: {len(_BODY)}\r\n\r\n{_BODY}"
    )
    before = len(granted.server.asked)
    result = await granted.score(
        RAW, f"GET /v1/models HTTP/1.1\r\nHost: {{host}}\r\n\r\nPOST /v1/chat/completions {head}"
    )
    assert result.reason.count("HTTP/1.1") == 1
    assert "judge" in result.reason
    assert len(granted.server.asked) == before


async def test_nothing_is_asked_while_loading_or_after_a_row(granting: Granting) -> None:
    code = ASK + (
        "import signal, subprocess, sys, time\n"
        "STATUS, BODY = ask('judge', 'while loading')\n"
        "def evaluate(inputs, outputs, trace):\n"
        "    if outputs == 'leave':\n"
        "        code = f'import time, os; time.sleep(0.3); {SOURCE}; ask(\\'judge\\', \\'after the row\\')'\n"
        "        if os.fork() == 0:\n"
        "            os.setsid()\n"
        "            time.sleep(0.3)\n"
        "            ask('judge', 'after the row')\n"
        "            os._exit(0)\n"
        "    else:\n"
        "        time.sleep(0.6)\n"
        "    return {'score': float(STATUS == 403), 'reason': BODY['error']['code']}\n"
    ).replace(
        "        code = f'import time, os; time.sleep(0.3); {SOURCE}; ask(\\'judge\\', \\'after the row\\')'\n", ""
    )
    evaluator = Evaluator(code, models=("judge",))
    before = len(granting.server.asked)
    for outputs in ("leave", "wait"):
        result = await granting.score(evaluator, outputs)
        assert (result.score, result.reason, result.usage.requests) == (1.0, "not_while_loading", 0)
    assert len(granting.server.asked) == before


async def test_rows_of_a_batch_may_share_a_client(granting: Granting) -> None:
    code = (
        "import http.client, json, os, urllib.parse\n"
        "place = urllib.parse.urlsplit(os.environ['OPENAI_BASE_URL'])\n"
        "kept = http.client.HTTPConnection(place.netloc)\n"
        "def evaluate(inputs, outputs, trace):\n"
        "    body = json.dumps({'model': 'judge', 'messages': [{'role': 'user', 'content': outputs}]})\n"
        "    kept.request('POST', place.path + '/chat/completions', body)\n"
        "    said = json.load(kept.getresponse())['choices'][0]['message']['content']\n"
        "    return float(said == 'answer to ' + outputs)\n"
    )
    rows = [Row({}, f"batch {n}") for n in range(8)]
    found = await granting.service.evaluate_batch(Evaluator(code, models=("judge",)), rows, isolation=Isolation.BATCH)
    assert [one.score for one in found] == [1.0] * 8
    assert [one.usage.requests for one in found] == [1] * 8


@pytest.mark.long
async def test_waiting_for_a_model_is_not_the_rows_time(provider: ModelServer, tmp_path: Path) -> None:
    def faults(question: str, attempt: int) -> float | None:
        return 2.5 if question == "slow" else None

    with ModelServer(key=KEY, faults=faults, plays_all=True) as slow:
        async with granting_on("bubblewrap", slow, tmp_path, model_wait_s=4.0) as granting:
            limits = replace(Evaluator("").limits, timeout_s=1.0)
            patient = await granting.score(Evaluator(ONE, models=("judge",), limits=limits), "slow")
            assert (patient.score, patient.error) == (1.0, None)
            assert patient.usage.wait_ms >= 2500
            twice = ASK + (
                "def evaluate(inputs, outputs, trace):\n    return [ask('judge', 'slow')[0] for _ in range(2)][1] == 504\n"
            )
            result = await granting.score(Evaluator(twice, models=("judge",), limits=limits))
            assert (result.score, result.error) == (1, None)
            spins = (
                "import threading\n"
                + ASK
                + (
                    "def evaluate(inputs, outputs, trace):\n"
                    "    threading.Thread(target=ask, args=('judge', 'slow')).start()\n"
                    "    while True: pass\n"
                )
            )
            assert (await granting.score(Evaluator(spins, models=("judge",), limits=limits))).error.code == "timeout"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("granting", "name"), [*(("bubblewrap", name) for name in NODE), ("docker", "fetch")], indirect=["granting"]
)
async def test_real_clients_of_node_work_unchanged(granting: Granting, name: str) -> None:
    for text in ("one", "two"):
        result = await granting.score(node_judge(name), text)
        assert (result.score, result.error) == (1, None)
        assert result.usage.requests == {"openai": 3, "fetch": 2}[name]


async def test_code_without_a_model_can_make_a_client_of_node(granted: Granting) -> None:
    code = """
import OpenAI from 'openai';
const client = new OpenAI({maxRetries: 0});
export async function evaluate(inputs, outputs, trace) {
  return outputs === 'ask' ? (await client.models.list()).data.length : 1;
}
"""
    judge = replace(node_judge("openai"), code=code, models=())
    assert (await granted.score(judge, "4")).score == 1
    asked = await granted.score(judge, "ask")
    assert "name it in `models`" in asked.error.hint


async def test_rows_of_javascript_ask_for_themselves_only(granting: Granting) -> None:
    code = """
const ask = (text) => fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
  method: 'POST', headers: {'Content-Type': 'application/json'},
  body: JSON.stringify({model: 'judge', messages: [{role: 'user', content: text}]}),
}).then((answer) => answer.status, () => 0);

export async function evaluate(inputs, outputs, trace) {
  if (outputs === 'leave') setInterval(() => ask('after the row'), 5);
  else await new Promise((resolve) => setTimeout(resolve, 300));
  return outputs === 'leave' || (await ask(outputs)) === 200;
}
"""
    evaluator = Evaluator(code, language=Language.JAVASCRIPT, models=("judge",))
    rows = [Row({}, "leave" if n % 2 else f"row {n}") for n in range(6)]
    for isolation in Isolation:
        before = len(granting.server.asked)
        found = await granting.service.evaluate_batch(evaluator, rows, isolation=isolation)
        assert [one.score for one in found] == [1] * 6
        assert [one.usage.requests for one in found] == [1, 0] * 3
        assert sorted(granting.server.asked[before:]) == ["row 0", "row 2", "row 4"]


_ORDINARY = """
import asyncio, shutil, sys
from pathlib import Path
from evaluator_host.engine.config.settings import ModelEndpoint, Settings
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.platform.models.judges import open_judges
from evaluator_host.engine.opening import open_engine

async def main(url, code, key, *tools):
    data = Path("data").resolve()
    for tool in tools:
        shutil.copytree(tool, data / "toolchain" / Path(tool).name)
    models = {"judge": ModelEndpoint(base_url=url, key=key)}
    settings = Settings(data_dir=data, sandbox="bubblewrap", models=models)
    async with open_judges(settings, None) as judges, open_engine(settings, models=judges) as service:
        result = await service.evaluate(Evaluator(code, models=("judge",)), Row({}, "hello"))
        print(result.score, result.usage.requests)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.long
async def test_an_ordinary_user_grants_models_too(granted: Granting) -> None:
    arguments = (_ORDINARY, granted.server.url, ONE, KEY, *tool_folders())
    assert await asyncio.to_thread(run_as_ordinary_user, *arguments, also=(TOOLS,)) == "1.0 1\n"


async def test_code_without_a_sandbox_is_granted_nothing(provider: ModelServer, tmp_path: Path) -> None:
    async with granting_on("none", provider, tmp_path) as open_host:
        with pytest.raises(InvalidRequest, match="this host runs code without a sandbox"):
            await open_host.score("def evaluate(inputs, outputs, trace):\n    return 1\n")

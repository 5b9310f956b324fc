"""A secret that was granted to code must not appear in recorded answers, their export, results, or the database's file."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.model_grants import ModelTerms
from evaluator_host.platform.models.service import ModelService
from evaluator_host.types.evaluator import Contract, Evaluator, Replay, Row
from tests.model_server import ModelServer
from tests.models.conftest import Granting, granting_on

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]
SECRET = 'tok-77aa51c0 fee9/"<d3e-0badcafe'
FORMS = (
    SECRET,
    "77aa51c0",
    "0badcafe",
    *(base64.b64encode(f"{b}{SECRET}".encode()).decode().rstrip("=") for b in ("", "Bearer ")),
)
CODE = """
import base64, json, os, urllib.request

TOKEN = os.environ["TOK"]

def evaluate(inputs, outputs, trace):
    body = json.loads(json.dumps(inputs["body"]).replace("BEARER", base64.b64encode(f"Bearer {TOKEN}".encode()).decode())
        .replace("TOKEN", json.dumps(TOKEN)[1:-1]))
    asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + inputs["path"], json.dumps({"model": "judge", **body}).encode())
    said = urllib.request.urlopen(asked).read().decode()
    if not body.get("stream"):
        return {"score": 1, "reason": json.dumps(json.loads(said))}
    events = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: {")]
    return {"score": 1, "reason": "".join(one["delta"].get("content", "") for event in events for one in event["choices"])}
"""
EVALUATOR = Evaluator(CODE, models=("judge",), secrets={"TOK": "crm"})
CHAT = "/chat/completions"


def prompt(text: str, **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], **more}


TOOL = {"type": "function", "function": {"name": "find", "description": "use the key TOKEN", "parameters": {}}}
SCHEMA = {"schema": {"properties": {"TOKEN": {"type": "string"}}}}
BODIES = {
    "prompt": (CHAT, prompt("the key is TOKEN")),
    "base64": (CHAT, prompt("Authorization: Basic BEARER")),
    "tool": (CHAT, prompt("with a tool", tools=[TOOL])),
    "field": (CHAT, prompt("a field", response_format={"type": "json_schema", "json_schema": SCHEMA})),
    "stream": (CHAT, prompt("stream the key TOKEN", stream=True)),
    "responses": ("/responses", {"input": "the key TOKEN"}),
    "embeddings": ("/embeddings", {"input": ["one", "TOKEN"]}),
}


JUDGE = """
import os
from nemo_evaluator_sdk import LLMJudgeMetric

metric = LLMJudgeMetric(
    model={"url": "grant://judge", "name": "judge", "format": "openai"},
    prompt_template={"messages": [{"role": "user", "content": "Judge {{item.said}} by " + os.environ["TOK"]}]},
    scores=[{"name": "quality", "minimum": 1, "maximum": 5}],
)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secret")


@pytest.fixture(scope="module")
async def secretive(provider: ModelServer, folder: Path) -> AsyncIterator[Granting]:
    async with granting_on("bubblewrap", provider, folder, code_secrets=("crm",)) as made:
        await made.store.secrets.set_secret("default", "crm", SECRET)
        yield made


async def score(granting: Granting, name: str, replay: Replay) -> tuple[str, int, int]:
    path, body = BODIES[name]
    row = Row({"path": path, "body": body}, "")
    result = await granting.service.evaluate(EVALUATOR, row, caller=Caller(terms=ModelTerms(replay)))
    assert (result.score, result.error) == (1.0, None)
    assert not [one for one in FORMS if one in repr(result)]
    return result.reason, result.usage.requests, result.usage.replayed


async def exported(granting: Granting) -> list[bytes]:
    models = ModelService(granting.service.settings, granting.store)
    return [line async for line in models.recordings.export("default")]


def files_with_a_secret(folder: Path) -> list[str]:
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert "host.db" in [path.name for path in kept]
    return [path.name for path in kept if any(form.encode() in path.read_bytes() for form in FORMS)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BODIES)
async def test_a_secret_in_a_request_is_sent_and_not_stored(
    secretive: Granting, folder: Path, provider: ModelServer, name: str
) -> None:
    before = await exported(secretive)
    reason, *counts = await score(secretive, name, Replay.PREFER)
    assert counts == [1, 0]
    sent = json.dumps(provider.bodies[-1])
    assert any(json.dumps(form)[1:-1] in sent for form in FORMS)
    (line,) = set(await exported(secretive)) - set(before)
    assert b"[masked]" in line
    assert not [form for form in FORMS if form.encode() in line]
    assert files_with_a_secret(folder) == []
    assert await score(secretive, name, Replay.REQUIRE) == (reason, 0, 1)


@pytest.mark.long
async def test_an_export_answers_on_another_host(secretive: Granting, provider: ModelServer, tmp_path: Path) -> None:
    first = [await score(secretive, name, Replay.PREFER) for name in BODIES]
    lines = await exported(secretive)

    async def sent() -> AsyncIterator[bytes]:
        for line in lines:
            yield line

    async with granting_on("bubblewrap", provider, tmp_path, code_secrets=("crm",)) as other:
        await other.store.secrets.set_secret("default", "crm", SECRET)
        models = ModelService(other.service.settings, other.store)
        assert await models.recordings.import_lines("default", sent()) == len(lines)
        assert [(await score(other, name, Replay.REQUIRE))[0] for name in BODIES] == [one[0] for one in first]
        assert await exported(other) != []
        edited = json.loads(lines[0]) | {"request": {"kind": "openai", "path": CHAT, "body": {}}}
        lines[:] = [json.dumps(edited).encode()]
        await models.recordings.import_lines("default", sent())
        digests = {json.loads(line)["digest"] for line in await exported(other)}
        # the edited request has no masked secrets, so its digest is computed from its content, and differs from all
        # others
        assert len(digests) == len(BODIES) + 1
    assert files_with_a_secret(tmp_path) == []


async def test_a_nemo_judge_sends_requests_with_masked_secrets(
    secretive: Granting, folder: Path, provider: ModelServer
) -> None:
    before = len(provider.bodies)
    evaluator = Evaluator(JUDGE, contract=Contract("nemo"), models=("judge",), secrets={"TOK": "crm"})
    for row, replay in ((Row({"said": "good"}), Replay.PREFER), (Row({"said": "good"}), Replay.REQUIRE)):
        result = await secretive.service.evaluate(evaluator, row, caller=Caller(terms=ModelTerms(replay)))
        (asked,) = result.requests
        assert asked["request"]["messages"][-1]["content"] == "Judge good by [masked]"
        assert not [form for form in FORMS if form in repr(result)]
    assert len(provider.bodies) == before + 1
    assert files_with_a_secret(folder) == []

"""The official MCP client calls the tools for coding agents over standard input and output, with and without a host."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import DATA_DIR
from tests.server import FORKED, Server, new_home

if TYPE_CHECKING:
    from mcp import Client

pytestmark = pytest.mark.engine

EXACT = "def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == inputs['gold'] else 0.0\n"
LEGACY = (
    "def evaluate(app_params, inputs, output, correct_answer):\n    return 1.0 if output == correct_answer else 0.0\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    with Server(log=home / "log", data_dir=new_home(home), environment=FORKED) as running:
        yield running


@asynccontextmanager
async def tools(*arguments: str) -> AsyncIterator["Client"]:
    from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415 - the import takes half a second

    environment = {**os.environ, "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "evaluator_host", "mcp", *arguments], env=environment
    )
    # `errlog` is given, because by default the client uses the standard error from the moment when its module was
    # imported, perhaps that of another test
    async with Client(stdio_client(command, errlog=sys.stderr)) as client:
        yield client


async def used(client: "Client", tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    found = answer.structured_content
    return found["result"] if isinstance(found, dict) and set(found) == {"result"} else found


async def refused(client: "Client", tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return str(answer.content[0].text)  # type: ignore[union-attr]


@pytest.mark.long
async def test_tools_work_without_a_host(tmp_path: Path) -> None:
    rows = [{"gold": n % 2, "answer": 0} for n in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "junk\n")
    async with tools() as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "check",
            "evaluate",
            "evaluate_file",
            "migrate",
        }
        assert (await used(client, "check", code=EXACT))["ok"]
        assert not (await used(client, "check", code="def evaluate(inputs, outputs, trace: return 1"))["ok"]
        assert (await used(client, "evaluate", code=EXACT, inputs={"gold": "a"}, outputs="a"))["score"] == 1.0
        script = "function evaluate(inputs, outputs, trace) { return outputs.length }"
        assert (await used(client, "evaluate", code=script, language="javascript", outputs="abc"))["score"] == 3
        found = await used(
            client, "evaluate_file", code=EXACT, path=str(tmp_path / "rows.jsonl"), mapping={"outputs": "answer"}
        )
        assert (found["rows"], found["mean"], found["lowest"][0]["score"]) == (4, 0.5, 0.0)
        assert found["bad_lines"][0].startswith("line 5: ")
        assert (found["doubt"], found["warnings"]) == (None, [])
        labels = "def evaluate(inputs, outputs, trace):\n    return 'good'\n"
        found = await used(client, "evaluate_file", code=labels, path=str(tmp_path / "rows.jsonl"))
        assert (found["doubt"], found["warnings"][0]["code"]) == ("0 of 4 rows have a score", "no_score")
        migrated = await used(client, "migrate", code=LEGACY)
        assert "def evaluate(inputs, outputs, trace)" in migrated["code"]
        assert migrated["proof"]["verdict"] == "proven", migrated["proof"]
        assert "numpy" in await refused(client, "evaluate", code=EXACT, packages=["numpy"])
        assert "cannot read" in await refused(client, "evaluate_file", code=EXACT, path="/nowhere.jsonl")
        os.mkfifo(tmp_path / "pipe.jsonl")
        told = await refused(client, "evaluate_file", code=EXACT, path=str(tmp_path / "pipe.jsonl"))
        assert "is a folder, a pipe or a device" in told
        assert "did you mean path?" in await refused(client, "evaluate_file", code=EXACT, pth="rows.jsonl")
        assert "it takes code" in await refused(client, "check", code=EXACT, zzz=1)
        told = await refused(client, "evaluate", outputs="a")
        assert "code" in told
        assert "pydantic" not in told
        long = "def evaluate(inputs, outputs, trace):\n    print('x' * 9000)\n    return 1.0\n"
        assert len((await used(client, "evaluate", code=long))["logs"]["stdout"]) < 5000


async def test_tools_work_with_a_host(server: Server) -> None:
    async with tools("--url", server.url) as client:
        saved = await used(client, "save_evaluator", name="exact", code=EXACT, description="one row, one answer")
        again = await used(client, "save_evaluator", name="exact", code=EXACT + "# again\n")
        assert (saved["version"], again["version"]) == (1, 2)
        assert [one["name"] for one in await used(client, "list_evaluators")] == ["exact"]
        assert (await used(client, "get_evaluator", name="exact@1"))["evaluator"]["code"] == EXACT
        rows = "".join(json.dumps({"gold": n, "answer": 0} if n else {"answer": 0}) + "\n" for n in range(3))
        server.client.post(
            "/v1/datasets", params={"name": "rows"}, content=rows, headers={"Content-Type": "application/jsonl"}
        )
        assert [one["name"] for one in await used(client, "list_datasets")] == ["rows"]
        assert await used(client, "read_dataset", name="rows", limit=1) == [{"answer": 0}]
        ran = await used(client, "run_job", evaluators=["exact"], dataset="rows", mapping={"outputs": "answer"})
        assert (ran["status"], ran["statistics"]["evaluators"][0]["failed"]) == ("completed", 1)
        (failure,) = await used(client, "explain_failures", job=ran["job"])
        assert (failure["type"], failure["line"], failure["example"]["index"]) == ("KeyError", 2, 0)
        assert [job["id"] for job in await used(client, "list_jobs")] == [ran["job"]]
        told = await refused(client, "run_job", evaluator=["exact"], dataset="rows")
        assert "run_job has no argument evaluator; did you mean evaluators?" in told
        assert "did you mean rows?" in await refused(client, "read_dataset", name="row")
        assert "not_found" in await refused(client, "explain_failures", job="none")


@pytest.mark.long
def test_a_host_that_does_not_answer_is_named() -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with subprocess.Popen(
        [sys.executable, "-m", "evaluator_host", "mcp", "--url", "http://127.0.0.1:9"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n")
        process.stdin.flush()
        assert "nothing answers at http://127.0.0.1:9" in process.stderr.readline()
        assert process.wait(20) == 3

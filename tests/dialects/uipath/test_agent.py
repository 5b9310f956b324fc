"""The host runs the right function of a project's agent, sends the sandbox the project without its secrets, and reads
the agent's answer.
"""

import base64
import dataclasses
import json
import random
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Limits
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult, Status
from evaluator_host.vendors.uipath.agent import (
    AGENT_LIMITS,
    AgentFunction,
    agent_program,
    execution_of,
    find_entry_point,
)
from tests.dialects.uipath.projects import make_project, write
from tests.unit.results import result_of


def packed(root: Path) -> dict[str, Any]:
    """Pack the agent in a project, and return what the sandbox unpacks."""
    program = agent_program(root, AgentFunction("main.py", "main"), packages=(), limits=AGENT_LIMITS)
    (text,) = re.findall(r'b64decode\("([A-Za-z0-9+/=]+)"\)', program.code)
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return found


def test_the_project_goes_along_without_secrets_and_answers(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    for name in (
        ".env.json",
        ".git/config.json",
        "key.pem",
        ".venv/pyvenv.cfg",
        "env/pyvenv.cfg",
        "env/lib.py",
        "node_modules/x.json",
    ):
        write(root / name, "secret")
    write(tmp_path / "outside.txt", "secret")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "folder").symlink_to(tmp_path)
    write(root / "prompts" / "first.md", "Hello")
    found = packed(root)
    assert sorted(found["files"]) == ["greeting.txt", "main.py", "prompts/first.md", "tools.py", "uipath.json"]
    assert base64.b64decode(found["files"]["prompts/first.md"]) == b"Hello"
    assert (found["file"], found["function"]) == ("main.py", "main")


def test_a_project_that_is_too_large_says_what_is(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    write(root / "large.txt", base64.b64encode(random.Random(1).randbytes(1_000_000)).decode())
    with pytest.raises(InvalidRequest, match=r"over the limit of 878 KB; its largest files are large\.txt"):
        packed(root)
    (root / "large.txt").write_bytes(bytes(40 << 20))
    with pytest.raises(InvalidRequest, match="more than 2000 files or 32 MB"):
        packed(root)


@pytest.mark.parametrize(
    ("config", "name", "said"),
    [
        ({}, None, "does not name a function to run"),
        ({"functions": {"a": "main.py:main", "b": "tools.py:x"}}, None, "choose one with --entrypoint: a, b"),
        ({"functions": {"main": "main.py:main"}}, "mian", "does not name a function 'mian'; did you mean main?"),
        ({"functions": {"main": "main.py"}}, None, "is 'main.py', not FILE.py:FUNCTION"),
        ({"functions": {"main": 3}}, None, "is 3, not FILE.py:FUNCTION"),
        ({"functions": {"main": "gone.py:main"}}, None, "there is no such file"),
        ({"functions": {"main": "../outside.py:main"}}, None, "there is no such file"),
    ],
)
def test_a_function_that_cannot_be_found(tmp_path: Path, config: Any, name: str | None, said: str) -> None:
    write(tmp_path / "outside.py", "")
    root = make_project(tmp_path / "project")
    write(root / "uipath.json", json.dumps(config))
    with pytest.raises(InvalidRequest) as caught:
        find_entry_point(root, name)
    assert said in caught.value.detail


def test_the_function_that_is_named(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    write(root / "uipath.json", json.dumps({"functions": {"a": "main.py:main", "b": "tools.py:described"}}))
    assert find_entry_point(root, "b") == AgentFunction("tools.py", "described")


def told(**details: Any) -> EvaluationResult:
    return result_of(status=Status.SCORED, score=1.0, value={"score": 1.0, "details": details})


def test_an_answer_is_read() -> None:
    found = execution_of("a", told(output={"x": 1}, spans=[{"name": "s"}, 3], error=None, seconds=0.5))
    assert (found.item, found.output, found.trace, found.error, found.seconds) == (
        "a", {"x": 1}, {"spans": [{"name": "s"}]}, None, 0.5,
    )  # fmt: skip
    failed = execution_of("a", told(output=3, spans=[], error="ModuleNotFoundError: no x", seconds="1"))
    assert (failed.output, failed.seconds) == (None, None)
    assert failed.error == "ModuleNotFoundError: no x; pin its package: --package NAME==VERSION"


@pytest.mark.parametrize("value", [None, 3, {"details": 3}, {"details": {"spans": 3}}, {"score": 1.0}])
def test_an_answer_that_the_program_did_not_give_is_an_error(value: Any) -> None:
    found = execution_of("a", result_of(status=Status.SCORED, score=1.0, value=value))
    assert found.error == "crashed: the sandbox did not send the result of an agent"


def test_whatever_else_became_of_the_row_is_the_agents_error() -> None:
    error = EvaluationError(ErrorCode.TIMEOUT, "the row took longer than 1 s")
    found = execution_of("a", result_of(status=Status.FAILED, error=error))
    assert found.error == "timeout: the row took longer than 1 s"


def test_the_limits_of_an_agent_are_its_own(tmp_path: Path) -> None:
    limits = dataclasses.replace(AGENT_LIMITS, timeout_s=3.0)
    program = agent_program(make_project(tmp_path), AgentFunction("main.py", "main"), packages=("a==1",), limits=limits)
    assert (program.limits, program.packages) == (Limits(timeout_s=3.0, memory_mb=512, result_kb=8192), ("a==1",))

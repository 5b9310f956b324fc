"""Starts the JavaScript runner as a plain process, with the same flags and tools as backends."""

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from evaluator_host.engine.environments import toolchain
from evaluator_host.engine.packages.tools import installed_tools
from evaluator_host.engine.sandbox.protocol import Frame
from tests.runners.conftest import REPOSITORY, RUNTIMES, RunnerProcess

JAVASCRIPT = RUNTIMES / "javascript"
DATA_DIR = REPOSITORY / ".data"  # this folder keeps esbuild from one run to the next; git ignores it


SCRATCH = """function evaluate(inputs, outputs, trace) {
  return new Function('inputs', 'outputs', 'trace', inputs.statement)(inputs, outputs, trace)
}"""


@cache
def built_runner() -> Path:
    """Return the folder of the built runner, from which sandboxes start it."""
    return asyncio.run(toolchain.ensure_javascript_runner(DATA_DIR))


def start_runner_process(esbuild: Path | None, *arguments: str) -> RunnerProcess:
    """Start a runner with the same flags as backends."""
    flags = json.loads((JAVASCRIPT / "node_flags.json").read_text("utf-8"))
    tools = [] if esbuild is None else ["--esbuild", str(esbuild)]
    return RunnerProcess([str(toolchain.node_path()), *flags, str(built_runner() / "runner.cjs"), *tools, *arguments])


@pytest.fixture(scope="session")
def esbuild() -> Path:
    return asyncio.run(toolchain.ensure_esbuild(DATA_DIR))


@pytest.fixture
def start(esbuild: Path) -> Iterator[Callable[..., RunnerProcess]]:
    """Yield a function that starts a runner with the given arguments; the runners are closed after the test."""
    started: list[RunnerProcess] = []

    def start_one(*arguments: str, with_esbuild: bool = True) -> RunnerProcess:
        started.append(start_runner_process(esbuild if with_esbuild else None, *arguments))
        return started[-1]

    yield start_one
    for runner in started:
        runner.close()


@pytest.fixture
def load(start: Callable[..., RunnerProcess]) -> Callable[..., RunnerProcess]:
    """Return a function that starts a runner, loads code, and fails if the code does not load."""

    def load_one(
        code: str, *, language: str = "javascript", arguments: tuple[str, ...] = (), **header: object
    ) -> RunnerProcess:
        runner = start(*arguments)
        answer = runner.load(code, language=language, **header)
        assert answer.type == "loaded", answer
        return runner

    return load_one


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package set like those that the builder makes, with real packages installed by npm."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "package.json").write_text("{}")
    pins = ["lodash@4.17.21", "nanoid@5.1.5", "left-pad@1.3.0"]
    command = (*installed_tools().npm_command, "install", "--ignore-scripts", "--no-audit", "--no-fund", *pins)
    code, output = asyncio.run(toolchain._run(command, folder))
    assert code == 0, output
    return folder


@pytest.fixture(scope="module")
def scratch(esbuild: Path) -> Iterator[Callable[..., Frame]]:
    """Yield a function that runs a function's body as one row, in a runner that all tests of the module share."""
    runners: list[RunnerProcess] = []

    def run(statement: str, *, timeout_s: float = 10.0, share: str | None = None) -> Frame:
        if not runners or runners[-1].process.poll() is not None:
            runners.append(start_runner_process(esbuild))
            answer = runners[-1].load(SCRATCH, language="javascript", limits={"result_kb": 256})
            assert answer.type == "loaded", answer
        return runners[-1].call({"statement": statement}, None, None, timeout_s=timeout_s, share=share)

    yield run
    for runner in runners:
        runner.close()

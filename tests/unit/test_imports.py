"""Each command imports only the modules that it needs, because imports take most of the time of a short command, and of
the shell's completion.
"""

import json
import subprocess
import sys
from collections.abc import Mapping

import pytest

pytestmark = pytest.mark.slow
STACK = (
    "sqlalchemy",
    "alembic",
    "fastapi",
    "uvicorn",
    "evaluator_host.server.server",
    "evaluator_host.platform.store.store",
)
RARE = ("yaml", "jinja2", "tree_sitter", "cryptography", "opentelemetry", "google.protobuf", "docker", "uvloop")
DATA = ("pyarrow", "pandas", "numpy", "openpyxl")
HOST = (
    "evaluator_host.engine.service",
    "evaluator_host.engine.sandbox",
    "evaluator_host.engine.environments",
    "prometheus_client",
)
CLIENT = ("httpx", "evaluator_host.client")
COMMANDS = (
    "evaluator_host.cli.run",
    "evaluator_host.cli.serve",
    "evaluator_host.platform.jobs.commands",
    "evaluator_host.platform.terminal.options",
)
NEVER = (*STACK, *RARE, *DATA)
CLI = "import sys; from evaluator_host.__main__ import main; sys.argv = ['evaluator-host', *{words}]; main()"
COMPLETION = {
    "_EVALUATOR_HOST_COMPLETE": "complete_bash",
    "_TYPER_COMPLETE_ARGS": "evaluator-host ",
    "COMP_WORDS": "evaluator-host ",
    "COMP_CWORD": "1",
}


def imported(program: str, env: Mapping[str, str] | None = None) -> tuple[set[str], str]:
    """Run a program. Return the names of the modules that it has imported when it ends, and its output."""
    program = (
        "import atexit, json, sys; atexit.register(lambda: print(json.dumps([*sys.modules]), file=sys.stderr))\n"
        + program
    )
    done = subprocess.run([sys.executable, "-c", program], env=env and dict(env), capture_output=True, text=True)
    return set(json.loads(done.stderr.splitlines()[-1])), done.stdout


def test_the_help_imports_no_command() -> None:
    modules, text = imported(CLI.format(words=["--help"]))
    assert "Write and score evaluators" in text
    assert sorted(modules & {*NEVER, *HOST, *CLIENT, *COMMANDS, "pydantic_settings"}) == []


def test_the_version_imports_no_command() -> None:
    modules, text = imported(CLI.format(words=["--version"]))
    assert text.startswith("evaluator-host ")
    assert sorted(modules & {*NEVER, *HOST, *CLIENT, *COMMANDS, "pydantic_settings"}) == []


def test_completing_a_command_imports_none() -> None:
    modules, text = imported(CLI.format(words=[]), env=COMPLETION)
    assert {"jobs", "run", "serve", "uipath"} <= set(text.split())
    assert sorted(modules & {*NEVER, *HOST, *CLIENT, *COMMANDS, "pydantic_settings"}) == []


@pytest.mark.long
def test_completing_an_option_imports_its_command_alone() -> None:
    words = "evaluator-host jobs list --li"
    env = COMPLETION | {"_TYPER_COMPLETE_ARGS": words, "COMP_WORDS": words, "COMP_CWORD": "3"}
    modules, text = imported(CLI.format(words=[]), env=env)
    assert text.split() == ["--limit"]
    assert sorted(modules & {*NEVER, *HOST}) == []


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "list"), ("datasets", "list"), ("evaluators", "list"), ("labels", "list"), ("models", "list"),
        ("schedules", "list"), ("secrets", "list"), ("alerts", "list"),
    ],
    ids="-".join,
)  # fmt: skip
def test_a_call_of_a_host_imports_none_of_its_parts(words: tuple[str, ...]) -> None:
    modules, _ = imported(CLI.format(words=[*words, "--url", "http://127.0.0.1:9"]))
    assert "httpx" in modules
    assert sorted(modules & {*NEVER, *HOST, "evaluator_host.platform.evaluators.evaluator_files"}) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", ["run", "check", "test", "watch"])
def test_scoring_here_imports_neither_server_nor_client(command: str) -> None:
    modules, text = imported(CLI.format(words=[command, "--help"]))
    assert "Usage: evaluator-host" in text
    assert sorted(modules & {*STACK, *DATA, *CLIENT, "yaml", "jinja2", "tree_sitter", "rich.progress"}) == []


@pytest.mark.sampled(8)
@pytest.mark.parametrize("command", ["serve", "doctor", "setup", "packages", "mcp", "backup"])
def test_the_help_of_a_command_imports_no_server(command: str) -> None:
    modules, text = imported(CLI.format(words=[command, "--help"]))
    assert "Usage: evaluator-host" in text
    assert sorted(modules & {"fastapi", "uvicorn", "httpx", *DATA}) == []


def test_the_help_of_selftest_needs_no_extra() -> None:
    absent = ("docker", "mcp", "obstore", "psycopg", "pyarrow", "ray", "opentelemetry.sdk")
    _, text = imported(
        f"import sys; sys.modules |= dict.fromkeys({absent})\n" + CLI.format(words=["selftest", "--help"])
    )
    assert "Attack this deployment" in text


@pytest.mark.long
@pytest.mark.parametrize("command", ["list", "create", "revoke"])
def test_keys_import_no_client_of_a_host(command: str) -> None:
    modules, _ = imported(CLI.format(words=["keys", command, "--help"]))
    assert sorted(modules & {*CLIENT}) == []


@pytest.mark.long
def test_a_server_imports_no_part_that_few_hosts_need() -> None:
    program = (
        "import evaluator_host.server.server, evaluator_host.server.workers\n"
        "from evaluator_host.engine.config.settings import Settings\nfrom evaluator_host.server.app import describe_app\n"
        "describe_app(Settings())"
    )
    modules, _ = imported(program)
    assert {"fastapi", "sqlalchemy", "evaluator_host.platform.store.schema"} <= modules
    assert (
        sorted(
            modules & {"alembic", "mako", "google.protobuf", "docker", "yaml", "psycopg", "evaluator_host.sdk", *DATA}
        )
        == []
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("evaluator_host", (*NEVER, *HOST, *CLIENT, "pydantic", "typer")),
        ("evaluator_host.client", (*NEVER, *HOST, "typer", "pydantic_settings")),
        ("evaluator_host.integrations.pytest_plugin", (*NEVER, *HOST, *CLIENT, "pydantic", "typer")),
    ],
)
def test_a_module_imports_what_it_needs(module: str, absent: tuple[str, ...]) -> None:
    modules, _ = imported(f"import {module}")
    assert module in modules
    assert sorted(modules & set(absent)) == []

"""Network access for a sandbox. The tests check what the sandbox can reach, that no other call gets this access, and
that only UiPath's commands can request it.
"""

import ast
import dataclasses
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

import evaluator_host
from evaluator_host.cli.main import command_line
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.sandbox.bubblewrap.mounts import network_files
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.engine.service.prepared import prepare
from evaluator_host.platform.evaluators.bodies import EvaluatorIn, RowIn
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator
from tests.dialects.uipath.projects import make_project, write
from tests.no_packages import NoPackages

PACKAGE = Path(evaluator_host.__file__).parent


def test_its_sandboxes_are_given_to_no_other_call() -> None:
    ordinary = prepare(
        Evaluator("def evaluate(inputs, outputs, trace): return 1"),
        settings=Settings(),
        pins=PinLookup(NoPackages().providers),
        workspace="w",
    )
    connected = ordinary.with_network()
    assert (ordinary.request.spec.network, connected.request.spec.network) == (False, True)
    assert connected.request.key != ordinary.request.key
    assert connected.request.spec != ordinary.request.spec, (
        "the pool finds waiting sandboxes by their spec, so the specs must differ"
    )
    assert dataclasses.replace(connected.request.spec, network=False) == ordinary.request.spec
    assert (connected.request.load, connected.evaluator) == (ordinary.request.load, ordinary.evaluator)


def test_it_has_the_machines_resolver_names_and_authorities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert network_files(tmp_path)["resolv.conf"] == network_files(tmp_path)["ssl/certs/ca-certificates.crt"] == b""
    write(tmp_path / "resolv.conf", "nameserver 192.0.2.1\n")
    write(tmp_path / "hosts", "192.0.2.2 model.example\n")
    write(tmp_path / "pki" / "tls" / "certs" / "ca-bundle.crt", "system")
    write(tmp_path / "own.pem", "own")
    files = network_files(tmp_path)
    assert files["resolv.conf"] == b"nameserver 192.0.2.1\n"
    assert files["hosts"] == b"127.0.0.1 localhost sandbox\n::1 localhost\n192.0.2.2 model.example\n"
    assert b"hosts: files dns\n" in files["nsswitch.conf"]
    assert files["ssl/certs/ca-certificates.crt"] == b"system"
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
    assert network_files(tmp_path)["ssl/certs/ca-certificates.crt"] == b"own"


def test_neither_a_request_nor_a_setting_nor_an_evaluator_can_ask_for_it() -> None:
    for where in ({"network": True}, {"limits": {"network": True}}, {"settings": {"network": True}}):
        with pytest.raises(ValidationError, match="network"):
            EvaluatorIn.model_validate({"code": "def evaluate(inputs, outputs, trace): return 1", **where})
    with pytest.raises(ValidationError, match="network"):
        RowIn.model_validate({"inputs": {}, "outputs": 1, "network": True})
    assert {name for name in Settings.model_fields if "network" in name} == OF_GRANTS


# settings for granted hosts: the connections go through the host's proxy, and the sandbox has no network
OF_GRANTS = {"network_hosts", "network_private", "network_mb"}
GRANTING = {
    "types/evaluation.py", "cli/run.py", "cli/check.py", "platform/evaluators/commands.py", "platform/evaluators/bodies.py", "types/outcome.py",
    "engine/config/settings.py",
}  # fmt: skip
COMMANDS = {f"vendors/uipath/cli/{name}.py" for name in ("eval", "run")}


@pytest.mark.slow
def test_only_uipaths_commands_request_network_access() -> None:
    """Only UiPath's commands request network access.

    The test checks in the source which modules have a field or parameter for network access, pass it on, or use it.
    """
    having, asking, calling = set(), set(), set()
    for file in PACKAGE.rglob("*.py"):
        if "node_modules" in file.parts or "network" not in (text := file.read_text("utf-8")):
            continue
        name = str(file.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword) and node.arg in ("network", "allow_network"):
                asking.add(name)
            if isinstance(node, ast.arg) and "network" in node.arg:
                having.add(name)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and "network" in node.target.id:
                having.add(name)
            if isinstance(node, ast.Attribute) and node.attr == "with_network":
                calling.add(name)
    assert having == COMMANDS | GRANTING | {"types/evaluator.py", "engine/service/service.py"}
    # these modules pass on grants of models and hosts
    handing_on = {
        "platform/evaluators/bodies.py",
        "selftest/trial.py",
        "cli/run.py",
        "cli/check.py",
        "platform/evaluators/commands.py",
    }
    assert asking == COMMANDS | handing_on | {"engine/service/prepared.py"}
    assert calling == {"engine/service/service.py"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--url", "http://127.0.0.1:9"), "leave out --url"),
        (("--executions", "executions.json"), "leave out one of them"),
    ],
)
def test_where_no_agent_runs_here_the_option_is_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    root = make_project(tmp_path)
    write(root / "executions.json", "[]")
    asked = ["uipath", "eval", "patterns", "--project", str(root), "--allow-network", *options]
    done = CliRunner().invoke(command_line(), asked)
    assert isinstance(done.exception, InvalidRequest), done.output
    assert said in done.exception.detail

"""All wires (other platforms' APIs) have the same rules for names, commands, `doctor`, and keys in paths. One test is
about a host without wires.
"""

import asyncio
import json
import subprocess
from pathlib import Path

import httpx
import pytest

from evaluator_host.engine.config.settings import Settings, WireOptions
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.wires.routes import named_wires, wire_findings
from evaluator_host.platform.wires.table import wires
from evaluator_host.types.errors import Misconfigured
from tests import forked
from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.wired import SECRET

ROOT = Path(__file__).parents[2]


def command(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return forked.run(("wires", *arguments), env={"PATH": "/usr/bin:/bin", **environment})


def test_wires_are_named_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATOR_HOST_WIRES", " langfuse ,")
    monkeypatch.setenv("EVALUATOR_HOST_WIRE_OPTIONS", json.dumps({"langfuse": {"timeout_s": 3}}))
    ((wire, options),) = named_wires(load_settings())
    assert (wire.name, wire.limit_s(options)) == ("langfuse", 3)
    assert wire.limit_s(WireOptions(timeout_s=60)) == 9  # Langfuse gives up after 10 seconds
    monkeypatch.setenv("EVALUATOR_HOST_WIRE_OPTIONS", json.dumps({"langfuse": {"secret": "short"}}))
    with pytest.raises(Misconfigured):
        load_settings()


def test_an_unknown_wire_is_refused_with_the_nearest() -> None:
    with pytest.raises(Misconfigured, match="did you mean langfuse"):
        named_wires(Settings(wires=("langfuze",)))
    with pytest.raises(Misconfigured, match=r"the wires are coze, .*langfuse"):
        named_wires(Settings(wire_options={"xyz": WireOptions()}))


def test_doctor_tells_of_each_wire() -> None:
    assert wire_findings(Settings()) == []
    (found,) = wire_findings(Settings(wires=("langfuse",), wire_options={"langfuse": WireOptions(secret=SECRET)}))
    assert (found.name, found.ok) == ("wire langfuse", True)
    assert "its secret or a key" in found.detail
    assert not wire_findings(Settings(wires=("none",)))[0].ok


@pytest.mark.parametrize("name", wires())
def test_every_wire_has_a_page_with_its_variable(name: str) -> None:
    page = (ROOT / "docs" / "wires" / f"{name}.md").read_text()
    wire = wires()[name].load()
    assert wire.name == name
    assert f"EVALUATOR_HOST_WIRES={name}" in page or f"EVALUATOR_HOST_WIRES: {name}" in page
    assert wire.variable.split("=")[0].split(" ")[0] in page
    assert "Not tested live: " in page
    assert wire.path in page


@pytest.mark.sampled(3)
@pytest.mark.engine
@pytest.mark.parametrize("name", wires())
def test_check_plays_the_platform(host: Server, keyed: Keyed, name: str) -> None:
    for url, environment in ((host.url, {}), (keyed.url, {"EVALUATOR_HOST_KEY": keyed.key})):
        done = command("check", name, "--url", url, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "-> 20" in done.stdout
        assert url in done.stdout
    assert command("check", name, "--url", keyed.url).returncode == 3


@pytest.mark.engine
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", wires())
def test_check_fails_if_no_host_answers(name: str) -> None:
    assert command("check", name, "--url", "http://127.0.0.1:9").returncode == 3


def test_list_and_check_know_the_names() -> None:
    listed = json.loads(command("list", "--json", EVALUATOR_HOST_WIRES="langfuse").stdout)
    assert [one["name"] for one in listed] == list(wires())
    assert [one["name"] for one in listed if one["on"]] == ["langfuse"]
    assert "did you mean langfuse" in command("check", "langfus").stderr


@pytest.mark.engine
@pytest.mark.parametrize("name", wires())
def test_a_wrong_key_is_refused_in_the_platform_s_own_form(keyed: Keyed, name: str) -> None:
    wire = wires()[name].load()
    for probe in wire.probes(""):
        if probe.path in wire.open_paths:
            continue
        url = f"{keyed.url}{wire.path}{probe.path}"
        for headers in ({}, {"Authorization": "Bearer eh_wrong_key"}):
            got = httpx.request(probe.method, url, json=probe.body, headers={**headers, **probe.headers})
            assert got.status_code in (401, 403), got.text
            assert "problem+json" not in got.headers["content-type"]
            assert got.headers["x-content-type-options"] == "nosniff"


@pytest.mark.long
@pytest.mark.engine
def test_a_host_without_wires_has_none_of_their_paths(host: Server, tmp_path: Path) -> None:
    with Server(
        log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path}/a.db"}
    ) as plain:
        answer = plain.client.post("/wires/langfuse", json={})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.engine
def test_concurrent_callers_of_one_wire_are_all_answered(host: Server) -> None:
    (probe, *_) = wires()["langfuse"].load().probes("")

    async def ask() -> list[int]:
        async with httpx.AsyncClient(base_url=host.url, timeout=30) as client:
            got = await asyncio.gather(*(client.post("/wires/langfuse", json=probe.body) for _ in range(40)))
        return [one.status_code for one in got]

    assert set(asyncio.run(ask())) == {200}

"""`evaluator-host selftest` reports correctly on a sound deployment, on a weakened one, and if there is no deployment."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.__main__ import main
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.selftest import command
from evaluator_host.selftest.attack import SMALL, Attack, Group, Guard
from evaluator_host.selftest.canaries import placed_canaries
from evaluator_host.selftest.catalogue import load_attacks, program_of
from evaluator_host.selftest.runner import attack_deployment
from evaluator_host.selftest.trial import AttackResult, AttackVerdict
from evaluator_host.types.evaluator import Language
from tests import forked
from tests.attacks.deployments import environment
from tests.attacks.weakened import weakened
from tests.conftest import settings


def selftest(backend: str, *options: str) -> subprocess.CompletedProcess[str]:
    ran = forked.run(["selftest", *options], env=os.environ | environment(backend), timeout=110)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


@pytest.mark.long
def test_json_has_every_attack_with_its_verdict() -> None:
    groups = ("neighbours", "gateway")
    ran = selftest("bubblewrap", "--json", "--group", groups[0], "--group", groups[1], "--language", "python")
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["passed"], told["host"], told["backend"]) == (0, True, [], "bubblewrap")
    chosen = [one for one in load_attacks() if one.group in groups and one.language == "python" and one.safe]
    assert [(one["name"], one["language"]) for one in told["attacks"]] == [(a.name, a.language) for a in chosen]
    assert {one["verdict"] for one in told["attacks"]} == {"stopped"}
    assert {one["advice"] for one in told["attacks"]} == {None}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", ["bubblewrap", "docker"])
def test_the_table_says_why_each_was_stopped(backend: str) -> None:
    ran = selftest(backend, "--group", "gateway", "--language", "python")
    assert ran.returncode == 0, ran.stdout
    lines = ran.stdout.splitlines()
    assert lines[0] == "python gateway"
    attacks = [attack for attack in load_attacks() if attack.group == "gateway" and attack.language == "python"]
    for attack in attacks:
        assert any(line.split(maxsplit=2) == ["ok", attack.name, attack.why] for line in lines), attack.name
    assert lines[-1].startswith(f"{backend}: {len(attacks)} stopped, and the host is unharmed, in ")
    assert ran.stderr == f"python gateway is done: {len(attacks)} of {len(attacks)} attacks\n"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("backend", "guard", "caught", "advice"),
    [
        ("bubblewrap", Guard.NETWORK, "host-loopback-port", "sandboxes have a network"),
        ("docker", Guard.NETWORK, "host-loopback-port", "sandboxes have a network"),
        ("bubblewrap", Guard.READ_ONLY, "write-anywhere", "sandboxes can write to their root"),
        ("bubblewrap", Guard.SECCOMP, "io-uring", "the seccomp filter has no effect"),
        ("bubblewrap", Guard.MEMORY, "one-allocation", "cgroups"),
    ],
)
def test_a_weakened_deployment_is_caught_and_the_operator_told_what_to_do(
    backend: str,
    guard: Guard,
    caught: str,
    advice: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment(backend).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(command, "load_attacks", lambda: [one for one in load_attacks() if one.name == caught])
    monkeypatch.setattr(command, "load_host_attacks", tuple)
    monkeypatch.setattr(sys, "argv", ["evaluator-host", "selftest"])
    with weakened({guard}, folder=tmp_path), pytest.raises(SystemExit) as ended:
        main()
    lines = capfd.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.split()[1:2] == [caught])
    assert lines[at].split()[0] == "NO"
    assert lines[at + 1].split()[:3] == ["what", "to", "do:"]
    assert advice in lines[at + 1]
    assert ended.value.code == 1


def test_without_a_sandbox_there_is_nothing_to_attack() -> None:
    ran = selftest("none")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "sandbox=none has no sandbox to attack" in ran.stderr


def test_a_deployment_that_starts_no_sandbox_could_not_be_attacked(tmp_path: Path) -> None:
    absent = {"EVALUATOR_HOST_DOCKER_HOST": f"unix://{tmp_path}/no-engine"}
    variables = os.environ | environment("auto") | absent
    ran = forked.run(["selftest", "--backend", "docker", "--group", "cpu"], env=variables)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "no-engine" in ran.stderr


@pytest.mark.parametrize(
    ("absent", "backend", "code", "told"),
    [
        pytest.param(
            "pyarrow",
            "bubblewrap",
            0,
            ("left out the attack parquet-that-unfolds: ", "'evaluator-host[parquet]'"),
            marks=pytest.mark.long,
        ),
        ("docker", "docker", 3, ("pip install 'evaluator-host[docker]'",)),
    ],
)
def test_without_an_extra_what_needs_it_is_left_out(
    absent: str, backend: str, code: int, told: tuple[str, ...]
) -> None:
    program = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        "from evaluator_host.__main__ import main\nfrom evaluator_host.selftest import command\n"
        "names = ('parquet-that-unfolds', 'jobs-that-sleep')\n"
        "command._chosen = lambda *_: [one for one in command.load_host_attacks() if one.name in names]\n"
        f"sys.argv[1:] = ['selftest', '--backend', {backend!r}]\nmain()"
    )
    ran = forked.run(["-c", program], env=os.environ | environment("bubblewrap"), timeout=110)
    assert ran.returncode == code, ran.stderr
    assert [words for words in told if words not in ran.stderr] == [], ran.stderr
    assert ("jobs-that-sleep" in ran.stdout, "parquet-that-unfolds" in ran.stdout) == (code == 0, False)


def test_attacks_that_do_not_exist_are_the_callers_mistake() -> None:
    ran = selftest("bubblewrap", "--language", "typescript")
    assert ran.returncode == 2
    assert "leave out --group or --language" in ran.stderr


@pytest.mark.long
async def test_an_attack_after_which_time_runs_out_is_tried_again_alone_before_it_counts() -> None:
    told: list[AttackResult] = []
    hangs = brief("hangs", "import time\ndef attack(inputs):\n    time.sleep(60)\n")
    reads = brief("reads", "def attack(inputs):\n    return 'it'\n")
    report = await attack_deployment(settings("bubblewrap"), [hangs, reads], at_once=2, progress=told.append)
    assert [(one.attack.name, one.only_timed_out, one.verdict) for one in report.results] == [
        ("hangs", True, AttackVerdict.GOT_THROUGH),
        ("reads", False, AttackVerdict.GOT_THROUGH),
    ]
    assert [one.attack.name for one in told] == ["reads", "hangs"], (
        "each attack must be reported once, and the attack that was tried again must be the last"
    )


async def test_canaries_of_a_killed_selftest_are_removed_by_the_next(tmp_path: Path) -> None:
    _, boot, namespace, *_ = this_instance().split("-")
    dead, alive = f"selftest-host-{boot}-{namespace}-1-1_a1b2", f"selftest-{this_instance()}_c3d4"
    for name in (dead, alive):
        (tmp_path / name).mkdir()
    async with placed_canaries(tmp_path, engine=None) as canaries:
        assert dead not in names(tmp_path)
        assert read(canaries.inputs["file"]) == canaries.secret
    assert names(tmp_path) == [alive]


def brief(name: str, program: str) -> Attack:
    code = program_of(Language.PYTHON, program)
    return Attack(name=name, group=Group.CPU, code=code, why="", limits=replace(SMALL, timeout_s=0.5))


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def read(path: str) -> str:
    return Path(path).read_text()

"""What is wrong with a machine or a data directory: `doctor` and `serve` say which it is, where, and what to do."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import forked
from tests.conftest import DATA_DIR
from tests.server import COMMAND, Server, index_environment, new_home

NO_REGISTRY = {"npm_config_offline": "true"}
NO_DOCKER = {"EVALUATOR_HOST_DOCKER_HOST": "unix:///nowhere/docker.sock", "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
TYPESCRIPT = {"code": "function evaluate(inputs: any, outputs: any, trace: any) { return 1 }", "language": "typescript"}


@dataclass
class Machine:
    """A data directory, how a command sees it, and what has to be undone."""

    folder: Path
    undo: ExitStack
    environment: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def mount(self, options: str) -> None:
        """Mount an empty file system in the place of the data directory."""
        self.data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=64m,{options}", "none", self.data], check=True)
        self.undo.callback(subprocess.run, ["umount", "-l", self.data], check=True)

    def own_tools(self) -> Path:
        """Give it a copy of the tools; return the program esbuild."""
        shutil.copytree(DATA_DIR / "toolchain", self.data / "toolchain")
        return next(self.data.glob("toolchain/esbuild*/esbuild"))

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        ours = {name: value for name, value in os.environ.items() if not name.startswith("EVALUATOR_HOST_")}
        environment = {**ours, **index_environment(), **NO_DOCKER, **self.environment}
        environment["EVALUATOR_HOST_DATA_DIR"] = str(self.data)
        if not self.before:
            return forked.run(arguments, env=environment, timeout=60)
        command = [*self.before, *COMMAND, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as undo:
        yield Machine(tmp_path, undo)


def mounted_noexec(machine: Machine) -> None:
    machine.mount("noexec")


def mounted_read_only(machine: Machine) -> None:
    machine.mount("rw")
    machine.own_tools()
    subprocess.run(["mount", "-o", "remount,ro", machine.data], check=True)


def full(machine: Machine) -> None:
    machine.mount("rw")
    machine.own_tools()
    with (machine.data / "stuffing").open("wb", buffering=0) as file:
        for piece in (1 << 20, 4096):
            try:
                while file.write(bytes(piece)):
                    pass
            except OSError:
                continue


def a_file(machine: Machine) -> None:
    machine.data.write_text("no folder")


def a_file_inside(machine: Machine) -> None:
    new_home(machine.folder)
    (machine.data / "environments").write_text("no folder")


def few_open_files(machine: Machine) -> None:
    new_home(machine.folder)
    machine.before = ("prlimit", "--nofile=24:24")


def damaged_esbuild(machine: Machine) -> None:
    esbuild = machine.own_tools()
    esbuild.write_bytes(bytes(64) + esbuild.read_bytes()[64:])
    machine.environment = NO_REGISTRY


def half_an_esbuild(machine: Machine) -> None:
    esbuild = machine.own_tools()
    os.truncate(esbuild, 4096)
    machine.environment = NO_REGISTRY


def no_bubblewrap(machine: Machine) -> None:
    new_home(machine.folder)
    machine.environment = {"PATH": str(machine.folder)}


def something_else_named_bwrap(machine: Machine) -> None:
    new_home(machine.folder)
    other = machine.folder / "bwrap"
    other.write_text("#!/bin/sh\necho hello\n")
    other.chmod(0o755)
    machine.environment = {"PATH": f"{machine.folder}:{os.environ['PATH']}"}


def damaged_database(machine: Machine) -> None:
    new_home(machine.folder)
    (machine.data / "evaluator-host.db").write_bytes(b"x" * 9000)


def a_folder_for_a_database(machine: Machine) -> None:
    new_home(machine.folder)
    (machine.data / "evaluator-host.db").mkdir()


def a_database_nowhere(machine: Machine) -> None:
    new_home(machine.folder)
    machine.environment = {"EVALUATOR_HOST_DATABASE_URL": "sqlite:////proc/nowhere/host.db"}


def no_postgresql(machine: Machine) -> None:
    new_home(machine.folder)
    machine.environment = {"EVALUATOR_HOST_DATABASE_URL": "postgresql://host:hidden@127.0.0.1:1/host"}


FAULTS: list[tuple[Callable[[Machine], None], str, str, str]] = [  # the fault, what is said of it, and what to do
    (mounted_noexec, "tools", "mounted noexec", "Mount it with exec, or choose another data directory"),
    (mounted_read_only, "data directory", "Read-only file system", "mount it writable"),
    (full, "data directory", "No space left on device", "make room"),
    (a_file, "data directory", "exists", "move it away"),
    (a_file_inside, "data directory", "Not a directory ({data}/environments", "move it away"),
    (few_open_files, "open files", "24 files open, too few", "LimitNOFILE="),
    (no_bubblewrap, "bubblewrap", "not installed", "apt-get install bubblewrap"),
    (something_else_named_bwrap, "bubblewrap", "bwrap is not bubblewrap", "apt-get install bubblewrap"),
    (damaged_database, "database", "{data}/evaluator-host.db is damaged", "put a copy in its place"),
    (a_folder_for_a_database, "database", "{data}/evaluator-host.db", "move it away"),
    (a_database_nowhere, "database", "/proc/nowhere", "try again"),
    (no_postgresql, "database", "Connection refused", "start the server, or correct EVALUATOR_HOST_DATABASE_URL"),
]


@pytest.mark.parametrize(("fault", "name", "said", "to_do"), FAULTS, ids=[fault.__name__ for fault, *_ in FAULTS])
def test_doctor_and_serve_say_what_is_wrong_and_what_to_do(
    fault: Callable[[Machine], None], name: str, said: str, to_do: str, machine: Machine
) -> None:
    fault(machine)
    done = machine.command("doctor", "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "bug" not in done.stderr, done.stderr
    found = [one for part in json.loads(done.stdout)["findings"].values() for one in part if not one["ok"]]
    told = [f"{one['detail']}; {one['fix']}" for one in found if one["name"] == name]
    wanted = said.format(data=machine.data)
    assert any(wanted in one and to_do in one for one in told), found
    served = machine.command("serve", "--port", "0")
    assert served.returncode in {2, 3}, served.stderr
    assert "bug in Evaluator Host" not in served.stderr, served.stderr
    assert "Traceback" not in served.stderr, served.stderr
    assert to_do in served.stderr or wanted in served.stderr, served.stderr
    assert "hidden" not in done.stdout + served.stderr, "a password"


@pytest.mark.parametrize("fault", [damaged_esbuild, half_an_esbuild])
def test_doctor_names_a_damaged_esbuild_without_which_a_host_still_runs_python(
    fault: Callable[[Machine], None], machine: Machine
) -> None:
    fault(machine)
    done = machine.command("doctor", "--json")
    (told,) = [one for one in json.loads(done.stdout)["findings"]["host"] if not one["ok"]]
    assert told["name"] == "tools"
    assert "esbuild is missing or damaged" in told["detail"]
    assert "Check the network" in told["detail"]


def test_a_damaged_esbuild_is_installed_again_where_npm_answers(machine: Machine) -> None:
    esbuild = machine.own_tools()
    os.truncate(esbuild, 4096)
    done = machine.command("setup")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([esbuild, "--version"], capture_output=True, check=True).stdout
    assert sorted(path.name for path in esbuild.parent.iterdir()) == ["esbuild"]


def test_an_esbuild_that_breaks_under_a_host_is_told_by_readiness_and_by_rows(machine: Machine) -> None:
    esbuild = machine.own_tools()
    environment = {"EVALUATOR_HOST_IDLE_SANDBOXES": "0"}  # one that waits has the program as it was
    with Server(log=machine.folder / "log", data_dir=machine.data, environment=environment) as host:
        first = {"code": "function evaluate(inputs, outputs, trace) { return 1 }", "language": "javascript"}
        assert host.client.post("/v1/evaluate", json={"evaluator": first}).json()["score"] == 1  # the first prepares it
        whole = esbuild.read_bytes()
        esbuild.unlink()
        esbuild.write_bytes(bytes(64) + whole[64:])
        esbuild.chmod(0o755)
        refused = host.client.get("/readyz")
        assert refused.status_code == 503
        assert f"{esbuild} was removed or changed" in refused.json()["detail"]
        error = host.client.post("/v1/evaluate", json={"evaluator": TYPESCRIPT}).json()["error"]
        assert error["code"] == "load_error"
        assert re.search(
            r"esbuild does not work on this host \(E\w+\), which is no fault of the code", error["message"]
        )
        python = {"code": "def evaluate(inputs, outputs, trace):\n    return 1\n"}
        assert host.client.post("/v1/evaluate", json={"evaluator": python}).json()["score"] == 1.0

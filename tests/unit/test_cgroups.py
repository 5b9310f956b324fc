"""The host makes control groups in the right place and writes the right values to them. The tests use copies of /proc
and of cgroups in version 1 and version 2.
"""

import os
import re
import time
from pathlib import Path

import pytest

from evaluator_host.engine.sandbox.bubblewrap.identity import _covers, choose_identity
from evaluator_host.engine.sandbox.linux import cgroups
from evaluator_host.engine.sandbox.linux.cgroup_discovery import cgroup_mounts, find_cgroups, find_hierarchies
from evaluator_host.engine.sandbox.linux.cgroups import Cgroup, home_name, host_weight
from evaluator_host.engine.sandbox.linux.instance import is_dead, this_instance
from evaluator_host.platform.datasets.files import RowsFolder

MB = 1024 * 1024
DAY_S = 86_400.0


class Machine:
    """A simulated machine, in which files stand in for the kernel's interfaces."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.proc = root / "proc"
        self.proc.mkdir()
        self.groups: list[str] = []
        self.mounts: list[str] = []

    def mount(self, name: str, kind: str, *, own: str, options: str, root: str = "/") -> Path:
        folder = self.root / name
        (folder / own.lstrip("/")).mkdir(parents=True)
        controllers = "" if kind == "cgroup2" else options
        self.groups.append(f"{len(self.groups)}:{controllers}:{own}")
        self.mounts.append(f"31 23 0:28 {root} {folder} rw,relatime - {kind} {kind} rw,{options}")
        (self.proc / "cgroup").write_text("\n".join(self.groups))
        (self.proc / "mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda rw\n" + "\n".join(self.mounts))
        return folder

    @staticmethod
    def files(folder: Path, **content: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in content.items():
            (folder / name.replace("__", ".")).write_text(text)


@pytest.fixture(name="machine")
def machine_fixture(tmp_path):
    return Machine(tmp_path)


def test_version_1_takes_the_hosts_own_group_of_each_controller(machine):
    memory = machine.mount("memory", "cgroup", own="/system/host", options="memory")
    pids = machine.mount("pids", "cgroup", own="/", options="pids")
    for home in (memory / "system/host", pids):
        machine.files(home / home_name("me"), cgroup__procs="")
    found = find_cgroups("me", proc=machine.proc)
    assert found is not None
    assert found.version == 1
    assert found.homes == {
        "memory": memory / "system/host" / home_name("me"),
        "pids": pids / home_name("me"),
    }
    assert cgroup_mounts(machine.proc) == (memory, pids)


def test_controllers_mounted_together_are_told_apart(machine):
    folder = machine.mount("cpu,cpuacct", "cgroup", own="/a", options="cpu,cpuacct")
    found = find_hierarchies(machine.proc)
    assert found["cpu"].own == found["cpuacct"].own == folder / "a"


def test_a_container_sees_its_part_of_the_hierarchy(machine):
    folder = machine.mount("memory", "cgroup", own="/docker/abc/inner", options="memory", root="/docker/abc")
    (folder / "inner").mkdir()
    assert find_hierarchies(machine.proc)["memory"].own == folder / "inner"


def test_version_2_takes_the_nearest_group_that_hands_controllers_down(machine):
    root = machine.mount("unified", "cgroup2", own="/user.slice/session.scope", options="nsdelegate")
    slice_, scope = root / "user.slice", root / "user.slice/session.scope"
    machine.files(root, cgroup__controllers="cpu memory pids io", cgroup__procs="")
    machine.files(slice_, cgroup__controllers="cpu memory pids", cgroup__procs="")
    # the host shares the scope with a shell
    machine.files(scope, cgroup__controllers="", cgroup__procs=f"1\n{os.getpid()}")
    for parent in (slice_, scope):
        machine.files(parent / home_name("me"), cgroup__procs="", cpu__weight="")
    (slice_ / "cgroup.subtree_control").write_text("cpu memory pids")
    (slice_ / home_name("me") / "cgroup.subtree_control").write_text("memory pids cpu")
    found = find_cgroups("me", proc=machine.proc)
    assert found is not None
    assert found.version == 2
    assert set(found.homes.values()) == {slice_ / home_name("me")}
    assert found.controllers == ("memory", "pids", "cpu")
    assert (slice_ / home_name("me") / "cpu.weight").read_text() == str(int(100 * host_weight()))


def test_version_2_moves_a_host_that_is_alone_beside_its_sandboxes(machine):
    service = machine.mount("unified", "cgroup2", own="/host.service", options="nsdelegate") / "host.service"
    machine.files(service.parent, cgroup__controllers="cpu memory pids", cgroup__procs="")
    machine.files(service, cgroup__controllers="cpu memory pids", cgroup__procs=str(os.getpid()))
    (service / "cgroup.subtree_control").write_text("cpu memory pids")
    for name in (home_name("me"), home_name("also-me"), "evaluator-host.host"):
        machine.files(service / name, cgroup__procs="", cgroup__subtree_control="memory pids cpu")
    assert find_cgroups("me", proc=machine.proc).homes["cpu"] == service / home_name("me")
    assert (service / "evaluator-host.host/cgroup.procs").read_text() == str(os.getpid())
    # the cgroup in which the process is now
    (machine.proc / "cgroup").write_text("0::/host.service/evaluator-host.host")
    assert find_cgroups("also-me", proc=machine.proc).homes["cpu"] == service / home_name("also-me")


def test_hosts_lie_beside_each_other_each_with_its_own_weight(machine, monkeypatch):
    cpu = machine.mount("cpu", "cgroup", own="/", options="cpu")
    pids = machine.mount("pids", "cgroup", own="/", options="pids")
    for name, processors, nice, shares in (
        ("one", 1, 0, "1024"), ("two", 2, 0, "1024"), ("large", 64, 0, "32768"), ("jobs", 2, 5, "335"),
    ):  # fmt: skip
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, processors=processors: set(range(processors)))
        monkeypatch.setattr(os, "nice", lambda _, nice=nice: nice)
        machine.files(cpu / home_name(name), cgroup__procs="", cpu__shares="")
        machine.files(pids / home_name(name), cgroup__procs="")
        assert find_cgroups(name, proc=machine.proc) is not None
        assert (cpu / home_name(name) / "cpu.shares").read_text() == shares


def test_a_group_that_may_not_be_written_does_not_count(machine):
    machine.mount("unified", "cgroup2", own="/a", options="")
    machine.files(machine.root / "unified", cgroup__controllers="memory pids")
    assert find_cgroups("me", proc=machine.proc) is None


def test_a_machine_without_control_groups(machine):
    assert find_cgroups("me", proc=machine.proc) is None
    assert cgroup_mounts(machine.proc) == ()


def test_limits_of_version_1(tmp_path):
    folders = {name: tmp_path / name for name in ("memory", "pids", "cpu")}
    names = {
        "memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
        "pids": ("pids.max",),
        "cpu": ("cpu.shares", "cpu.cfs_quota_us"),
    }
    for controller, folder in folders.items():
        Machine.files(folder, **{name.replace(".", "__"): "" for name in names[controller]})
    group = Cgroup(1, folders)
    group.limit(memory_mb=128, processes=40)
    written = {name: (folders[c] / name).read_text() for c, files in names.items() for name in files}
    assert written == {
        "memory.limit_in_bytes": str(128 * MB),
        "memory.memsw.limit_in_bytes": str(128 * MB),
        "pids.max": "40",
        "cpu.shares": "1024",
        "cpu.cfs_quota_us": "100000",
    }
    (folders["memory"] / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    (folders["pids"] / "pids.events").write_text("max 2\n")
    assert (group.oom_kills(), group.forks_refused()) == (3, 2)


@pytest.mark.parametrize(("version", "name", "least"), [(1, "cpu.shares", "2"), (2, "cpu.weight", "1")])
def test_a_weight_is_one_that_the_kernel_takes_and_processors_need_no_limit(tmp_path, version, name, least):
    Machine.files(tmp_path / "cpu", **{name.replace(".", "__"): "", "cpu__cfs_quota_us": "-1", "cpu__max": "max"})
    group = Cgroup(version, {"cpu": tmp_path / "cpu"})
    group.limit(memory_mb=1, processes=1, cpus=None)
    assert [(tmp_path / "cpu" / file).read_text() for file in ("cpu.cfs_quota_us", "cpu.max")] == ["-1", "max"]
    (tmp_path / "cpu" / name).write_text("")
    group.weigh(0.0001)
    assert (tmp_path / "cpu" / name).read_text() == least


def test_limits_of_version_2(tmp_path):
    names = ("memory.max", "memory.swap.max", "pids.max", "cpu.max", "cpu.weight", "cgroup.procs")
    Machine.files(tmp_path / "g", **{name.replace(".", "__"): "" for name in names})
    group = Cgroup(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path / "g"))
    assert group.folders == (tmp_path / "g",)
    group.limit(memory_mb=64, processes=10)
    group.add_process(4711)
    written = {name: (tmp_path / "g" / name).read_text() for name in names}
    assert written == {
        "memory.max": str(64 * MB),
        "memory.swap.max": "0",
        "pids.max": "10",
        "cpu.max": "100000 100000",
        "cpu.weight": "100",
        "cgroup.procs": "4711",
    }
    (tmp_path / "g" / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n")
    (tmp_path / "g" / "pids.events").write_text("max 5\n")
    assert (group.oom_kills(), group.forks_refused()) == (1, 5)


def test_a_missing_limit_that_counts_is_an_error(tmp_path):
    Machine.files(tmp_path / "g", memory__max="")
    with pytest.raises(OSError, match=r"pids\.max"):
        Cgroup(2, dict.fromkeys(("memory", "pids"), tmp_path / "g")).limit(memory_mb=64, processes=10)


def test_sweep_removes_what_dead_hosts_left_and_nothing_else(tmp_path):
    alive = this_instance()
    dead = alive.rpartition("-")[0] + "-1.1"  # the id is that of this process, but the start time is another one
    for path in (
        f"a/b/evaluator-host.1/{dead}",
        "a/b/evaluator-host.1/f0",
        f"a/b/evaluator-host.2/{dead[:-1]}2",
        "a/b/evaluator-host.2/f1",
        "a/other/f2",
    ):
        (tmp_path / "one" / path).mkdir(parents=True)
        (tmp_path / "two" / path).mkdir(parents=True)
    kept = {
        f"one/evaluator-host.3/{alive}.1",
        "one/evaluator-host.3/f3",
        "one/evaluator-host.4/somebody-elses",
        "one/evaluator-host.host",
    }
    for path in kept:
        (tmp_path / path).mkdir(parents=True)
    assert cgroups.sweep((tmp_path / "one", tmp_path / "two", tmp_path / "gone")) == 2
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not list(path.iterdir())}
    assert left == kept | {"one/a/b", "one/a/other/f2", "two/a/b", "two/a/other/f2"}


def test_old_folders_without_the_name_of_a_host_are_removed_too(tmp_path):
    name = f"a/{home_name('nobody')}"
    for path in (f"old/{name}", f"with a sandbox/{name}/f0", f"new/{name}", f"of a host/{name}/{this_instance()}"):
        (tmp_path / path).mkdir(parents=True)
    for top in ("old", "with a sandbox", "of a host"):
        os.utime(tmp_path / top / name, (0, 0))
    assert cgroups.sweep((tmp_path,)) == 0
    left = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("evaluator-host.*")}
    assert left == {"new", "of a host"}


def test_a_host_that_ends_before_a_sandbox_leaves_its_name_for_the_sweep(machine):
    memory = machine.mount("memory", "cgroup", own="/", options="memory")
    machine.files(memory / home_name("me"), cgroup__procs="")
    found = find_cgroups("me", proc=machine.proc)
    (memory / home_name("me") / "f0").mkdir()
    found.close()
    assert (memory / home_name("me") / "me").is_dir()


def test_the_name_of_a_hosts_folder_tells_a_guest_nothing():
    names = [home_name(f"{this_instance()}.{number}") for number in (1, 2, 1)]
    assert names[0] == names[2] != names[1]
    assert all(re.fullmatch(r"evaluator-host\.[0-9a-f]{12}", name) for name in names)


def test_a_host_that_ends_leaves_no_group(machine):
    memory = machine.mount("memory", "cgroup", own="/", options="memory")
    machine.files(memory / home_name("me"), cgroup__procs="")
    found = find_cgroups("me", proc=machine.proc)
    assert (memory / home_name("me") / "me").is_dir()
    # the kernel removes this file together with its folder; here the test removes it
    (memory / home_name("me") / "cgroup.procs").unlink()
    found.close()
    assert list(memory.iterdir()) == []


def test_an_instance_is_dead_only_when_that_is_sure():
    host, boot, namespace, pid, started = this_instance().split("-")
    assert not is_dead(this_instance())
    assert not is_dead(f"{this_instance()}.7")
    assert is_dead(f"{host}-{boot}-{namespace}-{pid}-{int(started) + 1}")
    assert is_dead(f"{host}-{boot}-{namespace}-4194305-{started}")  # this process id is above the highest possible one
    assert not is_dead(f"{host}-{boot}-1-{pid}-{int(started) + 1}")  # in another pid namespace
    assert not is_dead(f"{host}-0123456789ab-{namespace}-{pid}-{int(started) + 1}")  # on another machine
    assert not is_dead("default")


@pytest.mark.parametrize(
    ("writer", "age_s", "removed"),
    [
        ("{here}", 10 * DAY_S, False),
        ("{ended}", 0, True),
        ("{elsewhere}", 0.9 * DAY_S, False),
        ("{elsewhere}", 1.1 * DAY_S, True),
        ("somebody", 10 * DAY_S, False),
    ],
)
def test_a_folder_of_another_machine_is_left_to_it_while_that_writes(
    tmp_path: Path, writer: str, age_s: float, removed: bool
) -> None:
    host, boot, namespace, pid, started = this_instance().split("-")
    names = {
        "here": this_instance(),
        "ended": f"{host}-{boot}-{namespace}-4194305-{started}",
        "elsewhere": f"{host}-0123456789ab-{namespace}-{pid}-{started}",
    }
    folder = tmp_path / f"ds_1.{writer.format(**names)}"
    folder.mkdir()
    (folder / "upload").touch()
    for path in (folder / "upload", folder):
        os.utime(path, (time.time() - age_s,) * 2)
    assert RowsFolder(tmp_path).orphans(()) == ([folder.name] if removed else [])


def test_the_guests_user_is_one_that_this_machine_maps():
    assert _covers("0 0 4294967295", range(1_900_000_000, 2_147_000_000))
    assert not _covers("0 100000 65536", range(1_900_000_000, 2_147_000_000))
    assert _covers("0 100000 65536", range(20_000, 60_000))
    identity = choose_identity()
    assert identity.uid != 0
    assert identity.drop == (os.geteuid() == 0)

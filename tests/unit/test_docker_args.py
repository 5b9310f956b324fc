"""The Docker backend gives containers the right options, line by line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.sandbox.docker.policy import (
    UID_COUNT,
    UID_FIRST,
    ContainerPolicy,
    EngineFacts,
    command,
    create_body,
)
from evaluator_host.engine.sandbox.linux.rlimits import JAVASCRIPT_PROCESSES, PYTHON_PROCESSES
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec, StandIn

ENGINE = EngineFacts("unix:///var/run/docker.sock", cpus=8, cgroup_version="2")
POLICY = ContainerPolicy("image:1", runtime=None, seccomp='{"a":1}', node_flags=(), labels={"label": "value"})


def spec(language: Language = Language.PYTHON, **limits: int) -> SandboxSpec:
    return SandboxSpec(language, Environment("", language, ""), **limits)


def body(policy: ContainerPolicy = POLICY, engine: EngineFacts = ENGINE, **limits: int) -> dict[str, Any]:
    return create_body(spec(Language.PYTHON, **limits), policy=policy, engine=engine, uid=23456)


def host(policy: ContainerPolicy = POLICY, engine: EngineFacts = ENGINE, **limits: int) -> dict[str, Any]:
    config: dict[str, Any] = body(policy, engine, **limits)["HostConfig"]
    return config


def test_a_guest_has_no_network_and_does_not_learn_the_hosts_resolver() -> None:
    assert body()["NetworkDisabled"] is True
    assert host()["NetworkMode"] == "none"
    assert host()["Dns"] == ["0.0.0.0"]


@pytest.mark.parametrize("runtime", [None, "runsc"])
def test_network_is_all_that_a_guest_with_network_has_besides(runtime: str | None) -> None:
    policy = replace(POLICY, runtime=runtime)
    connected = create_body(replace(spec(), network=True), policy=policy, engine=ENGINE, uid=23456)
    expected = body(policy)
    expected["NetworkDisabled"] = False
    expected["HostConfig"]["NetworkMode"] = "default"
    del expected["HostConfig"]["Dns"]
    assert connected == expected


@pytest.mark.parametrize("runtime", ["runsc", "kata"])
def test_a_runtime_that_wants_its_network_namespace_prepared_gets_an_empty_one(runtime: str) -> None:
    for chosen in (body(replace(POLICY, runtime=runtime)), body(engine=replace(ENGINE, default_runtime=runtime))):
        assert chosen["NetworkDisabled"] is False
        assert chosen["HostConfig"]["NetworkMode"] == "none"


def test_a_guest_has_no_privilege_and_can_gain_none() -> None:
    assert body()["User"] == "23456:23456"
    assert host()["CapDrop"] == ["ALL"]
    assert "CapAdd" not in host()
    assert host()["Privileged"] is False
    assert host()["SecurityOpt"] == ["no-new-privileges", 'seccomp={"a":1}']


def test_every_uid_is_unprivileged_and_within_what_a_rootless_engine_maps() -> None:
    assert UID_FIRST >= 1000
    assert UID_FIRST + UID_COUNT <= 65_534


def test_without_a_profile_the_engines_own_stays() -> None:
    assert host(replace(POLICY, seccomp=None))["SecurityOpt"] == ["no-new-privileges"]


def test_the_root_is_read_only_and_nothing_of_the_host_is_in_it() -> None:
    config = host()
    assert config["ReadonlyRootfs"] is True
    assert not {"Binds", "Mounts", "VolumesFrom", "Devices", "DeviceRequests", "Links", "PidMode", "UTSMode"} & set(
        config
    )
    assert "Volumes" not in body()


def test_writable_folders_of_a_guest_are_small_and_not_executable() -> None:
    options = "rw,noexec,nosuid,nodev,mode=1777,size=16m,nr_inodes=4096"
    assert host(disk_mb=16)["Tmpfs"] == {
        "/tmp": options,
        "/dev/shm": options,
        "/dev/mqueue": "ro,noexec,nosuid,nodev,mode=0555,size=4k",
    }
    assert host()["IpcMode"] == "private"


def test_podman_is_not_asked_for_a_number_of_inodes() -> None:
    assert host(engine=replace(ENGINE, podman=True), disk_mb=16)["Tmpfs"]["/tmp"].endswith("size=16m")


def test_memory_is_limited_and_swap_does_not_double_it() -> None:
    config = host(memory_mb=128)
    assert config["Memory"] == config["MemorySwap"] == 128 * 1024 * 1024
    assert config["OomScoreAdj"] > 0


@pytest.mark.parametrize(
    ("language", "overhead"),
    [(Language.PYTHON, PYTHON_PROCESSES), (Language.JAVASCRIPT, JAVASCRIPT_PROCESSES), (Language.TYPESCRIPT, JAVASCRIPT_PROCESSES)],
)  # fmt: skip
def test_processes_are_what_the_evaluator_may_have_and_what_its_runner_needs(language: Language, overhead: int) -> None:
    made = create_body(spec(language, processes=16), policy=POLICY, engine=ENGINE, uid=23456)
    assert made["HostConfig"]["PidsLimit"] == 16 + overhead


def test_cpu_is_one_core_or_what_a_small_engine_has() -> None:
    assert host()["NanoCpus"] == 1_000_000_000
    assert host(engine=replace(ENGINE, cpus=1))["NanoCpus"] == 1_000_000_000


def test_an_engine_without_cpu_quota_is_not_asked_for_one() -> None:
    assert "NanoCpus" not in host(engine=replace(ENGINE, cpu_quota=False))


def test_descriptors_are_limited_and_no_core_is_written() -> None:
    assert host()["Ulimits"] == [
        {"Name": "core", "Soft": 0, "Hard": 0},
        {"Name": "nofile", "Soft": 1024, "Hard": 1024},
        {"Name": "nproc", "Soft": 4096, "Hard": 4096},
    ]


def test_without_a_process_cgroup_the_users_own_limit_holds() -> None:
    ulimits = host(engine=replace(ENGINE, pids_limit=False), processes=16)["Ulimits"]
    assert ulimits[-1] == {"Name": "nproc", "Soft": 16 + PYTHON_PROCESSES, "Hard": 16 + PYTHON_PROCESSES}


def test_cgroups_are_private_where_the_kernel_can() -> None:
    assert host()["CgroupnsMode"] == "private"
    assert host(engine=replace(ENGINE, cgroup_version="1"))["CgroupnsMode"] == "private"
    assert "CgroupnsMode" not in host(engine=replace(ENGINE, cgroup_version="1", podman=True))


def test_files_about_the_machine_are_hidden() -> None:
    hidden = set(host()["MaskedPaths"])
    assert {"/sys", "/proc/cmdline", "/proc/keys", "/proc/sys/kernel/random/boot_id", "/proc/fs"} <= hidden
    assert {"/proc/kcore", "/proc/timer_list", "/proc/acpi", "/proc/scsi"} <= hidden, (
        "the host's list replaces Docker's own list, so it must also contain these paths"
    )
    assert "MaskedPaths" not in host(engine=replace(ENGINE, podman=True))


def test_the_only_channel_is_attached_and_closes_with_the_host() -> None:
    made = body()
    assert made["OpenStdin"] is made["StdinOnce"] is made["AttachStdin"] is made["AttachStdout"] is True
    assert made["Tty"] is False
    assert host()["LogConfig"] == {"Type": "none", "Config": {}}


def test_the_runner_is_process_1_and_the_container_waits_for_its_autopsy() -> None:
    assert host()["Init"] is False
    assert host()["AutoRemove"] is False
    assert host()["RestartPolicy"]["Name"] == "no"
    assert body()["Entrypoint"] == []


def test_the_environment_is_minimal_and_nothing_of_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "value")
    names = {pair.partition("=")[0] for pair in body()["Env"]}
    threads = {f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
    assert names == {"PATH", "HOME", "TMPDIR", "USER", "LANG"} | threads
    assert body()["Hostname"] == "sandbox"


def test_labels_and_runtime_pass_through() -> None:
    assert body()["Labels"] == {"label": "value"}
    assert "Runtime" not in host()
    assert host(replace(POLICY, runtime="runsc"))["Runtime"] == "runsc"


def test_commands_name_the_image_layout() -> None:
    assert command(spec()) == [
        *("/usr/bin/python3", "-I", "-S", "-B", "-X", "utf8", "/opt/runner/python/runner.py"),
        *("--restricted", "/opt/restricted", "--private-tmp"),
    ]
    assert command(spec(), python_with_node=True) == [*command(spec())[:-1], "--node", "--private-tmp"]
    assert command(spec(Language.JAVASCRIPT), node_flags=("--flag",)) == [
        *("/opt/node/bin/node", "--flag", "/opt/runner/javascript/runner.cjs"),
        *("--esbuild", "/opt/esbuild/esbuild", "--memory-mb", "256", "--private-tmp"),
    ]


@pytest.mark.parametrize("language", list(Language))
def test_a_runner_is_told_where_the_packages_lie_and_nothing_of_the_host_is_mounted(language: Language) -> None:
    wanted = SandboxSpec(language, Environment("sha256:1", language, "", (), Path("/data/environments/1/files")))
    made = create_body(wanted, policy=POLICY, engine=ENGINE, uid=23456)
    at = made["Cmd"].index("--packages")
    assert made["Cmd"][at + 1] == "/opt/packages"
    assert made["Cmd"][:at] + made["Cmd"][at + 2 :] == command(spec(language))
    assert "/data/" not in str(made)


def test_a_runner_is_told_where_the_modules_of_an_sdk_lie() -> None:
    assert command(replace(spec(), stand_in=StandIn("dialects/nemo/modules", "nemo_evaluator_sdk")))[-3:] == [
        "--sdk",
        "/opt/runner/python/dialects/nemo/modules",
        "--private-tmp",
    ]

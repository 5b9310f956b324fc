"""The host understands an engine's messages, errors and addresses. The texts were sent by real engines."""

import errno
import socket
from dataclasses import replace
from datetime import UTC, datetime

import docker.errors
import pytest
import requests

from evaluator_host.engine.environments.record import target_for
from evaluator_host.engine.packages.lock import LockTarget
from evaluator_host.engine.sandbox.docker.attach import AttachFailed, Demultiplexer
from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from evaluator_host.engine.sandbox.docker.cleanup import LABEL_BOOT, LABEL_INSTANCE, ended_long_ago, owner_is_dead
from evaluator_host.engine.sandbox.docker.doctor import ignores_runtime
from evaluator_host.engine.sandbox.docker.engine import Engine, engine_facts, is_this_machine, unavailable
from evaluator_host.engine.sandbox.docker.policy import EngineFacts
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.pythons import host_platform
from evaluator_host.types.errors import Misconfigured
from evaluator_host.types.evaluator import Language

SOCKET = "unix:///var/run/docker.sock"


def api_error(words: str) -> docker.errors.APIError:
    return docker.errors.APIError("500 Server Error", explanation=words)


def wrapped(error: OSError) -> BaseException:
    """Return a system error as docker-py raises it: its text as the message, and the original error as the cause."""
    try:
        try:
            raise requests.ConnectionError(("Connection aborted.", error)) from error
        except requests.ConnectionError as cause:
            raise docker.errors.DockerException(f"Error while fetching server API version: {cause}") from cause
    except docker.errors.DockerException as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (docker.errors.ImageNotFound("404", explanation="No such image: x:1"), "run `evaluator-host images build`"),
        (api_error("Unknown runtime specified absent"), "unset EVALUATOR_HOST_DOCKER_RUNTIME"),
        (api_error("unknown or invalid runtime name: absent"), "unset EVALUATOR_HOST_DOCKER_RUNTIME"),
        (api_error('default OCI runtime "absent" not found: invalid argument'), "unset EVALUATOR_HOST_DOCKER_RUNTIME"),
        (api_error("OCI runtime create failed: something: unknown"), "the engine refused: OCI runtime"),
        (api_error("cannot run with network enabled in root network namespace"), "--network=none"),
        (AttachFailed("no such container", status=404), "the engine refused"),
        (AttachFailed("the engine closed the connection"), "no Docker engine answers"),
        (wrapped(FileNotFoundError(errno.ENOENT, "No such file or directory")), "systemctl start docker"),
        (wrapped(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")), "systemctl start docker"),
        (wrapped(PermissionError(errno.EACCES, "Permission denied")), "usermod -aG"),
        (PermissionError(errno.EACCES, "Permission denied"), "usermod -aG"),
        (requests.ReadTimeout("Read timed out. (read timeout=60)"), "systemctl restart docker"),
        (TimeoutError(), "systemctl restart docker"),
    ],
)
def test_errors_say_what_to_do(error: BaseException, advice: str) -> None:
    assert advice in unavailable(error, address=SOCKET, image="x:1").detail


def test_an_ssh_address_says_how_to_forward_the_socket() -> None:
    with pytest.raises(Misconfigured, match=r"ssh://me@there: .*ssh -nNT -L .*EVALUATOR_HOST_DOCKER_HOST=unix://"):
        Engine("ssh://me@there")


def test_the_engine_behind_a_forwarded_socket_is_on_another_machine() -> None:
    named = [engine_facts(SOCKET, info={"Name": name}, version={}) for name in (socket.gethostname(), "", "elsewhere")]
    assert [is_this_machine(facts) for facts in named] == [True, True, False]
    assert not is_this_machine(engine_facts("tcp://host:2375", info={}, version={}))


def test_packages_are_for_the_image_on_the_processor_of_the_engine() -> None:
    backend = DockerBackend(docker_host="tcp://host:2375", runtime=None, image="x:1", instance=this_instance())
    assert backend.platform.machine == host_platform().machine
    backend._engine._facts = engine_facts("tcp://host:2375", info={}, version={"Arch": "arm64"})
    assert target_for(backend.platform, Language.PYTHON) == LockTarget("3.13", "aarch64", (2, 41))
    assert backend.python_versions() == ("3.13",)


def test_an_engine_lacks_features_that_it_does_not_mention() -> None:
    facts = engine_facts(SOCKET, info={}, version={})
    assert not any((facts.memory_limit, facts.pids_limit, facts.cpu_quota, facts.seccomp, facts.rootless, facts.podman))
    assert facts.local


def test_facts_of_docker_and_of_podman() -> None:
    info = {
        "NCPU": 8, "CgroupVersion": "2", "MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": True,
        "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"],
        "Runtimes": {"runsc": {}, "runc": {}}, "DefaultRuntime": "runc",
    }  # fmt: skip
    facts = engine_facts(
        "tcp://host:2375", info=info, version={"Components": [{"Name": "Podman Engine"}], "Version": "5"}
    )
    assert (facts.cpus, facts.cgroup_version, facts.rootless, facts.seccomp) == (8, "2", True, True)
    assert facts.runtimes == ("runc", "runsc")
    assert facts.podman
    assert not facts.local


def test_a_runtime_that_podman_would_ignore_is_noticed() -> None:
    facts = EngineFacts(SOCKET, podman=True, default_runtime="crun")
    assert ignores_runtime(facts, "runsc")
    assert not ignores_runtime(facts, "crun")
    assert not ignores_runtime(facts, None)
    assert not ignores_runtime(replace(facts, podman=False), "runsc")


def test_the_stream_is_split_however_it_was_cut() -> None:
    whole = b"".join(
        bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data
        for stream, data in ((1, b"one"), (2, b"error"), (1, b""), (1, b"two"))
    )
    for size in range(1, len(whole) + 1):
        split = Demultiplexer()
        got = [piece for start in range(0, len(whole), size) for piece in split.feed(whole[start : start + size])]
        assert b"".join(data for stream, data in got if stream == 1) == b"onetwo"
        assert b"".join(data for stream, data in got if stream == 2) == b"error"


def test_containers_of_dead_hosts_are_recognised() -> None:
    dead = this_instance().rpartition("-")[0] + "-1"
    assert owner_is_dead({LABEL_INSTANCE: dead, LABEL_BOOT: "now"}, boot="now", local=True)
    assert not owner_is_dead({LABEL_INSTANCE: this_instance(), LABEL_BOOT: "now"}, boot="now", local=True)
    assert owner_is_dead({LABEL_INSTANCE: this_instance(), LABEL_BOOT: "before"}, boot="now", local=True)
    assert not owner_is_dead({LABEL_INSTANCE: dead, LABEL_BOOT: "elsewhere"}, boot="now", local=False)
    assert not owner_is_dead({LABEL_INSTANCE: "someone", LABEL_BOOT: "now"}, boot="now", local=True)


def test_a_container_that_ended_long_ago_has_no_owner() -> None:
    now = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    created = "2026-01-01T11:00:00.123456789Z"
    ended = {"Running": False, "FinishedAt": "2026-01-01T11:49:00.1Z"}
    assert ended_long_ago(ended, created=created, now=now)
    assert not ended_long_ago({**ended, "Running": True}, created=created, now=now)
    assert not ended_long_ago({**ended, "FinishedAt": "2026-01-01T11:51:00.1Z"}, created=created, now=now)
    assert ended_long_ago({"Running": False, "FinishedAt": "0001-01-01T00:00:00Z"}, created=created, now=now)

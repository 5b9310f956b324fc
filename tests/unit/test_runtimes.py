"""The host knows what each OCI runtime needs in addition and how well it isolates, and refuses unsuitable runtimes."""

from dataclasses import replace

import pytest

from evaluator_host.engine.sandbox.docker.doctor import refusal
from evaluator_host.engine.sandbox.docker.engine import engine_facts
from evaluator_host.engine.sandbox.docker.policy import ContainerPolicy, EngineFacts, create_body
from evaluator_host.engine.sandbox.isolation_notes import isolation_finding
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec

SOCKET = "unix:///run/docker.sock"
SPEC = SandboxSpec(Language.PYTHON, Environment("", Language.PYTHON, ""), memory_mb=256, processes=32)


def limits(runtime: str | None, *, default: str = "runc") -> tuple[int, int]:
    policy = ContainerPolicy(image="x:1", runtime=runtime, seccomp=None, node_flags=(), labels={})
    body = create_body(SPEC, policy=policy, engine=EngineFacts(SOCKET, default_runtime=default), uid=20_000)
    assert body["HostConfig"]["Memory"] == body["HostConfig"]["MemorySwap"]
    return body["HostConfig"]["Memory"] >> 20, body["HostConfig"]["PidsLimit"]


def test_gvisors_own_kernel_has_room_beside_the_guest() -> None:
    memory_mb, processes = limits("runc")
    assert (memory_mb, processes) == limits(None)
    for runtime, default in (("runsc", "runc"), ("runsc-kvm", "runc"), (None, "runsc")):
        assert limits(runtime, default=default) == (memory_mb + 64, processes + 128)


@pytest.mark.parametrize("argument", ["--ignore-cgroups", "-ignore-cgroups", "--ignore-cgroups=true"])
def test_a_runtime_that_would_hold_no_limit_is_refused(argument: str) -> None:
    info = {
        "Runtimes": {"runc": {}, "runsc": {"runtimeArgs": ["--network=none", argument]}, "kata": None},
        "DefaultRuntime": "runc",
    }
    facts = engine_facts(SOCKET, info=info, version={})
    assert facts.unlimited_runtimes == ("runsc",)
    assert "ignore-cgroups" in (refusal(facts, "runsc") or "")
    assert "ignore-cgroups" in (refusal(replace(facts, default_runtime="runsc"), None) or "")
    assert refusal(facts, "runc") is None
    assert refusal(facts, None) is None


def test_doctor_says_what_each_backend_stops_and_recommends_gvisor_for_tenants() -> None:
    for shared in (isolation_finding(), isolation_finding("runc")):
        assert "does not stop an exploit of the host's kernel" in shared.detail
        assert "EVALUATOR_HOST_DOCKER_RUNTIME=runsc" in shared.detail
    for own in (isolation_finding("runsc"), isolation_finding("kata-runtime")):
        assert "Recommended for tenants who do not trust each other" in own.detail

"""However a container of the Docker backend ends, nothing is left behind. If there is no engine, the errors say so."""

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from evaluator_host.engine.sandbox.docker import backend as backends
from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from evaluator_host.engine.sandbox.exit_status import ExitStatus
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.types.errors import SandboxLost, SandboxUnavailable
from tests.descriptors import descriptors
from tests.docker_guests import Guest, MakeBackend, containers, own, spec, start
from tests.relay import Relay


async def test_destroying_removes_the_container_and_can_be_done_twice_at_once(
    backend: DockerBackend, docker_host: str
) -> None:
    guest = await start(backend)
    await guest.run("import subprocess; subprocess.Popen(['/usr/bin/sleep', '600'], start_new_session=True)")
    assert containers(docker_host, own()) == [guest.link.id]
    first, second = await asyncio.gather(guest.link.destroy(), guest.link.destroy())
    assert first == second == ExitStatus(signal=9)
    assert containers(docker_host, own()) == []
    assert await guest.link.destroy() is first


async def test_a_closed_backend_has_left_no_descriptor_open(make_backend: MakeBackend) -> None:
    # this creates the loop's thread pool, so that its descriptors are in the count before the test
    await asyncio.to_thread(descriptors)
    before = descriptors()
    backend = make_backend()
    for _ in range(3):
        await (await start(backend)).link.destroy()
    assert descriptors() - before
    await backend.close()
    assert descriptors() <= before


async def test_a_caller_who_hangs_up_while_it_starts_leaves_no_container(
    backend: DockerBackend, docker_host: str
) -> None:
    for delay in (0.0, 0.005, 0.02, 0.05):
        starting = asyncio.ensure_future(backend.start(spec()))
        await asyncio.sleep(delay)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    while backend._tasks:
        await asyncio.wait(backend._tasks)
    assert containers(docker_host, own()) == []


async def test_a_caller_who_hangs_up_while_it_is_destroyed_changes_nothing(
    backend: DockerBackend, docker_host: str
) -> None:
    guest = await start(backend)
    destroying = asyncio.ensure_future(guest.link.destroy())
    await asyncio.sleep(0)
    destroying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await destroying
    assert await guest.link.destroy() == ExitStatus(signal=9)
    assert containers(docker_host, own()) == []


@pytest.mark.long
async def test_many_start_at_once(backend: DockerBackend) -> None:
    guests = await asyncio.gather(*(start(backend) for _ in range(8)))
    assert await asyncio.gather(*(guest.run("answer = 1") for guest in guests)) == [1] * 8
    await asyncio.gather(*(guest.link.destroy() for guest in guests))


async def test_an_engine_that_goes_away_is_the_backends_fault_and_its_container_is_removed_when_it_is_back(
    make_backend: MakeBackend,
    docker_host: str,
) -> None:
    with Relay(docker_host) as relay:
        backend = make_backend(docker_host=relay.address)
        guest = await start(backend)
        relay.cut()
        async with asyncio.timeout(10):
            assert await guest.link.read() == b""
        exit_status = await guest.link.destroy()
        assert exit_status.lost
        with pytest.raises(SandboxUnavailable, match="no Docker engine answers"):
            await backend.start(spec())
        relay.open()
        assert await backend.sweep() == 1
        again = await start(backend)
        assert await again.run("answer = 1") == 1
        await again.link.destroy()
        assert containers(docker_host, own()) == []


async def test_a_container_that_somebody_else_killed_is_lost(guest: Guest, docker_host: str) -> None:
    client = docker.APIClient(base_url=docker_host)
    client.kill(guest.link.id)
    client.close()
    assert await guest.link.read() == b""
    exit_status = await guest.link.destroy()
    assert (exit_status.signal, exit_status.lost) == (signal.SIGKILL, True)


@pytest.mark.parametrize("step", ["_attach", "_launch"])
async def test_a_container_that_is_removed_while_it_starts_is_lost(
    step: str, make_backend: MakeBackend, docker_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that is removed while it starts is lost. The next container would start, so the error must tell the
    caller to try again.
    """
    backend, attach, launch = make_backend(), DockerBackend._attach, backends._launch
    client = docker.APIClient(base_url=docker_host)

    async def remove_first(self: DockerBackend, container: str) -> Any:
        client.remove_container(container, force=True)
        return await attach(self, container)

    def remove_then_launch(of: docker.APIClient, container: str, *, local: bool) -> int | None:
        client.remove_container(container, force=True)
        return launch(of, container, local=local)

    if step == "_attach":
        monkeypatch.setattr(DockerBackend, "_attach", remove_first)
    else:
        monkeypatch.setattr(backends, "_launch", remove_then_launch)
    with pytest.raises(SandboxLost):
        await backend.start(spec())
    client.close()


async def test_a_container_that_is_killed_before_its_runner_speaks_is_lost(
    make_backend: MakeBackend, docker_host: str
) -> None:
    client = docker.APIClient(base_url=docker_host)
    backend = make_backend()
    for end in (client.kill, partial(client.remove_container, force=True)):
        link = await backend.start(spec())
        end(link.id)
        while await link.read():
            pass
        sandbox = Sandbox(link, backend="docker", spec=spec(), grace_s=1.0)
        with pytest.raises(SandboxLost):
            await sandbox.greet()
    client.close()


async def test_a_container_that_somebody_else_removed_is_lost(guest: Guest, docker_host: str) -> None:
    client = docker.APIClient(base_url=docker_host)
    client.remove_container(guest.link.id, force=True)
    client.close()
    assert await guest.link.read() == b""
    assert (await guest.link.destroy()).lost


# Containers of dead hosts


HOST = """
import asyncio, sys
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec
from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from evaluator_host.engine.sandbox.linux.instance import this_instance

async def main():
    backend = DockerBackend(docker_host=sys.argv[1], runtime=None, image=sys.argv[2], instance=this_instance())
    link = await backend.start(SandboxSpec(Language.PYTHON, Environment("", Language.PYTHON, "")))
    await link.read()
    print(this_instance(), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.long
async def test_the_containers_of_a_killed_host_end_and_are_swept_and_those_of_a_live_one_are_not(
    backend: DockerBackend,
    docker_host: str,
    probe_image: str,
) -> None:
    hosts = [
        subprocess.Popen([sys.executable, "-c", HOST, docker_host, probe_image], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    mine = await start(backend)
    try:
        instances = [host.stdout.readline().strip() for host in hosts if host.stdout]
        hosts[0].send_signal(signal.SIGKILL)
        hosts[0].wait()
        client = docker.APIClient(base_url=docker_host)
        exit_code = client.wait(containers(docker_host, instances[0])[0], timeout=10)["StatusCode"]
        client.close()
        assert exit_code == 0, "the runner must end because its channel has ended"
        assert await backend.sweep() == 1
        assert containers(docker_host, instances[0]) == []
        assert len(containers(docker_host, instances[1])) == 1
        assert await mine.run("answer = 1") == 1
        hosts[1].kill()
        hosts[1].wait()
        assert await backend.sweep() == 1
    finally:
        for host in hosts:
            host.kill()
            host.wait()
            if host.stdout:
                host.stdout.close()
        await mine.link.destroy()


# Messages that say what to do


async def test_a_missing_image_says_how_to_make_it(make_backend: MakeBackend) -> None:
    with pytest.raises(SandboxUnavailable, match="run `evaluator-host images build`"):
        await make_backend(image="evaluator-host/absent:0").start(spec())


async def test_an_absent_engine_says_how_to_start_one(make_backend: MakeBackend, tmp_path: Path) -> None:
    backend = make_backend(docker_host=f"unix://{tmp_path}/absent.sock")
    with pytest.raises(SandboxUnavailable, match="systemctl start docker"):
        await backend.start(spec())
    assert [finding.ok for finding in await backend.findings()] == [False]
    assert await backend.sweep() == 0


async def test_an_unknown_runtime_says_which_setting_names_it(make_backend: MakeBackend) -> None:
    backend = make_backend(runtime="absent")
    with pytest.raises(SandboxUnavailable, match="EVALUATOR_HOST_DOCKER_RUNTIME"):
        await backend.start(spec())
    finding = next(finding for finding in await backend.findings() if finding.name == "runtime")
    assert not finding.ok


async def test_a_forbidden_socket_names_its_group(make_backend: MakeBackend, docker_host: str) -> None:
    with Relay(docker_host) as relay:
        relay.forbid()
        backend = make_backend(docker_host=relay.address)
        # file-system rights belong to a thread and its children, so the backend has to start its threads now
        os.seteuid(65534)
        try:
            with pytest.raises(SandboxUnavailable, match="belongs to group"):
                await backend.start(spec())
        finally:
            os.seteuid(0)


async def test_findings_say_what_works_and_a_stale_image(backend: DockerBackend) -> None:
    found = {finding.name: finding for finding in await backend.findings()}
    assert found["engine"].ok
    assert found["python sandbox"].detail.startswith("starts: probe python 3.13")
    assert found["javascript sandbox"].detail.startswith("starts: probe node 24")
    assert not found["image"].ok, (
        "the finding must say that the runners in the probe image are not those of this package"
    )
    assert found["image"].fix == "run `evaluator-host images build`"
    assert {"runtime", "memory limit", "process limit", "cpu limit", "seccomp"} <= set(found)

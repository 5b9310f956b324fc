"""The Docker backend over a real engine: what a guest can see and do, how a container ends, and what is left of it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from evaluator_host.errors import SandboxUnavailable
from evaluator_host.model import Environment, Language, SandboxSpec
from evaluator_host.protocol import Frame, FrameDecoder, encode
from evaluator_host.sandbox.base import Autopsy
from evaluator_host.sandbox.docker import DockerBackend, DockerLink
from evaluator_host.sandbox.docker_attach import PAUSE_BYTES
from evaluator_host.sandbox.docker_remains import LABEL_INSTANCE
from evaluator_host.sandbox.docker_ssh import SshChannel
from evaluator_host.sandbox.instance import this_instance
from tests import engines
from tests.relay import Relay

OWN = f"{this_instance()}.1"  # the containers of these tests, not of a service of the same run

MakeBackend = Callable[..., DockerBackend]


def spec(language: Language = Language.PYTHON, **limits: int) -> SandboxSpec:
    return SandboxSpec(language, Environment("", language, ""), **limits)


class Guest:
    """A started sandbox with the probe runner in it."""

    def __init__(self, link: DockerLink) -> None:
        self.link = link
        self._decoder = FrameDecoder()
        self._frames: list[Frame] = []

    async def frame(self) -> Frame | None:
        async with asyncio.timeout(30):
            while not self._frames:
                data = await self.link.read()
                if not data:
                    return None
                self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    async def run(self, code: str) -> Any:
        """Run code in the runner and return its `answer`; None when the runner ended instead."""
        self.link.write(encode({"type": "run"}, textwrap.dedent(code).encode()))
        frame = await self.frame()
        if frame is None:
            return None
        assert frame.type == "answer", json.loads(frame.body)
        return json.loads(frame.body)


@pytest.fixture(scope="module")
def docker_host() -> str:
    return engines.bare_engine_address()


@pytest.fixture(scope="module")
def probe_image() -> str:
    return engines.probe_image()


@pytest.fixture
async def make_backend(docker_host: str, probe_image: str) -> AsyncIterator[MakeBackend]:
    made: list[DockerBackend] = []

    def make(**changes: Any) -> DockerBackend:
        arguments = {"docker_host": docker_host, "runtime": None, "image": probe_image, "instance": OWN}
        made.append(DockerBackend(**{**arguments, **changes}))
        return made[-1]

    yield make
    for backend in made:
        await backend.close()
    assert containers(docker_host, OWN) == []


@pytest.fixture
async def backend(make_backend: MakeBackend) -> DockerBackend:
    return make_backend()


async def start(backend: DockerBackend, wanted: SandboxSpec | None = None) -> Guest:
    guest = Guest(await backend.start(wanted or spec()))
    hello = await guest.frame()
    assert hello is not None, await guest.link.destroy()
    assert hello.type == "hello"
    return guest


@pytest.fixture
async def guest(backend: DockerBackend) -> AsyncIterator[Guest]:
    started = await start(backend)
    yield started
    await started.link.destroy()


def containers(docker_host: str, instance: str) -> list[str]:
    """Names of a host's containers, as the engine lists them."""
    client = docker.APIClient(base_url=docker_host)
    found = client.containers(all=True, filters={"label": f"{LABEL_INSTANCE}={instance}"})
    client.close()
    return [item["Names"][0].removeprefix("/") for item in found]


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def own_namespaces() -> set[str]:
    return {str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("net", "pid", "ipc", "uts", "mnt")}


# What a guest can see and do


async def test_a_guest_is_nobody_without_capabilities_behind_a_filter(guest: Guest) -> None:
    status = await guest.run(
        "answer = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines())"
    )
    assert int(status["Uid"].split()[0]) >= 20_000
    assert int(status["Gid"].split()[0]) >= 20_000
    assert status["Groups"].split() in ([], [status["Gid"].split()[0]])
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"


async def test_two_sandboxes_have_two_users(backend: DockerBackend) -> None:
    guests = [await start(backend) for _ in range(2)]
    uids = [await guest.run("import os; answer = os.getuid()") for guest in guests]
    assert uids[0] != uids[1]
    for guest in guests:
        await guest.link.destroy()


@pytest.mark.parametrize("path", ["/file", "/opt/runner/python/file", "/etc/hosts", "/etc/resolv.conf", "/dev/file"])
async def test_a_guest_cannot_write_outside_its_tmpfs(guest: Guest, path: str) -> None:
    refused = await guest.run(f"""
        try:
            open({path!r}, 'a').write('x'); answer = 'written'
        except OSError as error:
            answer = error.errno
    """)
    assert refused in (13, 30), "EACCES or EROFS"


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
async def test_the_tmpfs_is_small_and_nothing_on_it_runs(backend: DockerBackend, folder: str) -> None:
    guest = await start(backend, spec(disk_mb=4))
    size = await guest.run(f"""
        import errno
        answer = 0
        try:
            with open('{folder}/big', 'wb', buffering=0) as file:
                while True: answer += file.write(bytes(65536))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
    """)
    assert size == 4 << 20
    inodes = await guest.run(f"""
        import errno, os
        os.unlink('{folder}/big')
        answer = 0
        try:
            while True: open(f'{folder}/{{answer}}', 'w').close(); answer += 1
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
    """)
    assert 900 < inodes <= 1024
    refused = await guest.run(f"""
        import os, subprocess
        os.unlink('{folder}/0')
        with open('{folder}/0', 'w') as file: file.write('#!/bin/sh')
        os.chmod('{folder}/0', 0o755)
        try:
            subprocess.run(['{folder}/0']); answer = 'ran'
        except OSError as error:
            answer = error.errno
    """)
    assert refused == 13
    await guest.link.destroy()


async def test_a_guest_has_no_network_and_no_trace_of_the_hosts(guest: Guest) -> None:
    found = await guest.run("""
        import os, socket
        answer = {"interfaces": os.listdir('/sys/class/net') if os.path.isdir('/sys/class/net') else []}
        for name, target in {"metadata": ("169.254.169.254", 80), "gateway": ("172.17.0.1", 22)}.items():
            try:
                socket.create_connection(target, timeout=2); answer[name] = 'connected'
            except OSError as error:
                answer[name] = error.errno
        answer["namespaces"] = [os.readlink(f"/proc/self/ns/{name}") for name in ("net", "pid", "ipc", "uts", "mnt")]
        answer["resolver"] = open('/etc/resolv.conf').read().split()
        answer["host"] = socket.gethostname()
        answer["sockets"] = [path for path in ('/var/run/docker.sock', '/run/docker.sock') if os.path.exists(path)]
    """)
    assert set(found["interfaces"]) <= {"lo", "tunl0", "sit0", "ip6tnl0", "gre0"}
    assert found["metadata"] == found["gateway"] == 101, "ENETUNREACH"
    assert not own_namespaces() & set(found["namespaces"])
    assert set(found["resolver"]) <= {"nameserver", "0.0.0.0"}
    assert found["host"] == "sandbox"
    assert found["sockets"] == []


async def test_a_guest_has_no_environment_of_the_hosts(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    names = await guest.run("import os; answer = sorted(os.environ)")
    threads = [f"{name}_NUM_THREADS" for name in ("MKL", "NUMEXPR", "OMP", "OPENBLAS")]
    assert names == sorted(["HOME", "HOSTNAME", "LANG", "PATH", "TMPDIR", "USER", *threads])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("libc.unshare(0x10000000)", 1),  # CLONE_NEWUSER
        ("libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)", 1),
        ("libc.ptrace(0, 0, 0, 0)", 1),
        ("libc.syscall(321, 0, 0, 0)", 1),  # bpf
        ("libc.setuid(0)", 1),
    ],
)
async def test_the_kernel_refuses_what_the_policy_forbids(guest: Guest, call: str, error: int) -> None:
    found = await guest.run(f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        answer = [{call}, ctypes.get_errno()]
    """)
    assert found == [-1, error]


async def test_no_program_in_the_image_lends_its_owners_rights(guest: Guest) -> None:
    found = await guest.run("""
        import os, stat
        answer = [
            os.path.join(folder, name)
            for folder, folders, names in os.walk('/') if folder != '/' or folders.remove('proc') is None
            for name in names
            if os.lstat(os.path.join(folder, name)).st_mode & (stat.S_ISUID | stat.S_ISGID)
        ]
    """)
    assert found == []


async def test_forks_end_at_the_limit_and_it_is_told(backend: DockerBackend) -> None:
    guest = await start(backend, spec(processes=8))
    forked = await guest.run("""
        import os, signal, time
        answer = 0
        try:
            while True:
                if os.fork() == 0:
                    time.sleep(60)
                answer += 1
        except BlockingIOError:
            pass
    """)
    assert 8 <= forked <= 16
    autopsy = await guest.link.destroy()
    assert autopsy.pids_hit


# Memory

EAT = "hoard = []\nwhile True: hoard.append(bytearray(1 << 20))"


async def test_a_child_killed_for_memory_is_counted_at_once_and_its_runner_lives(backend: DockerBackend) -> None:
    guest = await start(backend, spec(memory_mb=64))
    assert guest.link.memory_events() == 0
    killed_by = await guest.run(f"""
        import os
        child = os.fork()
        if child == 0:
            exec({EAT!r})
        answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    """)
    assert killed_by == -9
    assert guest.link.memory_events() > 0
    assert await guest.run("answer = 7") == 7
    assert (await guest.link.destroy()).oom_killed


async def test_a_runner_killed_for_memory_is_told_apart_from_a_crash(backend: DockerBackend) -> None:
    guest = await start(backend, spec(memory_mb=64))
    assert await guest.run(EAT) is None
    autopsy = await guest.link.destroy()
    assert (autopsy.oom_killed, autopsy.signal, autopsy.lost) == (True, 9, False)


async def test_where_no_cgroup_can_be_read_the_engines_events_count(backend: DockerBackend) -> None:
    guest = await start(backend, spec(memory_mb=64))
    memory, forks = guest.link._memory, guest.link._forks
    assert memory is not None
    assert forks is not None
    guest.link._memory = None
    await guest.run(f"import os\nif os.fork() == 0: exec({EAT!r})\nos.wait()")
    async with asyncio.timeout(10):
        while guest.link.memory_events() == 0:
            await asyncio.sleep(0.01)
    await guest.link.destroy()
    memory.close()


# The channel


async def test_large_frames_pass_whole_in_both_directions(guest: Guest) -> None:
    text = os.urandom(3 << 20).hex()
    guest.link.write(encode({"type": "run", "text": text[:1000]}, f"answer = {text!r}[::-1]".encode()))
    await guest.link.drain()
    frame = await guest.frame()
    assert frame is not None
    assert json.loads(frame.body) == text[::-1]


async def test_a_guest_that_floods_an_unread_channel_is_blocked_not_buffered(guest: Guest) -> None:
    wanted = 40 << 20
    guest.link.write(encode({"type": "run"}, b"for _ in range(40): send({'type': 'flood'}, b'x' * (1 << 20))"))
    previous = -1
    while guest.link._channel.inbox._unread != previous or previous == 0:
        previous = guest.link._channel.inbox._unread
        await asyncio.sleep(0.3)
    assert PAUSE_BYTES <= previous < 2 * PAUSE_BYTES
    got = 0
    while got < wanted:
        frame = await guest.frame()
        assert frame is not None
        got += len(frame.body)
    assert got == wanted


async def test_standard_error_is_kept_apart_and_only_its_tail(guest: Guest) -> None:
    assert (
        await guest.run("import sys; print('x' * 100_000 + 'last words', file=sys.stderr, flush=True); answer = 1") == 1
    )
    assert await guest.run("import os; os._exit(7)") is None
    autopsy = await guest.link.destroy()
    assert autopsy.stderr_tail.endswith("xxxlast words\n")
    assert len(autopsy.stderr_tail) == 8192
    assert (autopsy.exit_code, autopsy.signal, autopsy.lost) == (7, None, False)


async def test_after_the_end_reading_says_so_and_writing_is_silent(guest: Guest) -> None:
    assert not guest.link.ended
    assert await guest.run("import os; os._exit(0)") is None
    assert guest.link.ended
    guest.link.write(b"x" * (4 << 20))
    async with asyncio.timeout(5):
        await guest.link.drain()
    assert await guest.link.read() == b""


async def test_the_thread_driven_channel_of_ssh_carries_the_same_bytes(
    docker_host: str,
    probe_image: str,
    backend: DockerBackend,
) -> None:
    facts = await backend._engine.facts()
    made: list[Any] = []

    def attach_by_docker_py(client: docker.APIClient, container: str) -> Any:
        stream = client.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        made.append(stream)
        stream._sock.settimeout(None)
        return stream._sock

    async def attach(container: str) -> SshChannel:
        return SshChannel(await backend._engine.run(attach_by_docker_py, container))

    backend._attach = attach  # type: ignore[method-assign]
    assert facts.local
    guest = await start(backend)
    text = os.urandom(1 << 20).hex()
    assert await guest.run(f"answer = {text!r}[::-1]") == text[::-1]
    guest.link.write(b"\0" * (4 << 20))
    await guest.link.drain()
    await guest.link.destroy()
    for stream in made:
        stream.close()


# How it ends


async def test_destroying_removes_the_container_and_can_be_done_twice_at_once(
    backend: DockerBackend, docker_host: str
) -> None:
    guest = await start(backend)
    await guest.run("import subprocess; subprocess.Popen(['/usr/bin/sleep', '600'], start_new_session=True)")
    assert containers(docker_host, OWN) == [guest.link.id]
    first, second = await asyncio.gather(guest.link.destroy(), guest.link.destroy())
    assert first == second == Autopsy(signal=9)
    assert containers(docker_host, OWN) == []
    assert await guest.link.destroy() is first


async def test_a_closed_backend_has_left_no_descriptor_open(make_backend: MakeBackend) -> None:
    await asyncio.to_thread(open_descriptors)  # the loop's own thread pool exists from here on
    before = open_descriptors()
    backend = make_backend()
    for _ in range(3):
        await (await start(backend)).link.destroy()
    assert open_descriptors() > before
    await backend.close()
    assert open_descriptors() == before


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
    assert containers(docker_host, OWN) == []


async def test_a_caller_who_hangs_up_while_it_is_destroyed_changes_nothing(
    backend: DockerBackend, docker_host: str
) -> None:
    guest = await start(backend)
    destroying = asyncio.ensure_future(guest.link.destroy())
    await asyncio.sleep(0)
    destroying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await destroying
    assert await guest.link.destroy() == Autopsy(signal=9)
    assert containers(docker_host, OWN) == []


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
        autopsy = await guest.link.destroy()
        assert autopsy.lost
        with pytest.raises(SandboxUnavailable, match="no Docker engine answers"):
            await backend.start(spec())
        relay.open()
        assert await backend.sweep() == 1
        again = await start(backend)
        assert await again.run("answer = 1") == 1
        await again.link.destroy()
        assert containers(docker_host, OWN) == []


async def test_a_container_that_somebody_else_removed_is_lost(guest: Guest, docker_host: str) -> None:
    client = docker.APIClient(base_url=docker_host)
    client.remove_container(guest.link.id, force=True)
    client.close()
    assert await guest.link.read() == b""
    assert (await guest.link.destroy()).lost


# Hosts that died


HOST = """
import asyncio, sys
from evaluator_host.model import Environment, Language, SandboxSpec
from evaluator_host.sandbox.docker import DockerBackend
from evaluator_host.sandbox.instance import this_instance

async def main():
    backend = DockerBackend(docker_host=sys.argv[1], runtime=None, image=sys.argv[2], instance=this_instance())
    link = await backend.start(SandboxSpec(Language.PYTHON, Environment("", Language.PYTHON, "")))
    await link.read()
    print(this_instance(), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


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
        assert exit_code == 0, "end of file on its channel ended the runner"
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


# Advice


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
        os.seteuid(65534)  # file-system rights are the thread's and its children's: the backend's threads start now
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
    assert not found["image"].ok, "the probe image holds other runners than this package"
    assert found["image"].fix == "run `evaluator-host images build`"
    assert {"runtime", "memory limit", "process limit", "cpu limit", "seccomp"} <= set(found)

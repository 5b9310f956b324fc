"""Code in a sandbox of the Docker backend can see and do only what is allowed, and cannot exceed its limits."""

import asyncio

import pytest

from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from tests.docker_guests import Guest, own_namespaces, spec, start


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


async def test_a_guest_cannot_write_outside_its_tmpfs(guest: Guest) -> None:
    refused = await guest.run("""
        answer = {}
        for path in ('/file', '/opt/runner/python/file', '/etc/hosts', '/etc/resolv.conf', '/dev/file'):
            try:
                open(path, 'a').write('x'); answer[path] = 'written'
            except OSError as error:
                answer[path] = error.errno
    """)
    assert len(refused) == 5
    assert set(refused.values()) <= {13, 30}, "each write must fail with EACCES or EROFS"


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


REFUSED = (
    "libc.unshare(0x10000000)",  # CLONE_NEWUSER
    "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "libc.ptrace(0, 0, 0, 0)",
    "libc.syscall(321, 0, 0, 0)",  # bpf
    "libc.setuid(0)",
)


async def test_the_kernel_refuses_what_the_policy_forbids(guest: Guest) -> None:
    for call in REFUSED:
        found = await guest.run(f"""
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            answer = [{call}, ctypes.get_errno()]
        """)
        assert found == [-1, 1], call


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


async def test_forks_end_at_the_limit_and_it_is_reported(backend: DockerBackend) -> None:
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
    exit_status = await guest.link.destroy()
    assert exit_status.pids_hit


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
    exit_status = await guest.link.destroy()
    assert (exit_status.oom_killed, exit_status.signal, exit_status.lost) == (True, 9, False)


async def test_where_no_cgroup_can_be_read_the_engines_events_count(backend: DockerBackend) -> None:
    guest = await start(backend, spec(memory_mb=64))
    cgroup = guest.link._cgroup
    assert cgroup is not None
    assert cgroup.enforces("memory")
    assert cgroup.enforces("pids")
    guest.link._cgroup = None
    await guest.run(f"import os\nif os.fork() == 0: exec({EAT!r})\nos.wait()")
    async with asyncio.timeout(10):
        while guest.link.memory_events() == 0:
            await asyncio.sleep(0.01)
    await guest.link.destroy()
    cgroup.close()

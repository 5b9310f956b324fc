"""A build's processes can see, use and do only what is allowed. Programs inside a build check this, on hosts that root
and an ordinary user run.

Each test fails if its guard is missing, that is, if one more folder is mounted, or if a limit, the filter or `_ENTER`
is left out.
"""

import asyncio
import errno
import json
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.environments.build import command as build_command
from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.sandbox.linux.cgroups import Cgroups
from evaluator_host.engine.system.processes import Command, LimitReached, OutputFlood
from evaluator_host.types.errors import Misconfigured
from tests.ordinary_user import pass_as_ordinary_user

SECRET = "0perator-s3cret"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("downloads", "staging/mine/files", "staging/other/files"):
        (tmp_path / "environments" / "build" / name).mkdir(parents=True)
    (tmp_path / "environments" / "build" / "staging" / "other" / "files" / "theirs").write_text("x")
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "cwd").mkdir()
    return tmp_path


@pytest.fixture
def builder(home: Path) -> Builder:
    return new_builder(home)


def new_builder(home: Path, *, file_mb: int = 200, memory_mb: int = 512) -> Builder:
    return Builder(home / "environments" / "build", file_mb=file_mb, memory_mb=memory_mb)


async def inside(builder: Builder, home: Path, code: str, *, sources: bool = False, **options: Any) -> Any:
    """Run Python code in the sandbox of a build (of a source build if `sources`); return the JSON that it printed."""
    argv = (str(builder.tools.python), "-I", "-S", "-c", "import json, os, socket\n" + code)
    command = Command(argv, home / "cwd", {"HOME": str(home / "cwd")})
    run = builder.run_sources if sources else builder.run
    finished = await run(command, options.pop("timeout_s", 60.0), **options)
    assert finished.code == 0, finished.stderr
    return json.loads(finished.stdout)


STATUS = """
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({name: status[name].split()[0] for name in ("Uid", "CapPrm", "CapEff", "CapAmb", "Seccomp", "NoNewPrivs")}))
"""
TRY_TO_WRITE = """
def writes(folder):
    try:
        with open(os.path.join(folder, "mark"), "w"): pass
        os.remove(os.path.join(folder, "mark"))
        return True
    except OSError:
        return False
found = []
for folder, names, _ in os.walk("/"):
    if folder in ("/proc", "/usr", "/lib"):  # read-only as a whole, or not at all
        names.clear()
    if writes(folder) and (os.path.ismount(folder) or not writes(os.path.dirname(folder))):
        found.append(folder)
print(json.dumps(found))
"""
SEES = """
found = {}
for root in ("/etc", "/root", "/home", ROOT):
    found[root] = sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
found["environ"] = dict(os.environ)
found["processes"] = [name for name in os.listdir("/proc") if name.isdigit()]
found["init"] = open("/proc/1/environ").read() if os.access("/proc/1/environ", os.R_OK) else ""
print(json.dumps(found))
"""


async def test_it_is_an_unprivileged_user_with_our_filter(builder: Builder, home: Path) -> None:
    for sources in (False, True):
        found = await inside(builder, home, STATUS, sources=sources)
        assert found.pop("Uid") != "0"
        assert found == {**dict.fromkeys(("CapPrm", "CapEff", "CapAmb"), "0" * 16), "Seccomp": "2", "NoNewPrivs": "1"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sources", [False, True])
async def test_only_its_own_folders_are_writable(builder: Builder, home: Path, sources: bool) -> None:
    found = await inside(builder, home, TRY_TO_WRITE, sources=sources)
    build, work = home / "environments" / "build", home / "environments" / "work"
    downloads = build / "downloads" / "builder" if sources else build / "downloads"
    assert {path for path in found if not path.startswith(str(work))} == {
        "/tmp",
        "/dev/shm",
        str(home / "cwd"),
        str(downloads),
    }
    assert [path.endswith("/tmp") for path in found if path.startswith(str(work))] == [True] * sources
    if sources:  # a source build has its own downloads, which are removed afterwards
        assert not downloads.exists()


async def test_a_stage_shares_files_with_downloads_and_hides_other_stages(builder: Builder, home: Path) -> None:
    build = home / "environments" / "build"
    code = f"""
open("{build}/downloads/file", "w").close()
os.link("{build}/downloads/file", "{build}/staging/mine/files/file")
print(json.dumps([os.listdir("{build}/staging/other"), os.access("{build}/staging/other", os.W_OK)]))
"""
    assert await inside(builder, home, code, stage=build / "staging" / "mine" / "files") == [[], False]
    assert (build / "staging" / "mine" / "files" / "file").stat().st_nlink == 2
    assert (build / "staging" / "other" / "files" / "theirs").read_text() == "x"


@pytest.mark.parametrize("sources", [False, True])
async def test_it_sees_no_file_variable_or_process_of_the_host(
    builder: Builder, home: Path, monkeypatch: pytest.MonkeyPatch, sources: bool
) -> None:
    monkeypatch.setenv("OPERATORS_TOKEN", SECRET)
    (home / "environments" / "build" / "downloads" / "theirs").write_text(SECRET)
    found = await inside(builder, home, f"ROOT = {str(home)!r}\n{SEES}", sources=sources)
    assert SECRET not in json.dumps(found)
    assert set(found["environ"]) <= {"PATH", "LANG", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "PWD", "LC_CTYPE"}
    assert len(found["processes"]) <= 3
    names = {"resolv.conf", "hosts", "nsswitch.conf", "gai.conf", "passwd", "group"}
    of_etc = [path for path in found["/etc"] if not path.startswith("/etc/alternatives/")]
    assert {Path(path).name for path in of_etc} <= names
    python = str(builder.tools.python.parents[1])
    mine = (python, str(builder.tools.uv), str(builder.tools.npm), str(builder.tools.node))
    assert [path for path in (*found["/root"], *found["/home"]) if not path.startswith(mine)] == []
    if sources:
        assert found[str(home)] == []
    else:
        assert found[str(home)] == [str(home / "environments" / "build" / "downloads" / "theirs")]


FORBIDDEN = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def refused(number, *arguments):
    return libc.syscall(number, *arguments) == -1
def family(number, kind):
    try: socket.socket(number, kind).close()
    except OSError: return True
    return False
print(json.dumps({
    "unshare": refused(272, 0x10000000), "mount": refused(165, b"x", b"/tmp", b"tmpfs", 0, None),
    "ptrace": refused(101, 16, 1, 0, 0), "bpf": refused(321, 0, None, 0), "io_uring": refused(425, 1, None),
    "keyctl": refused(250, 0, 0), "userfaultfd": refused(323, 0), "setuid": refused(105, 0),
    "netlink": family(16, socket.SOCK_RAW), "packet": family(17, socket.SOCK_RAW), "raw": family(2, socket.SOCK_RAW),
    "inet works": not family(2, socket.SOCK_STREAM),
}))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the test uses the numbers of calls on x86_64")
async def test_calls_that_a_build_does_not_need_are_refused(builder: Builder, home: Path) -> None:
    assert {
        name for name, refused in (await inside(builder, home, FORBIDDEN, sources=True)).items() if not refused
    } == set()


async def test_no_build_reaches_unix_sockets_of_the_machine(builder: Builder, home: Path) -> None:
    name = f"\0evaluator-host-test-{os.getpid()}"
    code = f"""
def reaches():
    try:
        with socket.socket(socket.AF_UNIX) as door: door.connect({name!r})
        return True
    except OSError as error: return error.errno
pair = socket.socketpair()
pair[0].send(b"x")
print(json.dumps([reaches(), pair[1].recv(1).decode()]))
"""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        for sources in (False, True):
            assert await inside(builder, home, code, sources=sources) == [errno.EAFNOSUPPORT, "x"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("kept = []\nwhile True: kept.append(bytearray(10_000_000))", "512 MB of memory"),
        ("import subprocess, sys\nkept = [bytearray(300_000_000), os.fork(), bytearray(b'x' * 300_000_000)]\nimport time; time.sleep(30)", "512 MB of memory"),
        ("import threading, time\nthreading.stack_size(65536)\nfor _ in range(1200): threading.Thread(target=time.sleep, args=(20,), daemon=True).start()\ntime.sleep(3)", "1024 processes"),
        ("for n in range(99):\n    with open(f'{n}', 'wb') as f: f.write(bytes(50_000_000))", "400 MB"),
        ("import mmap\nfor n in range(99):\n    f = open(f'{n}', 'wb+'); os.posix_fallocate(f.fileno(), 0, 50_000_000)\nimport time; time.sleep(30)", "400 MB"),
    ],
    ids=["memory", "memory of children", "threads", "disk", "disk without writing"],
)  # fmt: skip
async def test_a_build_that_takes_too_much_is_ended_and_the_limit_is_named(home: Path, code: str, words: str) -> None:
    builder = new_builder(home)
    with pytest.raises(LimitReached, match=words):
        await inside(builder, home, code, sources=True)
    assert await inside(builder, home, "print(json.dumps('still works'))") == "still works"


async def test_one_file_cannot_be_larger_than_allowed(home: Path) -> None:
    code = """
try:
    with open("large", "wb") as file: file.truncate(500 << 20)
    print(json.dumps("made"))
except OSError as error: print(json.dumps(error.strerror))
"""
    assert (
        await inside(new_builder(home), home, f"import signal; signal.signal(25, signal.SIG_IGN)\n{code}")
        == "File too large"
    )


@pytest.mark.long
async def test_a_command_that_does_not_end_or_floods_is_ended_with_all_it_started(builder: Builder, home: Path) -> None:
    forks = "import time\nif os.fork() == 0:\n    os.setsid(); os.fork()\ntime.sleep(100)"
    with pytest.raises(TimeoutError):
        await inside(builder, home, forks, timeout_s=2.0)
    with pytest.raises(OutputFlood):
        await inside(builder, home, "import sys\nwhile True: sys.stderr.write('x' * 100_000)")
    task = asyncio.create_task(inside(builder, home, forks))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(processes_in(home / "cwd")) == []


def processes_in(folder: Path) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in (process / "cmdline").read_text():
                yield process.name
        except OSError:
            continue


async def test_a_command_whose_cgroup_is_removed_before_it_began_runs_all_the_same(
    builder: Builder, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, removed = build_command._cgroups, []

    def make_and_remove() -> Cgroups | None:
        cgroups = make()
        if cgroups is not None and not removed:
            cgroups.close()
            removed.extend(cgroups.homes.values())
        return cgroups

    monkeypatch.setattr(build_command, "_cgroups", make_and_remove)
    assert (await inside(builder, home, STATUS))["Seccomp"] == "2", (
        "the program must run in a sandbox, not as a plain process"
    )
    assert removed or os.geteuid() != 0, "there must be cgroups if root runs the test"
    assert not any(folder.exists() for folder in removed)


@pytest.mark.long
async def test_without_bubblewrap_it_is_a_plain_process_that_is_warned_about_and_builds_no_sources(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    builder = new_builder(home)
    monkeypatch.setenv("OPERATORS_TOKEN", SECRET)
    with caplog.at_level(logging.WARNING):
        looks = "import resource\nprint(json.dumps([dict(os.environ), resource.getrlimit(resource.RLIMIT_FSIZE), os.umask(0)]))"
        environ, limit, umask = await inside(builder, home, looks)
    assert SECRET not in json.dumps(environ)
    assert (limit, umask) == ([200 << 20] * 2, 0o022)
    assert "without a sandbox" in caplog.text
    (finding,) = await builder.findings()
    assert not finding.ok
    assert "bubblewrap" in f"{finding.detail} {finding.fix}"
    with pytest.raises(Misconfigured, match="Building packages from source needs bubblewrap"):
        await inside(builder, home, "print(1)", sources=True)
    with pytest.raises(LimitReached, match="400 MB"):
        await inside(builder, home, "for n in range(99):\n    with open(f'{n}', 'wb') as f: f.write(bytes(50_000_000))")
    with pytest.raises(TimeoutError):
        await inside(builder, home, "if os.fork(): import time; time.sleep(50)\ntime.sleep(50)", timeout_s=2.0)
    assert list(processes_in(home / "cwd")) == []


@pytest.mark.long
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    pass_as_ordinary_user(Path(__file__))

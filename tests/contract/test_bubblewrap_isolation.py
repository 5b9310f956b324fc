"""Code in a bubblewrap sandbox sees and uses only what belongs to the sandbox, on real hosts that root and an ordinary
user run.
"""

import errno
import json
import os
import platform
import socket
import uuid
from pathlib import Path

import pydantic
import pytest

from evaluator_host.engine.config import settings as config
from evaluator_host.engine.sandbox.bubblewrap.seccomp import SYSCALL_NUMBERS
from evaluator_host.types.evaluator import Language
from tests.ordinary_user import pass_as_ordinary_user
from tests.probe import Probe, new_backend, spec


@pytest.fixture(name="backend")
async def backend_fixture():
    backend = new_backend()
    yield backend
    await backend.close()


@pytest.fixture(name="probe")
async def probe_fixture(backend):
    async with await Probe.start(backend) as probe:
        yield probe


async def test_sees_a_minimal_root_and_nothing_of_the_host(probe):
    shown = json.loads(
        await probe.run(
            "import json, os; print(json.dumps([sorted(os.listdir(d)) for d in ('/', '/opt', '/etc', '/dev', '/tmp')]))"
        )
    )
    assert set(shown[0]) <= {"dev", "etc", "lib", "lib64", "opt", "proc", "tmp", "usr"}
    assert set(shown[1]) <= {"commands", "python", "restricted", "runner"}
    assert shown[2] == ["group", "hosts", "nsswitch.conf", "passwd"]
    assert shown[3] == sorted(["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"])
    assert shown[4] == []
    for path in (config.RUNTIMES_DIR, Path.home() / ".ssh", "/var", "/sys", "/run", "/root", "/home"):
        assert await probe.run(f"import os; print(os.path.exists({str(path)!r}))") == "False\n", path


async def test_the_hosts_environment_and_paths_do_not_reach_it(backend, monkeypatch):
    monkeypatch.setenv("EVALUATOR_HOST_SECRET", "s3cret")
    async with await Probe.start(backend) as probe:
        everything = await probe.run(
            "import glob, os\n"
            "print(dict(os.environ))\n"
            "for f in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):\n"
            "    try: print(open(f, 'rb').read())\n"
            "    except OSError as e: print(e)\n"
        )
    assert "HOME" in everything
    assert "s3cret" not in everything
    assert str(config.RUNTIMES_DIR.parent) not in everything


async def test_is_nobody_without_rights_behind_the_filter(probe):
    status = await probe.run("print(open('/proc/self/status').read())")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split()) & {"0"} == set()
    assert set(fields["Gid"].split()) & {"0"} == set()
    assert fields["Groups"].split() in ([], ["65534"])
    assert [int(fields[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")] == [0, 0, 0]
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    first = await probe.run("print(open('/proc/1/status').read())")
    assert "Seccomp:\t2" in first
    assert "CapEff:\t0000000000000000" in first
    assert "Errno" in await probe.run("import os; os.setuid(0)")


async def test_inherits_no_descriptor(backend):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.set_inheritable(True)
        async with await Probe.start(backend) as probe:
            links = await probe.run(
                "import os\nfor fd in os.listdir('/proc/self/fd'):\n"
                "    try: print(os.readlink('/proc/self/fd/' + fd))\n"
                "    except OSError: pass\n"
            )
            sockets = [line for line in links.splitlines() if line.startswith(("socket:", "anon_inode:"))]
            assert sockets == []
            # descriptors 0, 1 and 2, and the runner's copy of 1
            assert len([line for line in links.splitlines() if line.startswith("pipe:")]) == 4


async def test_sees_no_process_but_its_own(probe):
    pids = (await probe.run("import os; print(*[p for p in os.listdir('/proc') if p.isdigit()])")).split()
    assert sorted(map(int, pids)) in ([1], [1, 2])  # process 1 is the runner, or root's bubblewrap


async def test_has_no_network(probe):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{uuid.uuid4()}")
        abstract.listen()
        tcp, unix = server.getsockname(), abstract.getsockname()
        for family, address in (("INET", tcp), ("INET", ("169.254.169.254", 80)), ("UNIX", unix)):
            answer = await probe.run(
                f"import socket; s = socket.socket(socket.AF_{family}); s.settimeout(2); print(s.connect_ex({address!r}))"
            )
            assert int(answer) in (errno.ENETUNREACH, errno.ECONNREFUSED), address
    devices = await probe.run("print(*[l.split(':')[0].strip() for l in open('/proc/net/dev') if ':' in l])")
    assert devices.split() == ["lo"]


async def test_the_hosts_packages_are_not_there(probe):
    code = f"import sys, os; print(os.path.exists({pydantic.__file__!r})); sys.path += ['/usr/lib/python3/dist-packages']; "
    answer = await probe.run(code + "import pydantic")
    assert answer.startswith("False")
    assert "ModuleNotFoundError" in answer


async def test_a_package_set_is_readable_and_nothing_more(backend, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "answer.py").write_text("value = 42\n")
    async with await Probe.start(backend, spec(path=tmp_path)) as probe:
        assert "--packages" in probe.hello["hello"]
        assert (
            await probe.run("import sys; sys.path.append('/opt/packages'); import answer; print(answer.value)")
            == "42\n"
        )
        assert "Errno" in await probe.run("open('/opt/packages/answer.py', 'a').write('x')")
        assert "Errno" in await probe.run("open('/opt/packages/new.py', 'w')")
    assert [path.name for path in tmp_path.iterdir()] == ["answer.py"]


async def test_only_its_scratch_space_is_writable(probe):
    answer = await probe.run(
        "import os\n"
        "for root, folders, files in os.walk('/'):\n"
        "    if root == '/': folders.remove('proc')\n"
        "    try:\n"
        "        open(root + '/probe', 'x').close(); print(root)\n"
        "    except OSError as e: pass\n"
    )
    assert sorted(answer.split()) == ["/dev/shm", "/tmp"]
    for path in ("/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/self/uid_map"):
        assert "Errno" in await probe.run(f"import os; os.write(os.open({path!r}, os.O_RDWR), b'0 0 1')"), path


async def test_two_sandboxes_share_nothing(backend):
    async with await Probe.start(backend) as one, await Probe.start(backend) as two:
        await one.run("open('/tmp/left', 'w'); open('/dev/shm/left', 'w')")
        assert await two.run("import os; print(os.listdir('/tmp'), os.listdir('/dev/shm'))") == "[] []\n"
        if os.geteuid() == 0:
            assert await one.run("import os; print(os.getuid())") != await two.run("import os; print(os.getuid())")


CALL = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    padded = [ctypes.c_ulong(a) for a in (*args, 0, 0, 0, 0, 0, 0)[:6]]
    return 0 if libc.syscall(ctypes.c_long(number), *padded) != -1 else ctypes.get_errno()
print(json.dumps([call(*c) for c in {calls}]))
"""


async def errors_of(probe: Probe, calls: list[tuple[int, ...]]) -> list[int]:
    answer = await probe.run(CALL.replace("{calls}", repr(calls)))
    return json.loads(answer)


async def test_every_forbidden_system_call_fails_as_declared(probe):
    column = ("x86_64", "aarch64").index(platform.machine())
    policy = json.loads((config.SANDBOX_IMAGES_DIR / "seccomp.json").read_text())
    declared = {
        name: rule["errnoRet"]
        for rule in policy["syscalls"]
        if "args" not in rule
        for name in rule["names"]
        if SYSCALL_NUMBERS[name][column] is not None
    }
    answers = await errors_of(probe, [(SYSCALL_NUMBERS[name][column],) for name in declared])
    assert dict(zip(declared, answers, strict=True)) == declared


async def test_conditional_system_calls(probe):
    column = ("x86_64", "aarch64").index(platform.machine())
    number = {name: pair[column] for name, pair in SYSCALL_NUMBERS.items()}
    cases = {
        (number["clone"], 0x10000000 | 17): errno.EPERM,  # creates a user namespace
        (number["clone"], 0x40000000 | 17): errno.EPERM,  # creates a network namespace
        (number["personality"], 0x0040000): errno.EPERM,
        (number["personality"], 0xFFFFFFFF): 0,
        (number["ioctl"], 0, 0x5412): errno.EPERM,
        (number["ioctl"], 0, 0x5412 | 1 << 32): errno.EPERM,
        (number["socket"], 16, 3, 0): errno.EAFNOSUPPORT,  # a netlink socket
        (number["socket"], 17, 3, 0): errno.EAFNOSUPPORT,  # a packet socket
        (number["socket"], 2, 3, 1): errno.EPERM,  # a raw socket
        (number["socket"], 2, 1, 132): errno.EPROTONOSUPPORT,  # an SCTP socket
        (number["socket"], 2, 1, 0): 0,
        (number["socket"], 1, 1, 0): 0,
        (4242,): errno.ENOSYS,
    }
    assert dict(zip(cases, await errors_of(probe, list(cases)), strict=True)) == cases


async def test_standard_features_work_in_a_sandbox(probe):
    answer = await probe.run(
        "import ctypes, decimal, hashlib, multiprocessing.pool, socket, sqlite3, ssl, subprocess, sys, tempfile, threading\n"
        "import zoneinfo, getpass\n"
        "print(zoneinfo.ZoneInfo('Europe/Berlin').key)\n"
        "with tempfile.TemporaryFile() as f: f.write(b'x')\n"
        "with multiprocessing.pool.ThreadPool(2) as pool: print(sum(pool.map(abs, [-1, -2])))\n"
        "print(subprocess.run([sys.executable, '-I', '-S', '-c', 'print(6 * 7)'], capture_output=True).stdout)\n"
        "a, b = socket.socketpair(); a.send(b'hi'); print(b.recv(2))\n"
        "print(getpass.getuser(), socket.gethostname())\n"
    )
    assert answer == "Europe/Berlin\n3\nb'42\\n'\nb'hi'\nsandbox sandbox\n"


async def test_node_works(backend):
    async with await Probe.start(backend, spec(Language.JAVASCRIPT)) as probe:
        assert set((await probe.run("return require('fs').readdirSync('/opt')")).split(",")) == {
            "commands",
            "node",
            "esbuild",
            "runner",
        }
        answer = await probe.run(
            "const {Worker} = require('worker_threads')\n"
            "const w = new Worker('require(\"worker_threads\").parentPort.postMessage(6 * 7)', {eval: true})\n"
            "const n = await new Promise((ok, no) => { w.once('message', ok); w.once('error', no) })\n"
            "const c = require('crypto').createHash('sha256').update('x').digest('hex').slice(0, 4)\n"
            "return [n, c, require('os').hostname(), new Date(0).toString(), process.getuid() > 0].join('|')"
        )
        assert answer.startswith("42|2d71|sandbox|Thu Jan 01 1970 00:00:00 GMT+0000")
        assert answer.endswith("|true")


@pytest.mark.timeout(300)
def test_all_of_this_holds_for_an_ordinary_user():
    pass_as_ordinary_user(Path(__file__))

"""The host of a run. Its process is killed, stopped, and started again with the same port, disk and database."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from evaluator_host.engine.sandbox.linux.watchdog import child_pids, process_tree
from tests.chaos.launch import set_offset
from tests.chaos.oracle import Oracle
from tests.chaos.plan import Fault, Kind
from tests.chaos.programs import PACKAGED
from tests.indexes import Index
from tests.left_behind import left_behind
from tests.leftovers import mounts_below
from tests.ordinary_user import PROJECT, UID, ordinary_user_command
from tests.over_http import has_socket, inodes_of
from tests.packages import npm_package, wheel
from tests.processes import command_of, own_seconds, resident_mb
from tests.server import free_port
from tests.tools import copy_tools

DISK_MB: Final = 512
FREE_DISK_MB: Final = 16
_READY_S: Final = 120.0
_STARTS_S: Final = 30.0  # seconds of processor time; a start takes about 3
_STARVED_S: Final = 900.0  # wall-clock seconds for the start of a host that hardly gets the processor
_ENDS_S: Final = 180.0
_BUILDERS: Final = (b"uv\0", b"npm-cli")
_SIGBUS_EXITS: Final = {-signal.SIGBUS, 128 + signal.SIGBUS}
_ANY_START: Final = frozenset(Kind) - {
    *(Kind.KILL_HOST, Kind.RESTART_HOST, Kind.KILL_SANDBOX, Kind.JUMP_CLOCK, Kind.INDEX_DOWN, Kind.INDEX_SILENT)
}


@contextmanager
def small_disk(folder: Path, *, root: bool) -> Iterator[Path]:
    """Mount an empty file system of `DISK_MB` and yield it: ext4, or a tmpfs if there is no loop device.

    If this process is not root's, yield an ordinary folder instead.
    """
    disk = folder / "disk"
    disk.mkdir()
    if root:
        image = folder / "disk.img"
        with image.open("wb") as file:
            file.truncate(DISK_MB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        if subprocess.run(["mount", "-o", "loop", image, disk], capture_output=True).returncode:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "none", disk], check=True)
        image.unlink()  # the space is free again once the file system is unmounted
    try:
        yield disk
    finally:
        for mount in (*mounts_below(disk), *([str(disk)] if root else [])):
            subprocess.run(["umount", "--lazy", mount], check=True)


def publish(index: Index) -> None:
    """Offer the packages that `programs.packaged` needs."""
    for program in PACKAGED:
        pin = program.packages[0]
        name = pin.partition("=")[0].partition("@")[0]
        number = int(name.removeprefix("part"))
        if program.language == "python":
            index.add_python(wheel(name, {f"{name}.py": f"value = {number}\n"}))
        else:
            index.add_npm(npm_package(name, {"index.js": f"exports.value = {number};\n"}))


class ChaosHost:
    """Starts, watches and ends the processes of a host. Its methods block; they may be called from any thread.

    Args:
      folder: Folder for logs.
      disk: File system with the host's data directory.
      backend: Backend of the host's sandboxes.
      environment: Settings of the host, as environment variables.
      ordinary: Run as an ordinary user, although this process is root's.
      skew_s: How many seconds the host's clock is wrong from the start.
    """

    def __init__(
        self, folder: Path, disk: Path, *, backend: str, environment: dict[str, str], oracle: Oracle, ordinary: bool,
        skew_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.data, self.temporary, self.clock = disk / "data", folder / "tmp", folder / "clock"
        self.ordinary = ordinary
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.pids: list[int] = []
        self.clean: set[int] = set()  # ids of the processes that ended as intended
        self.most_mb = 0.0
        self.ready_s = 0.0  # for how many seconds the host has been ready so far
        self._ready_at: float | None = None  # when the host was last seen ready
        self._folder, self._backend, self._oracle = folder, backend, oracle
        self._environment = {**environment, "TMPDIR": str(self.temporary)}
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._wanted = False  # whether the host should run, so that it is started again if it ends
        self.over = False  # whether the host is no longer needed, even if the run has failed
        self._lock = threading.RLock()
        set_offset(self.clock, skew_s)
        self._prepare()

    def _prepare(self) -> None:
        self.temporary.mkdir()
        if not self.data.exists():  # another host of this run may have made the folder already
            self.data.mkdir()
            copy_tools(self.data)
        self._folder.chmod(0o755)
        if self.ordinary:
            for path in (self.temporary, self.data, *self.data.rglob("*")):
                os.chown(path, UID, UID)

    @property
    def pid(self) -> int:
        """Id of the process that runs now; 0 if there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    def start(self) -> None:
        arguments = [
            *(
                "-m",
                "tests.chaos.launch",
                str(self.clock),
                json.dumps(self._environment),
                "serve",
                "--host",
                "127.0.0.1",
            ),
            *("--port", str(self.port), "--data-dir", str(self.data), "--sandbox", self._backend),
        ]
        command = ordinary_user_command(arguments) if self.ordinary else [sys.executable, *arguments]
        with self._lock:
            self._wanted, self._is_ready, self._ready_at = True, False, None
            log = self._folder / f"host-{len(self.pids) + 1}.log"
            with log.open("wb") as file:
                self._process = subprocess.Popen(command, stdout=file, stderr=file, cwd=PROJECT)
            self.pids.append(self._process.pid)

    def end(self, number: signal.Signals) -> int:
        """Send the process a signal, wait for its end and return its exit code; the process is not started again."""
        with self._lock:
            self._wanted = False
            process = self._process
        assert process is not None
        if process.poll() is None:
            process.send_signal(number)
        # only a busy machine can delay the end after SIGKILL
        ends_s = _STARVED_S if number is signal.SIGKILL else _ENDS_S
        try:
            if (code := process.wait(ends_s)) == 0:
                self.clean.add(process.pid)
            return code
        except subprocess.TimeoutExpired:
            self._oracle.find(f"the host did not end within {ends_s:g} s after {number.name}\n{self.log_end()}")
            process.kill()
            return process.wait()

    def until_ready(self, process: subprocess.Popen[bytes] | None = None) -> bool:
        """Wait until `/readyz` answers 200. Return False if the host has had enough clock time and processor time, but
        is still not ready.

        Args:
          process: The function returns False if this process ends. With None, it waits for any process that is started.
        """
        began, used_s = time.monotonic(), _processor_s(self.pid)
        while (waited_s := time.monotonic() - began) < _STARVED_S:
            if process is not None and process.poll() is not None:
                return False
            if waited_s > _READY_S and _processor_s(self.pid) > used_s + _STARTS_S:
                break
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/readyz", timeout=20).status_code == 200:
                    self._is_ready = True
                    return True
            time.sleep(0.2)
        return False

    def look(self) -> None:
        """Measure the host's memory. If the host has ended by itself, judge whether that was right, and start it again."""
        with self._lock:
            process = self._process
            if process is None or not self._wanted:
                return
            code = process.poll()
            if code is None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    self.most_mb = max(self.most_mb, resident_mb(process.pid))
                now = time.monotonic()
                self.ready_s += now - (self._ready_at or now)
                self._ready_at = now if self._is_ready else None
                return
            self._wanted = False
        self._judge_end(code)
        window = self._oracle.timeline.begin(Fault(0.0, Kind.RESTART_HOST, 0.0, 0.0))
        while not self._starts_again() and not self.over:
            pass
        self._oracle.timeline.end(window, hit=True)

    def _starts_again(self) -> bool:
        """Start a process as a service manager does; return False if the process ends by itself before it is ready."""
        time.sleep(1.0)
        self.start()
        process = self._process
        assert process is not None
        if self.until_ready(process):
            return True
        with self._lock:
            code = process.poll()
            if code is None or self._process is not process or not self._wanted:
                return True  # the process got no processor time, or a fault ended it and will start the next one
            self._wanted = False
        self._judge_end(code)
        return False

    def _judge_end(self, code: int) -> None:
        """Judge an unexpected end of the host, which is a finding unless a fault explains it."""
        self._oracle.counts[f"host ended: {code}"] += 1
        timeline, now = self._oracle.timeline, time.monotonic()
        if code in _SIGBUS_EXITS and timeline.recent({Kind.FILE_READ_ONLY, Kind.FULL_DISK}, now):
            return  # documented behaviour: the host crashes if memory is mapped from a file that cannot be written
        if not self._is_ready and timeline.recent(_ANY_START, now):
            return
        when = "after it was ready" if self._is_ready else "while it started"
        self._oracle.find(f"the host ended by itself {when}, exit code {code}\n{self.log_end()}")

    def processes(self) -> list[tuple[int, bytes]]:
        """Return the processes below the host with their command lines."""
        pid = self.pid
        return [(below, command_of(below)) for below in process_tree(pid) if below != pid] if pid else []

    def children(self) -> list[int]:
        """Return the children of the host's first process: the process that forks others, and the process for jobs."""
        own, callers = command_of(self.pid) if self.pid else b"", self.callers()
        found = [pid for pid, command in self.processes() if command == own or b"fork_workers" in command]
        return sorted(set(found) - {*callers})

    def callers(self) -> list[int]:
        """Return the processes that answer calls at the host's port, except the host's first process."""
        inodes = inodes_of(self.port)
        pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
        return sorted(pid for pid in pids if pid != self.pid and has_socket(pid, inodes)) if self.pid else []

    def builders(self) -> list[int]:
        """Return the processes that install packages, and the sandbox processes around them."""
        return [pid for pid, command in self.processes() if any(name in command for name in _BUILDERS)]

    def sandboxes(self) -> list[int]:
        """Return the outermost process of each bubblewrap sandbox for evaluators."""
        found = {pid for pid, command in self.processes() if _program(command) == "bwrap"} - {*self.builders()}
        return sorted(found - {child for pid in found for child in child_pids(pid)})

    def log_end(self) -> str:
        return self.logs()[-1][-1500:]

    def logs(self) -> list[str]:
        """Return what each process has printed."""
        files = [self._folder / f"host-{number}.log" for number in range(1, len(self.pids) + 1)]
        return [file.read_text(errors="replace") for file in files]

    def remains(self, *, docker: list[str]) -> list[str]:
        """Return what the host's processes have left behind: processes, cgroups, containers, mounts, files."""
        left = [found for pid in set(self.pids) for found in left_behind(pid, docker=docker)]
        this = os.getpid()
        for path in Path("/proc").glob("[0-9]*"):
            command = command_of(int(path.name))
            if str(self._folder).encode() in command and int(path.name) != this:
                left.append(f"process {path.name}: {command[:200]!r}")
        left += [f"mount {mount}" for mount in mounts_below(self.data)]
        left += [f"file {path}" for path in self.temporary.iterdir()]
        environments = self.data / "environments"
        # not counted: `removed/`, which is emptied later, and the `work/` of a killed host, which is emptied before the
        # next build
        mine = environments.glob(f"work/host-*-{self.pids[-1]}-*/*")
        under_way = [*environments.glob("build/staging/*"), *mine]
        return [*left, *(f"file {path}" for path in under_way)]


def _program(command: bytes) -> str:
    return Path(command.partition(b"\0")[0].decode(errors="replace")).name


def _processor_s(pid: int) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        return own_seconds(pid)
    return 0.0


def settings_environment(index: Index, database_url: str, **more: str) -> dict[str, str]:
    """Return the environment variables with the settings of a host in a run."""
    return {
        "EVALUATOR_HOST_DATABASE_URL": database_url,
        "EVALUATOR_HOST_PIP_INDEX_URL": index.pip_url,
        "EVALUATOR_HOST_NPM_REGISTRY": index.npm_url,
        "EVALUATOR_HOST_NO_PROXY": "127.0.0.1",
        "EVALUATOR_HOST_PROXY": "",
        "EVALUATOR_HOST_FREE_DISK_MB": str(FREE_DISK_MB),
        "EVALUATOR_HOST_IDLE_TTL_S": "10",
        "EVALUATOR_HOST_STOP_GRACE_S": "5",
        "EVALUATOR_HOST_INDEX_TIMEOUT_S": "60",
        **more,
    }


def batch(url: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results of many rows from a host without faults; retry while the machine is too busy."""
    until = time.monotonic() + _STARVED_S
    while (answer := httpx.post(f"{url}/v1/evaluate/batch", json=body, timeout=300)).status_code == 503:
        assert time.monotonic() < until, answer.text
        time.sleep(1)
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results

"""Causes the faults of a plan in a host, its sandboxes, database, disk, engine and package index, and undoes them."""

import contextlib
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import docker
import psycopg
import requests
from psycopg.conninfo import conninfo_to_dict

from evaluator_host.engine.sandbox.docker.cleanup import LABEL_INSTANCE
from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from tests.chaos.hosts import FREE_DISK_MB, ChaosHost
from tests.chaos.launch import set_offset
from tests.chaos.oracle import Timeline
from tests.chaos.plan import Fault, Kind
from tests.crash_engine import CrashEngine
from tests.databases import PostgreSQL
from tests.indexes import Answer, Handler, Index
from tests.left_behind import cgroup_folders
from tests.relay import Relay

T = TypeVar("T")

JUMPS_S: Final = (-400 * 86400.0, -3600.0, 61.0, 3600.0, 400 * 86400.0)
_ENGINE_DOWN: Final = (docker.errors.DockerException, requests.RequestException)
_SPARE_DESCRIPTORS: Final = 6
_FOLDERS: Final = ("datasets", "environments", "filesets")


class _Everything(dict[str, Answer]):
    """A mapping with the same faulty answer for every path of an index."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer

    def __contains__(self, path: object) -> bool:
        return True

    def __getitem__(self, path: str) -> Answer:
        return self._answer


class Faults:
    """Causes faults. `inflict(fault)` is a context during which the fault goes on; it yields whether the fault hit
    anything.

    Args:
      host: The host in which faults are caused.
      timeline: Counts killed runners.
      database_url: URL of the host's database.
      index: The index from which the host installs packages.
      disk: The host's file system.
      postgresql: The server of the host's database, if that is not SQLite.
      network: The network between host and server.
      engine: Docker's engine, for the Docker backend.
    """

    def __init__(
        self,
        host: ChaosHost,
        timeline: Timeline,
        *,
        database_url: str,
        index: Index,
        disk: Path,
        postgresql: PostgreSQL | None = None,
        network: Relay | None = None,
        engine: CrashEngine | None = None,
    ) -> None:
        self._host, self._timeline, self._index, self._disk = host, timeline, index, disk
        self._database_url, self._postgresql, self._network = database_url, postgresql, network
        self._engine = engine
        self._by_kind: dict[Kind, Callable[[Fault], AbstractContextManager[bool]]] = {
            Kind.KILL_HOST: self._kill_host,
            Kind.RESTART_HOST: self._restart_host,
            Kind.STOP_HOST: self._stop_host,
            Kind.JUMP_CLOCK: self._jump_clock,
            Kind.FEW_DESCRIPTORS: self._few_descriptors,
            Kind.KILL_CHILD: self._kill_child,
            Kind.STOP_CHILD: self._stop_child,
            Kind.KILL_CALLS: self._kill_calls,
            Kind.STOP_CALLS: self._stop_calls,
            Kind.KILL_SANDBOX: self._kill_sandbox,
            Kind.KILL_RUNNER: self._kill_runner,
            Kind.STOP_SANDBOX: self._stop_sandbox,
            Kind.REMOVE_CGROUP: self._remove_cgroup,
            Kind.KILL_ENGINE: self._kill_engine,
            Kind.LOCK_FILE: self._lock_file,
            Kind.FILE_READ_ONLY: self._file_read_only,
            Kind.KILL_DATABASE: self._kill_database,
            Kind.FREEZE_DATABASE: self._freeze_database,
            Kind.END_CONNECTIONS: self._end_connections,
            Kind.DATABASE_READ_ONLY: self._database_read_only,
            Kind.FULL_DATABASE: self._full_database,
            Kind.CUT_NETWORK: self._cut_network,
            Kind.SILENT_NETWORK: self._silent_network,
            Kind.FULL_DISK: self._full_disk,
            Kind.FOLDERS_READ_ONLY: self._folders_read_only,
            Kind.INDEX_DOWN: self._index_down,
            Kind.INDEX_SILENT: self._index_silent,
            Kind.KILL_BUILDER: self._kill_builder,
        }

    def inflict(self, fault: Fault) -> AbstractContextManager[bool]:
        """Return a context manager; the fault lasts as long as its block runs."""
        return self._by_kind[fault.kind](fault)

    # Faults of the host

    @contextmanager
    def _kill_host(self, fault: Fault) -> Iterator[bool]:
        with self._without_host(signal.SIGKILL) as hit:
            yield hit

    @contextmanager
    def _restart_host(self, fault: Fault) -> Iterator[bool]:
        with self._without_host(signal.SIGTERM) as hit:
            yield hit

    @contextmanager
    def _without_host(self, number: signal.Signals) -> Iterator[bool]:
        if not self._host.pid:
            yield False
            return
        self._host.end(number)
        try:
            yield True
        finally:
            self._host.start()
            self._host.until_ready()

    @contextmanager
    def _stop_host(self, fault: Fault) -> Iterator[bool]:
        with _stopped([self._host.pid] if self._host.pid else []) as hit:
            yield hit

    @contextmanager
    def _kill_child(self, fault: Fault) -> Iterator[bool]:
        victim = _one(self._host.children(), fault)
        yield victim is not None and _killed(victim)

    @contextmanager
    def _stop_child(self, fault: Fault) -> Iterator[bool]:
        victim = _one(self._host.children(), fault)
        with _stopped([] if victim is None else [victim]) as hit:
            yield hit

    @contextmanager
    def _kill_calls(self, fault: Fault) -> Iterator[bool]:
        victim = _one(self._host.callers(), fault)
        yield victim is not None and _killed(victim)

    @contextmanager
    def _stop_calls(self, fault: Fault) -> Iterator[bool]:
        victim = _one(self._host.callers(), fault)
        with _stopped([] if victim is None else [victim]) as hit:
            yield hit

    @contextmanager
    def _jump_clock(self, fault: Fault) -> Iterator[bool]:
        set_offset(self._host.clock, _picked(JUMPS_S, fault))
        try:
            yield True
        finally:
            set_offset(self._host.clock, 0.0)

    @contextmanager
    def _few_descriptors(self, fault: Fault) -> Iterator[bool]:
        pid = self._host.pid
        try:
            soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE) if pid else (0, 0)
            now = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (now + int(fault.pick * _SPARE_DESCRIPTORS), hard))
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))

    # Faults of sandboxes

    @contextmanager
    def _kill_sandbox(self, fault: Fault) -> Iterator[bool]:
        if self._engine is not None:
            with self._container(fault) as (client, container):
                if container is not None:
                    with contextlib.suppress(*_ENGINE_DOWN):
                        client.remove_container(container, force=True)
                yield container is not None
            return
        victim = _one(self._host.sandboxes(), fault)
        yield victim is not None and _killed(victim)

    @contextmanager
    def _kill_runner(self, fault: Fault) -> Iterator[bool]:
        if self._engine is not None:
            with self._container(fault) as (client, container):
                pid = 0
                with contextlib.suppress(*_ENGINE_DOWN):
                    pid = client.inspect_container(container)["State"]["Pid"] if container is not None else 0
                yield bool(pid) and _killed(pid)
            return
        runners = [pid for pid, command in self._host.processes() if b"runner." in command and b"bwrap" not in command]
        victim = _one(runners, fault)
        self._timeline.runners_killed += victim is not None
        yield victim is not None and _killed(victim)

    @contextmanager
    def _stop_sandbox(self, fault: Fault) -> Iterator[bool]:
        if self._engine is None:
            victim = _one(self._host.sandboxes(), fault)
            with _stopped([*process_tree(victim)] if victim else []) as hit:
                yield hit
            return
        with self._container(fault) as (client, container):
            if container is None:
                yield False
                return
            with contextlib.suppress(*_ENGINE_DOWN):
                client.pause(container)
            try:
                yield True
            finally:
                with contextlib.suppress(*_ENGINE_DOWN):
                    client.unpause(container)

    @contextmanager
    def _container(self, fault: Fault) -> Iterator[tuple[Any, str | None]]:
        """Yield a client of the engine, and the id of one of the host's containers. The id is None if the host has no
        container.
        """
        assert self._engine is not None
        container, client = None, None
        with contextlib.suppress(*_ENGINE_DOWN):
            client = docker.APIClient(base_url=self._engine.address, timeout=20)
            labelled = client.containers(filters={"label": [LABEL_INSTANCE]})
            mine = [one["Id"] for one in labelled if f"-{self._host.pid}-" in one["Labels"][LABEL_INSTANCE]]
            container = _one(sorted(mine), fault)
        try:
            yield client, container
        finally:
            if client is not None:
                client.close()

    @contextmanager
    def _remove_cgroup(self, fault: Fault) -> Iterator[bool]:
        removed = False
        for home in cgroup_folders(f"*-{self._host.pid}-"):
            with contextlib.suppress(OSError):  # the process may belong to another host, and may have ended by now
                inside = [folder for folder in home.iterdir() if folder.is_dir()]
                if len(inside) == 1:  # only the host's own process is in the cgroup
                    inside[0].rmdir()
                    home.rmdir()
                    removed = True
        yield removed

    @contextmanager
    def _kill_engine(self, fault: Fault) -> Iterator[bool]:
        assert self._engine is not None
        self._engine.kill()
        try:
            yield True
        finally:
            self._engine.start()

    # Faults of the database

    @property
    def _file(self) -> Path:
        return Path(self._database_url.removeprefix("sqlite:///"))

    @contextmanager
    def _lock_file(self, fault: Fault) -> Iterator[bool]:
        other = sqlite3.connect(self._file, isolation_level=None, timeout=10, check_same_thread=False)
        try:
            try:
                other.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error:
                yield False
                return
            yield True
            other.execute("ROLLBACK")
        finally:
            other.close()

    @contextmanager
    def _file_read_only(self, fault: Fault) -> Iterator[bool]:
        files = [path for path in (self._file, Path(f"{self._file}-wal")) if path.exists()]
        subprocess.run(["chattr", "+i", *files], check=False, capture_output=True)
        try:
            yield bool(files)
        finally:
            subprocess.run(["chattr", "-i", *files], check=False, capture_output=True)

    @contextmanager
    def _kill_database(self, fault: Fault) -> Iterator[bool]:
        assert self._postgresql is not None
        self._postgresql.kill()
        try:
            yield True
        finally:
            self._postgresql.start()

    @contextmanager
    def _freeze_database(self, fault: Fault) -> Iterator[bool]:
        assert self._postgresql is not None
        self._postgresql.freeze()
        try:
            yield True
        finally:
            self._postgresql.thaw()

    @contextmanager
    def _end_connections(self, fault: Fault) -> Iterator[bool]:
        assert self._postgresql is not None
        self._postgresql.end_connections(self._database_url)
        yield True

    @contextmanager
    def _database_read_only(self, fault: Fault) -> Iterator[bool]:
        self._set_read_only("on")
        try:
            yield True
        finally:
            self._set_read_only("off")

    @contextmanager
    def _full_database(self, fault: Fault) -> Iterator[bool]:
        assert self._postgresql is not None
        with contextlib.ExitStack() as held:
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    held.enter_context(contextlib.closing(psycopg.connect(self._postgresql.url())))
            yield True

    @contextmanager
    def _cut_network(self, fault: Fault) -> Iterator[bool]:
        assert self._network is not None
        self._network.cut()
        try:
            yield True
        finally:
            self._network.open()

    @contextmanager
    def _silent_network(self, fault: Fault) -> Iterator[bool]:
        assert self._network is not None
        self._network.passing.clear()
        try:
            yield True
        finally:
            self._network.passing.set()

    def _set_read_only(self, value: str) -> None:
        assert self._postgresql is not None
        with psycopg.connect(self._postgresql.url(), autocommit=True) as server:
            name = conninfo_to_dict(self._database_url)["dbname"]
            server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")  # type: ignore[arg-type]
        self._postgresql.end_connections(self._database_url)

    # Faults of the disk

    @contextmanager
    def _full_disk(self, fault: Fault) -> Iterator[bool]:
        stuffing = self._disk / "stuffing"
        left = 0 if fault.pick < 0.5 else (FREE_DISK_MB << 20) // 2  # leave no space, or less space than must stay free
        free = os.statvfs(self._disk)
        try:
            with stuffing.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - left))
            if not left:
                _fill(stuffing)
            yield True
        finally:
            stuffing.unlink()

    @contextmanager
    def _folders_read_only(self, fault: Fault) -> Iterator[bool]:
        """Make folders read-only for the host, by mounting them over themselves; files that the host has open stay
        writable.
        """
        pid = self._host.pid
        there = ["nsenter", f"--mount=/proc/{pid}/ns/mnt"] if self._host.ordinary else []
        folders = [path for name in _FOLDERS if (path := self._host.data / name).is_dir()]
        done = []
        for path in folders if pid else ():
            if _succeeds([*there, "mount", "--bind", str(path), str(path)]):
                done.append(path)
                _succeeds([*there, "mount", "-o", "remount,bind,ro", str(path)])
        try:
            yield bool(done)
        finally:
            for path in done:
                _succeeds([*there, "umount", "--lazy", str(path)])

    # Faults of package installation

    @contextmanager
    def _index_down(self, fault: Fault) -> Iterator[bool]:
        def closed(handler: Handler) -> None:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)

        def unavailable(handler: Handler) -> None:
            handler.reply(503, b"")

        with self._odd(closed if fault.pick < 0.5 else unavailable):
            yield True

    @contextmanager
    def _index_silent(self, fault: Fault) -> Iterator[bool]:
        over = threading.Event()

        def silent(handler: Handler) -> None:
            over.wait(60)

        with self._odd(silent):
            try:
                yield True
            finally:
                over.set()

    @contextmanager
    def _odd(self, answer: Answer) -> Iterator[None]:
        before, self._index.odd = self._index.odd, _Everything(answer)
        try:
            yield
        finally:
            self._index.odd = before

    @contextmanager
    def _kill_builder(self, fault: Fault) -> Iterator[bool]:
        victim = _one(self._host.builders(), fault)
        yield victim is not None and _killed(victim)


def _picked(values: Sequence[T], fault: Fault) -> T:
    return values[min(int(fault.pick * len(values)), len(values) - 1)]


def _one(values: Sequence[T], fault: Fault) -> T | None:
    return _picked(values, fault) if values else None


def _killed(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


@contextmanager
def _stopped(pids: list[int]) -> Iterator[bool]:
    try:
        _signal(pids, signal.SIGSTOP)
        yield bool(pids)
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _fill(file: Path) -> None:
    with file.open("ab", buffering=0) as opened, contextlib.suppress(OSError):
        while opened.write(bytes(4096)):
            pass


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0

"""A host with several processes (`serve --workers`), for tests that can call either this host over HTTP or a service in
this process.

    async with served("docker", folder) as host:
        result = await host.evaluate(evaluator, row)

Each call has its own connection, so that any of the host's processes may accept it.
"""

import asyncio
import json
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from evaluator_host.client import AsyncClient
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.data_files import DataFiles
from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from evaluator_host.engine.service.caller import DEFAULT_CALLER, Caller
from evaluator_host.platform.store.opening import open_store
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Isolation, Row
from evaluator_host.types.json_values import decode_json
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import settings
from tests.server import COMMAND, Server, new_home

PROCESSES = 2
WORKSPACE = "default"
_BEGINS_S = 60
_AT_ANY_RATE = {"rate_limit_per_s": 10_000, "rate_limit_burst": 10_000}


class Host:
    """The methods of `Service` that tests use, over HTTP. `server` is the host's process."""

    def __init__(self, server: Server, own: Settings, keys: Mapping[str, str]) -> None:
        self.server = server
        self.settings = own
        self.data = DataFiles(own.data_dir / "data", most_bytes=own.data_mb << 20)
        self.pool = SimpleNamespace(backend=SimpleNamespace(name=str(own.sandbox)))
        self._keys = keys

    async def evaluate(
        self, evaluator: Evaluator, row: Row | EncodedRow, *, caller: Caller = DEFAULT_CALLER
    ) -> EvaluationResult:
        async with self._client(caller.workspace) as client:
            return await client.evaluate(evaluator, **_fields(row))

    async def evaluate_batch(
        self,
        evaluator: Evaluator,
        rows: Sequence[Row],
        *,
        isolation: Isolation = Isolation.ROW,
        caller: Caller = DEFAULT_CALLER,
    ) -> list[EvaluationResult]:
        async with self._client(caller.workspace) as client:
            return list((await client.evaluate_batch(evaluator, rows, isolation=isolation, outputs="none")).results)

    async def check(self, evaluator: Evaluator) -> CheckReport:
        async with self._client(WORKSPACE) as client:
            return await client.check(evaluator)

    def waiting(self) -> float:
        """Return how many calls wait for a sandbox, in all processes."""
        return self._metric("evaluator_host_queue")

    def _metric(self, name: str) -> float:
        lines = self.server.client.get("/metrics").text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def _client(self, workspace: str) -> AsyncClient:
        return AsyncClient(self.server.url, key=self._keys[workspace])


def _fields(row: Row | EncodedRow) -> dict[str, Any]:
    if isinstance(row, EncodedRow):
        return {name: decode_json(bytes(value)) for name, value in row.fields.items()}
    names = ("inputs", "outputs", "trace", "variables", "criteria", "messages")
    return {name: getattr(row, name) for name in names}


@asynccontextmanager
async def served(
    backend: str, folder: Path, *, workspaces: Sequence[str] = (WORKSPACE,), **changes: Any
) -> AsyncIterator[Host]:
    """Run a host that has a key for each workspace, and two processes or the number in `EVALUATOR_HOST_WORKERS`.

    Args:
      folder: A new folder for its data.
      changes: Further settings.
    """
    own = settings(backend, **changes).model_copy(update={"data_dir": new_home(folder)})
    count = max(own.workers, PROCESSES)
    engine = {"docker_host": own.docker_host} if own.docker_host else {}
    variables = _variables(workers=count, **_AT_ANY_RATE, **engine, **changes)
    async with open_store(own) as store:
        name = f"tests-{secrets.token_hex(4)}"
        keys = {workspace: (await store.keys.create_key(name, workspace))[1] for workspace in workspaces}
    # an ordinary user's tests read their host's output to its end; a host forked from the tests could delay that end
    command = COMMAND if os.geteuid() else None
    server = Server(backend, log=folder / "log", data_dir=own.data_dir, environment=variables, command=command)
    server.client.headers["Authorization"] = f"Bearer {keys[workspaces[0]]}"
    with server:
        async with asyncio.timeout(_BEGINS_S):
            while len(calling_processes(server)) < count - 1:
                await asyncio.sleep(0.05)
        yield Host(server, own, keys)


def _variables(**changes: Any) -> dict[str, str]:
    return {
        f"EVALUATOR_HOST_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in changes.items()
    }


def calling_processes(server: Server) -> list[int]:
    """Return the processes of a host that answer calls, except the first.

    These processes are the children of the host's forker that listen at its port.
    """
    return [
        pid for forker in child_pids(server.process.pid) for pid in child_pids(forker) if _listens(pid, server.port)
    ]


def connection_to(server: Server, pid: int, *, source: str = "127.0.0.1") -> socket.socket:
    """Open connections until this process of a host has accepted a connection, and return that connection."""
    refused = []
    try:
        while True:
            made = socket.create_connection(("127.0.0.1", server.port), timeout=60, source_address=(source, 0))
            if owner_of(server, made) == pid:
                return made
            refused.append(made)
    finally:
        for one in refused:
            one.close()


def owner_of(server: Server, connection: socket.socket) -> int:
    """Wait until a process of a host has accepted this connection, and return the process."""
    while True:
        inodes = inodes_of(server.port, connection.getsockname()[1])
        for pid in _processes(server):
            if has_socket(pid, inodes):
                return pid
        time.sleep(0.01)


def _processes(server: Server) -> list[int]:
    return [server.process.pid, *calling_processes(server)]


def _listens(pid: int, port: int) -> bool:
    return has_socket(pid, inodes_of(port))


def has_socket(pid: int, inodes: AbstractSet[str]) -> bool:
    """Return whether a process has one of these sockets open."""
    with suppress(OSError):
        links = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
        return any(link == f"socket:[{inode}]" for link in links for inode in inodes)
    return False


def inodes_of(port: int, other: int | None = None) -> set[str]:
    """Return the inode numbers of the sockets at a port, or only of those that are connected to another port."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {line[9] for line in lines if _port(line[1]) == port and other in (None, _port(line[2]))}


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)

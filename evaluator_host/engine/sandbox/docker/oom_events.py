"""Counts processes killed at a container's memory limit.

On the engine's own machine, the container's cgroup has exact counts of kills and of refused forks. Elsewhere (remote
engine, Docker Desktop's virtual machine, another mount namespace) the engine's `oom` events report kills a few
milliseconds later, and nothing reports refused forks.
"""

import asyncio
import json
import logging
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from evaluator_host.engine.sandbox.docker.attach import EngineAddress, open_streams
from evaluator_host.engine.sandbox.linux.cgroups import CPU, MEMORY, PIDS, Cgroup
from evaluator_host.engine.system.supervisor import Supervisor

_LOG: Final = logging.getLogger(__name__)
_CGROUPS: Final = Path("/sys/fs/cgroup")
_READ: Final = {  # for each cgroup version and controller: the file that must exist in a container's folder
    1: {MEMORY: "memory.oom_control", PIDS: "pids.events", CPU: "cpu.shares"},
    2: {MEMORY: "memory.events", PIDS: "pids.events", CPU: "cpu.weight"},
}
_RETRY_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0)


def find_cgroup(pid: int, container: str) -> Cgroup | None:
    """Return a container's cgroup with the controllers that can be read on this machine, or None if there are none.

    Args:
      pid: Id of the container's first process, as the engine reports it. With a remote engine, an unrelated process on
        this machine may have the same id. So a cgroup is used only if `container` is in its path.
      container: Id of the container.
    """
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    paths: dict[str, Path] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if container in path:
            paths |= {name: _CGROUPS / name / path.lstrip("/") for name in controllers.split(",")}
    # with version 2, the file has a single line, which names no controllers
    version = 1 if paths.keys() & _READ[1].keys() else 2
    folders = {name: paths.get(name if version == 1 else "") for name in _READ[version]}
    found = {name: folder for name, folder in folders.items() if folder and (folder / _READ[version][name]).exists()}
    return Cgroup(version, found) if found else None


class OomEvents:
    """Listens to the engine's `oom` events of our containers and counts them.

    The request uses HTTP/1.0, so that the engine sends plain lines until the stream ends.

    Args:
      label: Label of our containers, `name=value`.
      supervisor: Starts listening again after a failure; None for a new supervisor.

    Attributes:
      epoch: How many times the stream has broken. If the number changes, the engine has restarted and lost its
        containers.
    """

    def __init__(self, label: str, supervisor: Supervisor | None = None) -> None:
        self._supervisor = supervisor or Supervisor()
        self.epoch = 0
        self._label = label
        self._counts: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self, endpoint: EngineAddress, api_version: str) -> None:
        """Start listening, unless this object is listening already."""
        if self._task is None:
            work = partial(self._listen, endpoint, api_version)
            self._task = asyncio.create_task(self._supervisor.repeat("the task that watches containers", work))

    def count(self, container: str) -> int:
        """Return the number of `oom` events of the container with this name."""
        return self._counts.get(container, 0)

    def forget(self, container: str) -> None:
        """Forget the count of a removed container."""
        self._counts.pop(container, None)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _listen(self, endpoint: EngineAddress, api_version: str) -> None:
        filters = json.dumps({"type": ["container"], "event": ["oom"], "label": [self._label]})
        path = f"/v{api_version}/events?{urlencode({'filters': filters})}"
        request = f"GET {path} HTTP/1.0\r\nHost: {endpoint.host or 'localhost'}\r\n\r\n".encode("ascii")
        pauses = chain(_RETRY_S, repeat(_RETRY_S[-1]))
        while True:
            try:
                if await self._follow(endpoint, request):
                    pauses = chain(_RETRY_S, repeat(_RETRY_S[-1]))
            except (OSError, ValueError, EOFError) as error:
                _LOG.debug("engine events: %s", error)
            await asyncio.sleep(next(pauses))

    async def _follow(self, endpoint: EngineAddress, request: bytes) -> bool:
        """Count events until the stream ends; return False if the stream did not begin."""
        reader, writer = await open_streams(endpoint)
        try:
            writer.write(request)
            status = await reader.readline()
            while (await reader.readline()).strip():
                pass
            if b" 200 " not in status:
                return False
            try:
                while line := await reader.readline():
                    self._count_event(line)
            finally:
                self.epoch += 1
            return True
        finally:
            writer.transport.abort()

    def _count_event(self, line: bytes) -> None:
        if line.strip():
            name = str(json.loads(line).get("Actor", {}).get("Attributes", {}).get("name", ""))
            self._counts[name] = self._counts.get(name, 0) + 1

"""Started sandboxes that have loaded nothing yet, kept for the specs used most recently: a first call need not wait."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from evaluator_host.errors import HostError
from evaluator_host.model import SandboxSpec
from evaluator_host.pool.capacity import Capacity
from evaluator_host.sandbox.base import Backend
from evaluator_host.sandbox.session import Sandbox

_log = logging.getLogger(__name__)

RECENT_SPECS: Final = 4  # two languages without packages and two with


async def start_sandbox(backend: Backend, spec: SandboxSpec, *, grace_s: float) -> Sandbox:
    """Start a sandbox and wait for its runner.

    Raises:
      SandboxUnavailable: it does not start.
    """
    sandbox = Sandbox(await backend.start(spec), backend=backend.name, spec=spec, grace_s=grace_s)
    try:
        await sandbox.greet()
    except asyncio.CancelledError:
        await sandbox.destroy()
        raise
    return sandbox


class Blanks:
    """Keeps blanks for the specs that were asked for most recently. Each counts against the capacity."""

    def __init__(
        self,
        backend: Backend,
        capacity: Capacity,
        *,
        per_spec: int,
        grace_s: float,
        on_freed: Callable[[], None],
        make_room: Callable[[], bool],
    ) -> None:
        self._backend = backend
        self._capacity = capacity
        self._per_spec = per_spec
        self._grace_s = grace_s
        self._on_freed = on_freed
        self._make_room = make_room
        self._wanting: OrderedDict[SandboxSpec, None] = OrderedDict()  # to be refilled when there is room
        self._ready: OrderedDict[SandboxSpec, list[Sandbox]] = OrderedDict()
        self._starting: dict[SandboxSpec, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def take(self, spec: SandboxSpec) -> Sandbox | None:
        """Take a waiting sandbox, and its place in the capacity with it."""
        ready = self._ready.get(spec, [])
        while ready:
            sandbox = ready.pop()
            if not sandbox.ended:
                return sandbox
            self._throw_away(sandbox)
        return None

    def refill_soon(self, spec: SandboxSpec) -> None:
        """Note that `spec` is in use, and start what is missing in the background if there is room."""
        self._ready.setdefault(spec, [])
        self._ready.move_to_end(spec)
        while len(self._ready) > RECENT_SPECS:
            _, forgotten = self._ready.popitem(last=False)
            for sandbox in forgotten:
                self._throw_away(sandbox)
        if self._closed or not self._missing(spec):
            return
        if self._capacity.fits(spec):
            self._keep(asyncio.get_running_loop().create_task(self._refill(spec)))
        elif self._make_room():  # the next new evaluator matters more than the one used longest ago
            self._wanting[spec] = None

    def refill_wanting(self) -> None:
        """Go on where there was no room before."""
        if self._wanting:
            spec, _ = self._wanting.popitem(last=False)
            if not self._closed and spec in self._ready and self._missing(spec) and self._capacity.fits(spec):
                self._keep(asyncio.get_running_loop().create_task(self._refill(spec)))

    async def fill(self, spec: SandboxSpec) -> None:
        """Start what is missing for `spec` and wait for it.

        Raises:
          SandboxUnavailable: it does not start.
        """
        self._ready.setdefault(spec, [])
        while not self._closed and self._missing(spec) and self._capacity.fits(spec):
            self._capacity.take(spec)
            self._starting[spec] = self._starting.get(spec, 0) + 1
            try:
                sandbox = await start_sandbox(self._backend, spec, grace_s=self._grace_s)
            except BaseException:
                self._capacity.give_back(spec)
                raise
            finally:
                self._starting[spec] -= 1
            self._put(sandbox)

    def evict_one(self) -> bool:
        """Throw away the blank of the spec used longest ago; false when there is none."""
        for ready in self._ready.values():
            if ready:
                self._throw_away(ready.pop())
                return True
        return False

    def forget(self, environment: str) -> None:
        """Throw away the blanks of an environment, by its digest: its files are not what they were."""
        for spec in [spec for spec in self._ready if spec.environment.digest == environment]:
            for sandbox in self._ready.pop(spec):
                self._throw_away(sandbox)

    def reap(self, *, max_age_s: float) -> None:
        """Replace blanks that died or are too old."""
        now = time.monotonic()
        for spec, ready in list(self._ready.items()):
            for sandbox in [s for s in ready if s.ended or now - s.started_at > max_age_s]:
                ready.remove(sandbox)
                self._throw_away(sandbox)
                if not self._closed:
                    self._keep(asyncio.get_running_loop().create_task(self._refill(spec)))

    async def close(self) -> None:
        """Destroy all of them."""
        self._closed = True
        while self._ready:
            _, ready = self._ready.popitem()
            for sandbox in ready:
                self._throw_away(sandbox)
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _missing(self, spec: SandboxSpec) -> bool:
        return len(self._ready.get(spec, ())) + self._starting.get(spec, 0) < self._per_spec

    def _put(self, sandbox: Sandbox) -> None:
        if self._closed or sandbox.spec not in self._ready:
            self._throw_away(sandbox)
        else:
            self._ready[sandbox.spec].append(sandbox)

    async def _refill(self, spec: SandboxSpec) -> None:
        try:
            await self.fill(spec)
        except HostError as error:
            _log.warning("no idle sandbox: %s", error.detail)
            self._on_freed()

    def _throw_away(self, sandbox: Sandbox) -> None:
        self._keep(asyncio.get_running_loop().create_task(self._destroy(sandbox)))

    async def _destroy(self, sandbox: Sandbox) -> None:
        await sandbox.destroy()
        self._capacity.give_back(sandbox.spec)
        self._on_freed()

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

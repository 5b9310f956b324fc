"""Started sandboxes that have loaded nothing yet, kept for the specs used most recently: a first call need not wait."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from evaluator_host.model.errors import HostError, MachineExhausted
from evaluator_host.model.evaluator import SandboxSpec
from evaluator_host.pool.capacity import Capacity
from evaluator_host.pool.preimport import Ahead
from evaluator_host.sandbox.base import Backend
from evaluator_host.sandbox.session import Sandbox

_log = logging.getLogger(__name__)

PROOF_HOLDS_S: Final = 10.0  # probes come every few seconds: not each of them is worth a sandbox
RECENT_SPECS: Final = 4  # two languages without packages and two with; more where half of a pool's places are more


async def start_sandbox(backend: Backend, spec: SandboxSpec, *, grace_s: float) -> Sandbox:
    """Start a sandbox and wait for its runner.

    Raises:
      SandboxUnavailable: it does not start.
      MachineExhausted: the operating system refused.
    """
    try:
        link = await backend.start(spec)
    except OSError as error:
        raise MachineExhausted.by(error, doing="start a sandbox") from error
    sandbox = Sandbox(link, backend=backend.name, spec=spec, grace_s=grace_s)
    try:
        await sandbox.greet()
    except asyncio.CancelledError:
        await sandbox.destroy()
        raise
    return sandbox


class Blanks:
    """Keeps blanks for the specs that were asked for most recently. Each counts against the capacity.

    Args:
      backend: Starts them.
      capacity: Of the pool.
      per_spec: How many to keep for each spec.
      grace_s: How long a runner may take beyond its own limits.
      on_freed: Told that one was thrown away and its place is free.
      on_ready: Told that there is one to take.
      make_room: Ends something that matters less; false when there is nothing.
    """

    def __init__(
        self,
        backend: Backend,
        capacity: Capacity,
        *,
        per_spec: int,
        grace_s: float,
        on_freed: Callable[[], None],
        on_ready: Callable[[], None],
        make_room: Callable[[], bool],
    ) -> None:
        self._backend = backend
        self._capacity = capacity
        self._per_spec = per_spec
        self._grace_s = grace_s
        self._on_freed = on_freed
        self._on_ready = on_ready
        self._make_room = make_room
        self._wanting: OrderedDict[SandboxSpec, None] = OrderedDict()  # to be refilled when there is room
        self._ready: OrderedDict[SandboxSpec, list[Sandbox]] = OrderedDict()
        self._starting: dict[SandboxSpec, int] = {}
        self._ahead = Ahead()
        self._importing: list[Sandbox] = []  # started, and not to be taken before their packages are there
        self._used_at: dict[SandboxSpec, float] = {}
        self._proved_at: dict[SandboxSpec, float] = {}
        self._proving = asyncio.Lock()
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

    def waits(self, spec: SandboxSpec) -> bool:
        """Whether `take` would return one."""
        return any(not sandbox.ended for sandbox in self._ready.get(spec, ()))

    def refill_soon(self, spec: SandboxSpec) -> None:
        """Note that `spec` is in use, and start what is missing in the background if there is room."""
        self._note_use(spec)
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
        """Note that `spec` is in use, start what is missing if there is room, and wait for it.

        Raises:
          SandboxUnavailable: it does not start.
        """
        self._note_use(spec)
        await self._fill(spec)

    async def prove(self, spec: SandboxSpec) -> None:
        """Know that one can be started: by the one that waits, or, where none is to wait, by one that is thrown away.

        Where there is no room, those that are there prove it.

        Raises:
          SandboxUnavailable: it does not start.
        """
        if self._per_spec:
            await self.fill(spec)
            return
        async with self._proving:
            recently = time.monotonic() - self._proved_at.get(spec, -PROOF_HOLDS_S) < PROOF_HOLDS_S
            if recently or self._closed or not self._capacity.fits(spec):
                return
            self._capacity.take(spec)
            try:
                sandbox = await start_sandbox(self._backend, spec, grace_s=self._grace_s)
            except BaseException:
                self._capacity.give_back(spec)
                raise
            self._proved_at = {spec: time.monotonic()}
            self._throw_away(sandbox)

    def _note_use(self, spec: SandboxSpec) -> None:
        self._used_at[spec] = time.monotonic()
        self._ready.setdefault(spec, [])
        self._ready.move_to_end(spec)
        while len(self._ready) > max(RECENT_SPECS, self._capacity.max_sandboxes // 2):
            self._forget(next(iter(self._ready)))

    async def _fill(self, spec: SandboxSpec) -> None:
        while not self._closed and self._missing(spec) and self._capacity.fits(spec):
            self._capacity.take(spec)
            self._starting[spec] = self._starting.get(spec, 0) + 1
            try:
                sandbox = await start_sandbox(self._backend, spec, grace_s=self._grace_s)
            except BaseException:
                self._capacity.give_back(spec)
                self._starting[spec] -= 1
                raise
            try:
                await self._import(sandbox)
            finally:
                self._starting[spec] -= 1

    async def _import(self, sandbox: Sandbox) -> None:
        """Have its packages imported, and let it be taken then. What went wrong is not tried again, nor made use of."""
        self._importing.append(sandbox)
        try:
            refused = await self._ahead.prepare(sandbox)
        except BaseException:
            if sandbox in self._importing:
                self._importing.remove(sandbox)
                self._throw_away(sandbox)
            raise
        if sandbox not in self._importing:  # it has been thrown away meanwhile
            return
        self._importing.remove(sandbox)
        if refused is not None:
            self._ahead.leave_alone(sandbox.spec, refused)
            self._throw_away(sandbox)
            self._wanting[sandbox.spec] = None
        else:
            self._put(sandbox)

    def evict_one(self) -> bool:
        """Throw away the blank of the spec used longest ago; false when there is none."""
        for ready in (*self._ready.values(), self._importing):
            if ready:
                self._throw_away(ready.pop(0))
                return True
        return False

    def forget(self, environment: str) -> None:
        """Throw away the blanks of an environment, by its digest: its files are not what they were."""
        specs = {*self._ready, *(sandbox.spec for sandbox in self._importing)}
        for spec in [spec for spec in specs if spec.environment.digest == environment]:
            self._forget(spec)

    def _forget(self, spec: SandboxSpec) -> None:
        importing = [sandbox for sandbox in self._importing if sandbox.spec == spec]
        self._importing = [sandbox for sandbox in self._importing if sandbox.spec != spec]
        for sandbox in (*self._ready.pop(spec, ()), *importing):
            self._throw_away(sandbox)
        self._used_at.pop(spec, None)

    def reap(self, *, max_age_s: float) -> None:
        """Replace blanks that died or are too old; not those of a package set that nobody used in all that time."""
        now = time.monotonic()
        for spec, ready in list(self._ready.items()):
            if spec.environment.path is not None and now - self._used_at.get(spec, now) > max_age_s:
                self._forget(spec)
                continue
            for sandbox in [s for s in ready if s.ended or now - s.started_at > max_age_s]:
                ready.remove(sandbox)
                self._throw_away(sandbox)
                if not self._closed:
                    self._keep(asyncio.get_running_loop().create_task(self._refill(spec)))

    async def close(self) -> None:
        """Destroy all of them."""
        self._closed = True
        for spec in {*self._ready, *(sandbox.spec for sandbox in self._importing)}:
            self._forget(spec)
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _missing(self, spec: SandboxSpec) -> bool:
        ready = self._ready.get(spec)  # None: it was forgotten
        return ready is not None and len(ready) + self._starting.get(spec, 0) < self._per_spec

    def _put(self, sandbox: Sandbox) -> None:
        if self._closed or sandbox.spec not in self._ready:
            self._throw_away(sandbox)
        else:
            self._ready[sandbox.spec].append(sandbox)
            self._on_ready()

    async def _refill(self, spec: SandboxSpec) -> None:
        try:
            await self._fill(spec)
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

"""Keeps started sandboxes without code for the most recently used specs, so that first calls need not wait."""

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

from evaluator_host.engine.data_files import note_use
from evaluator_host.engine.pool.fair_share import Capacity
from evaluator_host.engine.sandbox.base import Backend
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.types.errors import HostError, MachineExhausted, SandboxUnavailable
from evaluator_host.types.evaluator import Language, SandboxSpec

_log = logging.getLogger(__name__)

PROBE_HOLDS_S: Final = 10.0  # a probe's result is reused for this many seconds, because probes come every few seconds
# minimum number of specs for which sandboxes are kept ready: two languages, each with and without packages
RECENT_SPECS: Final = 4

WORTH_MS: Final = 20.0  # packages that import faster than this, in ms, are not imported in advance
# longest time for importing packages in advance, in seconds; every prewarmed sandbox of a set imports them
MOST_S: Final = 10.0
_BASE_S: Final = 2.0
_FACTOR: Final = 2.0  # safety factor for the measured time, because the machine may be busier than at the check
_AGAIN_AFTER_S: Final = 1800.0
_REMEMBERED: Final = 256


async def start_sandbox(backend: Backend, spec: SandboxSpec, *, grace_s: float) -> Sandbox:
    """Start a sandbox and wait for its runner.

    Raises:
      SandboxUnavailable: the sandbox does not start.
      MachineExhausted: the operating system refused.
    """
    try:
        with MachineExhausted.refused("start a sandbox"):
            if spec.data is not None:
                note_use(spec.data)
            link = await backend.start(spec)
        sandbox = Sandbox(link, backend=backend.name, spec=spec, grace_s=grace_s)
        try:
            await sandbox.greet()
        except asyncio.CancelledError:
            await sandbox.destroy()
            raise
    except HostError as error:
        gone = await asyncio.to_thread(_gone, spec)
        if gone is None:
            raise
        message = f"the {gone} of the evaluator were deleted while its sandbox started; send the request again"
        raise SandboxUnavailable(message) from error
    return sandbox


def _gone(spec: SandboxSpec) -> str | None:
    """Return `data files` or `packages` if a spec's folder with them is gone from this machine; else None."""
    data = None if spec.data is None else spec.data.path
    folders = {"data files": data, "packages": spec.environment.path}
    return next((name for name, folder in folders.items() if folder is not None and not folder.is_dir()), None)


class Preimporter:
    """Prepares prewarmed sandboxes: each forks a process for rows, which imports packages if this saves time.

    If a set's packages cannot be imported, the sandboxes with this set are not prepared for half an hour.
    """

    def __init__(self) -> None:
        self._avoided_until: OrderedDict[SandboxSpec, float] = OrderedDict()

    async def prepare(self, sandbox: Sandbox) -> str | None:
        """Prepare a sandbox; return the reason why the sandbox cannot be used, or None if it can."""
        modules = self._modules(sandbox.spec)
        if modules is None:
            return None
        timeout_s = _BASE_S + _FACTOR * _import_ms(sandbox.spec) / 1000
        return await sandbox.prepare(modules, timeout_s=min(timeout_s, MOST_S))

    def avoid(self, spec: SandboxSpec, reason: str) -> None:
        """Prepare no sandboxes of this spec for half an hour; `reason` is for the log."""
        _log.info("packages of %s are not imported in advance: %s", spec.environment.digest[:19], reason)
        self._avoided_until[spec] = time.monotonic() + _AGAIN_AFTER_S
        self._avoided_until.move_to_end(spec)
        while len(self._avoided_until) > _REMEMBERED:
            self._avoided_until.popitem(last=False)

    def _modules(self, spec: SandboxSpec) -> tuple[str, ...] | None:
        """Return the modules to import (perhaps none); return None if a sandbox should not be prepared at all."""
        if spec.language is not Language.PYTHON or self._avoided_until.get(spec, 0.0) > time.monotonic():
            return None
        own = () if spec.stand_in is None else (spec.stand_in.preimport,)
        if _import_ms(spec) < WORTH_MS:
            return own
        return (*(name for name, _ in spec.environment.import_ms), *own)


def _import_ms(spec: SandboxSpec) -> float:
    return sum(taken for _, taken in spec.environment.import_ms)


class PrewarmedSandboxes:
    """Keeps started sandboxes without code for the most recently used specs.

    Each of these sandboxes counts against the pool's capacity.
    """

    def __init__(
        self,
        backend: Backend,
        capacity: Capacity,  # sandbox capacity of the pool
        *,
        per_spec: int,  # number of sandboxes to keep for each spec
        grace_s: float,  # how long a runner may take beyond its own limits, in seconds
        on_freed: Callable[[], None],  # called when a sandbox has ended and its place is free
        on_ready: Callable[[], None],  # called when a sandbox is ready
        make_room: Callable[[], bool],  # ends an idle sandbox of an evaluator; False if there is none
    ) -> None:
        self._backend = backend
        self._capacity = capacity
        self._per_spec = per_spec
        self._grace_s = grace_s
        self._on_freed = on_freed
        self._on_ready = on_ready
        self._make_room = make_room
        # specs for which sandboxes will be started when there is room
        self._wanting: OrderedDict[SandboxSpec, None] = OrderedDict()
        self._ready: OrderedDict[SandboxSpec, list[Sandbox]] = OrderedDict()
        self._starting: Counter[SandboxSpec] = Counter()
        self._preimporter = Preimporter()
        # started sandboxes that still import packages, so that no caller may take them
        self._importing: list[Sandbox] = []
        self._used_at: dict[SandboxSpec, float] = {}
        self._called: set[SandboxSpec] = set()  # specs in `_ready` that an evaluator has used
        self._probed_at: dict[SandboxSpec, float] = {}
        self._probing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def take_sandbox(self, spec: SandboxSpec) -> Sandbox | None:
        """Return a ready sandbox, or None. The sandbox still counts against the capacity."""
        ready = self._ready.get(spec, [])
        while ready:
            sandbox = ready.pop()
            if not sandbox.ended:
                self._capacity.wake(sandbox)
                return sandbox
            self._throw_away(sandbox)
        return None

    def may_take(self, spec: SandboxSpec) -> bool:
        """Return whether a prewarmed sandbox is ready, and there is enough memory to run it."""
        ready = (sandbox for sandbox in reversed(self._ready.get(spec, ())) if not sandbox.ended)
        return (first := next(ready, None)) is not None and self._capacity.fits_awake(first)

    def refill_soon(self, spec: SandboxSpec) -> None:
        """Record that `spec` is in use, and start missing sandboxes in the background if there is room."""
        self._note_use(spec)
        self._called.add(spec)
        if self._closed or not self._missing(spec):
            return
        if self._capacity.fits(spec):
            self._keep(asyncio.get_running_loop().create_task(self._refill(spec)))
        # a prewarmed sandbox makes a first call fast, which is worth more than the sandbox that was idle longest
        elif self._make_room():
            self._wanting[spec] = None

    def refill_wanting(self) -> None:
        """Start one of the sandboxes for which `refill_soon` found no room, if there is room now."""
        if self._wanting:
            spec, _ = self._wanting.popitem(last=False)
            if not self._closed and spec in self._ready and self._missing(spec) and self._capacity.fits(spec):
                self._keep(asyncio.get_running_loop().create_task(self._refill(spec)))

    async def fill(self, spec: SandboxSpec) -> None:
        """Record that `spec` is in use, start missing sandboxes if there is room, and wait for them.

        Raises:
          SandboxUnavailable: a sandbox does not start.
        """
        self._note_use(spec)
        await self._fill(spec)

    async def probe(self, spec: SandboxSpec) -> None:
        """Check that a sandbox of `spec` can start: if none is ready, start one as a test, and end it.

        If the host is full, nothing is tested, because its running sandboxes show that sandboxes can start.

        Raises:
          SandboxUnavailable: the sandbox does not start.
        """
        if self._per_spec:
            await self.fill(spec)
            return
        async with self._probing:
            recently = time.monotonic() - self._probed_at.get(spec, -PROBE_HOLDS_S) < PROBE_HOLDS_S
            if recently or self._closed or not self._capacity.fits(spec):
                return
            sandbox = await self._start(spec)
            self.note_start(spec)
            self._throw_away(sandbox)

    def note_start(self, spec: SandboxSpec) -> None:
        """Note that a sandbox of `spec` has just started, so that `probe` need not start one."""
        self._probed_at = {spec: time.monotonic()}

    def _note_use(self, spec: SandboxSpec) -> None:
        self._used_at[spec] = time.monotonic()
        self._ready.setdefault(spec, [])
        self._ready.move_to_end(spec)
        while len(self._ready) > max(RECENT_SPECS, self._capacity.max_running // 2):
            self._forget(next(iter(self._ready)))

    async def _fill(self, spec: SandboxSpec) -> None:
        while not self._closed and self._missing(spec) and self._capacity.fits(spec):
            self._starting[spec] += 1
            try:
                await self._import(await self._start(spec))
            finally:
                self._starting -= Counter([spec])  # `-=` also removes specs whose count is now 0

    async def _start(self, spec: SandboxSpec) -> Sandbox:
        self._capacity.reserve(spec)
        try:
            return await start_sandbox(self._backend, spec, grace_s=self._grace_s)
        except BaseException:
            self._capacity.give_back(spec)
            raise

    async def _import(self, sandbox: Sandbox) -> None:
        """Import packages in a sandbox, then offer the sandbox to callers.

        If an import fails, end the sandbox, and do not prepare sandboxes with this package set for a while.
        """
        self._importing.append(sandbox)
        try:
            refused = await self._preimporter.prepare(sandbox)
        except BaseException:
            if sandbox in self._importing:
                self._importing.remove(sandbox)
                self._throw_away(sandbox)
            raise
        if sandbox not in self._importing:  # the sandbox was ended while it imported packages
            return
        self._importing.remove(sandbox)
        if refused is not None:
            self._preimporter.avoid(sandbox.spec, refused)
            self._throw_away(sandbox)
            self._wanting[sandbox.spec] = None
        else:
            self._put(sandbox)

    def evict_one(self) -> bool:
        """End a prewarmed sandbox of the least recently used spec; return False if there is none."""
        for ready in (*self._ready.values(), self._importing):
            if ready:
                self._throw_away(ready.pop(0))
                return True
        return False

    def __len__(self) -> int:
        """Return the number of sandboxes that `evict_one` could end."""
        return sum(map(len, self._ready.values())) + len(self._importing)

    def forget(self, environment: str) -> None:
        """End the prewarmed sandboxes on an environment because its files have changed; `environment` is its digest."""
        specs = {*self._ready, *(sandbox.spec for sandbox in self._importing)}
        for spec in [spec for spec in specs if spec.environment.digest == environment]:
            self._forget(spec)

    def _forget(self, spec: SandboxSpec) -> None:
        importing = [sandbox for sandbox in self._importing if sandbox.spec == spec]
        self._importing = [sandbox for sandbox in self._importing if sandbox.spec != spec]
        for sandbox in (*self._ready.pop(spec, ()), *importing):
            self._throw_away(sandbox)
        self._used_at.pop(spec, None)
        self._called.discard(spec)

    def reap(self, *, max_age_s: float, idle_ttl_s: float) -> None:
        """Replace dead and old sandboxes; end sandboxes of unused specs.

        If no evaluator has ever used a spec, its sandboxes end sooner. Sandboxes for Python without packages stay.
        """
        now = time.monotonic()
        for spec, ready in list(self._ready.items()):
            unused_s = now - self._used_at.get(spec, now)
            kept = spec.environment.path is None and spec.language is Language.PYTHON
            if not kept and unused_s > (max_age_s if spec in self._called else min(idle_ttl_s, max_age_s)):
                self._forget(spec)
                continue
            for sandbox in [s for s in ready if s.ended or now - s.started_at > max_age_s]:
                ready.remove(sandbox)
                self._throw_away(sandbox)
                if not self._closed:
                    self._keep(asyncio.get_running_loop().create_task(self._refill(spec)))

    async def close(self) -> None:
        """Destroy all prewarmed sandboxes."""
        self._closed = True
        for spec in {*self._ready, *(sandbox.spec for sandbox in self._importing)}:
            self._forget(spec)
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _missing(self, spec: SandboxSpec) -> bool:
        ready = self._ready.get(spec)  # None if the spec has been forgotten
        return ready is not None and len(ready) + self._starting[spec] < self._per_spec

    def _put(self, sandbox: Sandbox) -> None:
        if self._closed or sandbox.spec not in self._ready:
            self._throw_away(sandbox)
        else:
            sandbox.measure()
            self._capacity.rest(sandbox)
            self._ready[sandbox.spec].append(sandbox)
            self._on_ready()

    async def _refill(self, spec: SandboxSpec) -> None:
        try:
            await self._fill(spec)
        except HostError as error:
            _log.warning("no sandbox could be started in advance: %s", error.detail)
            self._on_freed()

    def _throw_away(self, sandbox: Sandbox) -> None:
        self._capacity.leave(sandbox)
        self._keep(asyncio.get_running_loop().create_task(self._destroy(sandbox)))

    async def _destroy(self, sandbox: Sandbox) -> None:
        await sandbox.destroy()
        self._capacity.give_back(sandbox.spec, sandbox)
        self._on_freed()

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

"""Leases sandboxes: a warm sandbox at once, or a new one if there is room, or else after waiting in a fair queue.

Once a sandbox has loaded an evaluator, it belongs to this evaluator of one workspace until it ends. A sandbox serves
one caller at a time. An evaluator gets a second sandbox when its callers have waited longer than a sandbox takes to
start.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import Any, Final

from evaluator_host.engine.pool.evaluator_pools import (
    EvaluatorPool,
    EvaluatorPools,
    Lease,
    LeaseRequest,
    Slot,
    StartQueue,
    Waiter,
)
from evaluator_host.engine.pool.fair_share import Capacity, FairShare, PoolLimits
from evaluator_host.engine.pool.prewarmed import PrewarmedSandboxes, start_sandbox
from evaluator_host.engine.sandbox.base import Backend
from evaluator_host.engine.sandbox.session import RunnerGaveUp, Sandbox
from evaluator_host.engine.system.memory import ByteTurns
from evaluator_host.engine.system.turns import Turns
from evaluator_host.types.errors import HostError, SandboxUnavailable
from evaluator_host.types.evaluator import SandboxSpec
from evaluator_host.types.outcome import ErrorCode, Failed, Loaded

_log = logging.getLogger(__name__)

# seconds that a row waits before one more sandbox is started for its evaluator: about as long as a start takes
GROW_AFTER_S: Final = 0.03
REAP_EVERY_S: Final = 1.0
# an idle sandbox is ended if it grows by more than this many MB between two measurements; if memory is short, a
# sandbox whose row waits is ended too
IDLE_GROWTH_MB: Final = 64
_MEASURED_FOR_S: Final = 5.0
_SHUTTING_DOWN: Final = "the host is shutting down; try again later"
_MANY_WARM: Final = 32  # in a pool with more sandboxes than this, the least used one is ended before a prewarmed one


class Pool:
    """All sandboxes that one process of a host has. Bound to one event loop.

    `parts` is the number of processes in the host; they share `limits` equally.
    """

    def __init__(self, backend: Backend, limits: PoolLimits, *, parts: int = 1) -> None:
        self.backend = backend
        self.limits = limits
        self._turns = ByteTurns(limits.answers_mb << 20)
        self.capacity = Capacity(
            max_sandboxes=limits.max_sandboxes, memory_mb=limits.memory_mb, max_running=limits.max_running
        )
        self._starts = Turns(limits.max_starting)
        self._divide(parts)
        self._shares = FairShare(self.capacity, queue_limit=limits.queue_limit)
        self._prewarmed = PrewarmedSandboxes(
            backend,
            self.capacity,
            per_spec=limits.idle_sandboxes,
            grace_s=limits.grace_s,
            on_freed=self._on_freed,
            on_ready=self._serve,
            make_room=self._evict_idle,
        )
        self._evaluator_pools = EvaluatorPools(self._shares, places=limits.max_sandboxes)
        self._start_queue = StartQueue(self._shares)
        # environments whose files have changed, each with the time of the change
        self._forgotten_at: dict[str, float] = {}
        self._resuming: list[tuple[Lease, asyncio.Future[None]]] = []
        self._resumed = False  # whether the last sandbox that began to run was resumed (not started)
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False

    async def lease_sandbox(self, request: LeaseRequest) -> Lease | Failed:
        """Lease a sandbox that has loaded this evaluator; return a `Failed` if the evaluator does not load.

        Raises:
          Busy: too many calls of this workspace are already waiting.
          SandboxUnavailable: no sandbox can be started.
          SandboxLost: the sandbox died while loading, but not because of the guest.
        """
        owner = self._evaluator_pools.pool_for(request)
        self._evaluator_pools.count_use(owner)
        if not owner.waiters and self._has_warm(owner) and self._may_wake_now(owner):
            return self._lease(owner, self._wake(owner))
        return await self._wait(owner, request)

    def release(self, lease: Lease) -> None:
        """Return a leased sandbox to the pool.

        Rows without an answer are cancelled. A sandbox that is broken or too old is ended.
        """
        sandbox = lease.sandbox
        if sandbox.broken or self._closed or self._worn(sandbox):
            self._discard(lease.owner, sandbox)
        elif sandbox.quiet or sandbox.link.ended:
            self._hand_on(lease.owner, lease.slot)
        else:
            self._spawn(self._settle(lease))

    def pause(self, lease: Lease, *, waits: bool) -> None:
        """Record that the row of a leased sandbox waits for an answer from outside, or that it runs again.

        While its row waits, a sandbox has a low CPU weight, and only the memory that it uses counts. So other sandboxes
        can run.
        """
        owner, slot = lease.owner, lease.slot
        if waits and slot not in owner.paused:
            self._rest(slot)
            owner.pause(slot)
            slot.sandbox.weigh(waits=True)
            self._serve()
            self._grow(owner)
        elif not waits and slot in owner.paused:
            owner.resume(slot)
            slot.sandbox.weigh(waits=False)
            self.capacity.wake(slot.sandbox)

    async def resume(self, lease: Lease) -> None:
        """Wait until a sandbox may run again after its row got an answer, then count the sandbox as running.

        Such rows come before new rows, but only within the share of the pool that their workspace may use. Rows of one
        workspace take turns with calls of other workspaces.
        """
        if lease.slot in lease.owner.paused:
            waiting = lease, asyncio.get_running_loop().create_future()
            self._resuming.append(waiting)
            try:
                self._serve()
                await waiting[1]
            finally:
                self._resuming.remove(waiting)

    def retire(self, lease: Lease) -> None:
        """End a leased sandbox instead of returning it to the pool."""
        self._discard(lease.owner, lease.sandbox)

    async def prewarm(self, spec: SandboxSpec) -> None:
        """Start a sandbox of `spec` without code, unless one is ready.

        Raises:
          SandboxUnavailable: the sandbox does not start.
        """
        await self._prewarmed.fill(spec)

    async def probe(self, spec: SandboxSpec) -> None:
        """If no sandbox of `spec` is ready, start one as a test; raise `SandboxUnavailable` if it does not start."""
        await self._prewarmed.probe(spec)

    def note_start(self, spec: SandboxSpec) -> None:
        """Note that a sandbox of `spec` has just started elsewhere, so that `probe` need not start one."""
        self._prewarmed.note_start(spec)

    def forget(self, environment: str) -> None:
        """End all sandboxes on an environment because its files have changed; `environment` is its digest."""
        self._forgotten_at[environment] = time.monotonic()
        self._prewarmed.forget(environment)
        self.reap()

    async def run_reaper(self) -> None:
        """Call `reap` at intervals, until cancelled."""
        while True:
            await asyncio.sleep(REAP_EVERY_S)
            self.reap()

    def reap(self) -> None:
        """End sandboxes that have been idle too long, were used too often, or are dead.

        Also measure the memory of idle sandboxes.
        """
        now = time.monotonic()
        for owner in self._evaluator_pools:
            for slot in list(owner.idle):
                sandbox = slot.sandbox
                before_mb = sandbox.idle_mb
                sandbox.measure()
                grown = sandbox.idle_mb - before_mb > IDLE_GROWTH_MB
                if grown or sandbox.ended or self._worn(sandbox) or now - slot.idle_since > self.limits.idle_ttl_s:
                    self._end_idle(owner, slot)
                else:
                    self.capacity.rest(sandbox)
            for slot in owner.paused:
                self._watch_paused(slot.sandbox)
        self._make_room()
        self._evaluator_pools.forget_empty()
        self._prewarmed.reap(max_age_s=self.limits.max_age_s, idle_ttl_s=self.limits.idle_ttl_s)

    async def close(self) -> None:
        """Destroy every sandbox, and let every waiting call fail."""
        self._closed = True
        for owner in self._evaluator_pools:
            owner.fail_waiters(SandboxUnavailable(_SHUTTING_DOWN))
            while owner.idle:
                self._end_idle(owner, owner.idle[-1])
        self._serve()
        await self._prewarmed.close()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def divide(self, parts: int) -> None:
        """From now on, use only one of `parts` equal parts of the limits; each process of the host has one part."""
        self._divide(parts)
        self._make_room()
        self._serve()

    def _divide(self, parts: int) -> None:
        self.capacity.divide(parts)
        self._starts.set_slots(max(1, self.limits.max_starting // parts))

    @property
    def waiting(self) -> int:
        """Return the number of callers in the queue."""
        return self._shares.waiting

    async def _wait(self, owner: EvaluatorPool, request: LeaseRequest) -> Lease | Failed:
        if self._closed:
            raise SandboxUnavailable(_SHUTTING_DOWN)
        with self._shares.queued(request.workspace):
            waiter = Waiter(request, asyncio.get_running_loop().create_future())
            owner.waiters.append(waiter)
            self._grow(owner)
            try:
                answer = await waiter.future
            except asyncio.CancelledError:
                if waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
                    late = waiter.future.result()
                    if isinstance(late, Slot):
                        self._hand_on(owner, late)
                raise
        if isinstance(answer, Failed):
            return answer
        waited_ms = (time.monotonic() - waiter.since) * 1000
        return self._lease(owner, answer, waited_ms=waited_ms)

    def _lease(self, owner: EvaluatorPool, slot: Slot, *, waited_ms: float = 0.0) -> Lease:
        warm = not slot.fresh
        load_ms = 0.0 if warm else min(waited_ms, (time.monotonic() - slot.sandbox.started_at) * 1000)
        slot.fresh = False
        queue_ms = waited_ms - load_ms
        return Lease(owner, slot, slot.sandbox, slot.loaded, warm=warm, queue_ms=queue_ms, load_ms=load_ms)

    def _has_warm(self, owner: EvaluatorPool) -> bool:
        while owner.idle and owner.idle[-1].sandbox.ended:
            self._end_idle(owner, owner.idle[-1])
        return bool(owner.idle)

    def _may_wake_now(self, owner: EvaluatorPool) -> bool:
        """Return whether an idle sandbox of an evaluator may be woken now.

        It may not be woken if that leaves too little room for the largest of the sandboxes that are next to start.
        """
        sandbox, capacity = owner.idle[-1].sandbox, self.capacity
        may_start = self._shares.may_start(owner.workspace, sandbox.spec)
        if self._next_to_resume() is not None or not (may_start and capacity.fits_awake(sandbox)):
            return False
        if not self._start_queue:
            return True
        running_mb = capacity.running_mb + sandbox.spec.memory_mb + self._start_queue.largest_mb()
        return running_mb <= capacity.memory_mb and capacity.running + 1 < capacity.max_running

    def _wake(self, owner: EvaluatorPool) -> Slot:
        slot = owner.unpark(owner.idle[-1])
        self.capacity.wake(slot.sandbox)
        return slot

    def _grow(self, owner: EvaluatorPool) -> None:
        """Start or wake a sandbox for an evaluator if its callers have waited long enough."""
        if self._closed or not owner.has_waiters or owner.starting >= len(owner.waiters):
            return
        if owner.size == 0 or owner.idle:
            self._start_queue.enqueue(owner)
            self._serve()
        elif owner.size - len(owner.paused) < self.limits.max_per_evaluator and owner.size < self.limits.max_waiting:
            due_in_s = owner.waiters[0].since + GROW_AFTER_S - time.monotonic()
            if due_in_s <= 0:
                self._start_another(owner)
            else:
                asyncio.get_running_loop().call_later(due_in_s, self._grow, owner)

    def _start_another(self, owner: EvaluatorPool) -> None:
        """Start one more sandbox for an evaluator; if necessary, end idle sandboxes of evaluators that are used less.

        Evaluators in the start queue come first.
        """
        may_start = self._shares.may_start(owner.workspace, owner.waiters[0].request.spec)
        if self._next_to_resume() is not None or not may_start:
            return
        if self._fits(owner) and not self._start_queue:
            self._start(owner)
        elif self._make_room(beside=owner):
            self._start_queue.enqueue(owner)

    def _fits(self, owner: EvaluatorPool) -> bool:
        if self._has_warm(owner):
            return self.capacity.fits_awake(owner.idle[-1].sandbox)
        spec = owner.waiters[0].request.spec
        return self._prewarmed.may_take(spec) or self.capacity.fits(spec)

    def _serve(self) -> None:
        """Resume rows and start sandboxes for queued evaluators, in turn; end idle sandboxes if there is no room."""
        if not (self._start_queue or self._resuming):
            return
        while True:
            resuming = self._next_to_resume()
            owner = None if self._closed else self._start_queue.next_to_start(self._fits)
            its_turn = owner is not None and (
                resuming is None or (self._resumed and owner.workspace != resuming[0].owner.workspace)
            )
            if resuming is not None and not its_turn and self._may_resume(resuming[0].sandbox):
                self.pause(resuming[0], waits=False)
                resuming[1].set_result(None)
                self._resumed = True
            elif owner is not None and its_turn:
                self._start_queue.remove(owner)
                self._start(owner)
                self._resumed = False
            else:
                break
        self._make_room()

    def _next_to_resume(self) -> tuple[Lease, asyncio.Future[None]] | None:
        """Return the lease of the row to resume next, and the future that the row awaits, or None if there is none.

        The row is the one that has waited longest, among the rows of workspaces that have not used up their share.
        """
        for lease, resumed in self._resuming:
            may_start = self._closed or self._shares.may_start(lease.owner.workspace, lease.sandbox.spec)
            if may_start and not resumed.done():
                return lease, resumed
        return None

    def _may_resume(self, sandbox: Sandbox) -> bool:
        """Return whether there is room to resume the row of a sandbox; always true if no other sandbox runs."""
        return self._closed or not self.capacity.running or self.capacity.fits_awake(sandbox)

    def _start(self, owner: EvaluatorPool) -> None:
        if self._has_warm(owner):
            slot, waiter = self._wake(owner), owner.pop_waiter()
            owner.begin_turn(started=time.monotonic())
            if waiter is not None:
                waiter.future.set_result(slot)
            self._grow(owner)
            return
        request = owner.waiters[0].request
        prewarmed = self._prewarmed.take_sandbox(request.spec)
        if prewarmed is None:
            self.capacity.reserve(request.spec)
        owner.grow(request.spec)
        self._spawn(self._start_for(owner, request, prewarmed))

    def _make_room(self, *, beside: EvaluatorPool | None = None) -> bool:
        """End as many idle and prewarmed sandboxes as waiting evaluators need.

        `_serve` runs again after they have ended.

        Args:
          beside: Evaluator that needs one more sandbox; only evaluators that are used less give up a sandbox for it.
            None if no evaluator needs an additional one.

        Returns:
          Whether there will be room.
        """
        wanted = self._start_queue.eligible() if beside is None else [beside]
        wanted = wanted[: max(1, self.capacity.max_running - self.capacity.running + self.capacity.leaving)]
        specs = [one.waiters[0].request.spec for one in wanted if not one.idle]
        waking = [one.idle[-1] for one in wanted if one.idle]
        if (resuming := self._next_to_resume()) is not None:
            waking.append(resuming[0].slot)
        waking_mb = sum(slot.sandbox.spec.memory_mb - slot.sandbox.idle_mb for slot in waking)
        victims: Iterator[tuple[EvaluatorPool, Slot]] | None = None
        while True:
            sandboxes, memory_mb = self.capacity.short_of(specs)
            if sandboxes <= 0 and memory_mb + waking_mb <= 0:
                return bool(wanted)
            # only a small pool ends prewarmed sandboxes first; a larger pool ends its least used warm sandbox
            if beside is None and self.capacity.sandboxes <= _MANY_WARM and self._prewarmed.evict_one():
                continue
            victims = victims or self._evaluator_pools.coldest_first()
            victim = next((at for at in victims if at[1] in at[0].idle and at[1] not in waking), None)
            if victim is None or (beside is not None and victim[0].worth > beside.uses / (beside.size + 1)):
                return beside is None and self._prewarmed.evict_one()
            self._end_idle(*victim)

    def _evict_idle(self) -> bool:
        """End the idle sandbox that is needed least; return False if no sandbox is idle."""
        victim = next(self._evaluator_pools.coldest_first(), None)
        if victim is None:
            return False
        self._end_idle(*victim)
        return True

    async def _start_for(self, owner: EvaluatorPool, request: LeaseRequest, sandbox: Sandbox | None) -> None:
        """Load the evaluator in a given or new sandbox, and hand the sandbox to a caller.

        If this fails, all waiting callers of the evaluator get the failure.
        """
        started, loaded = time.monotonic(), None
        try:
            if sandbox is None:
                sandbox = await self._start_in_turn(owner.workspace, request.spec)
            loaded = await sandbox.load(replace(request.load, bundle=owner.bundle), turns=self._turns)
        except HostError as error:
            _log.warning("a sandbox could not be started or was lost: %s", error.detail)
            owner.fail_waiters(error)
        except Exception as error:  # noqa: BLE001 - a caller that nobody answers would wait for ever
            _log.error("a sandbox was not started because of a fault of this host", exc_info=error)
            owner.fail_waiters(HostError("the host has an internal fault; its log has the details"))
        finally:
            owner.starting -= 1
        if isinstance(loaded, Loaded) and sandbox is not None:
            self._evaluator_pools.keep_bundle(owner, loaded.bundle)
            owner.begin_turn(started=started)
            self._hand_on(owner, Slot(sandbox, replace(loaded, bundle=None)))
        else:
            if isinstance(loaded, Failed) and loaded.error.code is ErrorCode.CRASHED:
                # another program may have killed the sandbox: each caller tries once more
                owner.fail_waiters(RunnerGaveUp(loaded))
            elif isinstance(loaded, Failed):
                owner.answer_waiters(loaded)
            if sandbox is not None:
                await sandbox.destroy()
            self._gone(owner, request.spec)
        if not self._start_queue:
            self._prewarmed.refill_soon(request.spec)

    async def _start_in_turn(self, workspace: str, spec: SandboxSpec) -> Sandbox:
        """Start a sandbox when it is the workspace's turn; at most `max_starting` sandboxes start at the same time."""
        async with self._starts.turn(workspace):
            if self._closed:
                raise SandboxUnavailable(_SHUTTING_DOWN)
            return await start_sandbox(self.backend, spec, grace_s=self.limits.grace_s)

    def _hand_on(self, owner: EvaluatorPool, slot: Slot) -> None:
        """Give a free sandbox to the next caller, or keep it idle if no caller waits or other evaluators come first."""
        wanted_elsewhere = (not slot.fresh and self._next_to_resume() is not None) or (
            bool(self._start_queue)
            and (not owner.has_waiters or time.monotonic() > owner.turn_until)
            and self._start_queue.wants_sandbox_of(owner)
        )
        if self._closed or slot.sandbox.ended:
            self._discard(owner, slot.sandbox)
        elif not wanted_elsewhere and (waiter := owner.pop_waiter()) is not None:
            waiter.future.set_result(slot)
        else:
            self._park(owner, slot)
            self._serve()
            if owner.waiters:
                self._grow(owner)

    def _park(self, owner: EvaluatorPool, slot: Slot) -> None:
        owner.park(slot)
        self._rest(slot)

    def _rest(self, slot: Slot) -> None:
        """Count only the memory that a sandbox without a row uses; measure it again from time to time."""
        now = time.monotonic()
        if now - slot.measured_at > _MEASURED_FOR_S:
            slot.sandbox.measure()
            slot.measured_at = now
        self.capacity.rest(slot.sandbox)

    def _watch_paused(self, sandbox: Sandbox) -> None:
        """Measure a sandbox whose row waits; end the sandbox if its memory grows while the pool is short of memory."""
        before_mb = sandbox.idle_mb
        sandbox.measure()
        self.capacity.rest(sandbox)
        if sandbox.idle_mb - before_mb > IDLE_GROWTH_MB and self.capacity.taken_mb > self.capacity.memory_mb:
            self._spawn(sandbox.destroy())

    async def _settle(self, lease: Lease) -> None:
        await lease.sandbox.settle()
        if lease.sandbox.quiet:
            self._hand_on(lease.owner, lease.slot)
        else:
            self._discard(lease.owner, lease.sandbox)

    def _discard(self, owner: EvaluatorPool, sandbox: Sandbox) -> None:
        self.capacity.leave(sandbox)
        self._spawn(self._destroy(owner, sandbox))

    async def _destroy(self, owner: EvaluatorPool, sandbox: Sandbox) -> None:
        await sandbox.destroy()
        self._gone(owner, sandbox.spec, sandbox)

    def _end_idle(self, owner: EvaluatorPool, slot: Slot) -> None:
        """End an idle sandbox; it is not part of any workspace's share."""
        owner.idle.remove(slot)
        self.capacity.leave(slot.sandbox)
        self._spawn(self._destroy_idle(owner, slot.sandbox))

    async def _destroy_idle(self, owner: EvaluatorPool, sandbox: Sandbox) -> None:
        await sandbox.destroy()
        owner.size -= 1
        self._freed(owner, sandbox.spec, sandbox)

    def _gone(self, owner: EvaluatorPool, spec: SandboxSpec, sandbox: Sandbox | None = None) -> None:
        owner.shrink(spec)
        self._freed(owner, spec, sandbox)

    def _freed(self, owner: EvaluatorPool, spec: SandboxSpec, sandbox: Sandbox | None) -> None:
        self.capacity.give_back(spec, sandbox)
        self._on_freed()
        self._grow(owner)

    def _on_freed(self) -> None:
        self._serve()
        if not self._closed and not self._start_queue:
            self._prewarmed.refill_wanting()

    def _worn(self, sandbox: Sandbox) -> bool:
        oldest = max(
            time.monotonic() - self.limits.max_age_s, self._forgotten_at.get(sandbox.spec.environment.digest, 0.0)
        )
        return sandbox.rows >= self.limits.max_rows or sandbox.started_at < oldest

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

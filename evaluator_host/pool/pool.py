"""Leases sandboxes: a warm one at once, a new one if there is room, otherwise after a wait in a fair queue.

A sandbox belongs to one evaluator of one workspace from its load to its end, and to one caller at a time. An evaluator
gets a second sandbox when its callers have waited longer than its start takes.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

from evaluator_host.model.errors import HostError, SandboxUnavailable
from evaluator_host.model.evaluator import SandboxSpec
from evaluator_host.model.outcome import ErrorCode, Failed, Loaded
from evaluator_host.pool.evaluator_pools import (
    EvaluatorPool,
    EvaluatorPools,
    Lease,
    LeaseRequest,
    Slot,
    StartQueue,
    Waiter,
)
from evaluator_host.pool.fair_share import Capacity, FairShare, PoolLimits
from evaluator_host.pool.prewarmed import PrewarmedSandboxes, start_sandbox
from evaluator_host.sandbox.base import Backend
from evaluator_host.sandbox.session import RunnerGaveUp, Sandbox
from evaluator_host.system.memory import ByteTurns

_log = logging.getLogger(__name__)

GROW_AFTER_S: Final = 0.03  # about the start of a sandbox: a shorter wait is cheaper
REAP_EVERY_S: Final = 1.0


class Pool:
    """All sandboxes of one host. Bound to one event loop."""

    def __init__(self, backend: Backend, limits: PoolLimits) -> None:
        self.backend = backend
        self.limits = limits
        self._turns = ByteTurns(limits.answers_mb << 20)
        self.capacity = Capacity(max_sandboxes=limits.max_sandboxes, memory_mb=limits.memory_mb)
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
        self._evaluator_pools = EvaluatorPools(self._shares)
        self._start_queue = StartQueue(self._shares)
        self._evicting = 0
        self._forgotten_at: dict[str, float] = {}  # environments whose files have changed, and when
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    # For callers

    async def lease_sandbox(self, request: LeaseRequest) -> Lease | Failed:
        """Return a sandbox that has loaded this evaluator, or a `Failed` when the evaluator does not load.

        Raises:
          Busy: too many calls of this workspace wait already.
          SandboxUnavailable: no sandbox can be started.
          SandboxLost: the sandbox died while loading for a reason that is not the guest's.
        """
        owner = self._evaluator_pools.pool_for(request)
        while owner.idle and not owner.waiters:
            slot = owner.unpark(owner.idle[-1])
            if not slot.sandbox.ended:
                return self._lease(owner, slot)
            self._discard(owner, slot.sandbox)
        return await self._wait(owner, request)

    def release(self, lease: Lease) -> None:
        """Return a leased sandbox to the pool, in any state."""
        sandbox = lease.sandbox
        if sandbox.broken or sandbox.link.ended or self._closed or self._worn(sandbox):
            self._discard(lease.owner, sandbox)
        elif not sandbox.quiet:
            self._spawn(self._settle(lease))
        else:
            self._hand_on(lease.owner, lease.slot)

    def retire(self, lease: Lease) -> None:
        """Return a leased sandbox to the pool and end it."""
        self._discard(lease.owner, lease.sandbox)

    async def prewarm(self, spec: SandboxSpec) -> None:
        """Start a sandbox of `spec` without code, unless one is waiting.

        Raises:
          SandboxUnavailable: it does not start.
        """
        await self._prewarmed.fill(spec)

    async def probe(self, spec: SandboxSpec) -> None:
        """Check that a sandbox of `spec` can start, and raise if not; see `PrewarmedSandboxes.probe`."""
        await self._prewarmed.probe(spec)

    def forget(self, environment: str) -> None:
        """End all sandboxes on an environment, given by digest, because its files have changed."""
        self._forgotten_at[environment] = time.monotonic()
        self._prewarmed.forget(environment)
        self.reap()

    async def run_reaper(self) -> None:
        """End sandboxes that are idle too long, used too often or dead; runs until cancelled."""
        while True:
            await asyncio.sleep(REAP_EVERY_S)
            self.reap()

    def reap(self) -> None:
        """Run one round of `run_reaper`."""
        now = time.monotonic()
        for owner in self._evaluator_pools:
            for slot in list(owner.idle):
                sandbox = slot.sandbox
                if sandbox.ended or self._worn(sandbox) or now - slot.idle_since > self.limits.idle_ttl_s:
                    self._discard(owner, owner.unpark(slot).sandbox)
        self._evaluator_pools.forget_empty()
        self._prewarmed.reap(max_age_s=self.limits.max_age_s)

    async def close(self) -> None:
        """Destroy every sandbox and fail every waiting call before returning."""
        self._closed = True
        for owner in self._evaluator_pools:
            owner.fail_waiters(SandboxUnavailable("the host is shutting down"))
            while owner.idle:
                self._discard(owner, owner.unpark(owner.idle[-1]).sandbox)
        await self._prewarmed.close()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    @property
    def waiting(self) -> int:
        """Number of callers in the queue."""
        return self._shares.waiting

    # Waiting and growing

    async def _wait(self, owner: EvaluatorPool, request: LeaseRequest) -> Lease | Failed:
        if self._closed:
            raise SandboxUnavailable("the host is shutting down")
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

    def _grow(self, owner: EvaluatorPool) -> None:
        """Start a sandbox for an evaluator if its callers have waited long enough for one."""
        if self._closed or not owner.has_waiters or owner.starting >= len(owner.waiters):
            return
        if owner.size == 0:
            self._start_queue.enqueue(owner)
            self._serve()
        elif owner.size < self.limits.max_per_evaluator:
            due_in_s = owner.waiters[0].since + GROW_AFTER_S - time.monotonic()
            if due_in_s <= 0:
                self._start_another(owner)
            else:
                asyncio.get_running_loop().call_later(due_in_s, self._grow, owner)

    def _start_another(self, owner: EvaluatorPool) -> None:
        """Start one more for an evaluator that has some; only idle ones make room, and the start queue goes first."""
        spec = owner.waiters[0].request.spec
        if not self._shares.may_start(owner.workspace, spec):
            return
        if self._fits(spec) and not self._start_queue:
            self._start(owner)
        elif self._evict():
            self._start_queue.enqueue(owner)

    def _fits(self, spec: SandboxSpec) -> bool:
        return self._prewarmed.waits(spec) or self.capacity.fits(spec)

    def _serve(self) -> None:
        """Start sandboxes for the start queue, in turn, and end idle ones where there is no room."""
        if not self._start_queue:
            return
        while not self._closed and (owner := self._start_queue.next_to_start(self._fits)) is not None:
            self._start_queue.remove(owner)
            self._start(owner)
        while self._evicting < self._start_queue.eligible and self._evict():
            pass

    def _start(self, owner: EvaluatorPool) -> None:
        request = owner.waiters[0].request
        prewarmed = self._prewarmed.take_sandbox(request.spec)
        if prewarmed is None:
            self.capacity.reserve(request.spec)
        owner.grow(request.spec)
        self._spawn(self._start_for(owner, request, prewarmed))

    def _evict(self) -> bool:
        """End a prewarmed or an idle sandbox; `_serve` is called again when it is gone."""
        evicted = self._prewarmed.evict_one() or self._evict_idle()
        self._evicting += evicted
        return evicted

    def _evict_idle(self) -> bool:
        owner = self._evaluator_pools.idle_longest()
        if owner is None:
            return False
        self._discard(owner, owner.unpark(owner.idle[0]).sandbox)
        return True

    async def _start_for(self, owner: EvaluatorPool, request: LeaseRequest, sandbox: Sandbox | None) -> None:
        """Start a sandbox unless one is given, load it, hand it over. A failure goes to every caller that waits now."""
        started, loaded = time.monotonic(), None
        try:
            if sandbox is None:
                sandbox = await start_sandbox(self.backend, request.spec, grace_s=self.limits.grace_s)
            loaded = await sandbox.load(replace(request.load, bundle=owner.bundle), turns=self._turns)
        except HostError as error:
            _log.warning("a sandbox could not be started or was lost: %s", error.detail)
            owner.fail_waiters(error)
        except Exception as error:  # noqa: BLE001 - a caller that nobody answers would wait for ever
            _log.error("a sandbox was not started because of a fault of this host", exc_info=error)
            owner.fail_waiters(HostError("the host has a fault; its log says more"))
        finally:
            owner.starting -= 1
        if isinstance(loaded, Loaded) and sandbox is not None:
            owner.bundle = loaded.bundle
            owner.begin_turn(started=started)
            self._hand_on(owner, Slot(sandbox, loaded))
        else:
            if isinstance(loaded, Failed) and loaded.error.code is ErrorCode.CRASHED:
                owner.fail_waiters(RunnerGaveUp(loaded))  # perhaps something killed it: each caller tries once more
            elif isinstance(loaded, Failed):
                owner.answer_waiters(loaded)
            if sandbox is not None:
                await sandbox.destroy()
            self._gone(owner, request.spec)
        if not self._start_queue:
            self._prewarmed.refill_soon(request.spec)

    # Handing on and ending

    def _hand_on(self, owner: EvaluatorPool, slot: Slot) -> None:
        """Give a free slot to the next caller, end it when another evaluator needs its place, or let it idle."""
        wanted_elsewhere = (
            bool(self._start_queue)
            and (not owner.has_waiters or time.monotonic() > owner.turn_until)
            and self._start_queue.wants_sandbox_of(owner)
        )
        if self._closed or slot.sandbox.ended or wanted_elsewhere:
            self._discard(owner, slot.sandbox)
        elif (waiter := owner.pop_waiter()) is not None:
            waiter.future.set_result(slot)
        else:
            owner.park(slot)
            self._serve()

    async def _settle(self, lease: Lease) -> None:
        await lease.sandbox.settle()
        if lease.sandbox.quiet:
            self._hand_on(lease.owner, lease.slot)
        else:
            self._discard(lease.owner, lease.sandbox)

    def _discard(self, owner: EvaluatorPool, sandbox: Sandbox) -> None:
        self._spawn(self._destroy(owner, sandbox))

    async def _destroy(self, owner: EvaluatorPool, sandbox: Sandbox) -> None:
        await sandbox.destroy()
        self._gone(owner, sandbox.spec)

    def _gone(self, owner: EvaluatorPool, spec: SandboxSpec) -> None:
        owner.shrink(spec)
        self.capacity.give_back(spec)
        self._on_freed()
        self._grow(owner)

    def _on_freed(self) -> None:
        self._evicting = max(0, self._evicting - 1)
        self._serve()
        if not self._closed and not self._start_queue:
            self._prewarmed.refill_wanting()

    def _worn(self, sandbox: Sandbox) -> bool:
        oldest = max(
            time.monotonic() - self.limits.max_age_s, self._forgotten_at.get(sandbox.spec.environment.digest, 0.0)
        )
        return sandbox.rows >= self.limits.max_rows or sandbox.started_at < oldest

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

"""Leases sandboxes to callers: warm ones at once, new ones within a ceiling, otherwise in a bounded fair queue.

A sandbox belongs to one evaluator of one workspace from its load to its end. One caller has it at a time. An evaluator
gets a second sandbox when its callers have waited longer than starting one would take.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

from evaluator_host.model.errors import HostError, SandboxUnavailable
from evaluator_host.model.evaluator import SandboxSpec
from evaluator_host.model.outcome import Failed, Loaded
from evaluator_host.pool.capacity import Capacity
from evaluator_host.pool.evaluator_pools import Group, Groups, Order, Slot, Waiter
from evaluator_host.pool.fair_share import Shares
from evaluator_host.pool.lease import Lease, PoolLimits
from evaluator_host.pool.prewarmed import Blanks, start_sandbox
from evaluator_host.pool.start_queue import Starved
from evaluator_host.sandbox.base import Backend
from evaluator_host.sandbox.session import Sandbox

_log = logging.getLogger(__name__)

GROW_AFTER_S: Final = 0.03  # about what one more sandbox costs: waiting less than that is cheaper
REAP_EVERY_S: Final = 1.0


class Pool:
    """All sandboxes of one host. Bound to one event loop."""

    def __init__(self, backend: Backend, limits: PoolLimits) -> None:
        self.backend = backend
        self.limits = limits
        self.capacity = Capacity(max_sandboxes=limits.max_sandboxes, memory_mb=limits.memory_mb)
        self._shares = Shares(self.capacity, queue_limit=limits.queue_limit)
        self._blanks = Blanks(
            backend,
            self.capacity,
            per_spec=limits.idle_sandboxes,
            grace_s=limits.grace_s,
            on_freed=self._on_freed,
            on_ready=self._serve,
            make_room=self._evict_idle,
        )
        self._groups = Groups(self._shares)
        self._starved = Starved(self._shares)
        self._evicting = 0
        self._forgotten_at: dict[str, float] = {}  # environments whose files have changed, and when
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    # What callers do

    async def lease(self, order: Order) -> Lease | Failed:
        """Wait for a sandbox that has loaded this evaluator.

        Returns a `Failed` when the evaluator does not load: that is the guest's doing.

        Raises:
          Busy: too many calls of this workspace wait already.
          SandboxUnavailable: no sandbox can be started.
          SandboxLost: the sandbox died while loading for a reason that is not the guest's.
        """
        group = self._groups.of(order)
        while group.idle and not group.waiters:
            slot = group.unpark(group.idle[-1])
            if not slot.sandbox.ended:
                return self._lease(group, slot)
            self._discard(group, slot.sandbox)
        return await self._wait(group, order)

    def release(self, lease: Lease) -> None:
        """Give a sandbox back. Whatever state it is in, the caller is done with it."""
        sandbox = lease.sandbox
        if sandbox.broken or sandbox.link.ended or self._closed or self._worn(sandbox):
            self._discard(lease.group, sandbox)
        elif not sandbox.quiet:
            self._spawn(self._settle(lease))
        else:
            self._hand_on(lease.group, lease.slot)

    def retire(self, lease: Lease) -> None:
        """Give a sandbox back that nobody else should get."""
        self._discard(lease.group, lease.sandbox)

    async def prewarm(self, spec: SandboxSpec) -> None:
        """Keep a started sandbox waiting for `spec`.

        Raises:
          SandboxUnavailable: it does not start.
        """
        await self._blanks.fill(spec)

    async def prove(self, spec: SandboxSpec) -> None:
        """Return when a sandbox for `spec` waits, or could be started a moment ago; raises what `prewarm` does."""
        await self._blanks.prove(spec)

    def forget(self, environment: str) -> None:
        """Use no sandbox any longer that was started on an environment, by its digest, before now."""
        self._forgotten_at[environment] = time.monotonic()
        self._blanks.forget(environment)
        self.reap()

    async def run_reaper(self) -> None:
        """Throw away what is idle too long, worn or dead; runs until cancelled."""
        while True:
            await asyncio.sleep(REAP_EVERY_S)
            self.reap()

    def reap(self) -> None:
        """One round of `run_reaper`."""
        now = time.monotonic()
        for group in self._groups:
            for slot in list(group.idle):
                sandbox = slot.sandbox
                if sandbox.ended or self._worn(sandbox) or now - slot.idle_since > self.limits.idle_ttl_s:
                    self._discard(group, group.unpark(slot).sandbox)
        self._groups.forget_empty()
        self._blanks.reap(max_age_s=self.limits.max_age_s)

    async def close(self) -> None:
        """Destroy every sandbox and fail whoever waits; nothing is left when it returns."""
        self._closed = True
        for group in self._groups:
            group.fail_waiters(SandboxUnavailable("the host is shutting down"))
            while group.idle:
                self._discard(group, group.unpark(group.idle[-1]).sandbox)
        await self._blanks.close()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    @property
    def waiting(self) -> int:
        """Callers in the queue."""
        return self._shares.waiting

    # Waiting and growing

    async def _wait(self, group: Group, order: Order) -> Lease | Failed:
        if self._closed:
            raise SandboxUnavailable("the host is shutting down")
        with self._shares.queued(order.workspace):
            waiter = Waiter(order, asyncio.get_running_loop().create_future())
            group.waiters.append(waiter)
            self._grow(group)
            try:
                answer = await waiter.future
            except asyncio.CancelledError:
                if waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
                    late = waiter.future.result()
                    if isinstance(late, Slot):
                        self._hand_on(group, late)
                raise
        if isinstance(answer, Failed):
            return answer
        waited_ms = (time.monotonic() - waiter.since) * 1000
        return self._lease(group, answer, waited_ms=waited_ms)

    def _lease(self, group: Group, slot: Slot, *, waited_ms: float = 0.0) -> Lease:
        warm = not slot.fresh
        load_ms = 0.0 if warm else min(waited_ms, (time.monotonic() - slot.sandbox.started_at) * 1000)
        slot.fresh = False
        return Lease(group, slot, warm=warm, queue_ms=waited_ms - load_ms, load_ms=load_ms)

    def _grow(self, group: Group) -> None:
        """Start a sandbox for the group when its waiters are worth one."""
        if self._closed or not group.has_waiters or group.starting >= len(group.waiters):
            return
        if group.size == 0:
            self._starved.add(group)
            self._serve()
        elif group.size < self.limits.max_per_evaluator:
            due_in_s = group.waiters[0].since + GROW_AFTER_S - time.monotonic()
            if due_in_s <= 0:
                self._start_another(group)
            else:
                asyncio.get_running_loop().call_later(due_in_s, self._grow, group)

    def _start_another(self, group: Group) -> None:
        """Start one more for a group that has some: that is worth an idle one, not somebody's turn."""
        spec = group.waiters[0].order.spec
        if not self._shares.may_start(group.workspace, spec):
            return
        if self._fits(spec) and not self._starved:
            self._start(group)
        elif self._evict():
            self._starved.add(group)

    def _fits(self, spec: SandboxSpec) -> bool:
        return self._blanks.waits(spec) or self.capacity.fits(spec)

    def _serve(self) -> None:
        """Start a sandbox for everybody in line whose turn it is; make room for those it is not enough for."""
        while not self._closed and (group := self._starved.next(self._fits)) is not None:
            self._starved.served(group)
            self._start(group)
        while self._evicting < self._starved.eligible and self._evict():
            pass

    def _start(self, group: Group) -> None:
        order = group.waiters[0].order
        blank = self._blanks.take(order.spec)
        if blank is None:
            self.capacity.take(order.spec)
        group.grow(order.spec)
        self._spawn(self._start_for(group, order, blank))

    def _evict(self) -> bool:
        """Throw away a blank or an idle sandbox; `_serve` goes on when it is gone."""
        evicted = self._blanks.evict_one() or self._evict_idle()
        self._evicting += evicted
        return evicted

    def _evict_idle(self) -> bool:
        group = self._groups.idling_longest()
        if group is None:
            return False
        self._discard(group, group.unpark(group.idle[0]).sandbox)
        return True

    async def _start_for(self, group: Group, order: Order, sandbox: Sandbox | None) -> None:
        """Start (unless a blank waited), load, hand over. Its failure is the failure of everybody who waits now."""
        started, loaded = time.monotonic(), None
        try:
            if sandbox is None:
                sandbox = await start_sandbox(self.backend, order.spec, grace_s=self.limits.grace_s)
            loaded = await sandbox.load(replace(order.load, bundle=group.bundle))
        except HostError as error:
            _log.warning("a sandbox could not be started or was lost: %s", error.detail)
            group.fail_waiters(error)
        finally:
            group.starting -= 1
        if isinstance(loaded, Loaded) and sandbox is not None:
            group.bundle = loaded.bundle
            group.begin_turn(started=started)
            self._hand_on(group, Slot(sandbox, loaded))
        else:
            if isinstance(loaded, Failed):
                group.answer_waiters(loaded)
            if sandbox is not None:
                await sandbox.destroy()
            self._gone(group, order.spec)
        if not self._starved:
            self._blanks.refill_soon(order.spec)

    # Handing on and throwing away

    def _hand_on(self, group: Group, slot: Slot) -> None:
        """Give a free slot to the next caller of its evaluator, to another evaluator's turn, or let it idle."""
        over = not group.has_waiters or time.monotonic() > group.turn_until
        wanted_elsewhere = over and self._starved.wants(group)
        if self._closed or slot.sandbox.ended or wanted_elsewhere:
            self._discard(group, slot.sandbox)
        elif (waiter := group.pop_waiter()) is not None:
            waiter.future.set_result(slot)
        else:
            group.park(slot)
            self._serve()

    async def _settle(self, lease: Lease) -> None:
        await lease.sandbox.settle()
        if lease.sandbox.quiet:
            self._hand_on(lease.group, lease.slot)
        else:
            self._discard(lease.group, lease.sandbox)

    def _discard(self, group: Group, sandbox: Sandbox) -> None:
        self._spawn(self._destroy(group, sandbox))

    async def _destroy(self, group: Group, sandbox: Sandbox) -> None:
        await sandbox.destroy()
        self._gone(group, sandbox.spec)

    def _gone(self, group: Group, spec: SandboxSpec) -> None:
        group.shrink(spec)
        self.capacity.give_back(spec)
        self._on_freed()
        self._grow(group)

    def _on_freed(self) -> None:
        self._evicting = max(0, self._evicting - 1)
        self._serve()
        if not self._closed and not self._starved:
            self._blanks.refill_wanting()

    def _worn(self, sandbox: Sandbox) -> bool:
        oldest = max(
            time.monotonic() - self.limits.max_age_s, self._forgotten_at.get(sandbox.spec.environment.digest, 0.0)
        )
        return sandbox.rows >= self.limits.max_rows or sandbox.started_at < oldest

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

"""Keeps the sandboxes and the waiting callers of each evaluator, and defines the lease that a caller holds."""

import asyncio
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

from evaluator_host.engine.pool.fair_share import FairShare
from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import SandboxSpec
from evaluator_host.types.outcome import Failed, Loaded

TURN_S: Final = 0.25  # shortest time that an evaluator keeps its sandboxes while another evaluator has none
# how many evaluators without a sandbox to remember; a pool with more sandboxes than this remembers one for each
EMPTY_POOLS: Final = 512
BUNDLE_BYTES: Final = 64 << 20  # maximum size of the compiled code of all evaluators together, in bytes
_MOST_USES: Final = 15  # maximum number of uses to count for one evaluator: the highest number that four bits can hold
_SAMPLE: Final = 10  # all counts are halved once the average is this many uses per sandbox of the pool
# for each group of this many idle sandboxes, one is spared: the most recently used ones are ended last
_WINDOW: Final = 100


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A request for a sandbox: workspace, digest of the evaluator, how to load the evaluator, and the sandbox spec."""

    workspace: str
    digest: str
    spec: SandboxSpec
    load: LoadRequest

    @property
    def key(self) -> tuple[str, str]:
        """Return the workspace and the digest of the evaluator; calls with equal keys use the same sandboxes."""
        return self.workspace, self.digest


@dataclass(slots=True, eq=False, weakref_slot=True)
class Slot:
    """A sandbox that has loaded an evaluator, with the pool's records about this sandbox."""

    sandbox: Sandbox
    loaded: Loaded
    fresh: bool = True
    idle_since: float = 0.0
    measured_at: float = -math.inf


@dataclass(slots=True, eq=False)
class Waiter:
    """A caller that waits for a slot.

    The result of `future` is the slot, or the reason why the evaluator did not load.
    """

    request: LeaseRequest
    future: asyncio.Future[Slot | Failed]
    since: float = field(default_factory=time.monotonic)


class EvaluatorPool:
    """The sandboxes and waiting callers of one evaluator in one workspace.

    Leased and starting sandboxes count towards the workspace's share of the pool. Idle sandboxes do not.
    """

    def __init__(self, key: tuple[str, str], shares: FairShare) -> None:
        self.key = key
        self.workspace = key[0]
        self._shares = shares
        self.idle: deque[Slot] = deque()  # slots that no call uses, the most recently used last
        self.waiters: deque[Waiter] = deque()  # callers, the longest waiting first
        self.starting = 0  # number of sandboxes that are starting or loading
        self.size = 0  # number of the evaluator's sandboxes: idle, leased and starting
        # slots whose rows wait for an answer from outside; for each, the MB of its limit that are free during the wait
        self.paused: dict[Slot, int] = {}
        # until this time, a sandbox that becomes free goes to the waiting callers of this evaluator first
        self.turn_until = 0.0
        self.uses = 0  # number of recent leases; it decides the order of `EvaluatorPools.coldest_first`
        self.bundle: bytes | None = None  # compiled code from the runner, for the next sandbox

    def grow(self, spec: SandboxSpec) -> None:
        """Count a sandbox that is starting."""
        self.size += 1
        self.starting += 1
        self._shares.begin(self.workspace, spec.memory_mb)

    def begin_turn(self, *, started: float) -> None:
        """Protect this evaluator's sandboxes, one of which has just started, from being ended for other evaluators.

        `started` is the monotonic time at which the host began to start this sandbox. The protection lasts at least as
        long as the start took. Otherwise, on a busy machine, sandboxes might be ended before their first call.
        """
        now = time.monotonic()
        self.turn_until = now + max(TURN_S, now - started)

    def shrink(self, spec: SandboxSpec) -> None:
        """Stop counting a busy sandbox, because it has ended."""
        self.size -= 1
        self._shares.end(self.workspace, spec.memory_mb)

    def park(self, slot: Slot) -> None:
        """Keep a sandbox as idle; it no longer counts towards the workspace's share."""
        slot.idle_since = time.monotonic()
        self.idle.append(slot)
        self._shares.end(self.workspace, slot.sandbox.spec.memory_mb)

    def unpark(self, slot: Slot) -> Slot:
        """Stop counting a sandbox as idle, because a call will use it, and return it."""
        self.idle.remove(slot)
        self._shares.begin(self.workspace, slot.sandbox.spec.memory_mb)
        return slot

    def pause(self, slot: Slot) -> None:
        """Count only the memory that a leased sandbox uses now, while its row waits for an answer from outside."""
        self.paused[slot] = unused_mb = slot.sandbox.spec.memory_mb - slot.sandbox.idle_mb
        self._shares.end(self.workspace, unused_mb)

    def resume(self, slot: Slot) -> None:
        """Count a sandbox as busy again after `pause`."""
        self._shares.begin(self.workspace, self.paused.pop(slot))

    @property
    def worth(self) -> float:
        """Return the recent leases per sandbox.

        Evaluators with a small number lose their idle sandboxes first.
        """
        return self.uses / max(1, self.size)

    def pop_waiter(self) -> Waiter | None:
        """Remove and return the caller that has waited longest, or None; drop callers that have hung up."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.future.done():
                return waiter
        return None

    def answer_waiters(self, failed: Failed) -> None:
        """Give every waiting caller the reason why the evaluator did not load."""
        while (waiter := self.pop_waiter()) is not None:
            waiter.future.set_result(failed)

    def fail_waiters(self, error: HostError) -> None:
        """Make a host error the result of every waiting caller, which raises it."""
        while (waiter := self.pop_waiter()) is not None:
            waiter.future.set_exception(error)

    @property
    def has_waiters(self) -> bool:
        while self.waiters and self.waiters[0].future.done():
            self.waiters.popleft()
        return bool(self.waiters)


@dataclass(slots=True, eq=False)
class Lease:
    """A sandbox that only one caller uses until the caller releases it."""

    owner: EvaluatorPool
    slot: Slot
    sandbox: Sandbox
    loaded: Loaded  # facts that the runner found in the evaluator
    warm: bool  # whether the sandbox had loaded the evaluator before this lease
    queue_ms: float  # time for which the lease waited for a sandbox, not counting the load
    load_ms: float  # time of starting and loading the sandbox, if this lease waited for that
    answered: int = 0  # rows answered under this lease so far


class EvaluatorPools:
    """The evaluator pools of a host, by `LeaseRequest.key`, and the order in which to end idle sandboxes.

    The order depends on how often sandboxes are used, as in TinyLFU (Einziger, Friedman, Manes: TinyLFU: A Highly
    Efficient Cache Admission Policy, ACM Transactions on Storage 13(4), 2017). Uses are counted for evaluators with and
    without a sandbox. After ten uses per sandbox of the pool, all counts are halved. If two sandboxes are used equally
    often, the sandbox that became idle later is ended first. The most recently used hundredth of the sandboxes comes
    last in the order, as in W-TinyLFU of the same paper.
    """

    def __init__(self, shares: FairShare, *, places: int) -> None:
        self._shares = shares
        self._by_key: dict[tuple[str, str], EvaluatorPool] = {}
        self._places = places
        self._counted = 0

    def pool_for(self, request: LeaseRequest) -> EvaluatorPool:
        key = request.key
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = EvaluatorPool(key, self._shares)
        return found

    def __iter__(self) -> Iterator[EvaluatorPool]:
        return iter(list(self._by_key.values()))

    def count_use(self, one: EvaluatorPool) -> None:
        """Count a lease of an evaluator.

        After ten leases per sandbox of the pool, halve the counts of all evaluators.
        """
        one.uses = min(one.uses + 1, _MOST_USES)
        self._counted += 1
        if self._counted >= _SAMPLE * self._places:
            self._counted //= 2
            for other in self._by_key.values():
                other.uses //= 2

    def keep_bundle(self, owner: EvaluatorPool, bundle: bytes | None) -> None:
        """Keep the compiled code of an evaluator, if there is any.

        If the compiled code of all evaluators takes too much memory, forget that of the workspace whose code takes the
        most; its evaluators that are used least come first.
        """
        owner.bundle = bundle
        kept = [one for one in self._by_key.values() if one.bundle is not None]
        held = Counter[str]()
        for one in kept:
            held[one.workspace] += len(one.bundle or b"")
        while held.total() > BUNDLE_BYTES:
            ((largest, _),) = held.most_common(1)
            coldest = min((one for one in kept if one.workspace == largest), key=lambda one: one.uses)
            kept.remove(coldest)
            held[largest] -= len(coldest.bundle or b"")
            coldest.bundle = None

    def coldest_first(self) -> Iterator[tuple[EvaluatorPool, Slot]]:
        """Yield idle sandboxes in the order in which to end them.

        Sandboxes of workspaces with many busy sandboxes come first; then sandboxes that are used little.

        The order is computed once, so the caller must skip sandboxes that are no longer idle.
        """
        idle = [(one, slot) for one in self._by_key.values() for slot in one.idle]
        spared = nlargest(max(1, len(idle) // _WINDOW), idle, key=lambda at: at[1].idle_since)
        newest = {slot for _, slot in spared}
        busy = {one.workspace: -self._shares.share_of(one.workspace).sandboxes for one, _ in idle}

        def order(at: tuple[EvaluatorPool, Slot]) -> tuple[float, ...]:
            one, slot = at
            return busy[one.workspace], slot in newest, one.worth, -slot.idle_since

        yield from sorted(idle, key=order)

    def forget_empty(self) -> None:
        """Forget the least used of the pools that have neither sandboxes nor callers; keep `EMPTY_POOLS` such pools."""
        empty = [key for key, one in self._by_key.items() if not one.size and not one.waiters]
        unused = sorted(empty, key=lambda key: self._by_key[key].uses)
        for key in unused[: max(0, len(empty) - max(EMPTY_POOLS, self._places))]:
            del self._by_key[key]


class StartQueue:
    """A queue of the evaluators that need a new sandbox, or memory to run an idle one.

    Workspaces take turns, and the evaluators of one workspace come in the order in which they were added.
    """

    def __init__(self, shares: FairShare) -> None:
        self._shares = shares
        self._by_workspace: OrderedDict[str, OrderedDict[tuple[str, str], EvaluatorPool]] = OrderedDict()

    def enqueue(self, entry: EvaluatorPool) -> None:
        """Add an evaluator pool to the queue; a pool that is queued already keeps its place."""
        self._by_workspace.setdefault(entry.workspace, OrderedDict()).setdefault(entry.key, entry)

    def remove(self, entry: EvaluatorPool) -> None:
        """Remove an evaluator pool whose sandbox is starting; its workspace goes to the end of the queue."""
        entries = self._by_workspace.pop(entry.workspace, None)
        if entries is not None:
            entries.pop(entry.key, None)
            if entries:
                self._by_workspace[entry.workspace] = entries

    def next_to_start(self, fits: Callable[[EvaluatorPool], bool]) -> EvaluatorPool | None:
        """Return the pool of the evaluator that comes next, or None if no sandbox can start or run again now.

        While a large sandbox waits for room, a smaller sandbox starts first only if its workspace would then use no
        more memory than the workspace of the large sandbox. Otherwise small sandboxes could keep the large one waiting
        forever.
        """
        most_mb: float = math.inf
        for entry, spec in self._eligible():
            memory_mb = self._shares.memory_with(entry.workspace, spec)
            if memory_mb > most_mb:
                continue
            if fits(entry):
                return entry
            most_mb = memory_mb
        return None

    def wants_sandbox_of(self, owner: EvaluatorPool) -> bool:
        """Return whether another queued evaluator could start a sandbox if `owner` gave up a sandbox."""
        return any(
            other is not owner and (other.workspace == owner.workspace or self._may_start(other))
            for other in self._first()
        )

    def eligible(self) -> list[EvaluatorPool]:
        """Return the queued evaluators whose workspace may start a sandbox."""
        return [
            other
            for entry, _ in self._eligible()
            for other in self._by_workspace[entry.workspace].values()
            if other.has_waiters
        ]

    def largest_mb(self) -> int:
        """Return the largest memory limit, in MB, of the sandboxes that workspaces would start next, or 0."""
        return max((spec.memory_mb for _, spec in self._eligible()), default=0)

    def _eligible(self) -> Iterator[tuple[EvaluatorPool, SandboxSpec]]:
        for entry in self._first():
            if self._may_start(entry):
                yield entry, entry.waiters[0].request.spec

    def _may_start(self, entry: EvaluatorPool) -> bool:
        return self._shares.may_start(entry.workspace, entry.waiters[0].request.spec)

    def _first(self) -> Iterator[EvaluatorPool]:
        """Yield the first entry of each workspace; remove entries whose callers have all hung up."""
        for workspace, entries in list(self._by_workspace.items()):
            while entries:
                entry = next(iter(entries.values()))
                if entry.has_waiters:
                    yield entry
                    break
                del entries[entry.key]
            if not entries:
                self._by_workspace.pop(workspace, None)

    def __bool__(self) -> bool:
        return bool(self._by_workspace)

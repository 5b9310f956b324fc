"""The pool of sandboxes: starts, leases and ends sandboxes, and queues callers."""

from evaluator_host.engine.pool.evaluator_pools import Lease, LeaseRequest, Slot
from evaluator_host.engine.pool.fair_share import PoolLimits
from evaluator_host.engine.pool.pool import Pool

__all__ = ["Lease", "LeaseRequest", "Pool", "PoolLimits", "Slot"]

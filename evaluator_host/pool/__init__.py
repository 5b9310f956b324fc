"""Warm sandboxes: leases them, queues callers, starts and ends sandboxes."""

from evaluator_host.pool.evaluator_pools import Lease, LeaseRequest
from evaluator_host.pool.fair_share import PoolLimits
from evaluator_host.pool.pool import Pool

__all__ = ["Lease", "LeaseRequest", "Pool", "PoolLimits"]

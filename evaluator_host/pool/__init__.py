"""Warm sandboxes: who waits, who runs, what stays warm, what is thrown away."""

from evaluator_host.pool.evaluator_pools import Order
from evaluator_host.pool.lease import Lease, PoolLimits
from evaluator_host.pool.pool import Pool

__all__ = ["Lease", "Order", "Pool", "PoolLimits"]

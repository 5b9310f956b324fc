"""The ceilings of a pool, and how much of them is used."""

from collections import Counter
from dataclasses import dataclass

from evaluator_host.model.evaluator import SandboxSpec


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Ceilings and times of a pool; see `config.Settings` for each."""

    max_sandboxes: int = 16
    max_per_evaluator: int = 2
    memory_mb: int = 4096
    idle_sandboxes: int = 1
    idle_ttl_s: float = 300.0
    max_rows: int = 100_000
    max_age_s: float = 3600.0
    queue_limit: int = 1000
    grace_s: float = 1.0


class Capacity:
    """Counts sandboxes and their memory limits. One sandbox always fits: a large limit waits instead of failing."""

    def __init__(self, *, max_sandboxes: int, memory_mb: int) -> None:
        self.max_sandboxes = max_sandboxes
        self.memory_mb = memory_mb
        self.sandboxes = 0
        self.taken_mb = 0
        self.environments: Counter[str] = Counter()  # sandboxes by the digest of their environment

    def fits(self, spec: SandboxSpec) -> bool:
        """Return whether a sandbox of this spec may be started now."""
        if self.sandboxes == 0:
            return True
        return self.sandboxes < self.max_sandboxes and self.taken_mb + spec.memory_mb <= self.memory_mb

    def reserve(self, spec: SandboxSpec) -> None:
        """Count one more sandbox."""
        self.sandboxes += 1
        self.taken_mb += spec.memory_mb
        self.environments[spec.environment.digest] += 1

    def give_back(self, spec: SandboxSpec) -> None:
        """Count one sandbox less, after it has ended."""
        self.sandboxes -= 1
        self.taken_mb -= spec.memory_mb
        self.environments[spec.environment.digest] -= 1
        if not self.environments[spec.environment.digest]:
            del self.environments[spec.environment.digest]

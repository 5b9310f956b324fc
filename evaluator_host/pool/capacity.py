"""How many sandboxes there may be: a ceiling by count and one by the sum of their memory limits."""

from collections import Counter

from evaluator_host.model.evaluator import SandboxSpec


class Capacity:
    """What is taken of both ceilings. One sandbox always fits, so that a large limit waits instead of failing."""

    def __init__(self, *, max_sandboxes: int, memory_mb: int) -> None:
        self.max_sandboxes = max_sandboxes
        self.memory_mb = memory_mb
        self.sandboxes = 0
        self.taken_mb = 0
        self.environments: Counter[str] = Counter()  # sandboxes by the digest of their environment

    def fits(self, spec: SandboxSpec) -> bool:
        """Whether a sandbox of this spec may be started now."""
        if self.sandboxes == 0:
            return True
        return self.sandboxes < self.max_sandboxes and self.taken_mb + spec.memory_mb <= self.memory_mb

    def take(self, spec: SandboxSpec) -> None:
        """Count one more."""
        self.sandboxes += 1
        self.taken_mb += spec.memory_mb
        self.environments[spec.environment.digest] += 1

    def give_back(self, spec: SandboxSpec) -> None:
        """Count one less; only when it is really gone."""
        self.sandboxes -= 1
        self.taken_mb -= spec.memory_mb
        self.environments[spec.environment.digest] -= 1
        if not self.environments[spec.environment.digest]:
            del self.environments[spec.environment.digest]

"""What a caller holds while it uses a sandbox, and the ceilings of the pool it came from."""

from dataclasses import dataclass

from evaluator_host.model.outcome import Loaded
from evaluator_host.pool.evaluator_pools import Group, Slot
from evaluator_host.sandbox.session import Sandbox


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


@dataclass(slots=True, eq=False)
class Lease:
    """A sandbox that is the caller's alone until it is released.

    Attributes:
      warm: The evaluator was loaded before this lease.
      queue_ms: Waited for a sandbox, loading excluded.
      load_ms: Start and load of the sandbox, when this lease had to wait for them.
      answered: Rows answered under this lease so far.
      facts: Whatever the caller wants to work out once for all of them.
    """

    group: Group
    slot: Slot
    warm: bool
    queue_ms: float
    load_ms: float
    answered: int = 0
    facts: object = None

    @property
    def sandbox(self) -> Sandbox:
        """The leased sandbox."""
        return self.slot.sandbox

    @property
    def loaded(self) -> Loaded:
        """What the runner found in the evaluator."""
        return self.slot.loaded

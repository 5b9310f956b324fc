"""The interface through which the engine in one process of a host uses the host's other processes."""

from evaluator_host.engine.service.caller import Caller
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Row
from evaluator_host.types.outcome import EvaluationResult


class Peers:
    """The other processes of a host.

    This class itself is for a host with only one process; a subclass is for hosts with several processes.
    """

    async def evaluate(
        self,
        evaluator: Evaluator,  # noqa: ARG002 - for subclasses, as below
        row: Row | EncodedRow,  # noqa: ARG002
        caller: Caller,  # noqa: ARG002
    ) -> EvaluationResult | None:
        """Evaluate a row in another process; return None if this process must evaluate it."""
        return None

    async def add_metrics(self, own: bytes) -> bytes:
        """Return the metrics of all processes, added up; `own` are the metrics of this process."""
        return own

    async def release(self, digest: str) -> None:
        """Make the other processes end the idle sandboxes of a package set."""

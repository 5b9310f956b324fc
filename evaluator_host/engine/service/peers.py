"""The other processes of a host, as the engine in one process sees them."""

from evaluator_host.engine.service.caller import Caller
from evaluator_host.types.evaluator import EncodedRow, Evaluator, Row
from evaluator_host.types.outcome import EvaluationResult


class Peers:
    """The other processes of a host: this class is for a host without any; hosts of several processes override it."""

    async def evaluate(
        self,
        evaluator: Evaluator,  # noqa: ARG002 - for subclasses, as below
        row: Row | EncodedRow,  # noqa: ARG002
        caller: Caller,  # noqa: ARG002
    ) -> EvaluationResult | None:
        """Evaluate a row in another process; None if this process has to evaluate it."""
        return None

    async def add_metrics(self, own: bytes) -> bytes:
        """Return the sum of the metrics of all processes; `own` are those of this process."""
        return own

    async def release(self, digest: str) -> None:
        """Make the other processes end the idle sandboxes of a package set."""

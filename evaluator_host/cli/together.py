"""What the rows of a data file have together: those that scored are read once more, and scored in one call."""

from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from evaluator_host.datasets.rows import FileRow
from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.evaluator import Contract, Evaluator, Row
from evaluator_host.model.outcome import EvaluationResult, Status
from evaluator_host.service import Service

if TYPE_CHECKING:
    from evaluator_host.cli.remote import RemoteTarget


class Together:
    """Remembers which rows scored, a byte for each."""

    def __init__(self) -> None:
        self._scored = bytearray()
        self._asked = False

    def add(self, index: int, result: EvaluationResult) -> None:
        """Take note of a result."""
        if index >= len(self._scored):
            self._scored.extend(bytes(index + 1 - len(self._scored)))
        self._scored[index] = result.status is Status.SCORED
        self._asked = self._asked or _scores_together(result.evaluator.contract)

    async def score(
        self, target: "Service | RemoteTarget", evaluator: Evaluator, rows: Iterable[FileRow]
    ) -> EvaluationResult | None:
        """Return what the rows that scored come to together; None where the evaluator does not say.

        Raises:
          InvalidRequest: a host was given the rows in several requests.
        """
        if not self._asked:
            return None
        if isinstance(target, Service):
            return await target.score_together(evaluator, self._those_that_scored(rows))
        return target.together

    async def _those_that_scored(self, rows: Iterable[FileRow]) -> AsyncGenerator[Row, None]:
        for (index, source), scored in zip(enumerate(rows), self._scored, strict=False):
            if scored:
                yield replace(source.row, index=index)


def _scores_together(contract: Contract | None) -> bool:
    return contract is not None and dialect_of(contract).bind_one_of_many is not None

"""Named evaluators, as a host shows them."""

from dataclasses import dataclass
from datetime import datetime

from evaluator_host.model import Contract, EnvironmentInfo, EvaluationError, Evaluator


@dataclass(frozen=True, slots=True)
class EvaluatorReport:
    """A version of a named evaluator, as the API shows it.

    Attributes:
      evaluator: What runs.
      problem: Why it did not load when it was made, for one that was kept all the same.
      latest: The newest version there is.
    """

    name: str
    version: int
    latest: int
    description: str
    digest: str
    contract: Contract | None
    contract_source: str | None
    problem: EvaluationError | None
    environment: EnvironmentInfo | None
    evaluator: Evaluator
    created_at: datetime
    created_by: str | None

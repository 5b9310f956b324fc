"""Named evaluators, as a host shows them."""

from dataclasses import dataclass
from datetime import datetime

from evaluator_host.model.evaluator import Contract, Evaluator
from evaluator_host.model.outcome import EnvironmentInfo, EvaluationError
from evaluator_host.schemas.migration import Proof


@dataclass(frozen=True, slots=True)
class Origin:
    """What a version was migrated from, and the proof that they score alike; `differences` is empty."""

    version: int
    proof: Proof


@dataclass(frozen=True, slots=True)
class EvaluatorReport:
    """A version of a named evaluator, as the API shows it.

    Attributes:
      evaluator: What runs.
      problem: Why it did not load when it was made, for one that was kept all the same.
      latest: The newest version there is.
      origin: Of a version that was migrated from a legacy one.
      sampling: Share of live traces that are scored, whatever the version.
    """

    name: str
    version: int
    latest: int
    description: str
    sampling: float
    digest: str
    contract: Contract | None
    contract_source: str | None
    problem: EvaluationError | None
    environment: EnvironmentInfo | None
    evaluator: Evaluator
    created_at: datetime
    created_by: str | None
    origin: Origin | None = None

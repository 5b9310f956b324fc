"""Answers of the routes of named evaluators."""

from dataclasses import dataclass
from datetime import datetime

from evaluator_host.model.evaluator import Contract, Evaluator
from evaluator_host.model.outcome import EnvironmentInfo, EvaluationError
from evaluator_host.schemas.migration import Proof


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a migrated version comes from.

    Attributes:
      version: The legacy version.
      proof: That both versions score alike; its `differences` is empty.
    """

    version: int
    proof: Proof


@dataclass(frozen=True, slots=True)
class EvaluatorReport:
    """A version of a named evaluator, the answer of `GET /v1/evaluators/{name}`.

    Attributes:
      name: Unique within the workspace.
      version: This version, from 1.
      latest: The newest version.
      description: For people; belongs to the name.
      sampling: Share of live traces to score, 0 to 1; belongs to the name.
      digest: `sha256:…` of the content.
      contract: The contract that applies; None when it did not load.
      contract_source: `declared` or `inferred`; None when it did not load.
      problem: Why it did not load, for a version stored with `force`.
      environment: Runtime and packages; None when it pins nothing.
      evaluator: Code, settings and pins.
      created_at: In UTC.
      created_by: Id of the key that created it; None on a host without keys.
      origin: Where a migrated version comes from; None for any other.
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

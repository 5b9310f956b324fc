"""The result of a metric."""

import dataclasses


@dataclasses.dataclass
class ScoreResult:
    """One named score; `scoring_failed` means that the score has no usable value."""

    name: str
    value: float
    reason: str | None = None
    category_name: str | None = None
    metadata: dict | None = None
    scoring_failed: bool = False

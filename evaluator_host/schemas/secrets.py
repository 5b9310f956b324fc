"""Secrets, as a host shows them: never what they are."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SecretReport:
    """A secret of a workspace."""

    name: str
    created_at: datetime
    updated_at: datetime

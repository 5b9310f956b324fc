"""Answers of the routes of secrets, which never have the value."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SecretReport:
    """A secret of a workspace, without its value.

    Attributes:
      name: Unique within the workspace.
      created_at: In UTC.
      updated_at: When the value was last set, in UTC.
    """

    name: str
    created_at: datetime
    updated_at: datetime

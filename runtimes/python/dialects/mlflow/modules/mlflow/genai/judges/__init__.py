"""The ratings that judges and scorers share. Judges themselves need the real package."""

from enum import StrEnum


class CategoricalRating(StrEnum):
    """A rating in words."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

"""The ratings that both judges and scorers use. Judges themselves need the real package."""

from enum import StrEnum


class CategoricalRating(StrEnum):
    """A rating as a word, such as yes or no."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

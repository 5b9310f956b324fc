"""The limits `--fail-under` and `--max-drop`: `run`, jobs and other commands exit with 1 if scores do not meet them."""

from typing import Annotated, TypeAlias

import typer

from evaluator_host.types.bounds import exceeds
from evaluator_host.types.numbers import exact, rounded_beside
from evaluator_host.types.warnings import threshold_notes

FailUnderOption: TypeAlias = Annotated[float | None, typer.Option(help="Exit 1 if the mean score is below this.")]


def why_under(mean: float | None, bound: float | None, *, fractions: bool) -> str | None:
    """Return why a mean score does not meet `--fail-under`. None if it does, or if there is no bound.

    `fractions` is whether all scores are in 0..1: then a bound such as 80 is probably meant as a percentage.
    """
    if bound is None or (mean is not None and not exceeds(bound, mean)):
        return None
    found = "there is no mean score to compare with"
    if mean is not None:
        found = f"the mean score {rounded_beside(mean, bound)} is under"
    meant = "".join(f"; {note.remedy}" for note in threshold_notes(bound) if fractions)
    return f"{found} --fail-under {exact(bound)}{meant}"


def why_dropped(drop: float | None, most: float | None, *, unit: str) -> str | None:
    """Return why a drop of the mean does not meet `--max-drop`. None if it does, or if there is no limit.

    `drop` is None if the means cannot be compared. `unit` says what is compared: `run` or `job`.
    """
    if most is None or (drop is not None and not exceeds(drop, most)):
        return None
    if drop is None:
        return f"--max-drop needs a row with a score in both {unit}s"
    return f"--max-drop allows {exact(most)}"

"""Why one text is not an exact pin."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """`message` says what is wrong; `hint` is the exact pin that was probably meant, as far as the text alone tells."""

    message: str
    hint: str | None = None

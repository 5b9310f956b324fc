"""One exact pin, or the reason why a text is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from evaluator_host.model.evaluator import Language

RawPin: TypeAlias = str | Mapping[str, Any]
"""A pin as users write it: a text, or `{"name": …, "version": …}`."""


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """One package at one version, in canonical form: equal pins are equal texts.

    PEP 440 takes 2.1, 2.1.0 and v2.1.0.0 for one version; `version` has the three components most releases have.
    """

    name: str
    version: str
    extras: tuple[str, ...] = ()
    language: Language = field(default=Language.PYTHON, compare=False)

    @property
    def text(self) -> str:
        """`name[extra]==1.2.3`, or `@scope/name@1.2.3` for npm."""
        if self.language is not Language.PYTHON:
            return f"{self.name}@{self.version}"
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}=={self.version}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a text is no exact pin; `hint` is the pin that was probably meant, as far as the text alone tells."""

    message: str
    hint: str | None = None

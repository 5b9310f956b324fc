"""Request bodies about packages: languages, exact package versions (pins), package sets."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    FailFast,
    Field,
)

from evaluator_host.platform.http.bodies import Body, example
from evaluator_host.types.evaluator import AUTO_PACKAGES, Language

MOST_PINS: Final = 1000


class PinIn(Body):
    """An exact version of a package."""

    name: str = Field(min_length=1)
    version: str = Field(min_length=1)


_Pins: TypeAlias = Annotated[list[str | PinIn], Field(max_length=MOST_PINS)]


def _listed(given: Any) -> Any:
    return [given] if given == AUTO_PACKAGES else given


AutoPinsIn: TypeAlias = Annotated[
    _Pins, FailFast(), BeforeValidator(_listed, json_schema_input_type=_Pins | Literal["auto"])
]
"""Pins, or `auto`; a list may contain both."""


def pin_texts(packages: list[str | PinIn], language: Language) -> tuple[str, ...]:
    """Convert pins to strings, `name==version` or `name@version`; the service checks them later."""
    between = "==" if language is Language.PYTHON else "@"
    return tuple(
        text
        for pin in packages
        for text in (_lines(pin) if isinstance(pin, str) else (f"{pin.name}{between}{pin.version}",))
    )


def _lines(pins: str) -> Iterable[str]:
    """Return the pins in a string, which may be a whole requirements.txt with comments."""
    if "\n" not in pins:
        return (pins,)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in pins.splitlines()[:MOST_PINS])
    return [line for line in lines if line]


def _language(given: Any) -> Any:
    """Return the host's name for a language that may have another name: `javascript` for `js` or `node`."""
    return _LANGUAGES.get(given.lower(), given) if isinstance(given, str) else given


_LANGUAGES: Final = {
    **dict.fromkeys(("py", "python3", "python"), "python"),
    **dict.fromkeys(("js", "node", "javascript"), "javascript"),
    **dict.fromkeys(("ts", "typescript"), "typescript"),
}
LanguageIn: TypeAlias = Annotated[Language, BeforeValidator(_language)]


Minor: TypeAlias = Annotated[
    str,
    Field(pattern=r"^3\.[0-9]{1,2}$", description="Minor Python version, such as 3.13. Default: the host's version."),
]


class EnvironmentIn(Body):
    """Body of `POST /v1/environments`: a package set."""

    model_config = example(language="javascript", packages=["nanoid@5.1.5"])

    language: LanguageIn = Language.PYTHON
    packages: Annotated[list[str | PinIn], FailFast()] = Field(
        min_length=1,
        max_length=MOST_PINS,
        description="Exact pins of pip or npm packages: numpy==2.1.0, lodash@4.17.21.",
    )
    python: Minor | None = None

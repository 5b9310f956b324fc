"""The names that each programming language uses for values, such as `dict` or `object`; error messages use them."""

from dataclasses import dataclass
from typing import Final

from evaluator_host.types.evaluator import Json, Language


@dataclass(frozen=True, slots=True)
class LanguageTerms:
    """The names of values in one programming language."""

    shape: str
    object: str
    array: str
    text: str
    boolean: str
    null: str
    missing: str
    non_finite: str
    to_number: str


_PYTHON: Final = LanguageTerms(
    shape="{'score': …}",
    object="dict",
    array="list",
    text="str",
    boolean="bool",
    null="None",
    missing="None",
    non_finite="nan or inf",
    to_number="float(…)",
)
_JAVASCRIPT: Final = LanguageTerms(
    shape="{ score: … }",
    object="object",
    array="array",
    text="string",
    boolean="boolean",
    null="null",
    missing="undefined",
    non_finite="NaN or Infinity",
    to_number="Number(…)",
)


def terms(language: Language) -> LanguageTerms:
    """Return what values are called in a programming language."""
    return _PYTHON if language is Language.PYTHON else _JAVASCRIPT


def valid_returns(language: Language, *, needs_score: bool = False) -> str:
    """Return a phrase that lists the values that an evaluator may return.

    If `needs_score` is true, only an object with a score is valid.
    """
    term = terms(language)
    if needs_score:
        return f"{term.shape} with a number"
    return f"a number, a {term.boolean} or {term.shape}"


def described(value: Json, language: Language) -> str:
    """Describe a JSON value in the terms of a programming language: `a dict`, `the text 'abc'`."""
    term = terms(language)
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, dict):
        return f"{'an' if term.object[0] in 'aeiou' else 'a'} {term.object}"
    if isinstance(value, list):
        return f"{'an' if term.array[0] in 'aeiou' else 'a'} {term.array}"
    return f"{value!r:.60}"

"""Messages in the language of the author: what they would call a dict, None, or a valid result."""

from dataclasses import dataclass
from typing import Final

from evaluator_host.model.evaluator import Contract, Json, Language


@dataclass(frozen=True, slots=True)
class Words:
    """What one language calls things."""

    shape: str
    object: str
    array: str
    text: str
    boolean: str
    null: str
    missing: str
    non_finite: str
    to_number: str


_PYTHON: Final = Words(
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
_JAVASCRIPT: Final = Words(
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


def words(language: Language) -> Words:
    """Return the author's words."""
    return _PYTHON if language is Language.PYTHON else _JAVASCRIPT


def valid_returns(language: Language, contract: Contract = Contract.EVALUATE) -> str:
    """Say what an evaluator may return."""
    word = words(language)
    if contract is Contract.MAIN:
        return f"{word.shape} with a number"
    return f"a number, a {word.boolean} or {word.shape}"


def described(value: Json, language: Language) -> str:
    """Name the type of a JSON value, with its article."""
    word = words(language)
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, dict):
        return f"{'an' if word.object[0] in 'aeiou' else 'a'} {word.object}"
    if isinstance(value, list):
        return f"{'an' if word.array[0] in 'aeiou' else 'a'} {word.array}"
    return f"{value!r:.60}"

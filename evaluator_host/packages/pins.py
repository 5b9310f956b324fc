"""Exact pins: read in every spelling, canonical in one, refused by name before anything runs.

A pin that is not exact would make the same evaluator score differently tomorrow; a pin that is really an option, a URL
or a path would make a resolver read what the operator never offered.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from evaluator_host.model.errors import InvalidPin, Problem
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.npm import syntax as npm_syntax
from evaluator_host.packages.pip import syntax as pip_syntax
from evaluator_host.packages.refusal import Refusal
from evaluator_host.packages.tools import Tools, installed_tools

MAX_PINS: Final = 100
MAX_PIN_LENGTH: Final = 300  # npm allows names of 214 characters, PyPI's longest is 80

RawPin: TypeAlias = str | Mapping[str, Any]


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


def parse(raw: Sequence[RawPin], language: Language, *, tools: Tools | None = None) -> tuple[Pin, ...]:
    """Read pins as users write them; the same set in another order or spelling gives the same tuple.

    For JavaScript and TypeScript npm's own libraries decide, in one node process (60 ms) per set not seen before: call
    it from a thread where an event loop must not wait.

    Args:
      raw: `name==version` with extras, `name@version`, `@scope/name@version`, or `{"name", "version"}`.
      language: Of the evaluator: pip pins for Python, npm pins for the others.
      tools: Where node lies; by default what is installed.

    Raises:
      InvalidPin: one `Problem` per bad pin, `field` being `packages[i]` and `hint` the pin that was probably meant.
    """
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence):
        raise InvalidPin("packages must be a list.", problems=(Problem("packages", "must be a list of pins"),))
    if len(raw) > MAX_PINS:
        problem = Problem("packages", f"{len(raw)} pins; at most {MAX_PINS} are allowed")
        raise InvalidPin("Too many packages.", problems=(problem,))
    texts = tuple(_text(item, language) for item in raw)
    answers = _judged(texts, language, tools or installed_tools())
    return _merged(answers, raw)


def spelled(item: object, language: Language) -> str | Refusal:
    """Return an item as one line of text that is safe to hand to a parser, or why it is not."""
    return _text(item, language)


@lru_cache(maxsize=1024)
def _judged(texts: tuple[str | Refusal, ...], language: Language, tools: Tools) -> tuple[Pin | Refusal, ...]:
    clean = tuple(text for text in texts if isinstance(text, str))
    python = language is Language.PYTHON
    read = [pip_syntax.read(text) for text in clean] if python else npm_syntax.read(clean, tools)
    answers = iter(read)
    return tuple(text if isinstance(text, Refusal) else _pin(next(answers), language) for text in texts)


def _pin(answer: tuple[str, str, tuple[str, ...]] | Refusal, language: Language) -> Pin | Refusal:
    if isinstance(answer, Refusal):
        return answer
    name, version, extras = answer
    return Pin(name, version, extras, language)


def _text(item: object, language: Language) -> str | Refusal:
    if isinstance(item, Mapping):
        joined = _joined(item, language)
    elif isinstance(item, str):
        joined = item
    else:
        return Refusal("a pin is a text or an object with name and version")
    if isinstance(joined, Refusal):
        return joined
    if len(joined) > MAX_PIN_LENGTH:
        return Refusal(f"longer than {MAX_PIN_LENGTH} characters")
    if any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for char in joined):
        return Refusal("has a line break or another invisible character; give one pin per item")
    stripped = joined.strip()
    return stripped or Refusal("empty")


def _joined(item: Mapping[Any, Any], language: Language) -> str | Refusal:
    name, version = item.get("name"), item.get("version")
    if set(item) != {"name", "version"} or not isinstance(name, str) or not isinstance(version, str):
        return Refusal('an object has exactly "name" and "version", both texts')
    if not name.strip() or not version.strip():
        return Refusal("name and version must not be empty")
    if language is not Language.PYTHON:
        return f"{name.strip()}@{version.strip()}"
    starts_with_operator = version.strip()[0] in "=<>!~^"
    return f"{name.strip()}{'' if starts_with_operator else '=='}{version.strip()}"


def _merged(answers: Sequence[Pin | Refusal], raw: Sequence[RawPin]) -> tuple[Pin, ...]:
    problems: list[Problem] = []
    pins: dict[str, Pin] = {}
    for index, answer in enumerate(answers):
        if isinstance(answer, Refusal):
            problems.append(Problem(f"packages[{index}]", _said(raw[index], answer), answer.hint))
            continue
        known = pins.setdefault(answer.name, answer)
        if known.version != answer.version:
            message = f"{answer.text} contradicts {known.text} in the same set: keep one of them"
            problems.append(Problem(f"packages[{index}]", message, known.text))
        elif known.extras != answer.extras:
            extras = tuple(sorted({*known.extras, *answer.extras}))
            pins[answer.name] = Pin(known.name, known.version, extras, known.language)
    if problems:
        raise InvalidPin(_summary(problems), problems=tuple(problems))
    return tuple(sorted(pins.values()))


def _said(item: RawPin, refusal: Refusal) -> str:
    return f"{str(item)[:80]!r}: {refusal.message}"


def _summary(problems: Sequence[Problem]) -> str:
    count = "1 package is" if len(problems) == 1 else f"{len(problems)} packages are"
    return f"{count} not pinned exactly: {problems[0].message}"
